//! The agent on this machine that `kashi up` starts as a child.
//!
//! Owns: finding, joining and keeping the child. Does not own: what an agent does (`node-agent`).
//! Invariants: a child that ends is started again; the end of this process ends the child, never its jobs.

use crate::first_start;
use anyhow::Context;
use domain::kernel::Model;
use kit::Kit;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// How long to wait before a child that ended is started again.
const AGAIN: Duration = Duration::from_secs(3);
/// The name of the agent's program, beside ours.
const PROGRAM: &str = "kashi-agent";

/// What the local agent is told.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) data: PathBuf,
    pub(crate) server: String,
    /// How many made-up cards, of which model.
    pub(crate) cards: Option<(u32, Model)>,
}

/// Keeps the agent running for as long as it is awaited; for ever where there is none to run.
pub(crate) async fn run(kit: &Kit, offer: Option<Offer>) -> anyhow::Result<()> {
    let Some(offer) = offer else { return std::future::pending().await };
    loop {
        let mut child = start(kit, &offer).await?;
        let status = child.wait().await.context("the local agent cannot be waited for")?;
        tracing::warn!(%status, "the local agent ended; starting it again. Another one may still run on this folder");
        sleep(AGAIN).await;
    }
}

async fn start(kit: &Kit, offer: &Offer) -> anyhow::Result<Child> {
    let ours = std::env::current_exe().context("cannot find this program's own file")?;
    let program = ours.with_file_name(PROGRAM);
    let mut command = Command::new(&program);
    command.arg("--server").arg(&offer.server).arg("--data").arg(&offer.data).stdin(Stdio::null()).kill_on_drop(true);
    if let Some((count, model)) = &offer.cards {
        command.args(["--simulate-cards", &count.to_string(), "--model", model.as_str()]);
    }
    if !offer.data.join("node").exists() {
        command.env("KASHI_JOIN_TOKEN", first_start::join_token(kit).await?);
    }
    command
        .spawn()
        .with_context(|| format!("cannot start {}; build it with `cargo build -p kashi-agent`", program.display()))
}
