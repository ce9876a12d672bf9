//! The agents' endpoint: machines join, ask what to run, report what they see, and bring the output of jobs.
//!
//! Owns: the four calls of `agent-protocol`. Does not own: what a report means for a lease (`domain::allocation`).
//! Invariants: an agent speaks for its own node only; a report that comes again, late or in another order changes
//! nothing; one of another generation, or of a lease that was lost, is answered as stale and counts for nothing; the
//! agent's words are commands with ids of their own, so each has one effect.

use crate::Fleets;
use crate::fleet::Phase as Known;
use agent_protocol::{
    Acknowledged, Desired, Exit, ObservedLease, OutputKept, POLL_MAX_S, Phase, Register, Registered, Report,
};
use axum::body::Bytes;
use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::{StatusCode, header, request::Parts};
use axum::routing::{get, post, put};
use axum::{Json as Answer, Router};
use domain::allocation::job::Outcome;
use domain::allocation::{Lease, lease};
use domain::kernel::{Aggregate, CommandId, Id, LeaseId, Meta, NodeId, PoolId, TenantId};
use domain::pools::{Node, Pool, node, pool};
use eventlog::Refused;
use kit::auth::secret;
use kit::{Json, Kit, Path, Problem, Query};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a machine that joined waits until it is a node everywhere.
const JOIN_WAIT: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Agents {
    kit: Kit,
    fleets: Fleets,
}

impl FromRef<Agents> for Kit {
    fn from_ref(agents: &Agents) -> Self {
        agents.kit.clone()
    }
}

/// The routes of the agents, without the layers of an edge.
pub fn router(kit: Kit, fleets: Fleets) -> Router {
    Router::new()
        .route("/agent/v1/register", post(register))
        .route("/agent/v1/desired", get(desired))
        .route("/agent/v1/report", post(report))
        .route("/agent/v1/leases/{lease}/output", put(output))
        .with_state(Agents { kit, fleets })
}

/// The node that speaks.
struct Speaker(NodeId);

impl FromRequestParts<Agents> for Speaker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, agents: &Agents) -> Result<Self, Problem> {
        let refused = || Problem::new(StatusCode::UNAUTHORIZED, "agent.unknown", "no node has this credential");
        let sent = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (id, credential) =
            sent.and_then(|text| text.strip_prefix("Bearer ")?.split_once('.')).ok_or_else(refused)?;
        let id: NodeId = id.parse().map_err(|_| refused())?;
        let node = agents.kit.executor.load::<Node>(id).await?.state;
        let machine = node.machine().ok_or_else(refused)?;
        if !secret::matches(credential, &machine.credential) {
            return Err(refused());
        }
        agents.fleets.saw(id, agents.kit.clock.now());
        Ok(Self(id))
    }
}

fn meta(agents: &Agents, tenant: TenantId, actor: String, command: CommandId, digest: &[&str]) -> Meta {
    Meta {
        tenant,
        actor,
        command,
        digest: eventlog::digest(digest),
        correlation: command,
        causation: None,
        trace: None,
        occurred_at: agents.kit.clock.now(),
    }
}

