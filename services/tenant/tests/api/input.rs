//! Bad input for every write: refused as a problem that says what is wrong, and nothing is stored.

use crate::room::{Room, SKU, book, lab, node_id, pool_id};
use domain::identity::member_of;
use domain::kernel::TenantId;
use serde_json::{Value, json};

const TOO_MANY: usize = 70_000;

/// Asks, and expects a refusal that stores nothing.
async fn refused(room: &Room, who: &str, call: (&str, &str), body: Value, code: &str) {
    let facts = room.facts().await;
    let (method, path) = call;
    let answer = room.ask(who, method, path, Some(body.clone())).await;
    let shown: String = body.to_string().chars().take(200).collect();
    assert_eq!(answer.is().1, code, "{method} {path} {shown}: {}", answer.body);
    assert!((400..500).contains(&answer.status), "{}", answer.body);
    assert!(!answer.body["detail"].as_str().unwrap().is_empty());
    assert_eq!(room.facts().await, facts, "{method} {path} {shown} stored something");
}

/// Every write with a body that would be accepted, but for what it is about.
fn writes() -> Vec<(&'static str, &'static str, String, Value)> {
    let (tenant, book, pool, node) = (lab(), book(), pool_id(), node_id());
    let li = member_of("li");
    let order = "ord_00000000000000000000000001";
    let job = "job_00000000000000000000000001";
    vec![
        ("admin", "POST", "/tenants".into(), json!({ "name": "new" })),
        ("admin", "POST", format!("/tenants/{tenant}/contract"), json!({ "book": book })),
        ("admin", "POST", format!("/tenants/{tenant}/wallet/top-ups"), json!({ "amount": "10", "reference": "r" })),
        ("admin", "PUT", format!("/tenants/{tenant}/wallet/credit"), json!({ "amount": "10" })),
        ("admin", "POST", "/members".into(), json!({ "handle": "new", "tenant": tenant, "roles": ["engineer"] })),
        ("admin", "POST", format!("/members/{li}/lock"), json!({ "reason": "left" })),
        ("li", "POST", "/keys".into(), json!({ "name": "ci" })),
        ("li", "POST", "/password".into(), json!({ "current": "x", "new": "a longer password" })),
        (
            "admin",
            "POST",
            "/products".into(),
            json!({ "sku": "new", "resource": "core", "name_zh": "核", "name_en": "core" }),
        ),
        ("admin", "POST", "/price-books".into(), json!({ "name": "new", "currency": "CNY" })),
        ("admin", "POST", format!("/price-books/{book}/versions"), json!({ "prices": { "core": "1" } })),
        ("li", "POST", "/orders".into(), json!({ "sku": SKU, "quantity": 1 })),
        ("admin", "POST", format!("/orders/{order}/reject"), json!({ "reason": "no" })),
        ("li", "POST", "/jobs".into(), json!({ "command": ["a"] })),
        ("li", "POST", format!("/jobs/{job}/cancel"), json!({ "reason": "enough" })),
        ("admin", "PUT", format!("/quotas/{tenant}/core"), json!({ "ceiling": 1 })),
        ("admin", "POST", format!("/nodes/{node}/drain"), json!({ "reason": "repair" })),
        ("admin", "POST", "/pools".into(), json!({ "name": "new" })),
        ("admin", "POST", format!("/pools/{pool}/join-tokens"), json!({ "expires_in_s": 60 })),
    ]
}

#[tokio::test]
async fn an_unknown_field_and_a_wrong_type_are_refused_by_every_write() {
    let room = Room::new().await;
    room.hardware().await;
    for (who, method, path, good) in writes() {
        let mut unknown = good.clone();
        unknown["surprise"] = json!(1);
        refused(&room, who, (method, &path), unknown, "request.bad_field").await;
        for field in good.as_object().unwrap().keys() {
            let mut wrong = good.clone();
            wrong[field] = json!({ "not": ["so"] });
            refused(&room, who, (method, &path), wrong, "request.bad_field").await;
        }
        refused(&room, who, (method, &path), json!("text"), "request.bad_field").await;
        refused(&room, who, (method, &path), json!(null), "request.bad_field").await;
        let bare = room.ask(who, method, &path, None).await;
        assert_eq!(bare.is(), (415, "request.not_json"), "{method} {path}");
    }
}

#[tokio::test]
async fn an_id_of_another_kind_is_refused_in_every_path() {
    let room = Room::new().await;
    for (who, method, path, good) in writes() {
        let Some((id, _)) = path.split('/').filter_map(|part| part.split_once('_')).next() else { continue };
        let wrong = path.replace(&format!("{id}_"), "sta_");
        refused(&room, who, (method, &wrong), good.clone(), "request.bad_path").await;
    }
    for path in ["/orders/x", "/jobs/job_1", "/statements/ord_00000000000000000000000001", "/events/first"] {
        assert_eq!(room.get("li", path).await.is(), (400, "request.bad_path"), "{path}");
    }
}

