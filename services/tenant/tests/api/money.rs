//! Prices, contracts, wallets and statements, down to the events of a charge.

use crate::room::{Room, SKU, book, customer, lab};
use crate::scope::charged;
use domain::kernel::{Id, JobId, TenantId};
use serde_json::json;

#[tokio::test]
async fn a_product_is_priced_and_a_tenant_gets_a_contract() {
    let room = Room::new().await;
    let product = json!({ "sku": "card.new", "resource": "card.new", "name_zh": "新卡", "name_en": "New card" });
    let made = room.post("admin", "/products", product.clone()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(room.post("admin", "/products", product).await.body, made.body, "it is so already");
    let other = json!({ "sku": "card.new", "resource": "core", "name_zh": "a", "name_en": "a" });
    assert_eq!(room.post("admin", "/products", other).await.is(), (409, "product.already_exists"));
    assert_eq!(room.get("li", "/products").await.body["items"].as_array().unwrap().len(), 4);

    let second = room.post("admin", "/price-books", json!({ "name": "trial", "currency": "USD" })).await.text("id");
    let versions = format!("/price-books/{second}/versions");
    let first = room.post("admin", &versions, json!({ "prices": { "card.new": "1.25" } })).await;
    assert_eq!((first.status, &first.body), (201, &json!({ "version": 1 })));
    let later = json!({ "prices": { "card.new": "2" }, "effective_at": "2026-12-01T00:00:00+08:00" });
    assert_eq!(room.post_as("v", "admin", &versions, later.clone()).await.body, json!({ "version": 2 }));
    assert_eq!(room.post_as("v", "admin", &versions, later).await.body, json!({ "version": 2 }));
    let nowhere = "/price-books/pbk_00000000000000000000000000/versions";
    assert_eq!(
        room.post("admin", nowhere, json!({ "prices": { "a": "1" } })).await.is(),
        (404, "price_book.not_found")
    );
    let prices = room.get("li", &format!("/prices?book={second}")).await.body;
    assert_eq!((&prices["items"][0]["price"], &prices["items"][0]["version"]), (&json!("2"), &json!(2)));
    assert_eq!((&prices["items"][1]["currency"], &prices["next_cursor"]), (&json!("USD"), &json!(null)));
    assert_eq!(room.get("li", "/price-books").await.body["items"].as_array().unwrap().len(), 2);
    assert_eq!(room.get("li", "/prices").await.body["items"].as_array().unwrap().len(), 4);

    let tenant = room.post("admin", "/tenants", json!({ "name": "new" })).await.text("id");
    let contract = format!("/tenants/{tenant}/contract");
    let signed = room.post("admin", &contract, json!({ "book": second, "zone": "America/New_York" })).await;
    let payer = customer(tenant.parse().unwrap()).to_string();
    assert_eq!((signed.status, signed.text("customer")), (201, payer));
    assert_eq!(room.post("admin", &contract, json!({ "book": book() })).await.is(), (409, "contract.already_exists"));
    let wrong = json!({ "book": "pbk_00000000000000000000000000" });
    assert_eq!(room.post("admin", &contract, wrong).await.is(), (404, "price_book.not_found"));
    let nowhere = "/tenants/ten_0000000000000000000000000Z/contract";
    assert_eq!(room.post("admin", nowhere, json!({ "book": second })).await.is(), (404, "tenant.not_found"));
    let tenants = room.get("admin", "/tenants").await.body;
    let row = tenants["items"].as_array().unwrap().iter().find(|row| row["id"] == tenant.as_str()).unwrap().clone();
    assert_eq!((&row["currency"], &row["zone"]), (&json!("USD"), &json!("America/New_York")));
}

#[tokio::test]
async fn a_wallet_is_filled_once_for_each_payment() {
    let room = Room::new().await;
    let (wallet, path) = (format!("/tenants/{}/wallet", lab()), format!("/tenants/{}/wallet/top-ups", lab()));
    let pay = json!({ "amount": "100.50", "reference": "bank 4711" });
    assert_eq!(room.post_as("p", "admin", &path, pay.clone()).await.status, 201);
    assert_eq!(room.post_as("p", "admin", &path, pay).await.status, 201);
    let credit = room.ask("admin", "PUT", &format!("{wallet}/credit"), Some(json!({ "amount": "20" }))).await;
    assert_eq!(credit.status, 200, "{}", credit.body);
    let left = room.get("fin", &wallet).await.body;
    assert_eq!(
        (&left["granted"], &left["credit"], &left["available"]),
        (&json!("100.5"), &json!("20"), &json!("100.5"))
    );
    let tenant = room.post("admin", "/tenants", json!({ "name": "new" })).await.text("id");
    let without = format!("/tenants/{tenant}/wallet");
    assert_eq!(room.get("admin", &without).await.is(), (404, "wallet.not_found"));
    let pay = json!({ "amount": "1", "reference": "r" });
    assert_eq!(room.post("admin", &format!("{without}/top-ups"), pay).await.is(), (404, "wallet.not_found"));
    assert_eq!(
        room.post("wang", &path, json!({ "amount": "1", "reference": "r" })).await.is(),
        (403, "auth.forbidden")
    );
}

#[tokio::test]
async fn statements_are_listed_by_month_and_explained_by_charge() {
    let room = Room::new().await;
    room.ordered(lab(), "core", 4).await;
    let job = room.post("li", "/jobs", json!({ "command": ["a", "b"] })).await.text("id");
    let id: JobId = job.parse().unwrap();
    let (october, november) = (charged(&room, id, "2026-10").await, charged(&room, id, "2026-11").await);
    let items = async |path: &str| {
        let list = room.get("li", path).await.body;
        let ids = list["items"].as_array().unwrap_or_else(|| panic!("{list}")).iter();
        (ids.map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), list["next_cursor"].clone())
    };
    assert_eq!(items("/statements").await.0, [november.clone(), october.clone()]);
    assert_eq!(items("/statements?month=2026-10").await, (vec![october.clone()], json!(null)));
    assert_eq!(items("/statements?month=2026-11&limit=1").await.0, std::slice::from_ref(&november));
    assert_eq!(items("/statements?month=2026-09").await.0, [""; 0]);
    let bill = room.get("li", &format!("/statements/{november}")).await.body;
    assert_eq!((&bill["statement"]["month"], &bill["lines"][0]["sku"]), (&json!("2026-11"), &json!(SKU)));
    assert_eq!((&bill["total"]["total"], &bill["total"]["rounding"]), (&json!("0.02"), &json!("0")));

    let line = format!("/statements/{november}/lines/{SKU}/1/explain");
    let explained = room.get("li", &line).await.body;
    let charge = &explained["items"][0];
    assert_eq!((&charge["charge"]["amount"], &charge["share"]), (&json!("0.02222222"), &json!("1")));
    assert_eq!(charge["job"], json!({ "id": job, "name": "a", "command": "a b" }));
    let events = charge["events"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["job.submitted", "ledger.charged"]);
    let href = events[1]["href"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    assert_eq!(room.get("li", href).await.body["payload"]["amount"], "0.02222222");
    for wrong in [format!("/statements/{november}/lines/core/1/explain"), line.replace("/1/", "/2/")] {
        assert_eq!(room.get("li", &wrong).await.is(), (404, "statement.line_not_found"), "{wrong}");
    }
    let charges = room.get("li", &format!("/jobs/{job}/charges")).await.body;
    assert_eq!(charges["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let room = Room::new().await;
    let mut made = vec![];
    for _ in 0..3 {
        made.push(room.post("li", "/orders", json!({ "sku": SKU, "quantity": 1 })).await.text("id"));
    }
    made.reverse();
    let mut seen = vec![];
    let mut path = "/orders?limit=2".to_owned();
    loop {
        let page = room.get("li", &path).await.body;
        seen.extend(page["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/orders?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, made, "newest first");
    let unknown = TenantId::derived(TenantId::PLATFORM, "nowhere");
    assert_eq!(room.get("admin", &format!("/tenants/{unknown}/wallet")).await.is(), (404, "wallet.not_found"));
}
