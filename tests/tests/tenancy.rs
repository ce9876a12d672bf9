//! The organisation tree over HTTP: who may do what where, quota along the tree, suspension, one bill for all below.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::TimeDelta;
use futures::future::join_all;
use serde_json::{Value, json};
use store::Engine;
use system_tests::fake_agent::FakeAgent;
use system_tests::lab::Lab;
use system_tests::world::{Person, Reply, World, until};

system_tests::on_both! {
    a_hundred_orders_oversell_no_level,
    an_administrator_runs_what_is_below_and_nothing_else,
    a_project_is_billed_on_the_contract_above_it_under_its_own_name,
    a_suspended_tenant_begins_nothing_new_and_goes_on_with_what_it_has,
}

const START: &str = "2026-11-10T01:00:00Z";
const CARD: &str = "card.sim-a100";

fn items(body: &Value) -> Vec<Value> {
    body["items"].as_array().unwrap_or_else(|| panic!("no list: {body}")).clone()
}

async fn listed(by: &Person, path: &str) -> Vec<Value> {
    items(&by.get(path).await.body)
}

fn is(reply: &Reply) -> (u16, &str) {
    (reply.status.as_u16(), reply.body["code"].as_str().unwrap_or_default())
}

async fn set_quota(by: &Person, tenant: &str, ceiling: i64) -> Reply {
    by.put(&format!("/api/v1/quotas/{tenant}/{CARD}"), json!({ "ceiling": ceiling })).await
}

async fn order(by: &Person, quantity: i64) -> String {
    let made = by.made("/api/v1/orders", json!({ "resource": CARD, "quantity": quantity })).await;
    made["id"].as_str().unwrap().to_owned()
}

async fn approve(by: &Person, order: &str) -> Reply {
    by.post(&format!("/api/v1/orders/{order}/approve"), json!({})).await
}

async fn submit(by: &Person, cards: u32) -> Reply {
    by.post("/api/v1/jobs", json!({ "command": ["train"], "cards": { "model": "sim-a100", "count": cards } })).await
}

/// A laboratory with two tenants below it and two projects below each, and an engineer at each node.
struct Tree {
    lab: Lab,
    /// Node, parent's place in this list, own ceiling, engineer.
    nodes: Vec<(String, Option<usize>, Option<i64>, Person)>,
}

impl Tree {
    async fn grown(world: &World) -> Self {
        let lab = Lab::found(world, 20).await;
        let mut nodes = vec![(lab.tenant.clone(), None, Some(20), lab.engineer.clone())];
        for (name, parent, kind, ceiling) in [
            ("east", 0, "tenant", Some(12)),
            ("west", 0, "tenant", None),
            ("east-1", 1, "project", Some(7)),
            ("east-2", 1, "project", Some(9)),
            ("west-1", 2, "project", Some(5)),
            ("west-2", 2, "project", None),
        ] {
            let above: &String = &nodes[parent].0;
            let node = lab.below(&lab.operator, above, name, kind).await;
            if let Some(ceiling) = ceiling {
                assert!(set_quota(&lab.operator, &node, ceiling).await.status.is_success());
            }
            let engineer = lab.person(world, &lab.operator, &node, (name, "engineer")).await;
            nodes.push((node, Some(parent), ceiling, engineer));
        }
        Self { lab, nodes }
    }

    /// The nodes from one up to the root, itself first.
    fn upwards(&self, node: &str) -> Vec<String> {
        let mut at = self.nodes.iter().position(|(id, ..)| id == node);
        let mut path = vec![];
        while let Some(place) = at {
            path.push(self.nodes[place].0.clone());
            at = self.nodes[place].1;
        }
        path
    }
}

async fn a_hundred_orders_oversell_no_level(engine: Engine) {
    let world = World::new(engine, START).await;
    let tree = Tree::grown(&world).await;
    let ask = async |number: usize| {
        let (.., engineer) = &tree.nodes[number % tree.nodes.len()];
        let order = order(engineer, 1).await;
        let approved = approve(&tree.lab.operator, &order).await;
        assert!(approved.status.is_success(), "{}", approved.body);
    };
    join_all((0..100).map(ask)).await;
    world.settled().await;
    let orders = listed(&tree.lab.operator, "/api/v1/orders?limit=200").await;
    assert_eq!(orders.len(), 100);
    let quotas = listed(&tree.lab.operator, "/api/v1/quotas?limit=200").await;
    let mut full = vec![];
    for (node, _, ceiling, _) in &tree.nodes {
        let active = orders.iter().filter(|order| order["status"] == "active");
        let under = active.filter(|order| tree.upwards(order["tenant"].as_str().unwrap()).contains(node)).count();
        let row = quotas.iter().find(|row| row["tenant"] == **node && row["resource"] == CARD);
        let Some(row) = row else {
            assert_eq!(under, 0, "{node} has no row");
            continue;
        };
        assert_eq!(row["counted"], under, "{row}");
        let ceiling = row["ceiling"].as_u64().unwrap().min(ceiling.map_or(20, |own| own as u64));
        assert!(under as u64 <= ceiling, "{node} is oversold: {under} of {ceiling}");
        if under as u64 == ceiling {
            full.push(node.as_str());
        }
    }
    assert!(full.contains(&tree.lab.tenant.as_str()), "what may be ordered is: {quotas:?}");
    for order in orders.iter().filter(|order| order["status"] != "active") {
        let (reason, own) = (order["reason"].as_str().unwrap(), order["tenant"].as_str().unwrap());
        assert!(reason.starts_with("quota: 1 wanted, 0 free"), "{order}");
        let short = reason.split("under the ceiling of ").nth(1).unwrap_or(own);
        assert!(full.contains(&short) && tree.upwards(own).iter().any(|node| node == short), "{order}");
    }
}

