//! Every stable code of a refusal and the status it is answered with, read from the sources.
//!
//! Owns: finding them: in the `code` and `kind` of each aggregate's errors, and where an edge makes a problem.
//! Invariant: a code that is found without a status, or with no text that tells it, fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where the edges' own problems are made.
const EDGES: &[&str] = &["services/kit/src", "services/tenant/src", "services/portal/src", "services/control/src"];
const RULES: &str = "domain/src";
/// Problems whose status is axum's own.
const AXUMS: &[(&str, &str)] =
    &[("request.bad_path", "400"), ("request.bad_query", "400"), ("request.refused", "4xx"), ("request.unread", "400")];
/// How the domain's classes of refusal are answered, as `kit::Problem` says.
const KINDS: &[(&str, &str)] =
    &[("Invalid", "422"), ("Forbidden", "403"), ("NotFound", "404"), ("Conflict", "409"), ("Exhausted", "409")];
const STATUSES: &[(&str, &str)] = &[
    ("BAD_REQUEST", "400"),
    ("UNAUTHORIZED", "401"),
    ("FORBIDDEN", "403"),
    ("NOT_FOUND", "404"),
    ("METHOD_NOT_ALLOWED", "405"),
    ("CONFLICT", "409"),
    ("PAYLOAD_TOO_LARGE", "413"),
    ("UNSUPPORTED_MEDIA_TYPE", "415"),
    ("UNPROCESSABLE_ENTITY", "422"),
    ("INTERNAL_SERVER_ERROR", "500"),
    ("SERVICE_UNAVAILABLE", "503"),
];

/// The statuses of each code.
type Refusals = BTreeMap<String, BTreeSet<String>>;

/// The page with all of them.
pub(crate) fn page(root: &Path) -> String {
    let mut found = Refusals::new();
    for text in sources(&root.join(RULES)) {
        for (code, kind) in of_rules(&text) {
            let (_, status) = KINDS.iter().find(|(name, _)| *name == kind).unwrap_or_else(|| panic!("{code}: {kind}"));
            found.entry(code).or_default().insert((*status).into());
        }
    }
    for text in EDGES.iter().flat_map(|folder| sources(&root.join(folder))) {
        for (code, status) in of_edge(&text) {
            found.entry(code).or_default().extend(status);
        }
    }
    for (code, status) in AXUMS {
        let known = found.get_mut(*code).unwrap_or_else(|| panic!("`{code}` is gone: take it off the list"));
        *known = [(*status).into()].into();
    }
    let mut page = String::from(
        "# Refusals\n\nEvery refusal is a problem (RFC 9457) with one of these codes. A code never changes its meaning; what is \
         wrong with\none request is in `detail`, what to do in `hint`.\n\n| code | status |\n|---|---|\n",
    );
    for (code, statuses) in &found {
        assert!(!statuses.is_empty(), "`{code}` has no status that could be found");
        let statuses: Vec<&str> = statuses.iter().map(String::as_str).collect();
        page.push_str(&format!("| `{code}` | {} |\n", statuses.join(", ")));
    }
    page
}

/// The texts of all sources below a folder, without their tests.
fn sources(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let of = |path: &Path| match path.extension() {
        None => sources(path),
        Some(_) if path.ends_with("tests.rs") => vec![],
        Some(_) => {
            vec![fs::read_to_string(path).unwrap().split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()]
        }
    };
    paths.iter().flat_map(|path| of(path)).collect()
}

/// Code and kind of each refusal of an aggregate.
fn of_rules(text: &str) -> Vec<(String, String)> {
    let mut found = vec![];
    for rejection in text.split("impl Rejection for ").skip(1) {
        let code = arms(body(rejection, "fn code(&self)"));
        let kind = arms(body(rejection, "fn kind(&self)"));
        let kind_of = |variant: &str| {
            let same = |(name, _): &&(String, String)| name == variant || name.is_empty();
            kind.iter().find(same).unwrap_or_else(|| panic!("`{variant}` has no kind in {rejection}")).1.clone()
        };
        for (variant, answer) in &code {
            let kind = kind_of(variant).replace("Kind::", "");
            found.extend(codes(answer).map(|(_, code)| (code.to_owned(), kind.clone())));
        }
    }
    found
}

