//! What a quota promises, as histories and answers.

use super::*;
use crate::kernel::spec::{given, member};
use crate::kernel::{Id, MILLI};

fn order(name: &str) -> OrderId {
    Id::derived(TenantId::PLATFORM, name)
}

fn job(name: &str) -> JobId {
    Id::derived(TenantId::PLATFORM, name)
}

fn ceiling(units: i64) -> Event {
    Event::CeilingSet { milli: units * MILLI, by: member("wang"), node: None }
}

fn ordered(units: i64) -> Event {
    Event::OrderHeld { order: order("o"), milli: units * MILLI, below: vec![] }
}

fn held(name: &str, units: i64) -> Event {
    Event::JobHeld { job: job(name), milli: units * MILLI, node: None }
}

fn queued(name: &str, units: i64, free: i64) -> Event {
    Event::JobQueued { job: job(name), wanted_milli: units * MILLI, free_milli: free * MILLI, node: None }
}

fn hold(name: &str, units: i64) -> Command {
    Command::HoldJob { job: job(name), below: vec![], milli: units * MILLI }
}

fn hold_order(name: &str, below: &[TenantId], units: i64) -> Command {
    Command::HoldOrder { order: order(name), below: below.into(), milli: units * MILLI }
}

fn set_ceiling(below: &[TenantId], milli: i64) -> Command {
    Command::SetCeiling {
        root: TenantId::PLATFORM,
        below: below.into(),
        resource: Resource::Core,
        milli,
        by: member("wang"),
    }
}

#[test]
fn admits_orders_up_to_the_ceiling() {
    let ask = |name: &str, units: i64| hold_order(name, &[], units);
    given::<Allowance>([ceiling(10)]).when(ask("o", 10)).then([ordered(10)]);
    let refused = |wanted, free| Event::OrderHoldRefused {
        order: order("p"),
        wanted_milli: wanted * MILLI,
        free_milli: free * MILLI,
        node: None,
    };
    given::<Allowance>([ceiling(10), ordered(10)]).when(ask("p", 1)).then([refused(1, 0)]);
    given::<Allowance>([]).when(ask("p", 1)).then([refused(1, 0)]);
    given::<Allowance>([ceiling(10)]).when(ask("p", 0)).then([refused(0, 10)]);
}

#[test]
fn a_hold_that_comes_twice_is_held_once() {
    let again = hold_order("o", &[], 10);
    given::<Allowance>([ceiling(10), ordered(10)]).when(again).then([ordered(10)]);
    given::<Allowance>([ceiling(10), ordered(2), held("a", 2)]).when(hold("a", 2)).then([held("a", 2)]);
}

#[test]
fn jobs_wait_in_order_and_are_let_in_when_there_is_room() {
    let history = [ceiling(10), ordered(4), held("a", 3), queued("b", 2, 1)];
    given::<Allowance>(history.clone()).when(hold("c", 1)).then([queued("c", 1, 1)]);
    given::<Allowance>([&history[..], &[queued("c", 1, 1)]].concat()).when(hold("b", 1)).then([queued("b", 2, 1)]);
    let released = Event::JobReleased { job: job("a"), milli: 3 * MILLI };
    let both = [&history[..], &[queued("c", 1, 1), queued("b", 2, 1)]].concat();
    given::<Allowance>(both).when(Command::ReleaseJob { job: job("a") }).then([released, held("b", 2), held("c", 1)]);
}

#[test]
fn a_job_that_can_never_fit_is_refused() {
    let refused = Event::JobHoldRefused { job: job("a"), wanted_milli: 5 * MILLI, ordered_milli: 4 * MILLI };
    given::<Allowance>([ceiling(10), ordered(4)]).when(hold("a", 5)).then([refused]);
}

#[test]
fn what_is_in_use_is_not_returned() {
    let back = Command::ReleaseOrder { order: order("o") };
    let used = Event::OrderReleaseRefused { order: order("o"), in_use_milli: 3 * MILLI };
    given::<Allowance>([ceiling(10), ordered(4), held("a", 3)]).when(back.clone()).then([used]);
    let released = Event::OrderReleased { order: order("o"), milli: 4 * MILLI };
    given::<Allowance>([ceiling(10), ordered(4)]).when(back).then([released]);
}

#[test]
fn the_ceiling_is_sane_and_not_below_what_is_held() {
    let set = |milli| set_ceiling(&[], milli);
    given::<Allowance>([]).when(set(-1)).then_refused(Error::BadCeiling);
    given::<Allowance>([ceiling(10), ordered(4)])
        .when(set(3000))
        .then_refused(Error::BelowHeld { held_milli: 4000, wanted_milli: 3000 });
    given::<Allowance>([])
        .when(set(10_000))
        .then([Event::Opened { tenant: TenantId::PLATFORM, resource: Resource::Core }, ceiling(10)]);
}

fn node(name: &str) -> TenantId {
    Id::derived(TenantId::PLATFORM, name)
}

fn ceiling_of(node: TenantId, units: i64) -> Event {
    Event::CeilingSet { milli: units * MILLI, by: member("wang"), node: Some(node) }
}

fn ordered_at(name: &str, below: &[TenantId], units: i64) -> Event {
    Event::OrderHeld { order: order(name), milli: units * MILLI, below: below.into() }
}

