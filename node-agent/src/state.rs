//! The data folder and what this node knows: the last desired set it took, and its leases.
//!
//! Owns: the folder, its lock, `desired.json`. Does not own: the leases' folders (`run::Folder`). Invariants: one agent
//! per folder; only the owner may look into it; a desired set that is older than the one taken is refused, also after a
//! restart; there is room for the next set also on a full disk, unless it is very large.

use crate::durable;
use agent_protocol::{Desired, Phase};
use domain::kernel::{JobId, LeaseId};
use std::{
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The room that is reserved for the desired set, in bytes: that of some hundreds of leases.
const DESIRED_BYTES: u64 = 256 * 1024;
const OWNER_ONLY: u32 = 0o700;

/// The agent's data folder, held by this process alone.
#[derive(Debug)]
pub struct Data {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

/// Why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("another agent uses the data folder `{0}`; each agent needs its own")]
    InUse(PathBuf),
    #[error("`{0}` is open to other users and holds other files: give an empty folder, or one with the mode 0700")]
    Foreign(PathBuf),
    #[error("the data folder `{0}` cannot be used")]
    Io(PathBuf, #[source] io::Error),
}

/// What this node knows of one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    pub lease: LeaseId,
    pub job: JobId,
    pub generation: i64,
    /// The cards it holds, by their index.
    pub cards: Vec<u32>,
    /// Absent while it is being started.
    pub phase: Option<Phase>,
}

/// The newest desired set that was taken.
#[derive(Debug, Default)]
pub struct Taken {
    desired: Option<Desired>,
    /// The generation of the refused set that was logged last, so that each is logged once.
    refused: Option<i64>,
}

impl Local {
    /// Whether none of its processes is left.
    pub fn ended(&self) -> bool {
        matches!(self.phase, Some(Phase::Ended { .. }))
    }
}

impl Taken {
    /// What should run; `None` before the server has ever said so, which is a reason to end nothing.
    pub fn desired(&self) -> Option<&Desired> {
        self.desired.as_ref()
    }

    /// The generation of it, 0 where there is none.
    pub fn generation(&self) -> i64 {
        self.desired.as_ref().map_or(0, |desired| desired.generation)
    }

    /// Takes what the server offers, unless it is older than what is known. Whether there is something new.
    pub fn take(&mut self, offered: Desired) -> bool {
        if self.desired.as_ref().is_some_and(|taken| offered.generation < taken.generation) {
            if self.refused.replace(offered.generation) != Some(offered.generation) {
                let (taken, offered) = (self.generation(), offered.generation);
                tracing::warn!(taken, offered, "a desired set that is older than the one taken is refused");
            }
            return false;
        }
        let news = self.desired.as_ref() != Some(&offered);
        self.desired = Some(offered);
        news
    }
}

impl Data {
    /// Opens the folder and holds it; it is made where there is none.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let told = |error| DataError::Io(path.to_path_buf(), error);
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path).map_err(told)?;
        let path = fs::canonicalize(path).map_err(told)?;
        let told = |error| DataError::Io(path.clone(), error);
        if fs::metadata(&path).map_err(told)?.permissions().mode() & 0o077 != 0 {
            // Another's folder, such as /tmp, must not be closed by a slip on the command line.
            let ours = path.join("lock").exists() || fs::read_dir(&path).map_err(told)?.next().is_none();
            if !ours {
                return Err(DataError::Foreign(path));
            }
            fs::set_permissions(&path, Permissions::from_mode(OWNER_ONLY)).map_err(told)?;
        }
        let lock = File::options().create(true).append(true).open(path.join("lock")).map_err(told)?;
        match lock.try_lock() {
            Ok(()) => {
                let data = Self { path, _lock: lock };
                data.reserve();
                Ok(data)
            }
            Err(TryLockError::WouldBlock) => Err(DataError::InUse(path)),
            Err(TryLockError::Error(error)) => Err(told(error)),
        }
    }

    /// Where it is, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was taken before.
    pub fn taken(&self) -> Taken {
        let desired = durable::read_json(&self.path.join("desired.json")).unwrap_or_else(|error| {
            tracing::error!(%error, "the desired set on the disk is unreadable; the server is asked for all of it");
            None
        });
        Taken { desired, refused: None }
    }

    /// Keeps what was taken.
    pub fn keep(&self, taken: &Taken) -> io::Result<()> {
        durable::write_json_in_reserve(&self.path.join("desired.json"), &taken.desired)?;
        self.reserve();
        Ok(())
    }

    /// An agent that finds the disk full has all the more to do.
    fn reserve(&self) {
        if let Err(error) = durable::reserve(&self.path.join("desired.json"), DESIRED_BYTES) {
            tracing::warn!(%error, "no room can be reserved for the desired set");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(generation: i64) -> Desired {
        Desired { generation, ..Desired::default() }
    }

    #[test]
    fn an_older_set_is_refused_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(&folder.path().join("data")).unwrap();
        let mut taken = data.taken();
        assert_eq!((taken.desired(), taken.generation()), (None, 0));
        assert!(taken.take(generation(7)));
        assert!(!taken.take(generation(7)));
        data.keep(&taken).unwrap();
        let mut taken = data.taken();
        assert!(!taken.take(generation(6)));
        assert_eq!(taken.generation(), 7);
        assert!(taken.take(generation(8)));
    }

    #[test]
    fn a_damaged_set_is_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(folder.path()).unwrap();
        fs::write(data.path().join("desired.json"), "{").unwrap();
        assert_eq!(data.taken().desired(), None);
    }

    #[test]
    fn the_folder_is_the_owners_and_one_agents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b");
        let data = Data::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWNER_ONLY);
        assert!(matches!(Data::open(&path), Err(DataError::InUse(_))));
        drop(data);
        Data::open(&path).unwrap();
    }

    #[test]
    fn the_folder_of_another_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("letter"), "").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(Data::open(folder.path()), Err(DataError::Foreign(_))));
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
