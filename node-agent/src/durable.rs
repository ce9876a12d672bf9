//! Files that are there whole or not at all, also after a power cut.
//!
//! Owns: how a small file is written and read, and the room that is kept for one. Invariants: only the owner may read
//! one; a reader sees the old content or the new, never a part; when a write has answered, it is on the disk; what finds
//! its room reserved is written also on a full disk.
//!
//! Room is reserved as a second file of the same name with `.spare`, which is filled in advance, overwritten in its
//! place and then exchanged with the first: neither takes a block that was not there before. A file that is reserved and
//! written again and again is therefore read by its writer only: another reader could hold the one that comes next.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

const SPARE: &str = ".spare";

/// Writes these bytes in place of what was there.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = beside(path, ".new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(folder_of(path)?)
}

/// Reserves room for the next [`write_json_in_reserve`] of this file, so many bytes. What is reserved already stays.
pub fn reserve(path: &Path, bytes: u64) -> io::Result<()> {
    let spare = beside(path, SPARE);
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&spare)?;
    if file.metadata()?.len() < bytes {
        file.seek(SeekFrom::End(0))?;
        fill(&mut file, bytes)?;
        file.sync_all()?;
        sync_folder(folder_of(path)?)?;
    }
    Ok(())
}

/// Writes a value as JSON into the room that was reserved for it; as [`write_json`] where none was.
pub fn write_json_in_reserve<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let spare = beside(path, SPARE);
    let mut file = match OpenOptions::new().write(true).open(&spare) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return write_json(path, value),
        Err(error) => return Err(error),
    };
    let room = file.metadata()?.len();
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    // Blanks up to the end: a file that is cut gives its room away.
    fill(&mut file, room)?;
    file.sync_all()?;
    // With what was there in its place the room is kept for the next time. Not every file system can do that.
    if renameat_with(CWD, &spare, CWD, path, RenameFlags::EXCHANGE).is_err() {
        fs::rename(&spare, path)?;
    }
    sync_folder(folder_of(path)?)
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
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("a file needs a folder"))
}

/// Writes blanks from where the file stands up to this length.
fn fill(file: &mut File, length: u64) -> io::Result<()> {
    let missing = length.saturating_sub(file.stream_position()?);
    io::copy(&mut io::Read::take(io::repeat(b' '), missing), file).map(drop)
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

    #[test]
    fn what_is_reserved_is_written_without_a_new_file_and_stays_reserved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value.json");
        // Whoever may not make a file is as one who finds no room.
        fs::create_dir(beside(&path, ".new")).unwrap();
        assert!(write_json_in_reserve(&path, &vec![0]).is_err());
        reserve(&path, 8).unwrap();
        reserve(&path, 100).unwrap();
        write_json_in_reserve(&path, &vec![1]).unwrap();
        assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), Some(vec![1]));
        reserve(&path, 100).unwrap();
        for value in 2..5 {
            write_json_in_reserve(&path, &vec![value]).unwrap();
            assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), Some(vec![value]));
        }
        let lengths = [&path, &beside(&path, SPARE)].map(|file| fs::metadata(file).unwrap().len());
        assert_eq!(lengths, [100, 100]);
        let long = vec![7; 1000];
        write_json_in_reserve(&path, &long).unwrap();
        assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), Some(long));
    }
}
