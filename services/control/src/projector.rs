//! Pulls the log into the read models. It is the only one who writes them.
//!
//! Owns: the order and the transactions in which events are folded. Does not own: the folds (`projections`).
//! Invariants: each read model has a checkpoint of its own, moved in the transaction that folds the events; one that
//! fails stops and is named, the others go on; `kit.progress` tells a position only once all have it.

use crate::ControlError;
use domain::Event;
use domain::kernel::Recorded;
use eventlog::{LogError, Subscription};
use kit::Kit;
use projections::{ALL, apply};
use store::{Db, checkpoint, checkpoint_of};

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
    let mut models = Vec::with_capacity(ALL.len());
    for (name, _) in ALL {
        models.push((*name, checkpoint_of(&kit.read, name).await?));
    }
    let from = models.iter().map(|(_, at)| *at).min().unwrap_or_default();
    kit.progress.read_models_reached(from);
    let mut log = Subscription::after(kit.executor.log().clone(), from);
    loop {
        let page = patiently(&mut log).await?;
        let events = decode(&page)?;
        let mut stopped = None;
        for (name, at) in &mut models {
            match fold(&kit.read, name, *at, &page, &events).await {
                Ok(position) => *at = position,
                Err(error) => {
                    tracing::error!(projection = error.name, position = error.position, cause = %error.cause,
                        "a read model stopped; what reads it is behind from here on");
                    stopped = Some(error);
                }
            }
        }
        if let Some(error) = stopped {
            models.retain(|(name, _)| *name != error.name);
            if models.is_empty() {
                return Err(error.into());
            }
            continue;
        }
        if models.len() == ALL.len() {
            kit.progress.read_models_reached(log.position());
        }
    }
}

/// The next page, however long the log is out of reach; an event that cannot be read is final.
pub(crate) async fn patiently(log: &mut Subscription) -> Result<Vec<Recorded>, LogError> {
    loop {
        match log.next().await {
            Err(LogError::Unreachable(cause)) => {
                tracing::warn!(cause, "the log is out of reach; trying again");
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            }
            page => return page,
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

async fn fold(
    db: &Db,
    name: &'static str,
    at: i64,
    page: &[Recorded],
    events: &[Option<Event>],
) -> Result<i64, Stopped> {
    let Some(last) = page.last().map(|stored| stored.position).filter(|last| *last > at) else { return Ok(at) };
    let mut position = at;
    let mut attempt = async || {
        let mut tx = db.begin().await?;
        for (stored, event) in page.iter().zip(events).filter(|(stored, _)| stored.position > at) {
            position = stored.position;
            if let Some(event) = event {
                apply(name, &mut tx, stored, event).await?;
            }
        }
        checkpoint(&mut tx, name, last).await?;
        tx.commit().await
    };
    match attempt().await {
        // Another process was first with these events.
        Ok(()) | Err(store::Error::AlreadyApplied(_)) => Ok(last),
        Err(cause) => Err(Stopped { name, position, cause }),
    }
}

/// Folds the whole log into an empty database of read models, and says up to which position.
pub async fn rebuild(log: &eventlog::Log, into: &Db) -> Result<i64, ControlError> {
    let mut position = 0;
    loop {
        let page = log.read_all(position, 500).await?;
        let Some(last) = page.last() else { return Ok(position) };
        let events = decode(&page)?;
        for (name, _) in ALL {
            fold(into, name, position, &page, &events).await?;
        }
        position = last.position;
    }
}
