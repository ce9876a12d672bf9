//! Sealing: nobody without the key reads a text, and nobody changes it or moves it elsewhere unnoticed.
//!
//! Owns: the keys and the calls. Does not own: which key is whose, which is a keyring's. Invariants: a nonce is random
//! unless the caller gives it; a text of another cipher than the key's is refused before the key is used.

use crate::{Cipher, Error, Provider, SealedText, Secret, random};
use std::fmt;

/// Both ciphers take a nonce of 12 bytes.
pub const NONCE_BYTES: usize = 12;
/// The longest plain text and the longest associated data, in bytes (64 MiB). Longer things are cut and sealed in parts
/// whose number is in the associated data.
pub const SEALED_BYTES_MAX: usize = 64 << 20;

/// The key of one cipher. It is cleared when it is dropped, and shows nothing.
#[derive(Clone)]
pub struct SealKey {
    cipher: Cipher,
    bytes: Secret,
}

impl SealKey {
    /// # Errors
    /// [`Error::NoRandomness`].
    pub fn generate(cipher: Cipher) -> Result<Self, Error> {
        Ok(Self { cipher, bytes: Secret::random(cipher.key_bytes())? })
    }

    /// # Errors
    /// [`Error::KeyLength`] unless there are [`Cipher::key_bytes`].
    pub fn from_bytes(cipher: Cipher, bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() != cipher.key_bytes() {
            let expected = match cipher {
                Cipher::Sm4Gcm => "16",
                Cipher::Aes256Gcm => "32",
            };
            return Err(Error::KeyLength { key: cipher.name(), found: bytes.len(), expected });
        }
        Ok(Self { cipher, bytes: Secret::from(bytes) })
    }

    #[must_use]
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// The key itself, to be kept sealed under another one.
    #[must_use]
    pub fn expose_bytes(&self) -> &[u8] {
        self.bytes.expose()
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealKey").field("cipher", &self.cipher).finish_non_exhaustive()
    }
}

/// Seals and opens with one key. Clone it freely; each copy clears its key.
///
/// One key seals at most 2^32 texts, beyond which random nonces of 12 bytes may repeat: take a key per subject or month.
#[derive(Debug, Clone)]
pub struct Sealer {
    key: SealKey,
    provider: Provider,
}

impl Sealer {
    /// With the default provider.
    #[must_use]
    pub fn new(key: SealKey) -> Self {
        Self::with_provider(key, Provider::default())
    }

    /// Libsm has no AES; that is RustCrypto's with either provider.
    #[must_use]
    pub fn with_provider(key: SealKey, provider: Provider) -> Self {
        Self { key, provider }
    }

    /// Seals under a new random nonce. The associated data is not in the result: it says where the text belongs
    /// (subject, field), and the text opens only where the same is said.
    ///
    /// # Errors
    /// [`Error::TooLong`] or [`Error::NoRandomness`].
    pub fn seal(&self, plain: &[u8], associated_data: &[u8]) -> Result<SealedText, Error> {
        let mut nonce = [0; NONCE_BYTES];
        random::fill(&mut nonce)?;
        self.seal_with_nonce(nonce, plain, associated_data)
    }

    /// Seals under the caller's nonce. Two texts under one nonce and key give away both and let texts be forged: the
    /// caller vouches that it never comes again.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn seal_with_nonce(
        &self,
        nonce: [u8; NONCE_BYTES],
        plain: &[u8],
        associated_data: &[u8],
    ) -> Result<SealedText, Error> {
        if let Some(found) = [plain.len(), associated_data.len()].into_iter().find(|length| *length > SEALED_BYTES_MAX)
        {
            return Err(Error::TooLong { found, max: SEALED_BYTES_MAX });
        }
        let body = self.provider.seal(&self.key, &nonce, plain, associated_data)?;
        Ok(SealedText::new(self.key.cipher, nonce, body))
    }

    /// The plain text, cleared when it is dropped.
    ///
    /// # Errors
    /// [`Error::OtherCipher`] when the key cannot fit, [`Error::NotOpened`] when it or anything else does not.
    pub fn open(&self, sealed: &SealedText, associated_data: &[u8]) -> Result<Secret, Error> {
        if sealed.cipher() != self.key.cipher {
            return Err(Error::OtherCipher { sealed: sealed.cipher().name(), key: self.key.cipher.name() });
        }
        self.provider.open(&self.key, sealed, associated_data)
    }
}
