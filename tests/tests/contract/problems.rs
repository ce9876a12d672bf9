//! Every code of a refusal is explained, in both languages, and nothing else is.
//!
//! Owns: comparing `docs/problems.md`, as it is served, with the codes in the sources and the commands that `kashi`
//! understands. Invariant: what the text tells to type is a command with flags that there are.

use super::{refusals, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// What `kashi` understands, one command line each.
const UNDERSTOOD: &str = "services/kashi/src/cli/understood.txt";

fn is_chinese(letter: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&letter)
}

#[test]
fn every_code_has_a_section_and_no_section_is_of_another() {
    let page = refusals::page(&root());
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "));
    let codes: BTreeMap<&str, &str> = rows.collect();
    let sections: Vec<&str> = tenant::problems().iter().map(|known| known.code).collect();
    let missing: Vec<_> = codes.keys().filter(|code| !sections.contains(code)).collect();
    let foreign: Vec<_> = sections.iter().filter(|code| !codes.contains_key(*code)).collect();
    assert!(missing.is_empty(), "docs/problems.md explains none of {missing:?}: add a section for each");
    assert!(foreign.is_empty(), "docs/problems.md explains {foreign:?}, which no refusal has: take them out");
    assert!(sections.is_sorted() && sections.len() == codes.len(), "docs/problems.md is in the order of the codes");
    for known in tenant::problems() {
        assert_eq!(codes.get(known.code), Some(&known.status), "{}", known.code);
    }
}

#[test]
fn every_section_has_a_paragraph_in_each_language() {
    for known in tenant::problems() {
        let code = known.code;
        assert!(!known.en.trim().is_empty() && !known.en.contains(is_chinese), "{code}: the first is in English");
        assert!(
            known.zh.contains(is_chinese) && !known.zh.contains('\n'),
            "{code}: the second is in Chinese, on one line"
        );
        for text in [&known.en, &known.zh] {
            assert_eq!(text.matches('`').count() % 2, 0, "{code}: a backtick is not closed");
        }
    }
}

#[test]
fn every_command_that_is_told_is_one() {
    let understood = fs::read_to_string(root().join(UNDERSTOOD)).unwrap();
    let mut told = BTreeSet::new();
    for known in tenant::problems() {
        for text in [&known.en, &known.zh] {
            told.extend(text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("kashi ")));
        }
    }
    assert!(!told.is_empty());
    for command in told {
        assert!(is_understood(command, &understood), "`{command}` is told, but {UNDERSTOOD} has none like it");
    }
}

/// Whether lines that begin with the words of a command have all its flags.
fn is_understood(command: &str, understood: &str) -> bool {
    let is_word = |part: &&str| part.starts_with(|c: char| c.is_ascii_lowercase());
    let words: Vec<&str> = command.split(' ').take_while(is_word).collect();
    let lines = understood.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let alike: Vec<_> = lines.filter(|line| line.starts_with(&words)).collect();
    let mut flags = command.split(' ').filter(|part| part.starts_with("--"));
    !alike.is_empty() && flags.all(|flag| alike.iter().any(|line| line.contains(&flag)))
}

#[test]
fn a_command_or_flag_that_is_not_there_is_found() {
    let understood = "kashi orders --limit 5\nkashi order --sku core --quantity 1\nkashi submit -- true";
    for good in ["kashi order --sku SKU --quantity N", "kashi orders", "kashi submit -- PROGRAM"] {
        assert!(is_understood(good, understood), "{good}");
    }
    for bad in ["kashi bills", "kashi ord", "kashi order --limit N", "kashi order nothing"] {
        assert!(!is_understood(bad, understood), "{bad}");
    }
}
