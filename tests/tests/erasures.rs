//! An erasure that is in the log is carried out in the end: also where nobody was there to destroy the key, and where a
//! backup of the key store brings it back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

use domain::identity::{Member, Profile, member, member_of};
use domain::kernel::{Aggregate, CommandId, Id, Meta, Sealed, StreamName, TenantId};
use serde_json::json;
use store::Engine;
use system_tests::world::{World, until};

system_tests::on_both! {
    is_carried_out_where_its_edge_did_not,
    is_carried_out_again_on_a_key_store_from_a_backup,
}

const START: &str = "2026-11-10T01:00:00Z";

/// A platform whose operator has a profile, and the profile as it is stored.
async fn world(engine: Engine) -> (World, Sealed<Profile>) {
    let world = World::new(engine, START).await;
    let operator = world.operator().await;
    let path = format!("/api/v1/members/{}/profile", member_of("admin"));
    assert_eq!(operator.put(&path, json!({ "name": "Li Lei" })).await.status, 200);
    world.settled().await;
    let stream = StreamName::new(Member::STREAM, member_of("admin"));
    let events = world.kit.executor.log().read_stream(&stream, 0, 100).await.unwrap();
    let sealed = events.iter().find_map(|stored| match serde_json::from_str(&stored.payload).unwrap() {
        member::Event::ProfileSet { profile } => Some(profile),
        member::Event::Added { .. }
        | member::Event::PasswordSet { .. }
        | member::Event::RolesSet { .. }
        | member::Event::Locked { .. }
        | member::Event::Unlocked { .. }
        | member::Event::PersonalDataErased { .. } => None,
    });
    (world, sealed.unwrap())
}

/// Records the erasure and does no more, as a server that is killed at once.
async fn erase(world: &World) {
    let command = CommandId::derived(TenantId::PLATFORM, "erase");
    let meta = Meta {
        tenant: TenantId::PLATFORM,
        actor: "test".into(),
        command,
        digest: String::new(),
        correlation: command,
        causation: None,
        trace: None,
        occurred_at: world.now(),
    };
    let erase = member::Command::Erase { by: member_of("admin") };
    world.kit.executor.execute::<Member>(member_of("admin"), meta, erase).await.unwrap();
}

async fn opens(world: &World, sealed: &Sealed<Profile>) -> bool {
    world.kit.keys.unseal(Profile::PURPOSE, sealed).await.unwrap().is_some()
}

async fn is_carried_out_where_its_edge_did_not(engine: Engine) {
    let (world, sealed) = world(engine).await;
    assert!(opens(&world, &sealed).await);
    erase(&world).await;
    until("the key to be destroyed", || async { !opens(&world, &sealed).await }).await;
}

async fn is_carried_out_again_on_a_key_store_from_a_backup(engine: Engine) {
    let (world, sealed) = world(engine).await;
    let (url, master) = (world.home.url("keys"), world.folder().join("keys.master"));
    let store = store::Db::open(&url, &kit::keys::MIGRATIONS).await.unwrap();
    let (backup,): (String,) = store.sql("select material from subject_keys").one().await.unwrap();
    erase(&world).await;
    until("the key to be destroyed", || async { !opens(&world, &sealed).await }).await;
    let restore = "update subject_keys set material = $1, destroyed_at = null";
    assert_eq!(store.sql(restore).bind(backup).run().await.unwrap(), 1);
    store.close().await;
    let old = kit::Keyring::open(&url, &master).await.unwrap();
    assert!(old.unseal(Profile::PURPOSE, &sealed).await.unwrap().is_some(), "the backup has the key");
    old.close().await;
    let world = world.restarted().await;
    until("the key to be destroyed again", || async { !opens(&world, &sealed).await }).await;
}
