//! The two engines judge each other: what one makes, the other takes, for random keys, users, lengths and messages.

use super::PROVIDERS;
use aes_gcm::AesGcm;
use aes_gcm::aead::{Aead, KeyInit, Payload, consts::U16};
use crypto::{
    Cipher, Error, HashAlgorithm, MacKey, PrivateKey, Provider, PublicKey, SealKey, SealedText, Sealer, Secret,
    Signature, UserId,
};
use libsm::sm2::encrypt::{DecryptCtx, EncryptCtx};
use libsm::sm2::signature::SigCtx;

const SIGNATURES: usize = 200;

fn random(length: usize) -> Vec<u8> {
    Secret::random(length).unwrap().expose().to_vec()
}

/// One test, since each process that uses libsm's SM2 first makes its table for seconds.
#[test]
fn what_one_engine_makes_with_sm2_the_other_takes() {
    two_hundred_signatures_of_each_engine_verify_with_the_other();
    the_first_and_the_last_key_sign_in_both_engines();
    encryptions_of_each_engine_open_with_the_other();
}

fn two_hundred_signatures_of_each_engine_verify_with_the_other() {
    for number in 0..SIGNATURES {
        let key = PrivateKey::generate().unwrap();
        let user = if number % 2 == 0 { UserId::default() } else { UserId::new(&"用户".repeat(number)).unwrap() };
        let message = random(number);
        for (signer, verifier) in [(PROVIDERS[0], PROVIDERS[1]), (PROVIDERS[1], PROVIDERS[0])] {
            let signature = signer.sign(&key, &user, &message).unwrap();
            let read = Signature::from_der(&signature.to_der()).unwrap();
            let public = PublicKey::from_sec1_bytes(&key.public_key().to_sec1_bytes()).unwrap();
            verifier.verify(&public, &user, &message, &read).unwrap();
            let other = [message.as_slice(), b"."].concat();
            assert_eq!(verifier.verify(&public, &user, &other, &read), Err(Error::NotSigned));
        }
    }
}

fn the_first_and_the_last_key_sign_in_both_engines() {
    let mut first = [0; 32];
    first[31] = 1;
    let last: [u8; 32] = {
        let order = "fffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d54121";
        *order.parse::<crypto::Digest>().unwrap().as_bytes()
    };
    for number in [first, last] {
        let key = PrivateKey::from_bytes(&number).unwrap();
        for (signer, verifier) in [(PROVIDERS[0], PROVIDERS[1]), (PROVIDERS[1], PROVIDERS[0])] {
            let signature = signer.sign(&key, &UserId::default(), b"an edge").unwrap();
            verifier.verify(key.public_key(), &UserId::default(), b"an edge", &signature).unwrap();
        }
    }
}

#[test]
fn sealed_texts_and_digests_of_all_lengths_are_the_same() {
    for length in (0..70).chain([255, 256, 4095, 4096, 4097]) {
        let (plain, data, nonce) = (random(length), random(length / 3), random(12).try_into().unwrap());
        let key = SealKey::generate(Cipher::Sm4Gcm).unwrap();
        let [ours, theirs] = PROVIDERS.map(|provider| Sealer::with_provider(key.clone(), provider));
        let sealed = ours.seal_with_nonce(nonce, &plain, &data).unwrap();
        assert_eq!(sealed, theirs.seal_with_nonce(nonce, &plain, &data).unwrap(), "{length} bytes");
        let stored: SealedText = sealed.to_string().parse().unwrap();
        assert_eq!(theirs.open(&stored, &data).unwrap().expose(), plain);
        let mac = MacKey::from_bytes(&random(16 + length % 49)).unwrap();
        let of = |provider: Provider| {
            (provider.digest(HashAlgorithm::Sm3, &plain), provider.hmac(HashAlgorithm::Sm3, &mac, &plain))
        };
        assert_eq!(of(Provider::RustCrypto), of(Provider::Libsm), "{length} bytes");
    }
}

/// Both providers hash for their tags with the same code; libsm's own GCM, which takes a nonce of 16 bytes only, judges it.
#[test]
fn the_hash_of_gcm_agrees_with_that_of_libsm() {
    for length in 0..100 {
        let (key, nonce, plain, data) = (random(16), random(16), random(length), random(100 - length));
        let ours = AesGcm::<sm4::Sm4, U16>::new_from_slice(&key).unwrap();
        let nonce_of_ours = nonce.as_slice().try_into().unwrap();
        let theirs = libsm::sm4::Cipher::new(&key, libsm::sm4::Mode::Gcm).unwrap();
        assert_eq!(
            ours.encrypt(nonce_of_ours, Payload { msg: &plain, aad: &data }).unwrap(),
            theirs.encrypt(&data, &plain, &nonce).unwrap(),
            "{length} bytes"
        );
    }
}

/// A number of DER without its sign byte, filled up to 32 bytes, and what follows it.
fn der_number(der: &[u8]) -> (Vec<u8>, &[u8]) {
    assert_eq!(der[0], 2);
    let (digits, rest) = der[2..].split_at(usize::from(der[1]));
    let digits = digits.strip_prefix(&[0]).unwrap_or(digits);
    ([vec![0; 32 - digits.len()], digits.to_vec()].concat(), rest)
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let header = if length < 128 { vec![tag, length] } else { vec![tag, 0x81, length] };
    [header.as_slice(), content].concat()
}

fn number_der(number: &[u8]) -> Vec<u8> {
    let start = number.iter().position(|byte| *byte != 0).unwrap();
    let sign: &[u8] = if number[start] >= 128 { &[0] } else { &[] };
    der(2, &[sign, &number[start..]].concat())
}

/// libsm writes 04‖x‖y, the text, the digest (the old order); GM/T 0009 writes x, y, the digest, the text in DER.
fn encryptions_of_each_engine_open_with_the_other() {
    for length in 1..40 {
        let key = PrivateKey::generate().unwrap();
        let context = SigCtx::new();
        let plain = random(length);
        let ours = key.public_key().encrypt(&plain).unwrap();
        let header = if ours[1] == 0x81 { 3 } else { 2 };
        let (x, rest) = der_number(&ours[header..]);
        let (y, rest) = der_number(rest);
        let old_order = [&[4], x.as_slice(), &y, &rest[2 + 32 + 2..], &rest[2..34]].concat();
        let secret = context.load_seckey(key.expose_bytes().expose()).unwrap();
        assert_eq!(DecryptCtx::new(length, secret).decrypt(&old_order).unwrap(), plain);

        let point = context.load_pubkey(&key.public_key().to_sec1_bytes()).unwrap();
        let theirs = EncryptCtx::new(length, point).encrypt(&plain).unwrap();
        let (point, rest) = theirs.split_at(65);
        let (text, digest) = rest.split_at(length);
        let parts = [number_der(&point[1..33]), number_der(&point[33..]), der(4, digest), der(4, text)];
        assert_eq!(key.decrypt(&der(0x30, &parts.concat())).unwrap().expose(), plain);
    }
}
