//! What can be wrong with a key, a text or a signature.
//!
//! Invariant: no variant carries key bytes, plain text or a part of them, so that every error may be logged. A sealed
//! text that does not open says only that: whether key, associated data or text is wrong must not be told apart.

/// Why something was not sealed, opened, signed, verified or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A symmetric key of the wrong length; lengths are in bytes.
    #[error("the {key} key has {found} bytes, it must have {expected}")]
    KeyLength { key: &'static str, found: usize, expected: &'static str },
    #[error("the SM2 private key is not a number from 1 to n - 2 in 32 bytes")]
    PrivateKey,
    #[error("the SM2 public key is not a point of the curve in 33 or 65 bytes")]
    PublicKey,
    #[error("the text holds no SM2 private key in PKCS#8; it must begin with -----BEGIN PRIVATE KEY----- and be whole")]
    PrivateKeyPem,
    #[error("the text holds no SM2 public key in SPKI; it must begin with -----BEGIN PUBLIC KEY----- and be whole")]
    PublicKeyPem,
    /// The length is in bytes.
    #[error("the user id has {0} bytes, it must have 1 to 8191")]
    UserId(usize),
    #[error("the digest is not written as 64 hexadecimal digits")]
    DigestText,
    #[error("the SM2 signature is not r and s, each from 1 to n - 1, in 64 bytes, 128 hexadecimal digits or DER")]
    SignatureForm,
    #[error("the signature was not made over this message by this key with this user id")]
    NotSigned,
    /// The length is in bytes.
    #[error("{found} bytes are to be sealed at once, at most {max} may be")]
    TooLong { found: usize, max: usize },
    #[error("the sealed text is not whole: it is unpadded base64url of a header, a nonce, the cipher text and a tag")]
    SealedTextForm,
    #[error("the sealed text says it has form {0}, only form 1 is known")]
    UnknownForm(u8),
    #[error("the sealed text says it has cipher {0}, known are 1 (SM4-GCM) and 2 (AES-256-GCM)")]
    UnknownCipher(u8),
    #[error("the text was sealed with {sealed}, the key is for {key}")]
    OtherCipher { sealed: &'static str, key: &'static str },
    #[error("the sealed text does not open: it was changed, or the key or the associated data is another")]
    NotOpened,
    #[error("{0} bytes are to be encrypted with SM2, it must be 1 to 4096; seal the text and encrypt the key")]
    EncryptedLength(usize),
    #[error("the operating system gave no random bytes; try again")]
    NoRandomness,
    /// The engine refused input that was checked before; this has no known cause.
    #[error("the engine failed to {0}; try again, then report it")]
    Engine(&'static str),
}
