//! The quota of one tenant and resource: a ceiling, the orders under it, the jobs under the orders.
//!
//! Invariants: `jobs held <= orders held <= ceiling` under any interleaving; holds are keyed by the order or job that
//! they are for, so that a repeated hold or release changes nothing; every command of a flow is answered by an event;
//! jobs that wait are admitted in the order in which they came, never past one that came earlier.

use crate::kernel::{Aggregate, JobId, Kind, MemberId, OrderId, Rejection, Resource, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

const CEILING_MILLI_MAX: i64 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allowance {
    open: bool,
    ceiling: i64,
    orders: BTreeMap<OrderId, i64>,
    jobs: BTreeMap<JobId, i64>,
    waiting: VecDeque<(JobId, i64)>,
}

#[derive(Debug, Clone)]
pub enum Command {
    SetCeiling { tenant: TenantId, resource: Resource, milli: i64, by: MemberId },
    HoldOrder { order: OrderId, milli: i64 },
    ReleaseOrder { order: OrderId },
    HoldJob { job: JobId, milli: i64 },
    ReleaseJob { job: JobId },
}

/// All quantities in thousandths of a card or core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Opened {
        tenant: TenantId,
        resource: Resource,
    },
    CeilingSet {
        milli: i64,
        by: MemberId,
    },
    OrderHeld {
        order: OrderId,
        milli: i64,
    },
    OrderHoldRefused {
        order: OrderId,
        wanted_milli: i64,
        free_milli: i64,
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
    },
    /// It waits until others release enough.
    JobQueued {
        job: JobId,
        wanted_milli: i64,
        free_milli: i64,
    },
    /// It is larger than all that the tenant has ordered.
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
        "orders already hold {held_milli} thousandths; the quota cannot be set to {wanted_milli} before they are returned"
    )]
    BelowHeld { held_milli: i64, wanted_milli: i64 },
}

impl Allowance {
    /// The ceiling, in thousandths.
    pub fn ceiling(&self) -> i64 {
        self.ceiling
    }

    /// What active orders hold: what jobs may use at most.
    pub fn ordered(&self) -> i64 {
        self.orders.values().sum()
    }

    /// What jobs hold.
    pub fn in_use(&self) -> i64 {
        self.jobs.values().sum()
    }

    /// A change and the waiting jobs that it lets in, or that can never fit any more.
    fn with_admissions(&self, change: Vec<Event>) -> Vec<Event> {
        let mut after = change.iter().fold(self.clone(), Self::evolve);
        let mut events = change;
        while let Some(&(job, milli)) = after.waiting.front() {
            let ordered_milli = after.ordered();
            let next = if milli > ordered_milli {
                Event::JobHoldRefused { job, wanted_milli: milli, ordered_milli }
            } else if milli <= ordered_milli - after.in_use() {
                Event::JobHeld { job, milli }
            } else {
                break;
            };
            after = after.evolve(&next);
            events.push(next);
        }
        events
    }

    fn hold_job(&self, job: JobId, milli: i64) -> Vec<Event> {
        let (ordered_milli, free_milli) = (self.ordered(), self.ordered() - self.in_use());
        if let Some(&milli) = self.jobs.get(&job) {
            vec![Event::JobHeld { job, milli }]
        } else if let Some(&(_, wanted_milli)) = self.waiting.iter().find(|(waiting, _)| *waiting == job) {
            vec![Event::JobQueued { job, wanted_milli, free_milli }]
        } else if milli > ordered_milli || milli <= 0 {
            vec![Event::JobHoldRefused { job, wanted_milli: milli, ordered_milli }]
        } else if milli > free_milli || !self.waiting.is_empty() {
            vec![Event::JobQueued { job, wanted_milli: milli, free_milli }]
        } else {
            vec![Event::JobHeld { job, milli }]
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
            Command::SetCeiling { milli, .. } if !(0..=CEILING_MILLI_MAX).contains(&milli) => Err(Error::BadCeiling),
            Command::SetCeiling { milli, .. } if milli < self.ordered() => {
                Err(Error::BelowHeld { held_milli: self.ordered(), wanted_milli: milli })
            }
            Command::SetCeiling { milli, .. } if self.open && milli == self.ceiling => Ok(vec![]),
            Command::SetCeiling { tenant, resource, milli, by } => {
                let opened = (!self.open).then_some(Event::Opened { tenant, resource });
                Ok(opened.into_iter().chain([Event::CeilingSet { milli, by }]).collect())
            }
            Command::HoldOrder { order, milli } => {
                let free_milli = self.ceiling - self.ordered();
                Ok(match self.orders.get(&order) {
                    Some(&milli) => vec![Event::OrderHeld { order, milli }],
                    None if milli > free_milli || milli <= 0 => {
                        vec![Event::OrderHoldRefused { order, wanted_milli: milli, free_milli }]
                    }
                    None => self.with_admissions(vec![Event::OrderHeld { order, milli }]),
                })
            }
            Command::ReleaseOrder { order } => {
                let milli = self.orders.get(&order).copied().unwrap_or_default();
                let in_use_milli = self.in_use();
                if self.ordered() - milli < in_use_milli {
                    return Ok(vec![Event::OrderReleaseRefused { order, in_use_milli }]);
                }
                Ok(self.with_admissions(vec![Event::OrderReleased { order, milli }]))
            }
            Command::HoldJob { job, milli } => Ok(self.hold_job(job, milli)),
            Command::ReleaseJob { job } => {
                let milli = self.jobs.get(&job).copied().unwrap_or_default();
                Ok(self.with_admissions(vec![Event::JobReleased { job, milli }]))
            }
        }
    }

