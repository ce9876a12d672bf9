//! The whole agent, as a process, against a control service that comes and goes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

mod fake;
#[expect(dead_code, reason = "each test file uses a part of the room")]
mod room;

use agent_protocol::{DesiredLease, Exit, OUTPUT_CHUNK_BYTES_MAX, Phase, REPORT_LEASES_MAX};
use fake::{Fake, TOKEN};
use kashi_agent::run::{Ended, Folder};
use room::{PATIENCE, PROGRAM, Room, shell, until, wanted};
use rustix::process::{Pid, Signal, kill_process};
use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, process::Stdio, time::Duration};
use tokio::{
    process::{Child, Command},
    time::{Instant, timeout},
};

fn command(fake: &Fake, room: &Room, token: Option<&str>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["--server", &fake.url(), "--name", "box", "--simulate-cards", "2", "--model", "h100", "--data"]);
    command.arg(room.data.path()).env_remove("KASHI_JOIN_TOKEN").kill_on_drop(true).stderr(Stdio::null());
    if let Some(token) = token {
        command.env("KASHI_JOIN_TOKEN", token);
    }
    command
}

fn agent(fake: &Fake, room: &Room) -> Child {
    command(fake, room, Some(TOKEN)).spawn().unwrap()
}

fn gone(room: &Room, lease: &DesiredLease) -> bool {
    !room.data.path().join("leases").join(lease.lease.to_string()).exists()
}

async fn end(agent: &mut Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_raw(i32::try_from(agent.id().unwrap()).unwrap()).unwrap(), signal).unwrap();
    timeout(PATIENCE, agent.wait()).await.unwrap().unwrap().code()
}

/// Ends the leases and waits until the agent has forgotten them.
async fn close(fake: &Fake, room: &Room, leases: &[&DesiredLease]) {
    fake.want(&[]);
    until(|| leases.iter().all(|lease| gone(room, lease))).await;
}

#[tokio::test]
async fn joins_runs_reports_delivers_and_forgets() {
    let (fake, room) = (Fake::new(), Room::new());
    let _agent = agent(&fake, &room);
    let lease = wanted(shell(r"printf 'a\377b'; exit 3"));
    let generation = fake.want(std::slice::from_ref(&lease));
    fake.until(|memory| memory.ended(lease.lease) && memory.output.get(&lease.lease).is_some_and(|o| o == b"a\xffb"))
        .await;
    fake.change(|memory| {
        let joined = &memory.registered[0];
        assert_eq!((joined.name.as_str(), joined.inventory.cards.len()), ("box", 2));
        assert!(joined.inventory.cards.iter().all(|card| card.simulated));
        let report = memory.reports.last().unwrap();
        assert_eq!((report.generation, &report.inventory), (generation, &joined.inventory));
        let Some(Phase::Ended { exit, output_bytes, .. }) = memory.phase(lease.lease) else { panic!("it ended") };
        assert_eq!((exit, *output_bytes), (&Exit::Code { code: 3 }, 3));
        assert!(memory.reports.iter().all(|report| report.generation < generation || !report.leases.is_empty()));
    });
    assert!(!gone(&room, &lease), "a lease that is still desired is kept");
    close(&fake, &room, &[&lease]).await;
    fake.until(|memory| memory.reports.last().unwrap().leases.is_empty()).await;
}

#[tokio::test]
async fn a_lease_that_disappears_is_ended_and_one_that_is_to_stop_is_told_so() {
    let (fake, room) = (Fake::new(), Room::new());
    let _agent = agent(&fake, &room);
    let (first, second) = (wanted(shell("exec sleep 300")), wanted(shell("exec sleep 300")));
    fake.want(&[first.clone(), second.clone()]);
    fake.until(|memory| memory.runs(first.lease) && memory.runs(second.lease)).await;
    let second = DesiredLease { stop_after_ms: Some(5_000), ..second };
    fake.want(std::slice::from_ref(&second));
    fake.until(|memory| memory.ended(second.lease) && memory.phase(first.lease).is_none()).await;
    fake.change(|memory| {
        assert!(matches!(memory.phase(second.lease), Some(Phase::Ended { exit: Exit::Stopped, .. })));
        let told = memory.reports.iter().flat_map(|report| &report.leases);
        let ends = told.filter(|seen| seen.lease == first.lease && matches!(seen.phase, Phase::Ended { .. })).count();
        assert!(ends > 0, "its end was said before it was forgotten");
    });
    close(&fake, &room, &[&first, &second]).await;
}

