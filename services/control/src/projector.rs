//! Pulls the log into the read models. It is the only one who writes them.
//!
//! Owns: the order and the transactions in which events are folded. Does not own: the folds (`projections`), which
//! version of the read models is served (`versions`).
//! Invariants: each read model has a checkpoint of its own, taken and moved in the transaction that folds the events, so
//! that several processes fold each event once and leave none out; a database that is away is waited for; a read model
//! that fails stops and is named, the others go on, and it goes on too once another process has folded what it could
//! not; `kit.progress` tells a position only once all have it.

use crate::ControlError;
use domain::Event;
use domain::kernel::Recorded;
use eventlog::{Log, LogError, Subscription};
use futures::future::{BoxFuture, FutureExt};
use kit::{Kit, Stop};
use projections::{ALL, Opener, apply};
use std::time::Duration;
use store::{Db, checkpoint, checkpoint_of, claim};
use tokio::sync::watch;
use tokio::time::sleep;

/// How long to wait before something is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// How many events a rebuild folds at once.
const PAGE: usize = 500;

/// Why a read model is not folded any further.
#[derive(Debug, thiserror::Error)]
#[error("the read model `{name}` stopped at position {position}: {cause}")]
pub struct Stopped {
    name: &'static str,
    position: i64,
    #[source]
    cause: store::Error,
}

/// Folds what there is and what comes, until all read models have stopped or the log cannot be read.
pub async fn run(kit: &Kit) -> Result<(), ControlError> {
    let mut switches = kit.progress.switches();
    loop {
        switches.borrow_and_update();
        let mut models = patient(|| Models::of(&kit.read, kit.keys.opener()).boxed()).await?;
        kit.progress.read_models_reached(models.position());
        follow(kit, &mut models, &mut switches).await?;
    }
}

/// Folds until it has to begin anew: another version was put in place, or the checkpoints are not where they were.
async fn follow(kit: &Kit, models: &mut Models, switches: &mut watch::Receiver<u64>) -> Result<(), ControlError> {
    let mut log = Subscription::after(kit.executor.log().clone(), models.position());
    loop {
        let after = log.position();
        let page = tokio::select! {
            page = patiently(&mut log) => page?,
            _ = switches.changed() => return Ok(()),
            () = sleep(RETRY), if models.any_stopped() => {
                models.look_again(kit).await;
                kit.progress.read_models_reached(models.position());
                continue;
            }
        };
        let page = Page { after, events: decode(&page)?, stored: page };
        let _turn = kit.progress.folding().await;
        if switches.has_changed().unwrap_or(true) {
            return Ok(());
        }
        for model in &mut models.all {
            if !model.stopped && !fold_patiently(kit, model, &page).await {
                return Ok(());
            }
        }
        if models.all.iter().all(|model| model.stopped) {
            return Err(ControlError::AllStopped);
        }
        if !models.any_stopped() {
            kit.progress.read_models_reached(models.position());
        }
    }
}

/// Folds a page however long the database is away. False: the read model's checkpoint is before the page.
async fn fold_patiently(kit: &Kit, model: &mut Model, page: &Page) -> bool {
    loop {
        match fold(&kit.read, model, page, &kit.keys.opener()).await {
            Ok(in_order) => return in_order,
            Err(Stopped { name, cause, .. }) if cause.may_pass() => {
                tracing::warn!(projection = name, %cause, "the read models are out of reach; trying again");
                sleep(RETRY).await;
            }
            Err(Stopped { name, position, cause }) => {
                tracing::error!(projection = name, position, %cause,
                    "a read model stopped; what reads it is behind from here on");
                kit.progress.stopped(name, Stop { position, cause: cause.to_string() });
                model.stopped = true;
                return true;
            }
        }
    }
}

/// Every read model and how far it is, with what opens personal data.
pub(crate) struct Models {
    all: Vec<Model>,
    open: Opener,
}

struct Model {
    name: &'static str,
    at: i64,
    stopped: bool,
}

/// Events in a row, with the position that they follow.
struct Page {
    after: i64,
    stored: Vec<Recorded>,
    events: Vec<Option<Event>>,
}

