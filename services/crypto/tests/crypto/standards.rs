//! The numbers of the standards, computed by both providers, and what OpenSSL made.

use super::{PROVIDERS, annex_key, bytes, text, vectors};
use aes_gcm::aead::KeyInit;
use crypto::{
    Cipher, Digest, HashAlgorithm, Hasher, MacKey, PrivateKey, Provider, PublicKey, SealKey, Sealer, Signature, UserId,
    hmac_sha256, hmac_sm3,
};
use serde_json::Value;
use sm4::cipher::{BlockCipherDecrypt, BlockCipherEncrypt};

#[test]
fn sm3_is_gbt_32905() {
    for vector in vectors("sm3").as_array().unwrap() {
        let (message, digest) = (bytes(vector, "message"), text(vector, "digest"));
        assert_eq!(Digest::sm3(&message).to_string(), digest, "{}", text(vector, "name"));
        for provider in PROVIDERS {
            assert_eq!(provider.digest(HashAlgorithm::Sm3, &message).to_string(), digest, "{provider:?}");
        }
    }
    let sha256_of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(Digest::sha256(b"abc").to_string(), sha256_of_abc);
}

#[test]
fn a_digest_in_pieces_is_the_digest_of_the_whole_and_fields_are_told_apart() {
    for (algorithm, provider) in
        [HashAlgorithm::Sm3, HashAlgorithm::Sha256].into_iter().flat_map(|hash| PROVIDERS.map(|with| (hash, with)))
    {
        let message: Vec<u8> = (0..=255).collect();
        let mut pieces = Hasher::with_provider(algorithm, provider);
        message.chunks(7).for_each(|piece| {
            pieces.update(piece);
        });
        assert_eq!(pieces.finish(), provider.digest(algorithm, &message));
        let fields = |fields: &[&[u8]]| {
            let mut hasher = Hasher::with_provider(algorithm, provider);
            fields.iter().for_each(|field| {
                hasher.field(field);
            });
            hasher.finish()
        };
        let framed = [&[0, 0, 0, 0, 0, 0, 0, 2], b"ab".as_slice()].concat();
        assert_eq!(fields(&[b"ab"]), provider.digest(algorithm, &framed));
        assert_ne!(fields(&[b"ab", b"c"]), fields(&[b"a", b"bc"]));
        assert_ne!(fields(&[b"ab", b""]), fields(&[b"ab"]));
    }
}

#[test]
fn hmac_is_the_known_one() {
    let vector = vectors("hmac_sm3");
    let (key, message) = (MacKey::from_bytes(&bytes(vector, "key")).unwrap(), bytes(vector, "message"));
    assert_eq!(hmac_sm3(&key, &message).to_string(), text(vector, "mac"));
    assert_eq!(Provider::Libsm.hmac(HashAlgorithm::Sm3, &key, &message).to_string(), text(vector, "mac"));
    let vector = vectors("hmac_sha256");
    let (key, message) = (MacKey::from_bytes(&bytes(vector, "key")).unwrap(), bytes(vector, "message"));
    assert_eq!(hmac_sha256(&key, &message).to_string(), text(vector, "mac"));
}

#[test]
fn sm4_is_gbt_32907_in_both_engines() {
    for vector in vectors("sm4").as_array().unwrap() {
        let (key, plain, expected) = (bytes(vector, "key"), bytes(vector, "plain"), bytes(vector, "cipher"));
        let rounds = vector["rounds"].as_u64().unwrap();
        let engine = sm4::Sm4::new_from_slice(&key).unwrap();
        let mut block = sm4::cipher::Block::<sm4::Sm4>::try_from(plain.as_slice()).unwrap();
        (0..rounds).for_each(|_| engine.encrypt_block(&mut block));
        assert_eq!(block.as_slice(), expected, "{}", text(vector, "name"));
        let engine = libsm::sm4::cipher::Sm4Cipher::new(&key).unwrap();
        let twice = (0..rounds).fold(plain.clone(), |block, _| engine.encrypt(&block).unwrap().to_vec());
        assert_eq!(twice, expected, "{}", text(vector, "name"));
        if rounds == 1 {
            sm4::Sm4::new_from_slice(&key).unwrap().decrypt_block(&mut block);
            assert_eq!(block.as_slice(), plain);
        }
    }
}

fn seals_as(cipher: Cipher, vector: &Value) {
    let (plain, data) = (bytes(vector, "plain"), bytes(vector, "associated_data"));
    let nonce: [u8; 12] = bytes(vector, "nonce").try_into().unwrap();
    let expected = [&[1, cipher as u8], nonce.as_slice(), &bytes(vector, "cipher"), &bytes(vector, "tag")].concat();
    for provider in PROVIDERS {
        let key = SealKey::from_bytes(cipher, &bytes(vector, "key")).unwrap();
        let sealer = Sealer::with_provider(key, provider);
        let sealed = sealer.seal_with_nonce(nonce, &plain, &data).unwrap();
        assert_eq!(sealed.to_bytes(), expected, "{provider:?}: {}", text(vector, "name"));
        assert_eq!(sealer.open(&sealed, &data).unwrap().expose(), plain);
    }
}

#[test]
fn sealing_is_rfc_8998_and_its_aes_twin() {
    seals_as(Cipher::Sm4Gcm, vectors("sm4_gcm"));
    seals_as(Cipher::Aes256Gcm, vectors("aes256_gcm"));
}

#[test]
fn sm2_verifies_the_signature_of_gbt_32918_5() {
    let vector = vectors("sm2_sign");
    let key = annex_key();
    assert_eq!(key.public_key().to_sec1_bytes(), bytes(vector, "public"));
    let signature = Signature::from_bytes(&bytes(vector, "raw")).unwrap();
    assert_eq!(signature.to_der(), bytes(vector, "der"));
    assert_eq!(signature, Signature::from_der(&bytes(vector, "der")).unwrap());
    let user = UserId::new(text(vector, "user")).unwrap();
    assert_eq!(user, UserId::default());
    for provider in PROVIDERS {
        provider.verify(key.public_key(), &user, &bytes(vector, "message"), &signature).unwrap();
    }
}

#[test]
fn sm2_opens_the_encryption_of_gbt_32918_5() {
    let vector = vectors("sm2_encrypt");
    let key = PrivateKey::from_bytes(&bytes(vector, "private")).unwrap();
    assert_eq!(key.decrypt(&bytes(vector, "der")).unwrap().expose(), bytes(vector, "plain"));
}

#[test]
fn what_openssl_made_is_read_verified_and_decrypted() {
    let vector = vectors("openssl");
    let key = PrivateKey::from_pkcs8_pem(text(vector, "private_pem")).unwrap();
    let public = PublicKey::from_spki_pem(text(vector, "public_pem")).unwrap();
    assert_eq!(*key.public_key(), public);
    assert_eq!(key.to_pkcs8_pem().unwrap().expose_text(), Some(text(vector, "private_pem")));
    assert_eq!(public.to_spki_pem().unwrap(), text(vector, "public_pem"));
    let signature = Signature::from_der(&bytes(vector, "signature_der")).unwrap();
    let (user, message) = (UserId::new(text(vector, "user")).unwrap(), bytes(vector, "message"));
    public.verify(&user, &message, &signature).unwrap();
    assert_eq!(key.decrypt(&bytes(vector, "encrypted_der")).unwrap().expose(), bytes(vector, "plain"));
}
