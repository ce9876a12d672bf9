//! Signing in: the one-time setup of the first operator, sessions by password, who one is, a new password.
//!
//! Owns: what is answered to who is not yet known. Does not own: tokens, hashes (`kit::auth`), members (`domain`).
//! Invariants: nothing tells an unknown handle, a wrong password and a locked member apart, not even the time it takes;
//! a setup gives a session only to who knows the first operator's password, so that a used secret is worth nothing; no
//! digest of a password is stored beside an event.

use crate::describe::{any_member, anyone};
use crate::write::{Named, Write};
use axum::extract::State;
use axum::http::StatusCode;
use domain::identity::{Member, Permission, Role, Tenant, member, member_of, tenant};
use domain::kernel::{Aggregate, CommandId, Id, Meta, TenantId};
use kit::auth::{password, secret};
use kit::{Actor, Digest, Fresh, IdempotencyKey, Json, Kit, Problem, Written};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use store::Time;
use tokio::time::timeout;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

/// How long a setup waits for the flow that adds the member.
const SETUP_WAIT: Duration = Duration::from_secs(5);

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(anyone(routes!(set_up)))
        .routes(anyone(routes!(sign_in)))
        .routes(any_member(routes!(who_am_i)))
        .routes(any_member(routes!(change_password)))
}

/// The first operator.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Setup {
    /// The one-time secret that the server showed when it first started.
    secret: String,
    /// The name to sign in with: 2 to 32 small letters, digits, dots, dashes or underscores, a letter first.
    handle: String,
    /// At least 10 characters.
    password: String,
}

/// Who signs in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    handle: String,
    password: String,
}

/// A session, for twelve hours.
#[derive(Serialize, ToSchema)]
struct SignedIn {
    /// Send it as `Authorization: Bearer …`.
    token: String,
    /// When the session is over.
    expires_at: Time,
    /// Who has signed in.
    member: store::MemberId,
    /// The name of who has signed in.
    handle: String,
    /// Where the member belongs.
    tenant: store::TenantId,
}

/// Who asks, and what they may do.
#[derive(Debug, Serialize, ToSchema)]
struct Whoami {
    member: store::MemberId,
    handle: String,
    tenant: store::TenantId,
    /// What people call the tenant.
    tenant_name: Option<String>,
    #[schema(value_type = Vec<String>)]
    roles: BTreeSet<Role>,
    /// What the roles permit here.
    #[schema(value_type = Vec<String>)]
    permissions: Vec<Permission>,
}

/// A password and the one after it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    current: String,
    /// At least 10 characters.
    new: String,
}

/// Set up the platform: become its first operator.
#[utoipa::path(
    post,
    path = "/setup",
    request_body = Setup,
    responses((status = 201, body = SignedIn, description = "The first operator is signed in."))
)]
async fn set_up(
    State(kit): State<Kit>,
    Json(asked, _): Json<Setup>,
) -> Result<(StatusCode, axum::Json<SignedIn>), Problem> {
    let position = use_setup(&kit, &asked).await?;
    if timeout(SETUP_WAIT, kit.progress.flowed(position)).await.is_err() {
        let detail = "the setup is done, and the member is not there yet";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "flows.behind", detail).with_hint("sign in later"));
    }
    let signed_in = session(&kit, asked.handle, asked.password).await?;
    Ok((StatusCode::CREATED, axum::Json(signed_in)))
}

/// Uses the setup, and says at which position that was.
async fn use_setup(kit: &Kit, asked: &Setup) -> Result<i64, Problem> {
    let (platform, member) = (TenantId::PLATFORM, member_of(&asked.handle));
    let hash = secret::hash(&asked.secret);
    let with = |password| {
        let (hash, handle) = (hash.clone(), asked.handle.clone());
        tenant::Command::UseSetup { hash, member, handle, password }
    };
    // Hashing a password takes long: whoever has not the secret is refused before.
    let known = kit.executor.load::<Tenant>(platform).await?.state;
    known.decide(with(String::new())).map_err(|error| Problem::rejection(&error))?;
    let hashed = password::hash(asked.password.clone()).await?;
    let command = CommandId::derived(platform, &format!("setup/{hash}/{member}"));
    let meta = Meta {
        tenant: platform,
        actor: member.to_string(),
        command,
        digest: eventlog::digest(&["setup", &hash, &member.to_string()]),
        correlation: command,
        causation: None,
        trace: None,
        occurred_at: kit.clock.now(),
    };
    Ok(kit.executor.execute::<Tenant>(platform, meta, with(hashed)).await?.position)
}

