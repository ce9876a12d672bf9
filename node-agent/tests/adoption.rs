//! An agent that ends, is killed or starts again, and what becomes of its jobs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

mod room;

use agent_protocol::{Exit, Phase};
use chrono::{DateTime, TimeDelta, Utc};
use domain::kernel::LeaseId;
use kashi_agent::run::{Ended, Moment, Runner, Started};
use room::{Room, exit, lives, local, output, says, shell, start, until, wanted, work};
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

/// How long a lease ran, by what is said of it.
fn ran(runner: &Runner, lease: LeaseId) -> TimeDelta {
    let Some(Phase::Ended { started_at: Some(started_at), ended_at, .. }) = local(runner, lease).unwrap().phase else {
        panic!("it started and ended");
    };
    ended_at - started_at
}

fn yesterday() -> DateTime<Utc> {
    Utc::now() - TimeDelta::days(1)
}

#[tokio::test]
async fn what_went_down_with_the_machine_ended_at_its_last_mark() {
    let room = Room::new();
    let here = Moment::now();
    let of_another_boot = Moment { boot: Some("another".into()), ..here.clone() };
    for since in [of_another_boot, here] {
        let wanted = wanted(shell("echo ran"));
        let folder = room.runner().folder(wanted.lease);
        folder.create(&wanted).unwrap();
        let started = Started { pid: i32::MAX, keeper: i32::MAX, started_at: yesterday(), since: Some(since) };
        folder.write_started(&started).unwrap();
        folder.write_alive(61_234).unwrap();
        let runner = room.runner();
        assert_eq!(exit(&runner, wanted.lease).await, Exit::Vanished);
        assert_eq!(ran(&runner, wanted.lease), TimeDelta::milliseconds(61_234));
    }
}

#[tokio::test]
async fn a_folder_of_an_earlier_version_is_read_and_no_time_is_made_up_for_it() {
    let room = Room::new();
    let wanted = wanted(shell("echo ran"));
    let folder = room.runner().folder(wanted.lease);
    folder.create(&wanted).unwrap();
    fs::remove_file(folder.path().join("alive")).unwrap();
    let started = format!(r#"{{"pid":{0},"keeper":{0},"started_at":"{1}"}}"#, i32::MAX, yesterday().to_rfc3339());
    fs::write(folder.path().join("started.json"), started).unwrap();
    let runner = room.runner();
    assert_eq!(exit(&runner, wanted.lease).await, Exit::Vanished);
    assert_eq!(ran(&runner, wanted.lease), TimeDelta::zero());
}

#[test]
fn what_we_kill_ran_until_now_whatever_the_clock_says() {
    let room = Room::new();
    let lease = started(&room, "echo ready; exec sleep 300");
    let folder = kashi_agent::run::Folder::at(room.data.path().join("leases").join(lease.to_string()));
    let started = folder.started().unwrap().unwrap();
    kill_process(Pid::from_raw(started.keeper).unwrap(), Signal::KILL).unwrap();
    // As if the clock had been a day behind when it started.
    folder.write_started(&Started { started_at: yesterday(), ..started }).unwrap();
    once(&room, async |runner| {
        assert_eq!(exit(runner, lease).await, Exit::Vanished);
        let ran = ran(runner, lease);
        assert!((TimeDelta::milliseconds(1)..TimeDelta::minutes(10)).contains(&ran), "{ran}");
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

#[tokio::test]
async fn what_has_ended_is_not_run_again_though_its_exit_is_damaged() {
    let room = Room::new();
    let runner = room.runner();
    let wanted = wanted(shell("echo ran"));
    runner.start(&wanted).await.unwrap();
    exit(&runner, wanted.lease).await;
    let folder = runner.folder(wanted.lease);
    fs::write(folder.path().join("exit.json"), "{").unwrap();
    assert_eq!(runner.observe().unwrap(), []);
    let refused = runner.start(&wanted).await.unwrap_err().to_string();
    assert!(refused.contains("has ended"), "{refused}");
    assert_eq!(output(&runner, wanted.lease), b"ran\n");
    let ended = Ended::now(Exit::Stopped);
    folder.write_ended(&ended).unwrap();
    assert_eq!(folder.ended().unwrap(), Some(ended));
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_now_is_not_one_that_is_not_there() {
    let room = Room::new();
    let runner = room.runner();
    let wanted = wanted(shell("echo ran"));
    let folder = runner.folder(wanted.lease);
    let work = folder.path().join("work.json");
    fs::create_dir_all(&work).unwrap();
    // What no agent made is nobody's lease.
    fs::create_dir(folder.path().with_file_name("lost+found")).unwrap();
    let said = runner.observe().unwrap_err().to_string();
    assert!(said.contains("work.json"), "{said}");
    fs::remove_dir(&work).unwrap();
    assert_eq!(runner.observe().unwrap(), []);
    fs::remove_dir_all(folder.path().with_file_name("lost+found")).unwrap();
}

#[tokio::test]
async fn a_job_that_starts_again_finds_its_checkpoints_until_it_is_over() {
    let room = Room::new();
    let runner = room.runner();
    let script = "cat $KASHI_CHECKPOINT_DIR/* 2>/dev/null; echo step >> $KASHI_CHECKPOINT_DIR/steps";
    let first = wanted(shell(script));
    runner.start(&first).await.unwrap();
    assert_eq!(exit(&runner, first.lease).await, Exit::Code { code: 0 });
    runner.forget((first.lease, first.generation)).unwrap();
    runner.keep_checkpoints(&[first.job].into()).unwrap();
    let again = agent_protocol::DesiredLease { job: first.job, ..wanted(shell(script)) };
    runner.start(&again).await.unwrap();
    exit(&runner, again.lease).await;
    assert_eq!(output(&runner, again.lease), b"step\n");
    let folder = runner.folder(again.lease).checkpoints(first.job);
    assert!(folder.exists());
    runner.keep_checkpoints(&[].into()).unwrap();
    assert!(!folder.exists());
}
