//! Jobs as they are: listing, showing, why, cancelling.
//!
//! Invariant: a waiting job is shown with the reason that the planner gave, and with none where it gave none.

use crate::cli::api::Api;
use crate::cli::fault::{DONE, Fault, IN_PART};
use crate::cli::outcome::is_over;
use crate::cli::output::{Form, Format, Kind, Output, column, instant, text};
use crate::cli::words;
use domain::kernel::JobId;
use serde_json::{Value, json};

/// For how many waiting jobs of a list the reason is asked.
const REASONS_MAX: usize = 20;

/// Which jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Those that have ended too.
    #[arg(short, long)]
    all: bool,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// One job.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    #[arg(value_name = "JOB")]
    id: JobId,
}

/// Cancel jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    #[arg(value_name = "JOB", required = true)]
    ids: Vec<JobId>,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
}

pub(crate) const JOB: Kind = Kind {
    name: "Job",
    id: "id",
    columns: &[
        column("JOB", "作业", "id", Form::Text),
        column("NAME", "名称", "name", Form::Text),
        column("STATUS", "状态", "status", Form::Word),
        column("RESOURCE", "资源", "resource", Form::Text),
        column("UNITS", "数量", "milli", Form::Milli),
        column("SUBMITTED", "提交时间", "submitted_at", Form::Time),
        column("STARTED", "开始时间", "started_at", Form::Time),
        column("ENDED", "结束时间", "ended_at", Form::Time),
        column("DETAIL", "说明", "detail", Form::Text),
    ],
    more: &[
        column("EXIT CODE", "退出码", "exit_code", Form::Text),
        column("COMMAND", "命令", "command", Form::Text),
        column("NODE", "节点", "node", Form::Text),
        column("CARDS", "卡号", "cards", Form::Text),
        column("LEASE", "占用", "lease", Form::Text),
        column("CANCELLING", "取消中", "cancel_requested", Form::Bool),
        column("TENANT", "租户", "tenant", Form::Text),
        column("SUBMITTED BY", "提交人", "submitted_by", Form::Text),
    ],
};

impl List {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let query = [("all", self.all.to_string())];
        let (mut jobs, more) = api.list("/jobs", &query, self.limit as usize).await?;
        if out.format() == Format::Table {
            let waits = |job: &&mut Value| matches!(job["status"].as_str(), Some("submitted" | "queued"));
            for job in jobs.iter_mut().filter(waits).take(REASONS_MAX) {
                let reason = why(api, out, &text(&job["id"])).await?;
                job["detail"] = reason["text"].clone();
            }
        }
        out.list(&JOB, &jobs)?;
        if more {
            out.note("there are more: --limit");
        }
        Ok(())
    }
}

impl One {
    pub(crate) async fn show(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        out.one(&JOB, &api.get(&format!("/jobs/{}", self.id), &[]).await?)
    }

    pub(crate) async fn why(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let reason = why(api, out, &self.id.to_string()).await?;
        match out.format() {
            Format::Json => {
                let mut document = reason;
                document["kind"] = "Why".into();
                out.json(document)
            }
            Format::Name => out.line(&text(&reason["status"])),
            Format::Table => sentences(out, &reason).iter().try_for_each(|line| out.line(line)),
        }
    }
}

async fn why(api: &Api, out: &Output, job: &str) -> Result<Value, Fault> {
    api.get(&format!("/jobs/{job}/why"), &[("lang", out.lang().code().to_owned())]).await
}

/// The state, the reason, and what to do.
fn sentences(out: &Output, reason: &Value) -> Vec<String> {
    let lang = out.lang();
    let status = words::word(&text(&reason["status"]), lang);
    let since = instant(&reason["since"]).map(words::time);
    let state = match since {
        Some(since) => format!("{status}  {} {since}", lang.say("since", "自")),
        None => status,
    };
    let mut lines = vec![state, text(&reason["text"])];
    let advice = text(&reason["advice"]);
    if !advice.is_empty() {
        lines.push(format!("{}  {advice}", lang.say("try", "建议")));
    }
    lines
}

impl Cancel {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<u8, Fault> {
        let body = json!({ "reason": self.reason });
        let (mut asked, mut codes) = (vec![], vec![]);
        for id in &self.ids {
            match api.post(&format!("/jobs/{id}/cancel"), Some(&body)).await {
                Ok(changed) => asked.push(changed),
                Err(fault) => codes.push(fault.tell(out.format())),
            }
        }
        let one = match asked.as_slice() {
            [one] => one,
            [] => return Ok(codes.first().copied().unwrap_or(DONE)),
            several if out.format() == Format::Json => {
                out.list(&JOB, several)?;
                return Ok(part(&codes));
            }
            several => {
                several.iter().try_for_each(|job| out.line(&text(&job["id"])))?;
                out.note("their end is asked for: kashi wait");
                return Ok(part(&codes));
            }
        };
        let job = api.get(&format!("/jobs/{}", text(&one["id"])), &[]).await.unwrap_or_else(|_| one.clone());
        let note = if is_over(&job) { "it is over" } else { "its end is asked for: kashi wait" };
        out.done(&JOB, &job, note)?;
        Ok(part(&codes))
    }
}

fn part(codes: &[u8]) -> u8 {
    if codes.is_empty() { DONE } else { IN_PART }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::tests::written;
    use crate::cli::words::Lang;

    fn job() -> Value {
        json!({
            "id": "job_1", "name": "train", "status": "failed", "resource": "core", "milli": 500, "exit_code": 3,
            "detail": "exit code 3", "command": "sh -c x", "cancel_requested": false,
        })
    }

    #[test]
    fn a_job_is_shown_whole() {
        let shown = written(Format::Table, Lang::En, |out| out.one(&JOB, &job()));
        assert_eq!(
            shown,
            "JOB         job_1\nNAME        train\nSTATUS      failed\nRESOURCE    core\nUNITS       0.5\n\
             DETAIL      exit code 3\nEXIT CODE   3\nCOMMAND     sh -c x\nCANCELLING  no\n"
        );
    }

    #[test]
    fn a_reason_says_what_to_do() {
        let reason = json!({ "status": "queued", "text": "卡不够。", "advice": "等等。", "since": null });
        let said =
            written(Format::Table, Lang::Zh, |out| sentences(out, &reason).iter().try_for_each(|line| out.line(line)));
        assert_eq!(said, "排队中\n卡不够。\n建议  等等。\n");
    }
}
