//! The document says of each route what its handler does: who may call it, and how it refuses.

use crate::room::Room;
use serde_json::Value;

/// Method, path and description of every operation.
fn operations() -> Vec<(String, String, Value)> {
    let document = serde_json::to_value(tenant::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let item = item.as_object().unwrap().clone();
        item.into_iter().map(|(method, operation)| (method.to_uppercase(), path.clone(), operation)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// The path with something in the place of each parameter.
fn filled(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "x".to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_route_needs_what_the_document_says() {
    let room = Room::new().await;
    for (method, path, operation) in operations() {
        let permission = operation["x-permission"].as_str().unwrap_or_else(|| panic!("{method} {path}"));
        let path = filled(&path);
        let stranger = room.nobody(&method, &path, None).await;
        let bare = room.ask("bare", &method, path.strip_prefix("/api/v1").unwrap(), None).await;
        match permission {
            "anyone" => assert_ne!(stranger.status, 401, "{method} {path}"),
            "any member" => {
                assert_eq!(stranger.is(), (401, "auth.missing"), "{method} {path}");
                assert!(![401, 403].contains(&bare.status), "{method} {path}: {}", bare.body);
            }
            permission => {
                assert_eq!(stranger.is(), (401, "auth.missing"), "{method} {path}");
                assert_eq!(bare.is(), (403, "auth.forbidden"), "{method} {path}");
                assert_eq!(bare.body["detail"], format!("the permission `{permission}` is missing"), "{method} {path}");
            }
        }
    }
}

#[test]
fn every_operation_is_described_for_people_and_programs() {
    let mut ids = vec![];
    for (method, path, operation) in operations() {
        let what = format!("{method} {path}: {operation}");
        assert!(path.starts_with("/api/v1/"), "{what}");
        assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with('.') && text.len() > 8), "{what}");
        let signed_in = operation["x-permission"] != "anyone";
        assert_eq!(operation["security"].as_array().unwrap().len(), usize::from(signed_in), "{what}");
        assert_eq!(operation["responses"]["default"]["$ref"], "#/components/responses/Problem", "{what}");
        let header = match (signed_in, method.as_str()) {
            (false, _) => None,
            (true, "GET") => Some("Kashi-Min-Position"),
            (true, _) => Some("Idempotency-Key"),
        };
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let refers = |name: &str| parameters.iter().any(|of| of["$ref"] == format!("#/components/parameters/{name}"));
        assert!(header.is_none_or(refers), "{what}");
        ids.push(operation["operationId"].as_str().unwrap().to_owned());
    }
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
    assert!(all >= 45, "{all} operations");
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = serde_json::to_value(tenant::openapi()).unwrap();
    let mut found = vec![];
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    assert_eq!(document["info"]["title"], "Kashi API");
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
}