/// Sign in with handle and password.
#[utoipa::path(
    post,
    path = "/login",
    request_body = Login,
    responses((status = 200, body = SignedIn, description = "A new session."))
)]
async fn sign_in(State(kit): State<Kit>, Json(asked, _): Json<Login>) -> Result<axum::Json<SignedIn>, Problem> {
    session(&kit, asked.handle, asked.password).await.map(axum::Json)
}

async fn session(kit: &Kit, handle: String, password: String) -> Result<SignedIn, Problem> {
    let member = member_of(&handle);
    let known = kit.executor.load::<Member>(member).await?.state;
    let account = known.active();
    let stored = account.and_then(|account| account.password.clone());
    let same = password::verify(password, stored).await?;
    let Some(account) = account.filter(|_| same) else {
        let who = known.account().map(|account| Actor::new(member, account, None));
        kit.access.sign_in_failed(who.as_ref(), &handle).await;
        return Err(bad_credentials());
    };
    let issued = kit.sessions.issue(member, account.session_version, kit.clock.now());
    let session = issued.map_err(|error| Problem::internal(&error))?;
    kit.access.signed_in(&Actor::new(member, account, None)).await?;
    Ok(SignedIn {
        token: session.token,
        expires_at: session.expires_at.into(),
        member: member.into(),
        handle,
        tenant: account.tenant.into(),
    })
}

fn bad_credentials() -> Problem {
    let detail = "the handle or the password is wrong, or the member is locked";
    Problem::new(StatusCode::UNAUTHORIZED, "auth.bad_credentials", detail)
        .with_hint("a member who may manage members gives a new password or takes a lock away")
}

/// Ask who one is and what one may do.
#[utoipa::path(get, path = "/whoami", responses((status = 200, body = Whoami, description = "Who asks.")))]
async fn who_am_i(State(kit): State<Kit>, actor: Actor, _: Fresh) -> Result<axum::Json<Whoami>, Problem> {
    let tenant = projections::tenants::find(&kit.read, actor.tenant.into()).await?;
    let permissions = Permission::ALL.iter().copied().filter(|permission| actor.scope(*permission).is_some());
    Ok(axum::Json(Whoami {
        member: actor.member.into(),
        tenant: actor.tenant.into(),
        tenant_name: tenant.map(|tenant| tenant.name),
        permissions: permissions.collect(),
        handle: actor.handle,
        roles: actor.roles,
    }))
}

/// Change one's own password; every session ends.
#[utoipa::path(
    post,
    path = "/password",
    request_body = NewPassword,
    responses((status = 200, body = Named, description = "The password is changed; sign in again."))
)]
async fn change_password(
    State(kit): State<Kit>,
    actor: Actor,
    key: IdempotencyKey,
    Json(asked, _): Json<NewPassword>,
) -> Result<Written<Named>, Problem> {
    let known = kit.executor.load::<Member>(actor.member).await?.state;
    let stored = known.active().and_then(|account| account.password.clone());
    if !password::verify(asked.current, stored).await? {
        let detail = "the current password is wrong";
        return Err(Problem::new(StatusCode::FORBIDDEN, "auth.wrong_password", detail).with_field("/current", detail));
    }
    let password = password::hash(asked.new).await?;
    // The digest of the body would be a fast hash of both passwords.
    let digest = Digest::of("POST", "/password", b"");
    let write = Write::by(&kit, &actor, &key, &digest).of(actor.tenant);
    let command = member::Command::SetPassword { password };
    write.change::<Member, _>(actor.member, command, actor.member.into()).await
}
