//! Keys go in and out as they are, wrong ones are refused with the reason, and none shows itself.

use super::{CIPHERS, annex_key, bytes, seal_key, text, user, vectors};
use crypto::{
    Cipher, Digest, ENCRYPTED_BYTES_MAX, Error, HashAlgorithm, MacKey, PrivateKey, Provider, PublicKey,
    SEALED_BYTES_MAX, SealKey, SealedText, Sealer, Secret, Signature, UserId,
};
use zeroize::ZeroizeOnDrop;

fn hex(digits: &str) -> Vec<u8> {
    bytes(&serde_json::json!({ "digits": digits }), "digits")
}

#[test]
fn private_keys_are_from_1_to_n_minus_2() {
    let order = "fffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d541";
    for (last, good) in [("21", true), ("22", false), ("23", false), ("24", false)] {
        let key = PrivateKey::from_bytes(&hex(&format!("{order}{last}")));
        assert_eq!(key.is_ok(), good, "{last}");
    }
    for wrong in [vec![], vec![1; 24], vec![1; 31], vec![1; 33], vec![0; 32], vec![0xff; 32]] {
        assert_eq!(PrivateKey::from_bytes(&wrong).unwrap_err(), Error::PrivateKey);
    }
}

#[test]
fn public_keys_are_points_of_the_curve() {
    let point = annex_key().public_key().to_sec1_bytes();
    let compressed = [&[2 + (point[64] & 1)], &point[1..33]].concat();
    assert_eq!(PublicKey::from_sec1_bytes(&compressed).unwrap(), *annex_key().public_key());
    let mut beside = point.clone();
    beside[64] ^= 1;
    let infinity = vec![0];
    let other_form = [&[6], &point[1..]].concat();
    for wrong in [vec![], infinity, beside, other_form, point[..64].to_vec(), vec![0xff; 65], vec![4; 33]] {
        assert_eq!(PublicKey::from_sec1_bytes(&wrong).unwrap_err(), Error::PublicKey, "{wrong:?}");
    }
}

#[test]
fn pem_goes_out_and_in() {
    let key = PrivateKey::generate().unwrap();
    let pem = key.to_pkcs8_pem().unwrap();
    let read = PrivateKey::from_pkcs8_pem(pem.expose_text().unwrap()).unwrap();
    assert_eq!(read.expose_bytes().expose(), key.expose_bytes().expose());
    let public = PublicKey::from_spki_pem(&key.public_key().to_spki_pem().unwrap()).unwrap();
    public.verify(&user(), b"m", &read.sign(&user(), b"m").unwrap()).unwrap();
    assert_eq!(public.fingerprint(), Digest::sm3(&public.to_sec1_bytes()));
    assert_ne!(public.fingerprint(), PrivateKey::generate().unwrap().public_key().fingerprint());
}

#[test]
fn pem_of_another_curve_kind_or_key_is_refused() {
    let (ours, other) = (vectors("openssl"), vectors("other_curve"));
    for wrong in [text(other, "private_pem"), text(ours, "public_pem"), "", "-----BEGIN PRIVATE KEY-----"] {
        assert_eq!(PrivateKey::from_pkcs8_pem(wrong).unwrap_err(), Error::PrivateKeyPem, "{wrong}");
    }
    for wrong in [text(other, "public_pem"), text(ours, "private_pem"), "", "-----END PUBLIC KEY-----"] {
        assert_eq!(PublicKey::from_spki_pem(wrong).unwrap_err(), Error::PublicKeyPem, "{wrong}");
    }
}