#[tokio::test]
async fn while_the_server_is_away_work_goes_on_and_all_is_delivered_afterwards() {
    let (mut fake, room) = (Fake::new(), Room::new());
    let _agent = agent(&fake, &room);
    let size = 3 * OUTPUT_CHUNK_BYTES_MAX + 1;
    let script = format!("echo ready; until test -e go; do sleep 0.02; done; head -c {size} /dev/urandom; exit 9");
    let lease = wanted(shell(&script));
    fake.want(std::slice::from_ref(&lease));
    fake.until(|memory| memory.output.get(&lease.lease).is_some_and(|bytes| bytes == b"ready\n")).await;
    fake.go();
    let folder = room.data.path().join("leases").join(lease.lease.to_string());
    fs::write(folder.join("work/go"), "").unwrap();
    until(|| folder.join("exit.json").exists()).await;
    fake.come();
    let written = fs::read(folder.join("output")).unwrap();
    assert_eq!(written.len(), size + 6);
    fake.until(|memory| memory.ended(lease.lease) && memory.output[&lease.lease] == written).await;
    close(&fake, &room, &[&lease]).await;
}

#[tokio::test]
async fn an_older_desired_set_is_refused() {
    let (fake, room) = (Fake::new(), Room::new());
    let _agent = agent(&fake, &room);
    let lease = wanted(shell("exec sleep 300"));
    fake.change(|memory| memory.desired.generation = 10);
    fake.want(std::slice::from_ref(&lease));
    fake.until(|memory| memory.runs(lease.lease)).await;
    let now = fake.change(|memory| {
        memory.desired.generation = 5;
        memory.desired.leases.clear();
        memory.impatient = true;
        memory.polls
    });
    fake.until(|memory| memory.polls >= now + 2).await;
    fake.change(|memory| {
        memory.impatient = false;
        memory.desired.generation = 20;
        memory.desired.leases = vec![lease.clone()];
    });
    fake.until(|memory| memory.reports.last().unwrap().generation == 20).await;
    fake.change(|memory| assert!(memory.runs(lease.lease)));
    close(&fake, &room, &[&lease]).await;
}

#[tokio::test]
async fn what_the_server_does_not_count_is_ended_and_forgotten_though_its_output_is_refused() {
    let (fake, room) = (Fake::new(), Room::new());
    let _agent = agent(&fake, &room);
    let lease = wanted(shell("echo hello; exec sleep 300"));
    fake.change(|memory| memory.unwanted.insert(lease.lease));
    fake.want(std::slice::from_ref(&lease));
    fake.until(|memory| memory.runs(lease.lease)).await;
    fake.change(|memory| memory.stale.push(lease.lease));
    fake.want(&[]);
    until(|| gone(&room, &lease)).await;
    fake.change(|memory| assert!(!memory.output.contains_key(&lease.lease)));
}

#[tokio::test]
async fn the_same_lease_in_another_generation_runs_after_the_end_of_the_first() {
    let (fake, room) = (Fake::new(), Room::new());
    let _agent = agent(&fake, &room);
    let first = wanted(shell("exec sleep 300"));
    fake.want(std::slice::from_ref(&first));
    fake.until(|memory| memory.runs(first.lease)).await;
    let second = DesiredLease { generation: 2, work: shell("exit 6"), ..first.clone() };
    fake.want(std::slice::from_ref(&second));
    fake.until(|memory| {
        let seen = memory.reports.last().into_iter().flat_map(|report| &report.leases);
        seen.into_iter()
            .any(|seen| seen.generation == 2 && matches!(seen.phase, Phase::Ended { exit: Exit::Code { code: 6 }, .. }))
    })
    .await;
    close(&fake, &room, &[&first]).await;
}

