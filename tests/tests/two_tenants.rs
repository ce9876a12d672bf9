//! No tenant sees, infers or changes another's things: every route of the REST document and every field of the GraphQL
//! schema is asked by one tenant's people with the ids of the other's things.
//!
//! The requests are made from the documents, so that a new route or field is covered by itself. One whose parameters
//! cannot be filled fails here, and the text says what to add.
//! Owns: what must not be answered and not be stored. Does not own: how a request is filled (`fill`), what is asked of
//! the schema (`questions`), who the two tenants are (`parties`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

#[path = "two_tenants/fill.rs"]
mod fill;
#[path = "two_tenants/parties.rs"]
mod parties;
#[path = "two_tenants/questions.rs"]
mod questions;

use fill::{Operation, operations};
use parties::{Parties, START};
use serde_json::Value;
use store::Engine;
use system_tests::world::{Person, Reply, World};

system_tests::on_both! {
    no_route_gives_a_stranger_anything,
    what_a_stranger_does_not_get_is_there,
    no_field_gives_a_stranger_anything,
}

/// What an answer says of the other tenant, if anything.
fn leak<'a>(parties: &'a Parties, reply: &Reply) -> Option<&'a String> {
    let text = reply.body.to_string();
    parties.secrets.iter().find(|secret| text.contains(secret.as_str()))
}

/// How many events there are, and how many of them are the other tenant's.
async fn stored(world: &World, parties: &Parties, after: i64) -> (i64, usize) {
    let events = world.kit.executor.log().read_all(after, usize::MAX).await.unwrap();
    let theirs = events.iter().filter(|stored| parties.is_theirs(stored)).count();
    (events.last().map_or(after, |stored| stored.position), theirs)
}

/// Asks as a stranger; says what is wrong with the answer, if anything.
async fn wrong(world: &World, parties: &Parties, stranger: &Person, asked: &fill::Request) -> Option<String> {
    let what = format!("{} {} {}", asked.method, asked.path, asked.body.clone().unwrap_or_default());
    let (head, _) = stored(world, parties, 0).await;
    let reply = stranger.attempt(asked.method.clone(), &asked.path, asked.body.clone(), None).await.unwrap();
    world.settled().await;
    let (status, code) = (reply.status.as_u16(), reply.body["code"].as_str().unwrap_or_default());
    if let Some(secret) = leak(parties, &reply) {
        return Some(format!("{what}\n  tells `{secret}`: {status} {}", reply.body));
    }
    if stored(world, parties, head).await.1 > 0 {
        return Some(format!("{what}\n  stored something under the other tenant: {status} {}", reply.body));
    }
    if parties.names_them(&asked.path) || asked.body.as_ref().is_some_and(|body| parties.names_them(&body.to_string()))
    {
        let hidden = matches!(status, 403 | 404);
        return (!hidden).then(|| format!("{what}\n  is neither 404 nor 403 but {status}: {}", reply.body));
    }
    let meant = status < 500 && !code.starts_with("request.");
    (!meant).then(|| format!("{what}\n  was not asked as it is meant, so it shows nothing: {status} {}", reply.body))
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} answers are not what a stranger may get:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every operation with every set of values that there is for it.
fn requests(parties: &Parties, of: impl Fn(&Operation) -> bool) -> Vec<fill::Request> {
    let document: Value = serde_json::from_str(&tenant::openapi().to_json().unwrap()).unwrap();
    let mut missing = vec![];
    let mut made = vec![];
    for operation in operations(&document).iter().filter(|operation| of(operation)) {
        match operation.requests(&document, parties) {
            Ok(requests) => made.extend(requests),
            Err(missed) => missing.push(format!("{} {}: {missed}", operation.method, operation.path)),
        }
    }
    assert!(missing.is_empty(), "a route that cannot be asked is not covered:\n{}", missing.join("\n"));
    made
}

async fn no_route_gives_a_stranger_anything(engine: Engine) {
    let world = World::new(engine, START).await;
    let parties = Parties::meet(&world).await;
    let mut found = vec![];
    let requests = requests(&parties, |_| true);
    for (who, stranger) in &parties.strangers {
        for asked in &requests {
            let problem = wrong(&world, &parties, stranger, asked).await;
            found.extend(problem.map(|problem| format!("{who}: {problem}")));
        }
    }
    assert_none(&found);
}

async fn what_a_stranger_does_not_get_is_there(engine: Engine) {
    let world = World::new(engine, START).await;
    let parties = Parties::meet(&world).await;
    let mut found = vec![];
    for asked in requests(&parties, |operation| operation.method == "GET") {
        if parties.names_them(&asked.path) {
            let mut answers = vec![];
            for owner in &parties.owners {
                answers.push(owner.get(&asked.path).await.status.as_u16());
            }
            if !answers.contains(&200) {
                found.push(format!("{}: nobody is answered ({answers:?}), so its refusal shows nothing", asked.path));
            }
        }
    }
    assert_none(&found);
}

async fn no_field_gives_a_stranger_anything(engine: Engine) {
    let world = World::new(engine, START).await;
    let parties = Parties::meet(&world).await;
    let mut found = vec![];
    for question in questions::all(&portal::sdl(), &parties) {
        let body = serde_json::json!({ "query": question });
        for (who, stranger) in &parties.strangers {
            let reply = stranger.post(portal::PATH, body.clone()).await;
            if let Some(secret) = leak(&parties, &reply) {
                found.push(format!("{who}: {question}\n  tells `{secret}`: {}", reply.body));
            }
        }
        let mut told = false;
        for owner in &parties.owners {
            let reply = owner.post(portal::PATH, body.clone()).await;
            assert!(reply.body["errors"].is_null() || reply.body["data"].is_object(), "{question}: {}", reply.body);
            told |= leak(&parties, &reply).is_some();
        }
        if !told {
            found.push(format!("{question}\n  tells its owners nothing, so what strangers get shows nothing"));
        }
    }
    assert_none(&found);
}