#[test]
fn lengths_are_checked() {
    for cipher in CIPHERS {
        for length in (0..40).filter(|length| *length != cipher.key_bytes()) {
            let refused = SealKey::from_bytes(cipher, &vec![1; length]).unwrap_err();
            let expected = format!("has {length} bytes, it must have {}", cipher.key_bytes());
            assert!(refused.to_string().ends_with(&expected), "{refused}");
        }
    }
    for (length, good) in [(0, false), (15, false), (16, true), (64, true), (65, false)] {
        assert_eq!(MacKey::from_bytes(&vec![1; length]).is_ok(), good, "{length}");
    }
    for (length, good) in [(0, false), (1, true), (8191, true), (8192, false)] {
        assert_eq!(UserId::new(&"a".repeat(length)).is_ok(), good, "{length}");
    }
    let longest = UserId::new(&"a".repeat(8191)).unwrap();
    annex_key().public_key().verify(&longest, b"", &annex_key().sign(&longest, b"").unwrap()).unwrap();
    for (length, good) in [(0, false), (1, true), (ENCRYPTED_BYTES_MAX, true), (ENCRYPTED_BYTES_MAX + 1, false)] {
        let encrypted = annex_key().public_key().encrypt(&vec![1; length]);
        assert_eq!(encrypted.is_ok(), good, "{length}");
        assert!(encrypted.map_or(true, |text| annex_key().decrypt(&text).unwrap().expose() == vec![1; length]));
    }
    let sealer = Sealer::new(seal_key(Cipher::Sm4Gcm));
    let long = vec![0; SEALED_BYTES_MAX + 1];
    let refused = Error::TooLong { found: long.len(), max: SEALED_BYTES_MAX };
    assert_eq!(sealer.seal(&long, b"").unwrap_err(), refused);
    assert_eq!(sealer.seal(b"", &long).unwrap_err(), refused);
    assert_eq!(sealer.open(&sealer.seal(b"", b"").unwrap(), b"").unwrap().expose(), b"");
}

#[test]
fn no_secret_shows_itself() {
    let key = annex_key();
    let secret = key.expose_bytes();
    let (mac, seal) =
        (MacKey::from_bytes(&[0xab; 32]).unwrap(), SealKey::from_bytes(Cipher::Sm4Gcm, &[0xab; 16]).unwrap());
    let sealer = Sealer::new(seal.clone());
    let sealed = sealer.seal(b"plain", b"").unwrap();
    let plain = sealer.open(&sealed, b"").unwrap();
    let shown = format!("{key:?} {secret:?} {mac:?} {seal:?} {sealer:?} {sealed:?} {plain:?} {:?}", key.to_pkcs8_pem());
    for leaked in ["3945208f", "3945208F", "57, 69, 32", "171", "0xab", "abab", "plain\"", "112, 108", "PRIVATE"] {
        assert!(!shown.contains(leaked), "{leaked} is in {shown}");
    }
    assert_eq!(shown.matches("..").count(), 8, "{shown}");
}

/// Their memory cannot be looked at after the drop without unsafe code; that they promise to clear it can.
#[test]
fn the_engines_of_the_default_provider_clear_their_keys() {
    fn clears<T: ZeroizeOnDrop>() {}
    clears::<sm2::SecretKey>();
    clears::<sm4::Sm4>();
    clears::<aes_gcm::Aes256Gcm>();
    clears::<zeroize::Zeroizing<Vec<u8>>>();
}

#[test]
fn new_keys_are_all_different() {
    let keys = (0..50).map(|_| PrivateKey::generate().unwrap().expose_bytes().expose().to_vec());
    let seals = (0..50).map(|_| SealKey::generate(Cipher::Aes256Gcm).unwrap().expose_bytes().to_vec());
    let macs = (0..50).map(|_| MacKey::generate().unwrap().expose_bytes().to_vec());
    let all: std::collections::BTreeSet<_> = keys.chain(seals).chain(macs).collect();
    assert_eq!(all.len(), 150);
    assert!(all.iter().all(|key| key.len() == 32));
}

#[test]
fn stored_forms_are_texts_and_names() {
    let digest = Digest::sm3(b"abc");
    let json = serde_json::to_string(&digest).unwrap();
    assert_eq!(json, "\"66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0\"");
    assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
    assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    let signature = annex_key().sign(&user(), b"").unwrap();
    let json = serde_json::to_string(&signature).unwrap();
    assert_eq!(serde_json::from_str::<Signature>(&json).unwrap(), signature);
    let sealed = Sealer::new(seal_key(Cipher::Aes256Gcm)).seal(b"x", b"").unwrap();
    let json = serde_json::to_string(&sealed).unwrap();
    assert_eq!(serde_json::from_str::<SealedText>(&json).unwrap(), sealed);
    assert_eq!(sealed.cipher(), Cipher::Aes256Gcm);
    for wrong in ["\"\"", "\"00\"", "1", "null"] {
        assert!(serde_json::from_str::<Digest>(wrong).is_err());
        assert!(serde_json::from_str::<Signature>(wrong).is_err());
        assert!(serde_json::from_str::<SealedText>(wrong).is_err());
    }
    let names = serde_json::to_string(&(CIPHERS, Provider::default(), Provider::Libsm, HashAlgorithm::default()));
    assert_eq!(names.unwrap(), r#"[["sm4_gcm","aes256_gcm"],"rustcrypto","libsm","sm3"]"#);
    assert_eq!(Secret::random(5).unwrap().expose().len(), 5);
}
