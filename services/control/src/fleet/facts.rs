//! The fleet as the scheduler is told of it.
//!
//! Owns: what is free of each node, who waits for a place, and who waits because of a suspension. Does not own: the plan
//! (`scheduler-core`).
//! Invariants: what a placement took is not free until its lease is over, whatever became of its node; a job of a
//! suspended tenant, or below one, is not in the scheduler's queue.

use super::{Fleet, Known, Machine};
use chrono::{DateTime, Utc};
use domain::identity::tenant;
use domain::kernel::{JobId, NodeId, Recorded, TenantId};
use scheduler_core as core;

impl Fleet {
    /// What the scheduler needs to know.
    pub fn facts(&self, now: DateTime<Utc>) -> core::Facts {
        let nodes = self.nodes.iter().map(|(id, machine)| self.node_facts(*id, machine, now)).collect();
        let queue = self
            .waiting
            .iter()
            .filter_map(|(id, submitted_position)| {
                let job = self.jobs.get(id).filter(|job| self.suspends(job).is_none())?;
                let (demand, submitted_position) = (job.spec.demand.clone(), *submitted_position);
                Some(core::Job { id: *id, tenant: job.tenant, submitted_position, priority: 0, demand })
            })
            .collect();
        core::Facts { now_ms: now.timestamp_millis(), nodes, queue }
    }

    /// Those who wait and are not in the queue.
    pub(crate) fn waiting_for_resumption(&self) -> Vec<(JobId, core::Why)> {
        let waiting = self.waiting.keys().filter_map(|id| Some((*id, self.suspends(self.jobs.get(id)?)?)));
        waiting.map(|(id, tenant)| (id, core::Why::TenantSuspended { tenant })).collect()
    }

    /// The suspended tenant because of which a job waits.
    fn suspends(&self, job: &Known) -> Option<TenantId> {
        job.above.upwards(job.tenant).find(|node| self.suspended.contains(node))
    }

    pub(super) fn of_tenant(&mut self, stored: &Recorded, event: &tenant::Event) {
        let Ok(id) = stored.stream.key().parse::<TenantId>() else { return };
        match event {
            tenant::Event::Suspended { .. } => {
                self.suspended.insert(id);
            }
            tenant::Event::Resumed { .. } => {
                self.suspended.remove(&id);
            }
            tenant::Event::Created { .. } | tenant::Event::SetupOpened { .. } | tenant::Event::SetupUsed { .. } => {}
        }
    }

    fn node_facts(&self, id: NodeId, machine: &Machine, now: DateTime<Utc>) -> core::Node {
        let stock = &machine.inventory;
        let cards = stock.cards.iter().map(|card| core::FreeCard { index: card.index, model: card.model.clone() });
        let total = core::Room { milli_cores: stock.milli_cores, memory_mib: stock.memory_mib, cards: cards.collect() };
        let mut free = total.clone();
        for held in machine.leases.iter().filter_map(|lease| self.leases.get(lease)) {
            free.milli_cores -= held.demand.milli_cores;
            free.memory_mib -= held.demand.memory_mib;
            free.cards.retain(|card| !held.cards.contains(&card.index));
        }
        let ready = if machine.draining {
            core::Readiness::Drained
        } else if !machine.lost && machine.reachable(now) {
            core::Readiness::Ready
        } else {
            core::Readiness::Unreachable
        };
        core::Node { id, ready, free, total }
    }
}
