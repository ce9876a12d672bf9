//! The long run of faults: `FAULTS` of them (1,000 unless it is said), from `SEED`, told in many stories.
//!
//! Owns: cutting the run into stories, and its last line, which is JSON. Invariant: a story that fails is told again by
//! its own seed, which is said before it begins; the run goes on, and ends with a failure.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may stop")]

use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;
use system_tests::faults::audit::Account;
use system_tests::faults::dice::Dice;
use system_tests::faults::{Tried, asked_for, real, story};

const FAULTS: u32 = 1000;
/// One fault in so many is of real processes.
const REAL_ONE_IN: u32 = 5;
/// How many faults one story has.
const STORY: u32 = 50;
const REAL_STORY: u32 = 25;

/// What all stories came to.
#[derive(Default)]
struct Sum {
    tried: Tried,
    failed: Vec<String>,
    stories: u32,
    events: usize,
    jobs: usize,
    leases: usize,
    leases_lost: usize,
}

impl Sum {
    fn add(&mut self, told: Result<(Account, Tried), tokio::task::JoinError>, name: String) {
        self.stories += 1;
        let Ok((account, tried)) = told else { return self.failed.push(name) };
        for (kind, times) in tried {
            *self.tried.entry(kind).or_default() += times;
        }
        self.events += account.events;
        self.jobs += account.jobs;
        self.leases += account.leases;
        self.leases_lost += account.lost;
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let ((faults, seed), begun) = (asked_for(FAULTS), Instant::now());
    let (mut dice, mut sum) = (Dice::new(seed), Sum::default());
    let in_reality = faults / REAL_ONE_IN;
    for (is_real, mut left, most) in [(false, faults - in_reality, STORY), (true, in_reality, REAL_STORY)] {
        while left > 0 {
            let (faults, seed) = (left.min(most), dice.throw() >> 1);
            left -= faults;
            let name = format!("SEED={seed} FAULTS={faults} ({})", if is_real { "processes" } else { "one process" });
            eprintln!("{name}");
            let told = tokio::spawn(async move {
                if is_real { real::tell(seed, faults).await } else { story::tell(seed, faults).await }
            });
            sum.add(told.await, name);
        }
    }
    let tried: u32 = sum.tried.values().sum();
    let line = json!({
        "seed": seed, "faults": tried, "by_kind": sum.tried, "losses": sum.failed.len(), "failed": sum.failed,
        "stories": sum.stories, "events": sum.events, "jobs": sum.jobs, "leases": sum.leases,
        "leases_lost_with_a_node": sum.leases_lost, "took_s": begun.elapsed().as_secs(),
    });
    println!("{line}");
    if sum.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