async fn an_administrator_runs_what_is_below_and_nothing_else(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 10).await;
    let admin = lab.person(&world, &lab.operator, &lab.tenant, ("boss", "tenant_admin")).await;
    let (rival, _) = lab.another(&world, "rival", "eve", 10).await;
    let project = lab.below(&admin, &lab.tenant, "segmentation", "project").await;
    // No waiting in between: what was just made is in reach at once.
    let engineer = lab.person(&world, &admin, &project, ("yan", "engineer")).await;
    assert!(set_quota(&admin, &project, 4).await.status.is_success());
    assert_eq!(is(&set_quota(&admin, &project, 11).await), (409, "quota.above_parent"));
    assert_eq!(is(&set_quota(&admin, &lab.tenant, 9).await), (403, "quota.own"));
    assert_eq!(is(&set_quota(&admin, &rival, 1).await), (404, "tenant.not_found"));
    for parent in [&rival, &domain::kernel::TenantId::PLATFORM.to_string()] {
        let asked = admin.post("/api/v1/tenants", json!({ "name": "mine", "parent": parent })).await;
        assert_eq!(is(&asked), (404, "tenant.not_found"), "{parent}");
    }
    let asked = engineer.post("/api/v1/tenants", json!({ "name": "mine" })).await;
    assert_eq!(is(&asked), (403, "auth.forbidden"));

    let wanted = order(&engineer, 3).await;
    assert!(approve(&admin, &wanted).await.status.is_success());
    let own = order(&admin, 1).await;
    assert_eq!(is(&approve(&admin, &own).await), (409, "order.self_approval"));
    let too_many = order(&engineer, 2).await;
    assert!(approve(&admin, &too_many).await.status.is_success());
    world.settled().await;
    assert_eq!(engineer.get(&format!("/api/v1/orders/{too_many}")).await.body["reason"], "quota: 2 wanted, 1 free");

    // The subtree in the administrator's lists; the own node alone in the engineers'.
    let tenants_of = async |by: &Person, path: &str| {
        let mut tenants: Vec<_> =
            listed(by, path).await.iter().map(|row| row["tenant"].as_str().unwrap().to_owned()).collect();
        tenants.sort();
        tenants.dedup();
        tenants
    };
    let mut both = vec![lab.tenant.clone(), project.clone()];
    both.sort();
    for path in ["/api/v1/orders", "/api/v1/quotas", "/api/v1/members"] {
        assert_eq!(tenants_of(&admin, path).await, both, "{path}");
    }
    assert_eq!(listed(&admin, "/api/v1/tenants").await.len(), 2);
    assert_eq!(tenants_of(&engineer, "/api/v1/orders").await, [project.as_str()]);
    assert_eq!(tenants_of(&lab.engineer, "/api/v1/orders").await, [lab.tenant.as_str()]);
    assert_eq!(is(&lab.engineer.get(&format!("/api/v1/orders/{wanted}")).await), (404, "order.not_found"));
    assert_eq!(is(&engineer.get(&format!("/api/v1/orders/{own}")).await), (404, "order.not_found"));
}

