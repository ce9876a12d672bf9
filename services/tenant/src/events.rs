//! One stored event, for whoever asks how something came about.
//!
//! Owns: who may read which event, and what of it is hidden. Does not own: the events.
//! Invariants: an event of another tenant is answered as if there were none; those of identity and hardware are for
//! auditors; a password, secret or hash is hidden from everyone, and so is the environment of a job.

use crate::describe::needs;
use axum::extract::State;
use domain::Event;
use domain::allocation::{Plan, plan};
use domain::identity::{ApiKey, Member, Permission, Tenant};
use domain::kernel::{Aggregate, Recorded, TenantId};
use domain::pools::{Node, Pool};
use kit::permission::BillRead;
use kit::{Actor, Can, Fresh, Kit, Path, Problem};
use serde::Serialize;
use serde_json::Value;
use store::Time;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

/// Categories that auditors read and nobody else.
const FOR_AUDIT: &[&str] =
    &[Member::STREAM, ApiKey::STREAM, Tenant::STREAM, Pool::STREAM, Node::STREAM, kit::access::CATEGORY];
/// Fields that nobody is shown.
const HIDDEN: &[&str] = &["password", "hash", "credential", "secret", "token", "profile"];
/// Fields whose names are shown, and not their values.
const HIDDEN_VALUES: &str = "env";
const INSTEAD: &str = "(hidden)";

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new().routes(needs::<BillRead>(routes!(read_event)))
}

/// A stored event.
#[derive(Debug, Serialize, ToSchema)]
struct StoredEvent {
    /// Its place in the log, from 1.
    position: i64,
    stream: String,
    /// Its place in the stream, from 0.
    revision: i64,
    /// Category and variant, such as `order.requested`.
    kind: String,
    /// The version of the payload's form.
    schema: u32,
    event_id: store::EventId,
    /// Whose it is.
    tenant: store::TenantId,
    /// A member, key or node by its id, `flow:` and a name, or a part of the platform.
    actor: String,
    /// What all that followed from one request shares.
    correlation: store::CommandId,
    /// The event that a flow answered.
    causation: Option<store::EventId>,
    occurred_at: Time,
    recorded_at: Time,
    /// The event itself, without secrets.
    payload: Value,
}

/// Read a stored event.
#[utoipa::path(
    get,
    path = "/events/{position}",
    params(("position" = i64, Path)),
    responses((status = 200, body = StoredEvent, description = "The event."))
)]
async fn read_event(
    State(kit): State<Kit>,
    can: Can<BillRead>,
    _: Fresh,
    Path(position): Path<i64>,
) -> Result<axum::Json<StoredEvent>, Problem> {
    let found = kit.executor.log().read_all(position.max(1) - 1, 1).await?.into_iter().next();
    let stored = match found {
        Some(stored) if stored.position == position && may_read(&kit, &can, &stored).await? => stored,
        Some(_) | None => return Err(Problem::not_found("event.not_found")),
    };
    let mut payload = serde_json::from_str(&stored.payload).map_err(|error| Problem::internal(&error))?;
    hide(&mut payload);
    Ok(axum::Json(StoredEvent {
        position: stored.position,
        stream: stored.stream.to_string(),
        revision: stored.revision,
        kind: stored.kind,
        schema: stored.schema,
        event_id: stored.event.into(),
        tenant: stored.meta.tenant.into(),
        actor: stored.meta.actor,
        correlation: stored.meta.correlation.into(),
        causation: stored.meta.causation.map(store::Id),
        occurred_at: stored.meta.occurred_at.into(),
        recorded_at: stored.recorded_at.into(),
        payload,
    }))
}

async fn may_read(kit: &Kit, can: &Can<BillRead>, stored: &Recorded) -> Result<bool, Problem> {
    let whose = whose(stored);
    let sees = can.scope().sees(kit, whose).await?;
    Ok(sees && (!FOR_AUDIT.contains(&stored.stream.category()) || audits(kit, can.actor(), whose).await?))
}

async fn audits(kit: &Kit, actor: &Actor, whose: TenantId) -> Result<bool, Problem> {
    match actor.scope(Permission::AuditRead) {
        Some(scope) => scope.sees(kit, whose).await,
        None => Ok(false),
    }
}

/// Whose an event is. The plan is the platform's, and each placement in it is of the tenant whose job it places.
fn whose(stored: &Recorded) -> TenantId {
    let placed = (stored.stream.category() == Plan::STREAM).then(|| Event::read(stored));
    match placed {
        Some(Ok(Event::Plan(plan::Event::Placed(placement)))) => placement.tenant,
        _ => stored.meta.tenant,
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if HIDDEN.contains(&name.as_str()) {
                    *value = INSTEAD.into();
                } else if let Some(variables) = value.as_object_mut().filter(|_| name == HIDDEN_VALUES) {
                    variables.values_mut().for_each(|value| *value = INSTEAD.into());
                } else {
                    hide(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_secret_is_hidden_wherever_it_is() {
        let mut payload = json!({
            "type": "added", "handle": "li", "password": "$argon2id$x", "list": [{ "hash": "ab", "name": "n" }],
            "spec": { "env": { "API_KEY": "s3cret" }, "command": ["a"] },
        });
        hide(&mut payload);
        assert_eq!(
            payload,
            json!({
                "type": "added", "handle": "li", "password": INSTEAD, "list": [{ "hash": INSTEAD, "name": "n" }],
                "spec": { "env": { "API_KEY": INSTEAD }, "command": ["a"] },
            })
        );
    }
}
