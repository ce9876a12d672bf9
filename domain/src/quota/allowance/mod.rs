//! The quota of one tree and resource: a ceiling for each node that has one, the orders under them, the jobs under the
//! orders of their own node.
//!
//! Invariants, under any interleaving and at every node: what orders of the node and of all below it hold is within the
//! node's ceiling; what jobs hold is within the orders of their own node. An order counts against every ceiling from its
//! node up to the root; a node without a ceiling has its parent's, and a root without one may hold nothing. No ceiling
//! is set above one over it; one over it may be lowered later, and then that one counts. Holds are keyed by the order or
//! job that they are for, so that a repeated hold or release changes nothing; every command of a flow is answered by an
//! event; jobs that wait are admitted in the order in which they came to their node, never past one that came earlier.
//!
//! A node is named by its tenant, and the root by none, so that what was stored before there were trees is the root's.

mod tree;

pub use tree::Figures;

use crate::kernel::{Aggregate, JobId, Kind, MemberId, OrderId, Rejection, Resource, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tree::Tree;

const CEILING_MILLI_MAX: i64 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allowance {
    open: bool,
    tree: Tree,
    orders: BTreeMap<OrderId, OrderHold>,
    jobs: BTreeMap<JobId, JobHold>,
}

#[derive(Debug, Clone, PartialEq)]
struct OrderHold {
    milli: i64,
    below: Vec<TenantId>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct JobHold {
    milli: i64,
    node: Option<TenantId>,
}

/// `below` is the way from below the root down to the node; none for the root itself.
#[derive(Debug, Clone)]
pub enum Command {
    SetCeiling { root: TenantId, below: Vec<TenantId>, resource: Resource, milli: i64, by: MemberId },
    HoldOrder { order: OrderId, below: Vec<TenantId>, milli: i64 },
    ReleaseOrder { order: OrderId },
    HoldJob { job: JobId, below: Vec<TenantId>, milli: i64 },
    ReleaseJob { job: JobId },
}

/// All quantities in thousandths of a card or core. An absent `node` is the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Opened {
        /// The root.
        tenant: TenantId,
        resource: Resource,
    },
    CeilingSet {
        milli: i64,
        by: MemberId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<TenantId>,
    },
    OrderHeld {
        order: OrderId,
        milli: i64,
        /// The way from below the root down to the order's node.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        below: Vec<TenantId>,
    },
    OrderHoldRefused {
        order: OrderId,
        wanted_milli: i64,
        free_milli: i64,
        /// The node whose ceiling is short.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<TenantId>,
    },
    OrderReleased {
        order: OrderId,
        milli: i64,
    },
    OrderReleaseRefused {
        order: OrderId,
        in_use_milli: i64,
    },
    JobHeld {
        job: JobId,
        milli: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<TenantId>,
    },
    /// It waits until others of its node release enough.
    JobQueued {
        job: JobId,
        wanted_milli: i64,
        free_milli: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<TenantId>,
    },
    /// It is larger than all that its node has ordered.
    JobHoldRefused {
        job: JobId,
        wanted_milli: i64,
        ordered_milli: i64,
    },
    JobReleased {
        job: JobId,
        milli: i64,
    },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("a quota is from 0 to {} cards or cores", CEILING_MILLI_MAX / 1000)]
    BadCeiling,
    #[error(
        "orders of it and of all below it already hold {held_milli} thousandths; the quota cannot be set to \
         {wanted_milli} before they are returned"
    )]
    BelowHeld { held_milli: i64, wanted_milli: i64 },
    #[error(
        "the quota of `{node}` above it is {ceiling_milli} thousandths; no quota below is set above that, and \
         {wanted_milli} were asked for"
    )]
    AboveParent { node: TenantId, ceiling_milli: i64, wanted_milli: i64 },
}

impl Allowance {
    /// The root's ceiling, in thousandths.
    pub fn ceiling(&self) -> i64 {
        self.at(&[]).ceiling_milli.unwrap_or_default()
    }

    /// What active orders of the whole tree hold.
    pub fn ordered(&self) -> i64 {
        self.at(&[]).counted_milli
    }

    /// What jobs of the whole tree hold.
    pub fn in_use(&self) -> i64 {
        self.jobs.values().map(|hold| hold.milli).sum()
    }

    /// The figures of the node that this way leads to.
    pub fn at(&self, below: &[TenantId]) -> Figures {
        self.tree.figures(below.last().copied())
    }

    /// Whether a ceiling would change anything, if it may be set.
    fn may_set(&self, root: TenantId, below: &[TenantId], milli: i64) -> Result<bool, Error> {
        let known = self.at(below);
        let over = below.split_last().and_then(|(_, over)| self.tree.lowest(over));
        if !(0..=CEILING_MILLI_MAX).contains(&milli) {
            return Err(Error::BadCeiling);
        }
        if milli < known.counted_milli {
            return Err(Error::BelowHeld { held_milli: known.counted_milli, wanted_milli: milli });
        }
        if let Some((ceiling_milli, over)) = over.filter(|(ceiling, _)| milli > *ceiling) {
            return Err(Error::AboveParent { node: over.unwrap_or(root), ceiling_milli, wanted_milli: milli });
        }
        Ok(known.ceiling_milli != Some(milli))
    }

