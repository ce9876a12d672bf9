//! Real processes through the runner: how they start, what they find, how they end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

mod room;

use agent_protocol::{DesiredLease, Exit, Phase, Work};
use room::{Room, exit, lives, local, output, says, shell, start, until, wanted, work};
use std::{fs, os::unix::fs::PermissionsExt, time::Duration};
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn an_exit_code_and_a_foreign_signal_are_told_apart() {
    let room = Room::new();
    let runner = room.runner();
    for (script, expected) in [
        ("exit 0", Exit::Code { code: 0 }),
        ("exit 7", Exit::Code { code: 7 }),
        ("kill -SEGV $$", Exit::Signal { signal: 11 }),
    ] {
        let lease = start(&runner, shell(script)).await;
        assert_eq!(exit(&runner, lease).await, expected, "{script}");
    }
}

#[tokio::test]
async fn times_are_in_order_and_to_the_millisecond() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, shell("echo hello")).await;
    exit(&runner, lease).await;
    let Some(Phase::Ended { started_at: Some(started_at), ended_at, output_bytes, .. }) =
        local(&runner, lease).unwrap().phase
    else {
        panic!("it started and ended");
    };
    assert!(started_at <= ended_at);
    assert_eq!((started_at.timestamp_subsec_nanos() % 1_000_000, output_bytes), (0, 6));
}

#[tokio::test]
async fn a_job_that_runs_is_marked_again_and_again() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, work(&["sleep", "300"])).await;
    let folder = runner.folder(lease);
    until(|| folder.alive_ms() > 0).await;
    let first = folder.alive_ms();
    until(|| folder.alive_ms() > first).await;
    runner.stop(lease, 0).unwrap();
    exit(&runner, lease).await;
    let Some(Phase::Ended { started_at: Some(started_at), ended_at, .. }) = local(&runner, lease).unwrap().phase else {
        panic!("it started and ended");
    };
    assert!((ended_at - started_at).num_milliseconds() >= folder.alive_ms());
}

#[tokio::test]
async fn a_stop_lets_it_end_by_itself() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, shell("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done")).await;
    says(&runner, lease, "ready").await;
    runner.stop(lease, 20_000).unwrap();
    runner.stop(lease, 20_000).unwrap();
    assert_eq!(exit(&runner, lease).await, Exit::Stopped);
    // A shell may say in between that its sleep was terminated.
    assert!(output(&runner, lease).ends_with(b"saved\n"));
}

#[tokio::test]
async fn one_that_ignores_term_is_killed_after_the_grace_with_its_children() {
    let room = Room::new();
    let runner = room.runner();
    let script = "trap '' TERM; sleep 300 & echo $!; echo ready; while :; do sleep 0.05; done";
    let lease = start(&runner, shell(script)).await;
    says(&runner, lease, "ready").await;
    let asked = Instant::now();
    runner.stop(lease, 300).unwrap();
    assert_eq!(exit(&runner, lease).await, Exit::Stopped);
    assert!(asked.elapsed() >= Duration::from_millis(300));
    let child = String::from_utf8(output(&runner, lease)).unwrap().lines().next().unwrap().parse().unwrap();
    assert!(!lives(child));
}

#[tokio::test]
async fn a_shorter_grace_wins_over_a_longer_one() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, shell("trap '' TERM; echo ready; while :; do sleep 0.05; done")).await;
    says(&runner, lease, "ready").await;
    runner.stop(lease, 3_600_000).unwrap();
    runner.stop(lease, 100).unwrap();
    assert_eq!(exit(&runner, lease).await, Exit::Stopped);
}

#[tokio::test]
async fn a_stopped_process_is_ended_too() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, shell("echo ready; kill -STOP $$; sleep 300")).await;
    says(&runner, lease, "ready").await;
    runner.stop(lease, 20_000).unwrap();
    assert_eq!(timeout(Duration::from_secs(10), exit(&runner, lease)).await.unwrap(), Exit::Stopped);
}

#[tokio::test]
async fn the_time_limit_ends_it() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, Work { time_limit_s: Some(1), ..shell("exec sleep 300") }).await;
    assert_eq!(exit(&runner, lease).await, Exit::TimedOut);
}

#[tokio::test]
async fn what_it_leaves_behind_is_ended_also_outside_its_session() {
    let room = Room::new();
    let runner = room.runner();
    let script = "sleep 300 & echo $!; setsid sleep 300 & env -i sleep 300 & echo $!; exit 3";
    let lease = start(&runner, shell(script)).await;
    assert_eq!(exit(&runner, lease).await, Exit::Code { code: 3 });
    for pid in String::from_utf8(output(&runner, lease)).unwrap().lines() {
        assert!(!lives(pid.parse().unwrap()), "{pid}");
    }
    assert!(kashi_agent::run::of_lease(lease, None).is_empty());
}

