//! How far each projection has come. Table `checkpoints (projection text primary key, checkpoint bigint not null)`,
//! which the migrations of the database that uses it create.
//!
//! Owns: moving a checkpoint. Invariant: one checkpoint per projection, and it only moves forward.

use crate::{Db, Error, Result, Tx};

/// Takes a projection's checkpoint until this transaction ends, and says where it is (0 before the first event):
/// another process that folds the same projection waits, and then sees where this one came to.
pub async fn claim(tx: &mut Tx, projection: &'static str) -> Result<i64> {
    let (position,) = tx
        .sql(
            "insert into checkpoints (projection, checkpoint) values ($1, 0)
             on conflict (projection) do update set checkpoint = checkpoints.checkpoint
             returning checkpoint",
        )
        .bind(projection)
        .one::<(i64,)>()
        .await?;
    Ok(position)
}

/// Moves a projection's checkpoint forward, in the transaction that applies the events up to this position.
///
/// Refuses to move it back or to leave it, so an event that comes twice, or to two projectors, is applied once.
pub async fn checkpoint(tx: &mut Tx, projection: &'static str, position: i64) -> Result<()> {
    let moved = tx
        .sql(
            "insert into checkpoints (projection, checkpoint) values ($1, $2)
             on conflict (projection) do update set checkpoint = excluded.checkpoint
             where checkpoints.checkpoint < excluded.checkpoint",
        )
        .bind(projection)
        .bind(position)
        .run()
        .await?;
    if moved == 1 { Ok(()) } else { Err(Error::AlreadyApplied(projection)) }
}

/// The position of the last event that a projection contains; 0 before the first.
pub async fn checkpoint_of(db: &Db, projection: &str) -> Result<i64> {
    let row: Option<(i64,)> =
        db.sql("select checkpoint from checkpoints where projection = $1").bind(projection).optional().await?;
    Ok(row.map_or(0, |(position,)| position))
}