impl Models {
    /// As their checkpoints say.
    pub(crate) async fn of(db: &Db, open: Opener) -> store::Result<Self> {
        let mut all = Vec::with_capacity(ALL.len());
        for (name, _) in ALL {
            all.push(Model { name, at: checkpoint_of(db, name).await?, stopped: false });
        }
        Ok(Self { all, open })
    }

    /// The position that all of them have.
    pub(crate) fn position(&self) -> i64 {
        self.all.iter().map(|model| model.at).min().unwrap_or_default()
    }

    /// Folds the next events of the log into all of them; false where there are none.
    pub(crate) async fn step(&mut self, log: &Log, db: &Db) -> Result<bool, ControlError> {
        let after = self.position();
        let stored = log.read_all(after, PAGE).await?;
        if stored.is_empty() {
            return Ok(false);
        }
        let page = Page { after, events: decode(&stored)?, stored };
        for model in &mut self.all {
            fold(db, model, &page, &self.open).await?;
        }
        Ok(true)
    }

    fn any_stopped(&self) -> bool {
        self.all.iter().any(|model| model.stopped)
    }

    /// Lets those go on that another process has brought further.
    async fn look_again(&mut self, kit: &Kit) {
        let stops = kit.progress.stops();
        for model in self.all.iter_mut().filter(|model| model.stopped) {
            let at = checkpoint_of(&kit.read, model.name).await.unwrap_or_default();
            if stops.get(model.name).is_none_or(|stop| at >= stop.position) {
                (model.at, model.stopped) = (at, false);
                kit.progress.goes_on(model.name);
            }
        }
    }
}

/// The next page, however long the log is out of reach; an event that cannot be read is final.
pub(crate) async fn patiently(log: &mut Subscription) -> Result<Vec<Recorded>, LogError> {
    loop {
        match log.next().await {
            Err(LogError::Unreachable(cause)) => {
                tracing::warn!(cause, "the log is out of reach; trying again");
                sleep(RETRY).await;
            }
            page => return page,
        }
    }
}

/// What a database answers, however long it is away.
pub(crate) async fn patient<'a, T>(ask: impl Fn() -> BoxFuture<'a, store::Result<T>>) -> store::Result<T> {
    loop {
        match ask().await {
            Err(cause) if cause.may_pass() => {
                tracing::warn!(%cause, "a database is out of reach; trying again");
                sleep(RETRY).await;
            }
            answer => return answer,
        }
    }
}

/// Reads stored events back; those of foreign categories are left out.
pub(crate) fn decode(page: &[Recorded]) -> Result<Vec<Option<Event>>, domain::Unreadable> {
    page.iter()
        .map(|stored| {
            let ours = domain::CATEGORIES.contains(&stored.stream.category());
            ours.then(|| Event::read(stored)).transpose()
        })
        .collect()
}

/// Folds what a read model does not have of a page. False: it lacks what comes before the page.
async fn fold(db: &Db, model: &mut Model, page: &Page, open: &Opener) -> Result<bool, Stopped> {
    let Some(last) = page.stored.last().map(|stored| stored.position).filter(|last| *last > model.at) else {
        return Ok(true);
    };
    let name = model.name;
    let mut position = page.after;
    let mut attempt = async || {
        let mut tx = db.begin().await?;
        let at = claim(&mut tx, name).await?;
        if at < page.after || at >= last {
            return Ok(at);
        }
        for (stored, event) in page.stored.iter().zip(&page.events).filter(|(stored, _)| stored.position > at) {
            position = stored.position;
            if let Some(event) = event {
                apply(name, &mut tx, stored, event, open).await?;
            }
        }
        checkpoint(&mut tx, name, last).await?;
        tx.commit().await?;
        Ok(last)
    };
    match attempt().await {
        Ok(at) => {
            model.at = at;
            Ok(at >= last)
        }
        Err(cause) => Err(Stopped { name, position, cause }),
    }
}

/// Folds the whole log into an empty database of read models, and says up to which position.
pub async fn rebuild(log: &Log, into: &Db, open: Opener) -> Result<i64, ControlError> {
    let mut models = Models::of(into, open).await?;
    while models.step(log, into).await? {}
    Ok(models.position())
}