    fn hold_order(&self, order: OrderId, below: Vec<TenantId>, milli: i64) -> Vec<Event> {
        if let Some(OrderHold { milli, below }) = self.orders.get(&order).cloned() {
            return vec![Event::OrderHeld { order, milli, below }];
        }
        let (free_milli, node) = self.tree.room(&below);
        if milli > free_milli || milli <= 0 {
            return vec![Event::OrderHoldRefused { order, wanted_milli: milli, free_milli, node }];
        }
        let node = below.last().copied();
        self.with_admissions(Event::OrderHeld { order, milli, below }, node)
    }

    fn release_order(&self, order: OrderId) -> Vec<Event> {
        let (milli, below) =
            self.orders.get(&order).map_or((0, [].as_slice()), |hold| (hold.milli, hold.below.as_slice()));
        let of = self.at(below);
        if of.ordered_milli - milli < of.in_use_milli {
            return vec![Event::OrderReleaseRefused { order, in_use_milli: of.in_use_milli }];
        }
        self.with_admissions(Event::OrderReleased { order, milli }, below.last().copied())
    }

    fn hold_job(&self, job: JobId, below: &[TenantId], milli: i64) -> Event {
        if let Some(&JobHold { milli, node }) = self.jobs.get(&job) {
            return Event::JobHeld { job, milli, node };
        }
        if let Some((node, wanted_milli)) = self.tree.waits(job) {
            let free_milli = self.tree.figures(node).free_milli();
            return Event::JobQueued { job, wanted_milli, free_milli, node };
        }
        let (node, of) = (below.last().copied(), self.at(below));
        let (ordered_milli, free_milli) = (of.ordered_milli, of.free_milli());
        if milli > ordered_milli || milli <= 0 {
            Event::JobHoldRefused { job, wanted_milli: milli, ordered_milli }
        } else if milli > free_milli || of.waiting > 0 {
            Event::JobQueued { job, wanted_milli: milli, free_milli, node }
        } else {
            Event::JobHeld { job, milli, node }
        }
    }

    fn release_job(&self, job: JobId) -> Vec<Event> {
        let hold = self.jobs.get(&job);
        let node = hold.map_or_else(|| self.tree.waits(job).and_then(|(node, _)| node), |hold| hold.node);
        let milli = hold.map_or(0, |hold| hold.milli);
        self.with_admissions(Event::JobReleased { job, milli }, node)
    }

    /// A change at a node and the waiting jobs there that it lets in, or that can never fit any more.
    fn with_admissions(&self, change: Event, node: Option<TenantId>) -> Vec<Event> {
        let mut after = self.clone().evolve(&change);
        let mut events = vec![change];
        while let Some((job, milli)) = after.tree.first_waiting(node) {
            let of = after.tree.figures(node);
            let next = if milli > of.ordered_milli {
                Event::JobHoldRefused { job, wanted_milli: milli, ordered_milli: of.ordered_milli }
            } else if milli <= of.free_milli() {
                Event::JobHeld { job, milli, node }
            } else {
                break;
            };
            after = after.evolve(&next);
            events.push(next);
        }
        events
    }

    fn drop_job(&mut self, job: JobId) {
        self.tree.wait_no_more(job);
        if let Some(hold) = self.jobs.remove(&job) {
            self.tree.node(hold.node).in_use_milli -= hold.milli;
        }
    }
}

impl Aggregate for Allowance {
    const STREAM: &'static str = "quota";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match command {
            Command::SetCeiling { root, below, resource, milli, by } => {
                if !self.may_set(root, &below, milli)? {
                    return Ok(vec![]);
                }
                let opened = (!self.open).then_some(Event::Opened { tenant: root, resource });
                let set = Event::CeilingSet { milli, by, node: below.last().copied() };
                Ok(opened.into_iter().chain([set]).collect())
            }
            Command::HoldOrder { order, below, milli } => Ok(self.hold_order(order, below, milli)),
            Command::ReleaseOrder { order } => Ok(self.release_order(order)),
            Command::HoldJob { job, below, milli } => Ok(vec![self.hold_job(job, &below, milli)]),
            Command::ReleaseJob { job } => Ok(self.release_job(job)),
        }
    }

    fn evolve(mut self, event: &Event) -> Self {
        match event {
            Event::Opened { .. } => self.open = true,
            Event::CeilingSet { milli, node, .. } => self.tree.node(*node).ceiling_milli = Some(*milli),
            Event::OrderHeld { order, milli, below } => {
                let hold = OrderHold { milli: *milli, below: below.clone() };
                if let Some(before) = self.orders.insert(*order, hold) {
                    self.tree.count(&before.below, -before.milli);
                }
                self.tree.count(below, *milli);
            }
            Event::OrderReleased { order, .. } => {
                if let Some(hold) = self.orders.remove(order) {
                    self.tree.count(&hold.below, -hold.milli);
                }
            }
            Event::JobHeld { job, milli, node } => {
                self.drop_job(*job);
                self.tree.node(*node).in_use_milli += milli;
                self.jobs.insert(*job, JobHold { milli: *milli, node: *node });
            }
            Event::JobQueued { job, wanted_milli, node, .. } => self.tree.wait(*node, *job, *wanted_milli),
            Event::JobReleased { job, .. } | Event::JobHoldRefused { job, .. } => self.drop_job(*job),
            Event::OrderHoldRefused { .. } | Event::OrderReleaseRefused { .. } => {}
        }
        self
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::BadCeiling => "quota.bad_ceiling",
            Self::BelowHeld { .. } => "quota.below_held",
            Self::AboveParent { .. } => "quota.above_parent",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::BadCeiling => Kind::Invalid,
            Self::BelowHeld { .. } | Self::AboveParent { .. } => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests;
