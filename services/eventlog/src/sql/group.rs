//! One transaction for a group of appends: take the lock, decide each in turn, write what was accepted, move the head.

use super::batch::{self, Row};
use crate::book::{Book, Place};
use crate::{Append, Appended, LogError};
use chrono::Utc;
use domain::kernel::{Meta, Recorded, StreamName};
use store::{Db, Tx};

/// The answer to one append.
pub(super) type Reply = Result<Appended, LogError>;

/// Why a group was not committed.
#[derive(Debug)]
pub(super) enum Failed {
    /// The database is out of reach or too busy: it is no append's fault.
    Database(String),
    /// The database refused what the group wrote: one of its appends may be at fault.
    Refused(String),
}

/// What a group came to.
pub(super) struct Committed {
    pub(super) head: i64,
    pub(super) replies: Vec<Reply>,
}

/// Commits what can be; every append gets its own reply.
pub(super) async fn commit(db: &Db, appends: &[&Append]) -> Result<Committed, Failed> {
    let mut tx = db.begin().await.map_err(|error| Failed::Database(error.to_string()))?;
    let (committed, changed) = write(&mut tx, appends).await.map_err(failed)?;
    if changed {
        tx.commit().await.map_err(failed)?;
    }
    Ok(committed)
}

/// Everything but the commit, and whether there is anything to commit.
async fn write(tx: &mut Tx, appends: &[&Append]) -> store::Result<(Committed, bool)> {
    let lock = "update log_head set position = position + 0 where id = 1 returning position";
    let (head,) = tx.sql(lock).one::<(i64,)>().await?;
    let streams: Vec<&StreamName> = appends.iter().map(|append| &append.stream).collect();
    let commands: Vec<&Meta> = appends.iter().map(|append| &append.meta).collect();
    let (streams, done) = (batch::tails(tx, &streams).await?, batch::done(tx, &commands).await?);
    let mut book = Book { head, streams, done, added: vec![] };
    let now = Utc::now();
    let places: Vec<Result<Place, LogError>> = appends.iter().map(|append| book.decide(append, now)).collect();
    let mut replies = Vec::with_capacity(places.len());
    for place in &places {
        replies.push(match place {
            Ok(place) if place.first > head => Ok(Appended::of(book.placed(head, *place), place.replayed)),
            Ok(place) => stored(batch::between(tx, place.first, place.last).await?),
            Err(error) => Err(error.clone()),
        });
    }
    let changed = !book.added.is_empty();
    if changed {
        let accepted = appends.iter().zip(&places).filter_map(|(append, place)| match place {
            Ok(place) if !place.replayed => Some((&append.meta, *place)),
            Ok(_) | Err(_) => None,
        });
        batch::insert_events(tx, &book.added).await?;
        batch::insert_commands(tx, &accepted.collect::<Vec<_>>()).await?;
        tx.sql("update log_head set position = $1 where id = 1").bind(book.head).run().await?;
    }
    Ok((Committed { head: book.head, replies }, changed))
}

impl Book {
    /// The events of a place in this group, which began after `head`.
    fn placed(&self, head: i64, place: Place) -> Vec<Recorded> {
        let within = |event: &&Recorded| (place.first..=place.last).contains(&event.position);
        let skip = usize::try_from(place.first - head - 1).unwrap_or(0);
        self.added.iter().skip(skip).take_while(within).cloned().collect()
    }
}

fn stored(rows: Vec<Row>) -> Reply {
    let recorded = rows.into_iter().map(Row::recorded).collect::<Result<_, _>>()?;
    Ok(Appended::of(recorded, true))
}

/// Only what the database itself says of a statement can be an append's fault.
fn failed(error: store::Error) -> Failed {
    if let store::Error::Sql(sqlx::Error::Database(error)) = error {
        Failed::Refused(error.to_string())
    } else {
        Failed::Database(error.to_string())
    }
}
