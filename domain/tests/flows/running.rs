//! Jobs: from submission to the end, refused, waiting, cancelled.

use super::world::{World, decimal};
use chrono::TimeDelta;
use domain::Event;
use domain::allocation::job::{self, Outcome, Refusal};
use domain::allocation::{Job, Lease};
use domain::kernel::{JobId, StreamName};
use rust_decimal::Decimal;

fn of_job(world: &World, job: JobId) -> Vec<job::Event> {
    let mine = |(stream, event)| {
        let Event::Job(event) = event else { return None };
        (stream == StreamName::new("job", job)).then_some(event)
    };
    world.events().into_iter().filter_map(mine).collect()
}

fn ended(world: &World, job: JobId) -> Outcome {
    let ends: Vec<Outcome> = of_job(world, job)
        .into_iter()
        .filter_map(|event| if let job::Event::Ended { outcome, .. } = event { Some(outcome) } else { None })
        .collect();
    let [end] = &ends[..] else { panic!("a job ends once: {ends:?}") };
    end.clone()
}

/// Lets flows, scheduler and node go on until there is nothing to do.
fn finish(world: &World) {
    for _ in 0..10_000 {
        world.settle();
        if !world.act() {
            return;
        }
    }
    panic!("it goes on for ever");
}

#[test]
fn a_job_is_held_placed_leased_started_and_ended() {
    let world = World::ordered(4, "1000");
    let job = world.submit("train", 4);
    world.settle();
    assert_eq!(world.job(job).word(), "admitted");
    assert_eq!(world.quota().in_use(), 4000);
    assert_eq!(world.wallet().held(), decimal("320"));
    world.place(job);
    world.settle();
    let (lease, state) = world.leases().remove(0);
    assert!(matches!(world.job(job), Job::Placed { lease: of, .. } if of == lease));
    let grant = state.grant().unwrap().clone();
    assert_eq!((grant.job, grant.milli, grant.cards), (job, 4000, vec![0, 1, 2, 3]));
    let placed = world.log().into_iter().find(|stored| stored.kind == "plan.placed").unwrap();
    assert_eq!(grant.generation, placed.position);
    world.start(lease);
    world.settle();
    assert_eq!(world.job(job).word(), "running");
    world.pass(1200);
    world.end(lease, world.now.get(), Outcome::Failed { code: 3 });
    world.settle();
    assert_eq!(ended(&world, job), Outcome::Failed { code: 3 });
    world.is_free();
    world.is_sound();
}

#[test]
fn a_job_larger_than_what_was_ordered_is_refused_with_the_numbers() {
    let world = World::ordered(4, "1000");
    let job = world.submit("train", 5);
    world.settle();
    let reason = Refusal::Quota { wanted_milli: 5000, ordered_milli: 4000 };
    assert_eq!(ended(&world, job), Outcome::Refused { reason });
    world.is_free();
    world.is_sound();
}

#[test]
fn a_job_without_money_is_refused_with_the_numbers_and_gives_its_quota_back() {
    let world = World::ordered(4, "200");
    let job = world.submit("train", 3);
    world.settle();
    let reason = Refusal::Money { wanted: decimal("240"), available: decimal("200") };
    assert_eq!(ended(&world, job), Outcome::Refused { reason });
    world.is_free();
    world.is_sound();
}

#[test]
fn a_job_without_a_price_is_refused() {
    let world = World::ordered(4, "1000");
    // The prices begin at nine o'clock.
    world.pass(-1);
    let job = world.submit("train", 1);
    world.settle();
    assert_eq!(ended(&world, job), Outcome::Refused { reason: Refusal::NoPrice { sku: "a100.card".into() } });
    world.is_free();
    world.is_sound();
}

#[test]
fn jobs_wait_visibly_and_are_let_in_in_the_order_in_which_they_came() {
    let world = World::ordered(4, "10000");
    let jobs = ["a", "b", "c", "d"].map(|name| world.submit(name, 3));
    world.settle();
    let queued = job::Event::QuotaQueued { wanted_milli: 3000, free_milli: 1000 };
    assert_eq!(of_job(&world, jobs[1]).last(), Some(&queued));
    world.cancel(jobs[2]).unwrap();
    finish(&world);
    let admitted: Vec<StreamName> = world
        .events()
        .into_iter()
        .filter_map(|(stream, event)| matches!(event, Event::Job(job::Event::Admitted)).then_some(stream))
        .collect();
    assert_eq!(admitted, [jobs[0], jobs[1], jobs[3]].map(|job| StreamName::new("job", job)));
    world.is_free();
    world.is_sound();
}

