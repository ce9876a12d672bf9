//! Server processes on one PostgreSQL database: they serve the same, one goes on when the other is killed, and nobody
//! reads the password of the database from what they write.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use store::testing::{self, Scratch};

const SECRET: &str = "hunter2hunter2";

/// A process of `kashi server`, which ends with this.
struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
    url: String,
    said: String,
}

fn kashi(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kashi"));
    command.arg("server").args(["--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data"));
    command.env_remove("KASHI_DATABASE");
    command
}

impl Server {
    fn start(folder: &Path, name: &str, database: &str) -> Self {
        let log = File::create(folder.join(name)).unwrap();
        let mut command = kashi(folder);
        command.env("KASHI_DATABASE", database).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let mut server = Self { process, out, url: String::new(), said: String::new() };
        let greeting = server.line("kashi is up at ");
        greeting.split_whitespace().next().unwrap().clone_into(&mut server.url);
        server
    }

    /// What follows these words on the next line that begins with them.
    fn line(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "it ended without saying `{words}`: {}", self.said);
            self.said.push_str(&line);
            if let Some(rest) = line.strip_prefix(words) {
                return rest.trim_end().to_owned();
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = (self.process.kill(), self.process.wait());
    }
}

struct Asker(Client, String);

impl Asker {
    async fn get(&self, server: &Server, path: &str, from: i64) -> (StatusCode, Value) {
        let request = self.0.get(format!("{}/api/v1{path}", server.url)).header("Kashi-Min-Position", from);
        let response = request.bearer_auth(&self.1).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }

    async fn post(&self, server: &Server, path: &str, body: Value) -> (i64, Value) {
        let request = self.0.post(format!("{}/api/v1{path}", server.url)).json(&body);
        let response = request.bearer_auth(&self.1).send().await.unwrap();
        let position = response.headers().get("kashi-position").map(|value| value.to_str().unwrap().parse().unwrap());
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {body}");
        (position.unwrap_or_default(), body)
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_serve_one_platform_and_one_goes_on_alone() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (scratch, database) = (Scratch::new(), format!("{}&password={SECRET}", testing::postgres_url().await));
    let folder = scratch.path();
    let first = Server::start(folder, "first.log", &database);
    let mut second = Server::start(folder, "second.log", &database);
    let secret = second.line("one-time secret of the first operator: ");

    let nobody = Asker(Client::new(), String::new());
    let operator = json!({ "secret": secret, "handle": "admin", "password": "correct horse battery" });
    let (_, signed_in) = nobody.post(&first, "/setup", operator).await;
    let operator = Asker(nobody.0, signed_in["token"].as_str().unwrap().to_owned());
    let mut pools = 1;
    for writer in [&first, &second] {
        let (position, pool) = operator.post(writer, "/pools", json!({ "name": format!("pool-{pools}") })).await;
        pools += 1;
        for reader in [&first, &second] {
            let (status, shown) = operator.get(reader, "/pools", position).await;
            let items = shown["items"].as_array().unwrap_or_else(|| panic!("{status} {shown}"));
            assert!(items.len() == pools && items.iter().any(|item| item["id"] == pool["id"]), "{shown}");
        }
    }

    // The folder is shared by those who keep their data elsewhere, and by nobody else.
    let alone = kashi(folder).output().unwrap();
    assert!(!alone.status.success() && text(&alone).contains("another kashi runs on"), "{}", text(&alone));

    drop(first);
    let (position, pool) = operator.post(&second, "/pools?wait=settled", json!({ "name": "last" })).await;
    let (_, shown) = operator.get(&second, "/pools", position).await;
    assert!(shown["items"].as_array().unwrap().iter().any(|item| item["id"] == pool["id"]), "{shown}");
    let first = Server::start(folder, "first-again.log", &database);
    assert_eq!(operator.get(&first, "/whoami", 0).await.1["handle"], "admin");

    for log in ["first.log", "second.log", "first-again.log"] {
        let log = fs::read_to_string(folder.join(log)).unwrap();
        assert!(!log.contains(SECRET), "{log}");
    }
    assert!(!first.said.contains(SECRET) && !second.said.contains(SECRET));
}

#[test]
fn an_address_that_cannot_be_used_is_not_repeated() {
    let scratch = Scratch::new();
    let unreachable = format!("postgres://kashi:{SECRET}@127.0.0.1:1/kashi");
    let bad =
        [format!("mysql://kashi:{SECRET}@host/kashi"), format!("postgres://kashi:{SECRET}@host:x/kashi"), unreachable];
    for database in bad {
        let output = kashi(scratch.path()).args(["--database", &database]).output().unwrap();
        let said = text(&output);
        assert!(!output.status.success() && said.contains("--database") && !said.contains(SECRET), "{said}");
    }
    let help = kashi(scratch.path()).env("KASHI_DATABASE", SECRET).arg("--help").output().unwrap();
    assert!(text(&help).contains("KASHI_DATABASE") && !text(&help).contains(SECRET), "{}", text(&help));
}
