//! Each file in `rating/` is a price list and what was used, then `---`, then the ledgers in words. `UPDATE=1` rewrites
//! the ledgers.
//!
//! ```text
//! zone ZONE                                       whose months they are; Asia/Shanghai unless said
//! price RESOURCE PRICE CURRENCY from INSTANT      per unit-hour; others stay as they were
//! price RESOURCE none from INSTANT                from then on it has no price
//! use RESOURCE COUNT cards|cores INSTANT INSTANT  backwards: so much was read too much
//! cut INSTANT ...                                 the use above was read at these instants too
//! ```
//! An instant is `2026-11-05T09:00:00+08:00`; where a line has one already, `09:20:00` is of the same day and zone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

#[path = "rating/script.rs"]
mod script;

use script::Script;
use std::{collections::BTreeMap, fs, path::Path};

/// The scripts by name: what is given, and what is expected.
fn scripts() -> BTreeMap<String, (String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rating");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    let scripts: BTreeMap<_, _> = texts
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let (given, expected) = text.split_once("---\n").unwrap_or_else(|| panic!("no --- in {}", path.display()));
            (path.display().to_string(), (given.to_owned(), expected.to_owned()))
        })
        .collect();
    assert!(!scripts.is_empty());
    scripts
}

fn of(name: &str) -> String {
    scripts().into_iter().find(|(path, _)| path.ends_with(&format!("/{name}.txt"))).unwrap().1.1
}

#[test]
fn scripts_are_rated_and_charged_as_written() {
    let mut drifted = Vec::new();
    for (path, (given, expected)) in scripts() {
        let actual = Script::read(&given).ledgers();
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, format!("{given}---\n{actual}")).unwrap();
        } else if expected != actual {
            drifted.push(format!("{path}\nexpected:\n{expected}\nactual:\n{actual}"));
        }
    }
    assert!(drifted.is_empty(), "UPDATE=1 rewrites what is right:\n{}", drifted.join("\n"));
}

#[test]
fn reading_more_often_changes_no_ledger() {
    for (path, (given, _)) in scripts() {
        let whole = Script::read(&given);
        for parts in [2, 7, 333] {
            assert_eq!(whole.read_in_parts(parts).ledgers(), whole.ledgers(), "{path}, read in {parts} parts");
        }
    }
    assert_eq!(of("three_hours_whole"), of("three_hours_in_parts"));
}

#[test]
fn the_order_of_charges_changes_no_ledger() {
    for (path, (given, _)) in scripts() {
        let script = Script::read(&given).read_in_parts(5);
        assert_eq!(script.backwards().ledgers(), script.ledgers(), "{path}");
    }
}

#[test]
fn the_vectors_of_the_contract_are_exact() {
    let says = |name: &str, line: &str| assert!(of(name).lines().any(|found| found == line), "{name}: {}", of(name));
    says("one_card_then_two", "month 2026-11 line card.a100 1 card-hours at 80 = 80.00");
    says("cores_in_parts", "month 2026-11 line core 10.0833 core-hours at 0.35 = 3.53");
    says("fifty_nine_seconds", "month 2026-11 line card.a100 0.0164 card-hours at 80 = 1.31");
    says("three_hours_whole", "month 2026-11 line card.a100 3 card-hours at 80 = 240.00");
    says("without_price", "month 2026-11 unrated core 1.5 core-hours");
}
