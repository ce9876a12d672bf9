//! The writer: one task that commits what has queued up as one transaction.
//!
//! Owns: grouping. Invariant: an append that the database refuses does not fail the others of its group, which are then
//! committed one by one.

use super::group::{Failed, Reply, commit};
use crate::book::Book;
use crate::{Append, LogError};
use std::time::Duration;
use store::Db;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// How many appends are committed at once at most.
const GROUP_MAX: usize = 1024;

/// How long a commit may take. A database that does not answer by then may have done it, and who asks again is told.
const COMMIT_MAX: Duration = Duration::from_secs(30);

/// An append that waits for its reply.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) append: Append,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// Commits until nobody can append any more.
pub(super) async fn run(db: Db, mut jobs: mpsc::Receiver<Job>, committed: watch::Sender<i64>) {
    let mut writer = Writer { db, book: Book::default(), committed };
    let mut group = Vec::with_capacity(GROUP_MAX);
    while jobs.recv_many(&mut group, GROUP_MAX).await > 0 {
        let appends: Vec<&Append> = group.iter().map(|job| &job.append).collect();
        let replies = writer.write(&appends).await;
        for (job, reply) in group.drain(..).zip(replies) {
            // Who no longer waits does not mind.
            let _ = job.reply.send(reply);
        }
        // Those who were answered may have more to append: the larger the group, the cheaper each of it.
        let mut queued = None;
        while queued != Some(jobs.len()) && jobs.len() < GROUP_MAX {
            queued = Some(jobs.len());
            tokio::task::yield_now().await;
        }
    }
}

struct Writer {
    db: Db,
    /// Of the last commit, if that was ours; else empty.
    book: Book,
    committed: watch::Sender<i64>,
}

impl Writer {
    async fn write(&mut self, appends: &[&Append]) -> Vec<Reply> {
        match self.commit(appends).await {
            Ok(replies) => replies,
            Err(Failed::Refused(why)) if appends.len() > 1 => {
                tracing::warn!(
                    group.appends = appends.len(),
                    "the log's database refused a group, now one by one: {why}"
                );
                self.one_by_one(appends).await
            }
            Err(Failed::Refused(why) | Failed::Database(why)) => {
                tracing::error!(group.appends = appends.len(), "the log could not append: {why}");
                unreachable(appends.len(), &why)
            }
        }
    }

    /// Gives up at once where the database is out of reach, so that nobody waits for each append's own time-out.
    async fn one_by_one(&mut self, appends: &[&Append]) -> Vec<Reply> {
        let mut replies = Vec::with_capacity(appends.len());
        for append in appends {
            match self.commit(&[append]).await {
                Ok(mut reply) => replies.append(&mut reply),
                Err(Failed::Refused(why)) => replies.extend(unreachable(1, &why)),
                Err(Failed::Database(why)) => {
                    replies.extend(unreachable(appends.len() - replies.len(), &why));
                    break;
                }
            }
        }
        replies
    }

    async fn commit(&mut self, appends: &[&Append]) -> Result<Vec<Reply>, Failed> {
        // Taken, so that nothing is left of a group that is not committed.
        let mut book = std::mem::take(&mut self.book);
        let late = |_| Failed::Database(format!("the database did not answer for {} s", COMMIT_MAX.as_secs()));
        let replies = timeout(COMMIT_MAX, commit(&self.db, &mut book, appends)).await.map_err(late)??;
        self.committed.send_replace(book.head);
        self.book = book;
        Ok(replies)
    }
}

fn unreachable(appends: usize, why: &str) -> Vec<Reply> {
    (0..appends).map(|_| Err(LogError::Unreachable(why.into()))).collect()
}
