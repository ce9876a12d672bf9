//! What this machine has to offer.
//!
//! Owns: the inventory. Does not own: who uses what of it. Cores and memory come from `cpu`, cards from one file per
//! vendor; so far that is `simulated`. Invariants: nothing is offered that this process itself may not use, unless the
//! settings say so; what is made up is marked.

pub mod cpu;
pub mod simulated;

use crate::config::{Cores, Settings};
use agent_protocol::Inventory;
use rustix::system::uname;
use std::path::Path;

/// What is here, as far as the settings do not say otherwise.
pub fn inventory(settings: &Settings) -> Inventory {
    let root = Path::new("/");
    let milli_cores = match settings.cores {
        Cores::Auto => cpu::milli_cores(root),
        Cores::Milli(milli) => milli,
    };
    let name = settings.name.clone().unwrap_or_else(host_name);
    let simulated = settings.simulate_cards.zip(settings.model.as_ref());
    Inventory {
        milli_cores,
        memory_mib: settings.memory_mib.unwrap_or_else(|| cpu::memory_mib(root)),
        cards: simulated
            .map(|(count, model)| simulated::cards(&name, model, count, settings.card_memory_mib))
            .unwrap_or_default(),
        platform: platform(),
        agent: env!("CARGO_PKG_VERSION").into(),
    }
}

/// What the machine calls itself.
pub fn host_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Such as `linux 6.1 x86_64`.
fn platform() -> String {
    let system = uname();
    let release = system.release().to_string_lossy();
    let version: Vec<_> = release.split(['.', '-']).take(2).collect();
    let kind = system.sysname().to_string_lossy().to_lowercase();
    format!("{kind} {} {}", version.join("."), system.machine().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Cli;
    use clap::Parser;

    fn settings(more: &str) -> Settings {
        let line = format!("kashi-agent --server http://h --data d --name box {more}");
        Cli::try_parse_from(line.split_whitespace()).unwrap().settings.unwrap()
    }

    #[test]
    fn finds_this_machine() {
        let found = inventory(&settings(""));
        assert!(found.milli_cores >= 10 && found.memory_mib > 0, "{found:?}");
        assert!(found.cards.is_empty());
        assert!(found.platform.starts_with("linux "), "{}", found.platform);
    }

    #[test]
    fn the_settings_win() {
        let found = inventory(&settings("--cores 1500 --memory-mib 64 --simulate-cards 2 --model h100"));
        assert_eq!((found.milli_cores, found.memory_mib, found.cards.len()), (1500, 64, 2));
    }
}
