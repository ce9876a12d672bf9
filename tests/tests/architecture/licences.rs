//! The licences of everything that is linked in, against the list of deny.toml, without a network or another tool.
//!
//! Owns: the reading of SPDX expressions. Does not own: the list, which is deny.toml's `allow`.

use super::{assert_nothing, cargo, root};

/// Crates that would bring a second TLS or a C tool chain beyond gcc; TLS is rustls with ring.
const BANNED: &[&str] = &["openssl-sys", "native-tls", "aws-lc-sys"];

/// An expression being read: `or` of `and` of names, bracketed or not. `None` is what cannot be read.
struct Expression<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<String>>,
    allowed: &'a [String],
}

impl Expression<'_> {
    fn or(&mut self) -> Option<bool> {
        let mut holds = self.and()?;
        while self.tokens.next_if(|token| token == "OR").is_some() {
            // Both sides are read, whatever the first one says.
            holds |= self.and()?;
        }
        Some(holds)
    }

    fn and(&mut self) -> Option<bool> {
        let mut holds = self.name()?;
        while self.tokens.next_if(|token| token == "AND").is_some() {
            holds &= self.name()?;
        }
        Some(holds)
    }

    fn name(&mut self) -> Option<bool> {
        let mut name = self.tokens.next()?;
        if name == "(" {
            let inside = self.or()?;
            self.tokens.next_if(|token| token == ")")?;
            return Some(inside);
        }
        if self.tokens.next_if(|token| token == "WITH").is_some() {
            name = format!("{name} WITH {}", self.tokens.next()?);
        }
        Some(self.allowed.contains(&name))
    }
}

/// Whether a crate under this SPDX expression may be used when these licences may. What cannot be read may not.
fn may_be_used(expression: &str, allowed: &[String]) -> bool {
    // Older crates write a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens = spaced.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter().peekable();
    let mut expression = Expression { tokens, allowed };
    expression.or() == Some(true) && expression.tokens.next().is_none()
}

/// The list of deny.toml, whose one line is also JSON.
fn allowed_licences() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.lines().find_map(|line| line.strip_prefix("allow = ")).unwrap();
    serde_json::from_str(list).unwrap()
}

/// Every package that is built on this platform.
fn packages() -> Vec<serde_json::Value> {
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let text = cargo(&["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", host]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_licence_is_in_the_list() {
    let (packages, allowed) = (packages(), allowed_licences());
    // Our own crates have no source but a path.
    let foreign: Vec<_> = packages.iter().filter(|package| !package["source"].is_null()).collect();
    assert!(foreign.len() > 50, "only {} packages were looked at", foreign.len());
    let wrong =
        foreign.iter().filter(|package| !may_be_used(package["license"].as_str().unwrap_or_default(), &allowed));
    let say = |package: &&serde_json::Value| {
        format!(
            "{} is under {}, which deny.toml does not allow: use another crate",
            package["name"], package["license"]
        )
    };
    assert_nothing(&wrong.map(say).collect::<Vec<_>>());
}

#[test]
fn there_is_one_tls() {
    let found = packages().into_iter().filter(|package| BANNED.contains(&package["name"].as_str().unwrap()));
    let say = |package: serde_json::Value| {
        format!("{} is in the tree: use a feature set with rustls and ring", package["name"])
    };
    assert_nothing(&found.map(say).collect::<Vec<_>>());
}

#[test]
fn expressions_are_read_by_their_grammar() {
    let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"].map(str::to_owned);
    let cases = [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT OR GPL-3.0", true),
        ("GPL-3.0/MIT", true),
        ("MIT AND GPL-3.0", false),
        ("GPL-3.0 OR MIT AND ISC", true),
        ("(GPL-3.0 OR MIT) AND ISC", true),
        ("(GPL-3.0 OR MIT) AND MPL-2.0", false),
        ("MIT AND (GPL-3.0 OR (MPL-2.0 OR ISC))", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("ISC WITH LLVM-exception", false),
        ("", false),
        ("(MIT", false),
        ("MIT)", false),
        ("MIT ISC", false),
        ("MIT OR", false),
    ];
    for (expression, expected) in cases {
        assert_eq!(may_be_used(expression, &allowed), expected, "{expression}");
    }
}
