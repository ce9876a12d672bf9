//! Files that are there whole or not at all, also after a power cut.
//!
//! Owns: how a small file is written and read. Invariants: only the owner may read one; a reader sees the old content
//! or the new, never a part; when a write has answered, it is on the disk.

use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Writes these bytes in place of what was there.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("a file needs a folder"))?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let new = folder.join(name);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(folder)
}

/// Makes what was created, renamed or removed in a folder last.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a value as JSON.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    write(path, &serde_json::to_vec_pretty(value)?)
}

/// The value in a file, `None` where there is no such file. A file that does not hold one is an error.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => {
            let told = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()));
            serde_json::from_slice(&bytes).map(Some).map_err(told)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn replaces_the_whole_and_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value.json");
        assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), None);
        write_json(&path, &vec![1, 2, 3]).unwrap();
        write_json(&path, &vec![4]).unwrap();
        assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), Some(vec![4]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_the_file_that_holds_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value.json");
        write(&path, b"{").unwrap();
        assert!(read_json::<Vec<u8>>(&path).unwrap_err().to_string().contains("value.json"));
    }
}
