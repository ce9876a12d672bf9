//! Following jobs: their output as it grows, and their end.
//!
//! Invariants: output is written byte by byte as the job wrote it, each byte once, also where the server was away in
//! between; a waiting command goes on when the server comes back.

use crate::cli::Session;
use crate::cli::api::Api;
use crate::cli::fault::{DONE, Fault, NOT_FOUND};
use crate::cli::jobs::JOB;
use crate::cli::outcome::{self, Away, NO_SUCH_JOB, NOT_FINISHED};
use crate::cli::output::{Format, Output, text};
use domain::kernel::JobId;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long the server waits for output before it answers without.
const WAIT_S: u64 = 20;
const AGAIN: Duration = Duration::from_millis(500);

/// A job's output.
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    #[arg(value_name = "JOB")]
    id: JobId,
    /// Go on until the job has ended.
    #[arg(short, long)]
    follow: bool,
    /// Begin with the last so many lines.
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// End with the code of what became of the job.
    #[arg(long, requires = "follow")]
    status: bool,
}

/// Wait for jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    #[arg(value_name = "JOB", required = true)]
    ids: Vec<JobId>,
    /// End with the job's own exit code.
    #[arg(long)]
    job_exit: bool,
}

impl Logs {
    pub(crate) async fn run(self, session: &Session, out: &mut Output) -> Result<u8, Fault> {
        let job = self.id.to_string();
        let until = session.until();
        let mut offset = 0;
        if let Some(lines) = self.tail {
            let (kept, end) = last_lines(&session.api, &job, lines).await?;
            offset = end;
            out.raw(&kept)?;
        }
        let copied = copy(&session.api, &job, offset, self.follow, out);
        if within(until, copied).await?.is_none() {
            return Ok(NOT_FINISHED);
        }
        if !self.status {
            return Ok(DONE);
        }
        Ok(outcome::code(&outcome::wait(&session.api, &job, until).await?))
    }
}

impl Wait {
    pub(crate) async fn run(self, session: &Session, out: &mut Output) -> Result<u8, Fault> {
        let until = session.until();
        let (mut jobs, mut code) = (vec![], DONE);
        for id in &self.ids {
            let ended = match outcome::wait(&session.api, &id.to_string(), until).await {
                Ok(job) => {
                    let ended = outcome::code_of(&job, self.job_exit);
                    jobs.push(job);
                    ended
                }
                Err(fault) if fault.exit() == NOT_FOUND => {
                    fault.tell(out.format());
                    NO_SUCH_JOB
                }
                Err(fault) => return Err(fault),
            };
            // Of several jobs the first that did not end well decides.
            code = if code == DONE { ended } else { code };
        }
        match (out.format(), self.ids.as_slice(), jobs.as_slice()) {
            (Format::Json, [_], [one]) => out.one(&JOB, one)?,
            _ => out.list(&JOB, &jobs)?,
        }
        Ok(code)
    }
}

impl Session {
    /// Until when a job is waited for.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.patience.map(|patience| Instant::now() + patience)
    }
}

/// What comes of something until then; nothing where it takes longer.
pub(crate) async fn within<T>(
    until: Option<Instant>,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<Option<T>, Fault> {
    match until {
        None => work.await.map(Some),
        Some(until) => timeout_at(until, work).await.ok().transpose(),
    }
}

/// Copies output from an offset on: what there is, or everything until the job's end.
pub(crate) async fn copy(api: &Api, job: &str, mut offset: u64, follow: bool, out: &mut Output) -> Result<(), Fault> {
    let wait_s = if follow { WAIT_S } else { 0 };
    let mut away = Away::default();
    loop {
        let part = match api.output(job, offset, wait_s).await {
            Ok(part) => part,
            Err(fault) if follow => {
                away.bear(fault)?;
                sleep(AGAIN).await;
                continue;
            }
            Err(fault) => return Err(fault),
        };
        away = Away::default();
        out.raw(&part.bytes)?;
        offset = part.next;
        if part.end || (part.bytes.is_empty() && !follow) {
            return Ok(());
        }
    }
}

/// The last lines of the output that there is, and where that ends.
async fn last_lines(api: &Api, job: &str, lines: usize) -> Result<(Vec<u8>, u64), Fault> {
    let (mut kept, mut offset) = (vec![], 0);
    loop {
        let part = api.output(job, offset, 0).await?;
        kept.extend_from_slice(&part.bytes);
        kept = tail(kept, lines);
        offset = part.next;
        if part.bytes.is_empty() || part.end {
            return Ok((kept, offset));
        }
    }
}

/// The last lines of a text; one that has not ended yet is a line too.
fn tail(text: Vec<u8>, lines: usize) -> Vec<u8> {
    let body = text.strip_suffix(b"\n").unwrap_or(&text);
    let Some(before) = lines.checked_sub(1) else { return vec![] };
    let breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match breaks.map(|(at, _)| at).nth(before) {
        Some(at) => text[at + 1..].to_vec(),
        None => text,
    }
}

/// What to say of a job that is over.
pub(crate) fn ending(job: &Value) -> String {
    let detail = text(&job["detail"]);
    let status = text(&job["status"]);
    if detail.is_empty() { format!("the job is {status}") } else { format!("the job is {status}: {detail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        let of = |text: &str, lines| String::from_utf8(tail(text.into(), lines)).unwrap();
        assert_eq!(of("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(of("a\nb\nc", 2), "b\nc");
        assert_eq!(of("a\n\n", 1), "\n");
        assert_eq!(of("a\nb\n", 9), "a\nb\n");
        assert_eq!((of("a\n", 0), of("", 3)), (String::new(), String::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_gives_nothing() {
        let until = Instant::now() + Duration::from_secs(1);
        assert!(matches!(within(Some(until), std::future::pending::<Result<(), Fault>>()).await, Ok(None)));
        assert!(matches!(within(Some(until), async { Ok(1) }).await, Ok(Some(1))));
        assert!(within(None, async { Err::<(), _>(Fault::Interrupted) }).await.is_err());
    }
}
