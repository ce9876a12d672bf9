//! `kashi`: the one binary of the server, of operators and of users.
//!
//! Owns: the process: its arguments, its exit code. Does not own: the server side (`serve`), the commands (`cli`).
//! Invariants: a server that fails ends with 1 and says why; a command ends with a code of `cli::fault` or, where it
//! waited for a job, of `cli::outcome`.

mod cli;
mod first_start;
mod local_agent;
mod serve;

use clap::Parser;
use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

/// Kashi: order compute, run jobs, see what they cost and why; run the platform.
#[derive(Debug, Parser)]
#[command(name = "kashi", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    globals: cli::Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Start the platform: every role and an agent, in one process and one folder.
    Up(serve::UpArgs),
    /// Start the platform without an agent; agents join from elsewhere.
    Server(serve::ServerArgs),
    #[command(flatten)]
    Client(cli::Command),
}

fn main() -> ExitCode {
    // It fails only where one is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let Cli { globals, command } = Cli::parse();
    match command {
        Command::Up(args) => serving(serve::up(args)),
        Command::Server(args) => serving(serve::server(args)),
        Command::Client(command) => asking(globals, command),
    }
}

fn serving(served: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(stderr().is_terminal()).with_writer(stderr).init();
    let outcome = match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(served);
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(error.into()),
    };
    outcome.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

fn asking(globals: cli::Globals, command: cli::Command) -> ExitCode {
    match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(cli::run(globals, command));
            runtime.shutdown_background();
            code.into()
        }
        Err(error) => failed(&error.into()),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // Where standard error is closed there is nobody to tell.
    drop(writeln!(stderr(), "error: {error:#}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_understood() {
        for line in include_str!("cli/understood.txt").lines() {
            let parsed = Cli::try_parse_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn no_command_is_left_out_of_the_list() {
        let lines = include_str!("cli/understood.txt");
        let mut left = vec![];
        let mut open: Vec<(String, clap::Command)> = vec![("kashi".into(), Cli::command())];
        while let Some((path, command)) = open.pop() {
            let inner = command.get_subcommands().map(|inner| (format!("{path} {}", inner.get_name()), inner.clone()));
            open.extend(inner);
            let is_there = lines.lines().any(|line| line.starts_with(&path));
            left.extend((!is_there).then_some(path));
        }
        assert_eq!(left, Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for line in include_str!("cli/refused.txt").lines() {
            let refused = Cli::try_parse_from(line.split_whitespace());
            assert!(refused.is_err(), "{line}");
            assert_eq!(refused.unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn a_word_after_two_dashes_belongs_to_the_job() {
        let cli = Cli::try_parse_from(["kashi", "submit", "-q", "--", "sh", "-c", "echo -q"]).unwrap();
        let Command::Client(cli::Command::Submit(submit)) = cli.command else { panic!("another command") };
        assert_eq!(submit.command, ["sh", "-c", "echo -q"]);
    }
}
