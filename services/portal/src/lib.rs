//! The portal's edge: the read models over GraphQL, for who is signed in.
//!
//! Owns: the schema and its one route, `POST /graphql`. Does not own: the rows, which are those of REST
//! (`projections`); who may read what (`kit`). It only reads: what changes something goes over REST.
//! Invariants: a field reaches what its permission reaches over REST, and not more; what is out of scope is null; a
//! question is bounded in depth and in what it costs.

mod query;

pub use query::PERMISSIONS;

use async_graphql::{EmptyMutation, EmptySubscription, Request, Response, Schema};
use axum::extract::State;
use axum::routing::post;
use kit::{Actor, Fresh, Json, Kit, Problem};
use query::Query;

/// Where questions are asked.
pub const PATH: &str = "/graphql";
/// How deep a question may go.
const DEPTH_MAX: usize = 8;
/// How many fields a question may ask for, each of a list counted once.
const FIELDS_MAX: usize = 200;

type Portal = Schema<Query, EmptyMutation, EmptySubscription>;

/// The route, on what it reaches.
pub fn router(kit: Kit) -> axum::Router {
    let portal = Schema::build(Query, EmptyMutation, EmptySubscription)
        .limit_depth(DEPTH_MAX)
        .limit_complexity(FIELDS_MAX)
        .data(kit.clone())
        .finish();
    let asked = move |State(_): State<Kit>, actor: Actor, _: Fresh, question: Json<serde_json::Value>| {
        ask(portal.clone(), actor, question)
    };
    axum::Router::new().route(PATH, post(asked)).with_state(kit)
}

/// The schema in its own language.
pub fn sdl() -> String {
    Portal::build(Query, EmptyMutation, EmptySubscription).finish().sdl()
}

async fn ask(
    portal: Portal,
    actor: Actor,
    Json(question, _): Json<serde_json::Value>,
) -> Result<axum::Json<Response>, Problem> {
    let request: Request = serde_json::from_value(question).map_err(|error| {
        Problem::invalid("request.bad_field", format!("the body is not a GraphQL request: {error}"))
    })?;
    Ok(axum::Json(portal.execute(request.data(actor)).await))
}
