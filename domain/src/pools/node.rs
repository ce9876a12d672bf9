//! A node (节点): a machine, or a cluster behind one agent.
//!
//! Owns: what the node has, whether it takes new work, and a sparse proof of life.
//! Does not own: when it was last seen to the second (runtime state), its leases (`allocation`).
//!
//! Invariants:
//! - a draining node gets no new lease; what runs there goes on;
//! - a lost node gets no new lease until it is heard of again, and is lost once until then;
//! - the inventory is an event only where it changed;
//! - there is at most one `Alive` per five minutes, so that a quiet node adds little to the log.

use super::inventory::{BadInventory, Inventory, is_line};
use crate::kernel::{Aggregate, Kind, MemberId, PoolId, Rejection};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

const NAME_LENGTH_MAX: usize = 64;
const REASON_LENGTH_MAX: usize = 200;
/// The least time between two proofs of life that are stored.
const ALIVE_EVERY: TimeDelta = TimeDelta::minutes(5);

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Node {
    #[default]
    Absent,
    /// Takes new work.
    Ready(Machine),
    /// Takes no new work.
    Draining(Machine),
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    pub pool: PoolId,
    pub name: String,
    /// SHA-256 of the agent's credential, in hex.
    pub credential: String,
    pub inventory: Inventory,
    /// The newest stored proof of life.
    pub alive_at: Option<DateTime<Utc>>,
    /// Whether it was given up and not heard of since.
    pub lost: bool,
}

#[derive(Debug, Clone)]
pub enum Command {
    Register {
        pool: PoolId,
        name: String,
        /// SHA-256 of the agent's credential, in hex.
        credential: String,
        inventory: Inventory,
    },
    ReportInventory {
        inventory: Inventory,
    },
    Drain {
        by: MemberId,
        reason: String,
    },
    Resume {
        by: MemberId,
    },
    ProveAlive {
        at: DateTime<Utc>,
    },
    /// Gives it up.
    Lose {
        /// Absent where nobody decided it: it was silent for too long.
        by: Option<MemberId>,
        reason: String,
        /// When it was last heard of, as far as that is known.
        seen_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Registered {
        pool: PoolId,
        name: String,
        credential: String,
        inventory: Inventory,
    },
    InventoryReported {
        inventory: Inventory,
    },
    Drained {
        by: MemberId,
        reason: String,
    },
    Resumed {
        by: MemberId,
    },
    Alive {
        at: DateTime<Utc>,
    },
    /// Given up; its work counts up to the last proof of its life.
    Lost {
        by: Option<MemberId>,
        reason: String,
        alive_until: DateTime<Utc>,
    },
    /// Heard of again after it was lost.
    Returned {
        at: DateTime<Utc>,
    },
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such node")]
    NotFound,
    #[error("the node already exists")]
    AlreadyExists,
    #[error("a node's name has 1 to {NAME_LENGTH_MAX} characters, no control character and no space at its ends")]
    BadName,
    #[error("a reason has 1 to {REASON_LENGTH_MAX} characters, no control character and no space at its ends")]
    BadReason,
    #[error(transparent)]
    BadInventory(#[from] BadInventory),
}

impl Node {
    /// What is known of the node, draining or not.
    pub fn machine(&self) -> Option<&Machine> {
        match self {
            Self::Absent => None,
            Self::Ready(machine) | Self::Draining(machine) => Some(machine),
        }
    }
}

impl Aggregate for Node {
    const STREAM: &'static str = "node";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Register { name, .. }) if !is_line(&name, NAME_LENGTH_MAX) => Err(Error::BadName),
            (Self::Absent, Command::Register { pool, name, credential, inventory }) => {
                inventory.check()?;
                Ok(vec![Event::Registered { pool, name, credential, inventory }])
            }
            (Self::Absent, _) => Err(Error::NotFound),
            (Self::Ready(_) | Self::Draining(_), Command::Register { .. }) => Err(Error::AlreadyExists),
            (Self::Ready(machine) | Self::Draining(machine), Command::ReportInventory { inventory }) => {
                inventory.check()?;
                let changed = machine.inventory != inventory;
                Ok(changed.then_some(Event::InventoryReported { inventory }).into_iter().collect())
            }
            (Self::Ready(machine) | Self::Draining(machine), Command::ProveAlive { at }) if machine.lost => {
                Ok(vec![Event::Returned { at }])
            }
            (Self::Ready(machine) | Self::Draining(machine), Command::Lose { by, reason, seen_at, at }) => {
                machine.lose(by, reason, machine.alive_until(seen_at, at))
            }
            (Self::Ready(machine) | Self::Draining(machine), Command::ProveAlive { at }) => {
                let due = machine.alive_at.is_none_or(|last| at.signed_duration_since(last) >= ALIVE_EVERY);
                Ok(due.then_some(Event::Alive { at }).into_iter().collect())
            }
            (Self::Ready(_), Command::Drain { reason, .. }) if !is_line(&reason, REASON_LENGTH_MAX) => {
                Err(Error::BadReason)
            }
            (Self::Ready(_), Command::Drain { by, reason }) => Ok(vec![Event::Drained { by, reason }]),
            (Self::Draining(_), Command::Resume { by }) => Ok(vec![Event::Resumed { by }]),
            (Self::Draining(_), Command::Drain { .. }) | (Self::Ready(_), Command::Resume { .. }) => Ok(vec![]),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Registered { pool, name, credential, inventory }) => Self::Ready(Machine {
                pool: *pool,
                name: name.clone(),
                credential: credential.clone(),
                inventory: inventory.clone(),
                alive_at: None,
                lost: false,
            }),
            (Self::Ready(machine) | Self::Draining(machine), Event::Drained { .. }) => Self::Draining(machine),
            (Self::Ready(machine) | Self::Draining(machine), Event::Resumed { .. }) => Self::Ready(machine),
            (Self::Ready(machine), event) => Self::Ready(machine.seen(event)),
            (Self::Draining(machine), event) => Self::Draining(machine.seen(event)),
            (Self::Absent, _) => Self::Absent,
        }
    }
}

