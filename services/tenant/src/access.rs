//! Evidence of access, for auditors: refused commands, sign-ins, reads of personal data, exports.
//!
//! Owns: reading it from the log. Does not own: writing it (`kit::access`).
//! Invariant: a page goes on where the last one ended, also where nothing on it was shown.

use crate::describe::needs;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::kernel::Recorded;
use kit::access::{CATEGORY, Evidence, What};
use kit::permission::AuditRead;
use kit::{Can, Kit, Problem, Query};
use serde::{Deserialize, Serialize};
use store::{Page, Slice, Time};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

/// How many events are read at once.
const READ: usize = 500;
/// How often, for one page.
const READS_MAX: usize = 20;
/// How far the clocks of two processes may be apart.
const CLOCKS_APART: TimeDelta = TimeDelta::minutes(5);

type Accesses = Slice<Access>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new().routes(needs::<AuditRead>(routes!(list_access)))
}

/// Which evidence, and which part of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Not before this instant.
    from: Option<Time>,
    /// Of this member or key only, by its id; `nobody` for who was not known.
    actor: Option<String>,
    /// How many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Something that was done or tried.
#[derive(Debug, Serialize, ToSchema)]
struct Access {
    /// Its place in the log.
    position: i64,
    /// When.
    at: Time,
    /// A member or key by its id, or `nobody`.
    actor: String,
    /// Where the actor belongs.
    tenant: store::TenantId,
    what: What,
    /// A route, or an act such as `member.profile`.
    operation: String,
    /// The ids that it was about.
    things: Vec<String>,
    /// The stable code of the refusal, if it was refused.
    code: Option<String>,
    /// What an opening and its closing share.
    correlation: store::CommandId,
    /// How much of this actor was left out before, because there was too much of it in a minute.
    dropped: u64,
}

impl store::Keyset for Access {
    fn cursor(&self) -> String {
        self.position.to_string()
    }
}

/// List refused commands, sign-ins, reads of personal data and exports, oldest first.
#[utoipa::path(
    get,
    path = "/access",
    params(Asked),
    responses((status = 200, body = Accesses, description = "Evidence."))
)]
async fn list_access(
    State(kit): State<Kit>,
    can: Can<AuditRead>,
    Query(Asked { from, actor, limit, cursor }): Query<Asked>,
) -> Result<axum::Json<Accesses>, Problem> {
    let (from, page) = (from.map(Time::at), Page::new(limit, cursor)?);
    let start = match from {
        Some(from) => before(&kit, from).await?,
        None => 0,
    };
    let mut at = page.after_or(0)?.max(start);
    let wanted = |stored: &Recorded| {
        from.is_none_or(|from| stored.meta.occurred_at >= from)
            && actor.as_ref().is_none_or(|actor| *actor == stored.meta.actor)
    };
    let enough = usize::try_from(page.limit()).unwrap_or(usize::MAX);
    let mut found = vec![];
    for _ in 0..READS_MAX {
        let read = kit.executor.log().read_category(CATEGORY, at, READ).await?;
        let Some(last) = read.last() else { return Ok(axum::Json(page.slice(found))) };
        at = last.position;
        for stored in read.iter().filter(|stored| wanted(stored)) {
            if can.scope().sees(&kit, stored.meta.tenant).await? {
                found.push(shown(stored)?);
            }
        }
        if found.len() >= enough {
            return Ok(axum::Json(page.slice(found)));
        }
    }
    // There is more to look through than one answer is worth.
    Ok(axum::Json(Slice { items: found, next_cursor: Some(at.to_string()) }))
}

/// A position before all evidence from an instant on. Its times go up with its positions, as far as clocks agree.
async fn before(kit: &Kit, from: DateTime<Utc>) -> Result<i64, Problem> {
    let log = kit.executor.log();
    let (mut low, mut high) = (0, *log.head().borrow());
    while low < high {
        let middle = low + (high - low) / 2;
        let next = log.read_category(CATEGORY, middle, 1).await?;
        match next.first() {
            Some(stored) if stored.meta.occurred_at < from - CLOCKS_APART => low = stored.position,
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}

fn shown(stored: &Recorded) -> Result<Access, Problem> {
    let read: Result<Evidence, _> = serde_json::from_str(&stored.payload);
    let Evidence { what, operation, things, code, dropped } = read.map_err(|error| Problem::internal(&error))?;
    Ok(Access {
        position: stored.position,
        at: stored.meta.occurred_at.into(),
        actor: stored.meta.actor.clone(),
        tenant: stored.meta.tenant.into(),
        what,
        operation,
        things,
        code,
        correlation: stored.meta.correlation.into(),
        dropped,
    })
}
