//! The quota of a tenant under random commands.

use super::given::{config, give, history, one_of};
use domain::kernel::{Aggregate, JobId, Resource, TenantId, spec::member};
use domain::quota::Allowance;
use domain::quota::allowance::{Command, Event};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

pub(crate) fn commands() -> impl Strategy<Value = Vec<Command>> {
    let (tenant, resource, by) = (TenantId::PLATFORM, Resource::Core, member("wang"));
    vec(
        prop_oneof![
            1 => (-1_i64..12_000).prop_map(move |milli| {
                Command::SetCeiling { tenant, resource: resource.clone(), milli, by }
            }),
            2 => (one_of(6), -1_i64..6000).prop_map(|(order, milli)| Command::HoldOrder { order, milli }),
            1 => one_of(6).prop_map(|order| Command::ReleaseOrder { order }),
            4 => (one_of(8), -1_i64..4000).prop_map(|(job, milli)| Command::HoldJob { job, milli }),
            3 => one_of(8).prop_map(|job| Command::ReleaseJob { job }),
        ],
        1..80,
    )
}

/// Who waits and who holds, by the events alone, in the order in which they came.
#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<JobId>,
    holding: BTreeSet<JobId>,
}

impl Queue {
    /// Whether the event keeps to the order.
    fn allows(&mut self, event: &Event) -> bool {
        match event {
            Event::JobQueued { job, .. } if !self.waiting.contains(job) => self.waiting.push(*job),
            Event::JobHeld { job, .. } if self.holding.insert(*job) && !self.waiting.is_empty() => {
                return self.waiting.remove(0) == *job;
            }
            Event::JobReleased { job, .. } | Event::JobHoldRefused { job, .. } => {
                self.waiting.retain(|waiting| waiting != job);
                self.holding.remove(job);
            }
            Event::JobQueued { .. } | Event::JobHeld { .. } | Event::Opened { .. } | Event::CeilingSet { .. } => {}
            Event::OrderHeld { .. } | Event::OrderHoldRefused { .. } => {}
            Event::OrderReleased { .. } | Event::OrderReleaseRefused { .. } => {}
        }
        true
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn jobs_are_within_orders_and_orders_within_the_ceiling_at_every_event(commands in commands()) {
        let mut quota = Allowance::default();
        for command in commands {
            for event in quota.decide(command).unwrap_or_default() {
                quota = quota.evolve(&event);
                prop_assert!(0 <= quota.in_use());
                prop_assert!(quota.in_use() <= quota.ordered() && quota.ordered() <= quota.ceiling(), "{:?}", quota);
            }
        }
    }

    #[test]
    fn a_flow_is_always_answered_and_what_comes_twice_changes_nothing(commands in commands()) {
        let mut quota = Allowance::default();
        for command in commands {
            let of_flow = !matches!(command, Command::SetCeiling { .. });
            let (after, events) = give(&quota, command.clone());
            prop_assert!(!of_flow || !events.is_empty(), "{:?} was not answered", command);
            let (again, events) = give(&after, command.clone());
            prop_assert_eq!(&again, &after, "{:?} was repeated: {:?}", command, events);
            quota = after;
        }
    }

    #[test]
    fn jobs_that_wait_are_let_in_in_the_order_in_which_they_came(commands in commands()) {
        let mut queue = Queue::default();
        for event in history::<Allowance>(commands) {
            prop_assert!(queue.allows(&event), "{:?} comes before {:?}", event, queue);
        }
    }
}
