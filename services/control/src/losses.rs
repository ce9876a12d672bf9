//! Nodes that are silent for too long are given up.
//!
//! Owns: when. Does not own: what follows (`domain::flows`), recording it before new placements (`schedule`).
//! Invariants: silence counts only while this process listened: not before its start, nor while it stood still or its
//! clock jumped; a node is given up with the last proof of its life, and one loss is one command.

use crate::periods::{Step, give_at};
use crate::{ControlError, Fleets};
use chrono::{DateTime, TimeDelta, Utc};
use domain::kernel::{NodeId, TenantId};
use domain::pools::{Node, node};
use kit::Kit;
use std::collections::HashMap;
use std::time::Duration;

/// How often to look.
const EVERY: Duration = Duration::from_secs(5);
/// How long a node may be silent, unless it is said.
pub const SILENCE_MAX: TimeDelta = TimeDelta::minutes(10);

/// Who listens for nodes, and since when.
#[derive(Debug)]
pub struct Watch {
    silence_max: TimeDelta,
    /// Since when it has listened without a break.
    since: DateTime<Utc>,
    looked_at: DateTime<Utc>,
}

impl Watch {
    /// One that begins to listen now and gives up whoever is silent for longer than this.
    pub fn new(kit: &Kit, silence_max: TimeDelta) -> Self {
        let now = kit.clock.now();
        Self { silence_max, since: now, looked_at: now }
    }

    /// Looks once. Returns the nodes that were given up.
    pub async fn look(&mut self, kit: &Kit, fleets: &Fleets) -> Result<Vec<NodeId>, ControlError> {
        let now = kit.clock.now();
        let pause = now - self.looked_at;
        if pause < TimeDelta::zero() || pause > self.silence_max / 2 {
            self.since = now;
        }
        self.looked_at = now;
        let vitals = fleets.now().vitals();
        if vitals.is_empty() {
            return Ok(vec![]);
        }
        let seen: HashMap<_, _> = kit.runtime.seen().await?.into_iter().map(|(id, at)| (id.0, at.at())).collect();
        let mut lost = vec![];
        for vital in vitals {
            // Another process of this platform may have heard of it. A word from later than now is of a clock that was
            // set back since.
            let heard = [vital.seen_at, seen.get(&vital.node).copied(), vital.alive_at];
            let heard = heard.into_iter().flatten().filter(|at| *at <= now).max();
            let heard_at = heard.map_or(self.since, |heard| heard.max(self.since));
            if now - heard_at > self.silence_max && lose(kit, vital.node, heard, self.silence_max).await? {
                lost.push(vital.node);
            }
        }
        Ok(lost)
    }
}

/// Looks for ever.
pub async fn run(kit: &Kit, fleets: &Fleets, silence_max: TimeDelta) -> Result<(), ControlError> {
    let mut watch = Watch::new(kit, silence_max);
    loop {
        tokio::time::sleep(EVERY).await;
        if let Err(error) = watch.look(kit, fleets).await {
            tracing::error!(cause = %error, "nodes could not be watched; trying again");
        }
    }
}

async fn lose(
    kit: &Kit,
    node: NodeId,
    seen_at: Option<DateTime<Utc>>,
    silence_max: TimeDelta,
) -> Result<bool, ControlError> {
    let at = kit.clock.now();
    let known = kit.executor.load::<Node>(node).await?;
    if known.state.machine().is_none_or(|machine| machine.lost) {
        return Ok(false);
    }
    // As long as nothing is heard of it, it is the same loss.
    let name = format!("lose/{node}/{}", known.events);
    let reason = format!("not heard of for {} s", silence_max.num_seconds());
    tracing::warn!(%node, reason, "a node is given up; what ran there is lost");
    let command = node::Command::Lose { by: None, reason, seen_at, at };
    let step = Step { name, tenant: TenantId::PLATFORM };
    // A word that another process has just heard is a reason not to.
    Ok(give_at::<Node>(kit, &node.to_string(), step, (command, known.events)).await?.is_some())
}
