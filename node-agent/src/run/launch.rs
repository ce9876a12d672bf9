//! From the wanted work to a command that can be started, or the reason why it cannot.
//!
//! Owns: what a job finds: its environment and its folder. Invariants: nothing of the agent's own environment reaches a
//! job; a job without cards is told that it has none; what the platform says beats what the work says.

use super::Folder;
use agent_protocol::{DesiredLease, Work};
use std::{collections::BTreeMap, fs::File, io, path::PathBuf, process::Stdio};
use tokio::process::Command;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The command, in a process group of its own, with the output open.
pub(super) fn command(wanted: &DesiredLease, folder: &Folder) -> Result<Command, String> {
    let work = &wanted.work;
    check(work)?;
    let start_in = start_folder(work, folder)?;
    let output = || File::options().create(true).append(true).open(folder.output());
    let outputs = output().and_then(|first| Ok((first.try_clone()?, first)));
    let (first, second) = outputs.map_err(|error| format!("the node cannot keep its output: {error}"))?;
    let mut command = Command::new(&work.command[0]);
    command
        .args(&work.command[1..])
        .env_clear()
        .envs(environment(wanted, folder))
        .current_dir(start_in)
        .stdin(Stdio::null())
        .stdout(first)
        .stderr(second)
        .process_group(0);
    Ok(command)
}

/// Why the system did not start the program, in words for the one who asked for it.
pub(super) fn reason(program: &str, error: &io::Error) -> String {
    let kind = error.kind();
    if kind == io::ErrorKind::NotFound && program.contains('/') {
        format!("`{program}`, or the interpreter that its first line names, was not found on the node")
    } else if kind == io::ErrorKind::NotFound {
        format!("the program `{program}` was not found on the node (searched in {PATH})")
    } else if kind == io::ErrorKind::PermissionDenied {
        format!("`{program}` may not be executed: permission denied")
    } else {
        format!("`{program}` could not be started: {error}")
    }
}

fn check(work: &Work) -> Result<(), String> {
    if work.command.first().is_none_or(String::is_empty) {
        return Err("the command is empty: give a program and its arguments".into());
    }
    let texts = work.command.iter().chain(work.env.keys()).chain(work.env.values()).chain(&work.folder);
    if texts.into_iter().any(|text| text.contains('\0')) {
        return Err("the command, its environment or its folder holds a NUL byte, which no program can be given".into());
    }
    if let Some(name) = work.env.keys().find(|name| name.is_empty() || name.contains('=')) {
        return Err(format!("`{name}` cannot be the name of an environment variable: it is empty or holds `=`"));
    }
    match work.time_limit_s {
        Some(limit) if limit <= 0 => Err(format!("a time limit of {limit} s leaves no time: give 1 or more")),
        Some(_) | None => Ok(()),
    }
}

/// A relative folder starts from the lease's own.
fn start_folder(work: &Work, folder: &Folder) -> Result<PathBuf, String> {
    let wanted = work.folder.as_ref().map_or_else(|| folder.work(), |wanted| folder.work().join(wanted));
    if wanted.is_dir() {
        Ok(wanted)
    } else {
        Err(format!("the folder `{}` is not there on the node", wanted.display()))
    }
}

fn environment(wanted: &DesiredLease, folder: &Folder) -> BTreeMap<String, String> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let cards: Vec<_> = wanted.work.cards.iter().map(ToString::to_string).collect();
    let cards = cards.join(",");
    let base = [("PATH", PATH.into()), ("LANG", "C.UTF-8".into())];
    let own = [("HOME", text(folder.work())), ("TMPDIR", text(folder.tmp()))];
    let said = [
        ("KASHI_JOB", wanted.job.to_string()),
        ("KASHI_LEASE", wanted.lease.to_string()),
        ("KASHI_CARDS", cards.clone()),
        ("KASHI_OUTPUT_DIR", text(folder.results())),
        ("KASHI_CHECKPOINT_DIR", text(folder.checkpoints(wanted.job))),
        ("CUDA_VISIBLE_DEVICES", cards.clone()),
        ("ASCEND_RT_VISIBLE_DEVICES", cards),
    ];
    let named = |(name, value): (&str, String)| (name.to_string(), value);
    let mut all: BTreeMap<_, _> = base.into_iter().chain(own).map(named).collect();
    all.extend(wanted.work.env.clone());
    all.extend(said.map(named));
    all
}
