//! Each file in `scripts/` is a cluster and a queue, then `---`, then the plan in words. `UPDATE=1` rewrites the plans.
//!
//! ```text
//! node NAME READINESS cores N memory GIB [cards N MODEL]...
//! used NAME cores N memory GIB [cards INDEX,INDEX]       what of the node is held already
//! job NAME cores N memory GIB [cards N MODEL] [priority N] [position N]
//! why JSON                                               a reason, to be shown in words
//! show digests
//! ```
//! Ids grow in the order of the lines; a job's position is its place among the jobs unless it says another.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

mod script;

use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut drifted = Vec::new();
    let paths: BTreeSet<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty());
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let (given, expected) = text.split_once("---\n").unwrap_or_else(|| panic!("no --- in {}", path.display()));
        let actual = script::run(given);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, format!("{given}---\n{actual}")).unwrap();
        } else if expected != actual {
            drifted.push(format!("{}\nexpected:\n{expected}\nactual:\n{actual}", path.display()));
        }
    }
    assert!(drifted.is_empty(), "UPDATE=1 rewrites what is right:\n{}", drifted.join("\n"));
}
