//! Why a command did not do what was asked: the exit codes, and how a fault is told on standard error.
//!
//! | code | |
//! |---|---|
//! | 0 | done |
//! | 1 | unexpected |
//! | 2 | the command or a value is wrong |
//! | 3 | nobody is signed in, or the session is over |
//! | 4 | not permitted |
//! | 5 | there is no such thing |
//! | 6 | it is not possible as things stand |
//! | 7 | refused by quota, wallet, price or contract |
//! | 8 | the server cannot be reached, or took too long |
//! | 9 | done in part |
//! | 130 | interrupted |
//!
//! What becomes of a job has codes of its own (`outcome`). Invariants: these codes are promised to scripts; a refusal of
//! the server is told with its stable code; nothing of a fault is on standard output.

use crate::cli::output::Format;
use crate::cli::words::clean;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;

pub(crate) const DONE: u8 = 0;
pub(crate) const UNEXPECTED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const SIGNED_OUT: u8 = 3;
pub(crate) const FORBIDDEN: u8 = 4;
pub(crate) const NOT_FOUND: u8 = 5;
pub(crate) const CONFLICT: u8 = 6;
pub(crate) const EXHAUSTED: u8 = 7;
pub(crate) const UNREACHABLE: u8 = 8;
pub(crate) const IN_PART: u8 = 9;
pub(crate) const INTERRUPTED: u8 = 130;