impl Machine {
    /// The last proof of life as of an instant; a proof of a later one was given by a clock that was wrong. Without any
    /// it is the instant itself.
    fn alive_until(&self, seen_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> DateTime<Utc> {
        [self.alive_at, seen_at].into_iter().flatten().filter(|proof| *proof <= now).max().unwrap_or(now)
    }

    fn lose(&self, by: Option<MemberId>, reason: String, alive_until: DateTime<Utc>) -> Result<Vec<Event>, Error> {
        if self.lost {
            return Ok(vec![]);
        }
        if !is_line(&reason, REASON_LENGTH_MAX) {
            return Err(Error::BadReason);
        }
        Ok(vec![Event::Lost { by, reason, alive_until }])
    }

    /// After an event that leaves the node ready or draining as it was.
    fn seen(self, event: &Event) -> Self {
        match event {
            Event::InventoryReported { inventory } => Self { inventory: inventory.clone(), ..self },
            Event::Alive { at } => Self { alive_at: Some(*at), ..self },
            Event::Lost { .. } => Self { lost: true, ..self },
            Event::Returned { at } => Self { alive_at: Some(*at), lost: false, ..self },
            Event::Registered { .. } | Event::Drained { .. } | Event::Resumed { .. } => self,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "node.not_found",
            Self::AlreadyExists => "node.already_exists",
            Self::BadName => "node.bad_name",
            Self::BadReason => "node.bad_reason",
            Self::BadInventory(_) => "node.bad_inventory",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::AlreadyExists => Kind::Conflict,
            Self::BadName | Self::BadReason | Self::BadInventory(_) => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel::{Id, TenantId, fold, spec::given},
        pools::inventory::example,
    };

    fn register(name: &str, inventory: Inventory) -> Command {
        Command::Register { pool: pool(), name: name.into(), credential: "c1".into(), inventory }
    }

    fn registered() -> Event {
        Event::Registered { pool: pool(), name: "n1".into(), credential: "c1".into(), inventory: example() }
    }

    fn pool() -> PoolId {
        PoolId::derived(TenantId::PLATFORM, "main")
    }

    fn operator() -> MemberId {
        MemberId::derived(TenantId::PLATFORM, "root")
    }

    fn drained() -> Event {
        Event::Drained { by: operator(), reason: "new memory".into() }
    }

    fn alive(minutes: i64) -> Event {
        Event::Alive { at: DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes) }
    }

    #[test]
    fn is_registered_once() {
        given::<Node>([]).when(register("n1", example())).then([registered()]);
        given::<Node>([]).when(register(" n1", example())).then_refused(Error::BadName);
        given::<Node>([registered()]).when(register("n1", example())).then_refused(Error::AlreadyExists);
        let refused = Error::BadInventory(BadInventory::MemoryMib(-1));
        given::<Node>([]).when(register("n1", Inventory { memory_mib: -1, ..example() })).then_refused(refused);
    }

    #[test]
    fn reports_what_changed_only() {
        let report = |inventory| Command::ReportInventory { inventory };
        let fewer = Inventory { cards: vec![], ..example() };
        let reported = Event::InventoryReported { inventory: fewer.clone() };
        given::<Node>([registered()]).when(report(example())).then([]);
        given::<Node>([registered()]).when(report(fewer.clone())).then([reported.clone()]);
        given::<Node>([registered(), drained(), reported]).when(report(fewer)).then([]);
        given::<Node>([]).when(report(example())).then_refused(Error::NotFound);
        let refused = Error::BadInventory(BadInventory::MilliCores(0));
        given::<Node>([registered()]).when(report(Inventory { milli_cores: 0, ..example() })).then_refused(refused);
    }

    #[test]
    fn is_drained_with_a_reason_and_resumed() {
        let drain = |reason: &str| Command::Drain { by: operator(), reason: reason.into() };
        let resume = || Command::Resume { by: operator() };
        given::<Node>([registered()]).when(drain("new memory")).then([drained()]);
        given::<Node>([registered()]).when(drain("")).then_refused(Error::BadReason);
        given::<Node>([registered(), drained()]).when(drain("again")).then([]);
        given::<Node>([registered(), drained()]).when(resume()).then([Event::Resumed { by: operator() }]);
        given::<Node>([registered()]).when(resume()).then([]);
    }

    #[test]
    fn proves_its_life_every_five_minutes_at_most() {
        let prove = |seconds| Command::ProveAlive { at: DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds) };
        given::<Node>([registered()]).when(prove(0)).then([alive(0)]);
        given::<Node>([registered(), alive(0)]).when(prove(299)).then([]);
        given::<Node>([registered(), alive(0)]).when(prove(300)).then([alive(5)]);
        given::<Node>([registered(), alive(10), drained()]).when(prove(0)).then([]);
    }

