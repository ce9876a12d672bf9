//! The statements of an append: a handful for a whole group of them, however many they are.
//!
//! Owns: these statements, the table's row. Does not own: what is appended.

use crate::book::{Book, Once, Tail};
use crate::{Append, LogError};
use domain::kernel::{CommandId, EventId, Meta, Recorded, StreamName, TenantId};
use store::{Cell, Id, Result, Time, Tx};

/// An event as it is stored, without its category.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Row {
    position: i64,
    event_id: Id<EventId>,
    stream: String,
    revision: i64,
    kind: String,
    schema_version: i64,
    tenant: Id<TenantId>,
    actor: String,
    command: Id<CommandId>,
    digest: String,
    correlation: Id<CommandId>,
    causation: Option<Id<EventId>>,
    trace: Option<String>,
    occurred_at: Time,
    recorded_at: Time,
    payload: String,
}

impl Row {
    /// The envelope that everyone knows.
    pub(super) fn recorded(self) -> Result<Recorded, LogError> {
        let position = self.position;
        let schema = u32::try_from(self.schema_version)
            .map_err(|_| LogError::Unreadable(format!("position {position} has no schema version")))?;
        Ok(Recorded {
            event: self.event_id.0,
            stream: StreamName::stored(self.stream),
            revision: self.revision,
            position,
            kind: self.kind,
            schema,
            meta: Meta {
                tenant: self.tenant.0,
                actor: self.actor,
                command: self.command.0,
                digest: self.digest,
                correlation: self.correlation.0,
                causation: self.causation.map(|event| event.0),
                trace: self.trace,
                occurred_at: self.occurred_at.at(),
            },
            recorded_at: self.recorded_at.at(),
            payload: self.payload,
        })
    }
}

/// Adds new events.
pub(super) async fn insert_events(tx: &mut Tx, events: &[Recorded]) -> Result<()> {
    let into = "events (position, event_id, stream, category, revision, kind, schema_version, tenant, actor, command,
        last_position, digest, correlation, causation, trace, occurred_at, recorded_at, payload)";
    let rows = events.iter().zip(last_positions(events)).map(|(event, last_position)| row(event, last_position));
    tx.insert(into, rows.collect()).await
}

fn row(event: &Recorded, last_position: i64) -> [Cell<'_>; 18] {
    let meta = &event.meta;
    [
        event.position.into(),
        event.event.to_string().into(),
        event.stream.as_str().into(),
        event.stream.category().into(),
        event.revision.into(),
        event.kind.as_str().into(),
        i64::from(event.schema).into(),
        meta.tenant.to_string().into(),
        meta.actor.as_str().into(),
        meta.command.to_string().into(),
        last_position.into(),
        meta.digest.as_str().into(),
        meta.correlation.to_string().into(),
        meta.causation.map(|event| event.to_string()).into(),
        meta.trace.as_deref().into(),
        meta.occurred_at.timestamp_micros().into(),
        event.recorded_at.timestamp_micros().into(),
        event.payload.as_str().into(),
    ]
}

/// Of the first event of each command the position of its last; of the others 0.
fn last_positions(events: &[Recorded]) -> Vec<i64> {
    let of = |event: &Recorded| (event.meta.tenant, event.meta.command);
    let commands = events.chunk_by(|event, next| of(event) == of(next));
    let last = |command: &[Recorded]| command.last().map_or(0, |event| event.position);
    commands.flat_map(|command| std::iter::once(last(command)).chain(vec![0; command.len() - 1])).collect()
}

/// Writes into the book what the log knows of the streams and commands of these appends, and the book does not.
///
/// Each is looked up by a subquery of its own: a join would let the planner read a whole table where its statistics are
/// old, and those of a table that grows always are.
pub(super) async fn look_up(tx: &mut Tx, book: &mut Book, appends: &[&Append]) -> Result<()> {
    let select = "with wanted (n, tenant, command, stream) as materialized (
            select cast(value ->> 0 as bigint), value ->> 1, value ->> 2, value ->> 3 from json_each($1)),
        found (n, position, revision, occurred_at) as materialized (
            select n,
                (select position from events
                    where command = wanted.command and tenant = wanted.tenant and last_position > 0),
                (select revision from events where stream = wanted.stream order by revision desc limit 1),
                (select occurred_at from events where stream = wanted.stream order by revision desc limit 1)
            from wanted)
        select * from found where position is not null or revision is not null";
    let wanted = appends.iter().enumerate().map(|(n, append)| {
        let new = !book.streams.contains_key(&append.stream);
        (n, append.meta.tenant, append.meta.command, new.then_some(&append.stream))
    });
    // Writing text and whole numbers as JSON cannot fail.
    let wanted = serde_json::to_string(&wanted.collect::<Vec<_>>()).unwrap_or_default();
    type Found = (i64, Option<i64>, Option<i64>, Option<Time>);
    let found: Vec<Found> = tx.sql(select).bind(wanted).all().await?;
    for (n, position, revision, occurred_at) in found {
        let Some(append) = usize::try_from(n).ok().and_then(|n| appends.get(n)) else { continue };
        if let (Some(revision), Some(at)) = (revision, occurred_at) {
            book.streams.insert(append.stream.clone(), Tail { events: revision + 1, occurred_at: at.at() });
        }
        if let Some(position) = position {
            book.done.insert((append.meta.tenant, append.meta.command), once(tx, position).await?);
        }
    }
    Ok(())
}

/// What the command did whose first event is at this position.
async fn once(tx: &mut Tx, position: i64) -> Result<Once> {
    let select = "select digest, stream, last_position from events where position = $1";
    let (digest, stream, last) = tx.sql(select).bind(position).one::<(String, String, i64)>().await?;
    Ok(Once { digest, stream: StreamName::stored(stream), first: position, last })
}

/// The events of a command that was done before.
pub(super) async fn between(tx: &mut Tx, first: i64, last: i64) -> Result<Vec<Row>> {
    let select = "select * from events where position between $1 and $2 order by position";
    tx.sql(select).bind(first).bind(last).all().await
}
