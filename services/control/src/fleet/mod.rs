//! The fleet as the log tells it: nodes, waiting jobs, who holds what. Facts for the scheduler and for the agents.
//!
//! Owns: the fold. Does not own: sharing it (`fleets`), decisions, read tables.
//! Invariants: a placement takes its room from the moment it is in the log until its lease is over; what a node should
//! run changes its generation, which is the position of the change, so that it only grows and is the same after a
//! restart; a lost node's leases take their room until each is over; what a job that may start again keeps on a node is
//! kept there until the job's end.

use agent_protocol::{Desired, DesiredLease, Work};
use chrono::{DateTime, TimeDelta, Utc};
use domain::Event;
use domain::allocation::job::{self, Spec};
use domain::allocation::{Demand, lease, plan};
use domain::flows::lease_of;
use domain::kernel::{Ancestors, JobId, LeaseId, NodeId, PoolId, Recorded, TenantId};
use domain::pools::{Inventory, node};
use std::collections::{BTreeMap, BTreeSet, HashMap};

mod facts;

/// How long after its last word a node is taken for reachable.
const REACHABLE_FOR: TimeDelta = TimeDelta::seconds(30);
/// How long work that is asked to end has before it is killed, in milliseconds.
const STOP_GRACE_MS: i64 = 10_000;
/// The variable that tells a job how often it was started again.
const RESTART: &str = "KASHI_RESTART";

/// The fleet.
#[derive(Debug, Default)]
pub struct Fleet {
    position: i64,
    /// How many events the plan's stream has.
    planned: i64,
    nodes: BTreeMap<NodeId, Machine>,
    jobs: HashMap<JobId, Known>,
    waiting: BTreeMap<JobId, i64>,
    leases: HashMap<LeaseId, Held>,
    /// The tenants that are suspended themselves; all below them are with them.
    suspended: BTreeSet<TenantId>,
}

#[derive(Debug)]
struct Machine {
    pool: PoolId,
    inventory: Inventory,
    draining: bool,
    /// Given up and not heard of since.
    lost: bool,
    /// A loss that is not in the plan's stream yet.
    unplanned_loss: Option<Loss>,
    /// The newest stored proof of life.
    alive_at: Option<DateTime<Utc>>,
    generation: i64,
    seen_at: Option<DateTime<Utc>>,
    leases: Vec<LeaseId>,
    /// The jobs that have been placed here and are not over.
    jobs: BTreeSet<JobId>,
}

#[derive(Debug)]
struct Known {
    tenant: TenantId,
    above: Ancestors,
    spec: Spec,
    submitted_position: i64,
    cancelled: bool,
    ended: bool,
    restarted: u32,
    /// Where it has been placed.
    nodes: BTreeSet<NodeId>,
}

/// A node's loss, as its own stream tells it.
#[derive(Debug, Clone, Copy)]
struct Loss {
    position: i64,
    alive_until: DateTime<Utc>,
}

#[derive(Debug)]
struct Held {
    job: JobId,
    node: NodeId,
    cards: Vec<u32>,
    demand: Demand,
    generation: i64,
    phase: Phase,
}

/// How far a lease has come, as the log tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is decided, and the job has not taken it yet.
    Placed,
    /// Its node should run it.
    Desired,
    /// Its node runs it.
    Running,
}

/// What tells whether a node is still there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vital {
    pub(crate) node: NodeId,
    /// When it last spoke to this process.
    pub(crate) seen_at: Option<DateTime<Utc>>,
    /// The newest stored proof of life.
    pub(crate) alive_at: Option<DateTime<Utc>>,
}

impl Machine {
    fn reachable(&self, now: DateTime<Utc>) -> bool {
        self.seen_at.is_some_and(|seen| now - seen <= REACHABLE_FOR)
    }
}

impl Fleet {
    /// One event later.
    pub fn apply(&mut self, stored: &Recorded, event: Option<&Event>) {
        self.position = stored.position;
        match event {
            Some(Event::Node(event)) => self.of_node(stored, event),
            Some(Event::Job(event)) => self.of_job(stored, event),
            Some(Event::Plan(event)) => self.of_plan(stored, event),
            Some(Event::Lease(event)) => self.of_lease(stored, event),
            Some(Event::Tenant(event)) => self.of_tenant(stored, event),
            _ => {}
        }
    }

