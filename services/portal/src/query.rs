//! What may be asked: jobs, orders, and a statement with its lines.
//!
//! Owns: the fields and which permission each needs. Invariant: a refusal has the same stable code as over REST, as
//! `extensions.code`.

use async_graphql::connection::Connection;
use async_graphql::{Context, Error, ErrorExtensions, Object, Result};
use domain::identity::Permission;
use kit::permission::{BillRead, JobRead, OrderRead, Permit};
use kit::{Actor, Can, Kit, Problem, Scope};
use projections::jobs::{self, Job};
use projections::orders::{self, Order};
use projections::statements::{self, StatementLine, StatementTotal};
use store::{Page, StatementId};

/// The permission that each field of the schema's `Query` needs.
pub const PERMISSIONS: &[(&str, Permission)] =
    &[("jobs", JobRead::PERMISSION), ("orders", OrderRead::PERMISSION), ("statement", BillRead::PERMISSION)];

/// What may be asked.
pub(crate) struct Query;

#[Object]
impl Query {
    /// The jobs that are in reach, newest first; those that have ended only if `all`.
    async fn jobs(
        &self,
        ctx: &Context<'_>,
        #[graphql(default)] all: bool,
        first: Option<u32>,
        after: Option<String>,
    ) -> Result<Connection<String, Job>> {
        let (kit, scope) = reach::<JobRead>(ctx)?;
        let page = page(first, after)?;
        Ok(jobs::of(&kit.read, scope.whose(), all, &page).await.map_err(refused)?.into())
    }

    /// The orders that are in reach, newest first.
    async fn orders(
        &self,
        ctx: &Context<'_>,
        first: Option<u32>,
        after: Option<String>,
    ) -> Result<Connection<String, Order>> {
        let (kit, scope) = reach::<OrderRead>(ctx)?;
        let page = page(first, after)?;
        Ok(orders::of(&kit.read, scope.whose(), &page).await.map_err(refused)?.into())
    }

    /// A statement (账单) with its lines; null if there is none, or not for who asks.
    async fn statement(&self, ctx: &Context<'_>, id: StatementId) -> Result<Option<Statement>> {
        let (kit, scope) = reach::<BillRead>(ctx)?;
        let found = statements::find(&kit.read, id).await.map_err(refused)?;
        let Some(statement) = found else { return Ok(None) };
        if !scope.sees(kit, statement.tenant.0).await.map_err(refused)? {
            return Ok(None);
        }
        let lines = statements::lines(&kit.read, id).await.map_err(refused)?;
        Ok(Some(Statement { statement, lines }))
    }
}

/// A statement (账单) with its lines.
pub(crate) struct Statement {
    statement: statements::Statement,
    lines: Vec<StatementLine>,
}

#[Object(name = "StatementWithLines")]
impl Statement {
    /// The statement itself.
    async fn statement(&self) -> &statements::Statement {
        &self.statement
    }

    /// Its lines, in the order of their SKUs and price versions.
    async fn lines(&self) -> &[StatementLine] {
        &self.lines
    }

    /// What the lines come to.
    async fn total(&self) -> StatementTotal {
        statements::total(&self.lines)
    }
}

/// What is reached with a permission, and how far.
fn reach<'a, P: Permit>(ctx: &Context<'a>) -> Result<(&'a Kit, Scope)> {
    let can = Can::<P>::check(ctx.data::<Actor>()?.clone()).map_err(refused)?;
    Ok((ctx.data::<Kit>()?, can.scope()))
}

fn page(first: Option<u32>, after: Option<String>) -> Result<Page> {
    Page::new(first, after).map_err(refused)
}

/// The problem of REST as an error of a field.
fn refused(problem: impl Into<Problem>) -> Error {
    let problem = problem.into();
    Error::new(problem.detail()).extend_with(|_, extensions| extensions.set("code", problem.code()))
}
