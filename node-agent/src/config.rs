//! The command line.
//!
//! Owns: what can be set, its form and its defaults. Invariants: a secret is never shown by `Debug`; what is wrong is
//! said before anything is done.

use crate::probe::simulated;
use clap::{Args, Parser, Subcommand};
use domain::kernel::{BadResource, Model};
use reqwest::Url;
use std::{fmt, path::PathBuf, str::FromStr};

/// The memory of a simulated card unless said, in MiB.
const SIMULATED_MEMORY_MIB: i64 = 65_536;

/// Runs jobs on this machine for a Kashi server.
#[derive(Debug, Parser)]
#[command(name = "kashi-agent", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub settings: Option<Settings>,
}

/// What the agent calls itself for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Keeps one job: starts it, waits for its end, writes down what happened.
    #[command(hide = true)]
    RunJob { folder: PathBuf },
}

/// How this agent is set.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// The server's address, such as `https://kashi.example.org`.
    #[arg(long, value_parser = server)]
    pub server: Url,
    /// The folder of the agent alone: its credential and the jobs' files.
    #[arg(long)]
    pub data: PathBuf,
    /// The pool's join token, needed once. The environment keeps it out of the process list.
    #[arg(long, env = "KASHI_JOIN_TOKEN", hide_env_values = true)]
    pub join_token: Option<JoinToken>,
    /// What people call this machine [default: its host name].
    #[arg(long)]
    pub name: Option<String>,
    /// Offer so many made-up cards, for a trial.
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub simulate_cards: Option<u32>,
    /// The model of the made-up cards, such as `h100`, which is offered as `sim-h100`.
    #[arg(long, requires = "simulate_cards", value_parser = simulated_model)]
    pub model: Option<Model>,
    /// The memory of each made-up card.
    #[arg(long, value_name = "M", default_value_t = SIMULATED_MEMORY_MIB)]
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub card_memory_mib: i64,
    /// The cores to offer, in thousandths, or `auto`: what this process may use.
    #[arg(long, value_name = "MILLI", default_value = "auto")]
    pub cores: Cores,
    /// The memory to offer [default: what this process may use].
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(i64).range(1..))]
    pub memory_mib: Option<i64>,
}

fn simulated_model(text: &str) -> Result<Model, BadResource> {
    simulated::model(&text.parse()?)
}

/// How many cores to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    Auto,
    Milli(i64),
}

/// A join token; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken(pub String);

impl FromStr for Cores {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(milli) if milli > 0 => Ok(Self::Milli(milli)),
            Ok(_) | Err(_) if text == "auto" => Ok(Self::Auto),
            Ok(_) | Err(_) => Err("write `auto` or thousandths of a core, such as 4000 for four cores".into()),
        }
    }
}

impl FromStr for JoinToken {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => {
                Err("the join token is empty; ask for a new one, or leave it out on a machine that has joined".into())
            }
            token => Ok(Self(token.into())),
        }
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinToken(…)")
    }
}

fn server(text: &str) -> Result<Url, String> {
    let told = "write an address such as https://kashi.example.org or http://127.0.0.1:8080";
    let url = Url::parse(text).map_err(|error| format!("{error}; {told}"))?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if matches!(url.scheme(), "http" | "https") && url.has_host() && plain { Ok(url) } else { Err(told.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("kashi-agent").chain(words.split_whitespace()))
    }

    #[test]
    fn reads_a_whole_line() {
        let line =
            "--server http://127.0.0.1:1/ --data d --join-token t --name n --simulate-cards 8 --model h100 --cores 500";
        let settings = parse(line).unwrap().settings.unwrap();
        assert_eq!((settings.simulate_cards, settings.cores), (Some(8), Cores::Milli(500)));
        assert_eq!((settings.card_memory_mib, settings.memory_mib), (SIMULATED_MEMORY_MIB, None));
        assert!(!format!("{settings:?}").contains("\"t\""));
    }

    #[test]
    fn runs_a_job_without_the_settings() {
        assert!(matches!(parse("run-job x").unwrap().command, Some(Command::RunJob { .. })));
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for line in [
            "--data d",
            "--server http://h",
            "--server ftp://h --data d",
            "--server http://me:secret@h --data d",
            "--server http://h --data d --simulate-cards 2",
            "--server http://h --data d --model h100",
            "--server http://h --data d --simulate-cards 2 --model H/100",
            "--server http://h --data d --cores 0",
            "--server http://h --data d --cores many",
            "--server http://h --data d --memory-mib -1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
