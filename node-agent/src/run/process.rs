//! The leases' folders as the agent works with them: start, stop, forget, adopt.
//!
//! Owns: `leases/` and `forgotten/` in the data folder. Invariants: what is known of a lease is in its folder and
//! nowhere else, so an agent that starts again knows as much; a lease without a living keeper and without an exit gets
//! one, after its processes are gone.

use super::{Folder, Stop, end_all};
use crate::{durable, reconcile::Which, state::Local};
use agent_protocol::{DesiredLease, Exit};
use domain::kernel::LeaseId;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, DirBuilder, File},
    io,
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
const START_MAX: Duration = Duration::from_secs(10);

/// Runs leases as processes.
#[derive(Debug)]
pub struct Runner {
    leases: PathBuf,
    forgotten: PathBuf,
    /// The agent's own program, which is also the keeper's.
    program: PathBuf,
    changed: watch::Sender<()>,
}

impl Runner {
    /// Opens the leases in a data folder and adopts what still runs. `program` is the agent's binary. Must be called
    /// within a tokio runtime.
    pub fn open(data: &Path, program: PathBuf) -> io::Result<Self> {
        let [leases, forgotten] = ["leases", "forgotten"].map(|name| data.join(name));
        for path in [&leases, &forgotten] {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        let runner = Self { leases, forgotten, program, changed: watch::Sender::new(()) };
        for entry in fs::read_dir(&runner.forgotten)? {
            remove_soon(entry?.path());
        }
        for local in runner.observe()?.iter().filter(|local| !local.ended()) {
            tracing::info!(lease.id = %local.lease, "a lease is adopted");
            runner.watch((local.lease, local.generation), None);
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

    /// All leases that are here, as their folders tell. A folder that cannot be read is logged and left out.
    pub fn observe(&self) -> io::Result<Vec<Local>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.leases)? {
            let folder = Folder::at(entry?.path());
            match folder.local() {
                Ok(local) => found.extend(local),
                Err(error) => tracing::error!(%error, "the folder of a lease cannot be read"),
            }
        }
        found.sort_by_key(|local| local.lease);
        Ok(found)
    }

    /// Starts a lease, or writes down why it cannot be; answers when either is on the disk. An error means that nothing
    /// could be kept of it and that nothing runs.
    pub async fn start(&self, wanted: &DesiredLease) -> io::Result<()> {
        let folder = self.folder(wanted.lease);
        if folder.path().exists() {
            // What an earlier start left, or a damaged folder: it may not run beside a new one.
            if folder.hold()?.is_none() {
                return Err(io::Error::other(format!(
                    "a keeper still holds the unreadable folder of {}",
                    wanted.lease
                )));
            }
            end_all(wanted.lease).await;
            self.bury(wanted.lease)?;
        }
        folder.create(wanted)?;
        if wanted.stop_after_ms.is_some() {
            folder.write_ended(Exit::Stopped)?;
        } else {
            match self.keeper(&folder) {
                Ok(mut keeper) => {
                    ready(&mut keeper).await;
                    self.watch((wanted.lease, wanted.generation), Some(keeper));
                }
                Err(error) => {
                    let reason = format!("the agent could not start the job's keeper: {error}");
                    folder.write_ended(Exit::NotStarted { reason })?;
                }
            }
        }
        self.changed.send_replace(());
        Ok(())
    }

    /// Asks a lease to end: TERM, then KILL after the grace. Asking again does nothing, unless the grace is shorter.
    pub fn stop(&self, lease: LeaseId, grace_ms: i64) -> io::Result<()> {
        let folder = self.folder(lease);
        if folder.stop()?.is_none_or(|asked| grace_ms < asked.grace_ms) {
            folder.write_stop(Stop { grace_ms })?;
        }
        // A keeper that has not written `started.json` yet reads `stop.json` after it has.
        let keeper = folder.started()?.and_then(|started| Pid::from_raw(started.keeper));
        // The number is the keeper's as long as it holds the file.
        if let (Some(keeper), None) = (keeper, folder.hold()?) {
            let _ = kill_process(keeper, Signal::TERM);
        }
        Ok(())
    }

    /// Removes what is known of a lease that has ended. From the moment it answers, the lease is not here any more.
    pub fn forget(&self, (lease, generation): Which) -> io::Result<()> {
        let local = self.folder(lease).local()?;
        if !local.is_some_and(|local| local.ended() && local.generation == generation) {
            return Err(io::Error::other(format!("{lease} has not ended in the generation {generation}")));
        }
        self.bury(lease)?;
        self.changed.send_replace(());
        Ok(())
    }

    /// A rename is at once; what takes time, or fails over a file of the job, comes after it.
    fn bury(&self, lease: LeaseId) -> io::Result<()> {
        let grave = self.forgotten.join(Uuid::now_v7().to_string());
        fs::rename(self.folder(lease).path(), &grave)?;
        durable::sync_folder(&self.leases)?;
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

    fn watch(&self, which: Which, keeper: Option<Child>) {
        let (folder, changed) = (self.folder(which.0), self.changed.clone());
        tokio::spawn(async move {
            match watch(&folder, which, keeper).await {
                Ok(()) => {}
                Err(error) => tracing::error!(lease.id = %which.0, %error, "the end of a lease cannot be kept"),
            }
            changed.send_replace(());
        });
    }
}

/// Waits for the keeper's end, however it comes, and sees to it that there is an exit.
async fn watch(folder: &Folder, (lease, generation): Which, keeper: Option<Child>) -> io::Result<()> {
    match keeper {
        Some(mut keeper) => {
            keeper.wait().await?;
        }
        None => {
            while folder.path().exists() && folder.hold()?.is_none() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }
    // The keeper writes the exit just before it ends, so the lease may have been forgotten, or come again, meanwhile.
    let unsettled = |local: Local| !local.ended() && local.generation == generation;
    if folder.local()?.is_some_and(unsettled) {
        tracing::warn!(lease.id = %lease, "the keeper of a lease is gone without a word; what it left is ended");
        end_all(lease).await;
        folder.write_ended(Exit::Vanished)?;
    }
    Ok(())
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