async fn a_project_is_billed_on_the_contract_above_it_under_its_own_name(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let finance = lab.person(&world, &lab.operator, &lab.tenant, ("fin", "finance")).await;
    let project = lab.below(&lab.operator, &lab.tenant, "segmentation", "project").await;
    let engineer = lab.person(&world, &lab.operator, &project, ("yan", "engineer")).await;
    let agent = FakeAgent::join(&world, &lab.operator, 4).await;
    lab.order(&world, CARD, 1).await;
    // What another node has ordered is not for its jobs.
    assert_eq!(is(&submit(&engineer, 1).await), (409, "quota.nothing_ordered"));
    let wanted = order(&engineer, 1).await;
    assert!(approve(&lab.operator, &wanted).await.status.is_success());
    world.settled().await;
    for by in [&engineer, &lab.engineer] {
        let submitted = submit(by, 1).await;
        let job = submitted.body["id"].as_str().unwrap_or_else(|| panic!("{}", submitted.body)).to_owned();
        let lease = agent.asked_to_run(&job).await;
        let (from, to) = (world.now(), world.now() + TimeDelta::hours(1));
        agent.started(&lease, from).await;
        agent.ended(&lease, from, to, Exit::Code { code: 0 }).await;
        world.settled().await;
    }
    let bills = listed(&finance, "/api/v1/statements").await;
    assert_eq!(bills.len(), 1, "{bills:?}");
    assert_eq!(bills[0]["tenant"], lab.tenant.as_str());
    let bill = bills[0]["id"].as_str().unwrap();
    let whole = finance.get(&format!("/api/v1/statements/{bill}")).await.body;
    assert_eq!((&whole["total"]["total"], &whole["lines"][0]["tenant"]), (&json!("160"), &json!(lab.tenant)));
    let explain = format!("/api/v1/statements/{bill}/lines/{CARD}/1/explain");
    let charged = async |by: &Person| -> Vec<Value> {
        listed(by, &explain).await.iter().map(|item| item["charge"]["tenant"].clone()).collect()
    };
    assert_eq!(charged(&finance).await, [project.as_str(), lab.tenant.as_str()]);
    // The laboratory's own engineer is not shown what a project did, and the project not the laboratory's bill.
    assert_eq!(charged(&lab.engineer).await, [lab.tenant.as_str()]);
    assert_eq!(is(&engineer.get(&format!("/api/v1/statements/{bill}")).await), (404, "statement.not_found"));
    let wallet = finance.get(&format!("/api/v1/tenants/{}/wallet", lab.tenant)).await.body;
    assert_eq!(wallet["consumed"], "160");
}

async fn a_suspended_tenant_begins_nothing_new_and_goes_on_with_what_it_has(engine: Engine) {
    let world = World::new(engine, START).await;
    let lab = Lab::found(&world, 4).await;
    let project = lab.below(&lab.operator, &lab.tenant, "segmentation", "project").await;
    let engineer = lab.person(&world, &lab.operator, &project, ("yan", "engineer")).await;
    let agent = FakeAgent::join(&world, &lab.operator, 2).await;
    let wanted = order(&engineer, 4).await;
    approve(&lab.operator, &wanted).await;
    let later = order(&engineer, 1).await;
    world.settled().await;
    let runs = submit(&engineer, 2).await.body["id"].as_str().unwrap().to_owned();
    let lease = agent.asked_to_run(&runs).await;
    agent.started(&lease, world.now()).await;
    let waits = submit(&engineer, 2).await.body["id"].as_str().unwrap().to_owned();
    world.settled().await;

    let (suspend, resume) =
        (format!("/api/v1/tenants/{}/suspend", lab.tenant), format!("/api/v1/tenants/{}/resume", lab.tenant));
    let admin = lab.person(&world, &lab.operator, &lab.tenant, ("boss", "tenant_admin")).await;
    assert_eq!(is(&admin.post(&suspend, json!({ "reason": "no" })).await), (403, "auth.forbidden"));
    lab.operator.made(&suspend, json!({ "reason": "in arrears" })).await;
    for by in [&lab.engineer, &engineer] {
        let asked = by.post("/api/v1/orders", json!({ "resource": CARD, "quantity": 1 })).await;
        assert_eq!(is(&asked), (409, "tenant.suspended"));
        assert!(asked.body["detail"].as_str().unwrap().ends_with("is suspended: in arrears"), "{}", asked.body);
        assert_eq!(is(&submit(by, 1).await), (409, "tenant.suspended"));
    }
    assert_eq!(is(&approve(&lab.operator, &later).await), (409, "tenant.suspended"));
    // Signing in works, reading works, what runs is not ended; its end frees cards that nobody below may take.
    let session = json!({ "handle": "yan", "password": "a password of somebody" });
    world.nobody().made("/api/v1/login", session).await;
    assert_eq!(engineer.get(&format!("/api/v1/jobs/{runs}")).await.body["status"], "running");
    agent.ended(&lease, world.now(), world.now(), Exit::Code { code: 0 }).await;
    world.settled().await;
    let why = || async { engineer.get(&format!("/api/v1/jobs/{waits}/why?lang=en")).await.body };
    let reason = why().await;
    assert_eq!(reason["reason"], json!({ "reason": "tenant_suspended", "tenant": lab.tenant }), "{reason}");
    let id = waits.parse().unwrap();
    until("the scheduler to say it too", || async {
        let told = world.kit.runtime.why(id).await.unwrap();
        told.is_some_and(|(why, _)| why.contains("tenant_suspended"))
    })
    .await;
    assert_eq!(agent.desired(0).await.leases, []);
    assert_eq!(engineer.get(&format!("/api/v1/jobs/{waits}")).await.body["status"], "queued");

    lab.operator.made(&resume, json!({})).await;
    agent.report(vec![]).await;
    agent.asked_to_run(&waits).await;
    assert!(approve(&lab.operator, &later).await.status.is_success());
}