#[test]
fn an_order_counts_against_every_ceiling_up_to_the_root_and_the_short_one_is_named() {
    let (team, project, other) = (node("team"), node("project"), node("other"));
    let refused = |units: i64, free: i64, node| Event::OrderHoldRefused {
        order: order("q"),
        wanted_milli: units * MILLI,
        free_milli: free * MILLI,
        node,
    };
    let history = [ceiling(10), ceiling_of(team, 6), ordered_at("o", &[team, project], 5)];
    let ask = |below: &[TenantId], units| hold_order("q", below, units);
    given::<Allowance>(&history).when(ask(&[team], 2)).then([refused(2, 1, Some(team))]);
    given::<Allowance>(&history).when(ask(&[team, project], 1)).then([ordered_at("q", &[team, project], 1)]);
    given::<Allowance>(&history).when(ask(&[other], 6)).then([refused(6, 5, None)]);
    given::<Allowance>(&history).when(ask(&[], 5)).then([ordered_at("q", &[], 5)]);
    let tight = [&history[..], &[ceiling_of(project, 5)]].concat();
    given::<Allowance>(&tight).when(ask(&[team, project], 1)).then([refused(1, 0, Some(project))]);
    given::<Allowance>([]).when(ask(&[team], 1)).then([refused(1, 0, None)]);
    let back = Event::OrderReleased { order: order("o"), milli: 5 * MILLI };
    given::<Allowance>([&history[..], &[back]].concat()).when(ask(&[team], 6)).then([ordered_at("q", &[team], 6)]);
}

#[test]
fn a_ceiling_is_not_set_above_one_over_it_nor_below_what_is_held_under_it() {
    let (team, project) = (node("team"), node("project"));
    let opened = Event::Opened { tenant: TenantId::PLATFORM, resource: Resource::Core };
    let history = [opened, ceiling(10), ceiling_of(team, 6), ordered_at("o", &[team, project], 5)];
    let above = |node, ceiling: i64, wanted: i64| Error::AboveParent {
        node,
        ceiling_milli: ceiling * MILLI,
        wanted_milli: wanted * MILLI,
    };
    let set = |below: &[TenantId], units: i64| set_ceiling(below, units * MILLI);
    given::<Allowance>(&history).when(set(&[team, project], 7)).then_refused(above(team, 6, 7));
    given::<Allowance>(&history).when(set(&[team], 11)).then_refused(above(TenantId::PLATFORM, 10, 11));
    given::<Allowance>([]).when(set(&[team], 1)).then_refused(above(TenantId::PLATFORM, 0, 1));
    let held = Error::BelowHeld { held_milli: 5 * MILLI, wanted_milli: 4 * MILLI };
    given::<Allowance>(&history).when(set(&[team], 4)).then_refused(held);
    given::<Allowance>(&history).when(set(&[team, project], 6)).then([ceiling_of(project, 6)]);
    // One over it may be lowered later, and counts then.
    given::<Allowance>([&history[..], &[ceiling(5)]].concat())
        .when(hold_order("q", &[team], 1))
        .then([Event::OrderHoldRefused { order: order("q"), wanted_milli: MILLI, free_milli: 0, node: None }]);
}

#[test]
fn a_job_is_held_under_the_orders_of_its_own_node_and_waits_there() {
    let (team, project) = (node("team"), node("project"));
    let at = |name: &str, below: &[TenantId], units: i64| Command::HoldJob {
        job: job(name),
        below: below.into(),
        milli: units * MILLI,
    };
    let held = |name: &str, node, units: i64| Event::JobHeld { job: job(name), milli: units * MILLI, node };
    let waits = |name: &str, node, units: i64| Event::JobQueued {
        job: job(name),
        wanted_milli: units * MILLI,
        free_milli: 0,
        node,
    };
    let history = [ceiling(10), ordered(4), ordered_at("p", &[team, project], 2), held("a", Some(project), 2)];
    let refused = Event::JobHoldRefused { job: job("b"), wanted_milli: MILLI, ordered_milli: 0 };
    given::<Allowance>(&history).when(at("b", &[team], 1)).then([refused]);
    given::<Allowance>(&history).when(at("b", &[team, project], 1)).then([waits("b", Some(project), 1)]);
    given::<Allowance>(&history).when(at("b", &[], 4)).then([held("b", None, 4)]);
    let queues = [&history[..], &[held("b", None, 4), waits("c", None, 1), waits("d", Some(project), 1)]].concat();
    let released = Event::JobReleased { job: job("a"), milli: 2 * MILLI };
    let free = Command::ReleaseJob { job: job("a") };
    given::<Allowance>(&queues).when(free).then([released, held("d", Some(project), 1)]);
    let back = Command::ReleaseOrder { order: order("p") };
    let used = Event::OrderReleaseRefused { order: order("p"), in_use_milli: 2 * MILLI };
    given::<Allowance>(&queues).when(back).then([used]);
}

#[test]
fn what_was_stored_before_there_were_trees_is_the_roots() {
    let stored = |json: &str| serde_json::from_str::<Event>(json).unwrap();
    let held = format!(r#"{{"type":"order_held","order":"{}","milli":4000}}"#, order("o"));
    assert_eq!(stored(&held), ordered(4));
    assert_eq!(serde_json::to_string(&ordered(4)).unwrap(), held);
}
