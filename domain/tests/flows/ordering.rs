//! Orders and quota, and how the first operator and a new machine come in.

use super::world::{World, id, tenant};
use domain::Event;
use domain::identity::{Member, Role, Tenant, member, tenant as organisation};
use domain::kernel::spec::member;
use domain::kernel::{Ancestors, Id, JobId, NodeId, OrderId, PoolId, StreamName, TenantId};
use domain::ordering::{Order, order};
use domain::pools::{Inventory, Node, Pool, node, pool};

fn last_of(world: &World, order: OrderId) -> order::Event {
    let mine = |(stream, event)| {
        let Event::Order(event) = event else { return None };
        (stream == StreamName::new("order", order)).then_some(event)
    };
    world.events().into_iter().filter_map(mine).next_back().unwrap()
}

#[test]
fn an_approved_order_is_held_under_the_quota_and_becomes_active() {
    let world = World::with(10, "1000");
    let order = world.order("eight", 8);
    assert_eq!(world.quota().ordered(), 0);
    world.settle();
    assert_eq!(world.quota().ordered(), 8000);
    assert_eq!(last_of(&world, order), order::Event::Activated);
    world.is_sound();
}

#[test]
fn an_order_that_finds_no_quota_is_refused_with_the_numbers() {
    let world = World::with(10, "1000");
    world.order("eight", 8);
    let late = world.order("three", 3);
    world.settle();
    assert_eq!(
        last_of(&world, late),
        order::Event::Refused { wanted_milli: 3000, free_milli: 2000, node: Some(tenant()) }
    );
    assert_eq!(world.quota().ordered(), 8000);
    world.is_sound();
}

#[test]
fn an_order_is_returned_unless_jobs_use_it() {
    let world = World::with(10, "1000");
    let order = world.order("eight", 8);
    let job = world.submit("train", 2);
    world.settle();
    let give_back = || world.ask::<Order>(order, tenant(), order::Command::Return { by: member("li") }).unwrap();
    give_back();
    world.settle();
    assert_eq!(last_of(&world, order), order::Event::ReturnRefused { in_use_milli: 2000 });
    world.cancel(job).unwrap();
    world.settle();
    give_back();
    world.settle();
    assert_eq!(last_of(&world, order), order::Event::Returned);
    assert_eq!(world.quota().ordered(), 0);
    world.is_free();
    world.is_sound();
}

#[test]
fn a_return_ends_the_wait_of_a_job_that_can_no_longer_fit() {
    let world = World::with(10, "10000");
    world.order("two", 2);
    let six = world.order("six", 6);
    world.submit("small", 1);
    let large = world.submit("large", 8);
    world.settle();
    assert_eq!(world.job(large).word(), "submitted");
    world.ask::<Order>(six, tenant(), order::Command::Return { by: member("li") }).unwrap();
    world.settle();
    assert_eq!(world.job(large).word(), "ended");
    world.is_sound();
}

#[test]
fn the_setup_that_was_used_makes_the_first_operator() {
    let world = World::with(1, "1");
    let platform = TenantId::PLATFORM;
    let give = |command| world.ask::<Tenant>(platform, platform, command).unwrap();
    let (name, kind, above) = ("platform".into(), organisation::Level::Tenant, Ancestors::NONE);
    give(organisation::Command::Create { tenant: platform, name, parent: None, kind, above });
    give(organisation::Command::OpenSetup { hash: "h".into() });
    let member = member::member_of("wang");
    let (handle, password) = ("wang".into(), "argon2".into());
    give(organisation::Command::UseSetup { hash: "h".into(), member, handle, password });
    world.settle();
    let state: Member = world.state(member);
    let account = state.active().unwrap();
    assert!(account.roles.contains(&Role::Operator));
    assert_eq!(account.password.as_deref(), Some("argon2"));
    world.is_sound();
}

#[test]
fn a_machine_that_joined_a_pool_becomes_a_node() {
    let world = World::with(1, "1");
    let pool = id::<PoolId>("pool");
    let give = |command| world.ask::<Pool>(pool, TenantId::PLATFORM, command).unwrap();
    give(pool::Command::Create { pool, name: "main".into() });
    let (hash, at) = (String::from("t"), world.now.get());
    let expires_at = at + chrono::TimeDelta::hours(1);
    give(pool::Command::IssueJoinToken { hash: hash.clone(), expires_at, by: member("root") });
    let inventory = Inventory { milli_cores: 8000, memory_mib: 1024, ..Inventory::default() };
    let credential = String::from("c");
    give(pool::Command::Join { hash: hash.clone(), credential, name: "n1".into(), inventory: inventory.clone(), at });
    world.settle();
    let node: Node = world.state(NodeId::derived(pool, &hash));
    assert!(matches!(node, Node::Ready(node::Machine { inventory: has, .. }) if has == inventory));
    world.is_sound();
}

#[test]
fn what_is_approved_twice_or_unknown_is_refused_before_any_flow() {
    let world = World::with(10, "1000");
    let order = world.order("eight", 8);
    let again = world.ask::<Order>(order, tenant(), order::Command::Approve { by: member("wang") });
    assert_eq!(again, Err(order::Error::WrongState("approved")));
    let unknown = world.cancel(id::<JobId>("nobody's"));
    assert_eq!(unknown, Err(domain::allocation::job::Error::NotFound));
    world.is_sound();
}
