//! Whatever comes in, an answer comes out: no bytes, text or splice of good ones makes a call panic.

use super::{CIPHERS, PROVIDERS, annex_key, seal_key, text, user, vectors};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crypto::{Digest, MacKey, PrivateKey, PublicKey, SealKey, SealedText, Sealer, Signature, UserId};
use proptest::prelude::*;

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

/// A header in front makes the deeper parts be reached.
fn sealed_bytes() -> impl Strategy<Value = Vec<u8>> {
    (1..=2u8, any_bytes()).prop_map(|(cipher, rest)| [&[1, cipher], rest.as_slice()].concat())
}

/// What to cut out of good bytes, where, and what to put there.
fn splice() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    (any::<usize>(), 0..8usize, proptest::collection::vec(any::<u8>(), 0..8))
}

fn spliced(good: &[u8], (at, cut, put): &(usize, usize, Vec<u8>)) -> Vec<u8> {
    let start = at % (good.len() + 1);
    let end = (start + cut).min(good.len());
    [&good[..start], put, &good[end..]].concat()
}

fn pem(label: &str, der: &[u8]) -> String {
    let lines = BASE64_STANDARD.encode(der);
    let lines: Vec<_> = lines.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn der_of(pem: &str) -> Vec<u8> {
    let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    BASE64_STANDARD.decode(lines).unwrap()
}

fn opens_for_both(bytes: &[u8]) {
    let Ok(sealed) = SealedText::from_bytes(bytes) else { return };
    assert_eq!(sealed.to_bytes(), bytes);
    assert_eq!(sealed.to_string().parse(), Ok(sealed.clone()));
    for (cipher, provider) in CIPHERS.into_iter().flat_map(|cipher| PROVIDERS.map(|provider| (cipher, provider))) {
        let opened = Sealer::with_provider(seal_key(cipher), provider).open(&sealed, bytes);
        assert!(opened.is_err(), "nobody guesses a tag");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_read_or_refused(bytes in any_bytes(), sealed in sealed_bytes()) {
        let _ = PrivateKey::from_bytes(&bytes);
        let _ = PublicKey::from_sec1_bytes(&bytes);
        let _ = MacKey::from_bytes(&bytes);
        let _ = CIPHERS.map(|cipher| SealKey::from_bytes(cipher, &bytes));
        let _ = Signature::from_bytes(&bytes);
        let _ = Signature::from_der(&bytes);
        prop_assert!(annex_key().decrypt(&bytes).is_err());
        let _ = PrivateKey::from_pkcs8_pem(&pem("PRIVATE KEY", &bytes));
        let _ = PublicKey::from_spki_pem(&pem("PUBLIC KEY", &bytes));
        opens_for_both(&bytes);
        opens_for_both(&sealed);
    }

    #[test]
    fn text_is_read_or_refused(text in "\\PC{0,200}", digits in "[0-9a-fA-F]{60,130}") {
        for text in [text, digits] {
            let _ = text.parse::<Digest>();
            let _ = text.parse::<SealedText>();
            let _ = text.parse::<Signature>().map(|signature| assert!(signature.to_string().eq_ignore_ascii_case(&text)));
            let _ = UserId::new(&text);
            prop_assert!(PrivateKey::from_pkcs8_pem(&text).is_err());
            prop_assert!(PublicKey::from_spki_pem(&text).is_err());
        }
    }

    #[test]
    fn good_forms_with_a_splice_are_read_or_refused(splice in splice()) {
        let (vector, key) = (vectors("openssl"), annex_key());
        let signature = key.sign(&user(), b"m").unwrap();
        if let Ok(read) = Signature::from_der(&spliced(&signature.to_der(), &splice)) {
            prop_assert_eq!(read == signature, key.public_key().verify(&user(), b"m", &read).is_ok());
        }
        let encrypted = key.public_key().encrypt(b"m").unwrap();
        let changed = spliced(&encrypted, &splice);
        prop_assert_eq!(key.decrypt(&changed).is_ok(), changed == encrypted);
        let private = spliced(&der_of(text(vector, "private_pem")), &splice);
        if let Ok(read) = PrivateKey::from_pkcs8_pem(&pem("PRIVATE KEY", &private)) {
            prop_assert!(read.public_key().verify(&user(), b"m", &read.sign(&user(), b"m").unwrap()).is_ok());
        }
        let public = spliced(&der_of(text(vector, "public_pem")), &splice);
        let _ = PublicKey::from_spki_pem(&pem("PUBLIC KEY", &public)).map(|key| key.to_spki_pem().unwrap());
        let letters = spliced(text(vector, "private_pem").as_bytes(), &splice);
        let _ = PrivateKey::from_pkcs8_pem(&String::from_utf8_lossy(&letters));
    }

    #[test]
    fn any_r_and_s_is_refused_by_both(
        raw in proptest::array::uniform32(any::<u8>()),
        small in any::<[bool; 2]>(),
        message in any_bytes(),
    ) {
        let key = annex_key();
        // Numbers near the edges are where arithmetic fails.
        let part = |small| if small { [vec![0; 31], vec![raw[31] | 1]].concat() } else { raw.to_vec() };
        if let Ok(signature) = Signature::from_bytes(&[part(small[0]), part(small[1])].concat()) {
            for provider in PROVIDERS {
                prop_assert!(provider.verify(key.public_key(), &user(), &message, &signature).is_err());
            }
        }
    }
}
