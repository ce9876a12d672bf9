//! The contexts of `domain` know the kernel and themselves; only `flows` and the registry see them all.
//!
//! Owns: the reading of paths out of Rust text, which is as exact as this rule needs: comments are left out, `use` trees
//! are followed one level deep, and a path through `super` counts when it names a module of the crate's root.

use super::{File, assert_nothing, files};
use std::collections::BTreeSet;

const SOURCES: &str = "domain/src/";
/// The modules that connect contexts.
const CONNECTING: &[&str] = &["flows", "registry"];

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn word(text: &str) -> &str {
    text.split(|letter| !is_word(letter)).next().unwrap()
}

/// The names that directly follow `prefix`, one or a braced list of them, with the line counted from 0.
fn names_after(prefix: &str, text: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(prefix).filter(|(at, _)| !text[..*at].ends_with(is_word)) {
        let line = text[..at].matches('\n').count();
        let rest = &text[at + prefix.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.push((line, word(rest).to_owned()));
            continue;
        };
        let (mut depth, mut first) = (0, 0);
        for (end, letter) in list.char_indices() {
            if depth == 0 && (letter == ',' || letter == '}') {
                names.push((line, word(list[first..end].trim()).to_owned()));
                first = end + 1;
            }
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    names.retain(|(_, name)| !name.is_empty());
    names
}

/// The modules at the root of `domain`, by the files and folders that are there.
fn modules(files: &[File]) -> BTreeSet<&str> {
    let inside = files.iter().filter_map(|file| file.path.strip_prefix(SOURCES));
    inside.map(|path| path.split('/').next().unwrap().trim_end_matches(".rs")).filter(|name| *name != "lib").collect()
}

fn strangers(file: &File, modules: &BTreeSet<&str>) -> Vec<String> {
    let Some(path) = file.path.strip_prefix(SOURCES).filter(|path| path.ends_with(".rs")) else { return Vec::new() };
    let own = path.split('/').next().unwrap().trim_end_matches(".rs");
    if CONNECTING.contains(&own) {
        return Vec::new();
    }
    let blank = |line| if str::trim_start(line).starts_with("//") { "" } else { line };
    let text = file.text.lines().map(blank).collect::<Vec<_>>().join("\n");
    let mut used = names_after("crate::", &text);
    let inner: &[&str] = if own == "lib" { &["use ", "self::"] } else { &["super::"] };
    used.extend(
        inner.iter().flat_map(|prefix| names_after(prefix, &text)).filter(|(_, name)| modules.contains(name.as_str())),
    );
    let connecting_root = |name: &str| own == "lib" && CONNECTING.contains(&name);
    used.retain(|(_, name)| name != "kernel" && name != own && !connecting_root(name));
    let advice =
        "carry an id or a kernel value in the command or the event, or let a story in `flows/` connect the two";
    let say = |(line, name)| file.finding(line, &format!("`{own}` may not use `{name}`: {advice}"));
    used.into_iter().map(say).collect()
}

#[test]
fn contexts_do_not_know_each_other() {
    let files = files();
    let modules = modules(&files);
    assert!(modules.contains("kernel"), "{modules:?}");
    assert_nothing(&files.iter().flat_map(|file| strangers(file, &modules)).collect::<Vec<_>>());
}

fn strangers_in(path: &str, text: &str) -> usize {
    let modules = BTreeSet::from(["flows", "kernel", "ordering", "quota", "registry"]);
    strangers(&File { path: format!("{SOURCES}{path}"), text: text.to_owned() }, &modules).len()
}

#[test]
fn a_context_that_uses_another_is_found_however_it_is_written() {
    for text in [
        "use crate::quota::Allowance;",
        "use crate::{kernel::{Id, Month}, quota};",
        "use crate::{\n    kernel::Id,\n    flows::Action,\n};",
        "use super::super::quota::Allowance;",
        "use super::quota;",
        "fn f(a: crate::quota::Allowance) {}",
        "pub(crate) use crate::registry::Event;",
        "use crate::Unknown;",
    ] {
        assert_eq!(strangers_in("ordering/order.rs", text), 1, "{text}");
    }
    assert_eq!(strangers_in("lib.rs", "pub use quota::Allowance;"), 1);
    assert_eq!(strangers_in("kernel/id.rs", "use crate::{quota, ordering};"), 2);
}

#[test]
fn the_kernel_itself_and_the_connecting_modules_are_free() {
    let own = "use crate::kernel::{Id, Month};\nuse crate::{kernel, ordering::Order};\nuse super::approval;\nuse super::{super::Terms, *};";
    assert_eq!(strangers_in("ordering/order.rs", own), 0);
    assert_eq!(
        strangers_in("ordering/order.rs", "//! [`crate::quota`] holds what is ordered.\n/// See [`crate::flows`]."),
        0
    );
    assert_eq!(strangers_in("flows/provisioning.rs", "use crate::{ordering, quota};"), 0);
    assert_eq!(strangers_in("registry.rs", "use crate::{ordering, quota};"), 0);
    assert_eq!(strangers_in("lib.rs", "pub mod quota;\npub use registry::Event;"), 0);
}

#[test]
fn a_finding_says_where_and_what_to_do_instead() {
    let file =
        File { path: format!("{SOURCES}ordering/order.rs"), text: "//! Orders.\n\nuse crate::quota;".to_owned() };
    let found = strangers(&file, &BTreeSet::from(["quota"]));
    assert!(
        found[0].starts_with("domain/src/ordering/order.rs:3: `ordering` may not use `quota`: carry an id"),
        "{found:?}"
    );
}
