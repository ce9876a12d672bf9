//! A text that was sealed, as it is stored: which cipher, which nonce, the cipher text and its tag.
//!
//! Owns: the stored form, which is for ever. Does not own: keys, and the opening. Layout in bytes: form (1), cipher (1),
//! nonce (12), cipher text (as long as the plain text), tag (16). After the header it is exactly what RFC 8998 and
//! NIST SP 800-38D give, so any other tool can open it. As text it is base64url without padding, in one spelling only.

use crate::{Error, NONCE_BYTES, hex};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;

const FORM: u8 = 1;
const HEADER_BYTES: usize = 2;
const TAG_BYTES: usize = 16;

/// How a text is sealed. The numbers are stored and never change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Cipher {
    /// SM4 (GB/T 32907) in GCM with a nonce of 12 bytes and a tag of 16 (RFC 8998); its key has 16 bytes.
    #[default]
    #[serde(rename = "sm4_gcm")]
    Sm4Gcm = 1,
    /// AES-256 in GCM with the same nonce and tag; its key has 32 bytes.
    #[serde(rename = "aes256_gcm")]
    Aes256Gcm = 2,
}

impl Cipher {
    #[must_use]
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Sm4Gcm => 16,
            Self::Aes256Gcm => 32,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sm4Gcm => "SM4-GCM",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }

    fn from_number(number: u8) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Sm4Gcm),
            2 => Ok(Self::Aes256Gcm),
            _ => Err(Error::UnknownCipher(number)),
        }
    }
}

/// What [`crate::Sealer::seal`] gave. Whoever has it knows the length of the plain text and nothing else of it.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SealedText {
    cipher: Cipher,
    nonce: [u8; NONCE_BYTES],
    body: Vec<u8>,
}
hex::text_form!(SealedText);

impl SealedText {
    /// `body` is the cipher text and its tag.
    pub(crate) fn new(cipher: Cipher, nonce: [u8; NONCE_BYTES], body: Vec<u8>) -> Self {
        Self { cipher, nonce, body }
    }

    /// # Errors
    /// [`Error::SealedTextForm`], [`Error::UnknownForm`] or [`Error::UnknownCipher`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let ([form, cipher], rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Error::SealedTextForm)?;
        if *form != FORM {
            return Err(Error::UnknownForm(*form));
        }
        let cipher = Cipher::from_number(*cipher)?;
        let (nonce, body) = rest.split_first_chunk().ok_or(Error::SealedTextForm)?;
        if body.len() < TAG_BYTES {
            return Err(Error::SealedTextForm);
        }
        Ok(Self { cipher, nonce: *nonce, body: body.to_vec() })
    }

    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&[FORM, self.cipher as u8], self.nonce.as_slice(), self.body.as_slice()].concat()
    }

    /// Which kind of key opens it.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    pub(crate) fn nonce(&self) -> &[u8; NONCE_BYTES] {
        &self.nonce
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }
}

impl fmt::Display for SealedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.to_bytes()))
    }
}

impl fmt::Debug for SealedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain_bytes = self.body.len().saturating_sub(TAG_BYTES);
        f.debug_struct("SealedText")
            .field("cipher", &self.cipher)
            .field("plain_bytes", &plain_bytes)
            .finish_non_exhaustive()
    }
}

impl FromStr for SealedText {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_bytes(&BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| Error::SealedTextForm)?)
    }
}
