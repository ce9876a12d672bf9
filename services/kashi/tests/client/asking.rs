//! Reading and writing: headers, formats, languages, names, pages.

use crate::kashi::Person;
use crate::server::{Answer, Server};
use serde_json::{Value, json};

const ORDER: &str = "ord_01J00000000000000000000000";
const TENANT: &str = "ten_01J00000000000000000000000";

fn order(status: &str) -> Value {
    json!({
        "id": ORDER, "tenant": TENANT, "sku": "core", "resource": "core", "quantity": 2, "price": "0.35",
        "currency": "CNY", "status": status, "reason": null, "requested_at": "2026-11-10T01:00:00Z",
    })
}

#[tokio::test]
async fn a_write_has_a_key_and_the_next_read_shows_it() {
    let server = Server::start().await;
    server.on("POST /orders", Answer::written(41, json!({ "id": ORDER })));
    server.on("GET /orders?limit=100", Answer::json(json!({ "items": [order("requested")], "next_cursor": null })));
    let person = Person::with_key(&server);
    let ran = person.runs(&["order", "--resource", "core", "--quantity", "2"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, format!("{ORDER}\n").as_str()), "{}", ran.err);
    assert!(ran.err.contains(&format!("kashi approve {ORDER}")), "{}", ran.err);
    let ran = person.runs(&["order", "--sku", "core", "--quantity", "2", "-q"]).await;
    assert_eq!(ran.err, "");
    let [first, second] = server.asked().try_into().unwrap();
    assert_eq!(first.body, json!({ "resource": "core", "quantity": 2 }));
    assert_eq!(second.body, json!({ "sku": "core", "quantity": 2 }));
    assert_eq!(first.header("authorization"), "Bearer kashi_key");
    assert!(first.header("idempotency-key").len() == 36);
    assert_ne!(first.header("idempotency-key"), second.header("idempotency-key"));

    let ran = person.runs(&["orders"]).await;
    assert_eq!(
        ran.out,
        "ORDER                           STATUS     RESOURCE  QUANTITY  PRICE  CURRENCY  \
         TENANT                          REQUESTED            REASON\n\
         ord_01J00000000000000000000000  requested  core      2         0.35   CNY       \
         ten_01J00000000000000000000000  2026-11-10 01:00:00\n"
    );
    assert_eq!(server.asked()[2].header("kashi-min-position"), "41");
}

#[tokio::test]
async fn a_list_is_in_the_format_and_language_that_is_asked_for() {
    let server = Server::start().await;
    server.on("GET /orders?limit=100", Answer::json(json!({ "items": [order("active")], "next_cursor": null })));
    let person = Person::with_key(&server);
    let ran = person.runs(&["orders", "-o", "json"]).await;
    assert_eq!(ran.json(), json!({ "apiVersion": "kashi/v1", "kind": "OrderList", "items": [order("active")] }));
    assert_eq!(person.runs(&["orders", "-o", "name"]).await.out, format!("{ORDER}\n"));
    assert_eq!(person.runs(&["orders", "-q"]).await.out, format!("{ORDER}\n"));
    let from_environment = person.runs_with(&["orders"], &[("KASHI_OUTPUT", "name")], "").await;
    assert_eq!(from_environment.out, format!("{ORDER}\n"));
    for env in [("LANG", "zh_CN.UTF-8"), ("KASHI_LANG", "zh")] {
        let ran = person.runs_with(&["orders"], &[env], "").await;
        assert!(ran.out.starts_with("订单") && ran.out.contains("已生效"), "{}", ran.out);
    }
    let flag_wins = person.runs_with(&["orders", "--lang", "en"], &[("KASHI_LANG", "zh")], "").await;
    assert!(flag_wins.out.starts_with("ORDER "), "{}", flag_wins.out);
}

