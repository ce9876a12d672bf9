//! Jobs: submitting, output, waiting, why, and what they cost.

use crate::kashi::Person;
use crate::server::{Answer, Server};
use serde_json::{Value, json};

const JOB: &str = "job_01J00000000000000000000000";
const OTHER: &str = "job_01J00000000000000000000001";
const STATEMENT: &str = "sta_01J00000000000000000000000";

fn job(id: &str, status: &str, exit_code: Option<i64>) -> Answer {
    Answer::json(json!({ "id": id, "name": "train", "status": status, "exit_code": exit_code, "detail": null }))
}

fn one_page(items: Value) -> Answer {
    Answer::json(json!({ "items": items, "next_cursor": null }))
}

async fn with_prices() -> Server {
    let server = Server::start().await;
    let product = json!({ "sku": "card.sim-a100", "resource": "card.sim-a100" });
    server.on("GET /products", one_page(json!([product])));
    let price = json!({
        "book": "pbk_1", "version": 1, "sku": "card.sim-a100", "price": "80", "currency": "CNY",
        "effective_at": "2020-01-01T00:00:00Z",
    });
    server.on("GET /prices", one_page(json!([price])));
    server.on("POST /jobs", Answer::written(9, json!({ "id": JOB })));
    server
}

#[tokio::test]
async fn a_submission_says_its_price_and_writes_its_id() {
    let server = with_prices().await;
    let person = Person::with_key(&server);
    let words = ["submit", "--name", "n", "--cards", "2", "--model", "sim-a100", "--memory", "2G", "--env", "A=b"];
    let words = [&words[..], &["--", "python3", "train.py", "-q"]].concat();
    let ran = person.runs(&words).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, format!("{JOB}\n").as_str()), "{}", ran.err);
    let plan = "2 × card.sim-a100 at 80.00 CNY per card-hour: 160.00 CNY an hour\n";
    assert!(ran.err.starts_with(plan) && ran.err.contains(&format!("kashi logs -f {JOB}")), "{}", ran.err);
    assert_eq!(
        server.asked_for("POST /jobs")[0].body,
        json!({
            "command": ["python3", "train.py", "-q"], "name": "n", "cards": { "model": "sim-a100", "count": 2 },
            "memory_mib": 2048, "env": { "A": "b" },
        })
    );
    let before = server.asked().len();
    let ran = person.runs(&["submit", "-q", "--", "true"]).await;
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (format!("{JOB}\n").as_str(), ""));
    assert_eq!(server.asked().len(), before + 1);
}

#[tokio::test]
async fn a_submission_that_waits_ends_like_its_job() {
    let server = with_prices().await;
    server
        .on(&format!("GET /jobs/{JOB}"), job(JOB, "running", None))
        .on(&format!("GET /jobs/{JOB}"), job(JOB, "failed", Some(3)));
    let person = Person::with_key(&server);
    let ran = person.runs(&["submit", "--wait", "-o", "json", "--", "false"]).await;
    assert_eq!((ran.code, ran.json()["status"].as_str()), (100, Some("failed")), "{}", ran.err);
    assert_eq!(person.runs(&["submit", "--wait", "--job-exit", "-q", "--", "false"]).await.code, 3);
    let first = format!("GET /jobs/{JOB}/output?offset=0&wait_s=20");
    server.on(&first, Answer::output(b"all of it\n", 10, true));
    let ran = person.runs(&["submit", "--follow", "--", "false"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (100, "all of it\n"), "{}", ran.err);
    assert_eq!(person.runs(&["submit", "--follow", "-o", "json", "--", "false"]).await.code, 2);
}

#[tokio::test]
async fn output_is_written_as_it_came_and_followed_to_its_end() {
    let server = Server::start().await;
    let at = |offset: u64| format!("GET /jobs/{JOB}/output?offset={offset}&wait_s=20");
    server.on(&at(0), Answer::output("一\n".as_bytes(), 4, false));
    server.on(&at(4), Answer::output(b"", 4, false)).on(&at(4), Answer::problem(503, "log.unreachable", "away"));
    server.on(&at(4), Answer::output(b"last\r\n", 10, false));
    server.on(&at(10), Answer::output(b"", 10, true));
    server.on(&format!("GET /jobs/{JOB}"), job(JOB, "cancelled", None));
    let person = Person::with_key(&server);
    let ran = person.runs(&["logs", "-f", JOB]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "一\nlast\r\n"), "{}", ran.err);
    assert_eq!(person.runs(&["logs", "-f", "--status", JOB]).await.code, 103);
}

#[tokio::test]
async fn output_is_reachable_after_the_end_and_by_its_last_lines() {
    let server = Server::start().await;
    let at = |offset: u64| format!("GET /jobs/{JOB}/output?offset={offset}&wait_s=0");
    server.on(&at(0), Answer::output(b"1\n2\n", 4, false)).on(&at(4), Answer::output(b"3\n", 6, true));
    server.on(&at(6), Answer::output(b"", 6, true));
    let person = Person::with_key(&server);
    assert_eq!(person.runs(&["logs", JOB]).await.out, "1\n2\n3\n");
    // The first answer is still there: it is the only one for its offset.
    assert_eq!(person.runs(&["logs", "--tail", "2", JOB]).await.out, "2\n3\n");
}

