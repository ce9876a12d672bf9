//! `kashi-agent`: starts the agent, or the keeper of one job.
//!
//! Owns: the process: its arguments, its log, its signals, its exit code. Invariants: INT and TERM end the agent at
//! once and with 0, and no job; any failure ends it with another code and a sentence that says why.

use anyhow::Context;
use clap::Parser;
use kashi_agent::{
    agent,
    config::{Cli, Command, Settings},
    run::shim,
};
use std::{
    io::{IsTerminal, stderr},
    process::ExitCode,
};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(stderr().is_terminal()).with_writer(stderr);
    // A line that cannot be written, since the disk is full, is lost; to complain of it in the same place is a panic.
    log.log_internal_errors(false).init();
    let outcome = match (cli.command, cli.settings) {
        (Some(Command::RunJob { folder }), _) => shim::keep(&folder),
        (None, Some(settings)) => serve(&settings),
        (None, None) => Err(anyhow::anyhow!("give at least --server and --data; --help says more")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve(settings: &Settings) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("the agent cannot find its own program")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            ended = agent::run(settings, program) => match ended? {},
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("the agent ends; jobs go on and are adopted at the next start");
        Ok(())
    });
    // Not waited for: a folder that is being removed is removed at the next start.
    runtime.shutdown_background();
    outcome
}
