//! What every edge needs: who asks and what they may do, refusals as problems, idempotency, the clock.
//!
//! Owns: authentication (`auth`), permission in a handler's signature (`Can`), `Problem` and the one mapping from a
//! class of refusal to a status, the extractors `Json`, `Path` and `Query` whose own refusals are problems too, the
//! `IdempotencyKey`, the answer to a write (`Written`), waiting for a read (`Fresh`) and for what follows
//! a write (`settled`), the layers of every router (`edge`).
//! Does not own: any route, any business rule, any table.
//!
//! A handler reads like this:
//! ```ignore
//! async fn request(
//!     State(kit): State<Kit>, can: Can<OrderRequest>, key: IdempotencyKey, Json(ask, digest): Json<NewOrder>,
//! ) -> Result<Written<OrderId>, Problem>
//! ```
//! Invariants: nothing but a problem answers with an error status; a handler without `Can` is public; a thing of
//! another tenant is answered as if there were none (`Scope::sees`).

pub mod access;
pub mod auth;
mod clock;
mod edge;
mod fresh;
mod idempotency;
pub mod keys;
pub mod objects;
pub mod permission;
mod problem;
mod progress;
mod reply;
mod request;
pub mod runtime;
mod settled;
pub mod versions;

pub use access::Access;
pub use auth::{Actor, SessionKey};
pub use clock::Clock;
pub use edge::{BODY_BYTES_MAX, REQUEST_ID, edge};
pub use fresh::{Fresh, MIN_POSITION};
pub use idempotency::{IdempotencyKey, meta};
pub use keys::Keyring;
pub use permission::{Can, Scope};
pub use problem::{CONTENT_TYPE as PROBLEM_CONTENT_TYPE, FieldError, Problem};
pub use progress::{Progress, Stop};
pub use reply::{CORRELATION, POSITION, Written};
pub use request::{Digest, Json, Path, Query};
pub use settled::{SETTLED, WAIT, settled};

/// What every handler reaches: part of each service's state (`FromRef`). Clones share all of it.
#[derive(Clone)]
pub struct Kit {
    /// Runs commands and folds streams.
    pub executor: eventlog::Executor,
    /// The read models.
    pub read: store::Db,
    pub clock: Clock,
    /// Signs session tokens.
    pub sessions: SessionKey,
    /// Seals and opens personal data.
    pub keys: Keyring,
    /// Takes evidence of refusals, sign-ins and reads of personal data.
    pub access: Access,
    /// Runtime state that services share.
    pub runtime: runtime::Runtime,
    /// The output of jobs.
    pub outputs: objects::Outputs,
    /// How far the read models are.
    pub progress: Progress,
}
