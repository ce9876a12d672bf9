//! The members of a tenant: adding, listing, locking, their roles, a new password for who has lost the old one.
//!
//! Invariants: nobody gives a role of the platform who has none; a password that was made here is shown once; no digest
//! of a password is stored beside an event.

use crate::describe::needs;
use crate::tenants;
use crate::write::{Named, Write, tenant_of};
use axum::extract::State;
use axum::http::StatusCode;
use domain::identity::profile::searched_email;
use domain::identity::{Member, Profile, Role, member, member_of};
use eventlog::LogError;
use kit::auth::{password, secret};
use kit::permission::MemberManage;
use kit::{Can, Digest, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Scope, Written};
use projections::members;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{Page, Slice};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

const NOT_FOUND: &str = "member.not_found";

type Members = Slice<members::Member>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<MemberManage>(routes!(add_member)))
        .routes(needs::<MemberManage>(routes!(list_members)))
        .routes(needs::<MemberManage>(routes!(set_roles)))
        .routes(needs::<MemberManage>(routes!(reset_password)))
        .routes(needs::<MemberManage>(routes!(lock_member)))
        .routes(needs::<MemberManage>(routes!(unlock_member)))
}

/// A member to be.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewMember {
    /// The name to sign in with: 2 to 32 small letters, digits, dots, dashes or underscores, a letter first.
    handle: String,
    /// Where the member belongs: a tenant or project.
    tenant: store::TenantId,
    /// `tenant_admin`, `engineer`, `finance`; in the platform's own tenant also `operator` and `auditor`.
    #[schema(value_type = Vec<String>)]
    roles: BTreeSet<Role>,
    /// At least 10 characters; one is made and shown once where none is sent.
    #[serde(skip_serializing)]
    password: Option<String>,
}

/// Which members, and which part of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Of this e-mail address only, which is compared as a whole, and not by small or capital letters.
    email: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A member that was added.
#[derive(Serialize, ToSchema)]
struct Added {
    id: store::MemberId,
    handle: String,
    /// The password, where it was made here. It is not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
}

/// What a member may do from now on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Roles {
    /// `tenant_admin`, `engineer`, `finance`; in the platform's own tenant also `operator` and `auditor`.
    #[schema(value_type = Vec<String>)]
    roles: BTreeSet<Role>,
}

/// The password that a member gets who has lost the old one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Reset {
    /// At least 10 characters; one is made and shown once where none is sent.
    password: Option<String>,
}

/// Why something is done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Lock {
    /// 1 to 200 characters.
    reason: String,
}

/// Add a member to a tenant.
#[utoipa::path(
    post,
    path = "/members",
    request_body = NewMember,
    responses((status = 201, body = Added, description = "The member is there."))
)]
async fn add_member(
    State(kit): State<Kit>,
    can: Can<MemberManage>,
    key: IdempotencyKey,
    Json(mut asked, _): Json<NewMember>,
) -> Result<Written<Added>, Problem> {
    let tenant = asked.tenant.0;
    tenants::exists(&kit, can.scope(), tenant).await?;
    may_give(&can, &asked.roles)?;
    // The digest of the body would be a fast hash of the password; a repetition is compared by the slow one instead.
    let said = serde_json::to_vec(&asked).map_err(|error| Problem::internal(&error))?;
    let digest = Digest::of("POST", "/members", &said);
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    let id = member_of(&asked.handle);
    let chosen = asked.password.take();
    let made = if chosen.is_none() { Some(secret::generate()) } else { None };
    let hash = password::hash(chosen.as_ref().or(made.as_ref()).cloned().unwrap_or_default()).await?;
    let (handle, roles) = (asked.handle, asked.roles);
    let command = member::Command::Add { tenant, handle: handle.clone(), roles, password: Some(hash) };
    let added = Added { id: id.into(), handle, password: made };
    let Some(chosen) = chosen else { return write.make_secret::<Member, _>(id, command, added).await };
    let done = write.give::<Member>(id, command).await?;
    if done.replayed && !has_set(&done.events, chosen).await? {
        return Err(LogError::CommandReused.into());
    }
    Ok(Written::created(done.position, write.correlation(), added))
}

fn may_give(can: &Can<MemberManage>, roles: &BTreeSet<Role>) -> Result<(), Problem> {
    if can.scope() != Scope::Platform && roles.iter().any(|role| role.is_platform()) {
        let detail = "a role of the platform is given by those only who have one";
        return Err(Problem::new(StatusCode::FORBIDDEN, "member.role_not_yours", detail));
    }
    Ok(())
}

