//! What belongs to another tenant is answered as if there were none, and never listed.

use crate::room::{Room, SKU, customer, lab, rival, some_lease};
use domain::billing::ledger::{Charge, Heading, Source};
use domain::billing::line::LineKey;
use domain::billing::statement::{ledger_key, statement_of};
use domain::billing::{Ledger, ledger};
use domain::identity::member_of;
use domain::kernel::{Currency, EventId, Id, JobId, Month, Period, Quantity, TenantId, Unit, Zone};
use serde_json::json;

/// A charge of a second of a card to the laboratory; gives the statement's id.
pub(crate) async fn charged(room: &Room, job: JobId, month: &str) -> String {
    let month: Month = month.parse().unwrap();
    let customer = customer(lab());
    let heading = Heading { customer, tenant: lab(), month, zone: Zone::default(), currency: Currency::Cny };
    let from = room.kit.clock.now();
    let charge = Charge {
        source: Source { event: EventId::derived(customer, &month.to_string()), part: 0 },
        lease: some_lease(),
        job,
        period: Period { from, to: from + chrono::TimeDelta::seconds(1) },
        key: LineKey { sku: SKU.into(), book: crate::room::book(), price_version: 1 },
        unit: Unit::CardHour,
        price: "80".parse().unwrap(),
        quantity: Quantity::held(1000, 1000).unwrap(),
    };
    let command = ledger::Command::Charge { heading, charge };
    room.give::<Ledger>(lab(), ledger_key(customer, month), command).await;
    room.show().await;
    statement_of(customer, month).to_string()
}

#[tokio::test]
async fn the_things_of_another_tenant_are_not_there() {
    let room = Room::new().await;
    room.ordered(lab(), SKU, 2).await;
    let order = room.post("li", "/orders", json!({ "sku": SKU, "quantity": 1 })).await;
    let job = room.post("li", "/jobs", json!({ "command": ["a"], "cards": { "model": "a100", "count": 1 } })).await;
    let key = room.post("li", "/keys", json!({ "name": "ci" })).await.text("id");
    let position = job.header("kashi-position").unwrap().to_owned();
    let (order, job) = (order.text("id"), job.text("id"));
    let statement = charged(&room, job.parse().unwrap(), "2026-11").await;
    let (lab_wallet, lab_member) = (format!("/tenants/{}/wallet", lab()), member_of("li"));
    let line = format!("/statements/{statement}/lines/{SKU}/1/explain");
    for (who, method, path, body, code) in [
        ("eve", "GET", format!("/orders/{order}"), None, "order.not_found"),
        ("boss", "POST", format!("/orders/{order}/approve"), None, "order.not_found"),
        ("boss", "POST", format!("/orders/{order}/reject"), Some(json!({ "reason": "no" })), "order.not_found"),
        ("eve", "POST", format!("/orders/{order}/return"), None, "order.not_found"),
        ("eve", "GET", format!("/jobs/{job}"), None, "job.not_found"),
        ("eve", "GET", format!("/jobs/{job}/why"), None, "job.not_found"),
        ("eve", "GET", format!("/jobs/{job}/output"), None, "job.not_found"),
        ("eve", "GET", format!("/jobs/{job}/charges"), None, "job.not_found"),
        ("eve", "POST", format!("/jobs/{job}/cancel"), Some(json!({})), "job.not_found"),
        ("eve", "GET", format!("/statements/{statement}"), None, "statement.not_found"),
        ("eve", "GET", line.clone(), None, "statement.not_found"),
        ("eve", "GET", format!("/events/{position}"), None, "event.not_found"),
        ("eve", "GET", lab_wallet.clone(), None, "tenant.not_found"),
        ("eve", "DELETE", format!("/keys/{key}"), None, "key.not_found"),
        ("wang", "DELETE", format!("/keys/{key}"), None, "key.not_found"),
        ("boss", "POST", format!("/members/{lab_member}/lock"), Some(json!({ "reason": "x" })), "member.not_found"),
        ("boss", "POST", format!("/members/{lab_member}/unlock"), None, "member.not_found"),
        (
            "boss",
            "POST",
            "/members".into(),
            Some(json!({ "handle": "spy", "tenant": lab(), "roles": [] })),
            "tenant.not_found",
        ),
    ] {
        let facts = room.facts().await;
        let theirs = room.ask(who, method, &path, body.clone()).await;
        assert_eq!(theirs.is(), (404, code), "{who} {method} {path}: {}", theirs.body);
        assert_eq!(room.facts().await, facts, "{who} {method} {path} stored something");
        assert!(!theirs.body.to_string().contains("lab"), "{}", theirs.body);
    }
    for path in ["/orders", "/jobs?all=true", "/quotas", "/statements", "/keys"] {
        assert_eq!(room.get("eve", path).await.body["items"], json!([]), "{path}");
    }
    let members = room.get("boss", "/members").await.body;
    assert_eq!(members["items"].as_array().unwrap().len(), 2, "{members}");
    for path in [format!("/orders/{order}"), format!("/jobs/{job}"), format!("/statements/{statement}"), line] {
        assert_eq!(room.get("li", &path).await.status, 200, "{path}");
        assert_eq!(room.get("audit", &path).await.status, 200, "{path}");
    }
    assert_eq!(room.get("li", &format!("/events/{position}")).await.body["kind"], "job.submitted");
    assert_eq!(room.get("fin", &lab_wallet).await.body["tenant"], lab().to_string());
}

