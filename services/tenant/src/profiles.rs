//! The profile (个人资料) of a member: setting it, reading it, erasing it.
//!
//! Owns: who may: the member itself, and who manages members where the member belongs. Does not own: keys (`kit::keys`),
//! what a profile may be (`domain::identity`).
//! Invariants: it leaves this file sealed, but for the answer to who may read it, and each such read is evidence; the
//! digest beside its event is a keyed one, since a plain one of a phone number is soon guessed.

use crate::describe::{any_member, needs};
use crate::write::{Named, Write, tenant_of};
use axum::extract::State;
use domain::identity::{Member, Profile, member};
use domain::kernel::{MemberId, SubjectKey, TenantId};
use kit::permission::MemberManage;
use kit::{Actor, Can, Digest, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Scope, Written};
use projections::profiles;
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const NO_MEMBER: &str = "member.not_found";
const NO_PROFILE: &str = "profile.not_found";
const READ: &str = "member.profile";

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(any_member(routes!(read_profile)))
        .routes(any_member(routes!(set_profile)))
        .routes(needs::<MemberManage>(routes!(erase_member)))
}

/// What is known of a member as a person. What is not sent is not known any more.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewProfile {
    /// 1 to 64 characters.
    name: Option<String>,
    /// An address with `@`.
    email: Option<String>,
    /// With `+` and the country in front.
    phone: Option<String>,
}

/// Set a member's profile: one's own, or with `member:manage` that of a member in reach.
#[utoipa::path(
    put,
    path = "/members/{id}/profile",
    params(("id" = store::MemberId, Path)),
    request_body = NewProfile,
    responses((status = 200, body = Named, description = "It is set."))
)]
async fn set_profile(
    State(kit): State<Kit>,
    actor: Actor,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::MemberId>,
    Json(asked, _): Json<NewProfile>,
) -> Result<Written<Named>, Problem> {
    let tenant = reached(&kit, &actor, id).await?;
    let profile = Profile::new(asked.name, asked.email, asked.phone)
        .map_err(|error| Problem::rejection(&error).with_field(error.pointer(), error.to_string()))?;
    let said = serde_json::to_string(&profile).map_err(|error| Problem::internal(&error))?;
    let digest = Digest::of("PUT", READ, format!("{id} {}", kit.keys.blind_index("request", &said)).as_bytes());
    let known = kit.executor.load::<Member>(id).await?.state;
    let subject = known.account().ok_or_else(|| Problem::not_found(NO_MEMBER))?.subject();
    let email = profile.searched_email();
    let indexes = email.map(|email| (Profile::EMAIL.to_owned(), kit.keys.blind_index(Profile::EMAIL, &email)));
    let indexes: BTreeMap<_, _> = indexes.into_iter().collect();
    let profile = kit.keys.seal(subject, Profile::PURPOSE, &profile, indexes).await?;
    let command = member::Command::SetProfile { profile };
    Write::by(&kit, &actor, &key, &digest).of(tenant).change::<Member, _>(id, command, id.into()).await
}

/// Read a member's profile: one's own, or with `member:manage` that of a member in reach. Each read is recorded.
#[utoipa::path(
    get,
    path = "/members/{id}/profile",
    params(("id" = store::MemberId, Path)),
    responses((status = 200, body = profiles::Profile, description = "What is known; nothing where it was erased."))
)]
async fn read_profile(
    State(kit): State<Kit>,
    actor: Actor,
    _: Fresh,
    Path(id): Path<store::MemberId>,
) -> Result<axum::Json<profiles::Profile>, Problem> {
    reached(&kit, &actor, id.0).await?;
    let read = async {
        let found = profiles::find(&kit.read, id).await?;
        found.map(axum::Json).ok_or_else(|| Problem::not_found(NO_PROFILE))
    };
    kit.access.around(&actor, READ, vec![id.0.to_string()], read).await
}

/// Erase a member's personal data for good; the member itself stays.
#[utoipa::path(
    post,
    path = "/members/{id}/erase",
    params(("id" = store::MemberId, Path)),
    responses((status = 200, body = Named, description = "The key that opened it is destroyed."))
)]
async fn erase_member(
    State(kit): State<Kit>,
    can: Can<MemberManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::MemberId>,
    digest: Digest,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Member>(&kit, can.scope(), id, NO_MEMBER).await?;
    let command = member::Command::Erase { by: can.actor().member };
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    let erased = write.change::<Member, _>(id, command, id.into()).await?;
    // Recorded first: a key that is destroyed while a profile is sealed under it would take that one too, unrecorded.
    let known = kit.executor.load::<Member>(id).await?.state;
    let generation = known.account().map_or(0, |account| account.erasures);
    kit.keys.destroy(SubjectKey { member: id, generation }, kit.clock.now()).await?;
    Ok(erased)
}

/// Whose member it is, if the actor may know and say what is personal of it.
async fn reached(kit: &Kit, actor: &Actor, member: MemberId) -> Result<TenantId, Problem> {
    let own = actor.member == member;
    let scope = if own { Scope::One(actor.tenant) } else { Can::<MemberManage>::check(actor.clone())?.scope() };
    tenant_of::<Member>(kit, scope, member, NO_MEMBER).await
}
