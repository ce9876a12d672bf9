//! Keyed digests (HMAC, GB/T 15852.2): blind indexes of personal data, and proof that stored rows were not edited.
//!
//! Owns: the key and the HMAC with it. Does not own: how a value is normalised before it is indexed, which the caller
//! does, or two spellings of one name are two index entries.

use crate::{Digest, Error, HashAlgorithm, Provider, Secret};
use std::fmt;
use zeroize::Zeroizing;

/// The block of SM3 and of SHA-256 in bytes. A longer key would be hashed first, and no key needs to be longer.
pub(crate) const BLOCK_BYTES: usize = 64;
const KEY_BYTES_MIN: usize = 16;
const KEY_BYTES: usize = 32;

/// A key for keyed digests, 16 to 64 bytes. It is cleared when it is dropped, and shows nothing.
#[derive(Clone)]
pub struct MacKey(Secret);

impl MacKey {
    /// 32 new bytes.
    ///
    /// # Errors
    /// [`Error::NoRandomness`].
    pub fn generate() -> Result<Self, Error> {
        Secret::random(KEY_BYTES).map(Self)
    }

    /// # Errors
    /// [`Error::KeyLength`] unless there are 16 to 64 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if !(KEY_BYTES_MIN..=BLOCK_BYTES).contains(&bytes.len()) {
            return Err(Error::KeyLength { key: "HMAC", found: bytes.len(), expected: "16 to 64" });
        }
        Ok(Self(Secret::from(bytes)))
    }

    /// The key itself, to be kept sealed.
    #[must_use]
    pub fn expose_bytes(&self) -> &[u8] {
        self.0.expose()
    }

    /// The key as HMAC uses it: filled up to a block with zeros.
    pub(crate) fn block(&self) -> Zeroizing<[u8; BLOCK_BYTES]> {
        let mut block = Zeroizing::new([0; BLOCK_BYTES]);
        for (to, from) in block.iter_mut().zip(self.0.expose()) {
            *to = *from;
        }
        block
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MacKey").finish_non_exhaustive()
    }
}

/// HMAC-SM3 by the default provider.
#[must_use]
pub fn hmac_sm3(key: &MacKey, message: &[u8]) -> Digest {
    Provider::default().hmac(HashAlgorithm::Sm3, key, message)
}

/// HMAC-SHA-256, the international twin of [`hmac_sm3`].
#[must_use]
pub fn hmac_sha256(key: &MacKey, message: &[u8]) -> Digest {
    Provider::default().hmac(HashAlgorithm::Sha256, key, message)
}
