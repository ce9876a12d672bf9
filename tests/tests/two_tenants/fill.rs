//! Requests out of the REST document: each path, query and body filled with the ids of the other tenant's things.
//!
//! Owns: the values for parameters and fields, by their name or by the kind of id that they take. What is not found here
//! is an error that says what to add.

use crate::parties::Parties;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// One operation of the document.
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    description: Value,
}

/// A request that can be sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
}

/// The kind of id that `{id}` is, by the folder that it stands in.
const FOLDERS: &[(&str, &str)] = &[
    ("jobs", "job"),
    ("keys", "key"),
    ("members", "mem"),
    ("nodes", "nod"),
    ("orders", "ord"),
    ("pools", "poo"),
    ("price-books", "pbk"),
    ("statements", "sta"),
    ("tenants", "ten"),
];
/// Texts by the name of the field or parameter; an empty one is left out.
const TEXTS: &[(&str, &str)] = &[
    ("command", "train"),
    ("cursor", ""),
    ("current", "not the password of it"),
    ("email", "aurora@example.com"),
    ("folder", ""),
    ("from", "2026-11-01T00:00:00Z"),
    ("handle", "somebody-new"),
    ("kind", "project"),
    ("lang", "en"),
    ("model", "sim-a100"),
    ("month", "2026-11"),
    ("name", "a name"),
    ("name_en", "a name"),
    ("name_zh", "a name"),
    ("new", "another password of it"),
    ("password", "not the password of it"),
    ("phone", "+8613900000000"),
    ("reason", "a reason"),
    ("reference", "a reference"),
    ("resource", "card.sim-a100"),
    ("roles", "engineer"),
    ("secret", "0000"),
    ("sku", "card.sim-a100"),
];
/// Values of named schemas that are no ids.
const WORDS: &[(&str, &str)] = &[
    ("Amount", "1"),
    ("Currency", "CNY"),
    ("Month", "2026-11"),
    ("Resource", "card.sim-a100"),
    ("Time", "2030-01-01T00:00:00Z"),
    ("Zone", "Asia/Shanghai"),
];

/// Fields that are sent though they are not required, because a request is not meant without them.
const ALSO: &[&str] = &["resource"];

type Filled<T> = Result<T, String>;

fn text(name: &str) -> Filled<&'static str> {
    let known = TEXTS.iter().find(|(known, _)| *known == name);
    known.map(|(_, text)| *text).ok_or_else(|| {
        format!("say in TEXTS of tests/tests/two_tenants/fill.rs what a text called `{name}` is, or give it the schema of an id")
    })
}

/// The operations of a document.
pub(crate) fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let of_method = |(method, description): (&String, &Value)| Operation {
            method: method.to_uppercase(),
            path: path.clone(),
            description: description.clone(),
        };
        item.as_object().unwrap().iter().map(of_method).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

impl Operation {
    /// This operation with all its values: without a query and with all that there is of it.
    pub(crate) fn requests(&self, document: &Value, parties: &Parties) -> Filled<Vec<Request>> {
        let schema = &self.description["requestBody"]["content"]["application/json"]["schema"];
        let body = if schema.is_null() { None } else { Some(Shape { document, parties }.value("body", schema)?) };
        let query = self.query(document, parties)?;
        let method: Method = self.method.parse().unwrap();
        let mut made = vec![];
        for path in self.paths(parties)? {
            let whole = (!query.is_empty()).then(|| format!("{path}?{}", query.join("&")));
            for path in [path].into_iter().chain(whole) {
                made.push(Request { method: method.clone(), path, body: body.clone() });
            }
        }
        Ok(made)
    }

