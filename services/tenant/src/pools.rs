//! Pools of nodes, and the tokens with which machines join them.

use crate::describe::needs;
use crate::prices::whole;
use crate::write::{Named, Write, tenant_of};
use axum::extract::State;
use chrono::TimeDelta;
use domain::kernel::{PoolId, TenantId};
use domain::pools::{Pool, pool};
use kit::auth::secret;
use kit::permission::{NodeManage, NodeRead};
use kit::{Can, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Written};
use projections::nodes;
use serde::{Deserialize, Serialize};
use store::{Slice, Time};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const HOUR_S: i64 = 3600;
const EXPIRES_IN_S_MAX: i64 = 7 * 24 * HOUR_S;

type Pools = Slice<nodes::Pool>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<NodeRead>(routes!(list_pools)))
        .routes(needs::<NodeManage>(routes!(create_pool)))
        .routes(needs::<NodeManage>(routes!(issue_join_token)))
}

/// A pool to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewPool {
    /// What people call it: 1 to 64 characters.
    name: String,
}

/// A join token to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewJoinToken {
    /// How many seconds it may be used; an hour, unless it is said, and a week at most.
    #[schema(minimum = 1, maximum = 604_800)]
    expires_in_s: Option<i64>,
}

/// A join token.
#[derive(Serialize, ToSchema)]
struct JoinToken {
    /// What the agent of one machine joins with, once. It is not shown again.
    token: String,
    expires_at: Time,
}

/// List the pools.
#[utoipa::path(get, path = "/pools", responses((status = 200, body = Pools, description = "Pools, all on one page.")))]
async fn list_pools(State(kit): State<Kit>, _: Can<NodeRead>, _: Fresh) -> Result<axum::Json<Pools>, Problem> {
    whole(nodes::pools(&kit.read).await?)
}

/// Create a pool.
#[utoipa::path(
    post,
    path = "/pools",
    request_body = NewPool,
    responses((status = 201, body = Named, description = "It is there."))
)]
async fn create_pool(
    State(kit): State<Kit>,
    can: Can<NodeManage>,
    key: IdempotencyKey,
    Json(asked, digest): Json<NewPool>,
) -> Result<Written<Named>, Problem> {
    let write = Write::by(&kit, can.actor(), &key, &digest).of(TenantId::PLATFORM);
    let pool: PoolId = write.new_id();
    write.make::<Pool, _>(pool, pool::Command::Create { pool, name: asked.name }, pool.into()).await
}

/// Issue a token with which one machine joins a pool.
#[utoipa::path(
    post,
    path = "/pools/{id}/join-tokens",
    params(("id" = store::PoolId, Path)),
    request_body = NewJoinToken,
    responses((status = 201, body = JoinToken, description = "The token, shown once."))
)]
async fn issue_join_token(
    State(kit): State<Kit>,
    can: Can<NodeManage>,
    key: IdempotencyKey,
    Path(store::Id(pool)): Path<store::PoolId>,
    Json(asked, digest): Json<NewJoinToken>,
) -> Result<Written<JoinToken>, Problem> {
    let tenant = tenant_of::<Pool>(&kit, can.scope(), pool, "pool.not_found").await?;
    let seconds = asked.expires_in_s.unwrap_or(HOUR_S);
    if !(1..=EXPIRES_IN_S_MAX).contains(&seconds) {
        let detail = format!("a join token may be used for 1 to {EXPIRES_IN_S_MAX} seconds");
        return Err(Problem::invalid("pool.bad_expiry", detail.clone()).with_field("/expires_in_s", detail));
    }
    let write = Write::by(&kit, can.actor(), &key, &digest).of(tenant);
    let expires_at = write.now() + TimeDelta::seconds(seconds);
    let secret = secret::generate();
    let issue = pool::Command::IssueJoinToken { hash: secret::hash(&secret), expires_at, by: can.actor().member };
    let token = JoinToken { token: format!("{pool}.{secret}"), expires_at: expires_at.into() };
    write.make_secret::<Pool, _>(pool, issue, token).await
}
