//! What a request meets before and after its route: every error is a problem, and every answer has an id.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use axum::{
    Router,
    body::Body,
    http::{Method, Request, StatusCode, header},
    response::Response,
    routing::{get, post},
};
use http_body_util::BodyExt;
use kit::{BODY_BYTES_MAX, Digest, Json, PROBLEM_CONTENT_TYPE, Path, Problem, Query, REQUEST_ID, edge};
use serde::Deserialize;
use serde_json::Value;
use tower::ServiceExt;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    cards: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    limit: Option<u32>,
}

async fn ask(Json(ask, digest): Json<Ask>) -> String {
    format!("{} {}", ask.cards, digest.as_str())
}

async fn number(Path(number): Path<u32>, Query(filter): Query<Filter>) -> String {
    format!("{number} {:?}", filter.limit)
}

async fn panics() -> String {
    panic!("a secret")
}

async fn refuses() -> Problem {
    Problem::new(StatusCode::CONFLICT, "order.wrong_state", "not now")
}

fn app() -> Router {
    let routes = Router::new()
        .route("/asks", post(ask))
        .route("/cancel", post(|digest: Digest| async move { digest.as_str().to_owned() }))
        .route("/numbers/{number}", get(number))
        .route("/panics", get(panics))
        .route("/refuses", get(refuses))
        .route("/raw", post(|body: String| async move { body.len().to_string() }))
        .route("/own", get(|| async { (StatusCode::BAD_REQUEST, axum::Json(7)) }));
    edge(Router::new().nest("/api", routes))
}

async fn send(method: Method, path: &str, content_type: &str, body: impl Into<Body>) -> Response {
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
    app().oneshot(request.body(body.into()).unwrap()).await.unwrap()
}

async fn text(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// The problem of an answer, which has the id of the request in body and header.
async fn problem(response: Response) -> (u16, String, Value) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_CONTENT_TYPE);
    let id = response.headers()[REQUEST_ID].to_str().unwrap().to_owned();
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["request_id"], id);
    assert_eq!(problem["status"], status);
    assert_eq!(problem["type"], format!("/problems/{}", problem["code"].as_str().unwrap()));
    (status, problem["code"].as_str().unwrap().to_owned(), problem)
}

async fn asked(content_type: &str, body: impl Into<Body>) -> (u16, String, Value) {
    problem(send(Method::POST, "/api/asks", content_type, body).await).await
}

const JSON: &str = "application/json";

#[tokio::test]
async fn a_body_that_fits_is_taken_with_its_digest() {
    let response = send(Method::POST, "/api/asks", JSON, r#"{"cards":8}"#).await;
    assert_eq!(response.status(), StatusCode::OK);
    let digest = Digest::of("POST", "/api/asks", br#"{"cards":8}"#);
    assert_eq!(text(response).await, format!("8 {}", digest.as_str()));
    let bare = text(send(Method::POST, "/api/cancel", "", "").await).await;
    assert_eq!(bare, Digest::of("POST", "/api/cancel", b"").as_str());
}

#[tokio::test]
async fn a_malformed_body_is_a_problem() {
    for body in ["", "{", "[", "{\"cards\":8}}", "\u{feff}{}"] {
        let (status, code, _) = asked(JSON, body).await;
        assert_eq!((status, code.as_str()), (400, "request.bad_json"), "{body}");
    }
    let (status, code, _) = asked(JSON, vec![0xff, 0xfe]).await;
    assert_eq!((status, code.as_str()), (400, "request.bad_json"));
}

#[tokio::test]
async fn an_unknown_or_wrong_field_is_a_problem_that_points_at_it() {
    let (status, code, body) = asked(JSON, r#"{"cards":8,"card":1}"#).await;
    assert_eq!((status, code.as_str()), (422, "request.bad_field"));
    assert_eq!(body["errors"][0]["pointer"], "/card");
    let (_, _, body) = asked(JSON, r#"{"cards":-1}"#).await;
    assert_eq!(body["errors"][0]["pointer"], "/cards");
}

#[tokio::test]
async fn another_content_type_is_a_problem() {
    for content_type in ["text/plain", "", "application/x-www-form-urlencoded"] {
        let (status, code, _) = asked(content_type, r#"{"cards":8}"#).await;
        assert_eq!((status, code.as_str()), (415, "request.not_json"), "{content_type}");
    }
}

#[tokio::test]
async fn too_large_a_body_is_a_problem_whether_its_length_is_told_or_not() {
    let large = vec![b' '; BODY_BYTES_MAX + 1];
    let (status, code, _) = asked(JSON, large.clone()).await;
    assert_eq!((status, code.as_str()), (413, "request.too_large"));
    let chunks = || Body::new(Body::from(large.clone()).map_frame(|frame| frame).boxed_unsync());
    let told =
        Request::post("/api/asks").header(header::CONTENT_TYPE, JSON).header(header::CONTENT_LENGTH, large.len());
    let (_, code, _) = problem(app().oneshot(told.body(chunks()).unwrap()).await.unwrap()).await;
    assert_eq!(code, "request.too_large");
    let (status, code, _) = problem(send(Method::POST, "/api/raw", "", chunks()).await).await;
    assert_eq!((status, code.as_str()), (413, "request.too_large"));
    let fits = send(Method::POST, "/api/raw", "", vec![b' '; BODY_BYTES_MAX]).await;
    assert_eq!(fits.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_wrong_path_or_query_is_a_problem() {
    let bad = |path: &'static str| async move { problem(send(Method::GET, path, "", "").await).await };
    assert_eq!(bad("/api/numbers/x").await.1, "request.bad_path");
    assert_eq!(bad("/api/numbers/1?limit=x").await.1, "request.bad_query");
    assert_eq!(bad("/api/numbers/1?limits=1").await.1, "request.bad_query");
    assert_eq!(text(send(Method::GET, "/api/numbers/1?limit=2", "", "").await).await, "1 Some(2)");
}

#[tokio::test]
async fn no_such_route_or_method_is_a_problem() {
    for path in ["/", "/api", "/api/none", "/api/asks/1"] {
        let (status, code, _) = problem(send(Method::GET, path, "", "").await).await;
        assert_eq!((status, code.as_str()), (404, "request.not_found"), "{path}");
    }
    let response = send(Method::DELETE, "/api/asks", "", "").await;
    assert_eq!(response.headers()[header::ALLOW], "POST");
    assert_eq!(problem(response).await.1, "request.method_not_allowed");
}

#[tokio::test]
async fn a_panic_is_a_problem_that_does_not_tell_its_text() {
    let (status, code, body) = problem(send(Method::GET, "/api/panics", "", "").await).await;
    assert_eq!((status, code.as_str()), (500, "server.failed"));
    assert!(!body.to_string().contains("secret"));
}

#[tokio::test]
async fn a_handlers_own_answer_is_left_as_it_is() {
    assert_eq!(problem(send(Method::GET, "/api/refuses", "", "").await).await.1, "order.wrong_state");
    let own = send(Method::GET, "/api/own", "", "").await;
    assert_eq!((own.status(), text(own).await.as_str()), (StatusCode::BAD_REQUEST, "7"));
}
