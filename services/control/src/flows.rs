//! Runs the flows: for each event, fold the facts that it needs as of its position, ask what follows, give the commands.
//!
//! Owns: the order, the retries, the checkpoint. Does not own: what follows from what (`domain::flows`).
//! Invariants: an event's commands are given before the next event's; a command has the same id however often its event
//! is handled, so that a lost checkpoint repeats nothing and two processes that handle one event have one effect; what
//! another process has handled is passed over; a refusal that a flow has no event for is a defect and is
//! reported loudly, with the command, and the flows go on.

use crate::ControlError;
use crate::projector::{decode, patient, patiently};
use domain::flows::{Action, Facts, needs, react};
use domain::kernel::{Aggregate, Meta, Recorded, Rejection, StreamName};
use domain::{Event, Give, Listed, State};
use eventlog::{Executor, LogError, Refused, Subscription, digest};
use futures::future::{BoxFuture, FutureExt};
use kit::Kit;
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(500);

/// Handles what there is and what comes.
pub async fn run(kit: &Kit) -> Result<(), ControlError> {
    let from = patient(|| kit.runtime.flows_at().boxed()).await?;
    kit.progress.flows_reached(from);
    let mut log = Subscription::after(kit.executor.log().clone(), from);
    loop {
        let page = patiently(&mut log).await?;
        let events = decode(&page)?;
        let handled = patient(|| kit.runtime.flows_at().boxed()).await?;
        for (stored, event) in page.iter().zip(events) {
            if let Some(event) = event.filter(|_| stored.position > handled) {
                handle(kit, stored, &event).await?;
            }
            kit.progress.flows_reached(stored.position);
        }
        patient(|| kit.runtime.flows_reached(log.position()).boxed()).await?;
    }
}

async fn handle(kit: &Kit, cause: &Recorded, event: &Event) -> Result<(), LogError> {
    let facts = loop {
        match facts(&kit.executor, cause, event).await {
            Err(LogError::Unreachable(why)) => {
                tracing::warn!(cause = why, "a flow's facts wait for the log");
                tokio::time::sleep(RETRY).await;
            }
            facts => break facts?,
        }
    };
    for action in react(cause, event, &facts) {
        while let Err(error) = give(kit, cause, &action).await {
            match error {
                LogError::Unreachable(_) | LogError::Moved { .. } => {
                    tracing::warn!(arm = action.arm, stream = %action.stream, cause = %error,
                        "a flow's command waits for the log");
                    tokio::time::sleep(RETRY).await;
                }
                LogError::Malformed(_) | LogError::Unreadable(_) | LogError::CommandReused => return Err(error),
            }
        }
    }
    Ok(())
}

/// The states that the event's flows ask for, as they were at the event.
async fn facts(executor: &Executor, cause: &Recorded, event: &Event) -> Result<Facts, LogError> {
    let mut facts = Facts::default();
    loop {
        let wanted = needs(cause, event, &facts);
        if wanted.is_empty() {
            return Ok(facts);
        }
        for stream in wanted {
            let Some(state) = State::of(stream.category()) else {
                return Err(LogError::Unreadable(format!("no aggregate has the stream `{stream}`")));
            };
            let folded = state.fold(&Folder { executor, stream: &stream, position: cause.position }).await?;
            facts.know(stream, folded);
        }
    }
}

/// Folds a stream up to a position.
struct Folder<'a> {
    executor: &'a Executor,
    stream: &'a StreamName,
    position: i64,
}

impl<'a> domain::Fold for Folder<'a> {
    type Answer = BoxFuture<'a, Result<State, LogError>>;

    fn fold<A: Listed>(&self) -> Self::Answer {
        let (executor, stream, position) = (self.executor, self.stream, self.position);
        Box::pin(async move { Ok(executor.load_at::<A>(stream.key(), position).await?.into_state()) })
    }
}

async fn give(kit: &Kit, cause: &Recorded, action: &Action) -> Result<(), LogError> {
    let meta = Meta {
        tenant: action.tenant,
        actor: format!("flow:{}", action.arm),
        command: action.command_id(cause),
        digest: digest(&[action.arm, action.stream.as_str()]),
        correlation: cause.meta.correlation,
        causation: Some(cause.event),
        trace: cause.meta.trace.clone(),
        occurred_at: kit.clock.now(),
    };
    let giver = Giver { executor: kit.executor.clone(), stream: action.stream.clone(), meta, arm: action.arm };
    action.command.clone().give(&giver).await
}

/// Gives a command to its stream.
struct Giver {
    executor: Executor,
    stream: StreamName,
    meta: Meta,
    arm: &'static str,
}

impl Give for Giver {
    type Answer = BoxFuture<'static, Result<(), LogError>>;

    fn give<A: Listed>(&self, command: A::Command) -> Self::Answer {
        let (executor, stream, meta, arm) = (self.executor.clone(), self.stream.clone(), self.meta.clone(), self.arm);
        Box::pin(async move {
            match executor.execute::<A>(stream.key(), meta, command).await {
                Ok(_) => Ok(()),
                Err(Refused::Domain(error)) => {
                    unanswered::<A>(arm, &stream, &error);
                    Ok(())
                }
                Err(Refused::Log(error)) => Err(error),
                Err(Refused::CommandReused) => Err(LogError::CommandReused),
            }
        })
    }
}

fn unanswered<A: Aggregate>(arm: &str, stream: &StreamName, error: &A::Error) {
    tracing::error!(arm, %stream, code = error.code(), cause = %error,
        "a flow's command was refused and no event answers it: a defect, please report it");
}
