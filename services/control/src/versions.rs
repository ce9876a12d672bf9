//! The version of the read models that is served, and making another one while reads go on.
//!
//! Owns: when a version is made, put in place and dropped. Does not own: folding (`projector`), what all processes know
//! of versions (`kit::versions`), the handle that everybody reads through (`kit.read`).
//!
//! A rebuild goes like this: a new version is opened beside the one that is served; for one read model the others are
//! copied as of an instant, for all of them nothing is; the log is replayed into it up to its end; then, while nothing
//! is folded in this process, the last events are added, all processes are told, and the handle is switched. The other
//! processes follow. The old version is dropped once nobody is connected to it.
//! Invariants: what was shown once is shown after the switch; a rebuild that fails or is killed at any point leaves what
//! is served as it is; two processes never make the same version.

use crate::ControlError;
use crate::projector::Models;
use kit::versions::{FIRST, Status, Version};
use kit::{Kit, runtime::Runtime};
use projections::{ALL, MIGRATIONS};
use std::time::Duration;
use store::{Db, Home};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// How often to look for something to do.
const EVERY: Duration = Duration::from_millis(250);
/// How often a builder says that it is there.
const BEAT: Duration = Duration::from_secs(1);
/// How long a builder may say nothing before another process takes it for gone.
const BUILDER_SILENT_MAX: Duration = Duration::from_secs(5);

/// The read models of this process.
pub struct Versions {
    home: Home,
    /// The version that this process serves.
    serves: i64,
    /// The name of this process for the others.
    me: String,
    /// Where reads went before, until what has begun there has ended.
    left: Option<Db>,
    /// The builder that was heard of last, by its version and beat, and when.
    heard: Option<(i64, i64, Instant)>,
}

