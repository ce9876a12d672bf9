//! The files of one lease.
//!
//! Owns: their names, forms and what they mean together. Invariants: the newest word counts: an exit beats a start;
//! times are to the millisecond.

use crate::{durable, state::Local};
use agent_protocol::{DesiredLease, Exit, Phase};
use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

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
        for path in [self.0.clone(), self.work(), self.tmp(), self.results()] {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
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

    /// Says that it runs.
    pub fn write_started(&self, started: &Started) -> io::Result<()> {
        durable::write_json(&self.0.join("started.json"), started)
    }

    /// Says that it should end.
    pub fn write_stop(&self, stop: Stop) -> io::Result<()> {
        durable::write_json(&self.0.join("stop.json"), &stop)
    }

    /// Says that it ended now.
    pub fn write_ended(&self, exit: Exit) -> io::Result<()> {
        durable::write_json(&self.0.join("exit.json"), &Ended { ended_at: now(), exit })
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
        Ok(Some(Local { lease: wanted.lease, generation: wanted.generation, cards: wanted.work.cards, phase }))
    }
}

/// The node's time, to the millisecond.
pub(super) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}
