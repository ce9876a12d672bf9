//! The REST edge: self-service ordering, jobs and bills for tenants, and what operators run the platform with.
//!
//! Owns: the routes below `/api/v1`, one file per subject, and their OpenAPI document; the pages below `/problems`, which
//! are for people and not in the document. Does not own: who may do what (`kit`), any rule (`domain`), any table (`projections`).
//!
//! Every write goes one way (`write`): who asks, the command's id, `execute`, the position in the answer. The id of a
//! thing that is made follows from the command's, so that a request that is sent again meets its own stream.
//! Invariants: every handler names its permission in its signature, and the document repeats it; what is out of scope
//! is answered as if there were none; a refused write leaves evidence (`kit::access`); no answer holds a password, a
//! secret or a hash, but for a secret that was just made.

mod access;
mod account;
mod describe;
mod events;
mod explain;
mod health;
mod jobs;
mod keys;
mod line;
mod members;
mod nodes;
mod orders;
mod output;
mod pools;
mod prices;
mod problems;
mod profiles;
mod quotas;
mod read_models;
mod sign_in;
mod statements;
mod tenants;
mod tree;
mod wallets;
mod why;
mod write;

use kit::Kit;
pub use problems::{Explained, problems};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// Where every route of the API begins.
const BASE: &str = "/api/v1";

/// Every route, on what it reaches.
pub fn router(kit: Kit) -> axum::Router {
    let refusals = axum::middleware::from_fn_with_state(kit.clone(), kit::access::refusals);
    let settled = axum::middleware::from_fn_with_state(kit.clone(), kit::settled);
    parts().0.layer(settled).layer(refusals).merge(problems::routes()).with_state(kit)
}

/// What OpenAPI says of the routes. Each operation says in `x-permission` who may call it: a permission, `any member`,
/// or `anyone`.
pub fn openapi() -> OpenApi {
    parts().1
}

fn parts() -> (axum::Router<Kit>, OpenApi) {
    let subjects = [
        health::routes(),
        sign_in::routes(),
        tenants::routes(),
        members::routes(),
        profiles::routes(),
        keys::routes(),
        prices::routes(),
        orders::routes(),
        jobs::routes(),
        why::routes(),
        output::routes(),
        quotas::routes(),
        wallets::routes(),
        statements::routes(),
        explain::routes(),
        events::routes(),
        access::routes(),
        nodes::routes(),
        pools::routes(),
        read_models::routes(),
    ];
    let all = subjects.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge);
    OpenApiRouter::with_openapi(describe::document()).nest(BASE, all).split_for_parts()
}
