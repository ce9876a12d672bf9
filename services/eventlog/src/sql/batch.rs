//! Many rows in one statement that is the same on both engines: the rows travel as one JSON text, and `json_each` makes
//! rows of it. (SQLite has that function; `store` gives PostgreSQL the same.)
//!
//! Owns: the statements of an append. Does not own: what is appended.

use crate::LogError;
use crate::book::{Once, Place, Tail};
use domain::kernel::{CommandId, EventId, Meta, Recorded, StreamName, TenantId};
use serde::Serialize;
use std::collections::HashMap;
use store::{Id, Result, Time, Tx};

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

/// An event on its way into the table. The names are the columns'.
#[derive(Serialize)]
struct NewRow<'a> {
    position: i64,
    event_id: EventId,
    stream: &'a StreamName,
    category: &'a str,
    revision: i64,
    kind: &'a str,
    schema_version: u32,
    tenant: TenantId,
    actor: &'a str,
    command: CommandId,
    digest: &'a str,
    correlation: CommandId,
    causation: Option<EventId>,
    trace: Option<&'a str>,
    occurred_at: i64,
    recorded_at: i64,
    payload: &'a str,
}

impl<'a> From<&'a Recorded> for NewRow<'a> {
    fn from(event: &'a Recorded) -> Self {
        Self {
            position: event.position,
            event_id: event.event,
            stream: &event.stream,
            category: event.stream.category(),
            revision: event.revision,
            kind: &event.kind,
            schema_version: event.schema,
            tenant: event.meta.tenant,
            actor: &event.meta.actor,
            command: event.meta.command,
            digest: &event.meta.digest,
            correlation: event.meta.correlation,
            causation: event.meta.causation,
            trace: event.meta.trace.as_deref(),
            occurred_at: event.meta.occurred_at.timestamp_micros(),
            recorded_at: event.recorded_at.timestamp_micros(),
            payload: &event.payload,
        }
    }
}

pub(super) async fn insert_events(tx: &mut Tx, events: &[Recorded]) -> Result<()> {
    let insert = "insert into events (position, event_id, stream, category, revision, kind, schema_version, tenant,
            actor, command, digest, correlation, causation, trace, occurred_at, recorded_at, payload)
        select cast(value ->> 'position' as bigint), value ->> 'event_id', value ->> 'stream', value ->> 'category',
            cast(value ->> 'revision' as bigint), value ->> 'kind', cast(value ->> 'schema_version' as bigint),
            value ->> 'tenant', value ->> 'actor', value ->> 'command', value ->> 'digest', value ->> 'correlation',
            value ->> 'causation', value ->> 'trace', cast(value ->> 'occurred_at' as bigint),
            cast(value ->> 'recorded_at' as bigint), value ->> 'payload'
        from json_each($1)";
    let rows: Vec<NewRow<'_>> = events.iter().map(NewRow::from).collect();
    tx.sql(insert).bind(json(&rows)).run().await?;
    Ok(())
}

/// Remembers what new commands did.
pub(super) async fn insert_commands(tx: &mut Tx, commands: &[(&Meta, Place)]) -> Result<()> {
    let insert = "insert into commands (tenant, command, digest, first_position, last_position)
        select value ->> 0, value ->> 1, value ->> 2, cast(value ->> 3 as bigint), cast(value ->> 4 as bigint)
        from json_each($1)";
    let row = |(meta, place): &(&Meta, Place)| {
        (meta.tenant.to_string(), meta.command.to_string(), meta.digest.clone(), place.first, place.last)
    };
    let rows: Vec<_> = commands.iter().map(row).collect();
    tx.sql(insert).bind(json(&rows)).run().await?;
    Ok(())
}

/// The ends of those of these streams that have events.
pub(super) async fn tails(tx: &mut Tx, streams: &[&StreamName]) -> Result<HashMap<StreamName, Tail>> {
    let select = "select wanted.value ->> 0,
            (select revision from events where stream = wanted.value ->> 0 order by revision desc limit 1),
            (select occurred_at from events where stream = wanted.value ->> 0 order by revision desc limit 1)
        from json_each($1) as wanted";
    let wanted: Vec<_> = streams.iter().map(|stream| [stream]).collect();
    let rows: Vec<(String, Option<i64>, Option<Time>)> = tx.sql(select).bind(json(&wanted)).all().await?;
    let tail = |(stream, revision, at): (String, Option<i64>, Option<Time>)| {
        Some((StreamName::stored(stream), Tail { events: revision? + 1, occurred_at: at?.at() }))
    };
    Ok(rows.into_iter().filter_map(tail).collect())
}

/// What those of these commands did that were done before.
pub(super) async fn done(tx: &mut Tx, commands: &[&Meta]) -> Result<HashMap<(TenantId, CommandId), Once>> {
    let select = "select commands.tenant, commands.command, commands.digest, events.stream, first_position,
            last_position
        from json_each($1) as wanted
        join commands on commands.tenant = wanted.value ->> 0 and commands.command = wanted.value ->> 1
        join events on events.position = commands.first_position";
    let wanted: Vec<_> = commands.iter().map(|meta| (meta.tenant, meta.command)).collect();
    type Found = (Id<TenantId>, Id<CommandId>, String, String, i64, i64);
    let rows: Vec<Found> = tx.sql(select).bind(json(&wanted)).all().await?;
    let once = |(tenant, command, digest, stream, first, last): Found| {
        ((tenant.0, command.0), Once { digest, stream: StreamName::stored(stream), first, last })
    };
    Ok(rows.into_iter().map(once).collect())
}

/// The events of a command that was done before.
pub(super) async fn between(tx: &mut Tx, first: i64, last: i64) -> Result<Vec<Row>> {
    let select = "select * from events where position between $1 and $2 order by position";
    tx.sql(select).bind(first).bind(last).all().await
}

/// Rows as one parameter. Writing text and whole numbers as JSON cannot fail.
fn json(rows: &[impl Serialize]) -> String {
    serde_json::to_string(rows).unwrap_or_default()
}
