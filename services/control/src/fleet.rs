//! The fleet as the log tells it: nodes, waiting jobs, who holds what. Facts for the scheduler and for the agents.
//!
//! Owns: the fold, and waking those who wait for it to move. Does not own: decisions, read tables.
//! Invariants: a placement takes its room from the moment it is in the log until its lease is over; what a node should
//! run changes its generation, which is the position of the change, so that it only grows and is the same after a
//! restart.

use crate::ControlError;
use crate::projector::{decode, patiently};
use agent_protocol::{Desired, DesiredLease, Work};
use chrono::{DateTime, TimeDelta, Utc};
use domain::Event;
use domain::allocation::job::{self, Spec};
use domain::allocation::{Demand, lease, plan};
use domain::flows::lease_of;
use domain::kernel::{JobId, LeaseId, NodeId, PoolId, Recorded, TenantId};
use domain::pools::{Inventory, node};
use eventlog::{Log, Subscription};
use kit::Kit;
use scheduler_core as core;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How long after its last word a node is taken for reachable.
const REACHABLE_FOR: TimeDelta = TimeDelta::seconds(30);
/// How many events are folded at once.
const PAGE: usize = 500;
/// How long work that is asked to end has before it is killed, in milliseconds.
const STOP_GRACE_MS: i64 = 10_000;

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
}

#[derive(Debug)]
struct Machine {
    pool: PoolId,
    inventory: Inventory,
    draining: bool,
    generation: i64,
    seen_at: Option<DateTime<Utc>>,
    leases: Vec<LeaseId>,
}

#[derive(Debug)]
struct Known {
    tenant: TenantId,
    spec: Spec,
    submitted_position: i64,
    cancelled: bool,
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

/// The fleet, shared; wakes those who wait.
#[derive(Debug, Clone, Default)]
pub struct Fleets {
    fleet: Arc<Mutex<Fleet>>,
    moved: watch::Sender<i64>,
}

impl Fleets {
    /// The fleet with all that the log has now. Agents are served only from then on: an older fleet would ask them to
    /// run what is over.
    pub async fn caught_up(log: &Log) -> Result<Self, ControlError> {
        let fleets = Self::default();
        loop {
            let from = fleets.position();
            let page = log.read_all(from, PAGE).await?;
            if page.is_empty() {
                return Ok(fleets);
            }
            fleets.fold(&page)?;
        }
    }

    fn fold(&self, page: &[Recorded]) -> Result<(), ControlError> {
        let events = decode(page)?;
        {
            let mut fleet = self.now();
            for (stored, event) in page.iter().zip(&events) {
                fleet.apply(stored, event.as_ref());
            }
        }
        self.wake();
        Ok(())
    }

    /// The fleet now. Nobody may wait while holding it.
    pub(crate) fn now(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position of the last event that the fleet has.
    pub fn position(&self) -> i64 {
        self.now().position
    }

    /// Wakes whenever the fleet moved.
    pub(crate) fn moved(&self) -> watch::Receiver<i64> {
        self.moved.subscribe()
    }

    /// Waits until the fleet has this position.
    pub(crate) async fn reached(&self, position: i64) {
        // The sender lives as long as this does.
        let _ = self.moved.subscribe().wait_for(|at| *at >= position).await;
    }

    fn wake(&self) {
        let position = self.now().position;
        self.moved.send_replace(position);
    }

    /// A node was heard of.
    pub(crate) fn saw(&self, node: NodeId, at: DateTime<Utc>) {
        let came_back = {
            let mut fleet = self.now();
            let Some(machine) = fleet.nodes.get_mut(&node) else { return };
            let came_back = !machine.reachable(at);
            machine.seen_at = Some(at);
            came_back
        };
        if came_back {
            self.wake();
        }
    }
}

/// Folds what comes.
pub(crate) async fn follow(kit: &Kit, fleets: &Fleets) -> Result<(), ControlError> {
    let from = fleets.position();
    let mut log = Subscription::after(kit.executor.log().clone(), from);
    loop {
        let page = patiently(&mut log).await?;
        fleets.fold(&page)?;
    }
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
            Some(Event::Plan(plan::Event::Placed(placement))) => self.place(stored, placement),
            Some(Event::Lease(event)) => self.of_lease(stored, event),
            _ => {}
        }
    }

