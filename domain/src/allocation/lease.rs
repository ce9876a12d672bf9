//! A lease (占用): the right to cards, cores and memory of one node; the only right to a card there is.
//!
//! Invariants: its generation is the log position that made it, and a report of another generation is refused; it ends
//! exactly once: on the agent's word, voided before it began, or lost with its node at the last proof of life; what is
//! metered is from its start to its end; what a node says of a lease that was lost counts for nothing.

use crate::allocation::job::Outcome;
use crate::kernel::{Aggregate, BillTo, JobId, Kind, NodeId, Rejection, Resource, TenantId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Lease {
    #[default]
    Absent,
    Granted(Grant),
    Running {
        grant: Grant,
        since: DateTime<Utc>,
    },
    Over(Grant),
    /// Its node was lost, and whatever still runs there of it must end.
    Lost(Grant),
}

/// Who has what, where, on whose account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    pub tenant: TenantId,
    pub job: JobId,
    pub node: NodeId,
    /// The cards by their index on the node.
    pub cards: Vec<u32>,
    pub milli_cores: i64,
    pub memory_mib: i64,
    /// What is charged, and how many thousandths of it.
    pub resource: Resource,
    pub milli: i64,
    pub bill_to: BillTo,
    /// The log position of the placement.
    pub generation: i64,
}

#[derive(Debug, Clone)]
pub enum Command {
    Grant(Grant),
    ReportStart {
        node: NodeId,
        generation: i64,
        at: DateTime<Utc>,
    },
    ReportEnd {
        node: NodeId,
        generation: i64,
        /// Absent when it never started.
        started_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
        outcome: Outcome,
    },
    /// Its node is lost; nothing counts after the last proof of its life.
    Lose {
        alive_until: DateTime<Utc>,
    },
    Void,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Granted(Grant),
    /// By the node's clock, to the millisecond.
    Started {
        at: DateTime<Utc>,
    },
    Ended {
        /// Absent when it never started: nothing is charged.
        #[serde(default)]
        started_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
        outcome: Outcome,
    },
    /// Its job was over before it could begin.
    Voided,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such lease")]
    NotFound,
    #[error("the lease already exists")]
    AlreadyExists,
    #[error("the lease is on another node")]
    OtherNode,
    #[error("the report is of generation {told}, the lease is of {known}")]
    StaleGeneration { told: i64, known: i64 },
    #[error("the lease was lost with its node, and its work must end")]
    Lost,
}

impl Lease {
    /// What it is the right to.
    pub fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Absent => None,
            Self::Granted(grant) | Self::Running { grant, .. } | Self::Over(grant) | Self::Lost(grant) => Some(grant),
        }
    }

    fn reported_by(&self, node: NodeId, generation: i64) -> Result<(), Error> {
        let grant = self.grant().ok_or(Error::NotFound)?;
        if grant.node != node {
            return Err(Error::OtherNode);
        }
        if grant.generation != generation {
            return Err(Error::StaleGeneration { told: generation, known: grant.generation });
        }
        if matches!(self, Self::Lost(_)) { Err(Error::Lost) } else { Ok(()) }
    }

    /// An end that comes before the report of the start brings the start with it. One that lies before the start, since
    /// the node's clock was set back, counts as the start: no time was used.
    fn ends(&self, started_at: Option<DateTime<Utc>>, at: DateTime<Utc>, outcome: Outcome) -> Vec<Event> {
        match self {
            Self::Granted(_) => {
                let at = started_at.map_or(at, |start| start.max(at));
                let start = started_at.map(|at| Event::Started { at });
                start.into_iter().chain([Event::Ended { started_at, at, outcome }]).collect()
            }
            Self::Running { since, .. } => {
                vec![Event::Ended { started_at: Some(*since), at: at.max(*since), outcome }]
            }
            Self::Absent | Self::Over(_) | Self::Lost(_) => vec![],
        }
    }
}

