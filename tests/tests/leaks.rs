//! No secret and no personal datum of a story is found in clear in any file or log line of the server; what was erased is
//! found nowhere, not even where it was shown before.
//!
//! Owns: the story, and the search through every byte. Invariant: the search is itself tried, on what must be found.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop")]

use agent_protocol::Exit;
use chrono::TimeDelta;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::Db;
use store::Engine;
use system_tests::fake_agent::FakeAgent;
use system_tests::lab::Lab;
use system_tests::world::{Person, World, first_pool, until};

const START: &str = "2026-11-10T01:00:00Z";
const NAME: &str = "Zhang Weiming-Leakcheck";
const EMAIL: &str = "Weiming.Leakcheck@Example.org";
const PHONE: &str = "+86 138-1234-5678";
const DIGITS: &str = "13812345678";
const PASSWORD: &str = "a pass phrase of zhang";
const MISTYPED: &str = "a pass phrase of zhnag";
/// The only database that may show a profile, until it is erased.
const READ_MODELS: &str = "read";

/// What was written to the log of the process.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Takes every line that the process logs from now on.
fn captured() -> Captured {
    let captured = Captured::default();
    let writer = captured.clone();
    let lines = tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG);
    lines.with_ansi(false).with_writer(move || writer.clone()).init();
    captured
}

/// Bytes as they are searched: what is no text is something else, and small letters are as good as capital ones.
fn searched(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_lowercase()
}

fn holds(searched: &str, text: &str) -> bool {
    searched.contains(&text.to_lowercase())
}

/// Every file below a folder, with its name from there on.
fn files(folder: &Path, under: &str) -> Vec<(String, String)> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{under}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path(), &format!("{name}/")));
        } else if let Ok(bytes) = std::fs::read(entry.path()) {
            // A file that was dropped meanwhile holds nothing.
            found.push((name, searched(&bytes)));
        }
    }
    found
}

/// The files in which any of the texts is found.
fn leaks(folder: &Path, texts: &[String]) -> Vec<(String, String)> {
    let in_file = |(name, bytes): (String, String)| {
        let found: Vec<_> = texts.iter().filter(|text| holds(&bytes, text)).cloned().collect();
        found.into_iter().map(move |text| (name.clone(), text))
    };
    files(folder, "").into_iter().flat_map(in_file).collect()
}

/// Everything about the person that must be nowhere in clear.
fn personal() -> Vec<String> {
    [NAME, EMAIL, PHONE, DIGITS].map(str::to_owned).to_vec()
}

/// Uses every kind of secret; gives them.
async fn secrets(world: &World, lab: &Lab) -> Vec<String> {
    let operator = &lab.operator;
    let member = json!({ "handle": "zhang", "tenant": lab.tenant, "roles": ["engineer"], "password": PASSWORD });
    operator.made("/api/v1/members", member).await;
    let made = json!({ "handle": "made", "tenant": lab.tenant, "roles": ["engineer"] });
    let made = operator.made("/api/v1/members", made).await["password"].as_str().unwrap().to_owned();
    let session = sign_in(world, PASSWORD).await;
    let wrong = json!({ "handle": "zhang", "password": MISTYPED });
    assert_eq!(world.nobody().post("/api/v1/login", wrong).await.status, 401);
    let zhang = world.nobody().with(&session);
    let key = zhang.made("/api/v1/keys", json!({ "name": "ci" })).await["key"].as_str().unwrap().to_owned();
    assert_eq!(world.nobody().with(&key).get("/api/v1/whoami").await.status, 200);
    let token = operator.made(&format!("/api/v1/pools/{}/join-tokens", first_pool()), json!({})).await;
    let token = token["token"].as_str().unwrap().to_owned();
    let later = "another pass phrase of zhang";
    zhang.made("/api/v1/password", json!({ "current": PASSWORD, "new": later })).await;
    assert_eq!(zhang.get("/api/v1/whoami").await.status, 401);
    // What of a token is secret: the half of a key or a join token, the signature of a session.
    let half = |text: &str, parted: char| text.rsplit(parted).next().unwrap().to_owned();
    let signature = half(&session, '.');
    let key_half = key.splitn(3, '_').nth(2).unwrap().to_owned();
    let known = ["0".repeat(64), "correct horse battery".into(), "engineers password".into(), "c".repeat(64)];
    let told = [PASSWORD.into(), MISTYPED.into(), later.into(), made, session, signature, key_half, half(&token, '.')];
    known.into_iter().chain(told).collect()
}