/// Refusals for want of capacity, money or terms begin so.
const FOR_WANT: &[&str] = &["quota.", "wallet.", "price.", "contract.missing"];

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// A value is wrong.
    #[error("{0}")]
    Usage(String),
    /// There is no key or session for this server.
    #[error("nobody is signed in at {host}")]
    SignedOut { host: String },
    /// A name that nothing has.
    #[error("there is no {what} that is called `{name}`")]
    Unknown { what: &'static str, name: String },
    /// The server said no.
    #[error("{}", document["detail"].as_str().unwrap_or("the server refused"))]
    Refused { host: String, document: Value },
    /// It did not come to an answer.
    #[error("{host} cannot be reached: {cause}")]
    Unreachable { host: String, cause: String },
    /// The answer took too long.
    #[error("{host} did not answer within {seconds} seconds")]
    Late { host: String, seconds: u64 },
    /// The answer is none of this API.
    #[error("the answer of {host} is not understood: {what}")]
    BadAnswer { host: String, what: String },
    /// A file of ours cannot be used.
    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: String },
    /// Standard output or input failed.
    #[error("the terminal or pipe failed: {0}")]
    Stream(#[from] io::Error),
    /// Somebody pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl Fault {
    /// The refusal of a server from its status and body.
    pub(crate) fn refused(host: &str, status: u16, body: &[u8]) -> Self {
        let host = host.to_owned();
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        if document["code"].is_string() && document["detail"].is_string() {
            return Self::Refused { host, document };
        }
        let detail = format!("the server answered with status {status} and did not say why");
        let code = format!("http.{status}");
        let document = json!({ "type": "about:blank", "status": status, "detail": detail, "code": code });
        Self::Refused { host, document }
    }

    /// Its stable code.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Usage(_) => "client.usage",
            Self::SignedOut { .. } => "client.signed_out",
            Self::Unknown { .. } => "client.unknown_name",
            Self::Refused { document, .. } => document["code"].as_str().unwrap_or("http.refused"),
            Self::Unreachable { .. } => "client.unreachable",
            Self::Late { .. } => "client.timeout",
            Self::BadAnswer { .. } => "client.bad_answer",
            Self::File { .. } => "client.file",
            Self::Stream(_) => "client.stream",
            Self::Interrupted => "client.interrupted",
        }
    }

    /// What the process ends with.
    pub(crate) fn exit(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::SignedOut { .. } => SIGNED_OUT,
            Self::Unknown { .. } => NOT_FOUND,
            Self::Refused { document, .. } => exit_of(document["status"].as_u64().unwrap_or_default(), self.code()),
            Self::Unreachable { .. } | Self::Late { .. } => UNREACHABLE,
            Self::Stream(error) if error.kind() == io::ErrorKind::BrokenPipe => DONE,
            Self::BadAnswer { .. } | Self::File { .. } | Self::Stream(_) => UNEXPECTED,
            Self::Interrupted => INTERRUPTED,
        }
    }

    /// Whether the same request may succeed when it is sent again.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Late { .. } => true,
            Self::Refused { document, .. } => {
                document["status"].as_u64().is_some_and(|status| (502..=504).contains(&status))
            }
            Self::Usage(_)
            | Self::SignedOut { .. }
            | Self::Unknown { .. }
            | Self::BadAnswer { .. }
            | Self::File { .. }
            | Self::Stream(_)
            | Self::Interrupted => false,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::SignedOut { host } => Some(format!("kashi login --host {host}")),
            Self::Unreachable { host, .. } if is_local(host) => Some("is it up? kashi up starts it".to_owned()),
            Self::Unreachable { .. } | Self::Late { .. } => {
                Some("check --host or KASHI_HOST; what was asked may be sent again".to_owned())
            }
            Self::Refused { document, .. } => {
                let known = document["hint"].as_str().map(str::to_owned);
                let own = match self.code() {
                    "read.behind" => Some("run it again; kashi login forgets the position of a platform that is gone"),
                    "auth.bad_credentials" => None,
                    _ if self.exit() == SIGNED_OUT => Some("kashi login"),
                    _ => None,
                };
                own.map(str::to_owned).or(known)
            }
            Self::Usage(_)
            | Self::Unknown { .. }
            | Self::BadAnswer { .. }
            | Self::File { .. }
            | Self::Stream(_)
            | Self::Interrupted => None,
        }
    }

    /// As a problem document (RFC 9457).
    pub(crate) fn document(&self) -> Value {
        if let Self::Refused { document, .. } = self {
            return document.clone();
        }
        let mut document = json!({ "type": "about:blank", "code": self.code(), "detail": self.to_string() });
        if let Some(hint) = self.hint() {
            document["hint"] = hint.into();
        }
        document
    }

    /// As people read it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("error[{}]: {}\n", clean(self.code()), clean(&self.to_string()));
        let mut add = |label: &str, lines: Vec<String>| {
            for (at, line) in lines.iter().enumerate() {
                text.push_str(&format!("  {:<6}  {}\n", if at == 0 { label } else { "" }, clean(line)));
            }
        };
        if let Self::Refused { document, .. } = self {
            let errors = document["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
            add("why", errors.iter().map(field_error).collect());
        }
        add("try", self.hint().into_iter().collect());
        if let Self::Refused { host, document } = self {
            let quoted = [document["request_id"].as_str().map(str::to_owned), page(host, document)];
            let quoted: Vec<String> = quoted.into_iter().flatten().collect();
            add("ref", if quoted.is_empty() { vec![] } else { vec![quoted.join("   ")] });
        }
        text
    }

    /// Tells it on standard error, but for a pipe whose reader has gone, and gives the exit code.
    pub(crate) fn tell(&self, format: Format) -> u8 {
        let broken_pipe = matches!(self, Self::Stream(error) if error.kind() == io::ErrorKind::BrokenPipe);
        if !broken_pipe && !matches!(self, Self::Interrupted) {
            let text = if format == Format::Json { format!("{:#}\n", self.document()) } else { self.text() };
            // Where standard error is closed there is nobody to tell.
            drop(io::stderr().write_all(text.as_bytes()));
        }
        self.exit()
    }
}

/// Where the server that refused explains the code.
fn page(host: &str, document: &Value) -> Option<String> {
    let path = format!("/problems/{}", document["code"].as_str()?);
    (document["type"] == path.as_str()).then(|| format!("{host}{path}"))
}

fn field_error(error: &Value) -> String {
    let part = |name: &str| error[name].as_str().unwrap_or_default();
    format!("{}: {}", part("pointer"), part("detail"))
}

