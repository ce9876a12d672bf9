//! The way of every write: who asks, the command's id, one stream, and how far a reader has to be to see it.
//!
//! Owns: `Write`, whose a thing is (`tenant_of`), the answer with an id. Does not own: any command.
//! Invariants: a thing's events are stored under the thing's tenant, whoever acted; the id of a thing that is made
//! follows from the command's; a secret is shown by the request that made it and by no repetition.

use chrono::{DateTime, Utc};
use domain::kernel::{Aggregate, CommandId, Id, Meta, StreamName, TenantId};
use eventlog::{Done, LogError};
use kit::{Actor, Digest, IdempotencyKey, Kit, Problem, Scope, Written, meta};
use serde::Serialize;
use std::fmt::Display;
use utoipa::ToSchema;

/// What was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Named {
    /// Its id.
    pub(crate) id: String,
}

impl<T: Id> From<T> for Named {
    fn from(id: T) -> Self {
        Self { id: id.to_string() }
    }
}

/// One command on its way to one stream.
pub(crate) struct Write<'a> {
    kit: &'a Kit,
    meta: Meta,
}

impl<'a> Write<'a> {
    /// A command of an actor, to a thing of the actor's own tenant.
    pub(crate) fn by(kit: &'a Kit, actor: &Actor, key: &IdempotencyKey, digest: &Digest) -> Self {
        Self { kit, meta: meta(actor, key, digest, &kit.clock) }
    }

    /// The same, to a thing of this tenant.
    #[must_use]
    pub(crate) fn of(mut self, tenant: TenantId) -> Self {
        self.meta.tenant = tenant;
        self
    }

    /// The id of the thing that the command makes.
    pub(crate) fn new_id<T: Id>(&self) -> T {
        T::derived(self.meta.command, "")
    }

    /// What all that follows from the command shares.
    pub(crate) fn correlation(&self) -> CommandId {
        self.meta.correlation
    }

    /// When it is given.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.meta.occurred_at
    }

    /// Gives the command to the stream with this key.
    pub(crate) async fn give<A: Aggregate>(
        &self,
        key: impl Display,
        command: A::Command,
    ) -> Result<Done<A::Event>, Problem> {
        Ok(self.kit.executor.execute::<A>(key, self.meta.clone(), command).await?)
    }

    /// Gives a command that makes something (201).
    pub(crate) async fn make<A: Aggregate, T>(
        &self,
        key: impl Display,
        command: A::Command,
        body: T,
    ) -> Result<Written<T>, Problem> {
        let done = self.give::<A>(key, command).await?;
        Ok(Written::created(done.position, self.correlation(), body))
    }

    /// Gives a command that makes a secret, which is shown now and never again (201).
    pub(crate) async fn make_secret<A: Aggregate, T>(
        &self,
        key: impl Display,
        command: A::Command,
        body: T,
    ) -> Result<Written<T>, Problem> {
        let done = self.give::<A>(key, command).await?;
        if done.replayed {
            let detail = "this was done before under the same Idempotency-Key, and its secret was shown then only";
            return Err(Problem::new(axum::http::StatusCode::CONFLICT, "request.shown_once", detail)
                .with_hint("if the secret is lost, revoke or replace it and ask again under another key"));
        }
        Ok(Written::created(done.position, self.correlation(), body))
    }

    /// Gives a command that changes something (200).
    pub(crate) async fn change<A: Aggregate, T>(
        &self,
        key: impl Display,
        command: A::Command,
        body: T,
    ) -> Result<Written<T>, Problem> {
        let done = self.give::<A>(key, command).await?;
        Ok(Written::changed(done.position, self.correlation(), body))
    }

    /// The answer to this command, where it made the stream of this key before: what it rested on then may be otherwise
    /// by now, and is not asked for again.
    pub(crate) async fn made_before<A: Aggregate, T>(
        &self,
        key: impl Display,
        body: T,
    ) -> Result<Option<Written<T>>, Problem> {
        let stream = StreamName::new(A::STREAM, key);
        match self.kit.executor.log().read_stream(&stream, 0, 1).await?.first() {
            None => Ok(None),
            Some(first) if first.meta.digest == self.meta.digest => {
                Ok(Some(Written::created(first.position, self.correlation(), body)))
            }
            Some(_) => Err(LogError::CommandReused.into()),
        }
    }
}

/// Whose a thing is: the tenant under which its first event is stored. One that is not there, or not in scope, is
/// answered with 404 and this code.
pub(crate) async fn tenant_of<A: Aggregate>(
    kit: &Kit,
    scope: Scope,
    key: impl Display,
    code: &'static str,
) -> Result<TenantId, Problem> {
    let stream = StreamName::new(A::STREAM, key);
    let first = kit.executor.log().read_stream(&stream, 0, 1).await?;
    match first.first().map(|stored| stored.meta.tenant) {
        Some(tenant) if scope.sees(kit, tenant).await? => Ok(tenant),
        Some(_) | None => Err(Problem::not_found(code)),
    }
}
