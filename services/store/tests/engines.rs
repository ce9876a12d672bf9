//! What the store promises, on both engines: transactions, checkpoints, columns in all their forms, pages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use async_graphql::connection::Connection;
use chrono::{DateTime, Utc};
use domain::kernel::{self, OrderId, TenantId};
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::json;
use sqlx::migrate::Migrator;
use std::time::Duration;
use store::testing::{self, Scratch};
use store::{Amount, Cell, Currency, Db, Engine, Error, Id, Keyset, Month, Page, Resource, Slice, Time, Zone};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

static MIGRATIONS: Migrator = sqlx::migrate!("tests/migrations");

#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, ToSchema)]
struct Thing {
    id: store::OrderId,
    owner: store::TenantId,
    price: Amount,
    currency: Currency,
    month: Month,
    resource: Resource,
    zone: Zone,
    made_at: Time,
    parent: Option<store::OrderId>,
}

impl Keyset for Thing {
    fn cursor(&self) -> String {
        self.id.to_string()
    }
}

fn thing(number: u128) -> Thing {
    let made_at: DateTime<Utc> = "2026-11-30T16:00:00.123456789Z".parse().unwrap();
    Thing {
        id: Id(OrderId(Uuid::from_u128(number))),
        owner: Id(TenantId(Uuid::from_u128(7))),
        price: Amount("8.50000001".parse().unwrap()),
        currency: Currency(kernel::Currency::Cny),
        month: Month("2026-11".parse().unwrap()),
        resource: Resource("card.a100".parse().unwrap()),
        zone: Zone("Asia/Shanghai".parse().unwrap()),
        made_at: made_at.into(),
        parent: None,
    }
}

async fn add(db: &Db, thing: &Thing) -> store::Result<u64> {
    db.sql("insert into owners (id) values ($1) on conflict (id) do nothing").bind(thing.owner).run().await?;
    db.sql("insert into things values ($1, $2, $3, $4, $5, $6, $7, $8, $9)")
        .bind(thing.id)
        .bind(thing.owner)
        .bind(thing.price)
        .bind(thing.currency)
        .bind(thing.month)
        .bind(&thing.resource)
        .bind(thing.zone)
        .bind(thing.made_at)
        .bind(thing.parent)
        .run()
        .await
}

/// An empty database of each engine, named where a test fails, and the folder to keep.
async fn each() -> (impl Iterator<Item = Db>, Scratch) {
    let (databases, scratch) = testing::both(&MIGRATIONS).await;
    (databases.into_iter().inspect(|db| eprintln!("on {:?}", db.engine())), scratch)
}

#[tokio::test]
async fn a_row_is_read_as_it_was_written_and_shown_as_text() {
    let (databases, _scratch) = each().await;
    for db in databases {
        add(&db, &thing(1)).await.unwrap();
        let found: Thing = db.sql("select * from things").one().await.unwrap();
        assert_eq!(found, thing(1));
        let shown = json!({
            "id": "ord_00000000000000000000000001", "owner": "ten_00000000000000000000000007", "price": "8.50000001",
            "currency": "CNY", "month": "2026-11", "resource": "card.a100", "zone": "Asia/Shanghai",
            "made_at": "2026-11-30T16:00:00.123456Z", "parent": null,
        });
        assert_eq!(serde_json::to_value(found).unwrap(), shown);
    }
}

#[tokio::test]
async fn what_is_not_of_its_type_is_not_read() {
    let (databases, _scratch) = each().await;
    for db in databases {
        assert!(db.sql("select 'ten_1'").one::<(store::TenantId,)>().await.is_err());
        assert!(db.sql("select '2026-13'").one::<(Month,)>().await.is_err());
        assert!(db.sql("select $1").bind(i64::MAX).one::<(Time,)>().await.is_err());
        assert!(db.sql("select $1").bind("cpu").one::<(Resource,)>().await.is_err());
    }
}

#[tokio::test]
async fn an_amount_is_kept_exactly_or_refused() {
    let (databases, _scratch) = each().await;
    for db in databases {
        for (amount, kept) in
            [("0.00000001", true), ("-92233720368.54775808", true), ("0.000000001", false), ("92233720369", false)]
        {
            let amount = Amount(amount.parse::<Decimal>().unwrap());
            let back = db.sql("select cast($1 as bigint)").bind(amount).one::<(Amount,)>().await;
            assert_eq!(back.ok(), kept.then_some((amount,)));
        }
    }
}

#[tokio::test]
async fn each_checkpoint_only_moves_forward() {
    let (databases, _scratch) = each().await;
    for db in databases {
        assert_eq!(store::checkpoint_of(&db, "orders").await.unwrap(), 0);
        for (position, accepted) in [(1, true), (3, true), (3, false), (2, false), (4, true)] {
            let mut tx = db.begin().await.unwrap();
            let moved = store::checkpoint(&mut tx, "orders", position).await;
            assert_eq!(moved.is_ok(), accepted, "{position}");
            assert!(accepted || matches!(moved, Err(Error::AlreadyApplied("orders"))));
            tx.commit().await.unwrap();
        }
        let mut tx = db.begin().await.unwrap();
        store::checkpoint(&mut tx, "jobs", 2).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(store::checkpoint_of(&db, "orders").await.unwrap(), 4);
        assert_eq!(store::checkpoint_of(&db, "jobs").await.unwrap(), 2);
    }
}

