//! A disk that takes no more, and one that loses its power.
//!
//! Invariants: what needs a file system of its own, which only root may mount, says so where there can be none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

#[expect(dead_code, reason = "each test file uses a part of the server")]
mod fake;
#[expect(dead_code, reason = "each test file uses a part of the room")]
mod room;

use agent_protocol::{DesiredLease, Exit, Phase};
use chrono::Utc;
use fake::{Fake, TOKEN};
use kashi_agent::run::of_lease;
use room::{PROGRAM, Room, exit, lives, local, shell, start, until, wanted, work};
use rustix::{
    fs::statvfs,
    process::{Pid, Signal, kill_process},
};
use std::{
    fs,
    io::{PipeReader, PipeWriter, Read, pipe},
    os::{fd::AsRawFd, unix::fs::symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio, id},
};
use tokio::task::spawn_blocking;

/// A mounted file system; it is gone with this value.
struct Mount(PathBuf);

impl Mount {
    /// `None` where that is not possible here; why is said.
    fn at(path: &Path, arguments: &[&str]) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let done = Command::new("mount").args(arguments).arg(path).output().unwrap();
        if done.status.success() {
            return Some(Self(path.to_owned()));
        }
        eprintln!("not tried, for nothing can be mounted here: {}", String::from_utf8_lossy(&done.stderr).trim());
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a process that is just ending may still be on it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The room of a word that takes none, until it is given free.
struct Blocked {
    spare: PathBuf,
    tried: PipeReader,
    _end: PipeWriter,
}

impl Blocked {
    fn new(folder: &Path, word: &str) -> Self {
        let spare = folder.join(format!("{word}.spare"));
        fs::remove_file(&spare).unwrap();
        let (tried, end) = pipe().unwrap();
        // A pipe takes the bytes, but nobody can go to a place in it.
        symlink(format!("/proc/{}/fd/{}", id(), end.as_raw_fd()), &spare).unwrap();
        Self { spare, tried, _end: end }
    }

    /// Waits until somebody has tried in vain, and gives the room free.
    async fn free(mut self) {
        let wait = spawn_blocking(move || self.tried.read_exact(&mut [0]).map(|()| self.spare));
        fs::remove_file(wait.await.unwrap().unwrap()).unwrap();
    }
}

#[tokio::test]
async fn a_stop_that_cannot_be_written_is_sent_all_the_same() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, work(&["sleep", "300"])).await;
    let _blocked = Blocked::new(runner.folder(lease).path(), "stop.json");
    assert!(runner.stop(lease, 5_000).is_err());
    assert_eq!(exit(&runner, lease).await, Exit::Signal { signal: 15 });
}

#[tokio::test]
async fn an_end_that_the_keeper_cannot_write_is_told_later_with_its_own_time() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, shell("until test -e go; do sleep 0.02; done; exit 3")).await;
    let blocked = Blocked::new(runner.folder(lease).path(), "exit.json");
    fs::write(runner.folder(lease).work().join("go"), "").unwrap();
    blocked.free().await;
    let freed_at = Utc::now();
    assert_eq!(exit(&runner, lease).await, Exit::Code { code: 3 });
    let Some(Phase::Ended { ended_at, .. }) = local(&runner, lease).unwrap().phase else { panic!("it ended") };
    assert!(ended_at <= freed_at);
}

#[tokio::test]
async fn an_end_that_the_agent_cannot_write_is_told_later_with_its_own_time() {
    let room = Room::new();
    let runner = room.runner();
    let lease = start(&runner, work(&["sleep", "300"])).await;
    let started = runner.folder(lease).started().unwrap().unwrap();
    let blocked = Blocked::new(runner.folder(lease).path(), "exit.json");
    kill_process(Pid::from_raw(started.keeper).unwrap(), Signal::KILL).unwrap();
    blocked.free().await;
    let freed_at = Utc::now();
    assert_eq!(exit(&runner, lease).await, Exit::Vanished);
    assert!(!lives(started.pid));
    let Some(Phase::Ended { ended_at, .. }) = local(&runner, lease).unwrap().phase else { panic!("it ended") };
    // A later look finds nothing to kill any more, and so would say less.
    assert!(started.started_at < ended_at && ended_at <= freed_at);
}

fn agent(fake: &Fake, data: &Path) -> tokio::process::Child {
    let mut command = tokio::process::Command::new(PROGRAM);
    command.args(["--server", &fake.url(), "--name", "box", "--data"]).arg(data).env("KASHI_JOIN_TOKEN", TOKEN);
    command.kill_on_drop(true).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test]
