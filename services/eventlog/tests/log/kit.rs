//! What the tests of the log share: metadata, appends, and every backend.

use domain::kernel::{CommandId, Meta, StreamName, TenantId};
use eventlog::{Append, Log, MemoryLog, NewEvent, SqlLog, digest};
use std::sync::Arc;
use store::testing::{Scratch, urls};
use uuid::Uuid;

pub(crate) const TENANT: TenantId = TenantId(Uuid::from_u128(7));

/// Of a new command.
pub(crate) fn meta() -> Meta {
    let command = CommandId(Uuid::now_v7());
    Meta {
        tenant: TENANT,
        actor: "system".into(),
        command,
        digest: digest(&["asked"]),
        correlation: command,
        causation: None,
        trace: None,
        occurred_at: "2026-11-30T16:00:00.123456Z".parse().unwrap(),
    }
}

/// Of a new command, with these notes as events.
pub(crate) fn append(key: &str, expected: i64, notes: &[&str]) -> Append {
    let event = |note: &&str| NewEvent {
        kind: "test.noted".into(),
        schema: 1,
        payload: format!(r#"{{"type":"noted","note":"{note}"}}"#),
    };
    Append { stream: StreamName::new("test", key), expected, meta: meta(), events: notes.iter().map(event).collect() }
}

/// An empty log of each backend, named where a test fails, and the folder to keep.
pub(crate) async fn each() -> (impl Iterator<Item = Log>, Scratch) {
    let (urls, scratch) = urls().await;
    let [sqlite, postgres] = [open(&urls[0]).await, open(&urls[1]).await];
    let logs: [(&str, Log); 3] =
        [("memory", Arc::new(MemoryLog::default())), ("SQLite", sqlite), ("PostgreSQL", postgres)];
    (logs.into_iter().inspect(|(name, _)| eprintln!("on {name}")).map(|(_, log)| log), scratch)
}

/// The log of this database, with a writer of its own.
pub(crate) async fn open(url: &str) -> Log {
    Arc::new(SqlLog::open(url).await.unwrap())
}