#[tokio::test]
async fn it_finds_a_clean_environment_and_its_folder() {
    let room = Room::new();
    let runner = room.runner();
    let env = [("GREETING", "你好 a=b"), ("KASHI_CARDS", "9"), ("LANG", "C")];
    let env = env.map(|(name, value)| (name.to_string(), value.to_string())).into();
    let lease =
        start(&runner, Work { env, cards: vec![0, 3], ..shell("pwd; env | sort; read line || echo no input") }).await;
    exit(&runner, lease).await;
    let said = String::from_utf8(output(&runner, lease)).unwrap();
    let folder = runner.folder(lease);
    let path = folder.path().display();
    let checkpoints = folder.checkpoints(folder.wanted().unwrap().unwrap().job);
    let mut lines = said.lines();
    assert_eq!(lines.next().unwrap(), format!("{path}/work"));
    for line in [
        "GREETING=你好 a=b".to_string(),
        "LANG=C".into(),
        format!("HOME={path}/work"),
        format!("TMPDIR={path}/tmp"),
        format!("KASHI_OUTPUT_DIR={path}/results"),
        format!("KASHI_CHECKPOINT_DIR={}", checkpoints.display()),
        format!("KASHI_LEASE={lease}"),
        "KASHI_CARDS=0,3".into(),
        "CUDA_VISIBLE_DEVICES=0,3".into(),
        "ASCEND_RT_VISIBLE_DEVICES=0,3".into(),
        "no input".into(),
    ] {
        assert!(said.lines().any(|said| said == line), "{line} is missing in\n{said}");
    }
    assert!(!said.contains("CARGO"), "the agent's own environment is in\n{said}");
}

#[tokio::test]
async fn its_output_is_both_streams_and_any_bytes() {
    let room = Room::new();
    let runner = room.runner();
    let folder = tempfile::tempdir().unwrap();
    let at = Some(folder.path().to_str().unwrap().to_string());
    let script = r"printf '\377\000\303'; printf 'x' >&2; echo here > file";
    let lease = start(&runner, Work { folder: at, ..shell(script) }).await;
    assert_eq!(exit(&runner, lease).await, Exit::Code { code: 0 });
    assert_eq!(output(&runner, lease), b"\xff\x00\xc3x");
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"here\n");
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let room = Room::new();
    let runner = room.runner();
    let plain = room.data.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let script = room.data.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let named = |name: &str, value: &str| [(name.to_string(), value.to_string())].into();
    let elsewhere = |folder: &str| Work { folder: Some(folder.into()), ..shell("true") };
    for (work, reason) in [
        (work(&["no-such-program"]), "`no-such-program` was not found"),
        (work(&["/no/such/program"]), "`/no/such/program`"),
        (work(&[script.to_str().unwrap()]), "interpreter"),
        (work(&[plain.to_str().unwrap()]), "permission denied"),
        (work(&[]), "the command is empty"),
        (work(&[""]), "the command is empty"),
        (work(&["echo", "a\0b"]), "NUL"),
        (Work { env: named("A", "\0"), ..shell("true") }, "NUL"),
        (Work { env: named("A=B", ""), ..shell("true") }, "`A=B` cannot be the name"),
        (Work { env: named("", "x"), ..shell("true") }, "cannot be the name"),
        (elsewhere("/no/such/folder"), "`/no/such/folder` is not there"),
        (elsewhere(plain.to_str().unwrap()), "is not there"),
        (elsewhere("a\0b"), "NUL"),
        (Work { time_limit_s: Some(0), ..shell("true") }, "time limit"),
        (work(&[&"\u{1}".repeat(100_000)]), "could not be started"),
    ] {
        let lease = start(&runner, work).await;
        let Exit::NotStarted { reason: said } = exit(&runner, lease).await else { panic!("it started: {reason}") };
        let length = said.chars().count();
        assert!(length <= 1000, "a reason of {length} characters");
        assert!(length == 1000 || said.contains(reason), "{said:?} does not say {reason:?}");
        let Some(Phase::Ended { started_at, .. }) = local(&runner, lease).unwrap().phase else { panic!("it ended") };
        assert_eq!(started_at, None);
    }
}

#[tokio::test]
async fn a_missing_keeper_is_a_reason_too() {
    let room = Room::new();
    let runner = kashi_agent::run::Runner::open(room.data.path(), "/no/such/agent".into()).unwrap();
    let lease = start(&runner, shell("true")).await;
    assert!(matches!(exit(&runner, lease).await, Exit::NotStarted { .. }));
}

#[tokio::test]
async fn one_that_should_end_before_it_started_is_answered_and_not_run() {
    let room = Room::new();
    let runner = room.runner();
    let wanted = DesiredLease { stop_after_ms: Some(0), ..wanted(shell("echo ran")) };
    runner.start(&wanted).await.unwrap();
    assert_eq!(exit(&runner, wanted.lease).await, Exit::Stopped);
    assert_eq!(output(&runner, wanted.lease), b"");
}

#[tokio::test]
async fn only_what_has_ended_is_forgotten_and_then_nothing_is_left() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, shell("mkdir -m 0 closed; echo ready; sleep 300")).await;
    says(&runner, lease, "ready").await;
    assert!(runner.forget((lease, 1)).is_err());
    runner.stop(lease, 0).unwrap();
    exit(&runner, lease).await;
    assert!(runner.forget((lease, 2)).is_err());
    runner.forget((lease, 1)).unwrap();
    assert!(!runner.folder(lease).path().exists());
    assert_eq!(runner.observe().unwrap(), []);
}
