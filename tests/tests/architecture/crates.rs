//! Who may depend on whom, which crates stay pure, and that the code map names them all.
//!
//! Owns: the table of allowed directions. A new crate, or a new edge between two, is a change of this table.

use super::{assert_nothing, cargo, root};
use std::collections::BTreeMap;

/// Crate, then the workspace crates that it may use. A crate that is not listed fails the test.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("scheduler-core", &["domain"]),
    ("agent-protocol", &["domain"]),
    ("crypto", &[]),
    ("store", &["domain"]),
    ("eventlog", &["domain", "store"]),
    ("projections", &["domain", "store"]),
    ("kit", &["crypto", "domain", "eventlog", "projections", "store"]),
    ("tenant", &["domain", "eventlog", "kit", "projections", "scheduler-core", "store"]),
    ("portal", &["domain", "eventlog", "kit", "projections", "scheduler-core", "store"]),
    ("control", &["agent-protocol", "domain", "eventlog", "kit", "projections", "scheduler-core", "store"]),
    ("kashi-agent", &["agent-protocol", "domain"]),
    ("kashi", &["control", "domain", "eventlog", "kit", "portal", "projections", "scheduler-core", "store", "tenant"]),
    (TESTS, &[]),
];
/// The crate of stories and contracts; it may use every other one.
const TESTS: &str = "system-tests";
/// Nothing in here may reach the network, a database, a runtime or chance.
const PURE: &[&str] = &["domain", "scheduler-core", "agent-protocol"];
const IMPURE: &[&str] = &["tokio", "sqlx", "axum", "reqwest", "async-graphql", "utoipa", "rand"];

type Uses = BTreeMap<String, Vec<String>>;

/// Every crate of the workspace with all that it depends on, for building and testing.
fn dependencies() -> Uses {
    let text = cargo(&["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap().to_owned();
    let uses = |package: &serde_json::Value| package["dependencies"].as_array().unwrap().iter().map(name).collect();
    metadata["packages"].as_array().unwrap().iter().map(|package| (name(package), uses(package))).collect()
}

fn wrong_directions(crates: &Uses) -> Vec<String> {
    let mut found = Vec::new();
    for (name, uses) in crates {
        let Some((_, allowed)) = ALLOWED.iter().find(|(listed, _)| listed == name) else {
            found.push(format!("the crate `{name}` is not in ALLOWED: say there what it may use"));
            continue;
        };
        // A crate may name itself to switch a feature on for its own tests.
        let ours = uses.iter().filter(|used| crates.contains_key(*used) && *used != name && name != TESTS);
        let wrong = ours.filter(|used| !allowed.contains(&used.as_str()));
        found.extend(wrong.map(|used| format!("`{name}` may not depend on `{used}`, only on {allowed:?}")));
    }
    let gone = ALLOWED.iter().filter(|(name, _)| !crates.contains_key(*name));
    found.extend(gone.map(|(name, _)| format!("ALLOWED lists `{name}`, which is no crate of the workspace")));
    found
}

fn impurities(crates: &Uses) -> Vec<String> {
    let pure = crates.iter().filter(|(name, _)| PURE.contains(&name.as_str()));
    pure.flat_map(|(name, uses)| uses.iter().map(move |used| (name, used)))
        .filter(|(_, used)| IMPURE.contains(&used.as_str()))
        .map(|(name, used)| {
            format!("`{name}` is pure and may not use `{used}`: look it up at the edge and pass the value")
        })
        .collect()
}

/// The first cells, without their backticks, of the table rows under the heading "Code map".
fn code_map(document: &str) -> Vec<&str> {
    let is_heading = |line: &&str| line.starts_with('#');
    let mut lines = document.lines().skip_while(|line| !(is_heading(line) && line.to_lowercase().contains("code map")));
    lines.next();
    let section = lines.take_while(|line| !is_heading(line));
    section.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

fn map_differences(map: &[&str], crates: &Uses) -> Vec<String> {
    let mut found = Vec::new();
    for name in crates.keys() {
        let times = map.iter().filter(|row| *row == name).count();
        if times != 1 {
            found.push(format!("the code map of ARCHITECTURE.md names the crate `{name}` {times} times, not once"));
        }
    }
    for row in map.iter().filter(|row| !crates.contains_key(**row) && !root().join(row).exists()) {
        found.push(format!("the code map of ARCHITECTURE.md names `{row}`, which is neither a crate nor a path"));
    }
    found
}

/// What a crate's manifest must leave to the workspace's: versions, and lints.
fn manifest_findings(path: &str, manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]") && line.contains('=') && !line.contains("workspace = true") {
            found.push(format!("{path}: `{line}`: versions stand in the root manifest only; write `workspace = true`"));
        }
    }
    if !manifest.contains("[lints]\nworkspace = true") {
        found.push(format!("{path}: the workspace's lints are not taken over; add `[lints]` with `workspace = true`"));
    }
    found
}