#[tokio::test]
async fn every_page_is_read_up_to_the_limit() {
    let server = Server::start().await;
    let page = |names: &[&str], next: Option<&str>| {
        let items: Vec<Value> = names.iter().map(|name| json!({ "id": name })).collect();
        Answer::json(json!({ "items": items, "next_cursor": next }))
    };
    server.on("GET /tenants?limit=200", page(&["a", "b"], Some("x/y z")));
    server.on("GET /tenants?limit=200&cursor=x%2Fy+z", page(&["c"], None));
    server.on("GET /jobs?all=true&limit=2", page(&["j1", "j2"], Some("next")));
    let person = Person::with_key(&server);
    assert_eq!(person.runs(&["tenant", "list", "-q"]).await.out, "a\nb\nc\n");
    let ran = person.runs(&["ps", "-a", "--limit", "2", "-o", "name"]).await;
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("j1\nj2\n", "there are more: --limit\n"));
}

#[tokio::test]
async fn a_name_stands_for_an_id() {
    let server = Server::start().await;
    let tenants = json!({ "items": [{ "id": TENANT, "name": "demo" }], "next_cursor": null });
    server.on("GET /tenants?limit=200", Answer::json(tenants));
    let member = json!({ "id": "mem_1", "handle": "li", "password": "made here" });
    server.on("POST /members", Answer::written(3, member));
    server.on(&format!("PUT /quotas/{TENANT}/core"), Answer::written(4, json!({ "resource": "core", "ceiling": 8 })));
    let person = Person::with_key(&server);
    let words = ["member", "add", "li", "--tenant", "demo", "--role", "engineer"];
    let ran = person.runs(&words).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "mem_1\n"), "{}", ran.err);
    assert!(ran.err.contains("password, not shown again: made here"), "{}", ran.err);
    let given = person.runs_with(&[&words[..], &["--password-stdin"]].concat(), &[], "given one\n").await;
    assert_eq!(given.code, 0, "{}", given.err);
    let asked = server.asked_for("POST /members");
    assert_eq!(asked[0].body, json!({ "handle": "li", "tenant": TENANT, "roles": ["engineer"], "password": null }));
    assert_eq!(asked[1].body["password"], "given one");
    let ran = person.runs(&["quota", "set", "--tenant", TENANT, "--resource", "core", "--ceiling", "8"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = person.runs(&["quota", "set", "--tenant", "nobody", "--resource", "core", "--ceiling", "8"]).await;
    assert_eq!(ran.code, 5);
    assert!(ran.err.contains("no tenant that is called `nobody`"), "{}", ran.err);
}

#[tokio::test]
async fn an_approval_says_what_became_of_the_order() {
    let server = Server::start().await;
    let (approve, read) = (format!("POST /orders/{ORDER}/approve"), format!("GET /orders/{ORDER}"));
    server.on(&approve, Answer::written(5, json!({ "id": ORDER })));
    server.on(&read, Answer::json(order("approved"))).on(&read, Answer::json(order("active")));
    let person = Person::with_key(&server);
    let ran = person.runs(&["approve", ORDER, "-o", "json"]).await;
    assert_eq!((ran.code, ran.json()["status"].as_str()), (0, Some("active")), "{}", ran.err);
    assert_eq!(server.asked_for(&read)[0].header("kashi-min-position"), "5");
    server.only(&read, Answer::json(order("refused")));
    let ran = person.runs(&["approve", ORDER]).await;
    assert_eq!(ran.code, 7, "{}", ran.err);
}

#[tokio::test]
async fn an_event_keeps_its_own_kind() {
    let server = Server::start().await;
    let event = json!({
        "position": 12, "stream": "job-1", "revision": 0, "kind": "job.submitted", "payload": { "type": "submitted" },
        "occurred_at": "2026-11-10T01:00:00.250Z",
    });
    server.on("GET /events/12", Answer::json(event));
    let person = Person::with_key(&server);
    assert_eq!(person.runs(&["event", "12", "-o", "json"]).await.json()["kind"], "job.submitted");
    let ran = person.runs(&["event", "12"]).await;
    assert!(ran.out.contains("KIND      job.submitted\n"), "{}", ran.out);
    assert!(
        ran.out.contains("2026-11-10 01:00:00.250+00:00") && ran.out.contains("\"type\": \"submitted\""),
        "{}",
        ran.out
    );
}
