//! The writer: one task that commits what has queued up as one transaction.
//!
//! Owns: grouping. Invariant: an append that the database refuses does not fail the others of its group, which are then
//! committed one by one.

use super::group::{Failed, Reply, commit};
use crate::{Append, LogError};
use store::Db;
use tokio::sync::{mpsc, oneshot, watch};

/// How many appends are committed at once at most.
const GROUP_MAX: usize = 1024;

/// An append that waits for its reply.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) append: Append,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// Commits until nobody can append any more.
pub(super) async fn run(db: Db, mut jobs: mpsc::Receiver<Job>, committed: watch::Sender<i64>) {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while jobs.recv_many(&mut group, GROUP_MAX).await > 0 {
        let appends: Vec<&Append> = group.iter().map(|job| &job.append).collect();
        let replies = write(&db, &appends, &committed).await;
        for (job, reply) in group.drain(..).zip(replies) {
            // Who no longer waits does not mind.
            let _ = job.reply.send(reply);
        }
    }
}

async fn write(db: &Db, appends: &[&Append], head: &watch::Sender<i64>) -> Vec<Reply> {
    match commit(db, appends).await {
        Ok(committed) => {
            head.send_replace(committed.head);
            committed.replies
        }
        Err(Failed::Refused(why)) if appends.len() > 1 => {
            tracing::warn!(group.appends = appends.len(), "the log's database refused a group, now one by one: {why}");
            one_by_one(db, appends, head).await
        }
        Err(Failed::Refused(why) | Failed::Database(why)) => {
            tracing::error!(group.appends = appends.len(), "the log could not append: {why}");
            unreachable(appends.len(), &why)
        }
    }
}

/// Gives up at once where the database is out of reach, so that nobody waits for each append's own time-out.
async fn one_by_one(db: &Db, appends: &[&Append], head: &watch::Sender<i64>) -> Vec<Reply> {
    let mut replies = Vec::with_capacity(appends.len());
    for append in appends {
        match commit(db, &[append]).await {
            Ok(mut committed) => {
                head.send_replace(committed.head);
                replies.append(&mut committed.replies);
            }
            Err(Failed::Refused(why)) => replies.extend(unreachable(1, &why)),
            Err(Failed::Database(why)) => {
                replies.extend(unreachable(appends.len() - replies.len(), &why));
                break;
            }
        }
    }
    replies
}

fn unreachable(appends: usize, why: &str) -> Vec<Reply> {
    (0..appends).map(|_| Err(LogError::Unreachable(why.into()))).collect()
}
