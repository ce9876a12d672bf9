//! One-time secrets: the platform's setup, join tokens, the secret half of an API key.
//!
//! Owns: 32 random bytes as text, the hash that is stored, the comparison. Invariant: random enough (256 bits) that a
//! plain SHA-256 is as good as a slow hash.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use subtle::ConstantTimeEq;

/// How many characters a secret has.
pub const LENGTH: usize = 43;

/// A new secret: 32 random bytes as 43 characters of base64url.
pub fn generate() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// Whether a text is written like a secret.
pub fn is_secret(text: &str) -> bool {
    // The last character carries four bits: one that carries more is another spelling of the same bytes.
    text.len() == LENGTH && URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32)
}

/// What is stored of a secret: SHA-256 of its text, in hex.
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Whether a secret is the one of a stored hash, in a time that does not tell where they differ.
pub fn matches(secret: &str, stored: &str) -> bool {
    hash(secret).as_bytes().ct_eq(stored.as_bytes()).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_new_each_time_and_matches_its_hash_only() {
        let (one, two) = (generate(), generate());
        assert_ne!(one, two);
        assert!(is_secret(&one));
        assert!(matches(&one, &hash(&one)));
        assert!(!matches(&two, &hash(&one)));
        assert!(!matches(&one, "") && !matches(&one, &one));
    }

    #[test]
    fn is_hashed_as_everybody_does() {
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn is_written_one_way() {
        let secret = generate();
        let other_spelling = format!("{}B", "A".repeat(42));
        for text in ["", &secret[1..], &format!("{secret}A"), &"é".repeat(21), &"+".repeat(43), &other_spelling] {
            assert!(!is_secret(text), "{text}");
        }
    }
}
