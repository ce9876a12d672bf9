//! What is stored, looked at from outside: events by their kind, read models by their digest.

use crate::world::World;
use domain::kernel::Recorded;
use projections::ALL;
use std::collections::BTreeMap;
use store::Engine;

/// Every event of the log.
pub async fn events(world: &World) -> Vec<Recorded> {
    let mut all: Vec<Recorded> = vec![];
    loop {
        let after = all.last().map_or(0, |event| event.position);
        let page = world.kit.executor.log().read_all(after, 500).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// How many events of each kind there are.
pub async fn kinds(world: &World) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for event in events(world).await {
        *kinds.entry(event.kind).or_default() += 1;
    }
    kinds
}

/// The read models that are served equal what the log makes of empty ones, on either engine, table by table.
pub async fn rebuilt_equals_live(world: &World) {
    let folder = store::testing::Scratch::new();
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let url = match engine {
            Engine::Sqlite => folder.url("again"),
            Engine::Postgres => store::testing::postgres_url().await,
        };
        let again = store::Db::open_relaxed(&url, &projections::MIGRATIONS).await.unwrap();
        control::rebuild(world.kit.executor.log(), &again, world.kit.keys.opener()).await.unwrap();
        for (name, tables) in ALL {
            for table in *tables {
                let live = projections::digest(&world.kit.read, table).await.unwrap();
                let made = projections::digest(&again, table).await.unwrap();
                assert_eq!(live, made, "{name}: {table}, made anew on {engine:?}");
            }
        }
        again.close().await;
    }
}
