//! Random bytes of the operating system.
//!
//! Owns: the only source of chance in this crate. Libsm draws from its own generator, which is seeded from the same
//! source and is why that source is asked first there.

use crate::Error;

pub(crate) use sm2::elliptic_curve::common::getrandom::SysRng;
use sm2::elliptic_curve::rand_core::TryRng;

/// # Errors
/// [`Error::NoRandomness`] when the operating system refuses.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    SysRng.try_fill_bytes(bytes).map_err(|_| Error::NoRandomness)
}