#[tokio::test]
async fn what_is_nowhere_and_what_is_elsewhere_are_answered_alike() {
    let room = Room::new().await;
    let order = room.post("li", "/orders", json!({ "sku": SKU, "quantity": 1 })).await.text("id");
    let strip = |mut body: serde_json::Value| {
        body["request_id"] = json!(null);
        body
    };
    let elsewhere = strip(room.get("eve", &format!("/orders/{order}")).await.body);
    let nowhere = strip(room.get("eve", "/orders/ord_00000000000000000000000000").await.body);
    assert_eq!(elsewhere, nowhere);
    let past = room.get("li", "/events/999999").await;
    for position in ["0", "-1", "9223372036854775807"] {
        assert_eq!(strip(room.get("li", &format!("/events/{position}")).await.body), strip(past.body.clone()));
    }
}

#[tokio::test]
async fn an_operator_acts_on_a_tenants_thing_under_that_tenant() {
    let room = Room::new().await;
    let order = room.post("li", "/orders", json!({ "sku": SKU, "quantity": 1 })).await.text("id");
    let approved = room.ask("admin", "POST", &format!("/orders/{order}/approve"), None).await;
    assert_eq!((approved.status, approved.text("id")), (200, order));
    let position = approved.header("kashi-position").unwrap();
    let event = room.get("li", &format!("/events/{position}")).await.body;
    assert_eq!((&event["kind"], &event["tenant"]), (&json!("order.approved"), &json!(lab().to_string())));
    assert_eq!(event["actor"], member_of("admin").to_string());
    let quota = format!("/quotas/{}/core", rival());
    let set = room.ask("admin", "PUT", &quota, Some(json!({ "ceiling": 3 }))).await;
    let event = room.get("eve", &format!("/events/{}", set.header("kashi-position").unwrap())).await.body;
    assert_eq!((&event["kind"], &event["payload"]["milli"]), (&json!("quota.ceiling_set"), &json!(3000)));
    let nowhere =
        room.ask("admin", "PUT", "/quotas/ten_0000000000000000000000000Z/core", Some(json!({ "ceiling": 3 })));
    assert_eq!(nowhere.await.is(), (404, "tenant.not_found"));
}

#[tokio::test]
async fn events_of_identity_and_hardware_are_for_auditors() {
    let room = Room::new().await;
    room.hardware().await;
    let mut seen = vec![];
    for position in 1..=room.head() {
        let own = room.get("wang", &format!("/events/{position}")).await;
        let all = room.get("audit", &format!("/events/{position}")).await;
        assert_eq!(all.status, 200, "{}", all.body);
        let kind = all.text("kind");
        let category = kind.split('.').next().unwrap();
        let hidden = ["member", "key", "tenant", "pool", "node"].contains(&category);
        let mine = all.body["tenant"] == lab().to_string();
        assert_eq!(own.status, if mine && !hidden { 200 } else { 404 }, "{kind}");
        seen.push(category.to_owned());
    }
    for category in ["member", "tenant", "pool", "node", "contract", "wallet", "pricebook"] {
        assert!(seen.iter().any(|known| known == category), "{category} is not in the log");
    }
    assert_eq!(TenantId::PLATFORM.to_string(), room.get("audit", "/events/1").await.text("tenant"));
}