#[test]
fn a_job_that_was_placed_twice_runs_once() {
    let world = World::ordered(4, "1000");
    let job = world.submit("train", 1);
    world.settle();
    world.place(job);
    world.place(job);
    world.settle();
    let [first, second] = &world.leases()[..] else { panic!("two placements are two leases") };
    assert!(matches!(first.1, Lease::Granted(_)));
    assert!(matches!(second.1, Lease::Over(_)), "the second was voided");
    finish(&world);
    assert_eq!(ended(&world, job), Outcome::Succeeded);
    world.is_free();
    world.is_sound();
}

/// One step of whoever has something to do: the flows first, then scheduler and node.
fn tick(world: &World) -> bool {
    world.step() || world.act()
}

#[test]
fn a_job_cancelled_at_any_step_leaves_no_hold_and_no_lease() {
    let (mut steps, mut cancelled) = (0, 0);
    loop {
        let world = World::ordered(4, "1000");
        let job = world.submit("train", 2);
        let came_so_far = (0..steps).all(|_| tick(&world));
        let was_over = world.leases().iter().any(|(_, lease)| matches!(lease, Lease::Over(_)));
        let was_cancelled = world.cancel(job).is_ok() && !was_over;
        // A second one waits behind it and must not be held up.
        let next = world.submit("next", 4);
        finish(&world);
        assert_eq!(ended(&world, next), Outcome::Succeeded, "cancelled after {steps} steps");
        if was_cancelled {
            cancelled += 1;
            assert_eq!(ended(&world, job), Outcome::Cancelled, "after {steps} steps");
        }
        world.is_free();
        world.is_sound();
        if !came_so_far {
            break;
        }
        steps += 1;
    }
    assert!(cancelled >= 12 && cancelled < steps, "{cancelled} of {steps}");
}

#[test]
fn a_cancelled_job_that_never_ran_costs_nothing() {
    let world = World::ordered(4, "1000");
    let job = world.submit("train", 4);
    world.settle();
    world.place(job);
    world.settle();
    world.cancel(job).unwrap();
    world.pass(600);
    finish(&world);
    assert_eq!(world.wallet().available(), decimal("1000"));
    assert_eq!(world.wallet().held(), Decimal::ZERO);
    assert!(!world.events().iter().any(|(_, event)| matches!(event, Event::Meter(_) | Event::Ledger(_))));
    world.is_sound();
}

#[test]
fn a_job_whose_node_is_lost_keeps_what_it_holds_and_is_billed_for_what_is_proved() {
    let world = World::ordered(4, "1000");
    let job = world.submit_with("train", 1, 1);
    let once = world.submit("once", 1);
    world.settle();
    world.place(job);
    world.place(once);
    world.settle();
    let leases = world.leases();
    leases.iter().for_each(|(lease, _)| world.start(*lease));
    world.settle();
    let proved = world.now.get() + TimeDelta::minutes(9);
    world.pass(1200);
    world.lose(proved);
    world.settle();
    assert_eq!(ended(&world, once), Outcome::Lost);
    assert!(matches!(world.job(job), Job::Admitted { restarted: 1, .. }));
    assert_eq!((world.quota().in_use(), world.wallet().held()), (1000, decimal("68")));
    assert!(world.leases().iter().all(|(_, lease)| matches!(lease, Lease::Lost(_))));
    world.lose(world.now.get());
    world.settle();
    // Nine minutes of a card at 80 an hour, twice.
    assert_eq!(world.wallet().available(), decimal("1000") - decimal("24") - decimal("68"));
    finish(&world);
    assert_eq!(ended(&world, job), Outcome::Succeeded);
    world.is_free();
    world.is_sound();
}

#[test]
fn a_node_lost_at_any_step_leaves_no_hold_and_no_lease() {
    let (mut steps, mut again) = (0, 0);
    loop {
        let world = World::ordered(4, "1000");
        let job = world.submit_with("train", 2, 1);
        let came_so_far = (0..steps).all(|_| tick(&world));
        world.lose(world.now.get());
        finish(&world);
        assert_eq!(ended(&world, job), Outcome::Succeeded, "lost after {steps} steps");
        again += of_job(&world, job).iter().filter(|event| matches!(event, job::Event::Requeued { .. })).count();
        world.is_free();
        world.is_sound();
        if !came_so_far {
            break;
        }
        steps += 1;
    }
    assert!(again >= 3 && again < steps, "{again} of {steps}");
}
