//! The two halves of an SM2 key (GB/T 32918): the private one signs and decrypts, the public one verifies and encrypts.
//!
//! Owns: the keys, their PEM forms and SM2 encryption. Does not own: the signing, which is the provider's. Invariants: a
//! private key is from 1 to n - 2, a public key is a point of the curve and not the point at infinity.

use crate::{Digest, Error, Provider, Secret, Signature, UserId, random};
use sm2::elliptic_curve::Generate;
use sm2::elliptic_curve::sec1::ToSec1Point;
use sm2::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use sm2::pke::{DecryptingKey, EncryptingKey};
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// SM2 encrypts keys and passwords; what is longer is sealed, and its key encrypted.
pub const ENCRYPTED_BYTES_MAX: usize = 4096;
const BYTES: usize = 32;
/// n - 1 is a number below the order that cannot sign, since 1 + d has no inverse then.
const ORDER_MINUS_ONE: [u8; BYTES] = [
    0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, //
    0x72, 0x03, 0xdf, 0x6b, 0x21, 0xc6, 0x05, 0x2b, 0x53, 0xbb, 0xf4, 0x09, 0x39, 0xd5, 0x41, 0x22,
];

/// Signs and decrypts. It is cleared when it is dropped, and shows only its public half.
///
/// Who must hand the decrypting key to an escrow (双证书) keeps two: one that only signs, one that only decrypts.
#[derive(Clone)]
pub struct PrivateKey {
    // On the heap, so that moving the key leaves no copies behind.
    secret: Box<sm2::SecretKey>,
    public: PublicKey,
}

impl PrivateKey {
    /// # Errors
    /// [`Error::NoRandomness`].
    pub fn generate() -> Result<Self, Error> {
        let secret = sm2::SecretKey::try_generate_from_rng(&mut random::SysRng);
        Self::checked(Box::new(secret.map_err(|_| Error::NoRandomness)?))
    }

    /// From the number itself, 32 bytes, big-endian.
    ///
    /// # Errors
    /// [`Error::PrivateKey`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() != BYTES {
            return Err(Error::PrivateKey);
        }
        Self::checked(Box::new(sm2::SecretKey::from_slice(bytes).map_err(|_| Error::PrivateKey)?))
    }

    /// From PKCS#8, unencrypted, as OpenSSL writes it.
    ///
    /// # Errors
    /// [`Error::PrivateKeyPem`], or [`Error::PrivateKey`] for a number that cannot sign.
    pub fn from_pkcs8_pem(pem: &str) -> Result<Self, Error> {
        Self::checked(Box::new(sm2::SecretKey::from_pkcs8_pem(pem).map_err(|_| Error::PrivateKeyPem)?))
    }

    fn checked(secret: Box<sm2::SecretKey>) -> Result<Self, Error> {
        let bytes = Zeroizing::new(secret.to_bytes());
        if bytes.as_slice().ct_eq(&ORDER_MINUS_ONE).into() {
            return Err(Error::PrivateKey);
        }
        let public = PublicKey(secret.public_key());
        Ok(Self { secret, public })
    }

    /// # Errors
    /// [`Error::Engine`].
    pub fn to_pkcs8_pem(&self) -> Result<Secret, Error> {
        let mut pem = self.secret.to_pkcs8_pem(LineEnding::LF).map_err(|_| Error::Engine("write a private key"))?;
        Ok(Secret::from(std::mem::take(&mut *pem).into_bytes()))
    }

    /// The number itself, 32 bytes, big-endian, to be kept sealed.
    #[must_use]
    pub fn expose_bytes(&self) -> Secret {
        Secret::from(Zeroizing::new(self.secret.to_bytes()).as_slice())
    }

    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs the message as this user, by the default provider.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn sign(&self, user: &UserId, message: &[u8]) -> Result<Signature, Error> {
        Provider::default().sign(self, user, message)
    }

    /// Decrypts C1C3C2 in DER (GM/T 0009), by RustCrypto: libsm reads an older order only.
    ///
    /// # Errors
    /// [`Error::NotOpened`] for whatever is wrong.
    pub fn decrypt(&self, encrypted: &[u8]) -> Result<Secret, Error> {
        let key = DecryptingKey::new((*self.secret).clone());
        let plain = key.decrypt_der(encrypted).map_err(|_| Error::NotOpened)?;
        // Anybody can make an encryption of nothing; it carries no message, so it is not one.
        if plain.is_empty() { Err(Error::NotOpened) } else { Ok(Secret::from(plain)) }
    }

    pub(crate) fn engine(&self) -> &sm2::SecretKey {
        &self.secret
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// Verifies and encrypts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(sm2::PublicKey);

impl PublicKey {
    /// From a point in SEC 1 form: 65 bytes 04‖x‖y, or 33 bytes compressed.
    ///
    /// # Errors
    /// [`Error::PublicKey`].
    pub fn from_sec1_bytes(bytes: &[u8]) -> Result<Self, Error> {
        sm2::PublicKey::from_sec1_bytes(bytes).map(Self).map_err(|_| Error::PublicKey)
    }

    /// 65 bytes 04‖x‖y.
    #[must_use]
    pub fn to_sec1_bytes(&self) -> Vec<u8> {
        self.0.to_sec1_point(false).as_bytes().to_vec()
    }

    /// From SubjectPublicKeyInfo, as OpenSSL writes it.
    ///
    /// # Errors
    /// [`Error::PublicKeyPem`].
    pub fn from_spki_pem(pem: &str) -> Result<Self, Error> {
        sm2::PublicKey::from_public_key_pem(pem).map(Self).map_err(|_| Error::PublicKeyPem)
    }

    /// # Errors
    /// [`Error::Engine`].
    pub fn to_spki_pem(&self) -> Result<String, Error> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|_| Error::Engine("write a public key"))
    }

    /// A short name of the key: SM3 over its 65 bytes.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::sm3(&self.to_sec1_bytes())
    }

    /// Verifies by the default provider.
    ///
    /// # Errors
    /// [`Error::NotSigned`] for whatever is wrong.
    pub fn verify(&self, user: &UserId, message: &[u8], signature: &Signature) -> Result<(), Error> {
        Provider::default().verify(self, user, message, signature)
    }

    /// Encrypts 1 to [`ENCRYPTED_BYTES_MAX`] bytes to C1C3C2 in DER (GM/T 0009), by RustCrypto.
    ///
    /// # Errors
    /// [`Error::EncryptedLength`], [`Error::NoRandomness`] or [`Error::Engine`].
    pub fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, Error> {
        if plain.is_empty() || plain.len() > ENCRYPTED_BYTES_MAX {
            return Err(Error::EncryptedLength(plain.len()));
        }
        let key = EncryptingKey::new(self.0);
        key.encrypt_der(&mut random::SysRng, plain).map_err(|_| Error::Engine("encrypt"))
    }

    pub(crate) fn engine(&self) -> sm2::PublicKey {
        self.0
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", crate::hex::encode(&self.to_sec1_bytes()))
    }
}
