//! The wire between a node agent and the control service: JSON over HTTP, agent as the client.
//!
//! Owns: the shapes of both directions. Does not own: how the agent runs work, what the server decides.
//! Invariants: level-triggered both ways. The server sends the node's whole desired set with a generation that only
//! grows; the agent refuses an older one. The agent sends what it observes, lease by lease, again and again; saying it
//! twice, late or in another order changes nothing, and what a report leaves out means nothing. Fields are only added,
//! with defaults.
//!
//! | call | body | answer |
//! |---|---|---|
//! | `POST /agent/v1/register` | [`Register`] | [`Registered`] |
//! | `GET /agent/v1/desired?after=GENERATION` (waits up to [`POLL_MAX_S`] for a newer one) | – | [`Desired`] |
//! | `POST /agent/v1/report` | [`Report`] | [`Acknowledged`] |
//! | `PUT /agent/v1/leases/{lease}/output?offset=BYTES` | bytes of the output from that offset | [`OutputKept`] |
//!
//! All but `register` carry `Authorization: Bearer <node id>.<credential>`. Errors are `application/problem+json`.

use chrono::{DateTime, Utc};
use domain::kernel::{JobId, LeaseId, NodeId};
pub use domain::pools::{Card, Inventory, SIMULATED_PREFIX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long `desired` waits for something new, in seconds.
pub const POLL_MAX_S: u64 = 25;
/// The most bytes of output in one call.
pub const OUTPUT_CHUNK_BYTES_MAX: usize = 256 * 1024;
/// The most leases in one report of an agent, so that it stays well below what a server takes in one body. A server takes
/// as many as come.
pub const REPORT_LEASES_MAX: usize = 100;

/// A machine asks to join a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The one-time join token of the pool.
    pub token: String,
    /// What people call the machine.
    pub name: String,
    /// A secret of 32 random bytes in hex, made and kept by the agent before it registers; sent again after a lost
    /// answer, it gets the same node.
    pub credential: String,
    pub inventory: Inventory,
}

/// The machine is a node now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    pub node: NodeId,
}

/// All that should run on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Desired {
    /// Only grows. A position of the log.
    pub generation: i64,
    pub leases: Vec<DesiredLease>,
    /// The jobs that have been placed here and are not over: what they keep on the node for a later start stays.
    #[serde(default)]
    pub jobs: Vec<JobId>,
}

/// One lease that the node holds. A lease that is no longer here is over: what still runs of it is ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredLease {
    pub lease: LeaseId,
    /// The log position that made the lease; carried by every report of it.
    pub generation: i64,
    pub job: JobId,
    pub work: Work,
    /// Set when it should end: TERM, then KILL after so many milliseconds.
    #[serde(default)]
    pub stop_after_ms: Option<i64>,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The program and its arguments.
    pub command: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it starts; the lease's own folder unless said.
    #[serde(default)]
    pub folder: Option<String>,
    /// Ended with TERM, then KILL, after so many seconds.
    #[serde(default)]
    pub time_limit_s: Option<i64>,
    pub milli_cores: i64,
    pub memory_mib: i64,
    /// The cards by their index on the node.
    #[serde(default)]
    pub cards: Vec<u32>,
}

/// What the node sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The newest desired generation that the agent has taken.
    pub generation: i64,
    pub inventory: Inventory,
    /// The leases that the agent knows and that the server has not been seen to have forgotten, at most
    /// [`REPORT_LEASES_MAX`] of them: more take turns.
    pub leases: Vec<ObservedLease>,
}

/// What the node sees of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedLease {
    pub lease: LeaseId,
    pub generation: i64,
    pub phase: Phase,
}

/// How far it has come. Times are of the node's clock, to the millisecond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case", deny_unknown_fields)]
pub enum Phase {
    Running {
        started_at: DateTime<Utc>,
    },
    Ended {
        /// Absent when it never started.
        #[serde(default)]
        started_at: Option<DateTime<Utc>>,
        ended_at: DateTime<Utc>,
        exit: Exit,
        /// How many bytes of output there are in all.
        output_bytes: i64,
    },
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Exit {
    /// By itself, with this code.
    Code { code: i32 },
    /// By a signal that we did not send.
    Signal { signal: i32 },
    /// Because the server asked for it.
    Stopped,
    /// Because its time was over.
    TimedOut,
    /// It could not be started.
    NotStarted { reason: String },
    /// It is gone and nobody saw how, for example after the machine restarted.
    Vanished,
}

/// What the server says of a report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Leases of the report that the server does not count: their generation is not the lease's, or it is not this
    /// node's. The agent ends and forgets them.
    #[serde(default)]
    pub stale: Vec<LeaseId>,
}

/// How far the server has the output of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputKept {
    /// Where the next call starts, in bytes. What lay before it was known already.
    pub next_offset: i64,
}
