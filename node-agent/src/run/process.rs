//! The leases' folders as the agent works with them: start, stop, forget, adopt.
//!
//! Owns: `leases/`, `checkpoints/` and `forgotten/` in the data folder. Invariants: what is known of a lease is in its
//! folder and nowhere else, so an agent that starts again knows as much; a lease without a living keeper and without an
//! exit gets one, after its processes are gone, however often that has to be tried; a folder that cannot be read now is
//! not one that is not there; where an exit is, even a damaged one, nothing is started.

use super::{
    Ended, Folder, Stop, end_all,
    folder::{CHECKPOINTS, not_started},
};
use crate::{durable, reconcile::Which, state::Local};
use agent_protocol::{DesiredLease, Exit};
use domain::kernel::{JobId, LeaseId};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    sync::watch,
};
use uuid::Uuid;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often an end that cannot be seen to is tried again.
const TRY_EVERY: Duration = Duration::from_secs(1);
const START_MAX: Duration = Duration::from_secs(10);

/// What is to be waited for.
#[derive(Debug)]
enum Left {
    /// A keeper that this process started.
    Keeper(Child),
    /// A keeper that an earlier agent started, if there is one.
    Adopted,
    /// Nothing: it only has to be written.
    End(Ended),
}

/// Runs leases as processes.
#[derive(Debug)]
pub struct Runner {
    leases: PathBuf,
    checkpoints: PathBuf,
    forgotten: PathBuf,
    /// The agent's own program, which is also the keeper's.
    program: PathBuf,
    changed: watch::Sender<()>,
}

impl Runner {
    /// Opens the leases in a data folder and adopts what still runs. `program` is the agent's binary. Must be called
    /// within a tokio runtime.
    pub fn open(data: &Path, program: PathBuf) -> io::Result<Self> {
        let [leases, checkpoints, forgotten] = ["leases", CHECKPOINTS, "forgotten"].map(|name| data.join(name));
        for path in [&leases, &checkpoints, &forgotten] {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        let runner = Self { leases, checkpoints, forgotten, program, changed: watch::Sender::new(()) };
        for entry in fs::read_dir(&runner.forgotten)? {
            remove_soon(entry?.path());
        }
        for local in runner.observe()?.iter().filter(|local| !local.ended()) {
            tracing::info!(lease.id = %local.lease, "a lease is adopted");
            runner.watch((local.lease, local.generation), Left::Adopted);
        }
        Ok(runner)
    }

    /// Changes whenever a lease started, ended or was forgotten.
    pub fn changed(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The folder of a lease, which need not be there.
    pub fn folder(&self, lease: LeaseId) -> Folder {
        Folder::at(self.leases.join(lease.to_string()))
    }

    /// All leases that are here, as their folders tell. A folder that holds something else is logged and left out. An
    /// error means that one cannot be read now: nobody knows what is here then.
    pub fn observe(&self) -> io::Result<Vec<Local>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.leases)? {
            let entry = entry?;
            if entry.file_name().to_str().is_none_or(|name| name.parse::<LeaseId>().is_err()) {
                continue;
            }
            match Folder::at(entry.path()).local() {
                Ok(local) => found.extend(local),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    tracing::error!(%error, "the folder of a lease is damaged");
                }
                Err(error) => return Err(error),
            }
        }
        found.sort_by_key(|local| local.lease);
        Ok(found)
    }

    /// Starts a lease, or writes down why it cannot be; answers when either is on the disk, or will be as soon as that is
    /// possible. An error means that nothing could be kept of it and that nothing runs.
    pub async fn start(&self, wanted: &DesiredLease) -> io::Result<()> {
        let (folder, which) = (self.folder(wanted.lease), (wanted.lease, wanted.generation));
        if folder.path().try_exists()? {
            self.clear(&folder, wanted.lease).await?;
        }
        folder.create(wanted)?;
        if wanted.stop_after_ms.is_some() {
            self.end(&folder, which, Exit::Stopped);
        } else {
            match self.keeper(&folder) {
                Ok(mut keeper) => {
                    ready(&mut keeper).await;
                    self.watch(which, Left::Keeper(keeper));
                }
                Err(error) => {
                    let reason = format!("the agent could not start the job's keeper: {error}");
                    self.end(&folder, which, not_started(&reason));
                }
            }
        }
        self.changed.send_replace(());
        Ok(())
    }

    /// Asks a lease to end: TERM, then KILL after the grace. Asking again does nothing, unless the grace is shorter. A
    /// keeper is told also where the word for it cannot be written, which is then an error: it may end with `signal`.
    pub fn stop(&self, lease: LeaseId, grace_ms: i64) -> io::Result<()> {
        let folder = self.folder(lease);
        let written = match folder.stop() {
            Ok(Some(asked)) if asked.grace_ms <= grace_ms => Ok(()),
            Ok(_) | Err(_) => folder.write_stop(Stop { grace_ms }),
        };
        // A keeper that has not written `started.json` yet reads `stop.json` after it has.
        let keeper = folder.started()?.and_then(|started| Pid::from_raw(started.keeper));
        // The number is the keeper's as long as it holds the file.
        if let (Some(keeper), None) = (keeper, folder.hold()?) {
            let _ = kill_process(keeper, Signal::TERM);
        }
        written
    }

    /// Removes what is known of a lease that has ended. From the moment it answers, the lease is not here any more.
    pub fn forget(&self, (lease, generation): Which) -> io::Result<()> {
        let local = self.folder(lease).local()?;
        if !local.is_some_and(|local| local.ended() && local.generation == generation) {
            return Err(io::Error::other(format!("{lease} has not ended in the generation {generation}")));
        }
        self.bury(self.folder(lease).path())?;
        self.changed.send_replace(());
        Ok(())
    }

    /// Removes what jobs other than these kept for a later start.
    pub fn keep_checkpoints(&self, jobs: &BTreeSet<JobId>) -> io::Result<()> {
        for entry in fs::read_dir(&self.checkpoints)? {
            let path = entry?.path();
            let job = path.file_name().and_then(|name| name.to_str()?.parse::<JobId>().ok());
            if job.is_some_and(|job| !jobs.contains(&job)) {
                self.bury(&path)?;
            }
        }
        Ok(())
    }

    /// Clears away what an earlier start left, or a damaged folder: it may not run beside a new one, and what has ended
    /// may not run again.
    async fn clear(&self, folder: &Folder, lease: LeaseId) -> io::Result<()> {
        if folder.has_end()? {
            return Err(io::Error::other(format!("the unreadable folder of {lease} says that it has ended")));
        }
        if folder.hold()?.is_none() {
            return Err(io::Error::other(format!("a keeper still holds the unreadable folder of {lease}")));
        }
        end_all(lease).await;
        self.bury(folder.path())
    }

    /// Writes the end of what never ran, now or as soon as the disk lets it.
    fn end(&self, folder: &Folder, which: Which, exit: Exit) {
        let ended = Ended::now(exit);
        if let Err(error) = folder.write_ended(&ended) {
            tracing::error!(lease.id = %which.0, %error, "the end of a lease cannot be written; it is tried again");
            self.watch(which, Left::End(ended));
        }
    }

    /// A rename is at once; what takes time, or fails over a file of the job, comes after it.
    fn bury(&self, path: &Path) -> io::Result<()> {
        let grave = self.forgotten.join(Uuid::now_v7().to_string());
        fs::rename(path, &grave)?;
        path.parent().map_or(Ok(()), durable::sync_folder)?;
        remove_soon(grave);
        Ok(())
    }

    fn keeper(&self, folder: &Folder) -> io::Result<Child> {
        let held = folder.hold()?.ok_or_else(|| io::Error::other("another keeper holds the folder"))?;
        let log = File::options().create(true).append(true).open(folder.path().join("keeper.log"))?;
        Command::new(&self.program)
            .arg("run-job")
            .arg(folder.path())
            .env_clear()
            .current_dir(folder.path())
            .stdin(held)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
    }

    fn watch(&self, which: Which, left: Left) {
        let (folder, changed) = (self.folder(which.0), self.changed.clone());
        tokio::spawn(async move {
            let mut ended = match left {
                Left::Keeper(mut keeper) => {
                    // If that fails, the file that it holds tells the same.
                    let _ = keeper.wait().await;
                    None
                }
                Left::Adopted => None,
                Left::End(ended) => Some(ended),
            };
            let mut told = false;
            while let Err(error) = settle(&folder, which, &mut ended).await {
                if !std::mem::replace(&mut told, true) {
                    tracing::error!(lease.id = %which.0, %error, "the end of a lease cannot be kept; it is tried again");
                }
                if error.kind() == ErrorKind::InvalidData {
                    // A damaged folder is not a lease any more.
                    break;
                }
                tokio::time::sleep(TRY_EVERY).await;
            }
            changed.send_replace(());
        });
    }
}

