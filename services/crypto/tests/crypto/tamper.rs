//! No change goes unnoticed: every turned bit, every missing byte, every other key, user, place and message.

use super::{CIPHERS, PROVIDERS, annex_key, flipped, seal_key, user};
use crypto::{Error, MacKey, PrivateKey, SealKey, SealedText, Sealer, Signature, UserId, hmac_sm3};

const PLAIN: &[u8] = "张三 13800138000".as_bytes();
const PLACE: &[u8] = b"member/name";

#[test]
fn a_turned_bit_of_a_sealed_text_is_refused() {
    for (cipher, provider) in CIPHERS.into_iter().flat_map(|cipher| PROVIDERS.map(|provider| (cipher, provider))) {
        let sealer = Sealer::with_provider(seal_key(cipher), provider);
        let sealed = sealer.seal(PLAIN, PLACE).unwrap();
        let stored = sealed.to_bytes();
        let opens = |bytes: &[u8]| SealedText::from_bytes(bytes).and_then(|sealed| sealer.open(&sealed, PLACE));
        assert_eq!(opens(&stored).unwrap().expose(), PLAIN);
        assert!(flipped(&stored).all(|changed| opens(&changed).is_err()));
        assert!((0..stored.len()).all(|length| opens(&stored[..length]).is_err()));
        assert!(opens(&[stored.as_slice(), &[0]].concat()).is_err());
        for place in flipped(PLACE).chain([vec![], b"member/phone".to_vec(), [PLACE, &[0]].concat()]) {
            assert_eq!(sealer.open(&sealed, &place).unwrap_err(), Error::NotOpened);
        }
        for key in flipped(&vec![7; cipher.key_bytes()]) {
            let other = Sealer::with_provider(SealKey::from_bytes(cipher, &key).unwrap(), provider);
            assert_eq!(other.open(&sealed, PLACE).unwrap_err(), Error::NotOpened);
        }
    }
}

#[test]
fn a_changed_letter_of_a_sealed_text_is_refused() {
    let sealer = Sealer::new(seal_key(CIPHERS[0]));
    let text = sealer.seal(b"1", PLACE).unwrap().to_string();
    for (at, letter) in (0..text.len()).flat_map(|at| "AQgw-_=+/ .é".chars().map(move |letter| (at, letter))) {
        let changed = format!("{}{letter}{}", &text[..at], &text[at + 1..]);
        let opened = changed.parse().and_then(|sealed: SealedText| sealer.open(&sealed, PLACE));
        assert_eq!(opened.is_ok(), changed == text, "{changed}");
    }
    assert_eq!(format!("{text}=").parse::<SealedText>(), Err(Error::SealedTextForm));
    assert_eq!(format!(" {text}").parse::<SealedText>(), Err(Error::SealedTextForm));
}

#[test]
fn a_text_of_the_other_cipher_is_named() {
    let [sm4, aes] = CIPHERS.map(|cipher| Sealer::new(seal_key(cipher)));
    let sealed = aes.seal(PLAIN, PLACE).unwrap();
    let refused = sm4.open(&sealed, PLACE).unwrap_err();
    assert_eq!(refused, Error::OtherCipher { sealed: "AES-256-GCM", key: "SM4-GCM" });
    let mut stored = sealed.to_bytes();
    stored[1] = 3;
    assert_eq!(SealedText::from_bytes(&stored), Err(Error::UnknownCipher(3)));
    stored[0] = 2;
    assert_eq!(SealedText::from_bytes(&stored), Err(Error::UnknownForm(2)));
    assert_eq!(SealedText::from_bytes(&stored[..1]), Err(Error::SealedTextForm));
}

#[test]
fn no_two_seals_are_alike_and_none_shows_the_text() {
    let sealer = Sealer::new(seal_key(CIPHERS[0]));
    let seals: Vec<_> = (0..100).map(|_| sealer.seal(PLAIN, PLACE).unwrap().to_bytes()).collect();
    let nonces: std::collections::BTreeSet<_> = seals.iter().map(|stored| &stored[2..14]).collect();
    assert_eq!(nonces.len(), seals.len());
    assert!(seals.iter().all(|stored| !stored.windows(6).any(|part| PLAIN.windows(6).any(|plain| plain == part))));
}

#[test]
fn a_turned_bit_of_a_signature_or_message_is_refused() {
    let (key, message) = (annex_key(), b"statement 2026-11: 56.00 CNY");
    for provider in PROVIDERS {
        let signature = provider.sign(key, &user(), message).unwrap();
        let verify =
            |message: &[u8], signature: &Signature| provider.verify(key.public_key(), &user(), message, signature);
        verify(message, &signature).unwrap();
        let raw = flipped(&signature.to_bytes()).map(|changed| Signature::from_bytes(&changed)).collect::<Vec<_>>();
        let der = flipped(&signature.to_der()).map(|changed| Signature::from_der(&changed)).collect::<Vec<_>>();
        for changed in raw.into_iter().chain(der) {
            assert!(changed.and_then(|changed| verify(message, &changed)).is_err());
        }
        assert!(flipped(message).all(|changed| verify(&changed, &signature) == Err(Error::NotSigned)));
        let other = UserId::new("1234567812345679").unwrap();
        assert_eq!(provider.verify(key.public_key(), &other, message, &signature), Err(Error::NotSigned));
        let stranger = PrivateKey::generate().unwrap();
        assert_eq!(provider.verify(stranger.public_key(), &user(), message, &signature), Err(Error::NotSigned));
    }
}

#[test]
fn a_signature_has_one_form_in_der() {
    let der = annex_key().sign(&user(), b"").unwrap().to_der();
    assert!((0..der.len()).all(|length| Signature::from_der(&der[..length]).is_err()));
    assert_eq!(Signature::from_der(&[der.as_slice(), &[0]].concat()), Err(Error::SignatureForm));
    // The same numbers, their lengths in the long form that BER allows.
    let long = [&[0x30, 0x81, der[1]], &der[2..]].concat();
    assert_eq!(Signature::from_der(&long), Err(Error::SignatureForm));
}

#[test]
fn a_turned_bit_of_an_encryption_is_refused() {
    let key = annex_key();
    let encrypted = key.public_key().encrypt(PLAIN).unwrap();
    assert_eq!(key.decrypt(&encrypted).unwrap().expose(), PLAIN);
    assert!(flipped(&encrypted).all(|changed| key.decrypt(&changed).is_err()));
    assert!((0..encrypted.len()).all(|length| key.decrypt(&encrypted[..length]).is_err()));
    assert_eq!(PrivateKey::generate().unwrap().decrypt(&encrypted).unwrap_err(), Error::NotOpened);
}

#[test]
fn a_turned_bit_of_a_message_or_key_is_another_index() {
    let key = [3; 32];
    let index = |key: &[u8], message: &[u8]| hmac_sm3(&MacKey::from_bytes(key).unwrap(), message);
    let expected = index(&key, PLAIN);
    assert_eq!(index(&key, PLAIN), expected);
    assert!(flipped(PLAIN).all(|changed| index(&key, &changed) != expected));
    assert!(flipped(&key).all(|changed| index(&changed, PLAIN) != expected));
}