    fn of_node(&mut self, stored: &Recorded, event: &node::Event) {
        let Ok(id) = stored.stream.key().parse::<NodeId>() else { return };
        if let node::Event::Registered { pool, inventory, .. } = event {
            let (pool, inventory, generation) = (*pool, inventory.clone(), stored.position);
            let machine = Machine {
                pool,
                inventory,
                draining: false,
                lost: false,
                unplanned_loss: None,
                alive_at: None,
                generation,
                seen_at: None,
                leases: vec![],
                jobs: BTreeSet::new(),
            };
            self.nodes.insert(id, machine);
        }
        let Some(machine) = self.nodes.get_mut(&id) else { return };
        match event {
            node::Event::InventoryReported { inventory } => machine.inventory = inventory.clone(),
            node::Event::Drained { .. } => machine.draining = true,
            node::Event::Resumed { .. } => machine.draining = false,
            node::Event::Alive { at } => machine.alive_at = Some(*at),
            node::Event::Lost { alive_until, .. } => {
                machine.lost = true;
                machine.unplanned_loss = Some(Loss { position: stored.position, alive_until: *alive_until });
            }
            node::Event::Returned { at } => (machine.lost, machine.alive_at) = (false, Some(*at)),
            node::Event::Registered { .. } => {}
        }
    }

