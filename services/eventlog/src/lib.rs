//! The log: where every fact is kept, and the one way to add to it.
//!
//! Owns: the trait `EventLog` and its backends (memory, SQL), the log's tables, `Executor` (load, decide, append),
//! `Subscription`. Does not own: what events mean (`domain`), read models (`projections`).
//!
//! Invariants, kept by every backend and tested by one suite: positions are gapless from 1 and in commit order;
//! revisions are gapless from 0; an append answers once it is durable; a command has one effect; nothing is ever
//! changed or removed.

mod append;
mod book;
mod execute;
mod log;
mod memory;
mod sql;
mod subscription;

pub use append::{Append, Appended, NewEvent, digest, event_id};
pub use execute::{Done, Executor, Loaded, Refused};
pub use log::{EventLog, Log, LogError};
pub use memory::MemoryLog;
pub use sql::{MIGRATIONS, SqlLog};
pub use subscription::Subscription;