/// Waits for the keeper's end, however it comes, and sees to it that there is an exit. The end that was first seen is
/// kept in `ended`, for the next try.
async fn settle(folder: &Folder, (lease, generation): Which, ended: &mut Option<Ended>) -> io::Result<()> {
    while folder.path().exists() && folder.hold()?.is_none() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    // The keeper writes the exit just before it ends, so the lease may have been forgotten, or come again, meanwhile.
    let unsettled = |local: Local| !local.ended() && local.generation == generation;
    if !folder.local()?.is_some_and(unsettled) {
        return Ok(());
    }
    let seen = match ended.take() {
        Some(seen) => seen,
        None => {
            tracing::warn!(lease.id = %lease, "the keeper of a lease is gone without a word; what it left is ended");
            folder.vanished(end_all(lease).await)?
        }
    };
    let seen = ended.insert(seen).clone();
    let folder = folder.clone();
    // What the job wrote may take long to be on the disk.
    tokio::task::spawn_blocking(move || folder.write_ended(&seen)).await.map_err(io::Error::other)?
}

/// Waits until the keeper has something on the disk, or is gone.
async fn ready(keeper: &mut Child) {
    let Some(mut pipe) = keeper.stdout.take() else { return };
    if tokio::time::timeout(START_MAX, pipe.read(&mut [0])).await.is_err() {
        tracing::warn!("a keeper takes long to start its job");
    }
}

fn remove_soon(path: PathBuf) {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = fs::remove_dir_all(&path) {
            tracing::warn!(path = %path.display(), %error, "what a lease left cannot be removed now");
        }
    });
}