/// What is between the braces of a function.
fn body<'a>(text: &'a str, function: &str) -> &'a str {
    let start = text.find(function).unwrap_or_else(|| panic!("no `{function}` in {text}"));
    let text = &text[start..];
    let open = text.find('{').unwrap();
    let mut depth = 0;
    let end = text[open..].find(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    text[open + 1..open + end.unwrap()].trim()
}

/// Variant and answer of each arm of `match self`; a body without one is the answer for all, whose name is empty.
fn arms(body: &str) -> Vec<(String, String)> {
    let Some(inner) = body.strip_prefix("match self {") else { return vec![(String::new(), body.to_owned())] };
    let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
    let mut found = vec![];
    for piece in inner.split("=>").collect::<Vec<_>>().windows(2) {
        // The pattern stands after the last arm's answer.
        let pattern = piece[0].rsplit_once(",\n").map_or(piece[0], |(_, pattern)| pattern);
        // A long pattern has its answer in braces.
        let answer = piece[1].trim().trim_start_matches('{').trim_start();
        let end = answer.find([',', '\n']).unwrap_or(answer.len());
        for variant in pattern.split("Self::").skip(1) {
            let name: String = variant.chars().take_while(|c| c.is_alphanumeric()).collect();
            found.push((name, answer[..end].to_owned()));
        }
    }
    found
}

/// Each code of an edge's text, with its status where it is said beside it.
fn of_edge(text: &str) -> Vec<(String, Option<String>)> {
    let makes = ["Problem::", "Self::new(", "Self::failed(", "Self::invalid("];
    codes(text)
        .filter_map(|(at, code)| {
            let before = &text[..at - 1];
            let statement = &before[before.rfind([';', '}']).map_or(0, |end| end + 1)..];
            let said = statement.rfind("StatusCode::").map(|start| &statement[start + "StatusCode::".len()..]);
            let said = said.and_then(|rest| rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next());
            let invalid = statement.trim_end().ends_with("::invalid(");
            let status = if code.ends_with("not_found") {
                Some("404")
            } else if invalid {
                Some("422")
            } else {
                said.and_then(|name| STATUSES.iter().find(|(known, _)| *known == name)).map(|(_, status)| *status)
            };
            let is_made = code.ends_with("not_found") || makes.iter().any(|start| statement.contains(start));
            is_made.then(|| (code.to_owned(), status.map(str::to_owned)))
        })
        .collect()
}

/// Each literal that is written like a code, and where it starts.
fn codes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_code = |literal: &str| {
        let word = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
        literal.split_once('.').is_some_and(|(thing, what)| word(thing) && word(what))
    };
    let starts = text.match_indices('"').map(|(at, _)| at + 1);
    starts.filter_map(move |start| {
        let literal = text[start..].split('"').next()?;
        is_code(literal).then_some((start, literal))
    })
}

#[test]
fn codes_of_rules_are_found_with_their_kind() {
    let text = "impl Rejection for Error {\n fn code(&self) -> &'static str {\n match self {\n Self::A => \"a.b\",\n \
                Self::B(_) | Self::C { .. } => \"a.c\",\n }\n }\n fn kind(&self) -> Kind {\n match self {\n Self::A \
                => Kind::Invalid,\n Self::B(_)\n | Self::C { .. } => Kind::Conflict,\n }\n }\n}";
    let found: Vec<_> = of_rules(text).into_iter().map(|(code, kind)| format!("{code} {kind}")).collect();
    assert_eq!(found, ["a.b Invalid", "a.c Conflict", "a.c Conflict"]);
    let one = "impl Rejection for Error { fn code(&self) -> &'static str { \"a.b\" } fn kind(&self) -> Kind { Kind::NotFound } }";
    assert_eq!(of_rules(one), [("a.b".to_owned(), "NotFound".to_owned())]);
}

#[test]
fn codes_of_an_edge_are_found_with_their_status() {
    let text = "let a = Problem::new(StatusCode::CONFLICT, \"a.conflict\", detail); Problem::invalid(\"a.invalid\", x); \
                const NONE: &str = \"a.not_found\"; join(\"session.key\"); Problem::new(own(), \"a.unknown\", x);";
    let found: Vec<_> =
        of_edge(text).into_iter().map(|(code, status)| format!("{code} {}", status.unwrap_or_default())).collect();
    assert_eq!(found, ["a.conflict 409", "a.invalid 422", "a.not_found 404", "a.unknown "]);
}