async fn register(
    State(agents): State<Agents>,
    Json(asked, _): Json<Register>,
) -> Result<(StatusCode, Answer<Registered>), Problem> {
    let unknown =
        || Problem::rejection(&pool::Error::JoinTokenUnknown).with_hint("an operator makes one: kashi pool join-token");
    let (pool, token) = asked.token.split_once('.').ok_or_else(unknown)?;
    let pool: PoolId = pool.parse().map_err(|_| unknown())?;
    let (hash, credential) = (secret::hash(token), secret::hash(&asked.credential));
    if !secret::is_secret(token) || asked.credential.len() < 32 {
        return Err(unknown());
    }
    let command = CommandId::derived(pool, &format!("join/{hash}/{credential}"));
    let meta = meta(&agents, TenantId::PLATFORM, "agent".into(), command, &[&hash, &credential]);
    let join = pool::Command::Join {
        hash: hash.clone(),
        credential: credential.clone(),
        name: asked.name,
        inventory: asked.inventory,
        at: agents.kit.clock.now(),
    };
    let done = agents.kit.executor.execute::<Pool>(pool, meta, join).await?;
    let joined = agents.kit.executor.load::<Pool>(pool).await?.state;
    let node = joined.node_of(&hash, &credential).ok_or_else(unknown)?;
    let known = async {
        let mut moved = agents.fleets.moved();
        while agents.fleets.now().inventory(node).is_none() && moved.changed().await.is_ok() {}
    };
    if timeout(JOIN_WAIT, known).await.is_err() {
        tracing::warn!(%node, position = done.position, "a machine joined, and the flows have not made it a node yet");
    }
    Ok((StatusCode::CREATED, Answer(Registered { node })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    #[serde(default)]
    after: i64,
}

async fn desired(
    State(agents): State<Agents>,
    Speaker(node): Speaker,
    Query(After { after }): Query<After>,
) -> Result<Answer<Desired>, Problem> {
    let until = Instant::now() + Duration::from_secs(POLL_MAX_S);
    let mut moved = agents.fleets.moved();
    loop {
        moved.borrow_and_update();
        let desired = agents.fleets.now().desired(node);
        match desired {
            Some(desired) if desired.generation > after => return Ok(Answer(desired)),
            known => {
                if timeout_at(until, moved.changed()).await.is_err() {
                    return Ok(Answer(known.unwrap_or_default()));
                }
            }
        }
    }
}

async fn report(
    State(agents): State<Agents>,
    Speaker(node): Speaker,
    Json(report, _): Json<Report>,
) -> Result<Answer<Acknowledged>, Problem> {
    take_stock(&agents, node, &report).await?;
    let (mut stale, mut failed) = (vec![], None);
    for seen in &report.leases {
        match take_word(&agents, node, seen).await {
            Ok(true) => {}
            Ok(false) => stale.push(seen.lease),
            // The other leases are heard all the same; the agent says all of it again.
            Err(problem) => failed = Some(problem),
        }
    }
    failed.map_or(Ok(Answer(Acknowledged { stale })), Err)
}

/// What the node has, where it changed, and a sparse proof of life.
async fn take_stock(agents: &Agents, id: NodeId, report: &Report) -> Result<(), Problem> {
    let now = agents.kit.clock.now();
    agents.kit.runtime.saw(id, now).await?;
    let changed = agents.fleets.now().inventory(id).is_some_and(|known| *known != report.inventory);
    if changed {
        let text = serde_json::to_string(&report.inventory).map_err(|error| Problem::internal(&error))?;
        let command = CommandId::derived(id, &format!("inventory/{}/{text}", now.timestamp_micros()));
        let meta = meta(agents, TenantId::PLATFORM, id.to_string(), command, &[&text]);
        let command = node::Command::ReportInventory { inventory: report.inventory.clone() };
        agents.kit.executor.execute::<Node>(id, meta, command).await?;
    }
    let command = CommandId::derived(id, &format!("alive/{}", now.timestamp_micros()));
    let meta = meta(agents, TenantId::PLATFORM, id.to_string(), command, &["alive"]);
    agents.kit.executor.execute::<Node>(id, meta, node::Command::ProveAlive { at: now }).await?;
    Ok(())
}

/// Whether the word of a node about a lease counts.
async fn take_word(agents: &Agents, node: NodeId, seen: &ObservedLease) -> Result<bool, Problem> {
    let known = agents.fleets.now().lease_of_node(node, seen.lease);
    let running = matches!(seen.phase, Phase::Running { .. });
    if known.is_some_and(|(phase, generation)| generation == seen.generation && running && phase == Known::Running) {
        return Ok(true);
    }
    let loaded = agents.kit.executor.load::<Lease>(seen.lease).await?.state;
    let Some(grant) = loaded.grant() else { return Ok(false) };
    // Asked before the command: one that was done before is answered as it was then.
    if matches!(loaded, Lease::Lost(_)) {
        return Ok(false);
    }
    if let Phase::Ended { output_bytes, .. } = seen.phase
        && grant.node == node
    {
        let total = u64::try_from(output_bytes).unwrap_or_default();
        agents.kit.outputs.will_be(seen.lease, total).await.map_err(|error| Problem::internal(&error))?;
    }
    let (name, command) = word(node, seen);
    let id = CommandId::derived(seen.lease, &format!("{name}/{}", seen.generation));
    let meta = meta(agents, grant.tenant, node.to_string(), id, &[name]);
    match agents.kit.executor.execute::<Lease>(seen.lease, meta, command).await {
        Ok(_) => Ok(true),
        Err(Refused::Domain(error)) => {
            tracing::warn!(%node, lease = %seen.lease, cause = %error, "a report does not count");
            Ok(false)
        }
        Err(refused) => Err(refused.into()),
    }
}

fn word(node: NodeId, seen: &ObservedLease) -> (&'static str, <Lease as Aggregate>::Command) {
    let generation = seen.generation;
    match &seen.phase {
        Phase::Running { started_at } => ("started", lease::Command::ReportStart { node, generation, at: *started_at }),
        Phase::Ended { started_at, ended_at, exit, .. } => {
            let (started_at, at, outcome) = (*started_at, *ended_at, outcome(exit));
            ("ended", lease::Command::ReportEnd { node, generation, started_at, at, outcome })
        }
    }
}

fn outcome(exit: &Exit) -> Outcome {
    match exit {
        Exit::Code { code: 0 } => Outcome::Succeeded,
        Exit::Code { code } => Outcome::Failed { code: *code },
        Exit::Signal { signal } => Outcome::Killed { signal: *signal },
        Exit::Stopped => Outcome::Cancelled,
        Exit::TimedOut => Outcome::TimedOut,
        Exit::NotStarted { reason } => Outcome::NotStarted { reason: reason.clone() },
        Exit::Vanished => Outcome::Vanished,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Offset {
    offset: u64,
}

async fn output(
    State(agents): State<Agents>,
    Speaker(node): Speaker,
    Path(lease): Path<LeaseId>,
    Query(Offset { offset }): Query<Offset>,
    bytes: Bytes,
) -> Result<Answer<OutputKept>, Problem> {
    let known = agents.kit.executor.load::<Lease>(lease).await?.state;
    if known.grant().is_none_or(|grant| grant.node != node) {
        return Err(Problem::not_found("lease.not_found"));
    }
    let next = agents.kit.outputs.append(lease, offset, &bytes).await.map_err(|error| Problem::internal(&error))?;
    Ok(Answer(OutputKept { next_offset: i64::try_from(next).unwrap_or(i64::MAX) }))
}