#[tokio::test]
async fn waiting_ends_with_what_became_of_the_jobs() {
    let server = Server::start().await;
    let (one, other) = (format!("GET /jobs/{JOB}"), format!("GET /jobs/{OTHER}"));
    server.on(&one, job(JOB, "queued", None)).on(&one, job(JOB, "succeeded", Some(0)));
    server.on(&other, job(OTHER, "running", None));
    let person = Person::with_key(&server);
    let ran = person.runs(&["wait", JOB]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("succeeded"), "{}", ran.out);
    let ran = person.runs(&["wait", JOB, OTHER, "--timeout", "1", "-o", "json"]).await;
    assert_eq!((ran.code, ran.json()["items"][1]["status"].as_str()), (101, Some("running")), "{}", ran.err);
    let missing = "job_01J00000000000000000000002";
    let ran = person.runs(&["wait", missing]).await;
    assert_eq!(ran.code, 102);
    assert!(ran.err.starts_with("error[thing.not_found]"), "{}", ran.err);
}

#[tokio::test]
async fn a_waiting_job_says_why() {
    let server = Server::start().await;
    let why = json!({ "status": "queued", "reason": "InsufficientFree", "text": "no card is free", "advice": "wait" });
    let path = format!("GET /jobs/{JOB}/why");
    server.on(&format!("{path}?lang=en"), Answer::json(why.clone()));
    server.on(&format!("{path}?lang=zh"), Answer::json(why));
    server.on("GET /jobs?all=false&limit=100", one_page(json!([{ "id": JOB, "status": "queued", "name": "n" }])));
    let person = Person::with_key(&server);
    let ran = person.runs(&["why", JOB]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "queued\nno card is free\ntry  wait\n"));
    assert_eq!(person.runs(&["why", JOB, "-o", "json"]).await.json()["reason"], "InsufficientFree");
    let ran = person.runs(&["ps", "--lang", "zh"]).await;
    assert!(ran.out.contains("排队中") && ran.out.contains("no card is free"), "{}", ran.out);
}

#[tokio::test]
async fn cancelling_several_may_be_done_in_part() {
    let server = Server::start().await;
    server.on(&format!("POST /jobs/{JOB}/cancel"), Answer::written(3, json!({ "id": JOB })));
    server.on(&format!("GET /jobs/{JOB}"), job(JOB, "running", None));
    let person = Person::with_key(&server);
    let ran = person.runs(&["cancel", JOB, "--reason", "old"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, format!("{JOB}\n").as_str()), "{}", ran.err);
    assert_eq!(server.asked()[0].body, json!({ "reason": "old" }));
    let ran = person.runs(&["cancel", JOB, OTHER]).await;
    assert_eq!((ran.code, ran.out.as_str()), (9, format!("{JOB}\n").as_str()), "{}", ran.err);
    assert_eq!(person.runs(&["cancel", OTHER]).await.code, 5);
}

#[tokio::test]
async fn a_bill_leads_down_to_the_events() {
    let server = Server::start().await;
    server.on("GET /health", Answer::json(json!({ "read_models_at": 50, "flows_at": 40 })));
    server.on("GET /health", Answer::json(json!({ "read_models_at": 50, "flows_at": 50 })));
    let statement = json!({
        "id": STATEMENT, "tenant": "ten_1", "month": "2026-11", "zone": "Asia/Shanghai", "currency": "CNY",
        "status": "draft", "number": null, "unrated": 0,
    });
    let line = json!({
        "sku": "card.sim-a100", "price_version": 1, "unit": "card-hour", "price": "80", "quantity": 6_083_000,
        "amount": "0.13517778", "shown": "0.14",
    });
    let older = json!({ "id": "sta_0", "month": "2026-10" });
    server.on("GET /statements?limit=200", one_page(json!([statement, older])));
    let bill = json!({ "statement": statement, "lines": [line], "total": { "total": "0.14", "rounding": "0" } });
    server.on(&format!("GET /statements/{STATEMENT}"), Answer::json(bill.clone()));
    let charge = json!({
        "event": "evt_1", "position": 30, "statement": STATEMENT, "sku": "card.sim-a100", "price_version": 1,
        "job": JOB, "quantity": 6_083_000, "price": "80", "amount": "0.13517778",
        "from_at": "2026-11-10T01:00:00Z", "to_at": "2026-11-10T01:00:06.083Z",
    });
    let explained = |job: &str| {
        let mut charge = charge.clone();
        charge["job"] = job.into();
        let events = json!([{ "position": 12, "kind": "job.submitted", "occurred_at": "2026-11-10T00:59:59Z" }]);
        json!({ "charge": charge, "job": { "id": job, "name": "train" }, "lease": { "cards": 1 }, "events": events })
    };
    let path = format!("GET /statements/{STATEMENT}/lines/card.sim-a100/1/explain?limit=200");
    server.on(&path, one_page(json!([explained(JOB), explained(OTHER)])));
    server.on(&format!("GET /jobs/{JOB}/charges"), one_page(json!([charge])));

    let person = Person::with_key(&server);
    let ran = person.runs(&["bill"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("1     card.sim-a100  card-hour  0.0017    80.00  0.14\nTOTAL  0.14 CNY\n"),
        "{}",
        ran.out
    );
    assert!(ran.err.contains(&format!("kashi explain {STATEMENT}")), "{}", ran.err);
    let read = server.asked_for("GET /statements?limit=200");
    assert_eq!(read[0].header("kashi-min-position"), "50");
    let document = person.runs(&["bill", "-o", "json"]).await.json();
    assert_eq!((&document["lines"], &document["total"]), (&bill["lines"], &bill["total"]));

    let ran = person.runs(&["explain", STATEMENT, "-o", "json"]).await;
    assert_eq!(ran.json()["items"], json!([explained(JOB), explained(OTHER)]), "{}", ran.err);
    let ran = person.runs(&["explain", JOB]).await;
    assert!(ran.out.contains("12        job.submitted  2026-11-10 00:59:59.000+00:00"), "{}", ran.out);
    assert!(ran.out.contains("6.083    1 card ") && !ran.out.contains(OTHER), "{}", ran.out);
    assert_eq!(person.runs(&["explain", STATEMENT, "--line", "2"]).await.code, 2);
}
