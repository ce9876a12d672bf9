//! What a source file may be: short, with a header, without leftovers, sleeping tests or paths of somebody's machine.
//!
//! Owns: the banned words, each with what to do instead. The words stand here in pieces, so that this file holds none.

use super::{File, assert_nothing, files};
use std::path::Path;

const FILE_LINES_MAX: usize = 400;
const CODE: &[&str] = &["rs", "py", "sh", "ts", "tsx"];
/// What no code may hold, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "a test that does not run shows nothing; mend it or delete it"),
    (concat!("#[", "should_panic"), "assert on the error that is returned"),
    (concat!("todo", "!"), "write it now, or leave the path out"),
    (concat!("unimplemented", "!"), "write it now, or leave the path out"),
    (concat!("TO", "DO"), "do it now, or write it down where work is planned"),
    (concat!("FIX", "ME"), "mend it now, or write it down where work is planned"),
];
/// Attributes that switch a lint off.
const LINTS_OFF: &[&str] =
    &[concat!("#[", "allow("), concat!("#![", "allow("), concat!("#[", "expect("), concat!("#![", "expect(")];
const SLEEP: &str = concat!("sl", "eep");
/// How folders begin that exist on one machine only.
const MACHINE: &[&str] = &[
    concat!("/t", "mp/"),
    concat!("/w", "ork/"),
    concat!("/r", "oot/"),
    concat!("/h", "ome/"),
    concat!("/U", "sers/"),
];
/// Documented defaults that begin like that all the same: the file, and the path as it is written there.
const DEFAULTS: &[(&str, &str)] = &[];

fn too_long(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    let long = CODE.contains(&file.extension()) && lines > FILE_LINES_MAX;
    long.then(|| format!("{} has {lines} lines, at most {FILE_LINES_MAX}: split it by subject", file.path))
}

fn headless(file: &File) -> Option<String> {
    let first = file.text.lines().next().unwrap_or_default();
    // A build writes this mark into what it generates.
    let headless = file.extension() == "rs" && !first.starts_with("//!") && !first.contains("@generated");
    headless.then(|| file.finding(0, "open with `//!`: what the file owns, what it does not, its invariants"))
}

fn leftovers(file: &File) -> Vec<String> {
    if !CODE.contains(&file.extension()) {
        return Vec::new();
    }
    let words = |line| BANNED.iter().filter(move |(word, _)| str::contains(line, word));
    let lines = file.text.lines().enumerate();
    lines
        .flat_map(|(at, line)| words(line).map(move |(word, advice)| file.finding(at, &format!("`{word}`: {advice}"))))
        .collect()
}

fn bare_lints(file: &File) -> Vec<String> {
    if file.extension() != "rs" {
        return Vec::new();
    }
    let starts = LINTS_OFF.iter().flat_map(|start| file.text.match_indices(start));
    let bare = starts.filter(|(at, _)| !file.text[*at..].split(")]").next().unwrap().contains("reason"));
    let line = |at: usize| file.text[..at].matches('\n').count();
    bare.map(|(at, start)| {
        file.finding(line(at), &format!("`{start}…)]` without a reason: mend the cause, or say why"))
    })
    .collect()
}

/// Whether the whole file is tests.
fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap();
    path.split('/').any(|part| part == "tests")
        || name == "tests.rs"
        || name.starts_with("test_")
        || name.contains(".test.")
}

/// The line, counted from 0, from which on the file is tests.
fn tests_start(file: &File) -> Option<usize> {
    if is_test_file(&file.path) {
        return Some(0);
    }
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    // `#[cfg(test)] mod tests;` or `use …;` is one line of tests, not the beginning of them.
    lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && !pair[1].ends_with(';'))
}

fn is_sleep(line: &str) -> bool {
    line.match_indices(SLEEP).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + SLEEP.len()..]);
        let called = after.starts_with('(') || after.starts_with("_until(");
        let named = before.ends_with("thread::") || before.ends_with("time::");
        (called || named) && !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
    })
}

fn sleeping_tests(file: &File) -> Vec<String> {
    let Some(start) = tests_start(file).filter(|_| CODE.contains(&file.extension())) else { return Vec::new() };
    let sleeping = file.text.lines().enumerate().skip(start).filter(|(_, line)| is_sleep(line));
    let advice = "a test does not wait for time to pass: poll the condition under a deadline, or pause the clock";
    sleeping.map(|(at, _)| file.finding(at, advice)).collect()
}

fn machine_paths(file: &File, defaults: &[(&str, &str)]) -> Vec<String> {
    // Behind a name, a variable or a dot the word is a folder of ours or part of an address.
    let inside = |before: &str| before.ends_with(|letter: char| letter.is_alphanumeric() || "_-.~}".contains(letter));
    let known = |rest: &str| defaults.iter().any(|(path, text)| *path == file.path && rest.starts_with(text));
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let starts = MACHINE.iter().flat_map(|start| line.match_indices(start));
        for (_, start) in starts.filter(|(at, _)| !inside(&line[..*at]) && !known(&line[*at..])) {
            let advice = "is a path of one machine: take it from a setting, or make a temporary folder";
            found.push(file.finding(at, &format!("`{start}…` {advice}")));
        }
    }
    found
}

