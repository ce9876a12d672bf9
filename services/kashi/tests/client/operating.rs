//! What operators do to the platform itself.

use crate::kashi::Person;
use crate::server::{Answer, Server};
use serde_json::{Value, json};

fn version(status: &str, position: i64) -> Value {
    json!({ "version": 2, "model": "orders", "status": status, "position": position, "target": 9, "fault": null })
}

fn listed(version: &Value) -> Answer {
    let stopped = json!({ "name": "orders", "position": 6, "stopped_position": 7, "stopped_cause": "a defect" });
    let follows = json!({ "name": "jobs", "position": 9, "stopped_position": null, "stopped_cause": null });
    Answer::json(json!({ "serving": 1, "log_position": 9, "items": [stopped, follows], "versions": [version] }))
}

#[tokio::test]
async fn read_models_are_listed_with_why_one_has_stopped() {
    let server = Server::start().await;
    server.on("GET /projections", listed(&version("serving", 9)));
    let ran = Person::with_key(&server).runs(&["projections", "status", "--lang", "en"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["orders", "stopped", "at", "7", "6", "a", "defect"]), "{}", ran.out);
    assert!(rows.contains(&vec!["jobs", "follows", "9"]), "{}", ran.out);
}

#[tokio::test]
async fn a_rebuild_is_waited_for_and_says_how_far_it_is() {
    let server = Server::start().await;
    server
        .on("POST /projections/rebuild", Answer::written(9, version("asked", 0)))
        .on("GET /projections", listed(&version("building", 4)))
        .on("GET /projections", listed(&version("serving", 9)));
    let person = Person::with_key(&server);
    let ran = person.runs(&["projections", "rebuild", "orders"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "2\n"), "{}", ran.err);
    assert!(ran.err.contains("at 4 of 9") && ran.err.contains("version 2 is served"), "{}", ran.err);
    assert_eq!(server.asked_for("POST /projections/rebuild")[0].body, json!({ "name": "orders" }));

    let mut failed = version("failed", 4);
    failed["fault"] = "a defect".into();
    server.only("GET /projections", listed(&failed));
    let ran = person.runs(&["projections", "rebuild", "--all"]).await;
    assert!(ran.code != 0 && ran.err.contains("a defect"), "{} {}", ran.code, ran.err);
    assert_eq!(server.asked_for("POST /projections/rebuild")[1].body, json!({ "name": null }));
}

#[tokio::test]
async fn a_project_is_added_below_a_tenant_and_a_tenant_is_suspended() {
    const TENANT: &str = "ten_01J00000000000000000000000";
    let server = Server::start().await;
    let project = json!({ "id": TENANT, "name": "lab", "kind": "project", "suspended": null });
    server.on("POST /tenants", Answer::written(3, json!({ "id": TENANT })));
    server.on(&format!("POST /tenants/{TENANT}/suspend"), Answer::written(4, json!({ "id": TENANT })));
    server.on("GET /tenants?limit=200", Answer::json(json!({ "items": [project], "next_cursor": null })));
    let person = Person::with_key(&server);
    let ran = person.runs(&["tenant", "add", "lab", "--parent", TENANT]).await;
    assert_eq!((ran.code, ran.out.trim()), (0, TENANT), "{}", ran.err);
    assert!(ran.err.contains(&format!("kashi quota set --tenant {TENANT}")), "{}", ran.err);
    let asked = &server.asked_for("POST /tenants")[0].body;
    assert_eq!(*asked, json!({ "name": "lab", "parent": TENANT, "kind": "project" }));
    let ran = person.runs(&["tenant", "suspend", TENANT, "--reason", "unpaid"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let asked = &server.asked_for(&format!("POST /tenants/{TENANT}/suspend"))[0].body;
    assert_eq!(*asked, json!({ "reason": "unpaid" }));
    let ran = person.runs(&["tenant", "list", "--lang", "zh"]).await;
    assert!(ran.out.contains("项目") && ran.out.contains("停用原因"), "{}", ran.out);
}

#[tokio::test]
async fn a_profile_is_changed_in_part_shown_and_erased() {
    const MEMBER: &str = "mem_01J00000000000000000000000";
    let server = Server::start().await;
    let (path, id) = (format!("/members/{MEMBER}/profile"), json!({ "id": MEMBER }));
    server.on(&format!("PUT {path}"), Answer::written(3, id.clone()));
    let known = json!({ "id": MEMBER, "name": "Li", "email": "li@example.org", "phone": "+8613800000000" });
    server.on(&format!("GET {path}"), Answer::json(known));
    server.on(&format!("POST /members/{MEMBER}/erase"), Answer::written(4, id));
    let person = Person::with_key(&server);
    let ran = person.runs(&["member", "profile", MEMBER, "--name", "Li Lei", "--clear", "phone"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let asked = &server.asked_for(&format!("PUT {path}"))[0].body;
    assert_eq!(*asked, json!({ "name": "Li Lei", "email": "li@example.org", "phone": null }));
    let ran = person.runs(&["member", "profile", MEMBER]).await;
    assert!(ran.out.contains("li@example.org"), "{} {}", ran.out, ran.err);
    let ran = person.runs(&["member", "erase", MEMBER, "--for-good"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[tokio::test]
async fn evidence_is_read_from_an_instant_on() {
    let server = Server::start().await;
    let refused = json!({ "position": 7, "at": "2026-11-01T00:00:00Z", "actor": "nobody", "what": "sign_in_refused",
                          "operation": "login", "things": [], "code": "auth.bad_credentials" });
    server.on(
        "GET /access?from=2026-11-01T00%3A00%3A00Z&limit=50",
        Answer::json(json!({ "items": [refused], "next_cursor": null })),
    );
    let ran = Person::with_key(&server).runs(&["access", "--from", "2026-11-01T08:00:00+08:00", "--lang", "en"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("sign_in_refused") && ran.out.contains("auth.bad_credentials"), "{}", ran.out);
}