    fn of_job(&mut self, stored: &Recorded, event: &job::Event) {
        let Ok(id) = stored.stream.key().parse::<JobId>() else { return };
        match event {
            job::Event::Submitted(submission) => {
                let (tenant, spec, submitted_position) = (submission.tenant, submission.spec.clone(), stored.position);
                let above = submission.above.clone();
                let (cancelled, ended, restarted, nodes) = (false, false, 0, BTreeSet::new());
                self.jobs
                    .insert(id, Known { tenant, above, spec, submitted_position, cancelled, ended, restarted, nodes });
            }
            job::Event::Admitted => self.wait(id),
            job::Event::Requeued { .. } => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.restarted += 1;
                }
                self.wait(id);
            }
            job::Event::Placed { lease, .. } => self.change(stored, *lease, Phase::Desired),
            job::Event::Started { lease, .. } => self.change(stored, *lease, Phase::Running),
            job::Event::CancelRequested { .. } => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.cancelled = true;
                }
                if let Some(node) = self.leases.values().find(|held| held.job == id).map(|held| held.node) {
                    self.touch(stored, node);
                }
            }
            job::Event::Ended { .. } => {
                self.waiting.remove(&id);
                let Some(job) = self.jobs.get_mut(&id) else { return };
                job.ended = true;
                for node in std::mem::take(&mut job.nodes) {
                    // What it kept there may go.
                    self.touch(stored, node).map(|machine| machine.jobs.remove(&id));
                }
                self.forget(id);
            }
            job::Event::QuotaQueued { .. } | job::Event::AdmissionVoided | job::Event::PlacementVoided { .. } => {}
        }
    }

    fn wait(&mut self, job: JobId) {
        if let Some(known) = self.jobs.get(&job) {
            self.waiting.insert(job, known.submitted_position);
        }
    }

    /// A job that is over and holds nothing any more.
    fn forget(&mut self, job: JobId) {
        let over = self.jobs.get(&job).is_some_and(|known| known.ended);
        if over && !self.leases.values().any(|held| held.job == job) {
            self.jobs.remove(&job);
        }
    }

    fn of_plan(&mut self, stored: &Recorded, event: &plan::Event) {
        self.planned = stored.revision + 1;
        match event {
            plan::Event::Placed(placement) => self.place(stored, placement),
            plan::Event::NodeLost(loss) => {
                if let Some(machine) = self.nodes.get_mut(&loss.node) {
                    machine.unplanned_loss = None;
                }
            }
        }
    }

    fn place(&mut self, stored: &Recorded, placement: &plan::Placement) {
        self.waiting.remove(&placement.job);
        let lease = lease_of(stored);
        let held = Held {
            job: placement.job,
            node: placement.node,
            cards: placement.cards.clone(),
            demand: placement.demand.clone(),
            generation: stored.position,
            phase: Phase::Placed,
        };
        self.leases.insert(lease, held);
        if let Some(machine) = self.nodes.get_mut(&placement.node) {
            machine.leases.push(lease);
            if let Some(job) = self.jobs.get_mut(&placement.job).filter(|job| !job.ended) {
                machine.jobs.insert(placement.job);
                job.nodes.insert(placement.node);
            }
        }
    }

    fn of_lease(&mut self, stored: &Recorded, event: &lease::Event) {
        let Ok(id) = stored.stream.key().parse::<LeaseId>() else { return };
        match event {
            lease::Event::Granted(_) => {}
            lease::Event::Started { .. } => self.change(stored, id, Phase::Running),
            lease::Event::Ended { .. } | lease::Event::Voided => {
                let Some(held) = self.leases.remove(&id) else { return };
                if let Some(machine) = self.nodes.get_mut(&held.node) {
                    machine.leases.retain(|lease| *lease != id);
                }
                self.touch(stored, held.node);
                self.forget(held.job);
            }
        }
    }

    fn change(&mut self, stored: &Recorded, lease: LeaseId, phase: Phase) {
        let Some(held) = self.leases.get_mut(&lease) else { return };
        let news = held.phase == Phase::Placed;
        held.phase = phase;
        let node = held.node;
        if news {
            self.touch(stored, node);
        }
    }

    fn touch(&mut self, stored: &Recorded, node: NodeId) -> Option<&mut Machine> {
        let machine = self.nodes.get_mut(&node)?;
        machine.generation = stored.position;
        Some(machine)
    }

    /// The position of the last event that was folded.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// How many events the plan's stream has.
    pub(crate) fn planned(&self) -> i64 {
        self.planned
    }

    /// Whether there is anything to plan.
    pub(crate) fn anyone_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A loss that the plan's stream does not have yet: what was placed on the node, and where its own stream tells it.
    pub(crate) fn unplanned_loss(&self) -> Option<(plan::Loss, i64)> {
        self.nodes.iter().find_map(|(node, machine)| {
            let Loss { position, alive_until } = machine.unplanned_loss?;
            Some((plan::Loss { node: *node, alive_until, leases: machine.leases.clone() }, position))
        })
    }

    /// The nodes that are not lost.
    pub(crate) fn vitals(&self) -> Vec<Vital> {
        let here = self.nodes.iter().filter(|(_, machine)| !machine.lost);
        here.map(|(node, of)| Vital { node: *node, seen_at: of.seen_at, alive_at: of.alive_at }).collect()
    }

    /// A node was heard of; whether it was out of reach before.
    pub(crate) fn saw(&mut self, node: NodeId, at: DateTime<Utc>) -> bool {
        let Some(machine) = self.nodes.get_mut(&node) else { return false };
        let came_back = !machine.reachable(at);
        machine.seen_at = machine.seen_at.max(Some(at));
        came_back
    }

    /// Whose a job is, for the placement that is recorded.
    pub(crate) fn tenant_of(&self, job: JobId) -> Option<TenantId> {
        self.jobs.get(&job).map(|job| job.tenant)
    }

    /// The pool of a node.
    pub(crate) fn pool_of(&self, node: NodeId) -> Option<PoolId> {
        self.nodes.get(&node).map(|machine| machine.pool)
    }

    /// What the log says of a lease of this node, with its generation.
    pub(crate) fn lease_of_node(&self, node: NodeId, lease: LeaseId) -> Option<(Phase, i64)> {
        self.leases.get(&lease).filter(|held| held.node == node).map(|held| (held.phase, held.generation))
    }

    /// What a node is known to have. `None`: no such node.
    pub(crate) fn inventory(&self, node: NodeId) -> Option<&Inventory> {
        self.nodes.get(&node).map(|machine| &machine.inventory)
    }

    /// All that a node should run. `None`: no such node.
    pub fn desired(&self, node: NodeId) -> Option<Desired> {
        let machine = self.nodes.get(&node)?;
        let leases = machine.leases.iter().filter_map(|id| self.desired_lease(*id)).collect();
        Some(Desired { generation: machine.generation, leases, jobs: machine.jobs.iter().copied().collect() })
    }

    fn desired_lease(&self, lease: LeaseId) -> Option<DesiredLease> {
        let held = self.leases.get(&lease).filter(|held| held.phase != Phase::Placed)?;
        let job = self.jobs.get(&held.job)?;
        let mut env = job.spec.env.clone();
        if job.restarted > 0 {
            env.insert(RESTART.into(), job.restarted.to_string());
        }
        let work = Work {
            command: job.spec.command.clone(),
            env,
            folder: job.spec.folder.clone(),
            time_limit_s: job.spec.time_limit_s,
            milli_cores: held.demand.milli_cores,
            memory_mib: held.demand.memory_mib,
            cards: held.cards.clone(),
        };
        let stop_after_ms = job.cancelled.then_some(STOP_GRACE_MS);
        Some(DesiredLease { lease, generation: held.generation, job: held.job, work, stop_after_ms })
    }
}
