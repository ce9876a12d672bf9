//! A key of 32 random bytes in a file of its own: the session key, the master key of the key store.
//!
//! Owns: making the file once, reading it. Does not own: what the key is for.
//! Invariants: it is read and written by its owner only; processes that start at once get the same key.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// How many bytes a key has.
pub const KEY_BYTES: usize = 32;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("the key file `{0}` cannot be read or made")]
    Io(PathBuf, #[source] io::Error),
    #[error("the key file `{0}` has not {KEY_BYTES} bytes; restore it, or remove it if what it keeps may be lost")]
    Length(PathBuf),
    #[error("the key file `{0}` is open to others; make it readable by its owner only (mode 0600)")]
    Open(PathBuf),
    #[error("the key cannot be used: {0}")]
    Unusable(String),
}

/// The key in this file, which is made with random bytes if it is not there.
pub(crate) fn read_or_make(path: &Path) -> Result<[u8; KEY_BYTES], KeyFileError> {
    let failed = |error| KeyFileError::Io(path.into(), error);
    if !path.try_exists().map_err(failed)? {
        make(path).map_err(failed)?;
    }
    if is_open_to_others(path).map_err(failed)? {
        return Err(KeyFileError::Open(path.into()));
    }
    let bytes = fs::read(path).map_err(failed)?;
    bytes.try_into().map_err(|_| KeyFileError::Length(path.into()))
}

/// Makes the file with random bytes, unless another process is first: the name appears only once the bytes are there.
fn make(path: &Path) -> io::Result<()> {
    let new = path.with_extension(format!("{:016x}.new", rand::random::<u64>()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(&rand::random::<[u8; KEY_BYTES]>())?;
    file.sync_all()?;
    let linked = fs::hard_link(&new, path);
    fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Err(_) | Ok(()) => Ok(()),
    }
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path)?.permissions()) & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}
