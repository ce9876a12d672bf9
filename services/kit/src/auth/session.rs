//! Who asks: the actor behind `Authorization: Bearer …`, by a session token or an API key.
//!
//! Owns: `Actor`, and when a request has none. Does not own: what the actor may do (`permission`).
//! Invariants: member and key are folded from the log at each request, so that a lock, a new password or a revocation
//! holds from the next request on; that a key is over is told only to who has its secret.

use super::{key, key::KeyText, token::TokenError};
use crate::access::Asking;
use crate::{Kit, Problem, Scope};
use axum::{
    extract::{FromRef, FromRequestParts},
    http::{StatusCode, header, request::Parts},
};
use domain::{
    identity::{ApiKey, Member, Permission, Reach, Role, api_key, member},
    kernel::{KeyId, MemberId, TenantId},
};
use std::collections::BTreeSet;

/// The member who asks, with what was known of them when the request came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub member: MemberId,
    pub tenant: TenantId,
    pub handle: String,
    pub roles: BTreeSet<Role>,
    /// The API key that was sent instead of a session.
    pub key: Option<KeyId>,
}

impl Actor {
    /// As events name who asked: the key's id, or the member's.
    pub fn name(&self) -> String {
        self.key.map_or_else(|| self.member.to_string(), |key| key.to_string())
    }

    /// Whose things the actor may do this with; `None` if the actor may not at all.
    pub fn scope(&self, permission: Permission) -> Option<Scope> {
        let on_platform = self.tenant == TenantId::PLATFORM;
        let permits = |role: &&Role| role.permissions().contains(&permission);
        let granting = self.roles.iter().filter(permits).filter(|role| on_platform || !role.is_platform());
        Some(match granting.map(|role| role.reach()).max()? {
            Reach::Node => Scope::One(self.tenant),
            Reach::Subtree => Scope::Subtree(self.tenant),
            Reach::Platform => Scope::Platform,
        })
    }

    /// The actor of a bearer token: a session's, or an API key.
    pub async fn of_bearer(kit: &Kit, bearer: &str) -> Result<Self, Problem> {
        if bearer.starts_with(key::PREFIX) { of_key(kit, bearer).await } else { of_session(kit, bearer).await }
    }

    /// The member with this account, by a session or a key.
    pub fn new(member: MemberId, account: &member::Account, key: Option<KeyId>) -> Self {
        let member::Account { tenant, handle, roles, .. } = account;
        Self { member, tenant: *tenant, handle: handle.clone(), roles: roles.clone(), key }
    }
}

async fn of_session(kit: &Kit, token: &str) -> Result<Actor, Problem> {
    let claims = kit.sessions.read(token, kit.clock.now()).map_err(|error| match error {
        TokenError::Invalid => invalid(),
        TokenError::Expired => expired(),
    })?;
    let member = kit.executor.load::<Member>(claims.sub).await?.state;
    match member.active() {
        Some(account) if account.session_version == claims.sv => Ok(Actor::new(claims.sub, account, None)),
        Some(_) => Err(expired()),
        None => Err(invalid()),
    }
}

async fn of_key(kit: &Kit, text: &str) -> Result<Actor, Problem> {
    let sent: KeyText = text.parse().map_err(|_| invalid())?;
    let stored = kit.executor.load::<ApiKey>(sent.id()).await?.state;
    // Whether it is over is told only to who has the secret.
    let api_key::Grant { member, tenant, .. } =
        stored.grant().filter(|grant| sent.matches(&grant.hash)).ok_or_else(invalid)?;
    if stored.valid_at(kit.clock.now()).is_none() {
        return Err(expired());
    }
    let owner = kit.executor.load::<Member>(*member).await?.state;
    let account = owner.active().filter(|account| account.tenant == *tenant).ok_or_else(invalid)?;
    Ok(Actor::new(*member, account, Some(sent.id())))
}

impl<S: Send + Sync> FromRequestParts<S> for Actor
where
    Kit: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // A handler may take several permissions; the actor is the same for all.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let actor = Self::of_bearer(&Kit::from_ref(state), bearer(parts)?).await?;
        parts.extensions.insert(actor.clone());
        if let Some(asking) = parts.extensions.get::<Asking>() {
            asking.is(&actor);
        }
        Ok(actor)
    }
}

fn bearer(parts: &Parts) -> Result<&str, Problem> {
    let mut sent = parts.headers.get_all(header::AUTHORIZATION).into_iter();
    let first = sent.next().ok_or_else(missing)?;
    if sent.next().is_some() {
        return Err(invalid());
    }
    let (scheme, token) = first.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(invalid)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token.trim()) } else { Err(invalid()) }
}

fn missing() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "auth.missing", "nobody is named: `Authorization: Bearer …` is missing")
        .with_hint("sign in, or send an API key")
}

fn invalid() -> Problem {
    let detail = "the `Authorization` is not a session token or an API key that is valid here";
    Problem::new(StatusCode::UNAUTHORIZED, "auth.invalid", detail).with_hint("sign in again, or use another API key")
}

fn expired() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "auth.expired", "the session or the API key is over")
        .with_hint("sign in again")
}