#[test]
fn files_are_short() {
    assert_nothing(&files().iter().filter_map(too_long).collect::<Vec<_>>());
}

#[test]
fn rust_files_open_with_a_header() {
    assert_nothing(&files().iter().filter_map(headless).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_over() {
    assert_nothing(&files().iter().flat_map(leftovers).collect::<Vec<_>>());
}

#[test]
fn lints_are_switched_off_with_a_reason_only() {
    assert_nothing(&files().iter().flat_map(bare_lints).collect::<Vec<_>>());
}

#[test]
fn tests_do_not_sleep() {
    assert_nothing(&files().iter().flat_map(sleeping_tests).collect::<Vec<_>>());
}

#[test]
fn no_path_of_a_machine_is_written_down() {
    assert_nothing(&files().iter().flat_map(|file| machine_paths(file, DEFAULTS)).collect::<Vec<_>>());
    let used = |(path, text): &(&str, &str)| {
        Path::new(path).exists() && files().iter().any(|file| file.path == *path && file.text.contains(text))
    };
    assert!(DEFAULTS.iter().all(used), "DEFAULTS names what is no longer there");
}

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn a_long_file_and_a_missing_header_are_found() {
    assert!(too_long(&file("a/b.rs", &"x\n".repeat(400))).is_none());
    assert!(too_long(&file("a/b.rs", &"x\n".repeat(401))).unwrap().starts_with("a/b.rs has 401 lines"));
    assert!(too_long(&file("a/b.sh", &"x\n".repeat(401))).is_some());
    assert!(too_long(&file("LICENSE", &"x\n".repeat(401))).is_none());
    assert_eq!(
        headless(&file("a.rs", "use b;\n//! Late.")).unwrap(),
        "a.rs:1: open with `//!`: what the file owns, what it does not, its invariants"
    );
    assert!(headless(&file("a.rs", "")).is_some());
    assert!(headless(&file("a.rs", "//! Owns a.")).is_none());
    assert!(headless(&file("a.rs", concat!("// @", "generated by a build"))).is_none());
}

#[test]
fn every_banned_word_and_a_bare_lint_are_found() {
    for (word, advice) in BANNED {
        let found = leftovers(&file("a.rs", &format!("fine\n    {word}")));
        assert_eq!(found, [format!("a.rs:2: `{word}`: {advice}")]);
    }
    assert!(leftovers(&file("a.md", BANNED[0].0)).is_empty());
    for start in LINTS_OFF {
        assert_eq!(bare_lints(&file("a.rs", &format!("\n{start}dead_code)]\nfn reason() {{}}"))).len(), 1, "{start}");
        assert!(
            bare_lints(&file("a.rs", &format!("{start}\n    dead_code,\n    reason = \"why\"\n)]"))).is_empty(),
            "{start}"
        );
    }
}

#[test]
fn a_sleeping_test_is_found_and_other_sleep_is_not() {
    let call = format!("thread::{SLEEP}(x);");
    let inner = format!("//! A.\n{call}\n#[cfg(test)]\nmod tests {{\n    {call}\n}}");
    assert_eq!(sleeping_tests(&file("a/src/a.rs", &inner)).len(), 1);
    assert!(sleeping_tests(&file("a/src/a.rs", &inner)).concat().starts_with("a/src/a.rs:5: a test does not wait"));
    assert!(sleeping_tests(&file("a/src/a.rs", &format!("#[cfg(test)]\nmod tests;\n{call}"))).is_empty());
    for path in ["a/tests/a.rs", "tests/src/lib.rs", "a/src/a/tests.rs", "examples/test_a.py", "web/a.test.ts"] {
        assert_eq!(sleeping_tests(&file(path, &call)).len(), 1, "{path}");
    }
    for (line, sleeps) in [
        ("use tokio::time::S;", true),
        ("S(ms).await", true),
        ("S_until(at)", true),
        ("[\"S\", \"30\"]", false),
        ("fn asS()", false),
    ] {
        assert_eq!(is_sleep(&line.replace('S', SLEEP)), sleeps, "{line}");
    }
}

#[test]
fn a_path_of_a_machine_is_found_unless_it_is_a_documented_default() {
    for start in MACHINE {
        let text = format!("fine\nfolder = \"{start}x\"");
        assert_eq!(machine_paths(&file("a.toml", &text), &[]).len(), 1, "{start}");
        assert!(
            machine_paths(&file("a.toml", &format!("https://example.org{start} services{start} ${{A}}{start}")), &[])
                .is_empty()
        );
        let path = format!("{start}x");
        assert!(machine_paths(&file("a.toml", &text), &[("a.toml", &path)]).is_empty());
        assert_eq!(machine_paths(&file("b.toml", &text), &[("a.toml", &path)]).len(), 1);
    }
}
