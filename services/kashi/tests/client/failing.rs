//! What goes wrong: how it is told, what the program ends with, what is tried again.

use crate::kashi::Person;
use crate::server::{Answer, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const JOB: &str = "job_01J00000000000000000000000";

#[tokio::test]
async fn a_refusal_is_told_with_its_code() {
    let server = Server::start().await;
    for (status, code, exit) in [
        (401, "auth.expired", 3),
        (403, "auth.forbidden", 4),
        (404, "job.not_found", 5),
        (409, "order.wrong_state", 6),
        (409, "quota.nothing_ordered", 7),
        (409, "contract.missing", 7),
        (422, "request.bad_field", 2),
        (500, "server.failed", 1),
    ] {
        let person = Person::with_key(&server);
        server.only(&format!("GET /jobs/{JOB}"), Answer::problem(status, code, "it was so"));
        let ran = person.runs(&["show", JOB]).await;
        assert_eq!((ran.code, ran.out.as_str()), (exit, ""), "{code}");
        assert!(ran.err.starts_with(&format!("error[{code}]: it was so\n  try     ")), "{}", ran.err);
        let page = format!("{}/problems/{code}", server.host);
        assert!(ran.err.ends_with(&format!("\n  ref     req_1   {page}\n")), "{}", ran.err);
    }
}

#[tokio::test]
async fn a_program_gets_the_problem_itself() {
    let server = Server::start().await;
    server.on("POST /jobs", Answer::problem(409, "quota.nothing_ordered", "order first"));
    let person = Person::with_key(&server);
    let ran = person.runs(&["submit", "-q", "-o", "json", "--", "true"]).await;
    assert_eq!(ran.code, 7);
    let problem: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(
        (&problem["code"], &problem["type"]),
        (&json!("quota.nothing_ordered"), &json!("/problems/quota.nothing_ordered"))
    );
    let away = Person::new("http://127.0.0.1:1");
    let ran = away.runs(&["whoami", "-o", "json"]).await;
    let problem: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, problem["code"].as_str()), (3, Some("client.signed_out")));
}

#[tokio::test]
async fn a_server_that_is_away_is_told_after_some_tries() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let person = Person::new(&host);
    let ran = person.runs_with(&["whoami"], &[("KASHI_TOKEN", "t")], "").await;
    assert_eq!(ran.code, 8);
    assert!(ran.err.starts_with("error[client.unreachable]: ") && ran.err.contains("kashi up"), "{}", ran.err);
}

#[tokio::test]
async fn a_server_that_is_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let person = Person::new(&format!("http://{}", listener.local_addr().unwrap()));
    let ran = person.runs_with(&["whoami", "--timeout", "1"], &[("KASHI_TOKEN", "t")], "").await;
    assert_eq!(ran.code, 8);
    assert!(ran.err.starts_with("error[client.timeout]: "), "{}", ran.err);
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_sent_again_with_the_same_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let person = Person::new(&format!("http://{}", listener.local_addr().unwrap()));
    let served = tokio::spawn(async move {
        let mut requests = vec![];
        for answer in ["", "HTTP/1.1 201 Created\r\nkashi-position: 7\r\ncontent-length: 10\r\n\r\n{\"id\":\"o\"}"] {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = connection.read(&mut request).await.unwrap();
            requests.push(String::from_utf8(request[..length].to_vec()).unwrap());
            connection.write_all(answer.as_bytes()).await.unwrap();
            connection.shutdown().await.unwrap();
        }
        requests
    });
    let words = ["order", "--resource", "core", "--quantity", "1", "-q"];
    let ran = person.runs_with(&words, &[("KASHI_TOKEN", "t")], "").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "o\n"), "{}", ran.err);
    let key = |request: &str| request.lines().find(|line| line.starts_with("idempotency-key: ")).unwrap().to_owned();
    let requests = served.await.unwrap();
    assert_eq!(key(&requests[0]), key(&requests[1]));
}

#[tokio::test]
async fn a_read_that_is_behind_is_tried_again() {
    let server = Server::start().await;
    let read = format!("GET /jobs/{JOB}");
    server.on(&read, Answer::problem(503, "read.behind", "not yet"));
    server.on(&read, Answer::json(json!({ "id": JOB, "status": "running" })));
    let person = Person::with_key(&server);
    let ran = person.runs(&["show", JOB]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    server.only(&read, Answer::problem(503, "read.behind", "not yet"));
    let ran = person.runs(&["show", JOB]).await;
    assert_eq!(ran.code, 8);
    assert!(ran.err.starts_with("error[read.behind]"), "{}", ran.err);
}

#[tokio::test]
async fn a_reader_that_leaves_ends_it_quietly() {
    let server = Server::start().await;
    let part = "x".repeat(1 << 16);
    let at = |offset: usize| format!("GET /jobs/{JOB}/output?offset={offset}&wait_s=0");
    for turn in 0..32 {
        let next = (turn + 1) * part.len();
        server.on(&at(turn * part.len()), Answer::output(part.as_bytes(), next as u64, false));
    }
    let person = Person::with_key(&server);
    let mut command = person.command(&["logs", JOB]);
    command.stdout(Stdio::piped());
    let run = move || {
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[tokio::test]
async fn an_interrupt_ends_it_with_its_code() {
    let server = Server::start().await;
    server.on(&format!("GET /jobs/{JOB}"), Answer::json(json!({ "id": JOB, "status": "running" })));
    let mut child = Person::with_key(&server).command(&["wait", JOB]).spawn().unwrap();
    let asked = async {
        while server.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.code(), Some(130));
}

#[tokio::test]
async fn what_is_wrong_is_not_sent() {
    let server = Server::start().await;
    let person = Person::with_key(&server);
    for words in [&["show", "../whoami"][..], &["submit", "true"], &["bill", "--month", "nov"], &["nothing"]] {
        let ran = person.runs(words).await;
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{words:?}");
    }
    assert_eq!(person.runs(&["whoami", "--host", "h"]).await.code, 2);
    assert!(server.asked().is_empty());
    let ran = person.runs(&["version"]).await;
    assert_eq!((ran.code, ran.out), (0, format!("kashi {}\n", env!("CARGO_PKG_VERSION"))));
}