#[tokio::test]
async fn an_abandoned_transaction_never_was() {
    let (databases, _scratch) = each().await;
    for db in databases {
        let mut tx = db.begin().await.unwrap();
        store::checkpoint(&mut tx, "orders", 1).await.unwrap();
        drop(tx);
        assert_eq!(store::checkpoint_of(&db, "orders").await.unwrap(), 0);
        let mut tx = db.begin().await.unwrap();
        store::checkpoint(&mut tx, "orders", 1).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(store::checkpoint_of(&db, "orders").await.unwrap(), 1);
    }
}

#[tokio::test]
async fn readers_go_on_beside_a_writer_and_cannot_write() {
    let (databases, _scratch) = each().await;
    for db in databases {
        let mut tx = db.begin().await.unwrap();
        store::checkpoint(&mut tx, "orders", 1).await.unwrap();
        let read = tokio::time::timeout(Duration::from_secs(5), store::checkpoint_of(&db, "orders"));
        assert_eq!(read.await.unwrap().unwrap(), 0);
        tx.commit().await.unwrap();
        let sneaked = db.sql("update checkpoints set checkpoint = 9 returning checkpoint").one::<(i64,)>().await;
        match db.engine() {
            Engine::Sqlite => assert!(sneaked.unwrap_err().to_string().contains("readonly")),
            // One pool both reads and writes there.
            Engine::Postgres => assert_eq!(sneaked.unwrap(), (9,)),
        }
    }
}

#[tokio::test]
async fn a_foreign_key_must_exist() {
    let (databases, _scratch) = each().await;
    for db in databases {
        let insert = "insert into things values ('a', 'nobody', 0, 'CNY', '2026-11', 'core', 'UTC', 0, null)";
        assert!(db.sql(insert).run().await.unwrap_err().to_string().to_lowercase().contains("foreign key"));
    }
}

#[tokio::test]
async fn an_address_must_be_of_a_database_that_is_kept() {
    for url in ["mysql://secret@host/x", "kashi.db", "", "sqlite::memory:"] {
        let refused = Db::open(url, &MIGRATIONS).await.unwrap_err();
        assert!(matches!(refused, Error::BadUrl(_)), "{url}");
        assert!(!refused.to_string().contains("secret"));
    }
}

#[tokio::test]
async fn what_was_committed_is_there_after_closing() {
    let (urls, _scratch) = testing::urls().await;
    for url in urls {
        let db = Db::open(&url, &MIGRATIONS).await.unwrap();
        add(&db, &thing(1)).await.unwrap();
        db.close().await;
        let db = Db::open(&url, &MIGRATIONS).await.unwrap();
        assert_eq!(db.sql("select * from things").all::<Thing>().await.unwrap(), [thing(1)], "{:?}", db.engine());
    }
}

/// As processes that start together do.
#[tokio::test(flavor = "multi_thread")]
async fn several_may_open_it_at_once() {
    let (urls, _scratch) = testing::urls().await;
    for url in &urls {
        let opened = (0..4).map(|_| tokio::spawn(Db::open(url.clone().leak(), &MIGRATIONS)));
        for db in futures::future::join_all(opened).await {
            let db = db.unwrap().unwrap();
            assert_eq!(store::checkpoint_of(&db, "orders").await.unwrap(), 0, "{:?}", db.engine());
        }
    }
}

#[tokio::test]
async fn many_rows_are_inserted_whole_and_in_order() {
    let (databases, _scratch) = each().await;
    for db in databases {
        db.sql("create table many (n bigint primary key, t text not null, x text)").run().await.unwrap();
        let mut expected = vec![];
        for rows in [0, 1, 3, 85, 200] {
            let added: Vec<(i64, String, Option<String>)> = (0..rows)
                .map(|_| expected.len() as i64 * 1000)
                .enumerate()
                .map(|(n, base)| {
                    (base + n as i64, format!("卡 '\"{{}},\\{n}\t\r\n\\N"), (n % 3 > 0).then(|| "{null}".repeat(n % 3)))
                })
                .collect();
            let mut tx = db.begin().await.unwrap();
            let row =
                |row: &'_ (i64, String, Option<String>)| [row.0.into(), row.1.clone().into(), row.2.clone().into()];
            tx.insert("many (n, t, x)", added.iter().map(row).collect()).await.unwrap();
            tx.commit().await.unwrap();
            expected.extend(added);
        }
        let found: Vec<(i64, String, Option<String>)> = db.sql("select * from many order by n").all().await.unwrap();
        assert_eq!(found, expected);
        let mut tx = db.begin().await.unwrap();
        let twice = ["a", "b"].map(|text| [Cell::Whole(-1), text.into()]);
        assert!(tx.insert("many (n, t)", twice.into()).await.is_err());
    }
}