async fn sign_in(world: &World, password: &str) -> String {
    let reply = world.nobody().made("/api/v1/login", json!({ "handle": "zhang", "password": password })).await;
    reply["token"].as_str().unwrap().to_owned()
}

/// Sets a profile, reads it, searches for it, and gets it wrong.
async fn profile(world: &World, zhang: &Person, operator: &Person) -> String {
    let id = zhang.get("/api/v1/whoami").await.body["member"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/members/{id}/profile");
    let set = zhang.put(&path, json!({ "name": NAME, "email": EMAIL, "phone": PHONE })).await;
    assert_eq!(set.status, 200, "{}", set.body);
    let wrong = zhang.put(&path, json!({ "name": NAME, "email": EMAIL, "phone": format!("{PHONE}x") })).await;
    assert_eq!(wrong.status, 422);
    world.settled().await;
    assert_eq!(operator.get(&path).await.body["name"], NAME);
    let found = operator.get(&format!("/api/v1/members?email={EMAIL}")).await;
    assert_eq!(found.body["items"][0]["id"], id.as_str());
    id
}

/// Runs a job that says something.
async fn job(world: &World, lab: &Lab) {
    let agent = FakeAgent::join(world, &lab.operator, 4).await;
    lab.order(world, "card.sim-a100", 2).await;
    let lease = agent.asked_to_run(&lab.submit(1).await).await;
    let from = world.now();
    agent.started(&lease, from).await;
    agent.output(&lease, 0, b"loss 0.1\n").await;
    agent.ended(&lease, from, from + TimeDelta::minutes(5), Exit::Code { code: 0 }).await;
    world.settled().await;
}

/// The read models made anew from the log are what is shown.
async fn rebuilt_is_live(world: &World) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("again.db").display());
    let again = Db::open_relaxed(&url, &projections::MIGRATIONS).await.unwrap();
    control::rebuild(world.kit.executor.log(), &again, world.kit.keys.opener()).await.unwrap();
    for (name, tables) in projections::ALL {
        for table in *tables {
            let live = projections::digest(&world.kit.read, table).await.unwrap();
            assert_eq!(live, projections::digest(&again, table).await.unwrap(), "{name}: {table}");
        }
    }
    again.close().await;
    assert_eq!(leaks(folder.path(), &personal()), [], "a rebuild opened what was erased");
}

#[tokio::test]
async fn nothing_secret_or_personal_is_left_in_files_and_logs() {
    let lines = captured();
    let world = World::new(Engine::Sqlite, START).await;
    let lab = Lab::found(&world, 4).await;
    let secrets = secrets(&world, &lab).await;
    let zhang = world.nobody().with(&sign_in(&world, "another pass phrase of zhang").await);
    let id = profile(&world, &zhang, &lab.operator).await;
    job(&world, &lab).await;

    assert_eq!(leaks(world.folder(), &secrets), []);
    let shown = leaks(world.folder(), &personal());
    assert!(shown.iter().any(|(_, text)| text == NAME), "the search finds what is there");
    let elsewhere: Vec<_> = shown.iter().filter(|(file, _)| !file.starts_with(READ_MODELS)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");

    lab.operator.made(&format!("/api/v1/members/{id}/erase"), json!({})).await;
    world.settled().await;
    until("the files to forget", || async { leaks(world.folder(), &personal()).is_empty() }).await;
    rebuilt_is_live(&world).await;

    let all: Vec<String> = secrets.into_iter().chain(personal()).collect();
    let folder = world.folder().to_owned();
    let world = world.restarted().await;
    rebuilt_is_live(&world).await;
    assert_eq!(
        world.again(&lab.operator).get(&format!("/api/v1/members/{id}/profile")).await.body["name"],
        json!(null)
    );
    assert_eq!(leaks(&folder, &all), []);
    let lines = searched(&lines.0.lock().unwrap());
    assert!(holds(&lines, "a key of personal data was destroyed") || holds(&lines, "sqlx"), "lines are captured");
    let found: Vec<_> = all.iter().filter(|text| holds(&lines, text)).collect();
    assert!(found.is_empty(), "{found:?} in the lines that were logged");
}
