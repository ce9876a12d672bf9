//! A laboratory that is a customer: its tenant, contract, prices, quota and people, made over HTTP.

use crate::world::{Person, World};
use serde_json::json;

/// The laboratory.
pub struct Lab {
    pub operator: Person,
    pub tenant: String,
    pub engineer: Person,
    pub book: String,
}

impl Lab {
    /// Founds it: cards at 80 and cores at 0.35 an hour, quota for so many cards and a hundred cores.
    pub async fn found(world: &World, cards: i64) -> Self {
        let operator = world.operator().await;
        let sku = "card.sim-a100";
        for (sku, resource) in [(sku, sku), ("core", "core")] {
            let product = json!({ "sku": sku, "resource": resource, "name_zh": sku, "name_en": sku });
            operator.made("/api/v1/products", product).await;
        }
        let book = operator.made("/api/v1/price-books", json!({ "name": "list", "currency": "CNY" })).await;
        let book = book["id"].as_str().unwrap().to_owned();
        let prices = json!({ "prices": { sku: "80", "core": "0.35" } });
        operator.made(&format!("/api/v1/price-books/{book}/versions"), prices).await;
        world.settled().await;
        let mut lab = Self { tenant: String::new(), engineer: operator.clone(), operator, book };
        (lab.tenant, lab.engineer) = lab.another(world, "lab", "li", cards).await;
        lab
    }

    /// Another customer like it.
    pub async fn another(&self, world: &World, name: &str, handle: &str, cards: i64) -> (String, Person) {
        let tenant = self.operator.made("/api/v1/tenants", json!({ "name": name })).await;
        let tenant = tenant["id"].as_str().unwrap().to_owned();
        let engineer = self.equip(world, &tenant, handle, cards).await;
        (tenant, engineer)
    }

    /// Gives a tenant a contract, quotas, credit and an engineer.
    pub async fn equip(&self, world: &World, tenant: &str, handle: &str, cards: i64) -> Person {
        let operator = &self.operator;
        world.settled().await;
        operator.made(&format!("/api/v1/tenants/{tenant}/contract"), json!({ "book": self.book })).await;
        world.settled().await;
        for (resource, ceiling) in [("card.sim-a100", cards), ("core", 100)] {
            let reply =
                operator.put(&format!("/api/v1/quotas/{tenant}/{resource}"), json!({ "ceiling": ceiling })).await;
            assert!(reply.status.is_success(), "{}", reply.body);
        }
        let credit = format!("/api/v1/tenants/{tenant}/wallet/credit");
        assert!(operator.put(&credit, json!({ "amount": "10000" })).await.status.is_success());
        let password = "engineers password";
        let member = json!({ "handle": handle, "tenant": tenant, "roles": ["engineer"], "password": password });
        operator.made("/api/v1/members", member).await;
        let session = world.nobody().made("/api/v1/login", json!({ "handle": handle, "password": password })).await;
        world.settled().await;
        world.nobody().with(session["token"].as_str().unwrap())
    }

    /// A tenant or project below one, made by whoever may.
    pub async fn below(&self, by: &Person, parent: &str, name: &str, kind: &str) -> String {
        let made = by.made("/api/v1/tenants", json!({ "name": name, "parent": parent, "kind": kind })).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// Somebody of a tenant, added by whoever may, and signed in.
    pub async fn person(&self, world: &World, by: &Person, tenant: &str, (handle, role): (&str, &str)) -> Person {
        let password = "a password of somebody";
        let member = json!({ "handle": handle, "tenant": tenant, "roles": [role], "password": password });
        by.made("/api/v1/members", member).await;
        let session = world.nobody().made("/api/v1/login", json!({ "handle": handle, "password": password })).await;
        world.nobody().with(session["token"].as_str().unwrap())
    }

    /// An order that was approved, and what became of it.
    pub async fn order(&self, world: &World, resource: &str, quantity: i64) -> String {
        let order = self.engineer.made("/api/v1/orders", json!({ "resource": resource, "quantity": quantity })).await;
        let order = order["id"].as_str().unwrap().to_owned();
        self.operator.made(&format!("/api/v1/orders/{order}/approve"), json!({})).await;
        world.settled().await;
        order
    }

    /// A job on so many cards, or on cores where there are none.
    pub async fn submit(&self, cards: u32) -> String {
        let mut job = json!({ "name": "train", "command": ["python3", "train.py"] });
        if cards > 0 {
            job["cards"] = json!({ "model": "sim-a100", "count": cards });
        }
        let made = self.engineer.made("/api/v1/jobs", job).await;
        made["id"].as_str().unwrap().to_owned()
    }
}
