//! Statements (账单): what a customer is told about a month.

use crate::describe::needs;
use axum::extract::State;
use kit::permission::BillRead;
use kit::{Can, Fresh, Kit, Path, Problem, Query, Scope};
use projections::statements::{self, Statement, StatementLine, StatementTotal};
use serde::{Deserialize, Serialize};
use store::{Month, Page, Slice};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

type Statements = Slice<Statement>;

pub(crate) fn routes() -> OpenApiRouter<Kit> {
    OpenApiRouter::new()
        .routes(needs::<BillRead>(routes!(list_statements)))
        .routes(needs::<BillRead>(routes!(read_statement)))
}

/// Which statements, and which part of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Of this month only, such as `2026-11`.
    month: Option<Month>,
    /// How many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A statement with its lines.
#[derive(Debug, Serialize, ToSchema)]
struct Whole {
    statement: Statement,
    /// In the order of their SKUs and price versions.
    lines: Vec<StatementLine>,
    total: StatementTotal,
}

/// List the statements that are in reach, newest month first.
#[utoipa::path(
    get,
    path = "/statements",
    params(Which),
    responses((status = 200, body = Statements, description = "Statements."))
)]
async fn list_statements(
    State(kit): State<Kit>,
    can: Can<BillRead>,
    _: Fresh,
    Query(Which { month, limit, cursor }): Query<Which>,
) -> Result<axum::Json<Statements>, Problem> {
    // The list goes from the newest month down, by month and id: a month starts before all its ids.
    let start = month.map(|month| format!("{}/~", month.0));
    let page = Page::new(limit, cursor.or(start))?;
    let mut found = statements::of(&kit.read, can.scope().whose(), &page).await?;
    if let Some(month) = month {
        let before = found.items.len();
        found.items.retain(|statement| statement.month == month);
        if found.items.len() < before {
            found.next_cursor = None;
        }
    }
    Ok(axum::Json(found))
}

/// Read a statement with its lines.
#[utoipa::path(
    get,
    path = "/statements/{id}",
    params(("id" = store::StatementId, Path)),
    responses((status = 200, body = Whole, description = "The statement."))
)]
async fn read_statement(
    State(kit): State<Kit>,
    can: Can<BillRead>,
    _: Fresh,
    Path(id): Path<store::StatementId>,
) -> Result<axum::Json<Whole>, Problem> {
    let statement = seen(&kit, can.scope(), id).await?;
    let lines = statements::lines(&kit.read, id).await?;
    let total = statements::total(&lines);
    Ok(axum::Json(Whole { statement, lines, total }))
}

/// A statement that is in scope.
pub(crate) async fn seen(kit: &Kit, scope: Scope, id: store::StatementId) -> Result<Statement, Problem> {
    match statements::find(&kit.read, id).await? {
        Some(statement) if scope.sees(kit, statement.tenant.0).await? => Ok(statement),
        Some(_) | None => Err(Problem::not_found("statement.not_found")),
    }
}