/// Whether a server is on this machine.
pub(crate) fn is_local(host: &str) -> bool {
    let url = reqwest::Url::parse(host).ok();
    let name = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    name == "localhost" || name == "[::1]" || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

fn exit_of(status: u64, code: &str) -> u8 {
    match status {
        400 | 405 | 413 | 415 | 422 => USAGE,
        401 => SIGNED_OUT,
        403 => FORBIDDEN,
        404 => NOT_FOUND,
        409 if FOR_WANT.iter().any(|start| code.starts_with(start)) => EXHAUSTED,
        409 | 412 | 428 => CONFLICT,
        429 | 502..=504 => UNREACHABLE,
        _ => UNEXPECTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> Fault {
        let body = json!({ "status": status, "code": code, "detail": "d" });
        Fault::refused("http://h", status, body.to_string().as_bytes())
    }

    #[test]
    fn a_refusal_has_the_promised_exit_code() {
        for (status, code, exit) in [
            (400, "request.bad_query", 2),
            (422, "order.bad_quantity", 2),
            (401, "auth.expired", 3),
            (403, "auth.forbidden", 4),
            (404, "order.not_found", 5),
            (409, "order.wrong_state", 6),
            (409, "price_book.too_early", 6),
            (409, "contract.already_exists", 6),
            (409, "quota.nothing_ordered", 7),
            (409, "wallet.insufficient", 7),
            (409, "price.missing", 7),
            (409, "contract.missing", 7),
            (503, "read.behind", 8),
            (500, "server.failed", 1),
        ] {
            assert_eq!(refused(status, code).exit(), exit, "{status} {code}");
        }
    }

    #[test]
    fn our_own_faults_have_theirs() {
        let host = || "http://h".to_owned();
        assert_eq!(Fault::Usage(String::new()).exit(), 2);
        assert_eq!(Fault::SignedOut { host: host() }.exit(), 3);
        assert_eq!(Fault::Unknown { what: "tenant", name: "x".into() }.exit(), 5);
        assert_eq!(Fault::Unreachable { host: host(), cause: String::new() }.exit(), 8);
        assert_eq!(Fault::Late { host: host(), seconds: 1 }.exit(), 8);
        assert_eq!(Fault::BadAnswer { host: host(), what: String::new() }.exit(), 1);
        assert_eq!(Fault::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit(), 0);
        assert_eq!(Fault::from(io::Error::other("full")).exit(), 1);
        assert_eq!(Fault::Interrupted.exit(), 130);
    }

    #[test]
    fn is_told_with_why_and_what_to_try() {
        let document = json!({
            "type": "/problems/request.bad_text", "status": 422, "code": "request.bad_text", "detail": "`reason`: too\u{1b}[1m long", "hint": "shorten it",
            "errors": [{ "pointer": "/reason", "detail": "at most 200" }, { "pointer": "/b", "detail": "c" }],
            "request_id": "req_1",
        });
        let fault = Fault::Refused { host: "https://h".into(), document };
        let expected = "error[request.bad_text]: `reason`: too [1m long\n\
                        \x20 why     /reason: at most 200\n\
                        \x20         /b: c\n\
                        \x20 try     shorten it\n\
                        \x20 ref     req_1   https://h/problems/request.bad_text\n";
        assert_eq!(fault.text(), expected);
    }

    #[test]
    fn names_a_page_of_the_server_only_where_the_problem_does() {
        let text = |document: Value| Fault::Refused { host: "http://h:1/p".into(), document }.text();
        let own = json!({ "type": "/problems/a.b", "code": "a.b", "detail": "d" });
        assert!(text(own).ends_with("  ref     http://h:1/p/problems/a.b\n"));
        for about in ["about:blank", "/problems/a.c", "https://elsewhere/problems/a.b"] {
            let with = |id: &str| text(json!({ "type": about, "code": "a.b", "detail": "d", "request_id": id }));
            assert!(with("req_1").ends_with("  ref     req_1\n"), "{about}");
        }
        assert!(!text(json!({ "code": "a.b", "detail": "d" })).contains("ref"));
    }

    #[test]
    fn an_answer_that_is_no_problem_is_told_by_its_status() {
        let fault = Fault::refused("http://h", 502, b"<html>Bad Gateway</html>");
        assert_eq!((fault.code(), fault.exit(), fault.may_pass()), ("http.502", 8, true));
        assert_eq!(fault.document()["status"], 502);
    }

    #[test]
    fn says_what_to_do_about_a_server_that_is_away() {
        let fault = |host: &str| Fault::Unreachable { host: host.into(), cause: "connection refused".into() }.text();
        assert!(fault("http://127.0.0.1:8030").contains("kashi up"));
        assert!(!fault("http://10.0.0.1:8030").contains("kashi up"));
        assert!(!fault("http://localhost.example.com").contains("kashi up"));
        assert!(
            Fault::SignedOut { host: "http://h".into() }.text().contains("  try     kashi login --host http://h\n")
        );
    }
}