    fn of_node(&mut self, stored: &Recorded, event: &node::Event) {
        let Ok(id) = stored.stream.key().parse::<NodeId>() else { return };
        if let node::Event::Registered { pool, inventory, .. } = event {
            let (pool, inventory, generation) = (*pool, inventory.clone(), stored.position);
            let machine = Machine { pool, inventory, draining: false, generation, seen_at: None, leases: vec![] };
            self.nodes.insert(id, machine);
        }
        let Some(machine) = self.nodes.get_mut(&id) else { return };
        match event {
            node::Event::InventoryReported { inventory } => machine.inventory = inventory.clone(),
            node::Event::Drained { .. } => machine.draining = true,
            node::Event::Resumed { .. } => machine.draining = false,
            node::Event::Registered { .. } | node::Event::Alive { .. } => {}
        }
    }

    fn of_job(&mut self, stored: &Recorded, event: &job::Event) {
        let Ok(id) = stored.stream.key().parse::<JobId>() else { return };
        match event {
            job::Event::Submitted(submission) => {
                let (tenant, spec, submitted_position) = (submission.tenant, submission.spec.clone(), stored.position);
                self.jobs.insert(id, Known { tenant, spec, submitted_position, cancelled: false });
            }
            job::Event::Admitted => {
                if let Some(job) = self.jobs.get(&id) {
                    self.waiting.insert(id, job.submitted_position);
                }
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
                if !self.leases.values().any(|held| held.job == id) {
                    self.jobs.remove(&id);
                }
            }
            job::Event::QuotaQueued { .. } | job::Event::AdmissionVoided | job::Event::PlacementVoided { .. } => {}
        }
    }

    fn place(&mut self, stored: &Recorded, placement: &plan::Placement) {
        self.planned = stored.revision + 1;
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
                if !self.waiting.contains_key(&held.job) {
                    self.jobs.remove(&held.job);
                }
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

    fn touch(&mut self, stored: &Recorded, node: NodeId) {
        if let Some(machine) = self.nodes.get_mut(&node) {
            machine.generation = stored.position;
        }
    }

    /// The position of the last event that was folded.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// How many placements the plan's stream has.
    pub(crate) fn planned(&self) -> i64 {
        self.planned
    }

    /// Whether any job waits for a place.
    pub(crate) fn anyone_waits(&self) -> bool {
        !self.waiting.is_empty()
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
        Some(Desired { generation: machine.generation, leases })
    }

    fn desired_lease(&self, lease: LeaseId) -> Option<DesiredLease> {
        let held = self.leases.get(&lease).filter(|held| held.phase != Phase::Placed)?;
        let job = self.jobs.get(&held.job)?;
        let work = Work {
            command: job.spec.command.clone(),
            env: job.spec.env.clone(),
            folder: job.spec.folder.clone(),
            time_limit_s: job.spec.time_limit_s,
            milli_cores: held.demand.milli_cores,
            memory_mib: held.demand.memory_mib,
            cards: held.cards.clone(),
        };
        let stop_after_ms = job.cancelled.then_some(STOP_GRACE_MS);
        Some(DesiredLease { lease, generation: held.generation, job: held.job, work, stop_after_ms })
    }

    /// What the scheduler needs to know.
    pub fn facts(&self, now: DateTime<Utc>) -> core::Facts {
        let nodes = self.nodes.iter().map(|(id, machine)| self.node_facts(*id, machine, now)).collect();
        let queue = self
            .waiting
            .iter()
            .filter_map(|(id, submitted_position)| {
                let job = self.jobs.get(id)?;
                let (demand, submitted_position) = (job.spec.demand.clone(), *submitted_position);
                Some(core::Job { id: *id, tenant: job.tenant, submitted_position, priority: 0, demand })
            })
            .collect();
        core::Facts { now_ms: now.timestamp_millis(), nodes, queue }
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
        } else if machine.reachable(now) {
            core::Readiness::Ready
        } else {
            core::Readiness::Unreachable
        };
        core::Node { id, ready, free, total }
    }
}
