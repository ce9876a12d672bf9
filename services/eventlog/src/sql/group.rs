//! One transaction for a group of appends: take the lock, decide each in turn, write what was accepted, move the head.

use super::batch::{self, Row};
use crate::book::{Book, Place};
use crate::{Append, Appended, LogError};
use chrono::Utc;
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

/// Commits what can be; every append gets its own reply. The book is of the commit before, or empty; after an error it
/// is not to be used again.
pub(super) async fn commit(db: &Db, book: &mut Book, appends: &[&Append]) -> Result<Vec<Reply>, Failed> {
    let mut tx = db.begin_in_turn().await.map_err(|error| Failed::Database(error.to_string()))?;
    let (replies, changed) = write(&mut tx, book, appends).await.map_err(failed)?;
    if changed {
        tx.commit().await.map_err(failed)?;
    }
    Ok(replies)
}

/// Everything but the commit, and whether there is anything to commit.
async fn write(tx: &mut Tx, book: &mut Book, appends: &[&Append]) -> store::Result<(Vec<Reply>, bool)> {
    // Claims a position for each event, which is right unless one of the appends is refused.
    let claim = appends.iter().map(|append| append.events.len() as i64).sum::<i64>();
    let lock = "update log_head set position = position + $1 where id = 1 returning position";
    let (claimed,) = tx.sql(lock).bind(claim).one::<(i64,)>().await?;
    let head = claimed - claim;
    book.turn_to(head);
    batch::look_up(tx, book, appends).await?;
    let now = Utc::now();
    let places: Vec<Result<Place, LogError>> = appends.iter().map(|append| book.decide(append, now)).collect();
    let added = std::mem::take(&mut book.added);
    let changed = !added.is_empty();
    if changed {
        batch::insert_events(tx, &added).await?;
        if book.head != claimed {
            tx.sql("update log_head set position = $1 where id = 1").bind(book.head).run().await?;
        }
    }
    let mut added = added.into_iter();
    let mut replies: Vec<Reply> = Vec::with_capacity(places.len());
    for place in places {
        let reply = match place {
            // New events are in the order of their places.
            Ok(place) if !place.replayed => Ok(Appended::of(added.by_ref().take(place.events()).collect(), false)),
            Ok(place) if place.first > head => again(&replies, place),
            Ok(place) => stored(batch::between(tx, place.first, place.last).await?),
            Err(error) => Err(error),
        };
        replies.push(reply);
    }
    Ok((replies, changed))
}

/// The answer to a command that is in the group twice.
fn again(replies: &[Reply], place: Place) -> Reply {
    let first = replies.iter().flatten().find(|reply| reply.first_position == place.first);
    let lost = || LogError::Unreachable("the first answer to a command of this group is lost".into());
    Ok(Appended { replayed: true, ..first.cloned().ok_or_else(lost)? })
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
