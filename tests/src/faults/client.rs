//! A client that wants each thing done once, whatever becomes of its calls, and remembers what was acknowledged.
//!
//! Owns: the keys, the retries, the acknowledgements. Does not own: what is asked for.
//! Invariant: a call that is repeated is the same call, key and body.

use crate::world::{PATIENCE, Person, Reply};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::task::JoinHandle;

/// A write that is to be done once.
#[derive(Debug, Clone)]
pub struct Ask {
    pub key: String,
    pub path: String,
    pub body: Value,
    /// The category of the stream that it makes or changes.
    pub of: &'static str,
    /// Refusals that are an answer too.
    pub or: &'static [&'static str],
}

/// What was said to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    pub key: String,
    /// The stream that was made or changed.
    pub stream: String,
    /// The position that the answer named: of the last event of that stream that the command knew of or made.
    pub position: i64,
}

/// What one call brought.
#[derive(Debug)]
pub enum Answer {
    Done(Ack, String),
    Refused(String),
    /// No answer, or one that says "later".
    None,
}

/// Everything that was ever acknowledged.
#[derive(Debug, Default)]
pub struct Acks(pub Vec<Ack>);

/// Asks once.
pub async fn once(who: &Person, ask: &Ask) -> Answer {
    let body = Some(ask.body.clone());
    let Ok(reply) = who.attempt(Method::POST, &ask.path, body, Some(&ask.key)).await else { return Answer::None };
    answer(ask, reply)
}

/// Asks once, beside whatever else happens.
pub fn begun(who: &Person, ask: &Ask) -> JoinHandle<Answer> {
    let (who, ask) = (who.clone(), ask.clone());
    tokio::spawn(async move { once(&who, &ask).await })
}

fn answer(ask: &Ask, reply: Reply) -> Answer {
    let Reply { status, position, body, .. } = reply;
    if status.is_success() {
        let id = body["id"].as_str().unwrap_or_default().to_owned();
        let stream = format!("{}-{id}", ask.of);
        return Answer::Done(Ack { key: ask.key.clone(), stream, position }, id);
    }
    let code = body["code"].as_str().unwrap_or_default().to_owned();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Answer::None;
    }
    assert!(ask.or.contains(&code.as_str()), "{} was refused: {status} {body}", ask.path);
    Answer::Refused(code)
}

impl Acks {
    /// Asks until there is an answer; the id of what was made or changed, or `None` where it was refused.
    pub async fn insist(&mut self, who: &Person, ask: &Ask) -> Option<String> {
        let answered = async {
            loop {
                match once(who, ask).await {
                    Answer::None => tokio::task::yield_now().await,
                    answer @ (Answer::Done(..) | Answer::Refused(_)) => return answer,
                }
            }
        };
        let answer = tokio::time::timeout(PATIENCE, answered).await;
        self.hear(answer.unwrap_or_else(|_| panic!("no answer to {ask:?}")))
    }

    /// Keeps an answer.
    pub fn hear(&mut self, answer: Answer) -> Option<String> {
        let Answer::Done(ack, id) = answer else { return None };
        if let Some(first) = self.0.iter().find(|known| known.key == ack.key) {
            assert_eq!(*first, ack, "the same key was answered otherwise");
        } else {
            self.0.push(ack);
        }
        Some(id)
    }
}
