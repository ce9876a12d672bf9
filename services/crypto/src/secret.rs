//! Bytes that nobody should see by accident: keys, their texts, and what was sealed.
//!
//! Invariants: they lie on the heap, so that moving them leaves no copies; they are cleared when they are dropped;
//! `Debug` does not show them, and to read them one must write `expose`.

use crate::{Error, random};
use std::fmt;
use zeroize::Zeroizing;

/// Secret bytes. Each copy clears itself.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// So many random bytes of the operating system.
    ///
    /// # Errors
    /// [`Error::NoRandomness`].
    pub fn random(length: usize) -> Result<Self, Error> {
        let mut bytes = Zeroizing::new(vec![0; length]);
        random::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text; `None` when they are not UTF-8.
    #[must_use]
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        Self::from(bytes.to_vec())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}