/// Why a version was not made.
#[derive(Debug, thiserror::Error)]
enum Unmade {
    #[error(transparent)]
    Failed(#[from] ControlError),
    /// Another process took this one for gone.
    #[error("another process has taken it over")]
    TakenOver,
}

impl From<store::Error> for Unmade {
    fn from(error: store::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Versions {
    /// Opens the read models that are served here.
    pub async fn open(home: Home, runtime: &Runtime) -> store::Result<(Db, Self)> {
        let serves = runtime.serving().await?;
        let read = Db::open_relaxed(&home.url(&name(serves)), &MIGRATIONS).await?;
        Ok((read, Self { home, serves, me: Uuid::now_v7().to_string(), left: None, heard: None }))
    }

    /// Makes, serves and drops versions as they are asked for.
    pub async fn run(mut self, kit: &Kit) {
        loop {
            if let Err(error) = self.look(kit).await {
                tracing::warn!(cause = %error, "the versions of the read models could not be looked after; trying again");
            }
            sleep(EVERY).await;
        }
    }

    async fn look(&mut self, kit: &Kit) -> Result<(), ControlError> {
        if let Some(left) = self.left.take() {
            left.close().await;
        }
        let serving = kit.runtime.serving().await?;
        if serving != self.serves {
            return self.follow(kit, serving).await;
        }
        let Some(asked) = kit.runtime.claim_rebuild(&self.me).await? else {
            self.listen(kit).await?;
            return self.tidy(kit).await;
        };
        let version = asked.version;
        tracing::info!(version, model = asked.model, "read models are made anew");
        let there = beat(kit.runtime.clone(), version, self.me.clone());
        let made = tokio::select! {
            made = self.make(kit, &asked) => made,
            () = there => Err(Unmade::TakenOver),
        };
        match made {
            Ok(()) => tracing::info!(version, "the new read models are served"),
            Err(Unmade::TakenOver) => tracing::warn!(version, "another process makes the read models by now"),
            Err(Unmade::Failed(error)) => {
                tracing::error!(version, cause = %error, "read models could not be made anew; the old ones are served");
                kit.runtime.rebuild_failed(version, &self.me, &error.to_string(), kit.clock.now()).await?;
            }
        }
        Ok(())
    }

    /// Moves to the version that another process serves.
    async fn follow(&mut self, kit: &Kit, version: i64) -> Result<(), ControlError> {
        let db = Db::open_relaxed(&self.home.url(&name(version)), &MIGRATIONS).await?;
        let _turn = kit.progress.folding().await;
        let position = caught_up(kit, &db).await?;
        self.put(kit, version, &db, position);
        Ok(())
    }

    async fn make(&mut self, kit: &Kit, asked: &Version) -> Result<(), Unmade> {
        let name = name(asked.version);
        // What a number was used for before the runtime state was lost.
        if !self.home.remove(&name).await? {
            return Err(Unmade::Failed(ControlError::InUse(name)));
        }
        let db = Db::open_relaxed(&self.home.url(&name), &MIGRATIONS).await?;
        let made = self.make_in(kit, asked, &db).await;
        if made.is_err() {
            db.close().await;
        }
        made
    }

    async fn make_in(&mut self, kit: &Kit, asked: &Version, db: &Db) -> Result<(), Unmade> {
        if let Some(model) = &asked.model {
            self.copy_others(model, db).await?;
        }
        let log = kit.executor.log();
        let mut models = Models::of(db, kit.keys.opener()).await?;
        while models.step(log, db).await? {
            let target = (*log.head().borrow()).max(models.position());
            if !kit.runtime.built(asked.version, &self.me, models.position(), target).await? {
                return Err(Unmade::TakenOver);
            }
        }
        let _turn = kit.progress.folding().await;
        let position = caught_up(kit, db).await?;
        kit.runtime.built(asked.version, &self.me, position, position).await?;
        if !kit.runtime.serve(asked.version, &self.me, kit.clock.now()).await? {
            return Err(Unmade::TakenOver);
        }
        self.put(kit, asked.version, db, position);
        Ok(())
    }

    /// Fills all read models but one from what is served.
    async fn copy_others(&self, model: &str, db: &Db) -> store::Result<()> {
        let others = ALL.iter().filter(|(name, _)| *name != model).flat_map(|(_, tables)| tables.iter().copied());
        let tables: Vec<&str> = others.chain(["checkpoints"]).collect();
        self.home.copy(&name(self.serves), db, &tables).await?;
        db.sql("delete from checkpoints where projection = $1").bind(model.to_owned()).run().await?;
        Ok(())
    }

    fn put(&mut self, kit: &Kit, version: i64, db: &Db, position: i64) {
        self.left = Some(kit.read.switch(db));
        self.serves = version;
        kit.progress.switched(position);
    }

    /// Takes over from a builder that has not been heard of for a while.
    async fn listen(&mut self, kit: &Kit) -> Result<(), ControlError> {
        let versions = kit.runtime.versions().await?;
        let Some(building) = versions.into_iter().find(|version| version.status == Status::Building) else {
            self.heard = None;
            return Ok(());
        };
        match self.heard {
            Some((version, beat, at)) if (version, beat) == (building.version, building.beat) => {
                if at.elapsed() > BUILDER_SILENT_MAX {
                    kit.runtime.ask_rebuild_again(&building, kit.clock.now()).await?;
                }
            }
            _ => self.heard = Some((building.version, building.beat, Instant::now())),
        }
        Ok(())
    }

    /// Drops what nobody uses any more.
    async fn tidy(&self, kit: &Kit) -> Result<(), ControlError> {
        for version in kit.runtime.leftovers().await? {
            if version != self.serves && self.home.remove(&name(version)).await? {
                kit.runtime.dropped(version).await?;
            }
        }
        Ok(())
    }
}

/// Says that a builder is there, until another process has taken over.
async fn beat(runtime: Runtime, version: i64, me: String) {
    loop {
        sleep(BEAT).await;
        match runtime.builds(version, &me).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(cause = %error, "the runtime state is out of reach"),
        }
    }
}

/// Adds to a version what it lacks of the log and of what this process has shown. Whoever calls has the turn to fold.
async fn caught_up(kit: &Kit, db: &Db) -> Result<i64, ControlError> {
    let mut models = Models::of(db, kit.keys.opener()).await?;
    while models.step(kit.executor.log(), db).await? {}
    Ok(models.position())
}

/// The name of a version's database.
fn name(version: i64) -> String {
    if version == FIRST { "read".into() } else { format!("read_{version}") }
}