#[tokio::test]
async fn quantities_are_whole_above_zero_and_sane() {
    let room = Room::new().await;
    room.ordered(lab(), SKU, 2).await;
    for quantity in [0, -1, 1_000_001, i64::MAX, i64::MIN] {
        let body = json!({ "sku": SKU, "quantity": quantity });
        refused(&room, "li", ("POST", "/orders"), body, "order.bad_quantity").await;
    }
    for quantity in [json!(1.5), json!("1"), json!(1e30), json!(null)] {
        refused(&room, "li", ("POST", "/orders"), json!({ "sku": SKU, "quantity": quantity }), "request.bad_field")
            .await;
    }
    let quota = format!("/quotas/{}/core", lab());
    for ceiling in [-1, 1_000_001, i64::MAX] {
        refused(&room, "admin", ("PUT", &quota), json!({ "ceiling": ceiling }), "quota.bad_ceiling").await;
    }
    let with = |field: &str, value: Value| {
        let mut job = json!({ "command": ["a"], "cards": { "model": "a100", "count": 1 } });
        job[field] = value;
        job
    };
    for (field, value, code) in [
        ("cards", json!({ "model": "a100", "count": 0 }), "job.bad_demand"),
        ("cards", json!({ "model": "a100", "count": u32::MAX }), "job.bad_demand"),
        ("cards", json!({ "model": "a100", "count": -1 }), "request.bad_field"),
        ("cards", json!({ "model": "A 100!", "count": 1 }), "request.bad_field"),
        ("milli_cores", json!(0), "job.bad_demand"),
        ("milli_cores", json!(i64::MAX), "job.bad_demand"),
        ("memory_mib", json!(-1), "job.bad_demand"),
        ("time_limit_s", json!(0), "job.bad_time_limit"),
        ("time_limit_s", json!(i64::MAX), "job.bad_time_limit"),
        ("command", json!([]), "job.bad_command"),
        ("command", json!([""]), "job.bad_command"),
        ("command", json!(["a", "b\0c"]), "job.bad_command"),
        ("command", json!(vec!["a"; 257]), "job.bad_command"),
        ("command", json!(["x".repeat(TOO_MANY)]), "job.bad_command"),
        ("env", json!({ "": "1" }), "job.bad_command"),
        ("env", json!({ "A=B": "1" }), "job.bad_command"),
        ("name", json!("x".repeat(65)), "job.bad_name"),
        ("name", json!(""), "job.bad_name"),
    ] {
        refused(&room, "li", ("POST", "/jobs"), with(field, value), code).await;
    }
}

#[tokio::test]
async fn money_is_an_exact_text_above_zero_and_sane() {
    let room = Room::new().await;
    let (top_ups, credit) = (format!("/tenants/{}/wallet/top-ups", lab()), format!("/tenants/{}/wallet/credit", lab()));
    for amount in ["0", "-1", "0.001", "1000000000.01", "79228162514264337593543950335"] {
        let body = json!({ "amount": amount, "reference": "r" });
        refused(&room, "admin", ("POST", &top_ups), body, "wallet.bad_amount").await;
    }
    for amount in ["-0.01", "0.001", "1000000000.01"] {
        refused(&room, "admin", ("PUT", &credit), json!({ "amount": amount }), "wallet.bad_amount").await;
    }
    for amount in [json!(1), json!(1.5), json!("ten"), json!("1,5"), json!("NaN"), json!("")] {
        refused(&room, "admin", ("PUT", &credit), json!({ "amount": amount }), "request.bad_field").await;
    }
    for reference in [String::new(), " r".into(), "a\nb".into(), "x".repeat(201)] {
        let body = json!({ "amount": "1", "reference": reference });
        refused(&room, "admin", ("POST", &top_ups), body, "request.bad_text").await;
    }
    let versions = format!("/price-books/{}/versions", book());
    for (prices, code) in [
        (json!({}), "price_book.no_prices"),
        (json!({ "core": "0" }), "price_book.bad_price"),
        (json!({ "core": "-1" }), "price_book.bad_price"),
        (json!({ "core": "1000001" }), "price_book.bad_price"),
        (json!({ "core": "0.000000001" }), "price_book.bad_price"),
        (json!({ "No SKU": "1" }), "price_book.bad_sku"),
        (json!({ "core": 1 }), "request.bad_field"),
    ] {
        refused(&room, "admin", ("POST", &versions), json!({ "prices": prices }), code).await;
    }
    let late = json!({ "prices": { "core": "1" }, "effective_at": "2026-11-10T00:59:59Z" });
    refused(&room, "admin", ("POST", &versions), late, "price_book.too_early").await;
}

