//! The tenants: Aurora, which has some of everything, with a project below it; and those whose people ask: Borealis, which
//! is a customer of its own, and Cirrus, which is beside Aurora in one group.
//!
//! Owns: making Aurora's things, and knowing every id and name of theirs. A new kind of thing is made here, so that the
//! routes that read it have something to hide.

use agent_protocol::Exit;
use chrono::TimeDelta;
use domain::Event;
use domain::allocation::{Plan, plan};
use domain::kernel::{Aggregate, Recorded};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use system_tests::fake_agent::FakeAgent;
use system_tests::lab::Lab;
use system_tests::world::{Person, World, first_pool};

pub(crate) const START: &str = "2026-11-10T01:00:00Z";
const CARD: &str = "card.sim-a100";
/// What Aurora's people call their things; none of it is said by anybody else.
const NAMES: &[&str] = &[
    "aurora-institute",
    "aurora-segmentation",
    "aurora-admin",
    "aurora-engineer",
    "aurora-key",
    "aurora-job",
    "aurora-output",
    "aurora@example.com",
    "+8613800000000",
    "aurora reason",
];

pub(crate) struct Parties {
    /// The other tenant's ids and names.
    pub(crate) secrets: BTreeSet<String>,
    /// The id of each kind of thing, by the prefix of such an id; theirs where there is one of theirs.
    pub(crate) ids: BTreeMap<String, String>,
    /// The positions of their events.
    pub(crate) positions: Vec<String>,
    /// Who asks: people of Borealis and of Cirrus.
    pub(crate) strangers: Vec<(&'static str, Person)>,
    /// Aurora's people and the operator.
    pub(crate) owners: Vec<Person>,
    tenants: BTreeSet<String>,
}

impl Parties {
    /// Makes both.
    pub(crate) async fn meet(world: &World) -> Self {
        let lab = Lab::found(world, 8).await;
        let (group, _) = lab.another(world, "polar", "pole", 100).await;
        let aurora = lab.below(&lab.operator, &group, NAMES[0], "tenant").await;
        let engineer = lab.equip(world, &aurora, NAMES[3], 8).await;
        let cirrus = lab.below(&lab.operator, &group, "cirrus", "tenant").await;
        let sibling = lab.equip(world, &cirrus, "cindy", 8).await;
        let neighbour = lab.person(world, &lab.operator, &cirrus, ("carl", "tenant_admin")).await;
        let payer = lab.person(world, &lab.operator, &cirrus, ("carol", "finance")).await;
        let admin = lab.person(world, &lab.operator, &aurora, (NAMES[2], "tenant_admin")).await;
        let project = lab.below(&admin, &aurora, NAMES[1], "project").await;
        let (borealis, stranger) = lab.another(world, "borealis", "boris", 8).await;
        let boss = lab.person(world, &lab.operator, &borealis, ("bella", "tenant_admin")).await;
        let key = engineer.made("/api/v1/keys", json!({ "name": NAMES[4] })).await;
        let member = engineer.get("/api/v1/whoami").await.body["member"].as_str().unwrap().to_owned();
        let profile = json!({ "name": "Aurora", "email": NAMES[7], "phone": NAMES[8] });
        let reply = engineer.put(&format!("/api/v1/members/{member}/profile"), profile).await;
        assert!(reply.status.is_success(), "{}", reply.body);
        let (order, job) = work(world, &lab, &engineer).await;
        let bills = engineer.get("/api/v1/statements").await.body;
        let of_platform = [("poo", first_pool().to_string()), ("pbk", lab.book.clone())];
        let ids = BTreeMap::from([
            ("ten", aurora.clone()),
            ("mem", member),
            ("key", key["id"].as_str().unwrap().to_owned()),
            ("ord", order),
            ("job", job),
            ("sta", bills["items"][0]["id"].as_str().unwrap().to_owned()),
        ]);
        let nodes = lab.operator.get("/api/v1/nodes").await.body;
        let node = ("nod", nodes["items"][0]["id"].as_str().unwrap().to_owned());
        let ids = ids.into_iter().chain(of_platform).chain([node]);
        let mut parties = Self {
            secrets: NAMES.iter().map(ToString::to_string).collect(),
            ids: ids.map(|(prefix, id)| (prefix.to_owned(), id)).collect(),
            positions: vec![],
            strangers: vec![
                ("the other's engineer", stranger),
                ("the other's administrator", boss),
                ("the neighbour's engineer", sibling),
                ("the neighbour's administrator", neighbour),
                ("the neighbour's finance officer", payer),
            ],
            owners: vec![engineer, admin, lab.operator],
            tenants: [aurora, project].into(),
        };
        parties.learn(world).await;
        parties
    }

