//! What we promise, as files that are checked in: a change of it shows as a difference that somebody reads.
//!
//! `UPDATE=1` writes the files anew. Owns: the comparison, and how each text is made from the code.
//! Does not own: whether a handler does what its description says, which its own service tests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "contract/problems.rs"]
mod problems;
#[path = "contract/refusals.rs"]
mod refusals;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Compares a promise with its file, or writes the file.
#[track_caller]
fn keeps(name: &str, text: &str) {
    let path = root().join("openapi").join(name);
    let text = format!("{}\n", text.trim_end());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = || kept.lines().zip(text.lines()).position(|(then, now)| then != now);
    assert!(
        kept == text,
        "openapi/{name} is otherwise from line {} on: UPDATE=1 writes it anew; read the difference before you commit it",
        differs().unwrap_or_else(|| kept.lines().count().min(text.lines().count())) + 1
    );
}

#[test]
fn the_rest_document_is_kept() {
    keeps("tenant.json", &tenant::openapi().to_pretty_json().unwrap());
}

#[test]
fn the_graphql_schema_is_kept() {
    keeps("portal.graphql", &portal::sdl());
}

#[test]
fn the_refusals_are_kept() {
    keeps("refusals.md", &refusals::page(&root()));
}

#[test]
fn the_permissions_are_kept() {
    let document: Value = serde_json::from_str(&tenant::openapi().to_json().unwrap()).unwrap();
    let mut lines = vec![];
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let permission = operation["x-permission"].as_str().unwrap_or_else(|| panic!("{method} {path} has none"));
            lines.push((path.clone(), format!("{} {path} {permission}", method.to_uppercase())));
        }
    }
    let asked = format!("POST {}", portal::PATH);
    lines.push((portal::PATH.into(), format!("{asked} any member")));
    for (field, permission) in portal::PERMISSIONS {
        lines.push((portal::PATH.into(), format!("{asked} {{ {field} }} {permission}")));
    }
    lines.sort();
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    keeps("permissions.txt", &lines.join("\n"));
}