#[tokio::test]
async fn names_and_reasons_have_an_end() {
    let room = Room::new().await;
    room.hardware().await;
    let (long, platform) = ("x".repeat(TOO_MANY), TenantId::PLATFORM);
    let (lock, drain) = (format!("/members/{}/lock", member_of("li")), format!("/nodes/{}/drain", node_id()));
    let product = |field: &str| {
        let mut product = json!({ "sku": "new", "resource": "core", "name_zh": "核", "name_en": "core" });
        product[field] = json!(long);
        product
    };
    let member = |handle: &str| json!({ "handle": handle, "tenant": lab(), "roles": [] });
    for (who, path, body, code) in [
        ("admin", "/tenants", json!({ "name": long }), "tenant.bad_name"),
        ("admin", "/tenants", json!({ "name": "" }), "tenant.bad_name"),
        ("admin", "/members", member(&long), "member.bad_handle"),
        ("admin", "/members", member("Li"), "member.bad_handle"),
        ("admin", &lock, json!({ "reason": long }), "member.bad_reason"),
        ("li", "/keys", json!({ "name": long }), "key.bad_name"),
        ("li", "/keys", json!({ "name": "a", "expires_at": "2026-11-10T01:00:00Z" }), "key.bad_expiry"),
        ("admin", "/products", product("sku"), "product.bad_sku"),
        ("admin", "/products", product("name_zh"), "product.bad_name"),
        ("admin", "/price-books", json!({ "name": long, "currency": "CNY" }), "request.bad_text"),
        ("admin", "/price-books", json!({ "name": "a", "currency": "cny" }), "request.bad_field"),
        ("admin", &drain, json!({ "reason": "" }), "node.bad_reason"),
        ("admin", "/pools", json!({ "name": long }), "pool.bad_name"),
    ] {
        refused(&room, who, ("POST", path), body, code).await;
    }
    let tokens = format!("/pools/{}/join-tokens", pool_id());
    for seconds in [0, -1, 604_801, i64::MAX] {
        refused(&room, "admin", ("POST", &tokens), json!({ "expires_in_s": seconds }), "pool.bad_expiry").await;
    }
    let zone = json!({ "book": book(), "zone": "Mars/Olympus" });
    refused(&room, "admin", ("POST", &format!("/tenants/{platform}/contract")), zone, "request.bad_field").await;
    let role = json!({ "handle": "new", "tenant": lab(), "roles": ["emperor"] });
    refused(&room, "admin", ("POST", "/members"), role, "request.bad_field").await;
    let operator = json!({ "handle": "new", "tenant": lab(), "roles": ["operator"] });
    refused(&room, "admin", ("POST", "/members"), operator, "member.role_not_for_tenant").await;
    let weak = json!({ "handle": "new", "tenant": lab(), "roles": [], "password": "short" });
    refused(&room, "admin", ("POST", "/members"), weak, "auth.password_too_short").await;
}

#[tokio::test]
async fn a_reason_to_cancel_or_reject_has_an_end() {
    let room = Room::new().await;
    room.ordered(lab(), "core", 2).await;
    let order = room.post("li", "/orders", json!({ "sku": SKU, "quantity": 1 })).await.text("id");
    let job = room.post("li", "/jobs", json!({ "command": ["a"] })).await.text("id");
    let long = "x".repeat(501);
    for reason in ["", " ", &long] {
        let reject = format!("/orders/{order}/reject");
        refused(&room, "wang", ("POST", &reject), json!({ "reason": reason }), "order.bad_reason").await;
        let cancel = format!("/jobs/{job}/cancel");
        refused(&room, "li", ("POST", &cancel), json!({ "reason": reason }), "request.bad_text").await;
    }
}

#[tokio::test]
async fn a_bad_page_position_or_key_is_refused() {
    let room = Room::new().await;
    for query in ["limit=0", "limit=201", "limit=-1", "limit=x"] {
        for list in ["/orders", "/jobs", "/quotas", "/statements", "/members", "/keys", "/nodes", "/tenants"] {
            let answer = room.get(if list == "/keys" { "li" } else { "admin" }, &format!("{list}?{query}")).await;
            assert_eq!(answer.is(), (400, "request.bad_query"), "{list}?{query}: {}", answer.body);
        }
    }
    for path in ["/jobs?all=maybe", "/statements?month=2026-13", "/statements?mouth=2026-11", "/prices?book=x"] {
        assert_eq!(room.get("li", path).await.is(), (400, "request.bad_query"), "{path}");
    }
    let bad = room.ask_with("li", ("GET", "/orders"), None, &[("Kashi-Min-Position", "soon")]).await;
    assert_eq!(bad.is(), (400, "request.bad_position"));
    let order = Some(json!({ "sku": SKU, "quantity": 1 }));
    let bad = room.ask_with("li", ("POST", "/orders"), order, &[("Idempotency-Key", "with space")]).await;
    assert_eq!(bad.is(), (400, "request.bad_idempotency_key"));
}
