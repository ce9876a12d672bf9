//! Signing in and out: which secret comes from where, and where it stays.

use crate::kashi::Person;
use crate::server::{Answer, Server};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

fn session(token: &str, handle: &str) -> Answer {
    Answer::json(json!({
        "token": token, "expires_at": "2026-11-10T13:00:00Z", "member": "mem_1", "handle": handle, "tenant": "ten_1",
    }))
}

fn whoami() -> Answer {
    Answer::json(json!({
        "member": "mem_1", "handle": "li", "tenant": "ten_1", "tenant_name": "demo", "roles": ["engineer"],
        "permissions": ["job.read"],
    }))
}

#[tokio::test]
async fn a_session_is_kept_privately_and_used() {
    let server = Server::start().await;
    server.on("POST /login", session("secret-token", "li")).on("GET /whoami", whoami());
    let person = Person::new(&server.host);
    let ran = person.runs_with(&["login", "--handle", "li", "--password-stdin"], &[], "pass word\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "li\n"), "{}", ran.err);
    assert!(ran.err.contains("until 2026-11-10 13:00:00") && !ran.err.contains("secret"), "{}", ran.err);
    assert_eq!(server.asked()[0].body, json!({ "handle": "li", "password": "pass word" }));
    assert_eq!(server.asked()[0].header("authorization"), "");

    let credentials = person.settings().join("credentials.toml");
    assert_eq!(std::fs::metadata(&credentials).unwrap().permissions().mode() & 0o777, 0o600);
    let ran = person.runs(&["whoami", "-o", "json"]).await;
    assert_eq!((ran.code, ran.json()["kind"].as_str()), (0, Some("Whoami")), "{}", ran.err);
    assert_eq!(server.asked()[1].header("authorization"), "Bearer secret-token");

    assert_eq!(person.runs(&["logout"]).await.code, 0);
    assert!(!std::fs::read_to_string(&credentials).unwrap().contains("secret-token"));
    let ran = person.runs(&["whoami"]).await;
    assert_eq!(ran.code, 3);
    assert!(ran.err.starts_with("error[client.signed_out]: "), "{}", ran.err);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_profile_remembers_host_and_handle() {
    let server = Server::start().await;
    server.on("POST /login", session("ta", "admin")).on("POST /login", session("tl", "li")).on("GET /whoami", whoami());
    let person = Person::new("http://127.0.0.1:9");
    let password = [("KASHI_PASSWORD", "pass word")];
    for (profile, handle) in [("default", "admin"), ("li", "li")] {
        let words = ["login", "--host", &server.host, "--profile", profile, "--handle", handle];
        assert_eq!(person.runs_with(&words, &password, "").await.code, 0);
    }
    // The environment names another server, so the flag is needed to go where the profile goes.
    let mut command = person.command(&["--profile", "li", "whoami", "-q"]);
    command.env_remove("KASHI_HOST");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "li\n");
    assert_eq!(server.asked()[2].header("authorization"), "Bearer tl");
    // Signing in again needs no handle.
    let words = ["login", "--host", &server.host, "--profile", "default"];
    assert_eq!(person.runs_with(&words, &password, "").await.code, 0);
    assert_eq!(server.asked()[3].body["handle"], "admin");
}

#[tokio::test]
async fn the_first_operator_uses_the_one_time_secret() {
    let server = Server::start().await;
    server.on("POST /setup", session("t", "admin"));
    let person = Person::new(&server.host);
    let words = ["login", "--setup", "--secret", "once", "--handle", "admin"];
    assert_eq!(person.runs_with(&words, &[("KASHI_PASSWORD", "pass word")], "").await.code, 0);
    let words = ["login", "--setup", "--handle", "admin", "--password-stdin"];
    assert_eq!(person.runs_with(&words, &[], "once\npass word\n").await.code, 0);
    for asked in server.asked() {
        assert_eq!(asked.body, json!({ "secret": "once", "handle": "admin", "password": "pass word" }));
    }
}

#[tokio::test]
async fn a_key_is_tried_before_it_is_kept() {
    let server = Server::start().await;
    server.on("GET /whoami", Answer::problem(401, "auth.bad_token", "no")).on("GET /whoami", whoami());
    let person = Person::new(&server.host);
    let ran = person.runs_with(&["login", "--token", "-"], &[], "kashi_k\n").await;
    assert_eq!(ran.code, 3);
    assert!(!person.settings().join("credentials.toml").exists());
    let ran = person.runs_with(&["login", "--token", "-"], &[], "kashi_k\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "li\n"), "{}", ran.err);
    assert_eq!(server.asked()[1].header("authorization"), "Bearer kashi_k");
    assert!(!ran.err.contains("kashi_k"));
}

#[tokio::test]
async fn who_gives_no_password_is_told_how() {
    let server = Server::start().await;
    let person = Person::new(&server.host);
    let ran = person.runs(&["login", "--handle", "li"]).await;
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--password-stdin") && ran.err.contains("KASHI_PASSWORD"), "{}", ran.err);
    assert_eq!(person.runs(&["login"]).await.code, 2);
    server.on("POST /login", Answer::problem(401, "auth.bad_credentials", "wrong"));
    let ran = person.runs_with(&["login", "--handle", "li"], &[("KASHI_PASSWORD", "x")], "").await;
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("  try     do something else\n"), "{}", ran.err);
}
