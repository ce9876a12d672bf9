//! Nodes with what they have and what is in use, and their pools. Tables `nodes`, `pools`.

use chrono::{DateTime, Utc};
use domain::Event;
use domain::kernel::Recorded;
use domain::pools::{Inventory, node, pool};
use std::collections::BTreeMap;
use store::{Db, Id, Keyset, NodeId, Page, PoolId, Result, Slice, Time, Tx};

/// A node.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The pool that it is in.
    pub pool: PoolId,
    /// What people call it.
    pub name: String,
    /// Thousandths of a core that it has.
    pub milli_cores: i64,
    /// Memory that it has, in MiB.
    pub memory_mib: i64,
    /// How many cards it has.
    pub cards: i64,
    /// Its cards by model, such as `8 × a100`.
    pub card_models: String,
    /// Whether its cards are made up for a trial.
    pub simulated: bool,
    /// Whether it takes no new work.
    pub draining: bool,
    /// Why it takes none.
    pub drain_reason: Option<String>,
    /// Why it was given up, where it was not heard of since.
    pub lost_reason: Option<String>,
    /// The last proof of its life before that; its work counts up to then.
    pub alive_until: Option<Time>,
    /// Its system.
    pub platform: String,
    /// The version of its agent.
    pub agent: String,
    /// Thousandths of a core that leases hold.
    pub milli_cores_used: i64,
    /// Memory that leases hold, in MiB.
    pub memory_mib_used: i64,
    /// Cards that leases hold.
    pub cards_used: i64,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow, serde::Serialize, async_graphql::SimpleObject, utoipa::ToSchema)]
pub struct Pool {
    /// Its id.
    pub id: PoolId,
    /// What people call it.
    pub name: String,
}

impl Keyset for Node {
    fn cursor(&self) -> String {
        self.id.0.to_string()
    }
}

/// Folds one event into the tables.
#[expect(clippy::wildcard_enum_match_arm, reason = "most events do not concern it")]
pub async fn apply(tx: &mut Tx, stored: &Recorded, event: &Event) -> Result<()> {
    let id = stored.stream.key().to_owned();
    match event {
        Event::Pool(pool::Event::Created { pool, name }) => {
            tx.sql("insert into pools (id, name) values ($1, $2)").bind(Id(*pool)).bind(name.clone()).run().await?;
        }
        Event::Node(node::Event::Registered { pool, name, inventory, .. }) => {
            tx.sql(
                "insert into nodes (id, pool, name, milli_cores, memory_mib, cards, card_models, simulated, draining,
                                    platform, agent)
                 values ($1, $2, $3, 0, 0, 0, '', $4, $5, '', '')",
            )
            .bind(id.clone())
            .bind(Id(*pool))
            .bind(name.clone())
            .bind(false)
            .bind(false)
            .run()
            .await?;
            take_stock(tx, id, inventory).await?;
        }
        Event::Node(node::Event::InventoryReported { inventory }) => take_stock(tx, id, inventory).await?,
        Event::Node(node::Event::Drained { reason, .. }) => drain(tx, id, Some(reason.clone())).await?,
        Event::Node(node::Event::Resumed { .. }) => drain(tx, id, None).await?,
        Event::Node(node::Event::Lost { reason, alive_until, .. }) => {
            lose(tx, id, Some((reason, *alive_until))).await?
        }
        Event::Node(node::Event::Returned { .. }) => lose(tx, id, None).await?,
        _ => {}
    }
    Ok(())
}

async fn take_stock(tx: &mut Tx, id: String, inventory: &Inventory) -> Result<()> {
    let mut models = BTreeMap::<&str, u32>::new();
    for card in &inventory.cards {
        *models.entry(card.model.as_str()).or_default() += 1;
    }
    let models: Vec<String> = models.into_iter().map(|(model, count)| format!("{count} × {model}")).collect();
    tx.sql(
        "update nodes set milli_cores = $2, memory_mib = $3, cards = $4, card_models = $5, simulated = $6, platform = $7,
                          agent = $8
         where id = $1",
    )
    .bind(id)
    .bind(inventory.milli_cores)
    .bind(inventory.memory_mib)
    .bind(i64::try_from(inventory.cards.len()).unwrap_or(i64::MAX))
    .bind(models.join(", "))
    .bind(inventory.cards.iter().any(|card| card.simulated))
    .bind(inventory.platform.clone())
    .bind(inventory.agent.clone())
    .run()
    .await?;
    Ok(())
}

async fn drain(tx: &mut Tx, id: String, reason: Option<String>) -> Result<()> {
    tx.sql("update nodes set draining = $2, drain_reason = $3 where id = $1")
        .bind(id)
        .bind(reason.is_some())
        .bind(reason)
        .run()
        .await?;
    Ok(())
}

async fn lose(tx: &mut Tx, id: String, lost: Option<(&String, DateTime<Utc>)>) -> Result<()> {
    tx.sql("update nodes set lost_reason = $2, alive_until = $3 where id = $1")
        .bind(id)
        .bind(lost.map(|(reason, _)| reason.clone()))
        .bind(lost.map(|(_, alive_until)| Time::from(alive_until)))
        .run()
        .await?;
    Ok(())
}

/// Every node.
pub async fn all(db: &Db, page: &Page) -> Result<Slice<Node>> {
    let rows = db
        .sql(
            "select n.*, coalesce(cast(sum(l.milli_cores) as bigint), 0) as milli_cores_used,
                    coalesce(cast(sum(l.memory_mib) as bigint), 0) as memory_mib_used,
                    coalesce(cast(sum(l.cards) as bigint), 0) as cards_used
             from nodes n left join leases l on l.node = n.id and l.status in ('granted', 'running')
             where n.id > $1 group by n.id order by n.id limit $2",
        )
        .bind(page.after_or(String::new())?)
        .bind(page.limit())
        .all()
        .await?;
    Ok(page.slice(rows))
}

/// Every pool.
pub async fn pools(db: &Db) -> Result<Vec<Pool>> {
    db.sql("select * from pools order by id").all().await
}
