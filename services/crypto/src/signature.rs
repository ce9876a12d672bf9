//! An SM2 signature, and the forms in which it travels.
//!
//! Invariant: r and s are each from 1 to n - 1. Its text is r‖s in hexadecimal digits.

use crate::{Error, hex};
use std::fmt;
use std::str::FromStr;

const BYTES: usize = 64;

/// r and s of GB/T 32918.2.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signature(sm2::dsa::Signature);
hex::text_form!(Signature);

impl Signature {
    /// From r‖s, 64 bytes, each half big-endian.
    ///
    /// # Errors
    /// [`Error::SignatureForm`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        sm2::dsa::Signature::from_slice(bytes).map(Self).map_err(|_| Error::SignatureForm)
    }

    /// r‖s, each half big-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BYTES] {
        self.0.to_bytes().into()
    }

    /// From `SEQUENCE { r INTEGER, s INTEGER }` (GM/T 0009), which must be DER to the last byte.
    ///
    /// # Errors
    /// [`Error::SignatureForm`].
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        sm2::dsa::Signature::from_der(der).map(Self).map_err(|_| Error::SignatureForm)
    }

    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        self.0.to_der().to_vec()
    }

    pub(crate) fn engine(&self) -> &sm2::dsa::Signature {
        &self.0
    }
}

impl From<sm2::dsa::Signature> for Signature {
    fn from(signature: sm2::dsa::Signature) -> Self {
        Self(signature)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.to_bytes()))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

impl FromStr for Signature {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bytes: [u8; BYTES] = hex::decode(text).ok_or(Error::SignatureForm)?;
        Self::from_bytes(&bytes)
    }
}