#[test]
fn crates_depend_in_one_direction() {
    assert_nothing(&wrong_directions(&dependencies()));
}

#[test]
fn pure_crates_stay_pure() {
    assert_nothing(&impurities(&dependencies()));
}

#[test]
fn the_code_map_names_every_crate_once() {
    let document = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap_or_default();
    assert_nothing(&map_differences(&code_map(&document), &dependencies()));
}

#[test]
fn manifests_leave_versions_and_lints_to_the_workspace() {
    let files = super::files();
    let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    assert_nothing(&manifests.flat_map(|file| manifest_findings(&file.path, &file.text)).collect::<Vec<_>>());
}

fn example(edges: &[(&str, &[&str])]) -> Uses {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut crates: Uses = ALLOWED.iter().map(|(name, _)| ((*name).to_owned(), Vec::new())).collect();
    crates.extend(edges.iter().map(|(name, uses)| ((*name).to_owned(), owned(uses))));
    crates
}

#[test]
fn a_wrong_edge_an_unknown_crate_and_an_impure_one_are_found() {
    let crates = example(&[
        ("domain", &["store", "serde", "rand"]),
        ("tenant", &["portal"]),
        ("extra", &[]),
        (TESTS, &["kashi"]),
    ]);
    let found = wrong_directions(&crates).join("\n");
    assert_eq!(found.lines().count(), 3, "{found}");
    assert!(found.contains("`domain` may not depend on `store`, only on []"), "{found}");
    assert!(found.contains("the crate `extra` is not in ALLOWED"), "{found}");
    assert!(found.contains("`tenant` may not depend on `portal`"), "{found}");
    assert!(impurities(&crates)[0].starts_with("`domain` is pure and may not use `rand`"));
    assert!(wrong_directions(&Uses::new())[0].contains("no crate of the workspace"));
}

#[test]
fn a_map_that_forgets_repeats_or_invents_is_found() {
    let crates: Uses = [("domain", vec![]), ("store", vec![])].map(|(name, uses)| (name.to_owned(), uses)).into();
    let document =
        "| `store` | elsewhere |\n## Code map\n| crate | owns |\n|---|---|\n| `domain` | a |\n| `tests/` | b |\n";
    let after = "## Next\n| `domain` | again |\n";
    assert_eq!(code_map(&format!("{document}{after}")), ["domain", "tests/"]);
    assert!(map_differences(&["domain", "store", "tests/"], &crates).is_empty());
    assert_eq!(map_differences(&["domain", "domain", "invented"], &crates).len(), 3);
}

#[test]
fn a_version_in_a_crate_and_missing_lints_are_found() {
    let good = "[package]\nname = \"a\"\n[dependencies]\nserde.workspace = true\nb = { workspace = true }\n[lints]\nworkspace = true\n";
    assert_nothing(&manifest_findings("a", good));
    assert_eq!(manifest_findings("a", "[dev-dependencies]\nserde = \"1\"\n").len(), 2);
}