    fn evolve(mut self, event: &Event) -> Self {
        match event {
            Event::Opened { .. } => self.open = true,
            Event::CeilingSet { milli, .. } => self.ceiling = *milli,
            Event::OrderHeld { order, milli } => {
                self.orders.insert(*order, *milli);
            }
            Event::OrderReleased { order, .. } => {
                self.orders.remove(order);
            }
            Event::JobHeld { job, milli } => {
                self.waiting.retain(|(waiting, _)| waiting != job);
                self.jobs.insert(*job, *milli);
            }
            Event::JobQueued { job, wanted_milli, .. } => {
                // Who asks again keeps the place.
                if !self.waiting.iter().any(|(waiting, _)| waiting == job) {
                    self.waiting.push_back((*job, *wanted_milli));
                }
            }
            Event::JobReleased { job, .. } | Event::JobHoldRefused { job, .. } => {
                self.waiting.retain(|(waiting, _)| waiting != job);
                self.jobs.remove(job);
            }
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
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::BadCeiling => Kind::Invalid,
            Self::BelowHeld { .. } => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::{given, member};
    use crate::kernel::{Id, MILLI};

    fn order(name: &str) -> OrderId {
        Id::derived(TenantId::PLATFORM, name)
    }

    fn job(name: &str) -> JobId {
        Id::derived(TenantId::PLATFORM, name)
    }

    fn ceiling(units: i64) -> Event {
        Event::CeilingSet { milli: units * MILLI, by: member("wang") }
    }

    fn ordered(units: i64) -> Event {
        Event::OrderHeld { order: order("o"), milli: units * MILLI }
    }

    fn held(name: &str, units: i64) -> Event {
        Event::JobHeld { job: job(name), milli: units * MILLI }
    }

    fn queued(name: &str, units: i64, free: i64) -> Event {
        Event::JobQueued { job: job(name), wanted_milli: units * MILLI, free_milli: free * MILLI }
    }

    fn hold(name: &str, units: i64) -> Command {
        Command::HoldJob { job: job(name), milli: units * MILLI }
    }

    #[test]
    fn admits_orders_up_to_the_ceiling() {
        let ask = |name: &str, units: i64| Command::HoldOrder { order: order(name), milli: units * MILLI };
        given::<Allowance>([ceiling(10)]).when(ask("o", 10)).then([ordered(10)]);
        let refused = |wanted, free| Event::OrderHoldRefused {
            order: order("p"),
            wanted_milli: wanted * MILLI,
            free_milli: free * MILLI,
        };
        given::<Allowance>([ceiling(10), ordered(10)]).when(ask("p", 1)).then([refused(1, 0)]);
        given::<Allowance>([]).when(ask("p", 1)).then([refused(1, 0)]);
        given::<Allowance>([ceiling(10)]).when(ask("p", 0)).then([refused(0, 10)]);
    }

    #[test]
    fn a_hold_that_comes_twice_is_held_once() {
        let again = Command::HoldOrder { order: order("o"), milli: 10 * MILLI };
        given::<Allowance>([ceiling(10), ordered(10)]).when(again).then([ordered(10)]);
        given::<Allowance>([ceiling(10), ordered(2), held("a", 2)]).when(hold("a", 2)).then([held("a", 2)]);
    }

    #[test]
    fn jobs_wait_in_order_and_are_let_in_when_there_is_room() {
        let history = [ceiling(10), ordered(4), held("a", 3), queued("b", 2, 1)];
        given::<Allowance>(history.clone()).when(hold("c", 1)).then([queued("c", 1, 1)]);
        given::<Allowance>([&history[..], &[queued("c", 1, 1)]].concat()).when(hold("b", 1)).then([queued("b", 2, 1)]);
        let released = Event::JobReleased { job: job("a"), milli: 3 * MILLI };
        let both = [&history[..], &[queued("c", 1, 1), queued("b", 2, 1)]].concat();
        given::<Allowance>(both).when(Command::ReleaseJob { job: job("a") }).then([
            released,
            held("b", 2),
            held("c", 1),
        ]);
    }

    #[test]
    fn a_job_that_can_never_fit_is_refused() {
        let refused = Event::JobHoldRefused { job: job("a"), wanted_milli: 5 * MILLI, ordered_milli: 4 * MILLI };
        given::<Allowance>([ceiling(10), ordered(4)]).when(hold("a", 5)).then([refused]);
    }

    #[test]
    fn what_is_in_use_is_not_returned() {
        let back = Command::ReleaseOrder { order: order("o") };
        let used = Event::OrderReleaseRefused { order: order("o"), in_use_milli: 3 * MILLI };
        given::<Allowance>([ceiling(10), ordered(4), held("a", 3)]).when(back.clone()).then([used]);
        let released = Event::OrderReleased { order: order("o"), milli: 4 * MILLI };
        given::<Allowance>([ceiling(10), ordered(4)]).when(back).then([released]);
    }

    #[test]
    fn the_ceiling_is_sane_and_not_below_what_is_held() {
        let set = |milli| Command::SetCeiling {
            tenant: TenantId::PLATFORM,
            resource: Resource::Core,
            milli,
            by: member("wang"),
        };
        given::<Allowance>([]).when(set(-1)).then_refused(Error::BadCeiling);
        given::<Allowance>([ceiling(10), ordered(4)])
            .when(set(3000))
            .then_refused(Error::BelowHeld { held_milli: 4000, wanted_milli: 3000 });
        given::<Allowance>([])
            .when(set(10_000))
            .then([Event::Opened { tenant: TenantId::PLATFORM, resource: Resource::Core }, ceiling(10)]);
    }
}
