//! The shape of the workspace, as tests: who may use whom, what a file may hold, under which licences we stand.
//!
//! Owns: the rules of CONTRIBUTING.md that a machine can see; one subject per file in `architecture/`. Does not own:
//! formatting and lints (`cargo fmt`, `cargo clippy`), contracts (`contract.rs`).
//! Invariants: only files that git tracks, or would track, are looked at; each rule is a function from text to findings
//! and is itself tested with text that breaks it; a finding names the file, the line and what to do instead.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "architecture/contexts.rs"]
mod contexts;
#[path = "architecture/crates.rs"]
mod crates;
#[path = "architecture/licences.rs"]
mod licences;
#[path = "architecture/sources.rs"]
mod sources;

/// A text file of the repository.
struct File {
    /// From the root, with `/` between the parts.
    path: String,
    text: String,
}

impl File {
    fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    /// Says what is wrong in a line, counted from 0.
    fn finding(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every text file that is tracked, or would be with `git add`.
fn files() -> Vec<File> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .map(|out| String::from_utf8(out.stdout).unwrap())
        .unwrap_or_default();
    let mut paths: Vec<String> = listed.split_terminator('\0').map(str::to_owned).collect();
    if !paths.iter().any(|path| path == "Cargo.toml") {
        // An unpacked archive has no git; what is built or downloaded is told by its name there.
        paths =
            walk(&root()).iter().map(|path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()).collect();
    }
    paths.sort();
    paths.dedup();
    // A file that was deleted and not yet committed is still listed, and a picture is no text.
    let read = |path: String| std::fs::read_to_string(root().join(&path)).ok().map(|text| File { path, text });
    paths.into_iter().filter_map(read).collect()
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let built = |path: &Path| {
        let everywhere = ["target", ".git", "node_modules", "__pycache__"];
        everywhere.iter().any(|name| path.ends_with(name)) || *path == root().join("data")
    };
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| !built(path)).flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

fn cargo(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(out.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[track_caller]
fn assert_nothing(found: &[String]) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn the_files_are_found() {
    let files = files();
    let has = |path: &str| files.iter().any(|file| file.path == path);
    assert!(has("Cargo.toml") && has("domain/src/lib.rs") && has("tests/tests/architecture.rs"));
    assert!(!files.iter().any(|file| file.path.starts_with("target/") || file.path.starts_with(".git/")));
}

#[test]
fn an_archive_without_git_has_the_same_sources() {
    let walked = walk(&root());
    let missed = files().into_iter().filter(|file| !walked.contains(&root().join(&file.path)));
    assert_nothing(&missed.map(|file| format!("{} is not found without git", file.path)).collect::<Vec<_>>());
}
