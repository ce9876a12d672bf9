//! One's own API keys.

use crate::describe::needs;
use crate::write::{Named, Write};
use axum::extract::State;
use domain::identity::{ApiKey, api_key};
use kit::auth::key::KeyText;
use kit::permission::KeyManage;
use kit::{Can, Digest, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Written};
use projections::api_keys;
use serde::{Deserialize, Serialize};
use store::{Page, Slice, Time};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

type Keys = Slice<api_keys::ApiKey>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<KeyManage>(routes!(issue_key)))
        .routes(needs::<KeyManage>(routes!(list_keys)))
        .routes(needs::<KeyManage>(routes!(revoke_key)))
}

/// A key to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// What it is for: 1 to 64 characters.
    name: String,
    /// When it ends, later than now; never, unless it is said.
    expires_at: Option<Time>,
}

/// A key that was issued.
#[derive(Serialize, ToSchema)]
struct Issued {
    id: store::KeyId,
    /// The key, which is not shown again. Send it as `Authorization: Bearer …`.
    key: String,
}

/// Issue an API key that acts as who asks for it.
#[utoipa::path(
    post,
    path = "/keys",
    request_body = NewKey,
    responses((status = 201, body = Issued, description = "The key, shown once."))
)]
async fn issue_key(
    State(kit): State<Kit>,
    can: Can<KeyManage>,
    key: IdempotencyKey,
    Json(asked, digest): Json<NewKey>,
) -> Result<Written<Issued>, Problem> {
    let (tenant, member) = (can.actor().tenant, can.actor().member);
    let write = Write::by(&kit, can.actor(), &key, &digest);
    let expires_at = asked.expires_at.map(Time::at);
    if expires_at.is_some_and(|end| end <= write.now()) {
        let detail = "a key ends later than now, or never";
        return Err(Problem::invalid("key.bad_expiry", detail).with_field("/expires_at", detail));
    }
    let key = KeyText::generate(write.new_id());
    let command = api_key::Command::Issue { tenant, member, name: asked.name, hash: key.hash(), expires_at };
    let issued = Issued { id: key.id().into(), key: key.to_string() };
    write.make_secret::<ApiKey, _>(key.id(), command, issued).await
}

/// List one's own API keys, without their secrets.
#[utoipa::path(get, path = "/keys", params(Page), responses((status = 200, body = Keys, description = "Keys.")))]
async fn list_keys(
    State(kit): State<Kit>,
    can: Can<KeyManage>,
    _: Fresh,
    Query(page): Query<Page>,
) -> Result<axum::Json<Keys>, Problem> {
    Ok(axum::Json(api_keys::of_member(&kit.read, can.actor().member.into(), &page).await?))
}

/// Revoke one of one's own API keys, at once and for good.
#[utoipa::path(
    delete,
    path = "/keys/{id}",
    params(("id" = store::KeyId, Path)),
    responses((status = 200, body = Named, description = "It is revoked."))
)]
async fn revoke_key(
    State(kit): State<Kit>,
    can: Can<KeyManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::KeyId>,
    digest: Digest,
) -> Result<Written<Named>, Problem> {
    let known = kit.executor.load::<ApiKey>(id).await?.state;
    let by = can.actor().member;
    if known.grant().is_none_or(|grant| grant.member != by) {
        return Err(Problem::not_found("key.not_found"));
    }
    let write = Write::by(&kit, can.actor(), &key, &digest);
    write.change::<ApiKey, _>(id, api_key::Command::Revoke { by }, id.into()).await
}
