//! The files of one lease.
//!
//! Owns: their names, forms and what they mean together. Invariants: the newest word counts: an exit beats a start;
//! times are to the millisecond; a lease that began can be stopped and its end be told on a full disk, for the room of
//! both words is reserved before.

use super::clock::{Moment, now};
use crate::{durable, state::Local};
use agent_protocol::{DesiredLease, Exit, Phase};
use chrono::{DateTime, TimeDelta, Utc};
use domain::kernel::JobId;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, FileExt},
    path::{Path, PathBuf},
};

/// The folder of the jobs' checkpoints in the agent's data folder.
pub(super) const CHECKPOINTS: &str = "checkpoints";
/// The room that is reserved for a word, in bytes: more than the longest one takes.
const STOP_BYTES: u64 = 1024;
const EXIT_BYTES: u64 = 8 * 1024;
/// How much of a reason is kept, in characters. It may quote a command of any length.
const REASON_CHARS_MAX: usize = 1000;

/// The folder of one lease.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

/// The job runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The job's first process, which leads its group.
    pub pid: i32,
    /// The keeper, which leads the session.
    pub keeper: i32,
    pub started_at: DateTime<Utc>,
    /// The same instant by the clock that nobody sets. Absent in the folder of an earlier version.
    #[serde(default)]
    pub since: Option<Moment>,
}

/// The job should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// How long after TERM it is killed.
    pub grace_ms: i64,
}

/// The job has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub ended_at: DateTime<Utc>,
    pub exit: Exit,
}

