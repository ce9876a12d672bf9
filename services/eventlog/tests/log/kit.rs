//! What the tests of the log share: metadata, appends, and both backends.

use domain::kernel::{CommandId, Meta, StreamName, TenantId};
use eventlog::{Append, Log, MemoryLog, NewEvent, SqlLog, digest};
use std::sync::Arc;
use store::testing::Scratch;
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

/// An empty log of each backend, and the folder to keep.
pub(crate) async fn both() -> ([Log; 2], Scratch) {
    let scratch = Scratch::new();
    let sql: Log = Arc::new(SqlLog::open(&scratch.url("log")).await.unwrap());
    ([Arc::new(MemoryLog::default()), sql], scratch)
}