    /// Every id that is in their events and in nobody else's is a secret of theirs.
    async fn learn(&mut self, world: &World) {
        world.settled().await;
        let (mut theirs, mut others) = (BTreeSet::new(), BTreeSet::new());
        for stored in world.kit.executor.log().read_all(0, usize::MAX).await.unwrap() {
            if self.is_theirs(&stored) {
                theirs.extend(ids(&stored));
                if stored.stream.category() != kit::access::CATEGORY {
                    self.positions.push(stored.position.to_string());
                }
            } else if stored.stream.category() != Plan::STREAM {
                others.extend(ids(&stored));
            }
        }
        self.secrets.extend(theirs.difference(&others).cloned());
        for prefix in ["ten", "mem", "key", "ord", "job", "lea", "ctr", "cus"] {
            let known = self.secrets.iter().any(|secret| secret.starts_with(&format!("{prefix}_")));
            assert!(known, "no id `{prefix}_…` of theirs is known");
        }
    }

    /// Whether an event is theirs; a placement is of the tenant whose job it places.
    pub(crate) fn is_theirs(&self, stored: &Recorded) -> bool {
        let tenant = match Event::read(stored) {
            Ok(Event::Plan(plan::Event::Placed(placement))) => placement.tenant,
            Ok(_) | Err(_) => stored.meta.tenant,
        };
        self.tenants.contains(&tenant.to_string())
    }

    /// Whether a request names something of theirs.
    pub(crate) fn names_them(&self, text: &str) -> bool {
        let event = text.rsplit_once("/events/").is_some_and(|(_, at)| self.positions.iter().any(|known| known == at));
        event || self.secrets.iter().filter(|secret| secret.contains('_')).any(|secret| text.contains(secret.as_str()))
    }
}

/// An active order, a job that ran under it and printed something, and so a bill.
async fn work(world: &World, lab: &Lab, engineer: &Person) -> (String, String) {
    let order = engineer.made("/api/v1/orders", json!({ "resource": CARD, "quantity": 2 })).await;
    let order = order["id"].as_str().unwrap().to_owned();
    lab.operator.made(&format!("/api/v1/orders/{order}/approve"), json!({})).await;
    let refused = engineer.made("/api/v1/orders", json!({ "resource": CARD, "quantity": 1 })).await;
    let reject = format!("/api/v1/orders/{}/reject", refused["id"].as_str().unwrap());
    lab.operator.made(&reject, json!({ "reason": NAMES[9] })).await;
    world.settled().await;
    let agent = FakeAgent::join(world, &lab.operator, 4).await;
    let ask = json!({ "name": NAMES[5], "command": ["train"], "cards": { "model": "sim-a100", "count": 1 } });
    let job = engineer.made("/api/v1/jobs", ask).await["id"].as_str().unwrap().to_owned();
    let lease = agent.asked_to_run(&job).await;
    let (from, to) = (world.now(), world.now() + TimeDelta::minutes(10));
    agent.started(&lease, from).await;
    agent.output(&lease, 0, NAMES[6].as_bytes()).await;
    agent.ended(&lease, from, to, Exit::Code { code: 0 }).await;
    world.settled().await;
    (order, job)
}

/// The ids of things in an event: in its stream's name and anywhere in its payload.
fn ids(stored: &Recorded) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let payload: Value = serde_json::from_str(&stored.payload).unwrap();
    for word in format!("{} {payload}", stored.stream).split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let id = word.split_once('_').is_some_and(|(prefix, digits)| prefix.len() == 3 && digits.len() == 26);
        // What is known by a digest of something else, such as a command, is no thing that can be asked for.
        if id && !word.starts_with("cmd_") && !word.starts_with("evt_") {
            found.insert(word.to_owned());
        }
    }
    found
}
