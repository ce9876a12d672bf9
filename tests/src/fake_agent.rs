//! A node without hardware: it joins, and then says what a story wants it to say.
//!
//! Owns: the agent's side of the wire, by hand. Does not own: running anything.

use crate::world::{PATIENCE, Person, World, first_pool};
use agent_protocol::{Acknowledged, Card, Desired, DesiredLease, Exit, Inventory, ObservedLease, Phase, Report};
use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde_json::json;

/// A node.
pub struct FakeAgent {
    url: String,
    client: reqwest::Client,
    node: String,
    credential: String,
    inventory: Inventory,
}

impl FakeAgent {
    /// Joins with so many simulated cards.
    pub async fn join(world: &World, operator: &Person, cards: u32) -> Self {
        let issued = operator.made(&format!("/api/v1/pools/{}/join-tokens", first_pool()), json!({})).await;
        let credential = "c".repeat(64);
        let inventory = inventory(cards);
        let asked = json!({
            "token": issued["token"], "name": "n1", "credential": credential, "inventory": inventory,
        });
        let reply = world.nobody().post("/agent/v1/register", asked).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.body);
        let node = reply.body["node"].as_str().unwrap().to_owned();
        let agent = Self { url: world.url.clone(), client: world.client.clone(), node, credential, inventory };
        agent.report(vec![]).await;
        agent
    }

    /// The same node, to a platform that was started again.
    pub fn again(self, world: &World) -> Self {
        Self { url: world.url.clone(), ..self }
    }

    /// Its id.
    pub fn node(&self) -> &str {
        &self.node
    }

    fn bearer(&self) -> String {
        format!("{}.{}", self.node, self.credential)
    }

    /// What it should run, once that is newer than a generation.
    pub async fn desired(&self, after: i64) -> Desired {
        let request = self.client.get(format!("{}/agent/v1/desired?after={after}", self.url));
        let response = tokio::time::timeout(PATIENCE, request.bearer_auth(self.bearer()).send());
        response.await.expect("nothing new to run").unwrap().json().await.unwrap()
    }

    /// Waits until it should run this job.
    pub async fn asked_to_run(&self, job: &str) -> DesiredLease {
        self.wanted(job, |lease| lease.stop_after_ms.is_none()).await
    }

    /// Waits until it should end this job.
    pub async fn asked_to_stop(&self, job: &str) -> DesiredLease {
        self.wanted(job, |lease| lease.stop_after_ms.is_some()).await
    }

    async fn wanted(&self, job: &str, so: impl Fn(&DesiredLease) -> bool) -> DesiredLease {
        let mut after = 0;
        loop {
            let desired = self.desired(after).await;
            after = desired.generation;
            if let Some(lease) = desired.leases.into_iter().find(|lease| lease.job.to_string() == job && so(lease)) {
                return lease;
            }
        }
    }

    /// Says what it sees.
    pub async fn report(&self, leases: Vec<ObservedLease>) -> Acknowledged {
        let report = Report { generation: 0, inventory: self.inventory.clone(), leases };
        let request = self.client.post(format!("{}/agent/v1/report", self.url)).bearer_auth(self.bearer());
        let response = request.json(&report).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{:?}", response.text().await);
        response.json().await.unwrap()
    }

    /// Says that a lease's work has started.
    pub async fn started(&self, lease: &DesiredLease, at: DateTime<Utc>) -> Acknowledged {
        self.report(vec![running(lease, at)]).await
    }

    /// Says that a lease's work has ended.
    pub async fn ended(
        &self,
        lease: &DesiredLease,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        exit: Exit,
    ) -> Acknowledged {
        self.report(vec![over(lease, from, to, exit)]).await
    }

    /// Brings output, and says where the next is expected.
    pub async fn output(&self, lease: &DesiredLease, offset: u64, bytes: &[u8]) -> (StatusCode, serde_json::Value) {
        let url = format!("{}/agent/v1/leases/{}/output?offset={offset}", self.url, lease.lease);
        let request = self.client.put(url).bearer_auth(self.bearer()).body(bytes.to_vec());
        let response = request.send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }
}

/// A machine with 16 cores, 64 GiB and so many simulated cards.
pub fn inventory(cards: u32) -> Inventory {
    let card = |index| Card {
        index,
        uuid: format!("SIM-{index}"),
        model: "sim-a100".parse().unwrap(),
        memory_mib: 65_536,
        simulated: true,
    };
    Inventory {
        milli_cores: 16_000,
        memory_mib: 65_536,
        cards: (0..cards).map(card).collect(),
        platform: "none".into(),
        agent: "fake".into(),
    }
}

/// It runs since then.
pub fn running(lease: &DesiredLease, started_at: DateTime<Utc>) -> ObservedLease {
    ObservedLease { lease: lease.lease, generation: lease.generation, phase: Phase::Running { started_at } }
}

/// It ran from then to then.
pub fn over(lease: &DesiredLease, from: DateTime<Utc>, ended_at: DateTime<Utc>, exit: Exit) -> ObservedLease {
    let phase = Phase::Ended { started_at: Some(from), ended_at, exit, output_bytes: 0 };
    ObservedLease { lease: lease.lease, generation: lease.generation, phase }
}