    /// The path with each value that there is for its parameters.
    fn paths(&self, parties: &Parties) -> Filled<Vec<String>> {
        let mut paths = vec![String::new()];
        let parts: Vec<&str> = self.path.split('/').skip(1).collect();
        for (place, part) in parts.iter().enumerate() {
            let values = match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None => vec![(*part).to_owned()],
                Some(name) => parameter(name, place.checked_sub(1).map_or("", |before| parts[before]), parties)?,
            };
            paths = paths.iter().flat_map(|path| values.iter().map(move |value| format!("{path}/{value}"))).collect();
        }
        Ok(paths)
    }

    fn query(&self, document: &Value, parties: &Parties) -> Filled<Vec<String>> {
        let mut query = vec![];
        for parameter in self.description["parameters"].as_array().into_iter().flatten() {
            let (Some("query"), Some(name)) = (parameter["in"].as_str(), parameter["name"].as_str()) else { continue };
            let value = match name {
                // Of a member, whoever that is.
                "actor" => json!(parties.ids["mem"]),
                "wait_s" => json!(0),
                "limit" => json!(200),
                "all" => json!(true),
                _ => Shape { document, parties }.value(name, &parameter["schema"])?,
            };
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if !value.is_empty() {
                query.push(format!("{name}={}", value.replace('+', "%2B").replace('@', "%40")));
            }
        }
        Ok(query)
    }
}

/// What a parameter of a path may be, by its name and the folder before it.
fn parameter(name: &str, folder: &str, parties: &Parties) -> Filled<Vec<String>> {
    let id = |prefix: &str| parties.ids.get(prefix).cloned();
    let kind = FOLDERS.iter().find(|(known, _)| *known == folder).map(|(_, prefix)| *prefix);
    let value = match name {
        "position" => return Ok(parties.positions.clone()),
        "tenant" => id("ten"),
        "resource" | "sku" => Some("card.sim-a100".into()),
        "price_version" => Some("1".into()),
        "id" => kind.and_then(id),
        _ => None,
    };
    value.map(|value| vec![value]).ok_or_else(|| {
        format!(
            "say in `parameter` or FOLDERS of tests/tests/two_tenants/fill.rs what `{{{name}}}` below `/{folder}/` is, and \
             make such a thing of Aurora's in parties.rs"
        )
    })
}

/// Fills a schema of the document.
struct Shape<'a> {
    document: &'a Value,
    parties: &'a Parties,
}

impl Shape<'_> {
    fn value(&self, name: &str, schema: &Value) -> Filled<Value> {
        if let Some(named) = schema["$ref"].as_str() {
            let known = named.rsplit('/').next().unwrap_or_default();
            return match WORDS.iter().find(|(word, _)| *word == known) {
                Some((_, word)) => Ok(json!(word)),
                None => self.value(name, &self.document["components"]["schemas"][known]),
            };
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let some = choices.iter().find(|choice| choice["type"] != "null");
            return self.value(name, some.ok_or_else(|| format!("`{name}` is null only"))?);
        }
        let prefix = schema["pattern"].as_str().and_then(|pattern| pattern.strip_prefix('^')?.split('_').next());
        if let Some(id) = prefix.and_then(|prefix| self.parties.ids.get(prefix)) {
            return Ok(json!(id));
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"].as_array()?.first()?.as_str());
        match kind {
            Some("object") => self.object(schema),
            Some("array") => Ok(json!([self.value(name, &schema["items"])?])),
            Some("integer") => Ok(schema["minimum"].as_i64().map_or(json!(1), |least| json!(least))),
            Some("boolean") => Ok(json!(true)),
            Some("string") => Ok(json!(text(name)?)),
            _ => Err(format!("fill.rs cannot make a `{name}` of {schema}")),
        }
    }

    /// What is required of an object, whatever of it is an id, and a few more.
    fn object(&self, schema: &Value) -> Filled<Value> {
        let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let mut object = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let is_id = field.to_string().contains("Id\"");
            if required(name) || is_id || ALSO.contains(&name.as_str()) {
                object.insert(name.clone(), self.value(name, field)?);
            }
        }
        Ok(object.into())
    }
}
