//! Who signs, as SM2 binds it into what is signed (用户标识, the distinguishing identifier of GB/T 32918.2).

use crate::Error;

/// The length is stored in 16 bits, counted in bits.
const BYTES_MAX: usize = 8191;

/// 1 to 8191 bytes of UTF-8. A signature verifies only with the id that it was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserId(String);

impl UserId {
    /// # Errors
    /// [`Error::UserId`] when it is empty or too long.
    pub fn new(id: &str) -> Result<Self, Error> {
        if id.is_empty() || id.len() > BYTES_MAX {
            return Err(Error::UserId(id.len()));
        }
        Ok(Self(id.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `1234567812345678`, which everybody uses who has agreed on nothing else (GM/T 0009).
impl Default for UserId {
    fn default() -> Self {
        Self("1234567812345678".to_owned())
    }
}
