//! The versions of the read models, as every server process sees them: one is served, one may be in the making.
//!
//! Owns: the table `read_versions` of the runtime state. Does not own: making a version and serving it
//! (`services/control`), the tables of a version (`projections`).
//! Invariants: at most one version is asked for or in the making; the version that is served changes in one step, by the
//! process that made the new one; losing the table serves the first version again, which is then made from the log.

use crate::runtime::Runtime;
use chrono::{DateTime, Utc};
use domain::kernel;
use store::{CommandId, Result, Time};

/// The version that is there before any rebuild.
pub const FIRST: i64 = 1;

/// A version of the read models.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow, serde::Serialize, utoipa::ToSchema)]
pub struct Version {
    /// Its number, from 1.
    pub version: i64,
    /// The read model that is made anew in it; null for all of them.
    pub model: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// The command that asked for it.
    #[serde(skip)]
    pub command: Option<CommandId>,
    /// The process that makes it.
    #[serde(skip)]
    pub builder: Option<String>,
    /// How often that process has said how far it is.
    #[serde(skip)]
    pub beat: i64,
    /// The position of the log up to which it is made.
    pub position: i64,
    /// The log's last position when that was written.
    pub target: i64,
    /// When it was asked for.
    pub asked_at: Time,
    /// When it was served, or failed.
    pub ended_at: Option<Time>,
    /// Whether its tables may still be there.
    #[serde(skip)]
    pub kept: bool,
    /// Why it failed.
    pub fault: Option<String>,
}

/// Where a version stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type, serde::Serialize, utoipa::ToSchema)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schema(as = VersionStatus)]
pub enum Status {
    /// Waits for a process to make it.
    Asked,
    /// Is replayed from the log; another one is served.
    Building,
    /// Is what reads show.
    Serving,
    /// Another one is served, and this is kept until every process has moved there.
    Replaced,
    /// Is gone.
    Dropped,
    /// Could not be made; what was served is served still.
    Failed,
}

/// How the row of the version in the making is found, by those alone who make it.
const MINE: &str = "where version = $1 and builder = $2 and status = 'building'";

impl Runtime {
    /// The version that is served. Makes the first one known where there is none.
    pub async fn serving(&self) -> Result<i64> {
        let select = "select version from read_versions where status = 'serving'";
        if let Some((version,)) = self.db().sql(select).optional::<(i64,)>().await? {
            return Ok(version);
        }
        let first = "insert into read_versions (version, status, kept, beat, position, target, asked_at)
             values ($1, 'serving', true, 0, 0, 0, 0) on conflict (version) do nothing";
        self.db().sql(first).bind(FIRST).run().await?;
        Ok(FIRST)
    }

    /// The versions that were served, are or will be, newest first, at most 20.
    pub async fn versions(&self) -> Result<Vec<Version>> {
        self.db().sql("select * from read_versions order by version desc limit 20").all().await
    }