async fn under_a_set_that_cannot_be_kept_work_ends_but_none_is_begun_or_forgotten() {
    let (fake, room) = (Fake::new(), Room::new());
    let _agent = agent(&fake, room.data.path());
    let (over, runs, next) = (wanted(shell("true")), wanted(shell("exec sleep 300")), wanted(shell("true")));
    let folder = |lease: &DesiredLease| room.data.path().join("leases").join(lease.lease.to_string());
    fake.want(&[over.clone(), runs.clone()]);
    fake.until(|memory| memory.ended(over.lease) && memory.runs(runs.lease)).await;
    let blocked = Blocked::new(room.data.path(), "desired.json");
    let generation = fake.want(std::slice::from_ref(&next));
    fake.until(|memory| memory.ended(runs.lease)).await;
    assert!(folder(&over).exists() && folder(&runs).exists() && !folder(&next).exists());
    fake.change(|memory| assert!(memory.reports.iter().all(|report| report.generation < generation)));
    blocked.free().await;
    fake.until(|memory| memory.ended(next.lease)).await;
    fake.want(&[]);
    until(|| [&over, &runs, &next].iter().all(|lease| !folder(lease).exists())).await;
}

const FILLS: &str = "until test -e go; do cat /dev/zero >> all 2>/dev/null; sleep 0.02; done; exit 3";

fn small_disk(room: &Room) -> Option<Mount> {
    Mount::at(room.data.path(), &["-t", "tmpfs", "-o", "size=8m,mode=700", "kashi-test"])
}

fn is_full(room: &Room) -> bool {
    statvfs(room.data.path()).unwrap().f_bavail == 0
}

#[tokio::test]
async fn a_keeper_that_can_neither_write_the_end_nor_say_so_tries_again() {
    let room = Room::new();
    let Some(disk) = small_disk(&room) else { return };
    let runner = room.runner();
    let lease = start(&runner, shell(FILLS)).await;
    let folder = runner.folder(lease);
    let blocked = Blocked::new(folder.path(), "exit.json");
    until(|| is_full(&room)).await;
    fs::File::create(folder.work().join("go")).unwrap();
    blocked.free().await;
    until(|| !lives(folder.started().unwrap().unwrap().pid)).await;
    fs::remove_file(folder.work().join("all")).unwrap();
    assert_eq!(exit(&runner, lease).await, Exit::Code { code: 3 });
    drop(disk);
}

#[tokio::test]
async fn a_job_that_fills_the_disk_ends_by_itself_or_when_it_is_stopped_and_is_forgotten() {
    let (fake, room) = (Fake::new(), Room::new());
    let Some(disk) = small_disk(&room) else { return };
    let _agent = agent(&fake, room.data.path());
    for stops in [false, true] {
        let lease = wanted(shell(FILLS));
        let folder = room.data.path().join("leases").join(lease.lease.to_string());
        fake.want(std::slice::from_ref(&lease));
        fake.until(|memory| memory.runs(lease.lease)).await;
        until(|| is_full(&room)).await;
        let exit = if stops {
            fake.want(&[DesiredLease { stop_after_ms: Some(5_000), ..lease.clone() }]);
            Exit::Stopped
        } else {
            fs::File::create(folder.join("work/go")).unwrap();
            Exit::Code { code: 3 }
        };
        fake.until(|memory| memory.ended(lease.lease)).await;
        assert!(is_full(&room), "the end was told from a full disk");
        fake.change(|memory| {
            let Some(Phase::Ended { exit: told, .. }) = memory.phase(lease.lease) else { panic!("it ended") };
            assert_eq!(told, &exit);
        });
        assert!(of_lease(lease.lease, None).is_empty());
        fake.want(&[]);
        until(|| !folder.exists()).await;
        until(|| !is_full(&room)).await;
    }
    drop(disk);
}

#[tokio::test]
async fn an_end_that_is_there_after_a_power_cut_has_the_whole_output_with_it() {
    let place = tempfile::tempdir().unwrap();
    let (image, cut) = (place.path().join("image"), place.path().join("cut"));
    fs::File::create(&image).unwrap().set_len(16 * 1024 * 1024).unwrap();
    let made = Command::new("mkfs.ext4").arg("-q").arg(&image).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("not tried, for there is no mkfs.ext4 here");
        return;
    }
    let room = Room::new();
    let Some(disk) = Mount::at(room.data.path(), &["-o", "loop", image.to_str().unwrap()]) else { return };
    let runner = room.runner();
    let lease = start(&runner, shell("head -c 300000 /dev/zero")).await;
    assert_eq!(exit(&runner, lease).await, Exit::Code { code: 0 });
    // What the disk holds at this instant, without what waits in memory.
    fs::copy(&image, &cut).unwrap();
    let after = place.path().join("after");
    let _after = Mount::at(&after, &["-o", "loop", cut.to_str().unwrap()]).expect("the same can be mounted again");
    let folder = kashi_agent::run::Folder::at(after.join("leases").join(lease.to_string()));
    assert_eq!(folder.ended().unwrap().map(|ended| ended.exit), Some(Exit::Code { code: 0 }));
    assert_eq!(folder.output_bytes(), 300_000);
    runner.forget((lease, 1)).unwrap();
    drop(disk);
}
