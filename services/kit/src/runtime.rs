//! Runtime state that several services share: why jobs wait, when nodes were last heard of, how far the flows are.
//!
//! Owns: the runtime tables. Does not own: the meaning of a reason (`scheduler-core`).
//! Invariant: losing all of it costs convenience, never truth; a rebuild of read models ignores it.

use chrono::{DateTime, Utc};
use domain::kernel::{JobId, NodeId};
use store::{Db, Id, Result, Time};

/// The schema of the runtime state.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/runtime");

const FLOWS: &str = "flows";

/// The runtime state's database.
#[derive(Debug, Clone)]
pub struct Runtime(Db);

impl Runtime {
    /// Opens it at this address.
    pub async fn open(url: &str) -> Result<Self> {
        Ok(Self(Db::open_relaxed(url, &MIGRATIONS).await?))
    }

    /// The database, for the tables that are asked in a file of their own.
    pub(crate) fn db(&self) -> &Db {
        &self.0
    }

    /// Says why a job waits since an instant.
    pub async fn waits(&self, job: JobId, why: &str, since: DateTime<Utc>) -> Result<()> {
        self.0
            .sql(
                "insert into waits (job, why, since) values ($1, $2, $3)
                 on conflict (job) do update set why = excluded.why, since = excluded.since",
            )
            .bind(Id(job))
            .bind(why.to_owned())
            .bind(Time::from(since))
            .run()
            .await?;
        Ok(())
    }

    /// A job waits no more.
    pub async fn waits_no_more(&self, job: JobId) -> Result<()> {
        self.0.sql("delete from waits where job = $1").bind(Id(job)).run().await?;
        Ok(())
    }

    /// Why a job waits for a place (JSON), and since when that is the reason.
    pub async fn why(&self, job: JobId) -> Result<Option<(String, Time)>> {
        self.0.sql("select why, since from waits where job = $1").bind(Id(job)).optional().await
    }

    /// A node was heard of.
    pub async fn saw(&self, node: NodeId, at: DateTime<Utc>) -> Result<()> {
        self.0
            .sql(
                "insert into nodes_seen (node, at) values ($1, $2)
                 on conflict (node) do update set at = excluded.at",
            )
            .bind(Id(node))
            .bind(Time::from(at))
            .run()
            .await?;
        Ok(())
    }

    /// When each node was last heard of.
    pub async fn seen(&self) -> Result<Vec<(Id<NodeId>, Time)>> {
        self.0.sql("select node, at from nodes_seen order by node").all().await
    }

    /// The position of the last event that the flows have handled.
    pub async fn flows_at(&self) -> Result<i64> {
        store::checkpoint_of(&self.0, FLOWS).await
    }

    /// The flows have handled all up to this position.
    pub async fn flows_reached(&self, position: i64) -> Result<()> {
        let mut tx = self.0.begin().await?;
        match store::checkpoint(&mut tx, FLOWS, position).await {
            Ok(()) => tx.commit().await,
            Err(store::Error::AlreadyApplied(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
