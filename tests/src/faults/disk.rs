//! A real small disk that can be full: a file system in memory, which only root may mount.
//!
//! Owns: mounting, filling, emptying, unmounting. Does not own: what is on it besides the filler.
//! Invariant: it is gone with this value.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const SIZE: &str = "size=48m,mode=700";
const FILLER: &str = "filler";
const PIECE_BYTES: usize = 16 * 1024;

/// The disk.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one at this path, which is made. `None` where that is not possible here; why is said.
    pub fn at(path: &Path) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "kashi-test"]).arg(path).output();
        let why = match mounted {
            Ok(done) if done.status.success() => return Some(Self(path.to_owned())),
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        eprintln!("a full disk is not tried, for no small one can be mounted here: {why}");
        None
    }

    /// Leaves no byte free.
    pub fn fill(&self) {
        let mut filler = File::options().create(true).append(true).open(self.0.join(FILLER)).unwrap();
        let mut piece = PIECE_BYTES;
        while piece > 0 {
            if filler.write_all(&vec![0; piece]).is_err() {
                piece /= 2;
            }
        }
    }

    /// Takes the filler away.
    pub fn empty(&self) {
        fs::remove_file(self.0.join(FILLER)).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that is just ending may still be on it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