    /// Asks for a new version, with one read model made anew or all of them, unless one is asked for or in the making;
    /// gives that one then. The same command again gets the version that it asked for first.
    pub async fn ask_rebuild(
        &self,
        model: Option<&str>,
        command: Option<kernel::CommandId>,
        at: DateTime<Utc>,
    ) -> Result<Version> {
        self.serving().await?;
        let (command, again) = (command.map(CommandId::from), "select * from read_versions where command = $1");
        if let Some(version) = self.db().sql(again).bind(command).optional().await? {
            return Ok(version);
        }
        // Of two at once, one finds the number taken, and finds the other's version below.
        let insert = "insert into read_versions (version, model, command, status, kept, beat, position, target,
                                        asked_at)
             select max(version) + 1, cast($1 as text), cast($2 as text), 'asked', true, 0, 0, 0, cast($3 as bigint)
             from read_versions
             having count(case when status in ('asked', 'building') then 1 end) = 0
             on conflict do nothing";
        let model = model.map(ToOwned::to_owned);
        self.db().sql(insert).bind(model).bind(command).bind(Time::from(at)).run().await?;
        // One that was made within the moment is the answer as well.
        self.db().sql("select * from read_versions order by version desc limit 1").one().await
    }

    /// Takes the version that is asked for, if there is one, so that no other process makes it.
    pub async fn claim_rebuild(&self, builder: &str) -> Result<Option<Version>> {
        let claim = "update read_versions set status = 'building', builder = $1 where status = 'asked'";
        self.db().sql(claim).bind(builder.to_owned()).run().await?;
        let mine = "select * from read_versions where status = 'building' and builder = $1";
        self.db().sql(mine).bind(builder.to_owned()).optional().await
    }

    /// Says that the builder of a version is there. False: it is no longer this process's to make.
    pub async fn builds(&self, version: i64, builder: &str) -> Result<bool> {
        let tell = format!("update read_versions set beat = beat + 1 {MINE}");
        let told = self.db().sql(sqlx::AssertSqlSafe(tell)).bind(version).bind(builder.to_owned());
        Ok(told.run().await? == 1)
    }

    /// Says how far a version is. False: it is no longer this process's to make.
    pub async fn built(&self, version: i64, builder: &str, position: i64, target: i64) -> Result<bool> {
        let tell = format!("update read_versions set position = $3, target = $4, beat = beat + 1 {MINE}");
        let told = self.db().sql(sqlx::AssertSqlSafe(tell)).bind(version).bind(builder.to_owned());
        Ok(told.bind(position).bind(target).run().await? == 1)
    }

    /// Serves a version that was made, in the place of the one before. False: it is not this process's to serve.
    pub async fn serve(&self, version: i64, builder: &str, at: DateTime<Utc>) -> Result<bool> {
        let mut tx = self.db().begin().await?;
        tx.sql("update read_versions set status = 'replaced' where status = 'serving'").run().await?;
        let serve = format!("update read_versions set status = 'serving', ended_at = $3 {MINE}");
        let served = tx.sql(sqlx::AssertSqlSafe(serve)).bind(version).bind(builder.to_owned()).bind(Time::from(at));
        if served.run().await? != 1 {
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// A version that its builder could not make.
    pub async fn rebuild_failed(&self, version: i64, builder: &str, fault: &str, at: DateTime<Utc>) -> Result<()> {
        let fail = format!("update read_versions set status = 'failed', fault = $3, ended_at = $4 {MINE}");
        let failed = self.db().sql(sqlx::AssertSqlSafe(fail)).bind(version).bind(builder.to_owned());
        failed.bind(fault.to_owned()).bind(Time::from(at)).run().await?;
        Ok(())
    }

    /// Gives up a version whose builder is gone, and asks for it anew under another number.
    pub async fn ask_rebuild_again(&self, gone: &Version, at: DateTime<Utc>) -> Result<()> {
        let fault = "its process ended while it made it";
        let builder = gone.builder.clone().unwrap_or_default();
        self.rebuild_failed(gone.version, &builder, fault, at).await?;
        self.ask_rebuild(gone.model.as_deref(), None, at).await?;
        Ok(())
    }

    /// The versions that wait to be dropped: replaced, or failed.
    pub async fn leftovers(&self) -> Result<Vec<i64>> {
        let select =
            "select version from read_versions where kept and status in ('replaced', 'failed') order by version";
        let rows: Vec<(i64,)> = self.db().sql(select).all().await?;
        Ok(rows.into_iter().map(|(version,)| version).collect())
    }

    /// The tables of a version are gone. One that failed keeps saying so.
    pub async fn dropped(&self, version: i64) -> Result<()> {
        let drop = "update read_versions
             set kept = false, status = case when status = 'replaced' then 'dropped' else status end where version = $1";
        self.db().sql(drop).bind(version).run().await?;
        Ok(())
    }
}
