//! What the crate promises: the standards' numbers, two engines that agree, no change that goes unnoticed, and no panic.
//!
//! Owns: the reading of `vectors.json`, which holds public vectors and what OpenSSL made, each with its source.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

mod arbitrary;
mod cross;
mod keys;
mod standards;
mod tamper;

use crypto::{Cipher, PrivateKey, Provider, SealKey, UserId};
use serde_json::Value;
use std::sync::LazyLock;

const PROVIDERS: [Provider; 2] = [Provider::RustCrypto, Provider::Libsm];
const CIPHERS: [Cipher; 2] = [Cipher::Sm4Gcm, Cipher::Aes256Gcm];

static VECTORS: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("vectors.json")).unwrap());
/// The private key of the standard's annex.
static ANNEX_KEY: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::from_bytes(&bytes(vectors("sm2_sign"), "private")).unwrap());

fn vectors(of: &str) -> &'static Value {
    &VECTORS[of]
}

fn text<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field].as_str().unwrap_or_else(|| panic!("the vector has no text {field}: {vector}"))
}

fn bytes(vector: &Value, field: &str) -> Vec<u8> {
    let digits = text(vector, field);
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn annex_key() -> &'static PrivateKey {
    &ANNEX_KEY
}

fn seal_key(cipher: Cipher) -> SealKey {
    SealKey::from_bytes(cipher, &vec![7; cipher.key_bytes()]).unwrap()
}

fn user() -> UserId {
    UserId::default()
}

/// The bytes once for each of their bits, with that bit turned.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}