impl Folder {
    /// The one at this path, which need not be there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Makes it, with the work in it.
    pub fn create(&self, wanted: &DesiredLease) -> io::Result<()> {
        for path in [self.0.clone(), self.work(), self.tmp(), self.results(), self.checkpoints(wanted.job)] {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        durable::reserve(&self.0.join("stop.json"), STOP_BYTES)?;
        durable::reserve(&self.0.join("exit.json"), EXIT_BYTES)?;
        durable::write(&self.0.join("alive"), mark(0).as_bytes())?;
        // Last: a folder without it holds no lease.
        durable::write_json(&self.0.join("work.json"), wanted)?;
        self.0.parent().map_or(Ok(()), durable::sync_folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where the job starts unless its work says otherwise.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Where the job may put what it does not need for long.
    pub fn tmp(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// Where the job puts files that are its results.
    pub fn results(&self) -> PathBuf {
        self.0.join("results")
    }

    /// Where the job keeps what a later start of it goes on from: one folder per job, beside those of the leases.
    pub fn checkpoints(&self, job: JobId) -> PathBuf {
        let data = self.0.ancestors().nth(2).unwrap_or(&self.0);
        data.join(CHECKPOINTS).join(job.to_string())
    }

    /// What the job writes.
    pub fn output(&self) -> PathBuf {
        self.0.join("output")
    }

    /// How much it has written, in bytes.
    pub fn output_bytes(&self) -> i64 {
        fs::metadata(self.output()).map_or(0, |file| i64::try_from(file.len()).unwrap_or(i64::MAX))
    }

    /// What the lease is for, `None` where the folder holds no lease.
    pub fn wanted(&self) -> io::Result<Option<DesiredLease>> {
        durable::read_json(&self.0.join("work.json"))
    }

    /// Whether and since when it runs.
    pub fn started(&self) -> io::Result<Option<Started>> {
        durable::read_json(&self.0.join("started.json"))
    }

    /// Whether it should end.
    pub fn stop(&self) -> io::Result<Option<Stop>> {
        durable::read_json(&self.0.join("stop.json"))
    }

    /// Whether and how it ended.
    pub fn ended(&self) -> io::Result<Option<Ended>> {
        durable::read_json(&self.0.join("exit.json"))
    }

    /// Whether there is a word of its end, also one that cannot be read.
    pub fn has_end(&self) -> io::Result<bool> {
        self.0.join("exit.json").try_exists()
    }

    /// How long it had run when its keeper last marked it, in milliseconds: 0 where no mark can be read.
    pub fn alive_ms(&self) -> i64 {
        let text = fs::read_to_string(self.0.join("alive")).unwrap_or_default();
        text.trim().parse().unwrap_or(0).max(0)
    }

    /// Says that it runs.
    pub fn write_started(&self, started: &Started) -> io::Result<()> {
        durable::write_json(&self.0.join("started.json"), started)
    }

    /// Marks that it still runs, after so many milliseconds. In place, so it takes no room.
    pub fn write_alive(&self, ran_ms: i64) -> io::Result<()> {
        let file = File::options().write(true).open(self.0.join("alive"))?;
        file.write_all_at(mark(ran_ms).as_bytes(), 0)?;
        file.sync_data()
    }

    /// Says that it should end.
    pub fn write_stop(&self, stop: Stop) -> io::Result<()> {
        durable::write_json_in_reserve(&self.0.join("stop.json"), &stop)
    }

    /// Says that it ended. What it wrote is on the disk before that is.
    pub fn write_ended(&self, ended: &Ended) -> io::Result<()> {
        if let Err(error) = self.sync_output() {
            // To try again would bring nothing: the kernel tells a failure once and lets go of the bytes.
            tracing::warn!(folder = %self.0.display(), %error, "the output of a lease may not be on the disk");
        }
        if self.ended().is_ok_and(|told| told.as_ref() == Some(ended)) {
            return durable::sync_folder(&self.0);
        }
        durable::write_json_in_reserve(&self.0.join("exit.json"), ended)
    }

    /// The end of one whose keeper is gone without a word. Processes that were `killed` by us ran until now, if they are
    /// of this boot; of all else nobody knows more than the last mark, however long ago that is.
    pub fn vanished(&self, killed: bool) -> io::Result<Ended> {
        let Some(started) = self.started()? else { return Ok(Ended::now(Exit::Vanished)) };
        let marked = TimeDelta::milliseconds(self.alive_ms());
        let ran = match started.since {
            Some(since) if killed => Moment::now().since(&since).map_or(marked, |ran| ran.max(marked)),
            None if killed => (now() - started.started_at).max(marked),
            Some(_) | None => marked,
        };
        let ended_at = started.started_at.checked_add_signed(ran).unwrap_or(started.started_at);
        Ok(Ended { ended_at, exit: Exit::Vanished })
    }

    fn sync_output(&self) -> io::Result<()> {
        let output = self.output();
        // A job may have put something in its place that holds up who opens it.
        if fs::symlink_metadata(&output).is_ok_and(|file| file.is_file()) {
            File::open(output)?.sync_all()?;
            durable::sync_folder(&self.0)?;
        }
        Ok(())
    }

    /// The file that a keeper holds, locked; `None` where a living keeper has it.
    pub fn hold(&self) -> io::Result<Option<File>> {
        let file = File::options().create(true).append(true).open(self.0.join("held"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// What is to be said of it; `None` where the folder holds no lease.
    pub fn local(&self) -> io::Result<Option<Local>> {
        let Some(wanted) = self.wanted()? else { return Ok(None) };
        let started_at = self.started()?.map(|started| started.started_at);
        let phase = match self.ended()? {
            Some(Ended { ended_at, exit }) => {
                Some(Phase::Ended { started_at, ended_at, exit, output_bytes: self.output_bytes() })
            }
            None => started_at.map(|started_at| Phase::Running { started_at }),
        };
        let DesiredLease { lease, job, generation, work, .. } = wanted;
        Ok(Some(Local { lease, job, generation, cards: work.cards, phase }))
    }
}

impl Ended {
    /// At this instant, for what did not run.
    pub fn now(exit: Exit) -> Self {
        Self { ended_at: now(), exit }
    }
}

/// It could not be started. The reason is cut, so that it fits into what is reserved for it and into a report.
pub(super) fn not_started(reason: &str) -> Exit {
    Exit::NotStarted { reason: reason.chars().take(REASON_CHARS_MAX).collect() }
}

/// Of one length, so that a new one takes the place of an old one whole.
fn mark(ran_ms: i64) -> String {
    format!("{ran_ms:020}\n")
}