#[tokio::test]
async fn transactions_in_turn_wait_for_each_other() {
    let (databases, _scratch) = each().await;
    for db in databases {
        let mut first = db.begin_in_turn().await.unwrap();
        store::checkpoint(&mut first, "orders", 1).await.unwrap();
        let mut second = std::pin::pin!(db.begin_in_turn());
        assert!(futures::poll!(&mut second).is_pending());
        first.commit().await.unwrap();
        let mut second = second.await.unwrap();
        store::checkpoint(&mut second, "orders", 2).await.unwrap();
        drop(second);
        db.begin_in_turn().await.unwrap();
        assert_eq!(store::checkpoint_of(&db, "orders").await.unwrap(), 1);
    }
}

/// Rows as one parameter, by key or by place, are read alike.
#[tokio::test]
async fn rows_may_come_as_json() {
    let (databases, _scratch) = each().await;
    for db in databases {
        let rows = r#"[{"n": 9007199254740993, "t": "卡 \" \\", "x": null}, {"n": -1, "t": "", "x": "a"}]"#;
        let select = "select cast(value ->> 'n' as bigint), value ->> 't', value ->> 'x' from json_each($1)";
        let found: Vec<(i64, String, Option<String>)> = db.sql(select).bind(rows).all().await.unwrap();
        assert_eq!(found, [(9_007_199_254_740_993, "卡 \" \\".into(), None), (-1, String::new(), Some("a".into()))]);
        let select = "select cast(value ->> 0 as bigint), value ->> 1 from json_each($1)";
        let found: Vec<(i64, String)> = db.sql(select).bind(r#"[[1, "a"], [2, "b"]]"#).all().await.unwrap();
        assert_eq!(found, [(1, "a".into()), (2, "b".into())]);
    }
}

async fn list(db: &Db, page: &Page) -> store::Result<Slice<Thing>> {
    let rows = db.sql("select * from things where id < $1 order by id desc limit $2");
    Ok(page.slice(rows.bind(page.after_or("~".to_owned())?).bind(page.limit()).all().await?))
}

#[tokio::test]
async fn a_list_comes_in_pages_that_meet() {
    let (databases, _scratch) = each().await;
    for db in databases {
        for number in 1..=5 {
            add(&db, &thing(number)).await.unwrap();
        }
        let (mut seen, mut cursor) = (vec![], None);
        loop {
            let slice = list(&db, &Page::new(Some(2), cursor).unwrap()).await.unwrap();
            seen.extend(slice.items);
            cursor = slice.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, (1..=5).rev().map(thing).collect::<Vec<_>>());
        let relay: Connection<String, Thing> = list(&db, &Page::new(Some(4), None).unwrap()).await.unwrap().into();
        assert_eq!((relay.edges.len(), relay.has_next_page), (4, true));
        let empty = serde_json::to_value(Slice::<Thing> { items: vec![], next_cursor: None }).unwrap();
        assert_eq!(empty, json!({ "items": [], "next_cursor": null }));
    }
}

#[test]
fn a_page_out_of_range_is_refused_not_clamped() {
    for limit in [0, 201, u32::MAX] {
        assert!(matches!(Page::new(Some(limit), None), Err(Error::BadLimit(said)) if said == limit));
        let refused = serde_json::from_value::<Page>(json!({ "limit": limit })).unwrap_err();
        assert!(refused.to_string().contains("1 to 200"), "{refused}");
    }
    assert_eq!(Page::new(Some(200), None).unwrap().limit(), 201);
    assert_eq!(Page::default().limit(), 51);
    let page: Page = serde_json::from_value(json!({ "limit": 3, "cursor": "x" })).unwrap();
    assert!(matches!(page.after_or(0_i64), Err(Error::BadCursor(cursor)) if cursor == "x"));
}

#[test]
fn a_page_names_its_rows_in_openapi() {
    assert_eq!(Slice::<Thing>::name(), "ThingPage");
    let schema = serde_json::to_value(Slice::<Thing>::schema()).unwrap();
    assert_eq!(schema["properties"]["items"]["items"], json!({ "$ref": "#/components/schemas/Thing" }));
    assert_eq!(schema["properties"]["next_cursor"]["type"], json!(["string", "null"]));
    assert_eq!(schema["required"], json!(["items", "next_cursor"]));
    let mut schemas = vec![];
    Slice::<Thing>::schemas(&mut schemas);
    let names: Vec<_> = schemas.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["Thing", "OrderId", "TenantId", "Amount", "Currency", "Month", "Resource", "Zone", "Time"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
}

proptest! {
    #[test]
    fn a_time_is_cut_to_the_microsecond_and_shown_the_same(micros in 0_i64..4_102_444_800_000_000, nanos in 0_i64..1000) {
        let at = DateTime::from_timestamp_micros(micros).unwrap();
        let time = Time::from(at + chrono::TimeDelta::nanoseconds(nanos));
        prop_assert_eq!(time.at(), at);
        prop_assert_eq!(serde_json::from_value::<Time>(serde_json::to_value(time).unwrap()).unwrap(), time);
    }
}