#[tokio::test]
async fn an_agent_that_ends_or_is_killed_leaves_its_jobs_and_finds_them_again() {
    let (fake, room) = (Fake::new(), Room::new());
    let lease = wanted(shell("echo ready; until test -e go; do sleep 0.02; done; exit 8"));
    fake.want(std::slice::from_ref(&lease));
    let mut first = agent(&fake, &room);
    fake.until(|memory| memory.runs(lease.lease) && memory.output.contains_key(&lease.lease)).await;
    let asked = Instant::now();
    assert_eq!(end(&mut first, Signal::TERM).await, Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5));
    // It knows who it is, so it needs no token any more.
    let mut second = command(&fake, &room, None).spawn().unwrap();
    let reports = fake.change(|memory| memory.reports.len());
    fake.until(|memory| memory.reports.len() > reports && memory.runs(lease.lease)).await;
    assert_eq!(end(&mut second, Signal::KILL).await, None);
    fs::write(room.data.path().join("leases").join(lease.lease.to_string()).join("work/go"), "").unwrap();
    let _third = command(&fake, &room, None).spawn().unwrap();
    fake.until(|memory| memory.ended(lease.lease)).await;
    fake.change(|memory| {
        let Some(Phase::Ended { exit, .. }) = memory.phase(lease.lease) else { panic!("it ended") };
        assert_eq!((exit, memory.registered.len()), (&Exit::Code { code: 8 }, 1));
        assert_eq!(memory.output[&lease.lease], b"ready\n");
    });
    close(&fake, &room, &[&lease]).await;
}

#[tokio::test]
async fn more_ends_than_a_report_takes_are_all_heard_and_forgotten() {
    let (fake, room) = (Fake::new(), Room::new());
    let leases: Vec<_> = (0..REPORT_LEASES_MAX + 20).map(|_| wanted(shell("true"))).collect();
    for lease in &leases {
        let folder = Folder::at(room.data.path().join("leases").join(lease.lease.to_string()));
        folder.create(lease).unwrap();
        folder.write_ended(&Ended::now(Exit::Stopped)).unwrap();
    }
    fs::set_permissions(room.data.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let _agent = agent(&fake, &room);
    let all: BTreeSet<_> = leases.iter().map(|lease| lease.lease).collect();
    fake.until(|memory| {
        let said = memory.reports.iter().flat_map(|report| &report.leases);
        said.map(|seen| seen.lease).collect::<BTreeSet<_>>() == all
    })
    .await;
    fake.change(|memory| {
        assert!(memory.reports.iter().all(|report| report.leases.len() <= REPORT_LEASES_MAX));
    });
    close(&fake, &room, &leases.iter().collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_node() {
    let (fake, room) = (Fake::new(), Room::new());
    fake.change(|memory| memory.lose = 2);
    let _agent = agent(&fake, &room);
    fake.until(|memory| !memory.reports.is_empty()).await;
    fake.change(|memory| assert_eq!((memory.registered.len(), memory.nodes.len()), (3, 1)));
}

#[tokio::test]
async fn a_refusal_is_said_and_ends_the_agent_and_so_does_a_missing_token() {
    let (fake, room) = (Fake::new(), Room::new());
    for (token, words) in [
        (Some("jt_used"), ["pool.token_used", "this token was used before"]),
        (None, ["--join-token", "KASHI_JOIN_TOKEN"]),
    ] {
        let mut command = command(&fake, &room, token);
        let ended = timeout(PATIENCE, command.stderr(Stdio::piped()).output()).await.unwrap().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!said.contains("jt_used"), "a secret is in the log: {said}");
    }
    fake.change(|memory| assert_eq!(memory.nodes.len(), 0));
}
