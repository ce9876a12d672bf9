//! Evidence of access: what is no business event and must be shown all the same.
//!
//! Owns: the events of the category `access`, in streams `access-<process>-<hour>`: refused commands, sign-ins, reads of
//! personal data, exports. Does not own: what is refused or read, and by whom (the handlers). The category is foreign to
//! the domain, so that no projection and no flow reads it.
//! Invariants: a read of personal data or an export is opened in the log before it and closed after it, and is not done
//! if that cannot be written; there is no secret and no personal datum in it, only ids, codes and the names of routes;
//! one actor makes a bounded number of events, and what is left out is counted in a later one.

mod limit;
mod refusals;

pub use refusals::{Asking, refusals};

use crate::{Actor, Clock, Problem};
use domain::kernel::{CommandId, Meta, StreamName, TenantId};
use eventlog::{Append, Log, LogError, NewEvent};
use limit::Limit;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use utoipa::ToSchema;
use uuid::Uuid;

/// The category of the streams.
pub const CATEGORY: &str = "access";
const SCHEMA: u32 = 1;
/// How often an append is tried where somebody else wrote to the stream.
const TRIES_MAX: u32 = 5;

/// What was done or tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A command was refused.
    Refused,
    /// Somebody signed in.
    SignedIn,
    /// Somebody did not sign in.
    SignInFailed,
    /// Personal data is about to be read, or things are about to be exported.
    Opened,
    /// They were, or were not: `code` says why not.
    Closed,
}

/// An event of the category, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    #[serde(rename = "type")]
    pub what: What,
    /// A route (`POST /api/v1/orders`), or an act (`member.profile`).
    pub operation: String,
    /// The ids that it was about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub things: Vec<String>,
    /// The stable code of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How many events were left out before this one, because there were too many in a minute.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

/// Who did it.
struct Who {
    /// As events name them, or `nobody`.
    name: String,
    /// By what it is measured; not stored.
    measured: String,
    tenant: TenantId,
}

/// Where evidence is written. Clones share the stream.
#[derive(Clone)]
pub struct Access(Arc<Writer>);

struct Writer {
    log: Log,
    clock: Clock,
    process: String,
    place: tokio::sync::Mutex<Place>,
    limit: Mutex<Limit>,
}

/// The stream of this hour, and how many events it has.
#[derive(Default)]
struct Place {
    hour: String,
    events: i64,
}

impl Access {
    /// Writes to streams of its own.
    pub fn new(log: Log, clock: Clock) -> Self {
        let process = Uuid::now_v7().simple().to_string();
        let (place, limit) = Default::default();
        Self(Arc::new(Writer { log, clock, process, place, limit }))
    }

    /// Somebody signed in.
    pub async fn signed_in(&self, who: &Actor) -> Result<(), Problem> {
        Ok(self.write(&Who::of(who), Evidence::of(What::SignedIn, "sign_in"), fresh()).await.map(drop)?)
    }

    /// Somebody did not sign in with this handle; `who` it was, where the handle is known.
    pub async fn sign_in_failed(&self, who: Option<&Actor>, handle: &str) {
        let mut whose = who.map_or_else(Who::nobody, Who::of);
        // Measured alike whether there is such a member or not, so that nothing tells the two apart.
        whose.measured = domain::identity::member_of(handle).to_string();
        let evidence =
            Evidence { code: Some("auth.bad_credentials".into()), ..Evidence::of(What::SignInFailed, "sign_in") };
        self.write_or_warn(&whose, evidence).await;
    }

    /// A command was refused with a code.
    pub(crate) async fn refused(&self, who: Option<&Actor>, evidence: Evidence) {
        self.write_or_warn(&who.map_or_else(Who::nobody, Who::of), evidence).await;
    }

    /// Reads personal data, or exports: opened in the log before, and closed after. What it gives is withheld if either
    /// cannot be written.
    pub async fn around<T>(
        &self,
        who: &Actor,
        act: &'static str,
        things: Vec<String>,
        done: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let (who, correlation) = (Who::of(who), fresh());
        let opened = Evidence { things, ..Evidence::of(What::Opened, act) };
        let written = self.write(&who, opened.clone(), correlation).await?;
        let outcome = done.await;
        if written {
            let code = outcome.as_ref().err().map(|problem| problem.code().to_owned());
            let closed = Evidence { what: What::Closed, code, ..opened };
            self.append(&who, closed, correlation).await?;
        }
        outcome
    }

    async fn write_or_warn(&self, who: &Who, evidence: Evidence) {
        if let Err(error) = self.write(who, evidence, fresh()).await {
            tracing::warn!(cause = %error, "evidence of access could not be written");
        }
    }

    /// Writes it, unless there is too much of this actor; says whether.
    async fn write(&self, who: &Who, evidence: Evidence, correlation: CommandId) -> Result<bool, LogError> {
        let minute = self.0.clock.now().timestamp() / 60;
        let Some(dropped) = self.limit().take(&who.measured, minute) else { return Ok(false) };
        let written = self.append(who, Evidence { dropped, ..evidence }, correlation).await;
        if written.is_err() {
            self.limit().give_back(dropped);
        }
        written.map(|()| true)
    }

    async fn append(&self, who: &Who, evidence: Evidence, correlation: CommandId) -> Result<(), LogError> {
        let unreadable = |error: serde_json::Error| LogError::Malformed(error.to_string());
        let payload = serde_json::to_string(&evidence).map_err(unreadable)?;
        let kind = format!("{CATEGORY}.{}", evidence.what.as_str());
        let occurred_at = self.0.clock.now();
        let meta = Meta {
            tenant: who.tenant,
            actor: who.name.clone(),
            command: fresh(),
            digest: eventlog::digest(&[&kind, &payload]),
            correlation,
            causation: None,
            trace: None,
            occurred_at,
        };
        let events = vec![NewEvent { kind, schema: SCHEMA, payload }];
        let hour = occurred_at.format("%Y%m%dT%H").to_string();
        let mut place = self.0.place.lock().await;
        if place.hour != hour {
            *place = Place { hour, events: 0 };
        }
        let stream = StreamName::new(CATEGORY, format!("{}-{}", self.0.process, place.hour));
        let mut append = Append { stream, expected: place.events, meta, events };
        for _ in 1..TRIES_MAX {
            match self.0.log.append(append.clone()).await {
                Err(LogError::Moved { actual }) => append.expected = actual,
                done => {
                    place.events = done?.revision + 1;
                    return Ok(());
                }
            }
        }
        Err(LogError::Moved { actual: append.expected })
    }

    fn limit(&self) -> MutexGuard<'_, Limit> {
        self.0.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fresh() -> CommandId {
    CommandId(Uuid::now_v7())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Evidence {
    fn of(what: What, operation: impl Into<String>) -> Self {
        Self { what, operation: operation.into(), things: vec![], code: None, dropped: 0 }
    }
}

impl Who {
    fn of(actor: &Actor) -> Self {
        Self { name: actor.name(), measured: actor.member.to_string(), tenant: actor.tenant }
    }

    fn nobody() -> Self {
        Self { name: "nobody".into(), measured: "nobody".into(), tenant: TenantId::PLATFORM }
    }
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::SignedIn => "signed_in",
            Self::SignInFailed => "sign_in_failed",
            Self::Opened => "opened",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("process", &self.0.process).finish_non_exhaustive()
    }
}