/// Whether these events are of a command that set this password.
async fn has_set(events: &[member::Event], chosen: String) -> Result<bool, Problem> {
    let stored = events.iter().find_map(|event| match event {
        member::Event::Added { password, .. } => password.clone(),
        member::Event::PasswordSet { password } => Some(password.clone()),
        member::Event::RolesSet { .. }
        | member::Event::Locked { .. }
        | member::Event::Unlocked { .. }
        | member::Event::ProfileSet { .. }
        | member::Event::PersonalDataErased { .. } => None,
    });
    Ok(password::verify(chosen, stored).await?)
}

/// Give a member other roles in place of those it has; they hold at once, also for its sessions and keys.
#[utoipa::path(
    put,
    path = "/members/{id}/roles",
    params(("id" = store::MemberId, Path)),
    request_body = Roles,
    responses((status = 200, body = Named, description = "The member has these roles."))
)]
async fn set_roles(
    State(kit): State<Kit>,
    can: Can<MemberManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::MemberId>,
    Json(Roles { roles }, digest): Json<Roles>,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Member>(&kit, can.scope(), id, NOT_FOUND).await?;
    may_give(&can, &roles)?;
    let command = member::Command::SetRoles { by: can.actor().member, roles };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).change::<Member, _>(id, command, id.into()).await
}

/// Give a member a new password, who has lost the old one; every session of the member ends.
#[utoipa::path(
    post,
    path = "/members/{id}/password",
    params(("id" = store::MemberId, Path)),
    request_body = Reset,
    responses((status = 201, body = Added, description = "The member has a new password."))
)]
async fn reset_password(
    State(kit): State<Kit>,
    can: Can<MemberManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::MemberId>,
    Json(Reset { password: chosen }, _): Json<Reset>,
) -> Result<Written<Added>, Problem> {
    let tenant = tenant_of::<Member>(&kit, can.scope(), id, NOT_FOUND).await?;
    let known = kit.executor.load::<Member>(id).await?.state;
    let handle = known.account().map(|account| account.handle.clone()).ok_or_else(|| Problem::not_found(NOT_FOUND))?;
    // As with a new member, the body is not digested.
    let digest = Digest::of("POST", "/members/password", id.to_string().as_bytes());
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    let made = if chosen.is_none() { Some(secret::generate()) } else { None };
    let hash = password::hash(chosen.as_ref().or(made.as_ref()).cloned().unwrap_or_default()).await?;
    let command = member::Command::SetPassword { password: hash };
    let set = Added { id: id.into(), handle, password: made };
    let Some(chosen) = chosen else { return write.make_secret::<Member, _>(id, command, set).await };
    let done = write.give::<Member>(id, command).await?;
    if done.replayed && !has_set(&done.events, chosen).await? {
        return Err(LogError::CommandReused.into());
    }
    Ok(Written::created(done.position, write.correlation(), set))
}

/// List the members that are in reach. A search by e-mail address is recorded as a read of personal data.
#[utoipa::path(
    get,
    path = "/members",
    params(Which),
    responses((status = 200, body = Members, description = "Members."))
)]
async fn list_members(
    State(kit): State<Kit>,
    can: Can<MemberManage>,
    _: Fresh,
    Query(Which { email, limit, cursor }): Query<Which>,
) -> Result<axum::Json<Members>, Problem> {
    let (whose, page) = (can.scope().whose(), Page::new(limit, cursor)?);
    let Some(email) = email else { return Ok(axum::Json(members::of(&kit.read, whose, &page).await?)) };
    let index = kit.keys.blind_index(Profile::EMAIL, &searched_email(&email));
    let search = async { Ok(axum::Json(members::with_email(&kit.read, whose, &index, &page).await?)) };
    kit.access.around(can.actor(), "member.search", vec![], search).await
}

/// Lock a member out; every session and key of the member ends at once.
#[utoipa::path(
    post,
    path = "/members/{id}/lock",
    params(("id" = store::MemberId, Path)),
    request_body = Lock,
    responses((status = 200, body = Named, description = "The member is locked."))
)]
async fn lock_member(
    State(kit): State<Kit>,
    can: Can<MemberManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::MemberId>,
    Json(asked, digest): Json<Lock>,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Member>(&kit, can.scope(), id, NOT_FOUND).await?;
    let command = member::Command::Lock { by: can.actor().member, reason: asked.reason };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).change::<Member, _>(id, command, id.into()).await
}

/// Take a member's lock away.
#[utoipa::path(
    post,
    path = "/members/{id}/unlock",
    params(("id" = store::MemberId, Path)),
    responses((status = 200, body = Named, description = "The member may sign in."))
)]
async fn unlock_member(
    State(kit): State<Kit>,
    can: Can<MemberManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::MemberId>,
    digest: Digest,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Member>(&kit, can.scope(), id, NOT_FOUND).await?;
    let command = member::Command::Unlock { by: can.actor().member };
    Write::by(&kit, can.actor(), &key, &digest).of(tenant).change::<Member, _>(id, command, id.into()).await
}
