//! Digests: SM3 (GB/T 32905), and SHA-256 where the other side knows no SM3.
//!
//! Owns: the 32 bytes and their text. Does not own: which fields of a thing are hashed, which the caller says, best
//! through [`Hasher::field`]. Invariant: two digests are compared in a time that does not depend on them, since they
//! may be keyed ones.

use crate::{Error, Provider, hex};
use sha2::Digest as _;
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq;

/// How a digest is computed. What is stored must say which it is, or fix one for good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashAlgorithm {
    #[default]
    Sm3,
    Sha256,
}

/// 32 bytes of SM3, SHA-256 or an HMAC with one of them. Its text is 64 hexadecimal digits.
#[derive(Clone, Copy, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);
hex::text_form!(Digest);

impl Digest {
    /// Of bytes, by [`HashAlgorithm::Sm3`].
    #[must_use]
    pub fn sm3(message: &[u8]) -> Self {
        Provider::default().digest(HashAlgorithm::Sm3, message)
    }

    /// Of bytes, by [`HashAlgorithm::Sha256`].
    #[must_use]
    pub fn sha256(message: &[u8]) -> Self {
        Provider::default().digest(HashAlgorithm::Sha256, message)
    }

    /// A digest that was computed before, as it was stored.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::hash::Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        hex::decode(text).map(Self).ok_or(Error::DigestText)
    }
}

/// A digest of what comes in pieces. SM3 by libsm keeps the whole message in memory.
#[derive(Clone)]
pub struct Hasher(Engine);

#[derive(Clone)]
enum Engine {
    Sm3(sm3::Sm3),
    Sha256(sha2::Sha256),
    LibsmSm3(Vec<u8>),
}

impl Hasher {
    /// With the default provider.
    #[must_use]
    pub fn new(algorithm: HashAlgorithm) -> Self {
        Self::with_provider(algorithm, Provider::default())
    }

    /// Libsm has no SHA-256; that is RustCrypto's with either provider.
    #[must_use]
    pub fn with_provider(algorithm: HashAlgorithm, provider: Provider) -> Self {
        Self(match (algorithm, provider) {
            (HashAlgorithm::Sm3, Provider::RustCrypto) => Engine::Sm3(sm3::Sm3::new()),
            (HashAlgorithm::Sm3, Provider::Libsm) => Engine::LibsmSm3(Vec::new()),
            (HashAlgorithm::Sha256, _) => Engine::Sha256(sha2::Sha256::new()),
        })
    }

    /// Adds bytes as they are: "ab" and "c" give the digest of "abc".
    pub fn update(&mut self, bytes: &[u8]) -> &mut Self {
        match &mut self.0 {
            Engine::Sm3(hasher) => hasher.update(bytes),
            Engine::Sha256(hasher) => hasher.update(bytes),
            Engine::LibsmSm3(message) => message.extend_from_slice(bytes),
        }
        self
    }

    /// Adds the length in bytes as 8 bytes, big-endian, and then the bytes, so that no other fields give this digest.
    pub fn field(&mut self, bytes: &[u8]) -> &mut Self {
        // A length of this platform is never above 64 bits.
        self.update(&(bytes.len() as u64).to_be_bytes()).update(bytes)
    }

    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(match self.0 {
            Engine::Sm3(hasher) => hasher.finalize().into(),
            Engine::Sha256(hasher) => hasher.finalize().into(),
            // Their `get_hash` gives another answer when it is called twice, so a hasher of theirs lives for one call.
            Engine::LibsmSm3(message) => ::libsm::sm3::hash::Sm3Hash::new(&message).get_hash(),
        })
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}
