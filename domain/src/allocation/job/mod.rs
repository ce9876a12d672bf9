//! A job: what a tenant wants run, from submission to its end.
//!
//! Invariants: what is run never changes after submission; a job runs under at most one lease at a time; a placement of
//! a job that is over is voided; every job ends exactly once, with an outcome that says why.

use crate::allocation::Demand;
use crate::kernel::{Aggregate, BillTo, Kind, LeaseId, MemberId, NodeId, Rejection, TenantId};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NAME_LENGTH_MAX: usize = 64;
const ARGUMENTS_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 64 * 1024;
const TIME_LIMIT_S_MAX: i64 = 90 * 24 * 3600;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Job {
    #[default]
    Absent,
    /// Waits for quota and money.
    Submitted(Submission),
    /// Waits for a place.
    Admitted(Submission),
    Placed {
        submission: Submission,
        lease: LeaseId,
        cancelled: bool,
    },
    Running {
        submission: Submission,
        lease: LeaseId,
        cancelled: bool,
    },
    Ended(Submission),
}

/// What was asked for, and on whose account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    pub tenant: TenantId,
    pub by: MemberId,
    pub spec: Spec,
    pub bill_to: BillTo,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it starts on the node; a folder of its own unless said.
    #[serde(default)]
    pub folder: Option<String>,
    pub demand: Demand,
    /// Ended after so many seconds of running.
    #[serde(default)]
    pub time_limit_s: Option<i64>,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a command lives as long as one call")]
pub enum Command {
    Submit(Submission),
    Queue { wanted_milli: i64, free_milli: i64 },
    Admit,
    Refuse { reason: Refusal },
    Place { lease: LeaseId, node: NodeId, cards: Vec<u32> },
    Start { lease: LeaseId, at: DateTime<Utc> },
    End { lease: LeaseId, outcome: Outcome, at: DateTime<Utc> },
    Cancel { by: MemberId, reason: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "the submission is read as often as the rest")]
pub enum Event {
    Submitted(Submission),
    /// The quota is used up; it is its turn when others release.
    QuotaQueued {
        wanted_milli: i64,
        free_milli: i64,
    },
    Admitted,
    /// Quota and money came for a job that was over.
    AdmissionVoided,
    Placed {
        lease: LeaseId,
        node: NodeId,
        cards: Vec<u32>,
    },
    /// A place came for a job that was over or has one.
    PlacementVoided {
        lease: LeaseId,
    },
    /// The process runs since then, by the node's clock.
    Started {
        lease: LeaseId,
        at: DateTime<Utc>,
    },
    CancelRequested {
        by: MemberId,
        reason: String,
    },
    Ended {
        outcome: Outcome,
        /// By the node's clock; absent when it never had a node.
        #[serde(default)]
        at: Option<DateTime<Utc>>,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Succeeded,
    Failed {
        code: i32,
    },
    Killed {
        signal: i32,
    },
    TimedOut,
    Cancelled,
    NotStarted {
        reason: String,
    },
    /// It is gone from its node and nobody saw how.
    Vanished,
    Refused {
        reason: Refusal,
    },
}

/// Why a job was not let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// It is larger than all that the tenant has ordered.
    Quota { wanted_milli: i64, ordered_milli: i64 },
    /// The wallet cannot hold the first hour.
    Money { wanted: Decimal, available: Decimal },
    /// The price book has no price for it now.
    NoPrice { sku: String },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such job")]
    NotFound,
    #[error("the job already exists")]
    AlreadyExists,
    #[error("a job's name has 1 to {NAME_LENGTH_MAX} characters, none of them a control character")]
    BadName,
    #[error(
        "a job's command has 1 to {ARGUMENTS_MAX} words, a program first; with the environment at most \
         {TEXT_BYTES_MAX} bytes, no zero byte, and names of variables without `=`"
    )]
    BadCommand,
    #[error("a job needs at least 1 thousandth of a core and 1 MiB, and 1 to 1024 cards if it asks for cards")]
    BadDemand,
    #[error("a time limit is from 1 second to 90 days")]
    BadTimeLimit,
    #[error("the job is {0}; this is not possible now")]
    WrongState(&'static str),
}

impl Spec {
    fn check(&self) -> Result<(), Error> {
        let name = self.name.chars().count();
        if !(1..=NAME_LENGTH_MAX).contains(&name) || self.name.chars().any(char::is_control) {
            return Err(Error::BadName);
        }
        let words = self.command.len();
        let texts = || {
            let env = self.env.iter().flat_map(|(name, value)| [name, value]);
            self.command.iter().chain(env).chain(&self.folder)
        };
        let variables = self.env.keys().all(|name| !name.is_empty() && !name.contains('='));
        let program = self.command.first().is_some_and(|program| !program.is_empty());
        let bytes: usize = texts().map(String::len).sum();
        let clean = !texts().any(|text| text.contains('\0'));
        if !program || words > ARGUMENTS_MAX || bytes > TEXT_BYTES_MAX || !variables || !clean {
            return Err(Error::BadCommand);
        }
        if !self.demand.is_sane() {
            return Err(Error::BadDemand);
        }
        if self.time_limit_s.is_some_and(|seconds| !(1..=TIME_LIMIT_S_MAX).contains(&seconds)) {
            return Err(Error::BadTimeLimit);
        }
        Ok(())
    }
}