    #[test]
    fn is_lost_once_with_the_last_proof_of_its_life_until_it_is_heard_of() {
        let minute = |minutes| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        let lose = |seen: Option<i64>, now| Command::Lose {
            by: None,
            reason: "silent".into(),
            seen_at: seen.map(minute),
            at: minute(now),
        };
        let lost = |minutes| Event::Lost { by: None, reason: "silent".into(), alive_until: minute(minutes) };
        let known = [registered(), alive(5)];
        given::<Node>(known.clone()).when(lose(Some(7), 20)).then([lost(7)]);
        given::<Node>(known.clone()).when(lose(None, 20)).then([lost(5)]);
        given::<Node>(known.clone()).when(lose(Some(3), 20)).then([lost(5)]);
        given::<Node>(known.clone()).when(lose(Some(30), 20)).then([lost(5)]);
        given::<Node>([registered()]).when(lose(None, 20)).then([lost(20)]);
        given::<Node>([]).when(lose(None, 20)).then_refused(Error::NotFound);
        let bad = Command::Lose { by: None, reason: " ".into(), seen_at: None, at: minute(20) };
        given::<Node>(known.clone()).when(bad).then_refused(Error::BadReason);
        let gone = [&known[..], &[lost(5)]].concat();
        given::<Node>(gone.clone()).when(lose(None, 30)).then([]);
        let back = Event::Returned { at: minute(6) };
        given::<Node>(gone.clone()).when(Command::ProveAlive { at: minute(6) }).then([back.clone()]);
        let again = [&gone[..], &[back]].concat();
        given::<Node>(again.clone()).when(Command::ProveAlive { at: minute(7) }).then([]);
        given::<Node>(again).when(lose(None, 30)).then([lost(6)]);
        let drained = fold::<Node>(&[registered(), drained(), lost(5), Event::Returned { at: minute(6) }]);
        assert!(matches!(drained, Node::Draining(_)), "what was drained comes back drained");
    }

    #[test]
    fn a_report_leaves_a_draining_node_draining() {
        let node = fold::<Node>(&[registered(), drained(), alive(0)]);
        assert!(matches!(node, Node::Draining(Machine { alive_at: Some(_), .. })));
    }
}
