//! The scheduling loop: facts from the fleet, a plan from `scheduler-core`, the decisions into the log.
//!
//! Owns: when to plan, and recording. Does not own: which job runs where.
//! Invariants: decisions are appended at the revision that their facts were folded at, so a second scheduler that acts
//! on old facts is refused by the log and plans anew; a lost node is in the plan before anything new is placed; every waiting job's reason is kept where its owner can read it.

use crate::projector::patient;
use crate::{ControlError, Fleets};
use domain::allocation::Plan;
use domain::allocation::plan::{Command, Placement};
use domain::kernel::{CommandId, Id, JobId, Meta, TenantId};
use eventlog::{LogError, Refused};
use futures::future::FutureExt;
use kit::Kit;
use scheduler_core::{Plan as Decided, Why, plan};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The stream of all placements: one cluster, and the epoch that this version writes.
const CLUSTER: &str = "main-0";
/// How often to look again while somebody waits, for what no event tells (a node that went silent).
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Plans whenever the fleet moved and somebody waits.
pub async fn run(kit: &Kit, fleets: &Fleets) -> Result<(), ControlError> {
    let mut moved = fleets.moved();
    let mut told = Reasons::default();
    loop {
        moved.borrow_and_update();
        match told.plan_once(kit, fleets).await {
            Err(ControlError::Store(cause)) if cause.may_pass() => {
                tracing::warn!(%cause, "the runtime state is out of reach; planning again");
                sleep(LOOK_AGAIN).await;
            }
            outcome => outcome?,
        }
        let waits = {
            let fleet = fleets.now();
            fleet.anyone_waits() || fleet.unplanned_loss().is_some()
        };
        let change = moved.changed();
        if waits {
            // Time is up: look again.
            let _ = timeout(LOOK_AGAIN, change).await;
        } else if change.await.is_err() {
            return Ok(());
        }
    }
}

/// The reasons that were told, so that each is written once.
#[derive(Default)]
struct Reasons(HashMap<JobId, String>);

impl Reasons {
    async fn plan_once(&mut self, kit: &Kit, fleets: &Fleets) -> Result<(), ControlError> {
        if !losses_planned(kit, fleets).await? {
            return Ok(());
        }
        if !fleets.now().anyone_waits() {
            return self.tell(kit, &[]).await;
        }
        // An agent may speak to another server of this platform.
        for (node, at) in kit.runtime.seen().await? {
            fleets.saw(node.0, at.at());
        }
        let (mut decided, command, expected) = {
            let fleet = fleets.now();
            let decided = plan(&fleet.facts(kit.clock.now()));
            let command = Command::Record(placements(&fleet, &decided));
            (decided, command, fleet.planned())
        };
        if !decided.placements.is_empty() {
            let name = format!("plan/{CLUSTER}/{expected}/{}", decided.facts_digest);
            record(kit, fleets, Step { name, digest: decided.digest.clone(), expected }, command).await?;
        }
        decided.waiting.extend(fleets.now().waiting_for_resumption());
        self.tell(kit, &decided.waiting).await
    }

    async fn tell(&mut self, kit: &Kit, waiting: &[(JobId, Why)]) -> Result<(), ControlError> {
        let gone: Vec<JobId> =
            self.0.keys().filter(|job| !waiting.iter().any(|(waits, _)| waits == *job)).copied().collect();
        for job in gone {
            self.0.remove(&job);
            patient(|| kit.runtime.waits_no_more(job).boxed()).await?;
        }
        for (job, why) in waiting {
            let why = serde_json::to_string(why).unwrap_or_default();
            if self.0.get(job) != Some(&why) {
                patient(|| kit.runtime.waits(*job, &why, kit.clock.now()).boxed()).await?;
                self.0.insert(*job, why);
            }
        }
        Ok(())
    }
}

fn placements(fleet: &crate::Fleet, decided: &Decided) -> Vec<Placement> {
    let place = |placed: &scheduler_core::Placement| {
        Some(Placement {
            pool: fleet.pool_of(placed.node)?,
            tenant: fleet.tenant_of(placed.job)?,
            job: placed.job,
            node: placed.node,
            cards: placed.cards.clone(),
            demand: placed.demand.clone(),
            rule: placed.rule.to_string(),
            score: placed.score.to_string(),
            facts: decided.facts_digest.clone(),
        })
    };
    decided.placements.iter().filter_map(place).collect()
}

/// Puts every loss into the plan; whether all are there now.
async fn losses_planned(kit: &Kit, fleets: &Fleets) -> Result<bool, ControlError> {
    loop {
        let (loss, position, expected) = {
            let fleet = fleets.now();
            let Some((loss, position)) = fleet.unplanned_loss() else { return Ok(true) };
            (loss, position, fleet.planned())
        };
        let name = format!("plan/{CLUSTER}/lost/{}/{position}", loss.node);
        let digest = eventlog::digest(&[&name]);
        if !record(kit, fleets, Step { name, digest, expected }, Command::RecordLoss(loss)).await? {
            return Ok(false);
        }
    }
}

/// What goes into the plan: its name makes the command's id.
struct Step {
    name: String,
    digest: String,
    /// How many events the plan's stream has, as far as the facts tell.
    expected: i64,
}

/// Appends to the plan and waits until the fleet has it; whether it is there.
async fn record(kit: &Kit, fleets: &Fleets, step: Step, command: Command) -> Result<bool, ControlError> {
    let Step { name, digest, expected } = step;
    let id = CommandId::derived(TenantId::PLATFORM, &name);
    let meta = Meta {
        tenant: TenantId::PLATFORM,
        actor: "scheduler".into(),
        command: id,
        digest,
        correlation: id,
        causation: None,
        trace: None,
        occurred_at: kit.clock.now(),
    };
    match kit.executor.execute_at::<Plan>(CLUSTER, meta, command, expected).await {
        Ok(done) => {
            fleets.reached(done.position).await;
            Ok(true)
        }
        // Another scheduler was first; the fleet will tell.
        Err(Refused::Log(LogError::Moved { .. })) => Ok(false),
        Err(Refused::Log(LogError::Unreachable(cause))) => {
            tracing::warn!(cause, "a plan could not be recorded; planning again");
            sleep(LOOK_AGAIN).await;
            Ok(false)
        }
        Err(Refused::Log(error)) => Err(error.into()),
        Err(Refused::CommandReused) => Err(LogError::CommandReused.into()),
        Err(Refused::Domain(error)) => Err(LogError::Malformed(error.to_string()).into()),
    }
}