impl Job {
    /// Its state in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Submitted(_) => "submitted",
            Self::Admitted(_) => "admitted",
            Self::Placed { .. } => "placed",
            Self::Running { .. } => "running",
            Self::Ended(_) => "ended",
        }
    }

    /// What was asked for.
    pub fn submission(&self) -> Option<&Submission> {
        match self {
            Self::Absent => None,
            Self::Submitted(submission) | Self::Admitted(submission) | Self::Ended(submission) => Some(submission),
            Self::Placed { submission, .. } | Self::Running { submission, .. } => Some(submission),
        }
    }

    fn cancel(&self, by: MemberId, reason: String) -> Result<Vec<Event>, Error> {
        let asked = Event::CancelRequested { by, reason };
        match self {
            Self::Absent => Err(Error::NotFound),
            Self::Submitted(_) | Self::Admitted(_) => {
                Ok(vec![asked, Event::Ended { outcome: Outcome::Cancelled, at: None }])
            }
            Self::Placed { cancelled, .. } | Self::Running { cancelled, .. } if *cancelled => Ok(vec![]),
            Self::Placed { .. } | Self::Running { .. } => Ok(vec![asked]),
            Self::Ended(_) => Err(Error::WrongState(self.word())),
        }
    }

    /// A node's word that it ended; a stop that was asked for counts as cancelled.
    fn end(&self, lease: LeaseId, outcome: Outcome, at: DateTime<Utc>) -> Vec<Event> {
        match self {
            Self::Placed { lease: mine, .. } | Self::Running { lease: mine, .. } if *mine == lease => {
                vec![Event::Ended { outcome, at: Some(at) }]
            }
            Self::Absent
            | Self::Submitted(_)
            | Self::Admitted(_)
            | Self::Placed { .. }
            | Self::Running { .. }
            | Self::Ended(_) => vec![],
        }
    }
}

impl Aggregate for Job {
    const STREAM: &'static str = "job";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Submit(submission)) => {
                submission.spec.check()?;
                Ok(vec![Event::Submitted(submission)])
            }
            (_, Command::Submit(_)) => Err(Error::AlreadyExists),
            (_, Command::Cancel { by, reason }) => self.cancel(by, reason),
            (Self::Absent, _) => Err(Error::NotFound),
            (Self::Submitted(_), Command::Queue { wanted_milli, free_milli }) => {
                Ok(vec![Event::QuotaQueued { wanted_milli, free_milli }])
            }
            (Self::Submitted(_), Command::Admit) => Ok(vec![Event::Admitted]),
            (Self::Ended(_), Command::Admit) => Ok(vec![Event::AdmissionVoided]),
            (Self::Submitted(_), Command::Refuse { reason }) => {
                Ok(vec![Event::Ended { outcome: Outcome::Refused { reason }, at: None }])
            }
            (Self::Admitted(_), Command::Place { lease, node, cards }) => {
                Ok(vec![Event::Placed { lease, node, cards }])
            }
            (_, Command::Place { lease, .. }) => Ok(vec![Event::PlacementVoided { lease }]),
            (Self::Placed { lease: mine, .. }, Command::Start { lease, at }) if *mine == lease => {
                Ok(vec![Event::Started { lease, at }])
            }
            (_, Command::End { lease, outcome, at }) => Ok(self.end(lease, outcome, at)),
            (_, Command::Queue { .. } | Command::Admit | Command::Refuse { .. } | Command::Start { .. }) => Ok(vec![]),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Submitted(submission)) => Self::Submitted(submission.clone()),
            (Self::Submitted(submission), Event::Admitted) => Self::Admitted(submission),
            (Self::Admitted(submission), Event::Placed { lease, .. }) => {
                Self::Placed { submission, lease: *lease, cancelled: false }
            }
            (Self::Placed { submission, lease, cancelled }, Event::Started { .. }) => {
                Self::Running { submission, lease, cancelled }
            }
            (Self::Placed { submission, lease, .. }, Event::CancelRequested { .. }) => {
                Self::Placed { submission, lease, cancelled: true }
            }
            (Self::Running { submission, lease, .. }, Event::CancelRequested { .. }) => {
                Self::Running { submission, lease, cancelled: true }
            }
            (
                Self::Submitted(submission)
                | Self::Admitted(submission)
                | Self::Placed { submission, .. }
                | Self::Running { submission, .. },
                Event::Ended { .. },
            ) => Self::Ended(submission),
            (state, _) => state,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "job.not_found",
            Self::AlreadyExists => "job.already_exists",
            Self::BadName => "job.bad_name",
            Self::BadCommand => "job.bad_command",
            Self::BadDemand => "job.bad_demand",
            Self::BadTimeLimit => "job.bad_time_limit",
            Self::WrongState(_) => "job.wrong_state",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::BadName | Self::BadCommand | Self::BadDemand | Self::BadTimeLimit => Kind::Invalid,
            Self::AlreadyExists | Self::WrongState(_) => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests;
