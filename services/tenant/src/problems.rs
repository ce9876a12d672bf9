//! What each refusal means and what to do about it, as pages for people: `GET /problems` and `GET /problems/{code}`,
//! which the `type` of a problem names.
//!
//! Owns: reading `docs/problems.md` and `openapi/refusals.md`, which are compiled in, and the pages made of them. Does
//! not own: the texts, nor the refusals; a test of the system compares the codes of both.
//! Invariants: a page is for everybody and the same for everybody; it loads nothing, runs nothing, and every text in it is
//! escaped; its links are relative, so that they hold behind a proxy that serves us below a path.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kit::{Kit, Path, Problem};
use std::fmt::Write;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../docs/problems.md");
const STATUSES: &str = include_str!("../../../openapi/refusals.md");
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = "body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;\
                     color:#1b1f24;background:#fff}h1{font-size:1.5rem;margin:0}code{font-size:.92em;background:#f0f2f4;\
                     padding:.1em .3em;border-radius:3px}dt{margin-top:1rem}dd{margin:0}.status{color:#59636e}\
                     @media(prefers-color-scheme:dark){body{color:#e6e9ed;background:#15181c}code{background:#272c33}\
                     a{color:#7db7ff}.status{color:#9aa4af}}";

static ALL: LazyLock<Vec<Explained>> = LazyLock::new(|| explained(TEXT, STATUSES));

/// What a code of a refusal means and what to do about it. Between backticks is what is typed or sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The stable code, such as `order.self_approval`.
    pub code: &'static str,
    /// The HTTP status, such as `409`, or `4xx` where it is that of the library below; empty where none is known.
    pub status: &'static str,
    /// One paragraph in English.
    pub en: String,
    /// One paragraph in Chinese; with line ends in it where there is more than one.
    pub zh: String,
}

/// Every code that is explained, in the order of the text.
pub fn problems() -> &'static [Explained] {
    &ALL
}

pub(crate) fn routes() -> Router<Kit> {
    Router::new().route("/problems", get(index)).route("/problems/{code}", get(one))
}

async fn index() -> Response {
    answer(list(problems()))
}

async fn one(Path(code): Path<String>) -> Result<Response, Problem> {
    let known = problems().iter().find(|known| known.code == code).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "request.not_found", "no refusal has this code")
            .with_hint("GET /problems lists every code")
    })?;
    Ok(answer(page(known)))
}

fn answer(html: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, html).into_response()
}

/// The sections `## code` of a text, each with the status that a table gives its code.
fn explained(text: &'static str, statuses: &'static str) -> Vec<Explained> {
    let status_of = |code: &str| {
        let row = |line: &'static str| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ");
        statuses.lines().filter_map(row).find(|(known, _)| *known == code).map_or("", |(_, status)| status)
    };
    let section = |section: &'static str| {
        let (code, body) = section.split_once('\n').unwrap_or((section, ""));
        let (en, zh) = body.trim().split_once("\n\n").unwrap_or((body.trim(), ""));
        let code = code.trim();
        Explained { code, status: status_of(code), en: en.replace('\n', " "), zh: zh.trim().to_owned() }
    };
    text.split("\n## ").skip(1).map(section).collect()
}

fn page(of: &Explained) -> String {
    let reason = of.status.parse::<StatusCode>().ok().and_then(|status| status.canonical_reason()).unwrap_or_default();
    let body = format!(
        "<h1><code>{}</code></h1>\n<p class=\"status\">HTTP {} {}</p>\n<p lang=\"en\">{}</p>\n<p lang=\"zh-CN\">{}</p>\n\
         <p><a href=\"../problems\">All problems · <span lang=\"zh-CN\">全部问题</span></a></p>\n",
        escaped(of.code),
        escaped(of.status),
        escaped(reason),
        prose(&of.en),
        prose(&of.zh),
    );
    document(of.code, &body)
}

fn list(all: &[Explained]) -> String {
    let mut body = String::from("<h1>Problems · <span lang=\"zh-CN\">问题</span></h1>\n<dl>\n");
    for of in all {
        let code = escaped(of.code);
        // A `String` takes all that is written to it.
        let _ = writeln!(
            body,
            "<dt><a href=\"problems/{code}\"><code>{code}</code></a> <span class=\"status\">{}</span></dt>\n\
             <dd lang=\"en\">{}</dd>\n<dd lang=\"zh-CN\">{}</dd>",
            escaped(of.status),
            prose(sentence(&of.en, ". ")),
            prose(sentence(&of.zh, "。")),
        );
    }
    body.push_str("</dl>\n");
    document("Problems", &body)
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{} · Kashi</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n{body}</body>\n</html>\n",
        escaped(title)
    )
}

