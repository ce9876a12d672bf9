//! Which engine computes. Both give the same answers, which the tests hold them to.
//!
//! Owns: the choice, call by call. Does not own: keys and stored forms, which are the same for either. A hardware module
//! becomes a further variant, whose calls may fail where these do not.

mod libsm;
mod rustcrypto;

use crate::{
    Cipher, Digest, Error, HashAlgorithm, Hasher, MacKey, NONCE_BYTES, PrivateKey, PublicKey, SealKey, SealedText,
    Secret, Signature, UserId,
};

/// Who computes SM2, SM3 and SM4. SHA-256 and AES are always RustCrypto's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// sm2, sm3 and sm4 of RustCrypto: made to be constant in time, faster.
    #[default]
    RustCrypto,
    /// libsm. The first SM2 call of a process takes about two seconds, in which it makes a table.
    Libsm,
}

impl Provider {
    #[must_use]
    pub fn digest(self, algorithm: HashAlgorithm, message: &[u8]) -> Digest {
        let mut hasher = Hasher::with_provider(algorithm, self);
        hasher.update(message);
        hasher.finish()
    }

    #[must_use]
    pub fn hmac(self, algorithm: HashAlgorithm, key: &MacKey, message: &[u8]) -> Digest {
        match (algorithm, self) {
            (HashAlgorithm::Sm3, Self::RustCrypto) => rustcrypto::hmac_sm3(key, message),
            (HashAlgorithm::Sm3, Self::Libsm) => libsm::hmac_sm3(key, message),
            (HashAlgorithm::Sha256, _) => rustcrypto::hmac_sha256(key, message),
        }
    }

    /// Signs the message as this user. Two signatures of one message differ, and both verify.
    ///
    /// # Errors
    /// [`Error::NoRandomness`] or [`Error::Engine`].
    pub fn sign(self, key: &PrivateKey, user: &UserId, message: &[u8]) -> Result<Signature, Error> {
        match self {
            Self::RustCrypto => rustcrypto::sign(key, user, message),
            Self::Libsm => libsm::sign(key, user, message),
        }
    }

    /// # Errors
    /// [`Error::NotSigned`] for whatever is wrong.
    pub fn verify(self, key: &PublicKey, user: &UserId, message: &[u8], signature: &Signature) -> Result<(), Error> {
        match self {
            Self::RustCrypto => rustcrypto::verify(key, user, message, signature),
            Self::Libsm => libsm::verify(key, user, message, signature),
        }
    }

    /// The cipher text and its tag. The caller has checked the lengths.
    pub(crate) fn seal(
        self,
        key: &SealKey,
        nonce: &[u8; NONCE_BYTES],
        plain: &[u8],
        associated_data: &[u8],
    ) -> Result<Vec<u8>, Error> {
        match (key.cipher(), self) {
            (Cipher::Sm4Gcm, Self::Libsm) => libsm::seal(key, nonce, plain, associated_data),
            (Cipher::Sm4Gcm | Cipher::Aes256Gcm, _) => rustcrypto::seal(key, nonce, plain, associated_data),
        }
    }

    /// The caller has checked that the key is for the text's cipher.
    pub(crate) fn open(self, key: &SealKey, sealed: &SealedText, associated_data: &[u8]) -> Result<Secret, Error> {
        match (key.cipher(), self) {
            (Cipher::Sm4Gcm, Self::Libsm) => libsm::open(key, sealed, associated_data),
            (Cipher::Sm4Gcm | Cipher::Aes256Gcm, _) => rustcrypto::open(key, sealed, associated_data),
        }
    }
}
