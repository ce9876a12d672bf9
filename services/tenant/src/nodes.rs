//! Nodes: what there is, what is in use, taking one out for maintenance, and giving one up.

use crate::describe::needs;
use crate::write::{Named, Write, tenant_of};
use axum::extract::State;
use domain::kernel::NodeId;
use domain::pools::{Node, node};
use kit::permission::{NodeManage, NodeRead};
use kit::{Can, Digest, Fresh, IdempotencyKey, Json, Kit, Path, Problem, Query, Written};
use projections::nodes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::{Page, Slice, Time};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const NOT_FOUND: &str = "node.not_found";

type Nodes = Slice<NodeSeen>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<NodeRead>(routes!(list_nodes)))
        .routes(needs::<NodeManage>(routes!(drain_node)))
        .routes(needs::<NodeManage>(routes!(resume_node)))
        .routes(needs::<NodeManage>(routes!(lose_node)))
}

/// A node, and when it was last heard of.
#[derive(Debug, Serialize, ToSchema)]
struct NodeSeen {
    #[serde(flatten)]
    node: nodes::Node,
    /// When its agent last spoke, where that is known.
    last_seen_at: Option<Time>,
}

/// Why a node takes no new work.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Drain {
    /// 1 to 200 characters.
    reason: String,
}

/// Why a node is given up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Loss {
    /// 1 to 200 characters.
    reason: String,
}

/// List the nodes, with what is in use of each.
#[utoipa::path(get, path = "/nodes", params(Page), responses((status = 200, body = Nodes, description = "Nodes.")))]
async fn list_nodes(
    State(kit): State<Kit>,
    _: Can<NodeRead>,
    _: Fresh,
    Query(page): Query<Page>,
) -> Result<axum::Json<Nodes>, Problem> {
    let seen: HashMap<_, _> = kit.runtime.seen().await?.into_iter().collect();
    let Slice { items, next_cursor } = nodes::all(&kit.read, &page).await?;
    let with = |node: nodes::Node| NodeSeen { last_seen_at: seen.get(&node.id).copied(), node };
    Ok(axum::Json(Slice { items: items.into_iter().map(with).collect(), next_cursor }))
}

/// Let a node take no new work; what runs there goes on.
#[utoipa::path(
    post,
    path = "/nodes/{id}/drain",
    params(("id" = store::NodeId, Path)),
    request_body = Drain,
    responses((status = 200, body = Named, description = "It takes no new work."))
)]
async fn drain_node(
    State(kit): State<Kit>,
    can: Can<NodeManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::NodeId>,
    Json(asked, digest): Json<Drain>,
) -> Result<Written<Named>, Problem> {
    let command = node::Command::Drain { by: can.actor().member, reason: asked.reason };
    change(&kit, &can, Write::by(&kit, can.actor(), &key, &digest), id, command).await
}

/// Let a node take new work again.
#[utoipa::path(
    post,
    path = "/nodes/{id}/resume",
    params(("id" = store::NodeId, Path)),
    responses((status = 200, body = Named, description = "It takes new work."))
)]
async fn resume_node(
    State(kit): State<Kit>,
    can: Can<NodeManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::NodeId>,
    digest: Digest,
) -> Result<Written<Named>, Problem> {
    let command = node::Command::Resume { by: can.actor().member };
    change(&kit, &can, Write::by(&kit, can.actor(), &key, &digest), id, command).await
}

/// Give a node up: its leases end at the last proof of its life, their jobs start elsewhere or fail, and it takes no new
/// work until it is heard of again.
#[utoipa::path(
    post,
    path = "/nodes/{id}/lose",
    params(("id" = store::NodeId, Path)),
    request_body = Loss,
    responses((status = 200, body = Named, description = "It is lost."))
)]
async fn lose_node(
    State(kit): State<Kit>,
    can: Can<NodeManage>,
    key: IdempotencyKey,
    Path(store::Id(id)): Path<store::NodeId>,
    Json(asked, digest): Json<Loss>,
) -> Result<Written<Named>, Problem> {
    let seen = kit.runtime.seen().await?.into_iter().find(|(node, _)| node.0 == id);
    let write = Write::by(&kit, can.actor(), &key, &digest);
    let command = node::Command::Lose {
        by: Some(can.actor().member),
        reason: asked.reason,
        seen_at: seen.map(|(_, at)| at.at()),
        at: write.now(),
    };
    change(&kit, &can, write, id, command).await
}

async fn change(
    kit: &Kit,
    can: &Can<NodeManage>,
    write: Write<'_>,
    id: NodeId,
    command: node::Command,
) -> Result<Written<Named>, Problem> {
    let tenant = tenant_of::<Node>(kit, can.scope(), id, NOT_FOUND).await?;
    write.of(tenant).change::<Node, _>(id, command, id.into()).await
}
