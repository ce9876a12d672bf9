//! The pages that explain refusals: for everybody, and for each `type` that a problem names.

use crate::room::Room;

#[tokio::test]
async fn every_refusal_names_a_page_that_anybody_may_read() {
    let room = Room::empty().await;
    let refused = room.nobody("GET", "/api/v1/jobs", None).await;
    assert_eq!(refused.is(), (401, "auth.missing"));
    let page = room.nobody("GET", &refused.text("type"), None).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let html = String::from_utf8(page.bytes).unwrap();
    assert!(html.contains("<title>auth.missing") && html.contains("HTTP 401 Unauthorized"), "{html}");
}

#[tokio::test]
async fn the_list_leads_to_every_page() {
    let room = Room::empty().await;
    let list = room.nobody("GET", "/problems", None).await;
    assert_eq!(list.status, 200);
    let html = String::from_utf8(list.bytes).unwrap();
    let links: Vec<&str> = html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(links.len(), ::tenant::problems().len());
    for link in links {
        let page = room.nobody("GET", &format!("/{link}"), None).await;
        assert_eq!(page.status, 200, "{link}");
    }
}

#[tokio::test]
async fn an_unknown_code_has_no_page_and_is_not_shown_again() {
    let room = Room::empty().await;
    for code in ["order.unheard_of", "%3Cscript%3E", "order", "..%2f..%2fetc", "order.self_approval%20"] {
        let answer = room.nobody("GET", &format!("/problems/{code}"), None).await;
        assert_eq!(answer.is(), (404, "request.not_found"), "{code}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(!String::from_utf8(answer.bytes).unwrap().contains("script"));
    }
    assert_eq!(room.nobody("GET", "/problems/%ff", None).await.is(), (400, "request.bad_path"));
    assert_eq!(room.nobody("POST", "/problems", None).await.is(), (405, "request.method_not_allowed"));
}
