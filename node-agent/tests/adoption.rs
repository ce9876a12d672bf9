//! An agent that ends, is killed or starts again, and what becomes of its jobs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

mod room;

use agent_protocol::{Exit, Phase};
use domain::kernel::LeaseId;
use room::{Room, exit, lives, local, says, shell, start, until, wanted, work};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// Does something with a runner whose process then is no more, as far as it can be within one: with its runtime, all
/// that waited for the jobs is gone.
fn once<T>(room: &Room, what: impl AsyncFnOnce(&kashi_agent::run::Runner) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let done = runtime.block_on(async { what(&room.runner()).await });
    runtime.shutdown_background();
    done
}

fn started(room: &Room, script: &str) -> LeaseId {
    once(room, async |runner| {
        let lease = start(runner, shell(script)).await;
        says(runner, lease, "ready").await;
        lease
    })
}

#[test]
fn a_job_that_runs_is_adopted_and_its_exit_is_seen() {
    let room = Room::new();
    let lease = started(&room, "echo ready; until test -e go; do sleep 0.02; done; exit 5");
    once(&room, async |runner| {
        assert!(matches!(local(runner, lease).unwrap().phase, Some(Phase::Running { .. })));
        fs::write(runner.folder(lease).work().join("go"), "").unwrap();
        assert_eq!(exit(runner, lease).await, Exit::Code { code: 5 });
    });
}

#[test]
fn a_job_that_was_adopted_can_be_stopped() {
    let room = Room::new();
    let lease = started(&room, "echo ready; exec sleep 300");
    once(&room, async |runner| {
        runner.stop(lease, 5_000).unwrap();
        assert_eq!(exit(runner, lease).await, Exit::Stopped);
    });
}

#[test]
fn a_job_that_ended_meanwhile_is_as_durable() {
    let room = Room::new();
    let lease = started(&room, "echo ready; exit 4");
    until_ended(&room, lease);
    once(&room, async |runner| assert_eq!(exit(runner, lease).await, Exit::Code { code: 4 }));
}

fn until_ended(room: &Room, lease: LeaseId) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = room.data.path().join("leases").join(lease.to_string()).join("exit.json");
    runtime.block_on(until(|| path.exists()));
}

#[test]
fn without_a_keeper_the_job_is_ended_before_it_is_said_to_have_vanished() {
    let room = Room::new();
    let lease = started(&room, "setsid sleep 300 & echo ready; exec sleep 300");
    let folder = room.data.path().join("leases").join(lease.to_string());
    let started = kashi_agent::run::Folder::at(folder).started().unwrap().unwrap();
    kill_process(Pid::from_raw(started.keeper).unwrap(), Signal::KILL).unwrap();
    assert!(lives(started.pid));
    once(&room, async |runner| {
        assert_eq!(exit(runner, lease).await, Exit::Vanished);
        assert!(!lives(started.pid));
        assert!(kashi_agent::run::of_lease(lease, None).is_empty());
    });
}

#[tokio::test]
async fn a_keeper_that_is_killed_before_our_eyes_is_noticed_at_once() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, work(&["sleep", "300"])).await;
    let started = runner.folder(lease).started().unwrap().unwrap();
    kill_process(Pid::from_raw(started.keeper).unwrap(), Signal::KILL).unwrap();
    assert_eq!(exit(&runner, lease).await, Exit::Vanished);
    assert!(!lives(started.pid));
}

#[tokio::test]
async fn a_term_that_nobody_asked_for_is_a_signal_and_not_a_stop() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, work(&["sleep", "300"])).await;
    let started = runner.folder(lease).started().unwrap().unwrap();
    kill_process(Pid::from_raw(started.keeper).unwrap(), Signal::TERM).unwrap();
    assert_eq!(exit(&runner, lease).await, Exit::Signal { signal: 15 });
}

#[tokio::test]
async fn an_agent_that_died_between_writing_and_starting_says_so() {
    let room = Room::new();
    let wanted = wanted(shell("echo ran"));
    room.runner().folder(wanted.lease).create(&wanted).unwrap();
    let runner = room.runner();
    assert_eq!(exit(&runner, wanted.lease).await, Exit::Vanished);
    assert!(!runner.folder(wanted.lease).output().exists());
}

#[tokio::test]
async fn a_damaged_folder_is_left_out_and_replaced_when_the_lease_is_asked_for() {
    let room = Room::new();
    let runner = room.runner();
    let wanted = wanted(shell("exit 2"));
    let folder = runner.folder(wanted.lease);
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("work.json"), "{").unwrap();
    assert_eq!(runner.observe().unwrap(), []);
    runner.start(&wanted).await.unwrap();
    assert_eq!(exit(&runner, wanted.lease).await, Exit::Code { code: 2 });
}