impl Aggregate for Lease {
    const STREAM: &'static str = "lease";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Grant(grant)) => Ok(vec![Event::Granted(grant)]),
            (_, Command::Grant(_)) => Err(Error::AlreadyExists),
            (_, Command::ReportStart { node, generation, at }) => {
                self.reported_by(node, generation)?;
                Ok(if matches!(self, Self::Granted(_)) { vec![Event::Started { at }] } else { vec![] })
            }
            (_, Command::ReportEnd { node, generation, started_at, at, outcome }) => {
                self.reported_by(node, generation)?;
                Ok(self.ends(started_at, at, outcome))
            }
            (Self::Absent, Command::Lose { .. } | Command::Void) => Err(Error::NotFound),
            (_, Command::Lose { alive_until }) => Ok(self.ends(None, alive_until, Outcome::Lost)),
            (Self::Granted(_), Command::Void) => Ok(vec![Event::Voided]),
            (Self::Running { .. } | Self::Over(_) | Self::Lost(_), Command::Void) => Ok(vec![]),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Granted(grant)) => Self::Granted(grant.clone()),
            (Self::Granted(grant), Event::Started { at }) => Self::Running { grant, since: *at },
            (Self::Granted(grant) | Self::Running { grant, .. }, Event::Ended { outcome: Outcome::Lost, .. }) => {
                Self::Lost(grant)
            }
            (Self::Granted(grant) | Self::Running { grant, .. }, Event::Ended { .. } | Event::Voided) => {
                Self::Over(grant)
            }
            (state, Event::Started { .. } | Event::Ended { .. } | Event::Voided) => state,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "lease.not_found",
            Self::AlreadyExists => "lease.already_exists",
            Self::OtherNode => "lease.other_node",
            Self::StaleGeneration { .. } => "lease.stale_generation",
            Self::Lost => "lease.lost",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound | Self::OtherNode => Kind::NotFound,
            Self::AlreadyExists | Self::StaleGeneration { .. } | Self::Lost => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Id;
    use crate::kernel::spec::{bill_to, given};

    fn node(name: &str) -> NodeId {
        Id::derived(TenantId::PLATFORM, name)
    }

    fn granted() -> Event {
        Event::Granted(Grant {
            tenant: TenantId::PLATFORM,
            job: Id::derived(TenantId::PLATFORM, "job"),
            node: node("n"),
            cards: vec![0],
            milli_cores: 1000,
            memory_mib: 512,
            resource: "card.a100".parse().unwrap(),
            milli: 1000,
            bill_to: bill_to(),
            generation: 7,
        })
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn start(generation: i64, name: &str) -> Command {
        Command::ReportStart { node: node(name), generation, at: at(1) }
    }

    fn end(started: Option<i64>, ended: i64) -> Command {
        let started_at = started.map(at);
        Command::ReportEnd { node: node("n"), generation: 7, started_at, at: at(ended), outcome: Outcome::Succeeded }
    }

    fn ended(started: Option<i64>, ended: i64) -> Event {
        Event::Ended { started_at: started.map(at), at: at(ended), outcome: Outcome::Succeeded }
    }

    #[test]
    fn is_started_by_its_node_and_generation_only() {
        given::<Lease>([granted()]).when(start(7, "n")).then([Event::Started { at: at(1) }]);
        given::<Lease>([granted()]).when(start(6, "n")).then_refused(Error::StaleGeneration { told: 6, known: 7 });
        given::<Lease>([granted()]).when(start(7, "m")).then_refused(Error::OtherNode);
        given::<Lease>([]).when(start(7, "n")).then_refused(Error::NotFound);
    }

    #[test]
    fn a_report_that_comes_again_or_late_changes_nothing() {
        let started = [granted(), Event::Started { at: at(1) }];
        given::<Lease>(started.clone()).when(start(7, "n")).then([]);
        let over = [&started[..], &[ended(Some(1), 5)]].concat();
        given::<Lease>(over.clone()).when(start(7, "n")).then([]);
        given::<Lease>(over).when(end(Some(1), 9)).then([]);
    }

    #[test]
    fn an_end_brings_the_start_that_was_not_heard_of() {
        given::<Lease>([granted()]).when(end(Some(1), 5)).then([Event::Started { at: at(1) }, ended(Some(1), 5)]);
        given::<Lease>([granted()]).when(end(None, 5)).then([ended(None, 5)]);
    }

    #[test]
    fn an_end_before_the_start_counts_as_the_start() {
        given::<Lease>([granted()]).when(end(Some(6), 5)).then([Event::Started { at: at(6) }, ended(Some(6), 6)]);
        given::<Lease>([granted(), Event::Started { at: at(6) }]).when(end(Some(6), 5)).then([ended(Some(6), 6)]);
    }

    #[test]
    fn is_lost_once_and_nothing_counts_after_the_last_proof_of_life() {
        let lose = |second| Command::Lose { alive_until: at(second) };
        let lost = |started: Option<i64>, ended| Event::Ended {
            started_at: started.map(at),
            at: at(ended),
            outcome: Outcome::Lost,
        };
        let running = [granted(), Event::Started { at: at(1) }];
        given::<Lease>(running.clone()).when(lose(5)).then([lost(Some(1), 5)]);
        given::<Lease>(running.clone()).when(lose(0)).then([lost(Some(1), 1)]);
        given::<Lease>([granted()]).when(lose(5)).then([lost(None, 5)]);
        given::<Lease>([]).when(lose(5)).then_refused(Error::NotFound);
        let over = [&running[..], &[ended(Some(1), 3)]].concat();
        given::<Lease>(over).when(lose(5)).then([]);
        let gone = [&running[..], &[lost(Some(1), 5)]].concat();
        given::<Lease>(gone.clone()).when(lose(9)).then([]);
        given::<Lease>(gone.clone()).when(start(7, "n")).then_refused(Error::Lost);
        given::<Lease>(gone).when(end(Some(1), 9)).then_refused(Error::Lost);
    }

    #[test]
    fn is_voided_before_it_began_only() {
        given::<Lease>([granted()]).when(Command::Void).then([Event::Voided]);
        given::<Lease>([granted(), Event::Started { at: at(1) }]).when(Command::Void).then([]);
    }
}
