//! What became of a job, as an exit code.
//!
//! | code | |
//! |---|---|
//! | 0 | it ended well |
//! | 100 | it failed, ran out of its time, or was not let in |
//! | 101 | it has not ended yet |
//! | 102 | there is no such job |
//! | 103 | it was cancelled |
//!
//! Invariant: these codes are promised to scripts, and are none of those of `fault`.

use crate::cli::api::Api;
use crate::cli::fault::{DONE, Fault};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub(crate) const FAILED: u8 = 100;
pub(crate) const NOT_FINISHED: u8 = 101;
pub(crate) const NO_SUCH_JOB: u8 = 102;
pub(crate) const CANCELLED: u8 = 103;

/// How long to wait before a job is looked at again; longer each time.
const AGAIN: Duration = Duration::from_millis(200);
const AGAIN_MAX: Duration = Duration::from_secs(2);

/// Whether nothing will change any more.
pub(crate) fn is_over(job: &Value) -> bool {
    code(job) != NOT_FINISHED
}

/// The code of a job's state.
pub(crate) fn code(job: &Value) -> u8 {
    match job["status"].as_str() {
        Some("succeeded") => DONE,
        Some("failed" | "timed_out" | "refused") => FAILED,
        Some("cancelled") => CANCELLED,
        _ => NOT_FINISHED,
    }
}

/// The job's own exit code, where it has one; the code of its state otherwise.
pub(crate) fn own_code(job: &Value) -> u8 {
    job["exit_code"].as_i64().and_then(|code| u8::try_from(code).ok()).unwrap_or_else(|| code(job))
}

/// The code of a job, its own if that is asked for.
pub(crate) fn code_of(job: &Value, own: bool) -> u8 {
    if own { own_code(job) } else { code(job) }
}

/// The job when it is over, or as it is at that instant. A server that is away meanwhile is waited for as well.
pub(crate) async fn wait(api: &Api, job: &str, until: Option<Instant>) -> Result<Value, Fault> {
    let mut pause = AGAIN;
    let mut away = Away::default();
    loop {
        let is_late = until.is_some_and(|until| Instant::now() >= until);
        match api.get(&format!("/jobs/{job}"), &[]).await {
            Ok(job) if is_late || is_over(&job) => return Ok(job),
            Ok(_) => away = Away::default(),
            Err(fault) if is_late => return Err(fault),
            Err(fault) => away.bear(fault)?,
        }
        let left = until.map_or(pause, |until| until.saturating_duration_since(Instant::now()));
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(AGAIN_MAX);
    }
}

/// How long a server has been away.
#[derive(Debug, Default)]
pub(crate) struct Away(Option<Instant>);

impl Away {
    /// How long a server may be away while a job is waited for: a restart takes less.
    const MAX: Duration = Duration::from_secs(60);

    /// Bears a fault that may pass; gives it back where that has lasted too long.
    pub(crate) fn bear(&mut self, fault: Fault) -> Result<(), Fault> {
        let since = *self.0.get_or_insert_with(Instant::now);
        if fault.may_pass() && since.elapsed() < Self::MAX { Ok(()) } else { Err(fault) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_state_has_the_promised_code() {
        for (status, expected) in [
            ("succeeded", 0),
            ("failed", 100),
            ("timed_out", 100),
            ("refused", 100),
            ("submitted", 101),
            ("queued", 101),
            ("starting", 101),
            ("running", 101),
            ("cancelled", 103),
        ] {
            let job = json!({ "status": status });
            assert_eq!((code(&job), is_over(&job)), (expected, expected != 101), "{status}");
        }
    }

    #[test]
    fn a_job_without_a_code_of_its_own_has_that_of_its_state() {
        assert_eq!(code_of(&json!({ "status": "failed", "exit_code": 3 }), true), 3);
        assert_eq!(code_of(&json!({ "status": "failed", "exit_code": 3 }), false), 100);
        assert_eq!(own_code(&json!({ "status": "cancelled", "exit_code": null })), 103);
        assert_eq!(own_code(&json!({ "status": "failed", "exit_code": 70_000 })), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_be_away_for_a_while() {
        let fault = || Fault::Unreachable { host: "http://h".into(), cause: "refused".into() };
        let mut away = Away::default();
        away.bear(fault()).unwrap();
        tokio::time::advance(Away::MAX).await;
        assert_eq!(away.bear(fault()).unwrap_err().exit(), 8);
        assert!(Away::default().bear(Fault::Usage(String::new())).is_err());
    }
}
