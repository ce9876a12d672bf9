//! Why a job is where it is: what it waits for, with the numbers and what to do, or how far it has come.
//!
//! Owns: the sentence for a job that does not wait for a place. Does not own: the planner's reasons and their words
//! (`scheduler-core`).
//! Invariant: there is an answer for a job in any state.

use crate::describe::needs;
use crate::jobs::seen;
use crate::tree;
use axum::extract::State;
use domain::flows::quota_key;
use domain::quota::Allowance;
use kit::permission::JobRead;
use kit::{Can, Fresh, Kit, Path, Problem, Query};
use projections::jobs::{Job, JobStatus};
use scheduler_core::{Lang, Why};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Time;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new().routes(needs::<JobRead>(routes!(why_job)))
}

/// In which language.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Said {
    /// `zh` or `en`; Chinese, unless it is said.
    #[serde(default = "chinese")]
    #[param(value_type = Option<String>)]
    lang: Lang,
}

fn chinese() -> Lang {
    Lang::Zh
}

/// Why a job is where it is.
#[derive(Debug, Serialize, ToSchema)]
struct Reason {
    status: JobStatus,
    /// A code, or an object with the code as `reason` and the numbers beside it.
    reason: Value,
    /// What is the matter.
    text: String,
    /// What to do.
    advice: String,
    /// Since when that is so, where it is known.
    since: Option<Time>,
}

/// Ask why a job waits, or how far it has come.
#[utoipa::path(
    get,
    path = "/jobs/{id}/why",
    params(("id" = store::JobId, Path), Said),
    responses((status = 200, body = Reason, description = "The reason."))
)]
async fn why_job(
    State(kit): State<Kit>,
    can: Can<JobRead>,
    _: Fresh,
    Path(id): Path<store::JobId>,
    Query(Said { lang }): Query<Said>,
) -> Result<axum::Json<Reason>, Problem> {
    let job = seen(&kit, can.scope(), id).await?;
    Ok(axum::Json(match typed(&kit, &job).await? {
        Some((why, since)) => Reason {
            status: job.status,
            reason: serde_json::to_value(&why).unwrap_or_default(),
            text: why.render(lang),
            advice: why.advice(lang),
            since,
        },
        None => plain(&job, lang),
    }))
}

/// The planner's reason, or that the quota is used up, or that the tenant is suspended.
async fn typed(kit: &Kit, job: &Job) -> Result<Option<(Why, Option<Time>)>, Problem> {
    if !matches!(job.status, JobStatus::Submitted | JobStatus::Queued) {
        return Ok(None);
    }
    let tenant = job.tenant.0;
    let above = tree::above(kit, tenant).await?;
    if let Some((node, _)) = tree::suspended(kit, tenant, &above).await? {
        return Ok(Some((Why::TenantSuspended { tenant: node }, None)));
    }
    match job.status {
        JobStatus::Submitted if job.detail.is_some() => {
            let resource = job.resource.0.clone();
            let quota = kit.executor.load::<Allowance>(quota_key(above.root(tenant), &resource)).await?.state;
            let free_milli = quota.at(&above.below_root(tenant)).free_milli();
            Ok(Some((Why::QuotaExceeded { resource, wanted_milli: job.milli, free_milli }, None)))
        }
        JobStatus::Queued => {
            let told = kit.runtime.why(job.id.0).await?;
            Ok(told.and_then(|(why, since)| Some((serde_json::from_str(&why).ok()?, Some(since)))))
        }
        JobStatus::Submitted
        | JobStatus::Starting
        | JobStatus::Running
        | JobStatus::Succeeded
        | JobStatus::Failed
        | JobStatus::Cancelled
        | JobStatus::TimedOut
        | JobStatus::Refused => Ok(None),
    }
}

fn plain(job: &Job, lang: Lang) -> Reason {
    let detail = job.detail.as_deref().unwrap_or_default();
    let since = match job.status {
        JobStatus::Submitted => Some(job.submitted_at),
        JobStatus::Running => job.started_at,
        JobStatus::Queued | JobStatus::Starting => None,
        JobStatus::Succeeded | JobStatus::Failed | JobStatus::Cancelled | JobStatus::TimedOut | JobStatus::Refused => {
            job.ended_at
        }
    };
    let (reason, zh, en) = words(job.status);
    let (text, advice) = match lang {
        Lang::Zh => zh,
        Lang::En => en,
    };
    let stop = match lang {
        Lang::Zh => "。",
        Lang::En => ".",
    };
    let text = match (job.status.is_final() && !detail.is_empty(), lang) {
        (true, Lang::Zh) => format!("{text}：{detail}{stop}"),
        (true, Lang::En) => format!("{text}: {detail}{stop}"),
        (false, _) => format!("{text}{stop}"),
    };
    Reason { status: job.status, reason: reason.into(), text, advice: advice.into(), since }
}

type Words = (&'static str, &'static str);

/// The code of a state, and its text and advice in Chinese and in English.
fn words(status: JobStatus) -> (&'static str, Words, Words) {
    match status {
        JobStatus::Submitted => (
            "admitting",
            ("作业刚提交，正在检查配额和余额", "稍候再看。"),
            ("It was just submitted; quota and wallet are being checked", "Look again in a moment."),
        ),
        JobStatus::Queued => (
            "planning",
            ("配额和余额已占好，等待下一轮调度", "稍候再看。"),
            ("Quota and money are held; it waits for the next plan", "Look again in a moment."),
        ),
        JobStatus::Starting => (
            "starting",
            ("已分到节点，进程正在启动", "若长时间不启动，请检查该节点的代理程序。"),
            ("It has its place, and its process is being started", "If that takes long, look at the node's agent."),
        ),
        JobStatus::Running => ("running", ("正在运行", "无需处理。"), ("It runs", "Nothing to do.")),
        JobStatus::Succeeded => ("succeeded", ("已成功结束", "无需处理。"), ("It ended well", "Nothing to do.")),
        JobStatus::Failed => (
            "failed",
            ("已失败", "请查看作业输出，修正后重新提交。"),
            ("It failed", "Read its output, mend the cause and submit it again."),
        ),
        JobStatus::Cancelled => (
            "cancelled",
            ("已取消", "如仍需要，请重新提交。"),
            ("It was cancelled", "Submit it again if it is needed."),
        ),
        JobStatus::TimedOut => (
            "timed_out",
            ("已超过时限而被结束", "请加大时限后重新提交。"),
            ("Its time was over", "Submit it again with a longer time limit."),
        ),
        JobStatus::Refused => (
            "refused",
            ("未被受理", "请按原因补足配额、余额或价格后重新提交。"),
            ("It was not let in", "Order more, pay in, or have a price published, and submit it again."),
        ),
    }
}
