//! Every form in which an event was ever stored is still read, and nothing of it is lost.
//!
//! `golden/events/<category>/<variant>.<n>.json` is one stored form. `UPDATE=1` writes the forms that are missing and
//! never changes one that is there: an event whose form changed gets the next number, since the old form is in
//! somebody's log for ever.
//! Owns: the comparison. Does not own: the samples (`system_tests::samples`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use domain::{CATEGORIES, Event};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use system_tests::samples;

/// A stored form.
struct Golden {
    category: String,
    variant: String,
    /// From 1, in the order in which they were added.
    number: u32,
    json: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/events")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn goldens() -> Vec<Golden> {
    entries(&folder()).iter().flat_map(|category| entries(category)).map(|path| golden(&path)).collect()
}

fn golden(path: &Path) -> Golden {
    let name = path.file_name().unwrap().to_str().unwrap();
    let parts: Vec<&str> = name.split('.').collect();
    let [variant, number, "json"] = parts[..] else { panic!("{name} is not named `<variant>.<n>.json`") };
    let category = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let text = fs::read_to_string(path).unwrap();
    Golden {
        category: category.into(),
        variant: variant.into(),
        number: number.parse().unwrap_or_else(|_| panic!("{name} has no number")),
        json: serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")),
    }
}

fn stored(event: &Event) -> Value {
    serde_json::from_str(&event.encode().unwrap()).unwrap()
}

fn variant(json: &Value) -> &str {
    json["type"].as_str().unwrap_or_else(|| panic!("an event says its `type`: {json}"))
}

/// Whether all that is said is still said; more may be said since then.
fn says_at_least(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            then.iter().all(|(name, then)| now.get(name).is_some_and(|now| says_at_least(now, then)))
        }
        (Value::Array(now), Value::Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| says_at_least(now, then))
        }
        _ => now == then,
    }
}

/// What is wrong with a stored form, if anything. `written` are the forms that this build writes.
fn finding(golden: &Golden, written: &[Value]) -> Option<String> {
    let Golden { category, variant: name, number, json } = golden;
    let file = format!("{category}/{name}.{number}.json");
    if variant(json) != name {
        return Some(format!("{file} holds a `{}`", variant(json)));
    }
    let event = match Event::decode(category, &json.to_string()) {
        Ok(event) => event,
        Err(None) => return Some(format!("{file}: no aggregate has the category `{category}` any more")),
        Err(Some(error)) => return Some(format!("{file} is not read any more: {error}")),
    };
    let again = stored(&event);
    let kept = if written.contains(json) { again == *json } else { says_at_least(&again, json) };
    (!kept).then(|| format!("{file} says\n  {json}\nand is read as\n  {again}"))
}

#[test]
fn every_form_that_was_ever_stored_is_read_and_loses_nothing() {
    let written: Vec<Value> = samples::all().iter().map(stored).collect();
    let findings: Vec<String> = goldens().iter().filter_map(|golden| finding(golden, &written)).collect();
    assert!(findings.is_empty(), "a stored event is for ever:\n{}", findings.join("\n"));
}

#[test]
fn every_form_that_is_written_is_stored() {
    let mut known: BTreeMap<(String, String), Vec<Golden>> = BTreeMap::new();
    for golden in goldens() {
        known.entry((golden.category.clone(), golden.variant.clone())).or_default().push(golden);
    }
    let mut missing = Vec::new();
    for event in samples::all() {
        let json = stored(&event);
        let (category, variant) = (event.category().to_owned(), variant(&json).to_owned());
        let forms = known.entry((category.clone(), variant.clone())).or_default();
        if forms.iter().any(|golden| golden.json == json) {
            continue;
        }
        let number = forms.iter().map(|golden| golden.number).max().unwrap_or_default() + 1;
        let path = folder().join(&category).join(format!("{variant}.{number}.json"));
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("{json:#}\n")).unwrap();
        } else {
            missing.push(path.display().to_string());
        }
        forms.push(Golden { category, variant, number, json });
    }
    assert!(missing.is_empty(), "UPDATE=1 writes new forms, old ones stay:\n{}", missing.join("\n"));
}

#[test]
fn every_aggregate_has_samples_that_are_told_apart() {
    let sampled: BTreeSet<&str> = samples::all().iter().map(Event::category).collect();
    assert_eq!(sampled, CATEGORIES.iter().copied().collect());
    let forms: Vec<String> =
        samples::all().iter().map(|event| format!("{} {}", event.category(), stored(event))).collect();
    assert_eq!(forms.iter().collect::<BTreeSet<_>>().len(), forms.len(), "two samples are the same");
}

#[test]
fn a_form_that_is_no_longer_read_is_found() {
    let found = |category: &str, variant: &str, json: &str| {
        let json = serde_json::from_str(json).unwrap();
        finding(&Golden { category: category.into(), variant: variant.into(), number: 1, json }, &[])
    };
    assert_eq!(found("order", "activated", r#"{"type":"activated"}"#), None);
    assert!(found("order", "approved", r#"{"type":"activated"}"#).unwrap().contains("holds a `activated`"));
    assert!(found("order", "melted", r#"{"type":"melted"}"#).unwrap().contains("is not read any more"));
    assert!(found("order", "approved", r#"{"type":"approved"}"#).unwrap().contains("missing field `by`"));
    assert!(found("orders", "activated", r#"{"type":"activated"}"#).unwrap().contains("no aggregate has"));
    let lost = r#"{"type":"refused","wanted_milli":8000,"free_milli":2000,"rack":"r1"}"#;
    assert!(found("order", "refused", lost).unwrap().contains("and is read as"));
}