/// The first sentence of a paragraph, with its full stop.
fn sentence<'a>(paragraph: &'a str, end: &str) -> &'a str {
    let first = paragraph.split_inclusive(end).next().unwrap_or_default();
    first.trim_end()
}

/// A paragraph in which what is between backticks is code.
fn prose(text: &str) -> String {
    let piece = |(at, piece): (usize, &str)| {
        if at % 2 == 0 { escaped(piece) } else { format!("<code>{}</code>", escaped(piece)) }
    };
    text.split('`').enumerate().map(piece).collect()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# R\n\n| code | status |\n|---|---|\n| `a.b` | 409 |\n| `a.c` | 4xx |\n";

    fn of(code: &'static str, status: &'static str, en: &str, zh: &str) -> Explained {
        Explained { code, status, en: en.into(), zh: zh.into() }
    }

    #[test]
    fn a_section_is_a_code_with_its_status_and_two_paragraphs() {
        let text = "# Head\n\nWords.\n\n## a.b\n\nOne\ntwo.\n\n一。\n\n## a.c\n\nThree.\n\n三。\n";
        assert_eq!(explained(text, TABLE), [of("a.b", "409", "One two.", "一。"), of("a.c", "4xx", "Three.", "三。")]);
    }

    #[test]
    fn what_a_section_lacks_is_empty_and_what_it_has_too_much_is_seen() {
        let text = "#\n\n## a.d\n\n## a.b\n\nOne.\n\n## a.c\n\nOne.\n\n一。\n\n二。";
        let expected = [of("a.d", "", "", ""), of("a.b", "409", "One.", ""), of("a.c", "4xx", "One.", "一。\n\n二。")];
        assert_eq!(explained(text, TABLE), expected);
        assert_eq!(explained("", TABLE), []);
    }

    #[test]
    fn a_page_tells_code_status_and_both_languages() {
        let html = page(&of("a.b", "409", "Run `kashi ps -a`.", "运行 `kashi ps -a`。"));
        for part in [
            "<title>a.b · Kashi</title>",
            "<h1><code>a.b</code></h1>",
            "HTTP 409 Conflict<",
            "<p lang=\"en\">Run <code>kashi ps -a</code>.</p>",
            "<p lang=\"zh-CN\">运行 <code>kashi ps -a</code>。</p>",
        ] {
            assert!(html.contains(part), "{part} is not in {html}");
        }
    }

    #[test]
    fn every_text_of_a_page_is_escaped() {
        let evil = "<script>\"'&`<b>`";
        let known = of("<i>", "<u>", evil, evil);
        for html in [page(&known), list(&[known])] {
            assert!(!["<script", "<b>", "<i>", "<u>"].iter().any(|tag| html.contains(tag)), "{html}");
            assert!(html.contains("&lt;script&gt;&quot;&#39;&amp;<code>&lt;b&gt;</code>"), "{html}");
        }
    }

    #[test]
    fn the_list_has_the_first_sentence_of_each() {
        let html = list(&[of("a.b", "409", "One `x.y`. Two.", "一。二。"), of("a.c", "4xx", "Three", "三")]);
        assert!(
            html.contains("<a href=\"problems/a.b\"><code>a.b</code></a> <span class=\"status\">409</span>"),
            "{html}"
        );
        assert!(html.contains("<dd lang=\"en\">One <code>x.y</code>.</dd>\n<dd lang=\"zh-CN\">一。</dd>"), "{html}");
        assert!(html.contains("<dd lang=\"en\">Three</dd>\n<dd lang=\"zh-CN\">三</dd>"), "{html}");
    }

    #[test]
    fn a_page_loads_nothing() {
        for html in problems().iter().map(page).chain([list(problems())]) {
            let loads = ["<script", "<link", "<img", "src=", "@import", "url(", "href=\"http", "href=\"//"];
            assert!(!loads.iter().any(|word| html.contains(word)), "{html}");
        }
    }
}
