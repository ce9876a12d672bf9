//! A job: what a tenant wants run, from submission to its end.
//!
//! Invariants: what is run never changes after submission; a job runs under at most one lease at a time; a placement of
//! a job that is over is voided; one whose node was lost waits for a place again as often as its spec allows, and keeps
//! its quota and money meanwhile; every job ends exactly once, with an outcome that says why.

use crate::allocation::Demand;
use crate::kernel::{Aggregate, Ancestors, BillTo, Kind, LeaseId, MemberId, NodeId, Rejection, TenantId};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NAME_LENGTH_MAX: usize = 64;
const ARGUMENTS_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 64 * 1024;
const TIME_LIMIT_S_MAX: i64 = 90 * 24 * 3600;
const RESTARTS_MAX: u32 = 100;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Job {
    #[default]
    Absent,
    /// Waits for quota and money.
    Submitted(Submission),
    /// Waits for a place.
    Admitted {
        submission: Submission,
        restarted: u32,
    },
    Placed {
        submission: Submission,
        restarted: u32,
        lease: LeaseId,
        cancelled: bool,
    },
    Running {
        submission: Submission,
        restarted: u32,
        lease: LeaseId,
        cancelled: bool,
    },
    Ended(Submission),
}

/// What was asked for, and on whose account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    pub tenant: TenantId,
    /// The nodes above the tenant.
    #[serde(default, skip_serializing_if = "Ancestors::is_empty")]
    pub above: Ancestors,
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
    /// How often it is started again after it was lost with its node.
    #[serde(default)]
    pub restarts: u32,
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
    /// It was lost with its node, and waits for a place again.
    Requeued {
        lease: LeaseId,
        /// How that lease ended.
        outcome: Outcome,
        restarts_left: u32,
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
    /// Its node was lost: not heard of for too long, or given up by an operator.
    Lost,
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
    #[error("a job is started again at most {RESTARTS_MAX} times")]
    BadRestarts,
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
        if self.restarts > RESTARTS_MAX {
            return Err(Error::BadRestarts);
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
            Self::Admitted { .. } => "admitted",
            Self::Placed { .. } => "placed",
            Self::Running { .. } => "running",
            Self::Ended(_) => "ended",
        }
    }

    /// What was asked for.
    pub fn submission(&self) -> Option<&Submission> {
        match self {
            Self::Absent => None,
            Self::Submitted(submission) | Self::Ended(submission) => Some(submission),
            Self::Admitted { submission, .. } | Self::Placed { submission, .. } | Self::Running { submission, .. } => {
                Some(submission)
            }
        }
    }

    fn cancel(&self, by: MemberId, reason: String) -> Result<Vec<Event>, Error> {
        let asked = Event::CancelRequested { by, reason };
        match self {
            Self::Absent => Err(Error::NotFound),
            Self::Submitted(_) | Self::Admitted { .. } => {
                Ok(vec![asked, Event::Ended { outcome: Outcome::Cancelled, at: None }])
            }
            Self::Placed { cancelled, .. } | Self::Running { cancelled, .. } if *cancelled => Ok(vec![]),
            Self::Placed { .. } | Self::Running { .. } => Ok(vec![asked]),
            Self::Ended(_) => Err(Error::WrongState(self.word())),
        }
    }

    /// The end of its lease. What was lost with its node starts again, if it may and nobody asked for its end.
    fn end(&self, lease: LeaseId, outcome: Outcome, at: DateTime<Utc>) -> Vec<Event> {
        let (Self::Placed { submission, restarted, lease: mine, cancelled }
        | Self::Running { submission, restarted, lease: mine, cancelled }) = self
        else {
            return vec![];
        };
        if *mine != lease {
            return vec![];
        }
        let gone = matches!(outcome, Outcome::Lost | Outcome::Vanished);
        let left = submission.spec.restarts.checked_sub(restarted.saturating_add(1));
        vec![match (gone, cancelled, left) {
            (true, true, _) => Event::Ended { outcome: Outcome::Cancelled, at: Some(at) },
            (true, false, Some(restarts_left)) => Event::Requeued { lease, outcome, restarts_left },
            (true | false, _, _) => Event::Ended { outcome, at: Some(at) },
        }]
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
            (Self::Admitted { .. }, Command::Place { lease, node, cards }) => {
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
            (Self::Submitted(submission), Event::Admitted) => Self::Admitted { submission, restarted: 0 },
            (Self::Admitted { submission, restarted }, Event::Placed { lease, .. }) => {
                Self::Placed { submission, restarted, lease: *lease, cancelled: false }
            }
            (Self::Placed { submission, restarted, lease, cancelled }, Event::Started { .. }) => {
                Self::Running { submission, restarted, lease, cancelled }
            }
            (Self::Placed { submission, restarted, lease, .. }, Event::CancelRequested { .. }) => {
                Self::Placed { submission, restarted, lease, cancelled: true }
            }
            (Self::Running { submission, restarted, lease, .. }, Event::CancelRequested { .. }) => {
                Self::Running { submission, restarted, lease, cancelled: true }
            }
            (
                Self::Placed { submission, restarted, .. } | Self::Running { submission, restarted, .. },
                Event::Requeued { .. },
            ) => Self::Admitted { submission, restarted: restarted.saturating_add(1) },
            (
                Self::Submitted(submission)
                | Self::Admitted { submission, .. }
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
            Self::BadRestarts => "job.bad_restarts",
            Self::WrongState(_) => "job.wrong_state",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::BadName | Self::BadCommand | Self::BadDemand | Self::BadTimeLimit | Self::BadRestarts => {
                Kind::Invalid
            }
            Self::AlreadyExists | Self::WrongState(_) => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests;
