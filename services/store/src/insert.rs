//! Many rows into a table at once, the quickest way that each engine has.
//!
//! Owns: `Cell`, `Tx::insert`. Invariants: PostgreSQL takes the rows as `copy … from stdin` in its text format, in which
//! four characters are escaped; SQLite takes them as `values`, in statements of a few sizes, so that each is prepared
//! once. One of the next larger size is filled up with rows of nulls, which are left out: that is quicker than a second
//! statement.

use crate::db::Open;
use crate::{Result, Tx};
use sqlx::{AssertSqlSafe, Postgres, Sqlite, Transaction};
use std::{borrow::Cow, fmt::Write as _};

/// How many rows a statement of SQLite takes. It has 32,766 parameters at most.
const SQLITE_ROWS: [usize; 6] = [1, 4, 16, 64, 128, 256];

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Of a BIGINT column.
    Whole(i64),
    /// Of a TEXT column.
    Text(Cow<'a, str>),
    /// Of a column that may be null.
    Null,
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Tx {
    /// Inserts rows. `into` is a table and its columns, as `events (position, …)`, with as many columns as a row has
    /// cells; the first cell of a row is not null.
    pub async fn insert<const N: usize>(&mut self, into: &'static str, rows: Vec<[Cell<'_>; N]>) -> Result<()> {
        debug_assert!(rows.iter().all(|row| row.first() != Some(&Cell::Null)), "the first cell is not null");
        match &mut self.0 {
            _ if rows.is_empty() => Ok(()),
            Open::Sqlite(tx) => values(tx, into, rows).await,
            Open::Postgres(tx) => copy(tx, into, &rows).await,
        }
    }
}

async fn values<const N: usize>(tx: &mut Transaction<'_, Sqlite>, into: &str, rows: Vec<[Cell<'_>; N]>) -> Result<()> {
    let row = format!("({})", ["?"; N].join(","));
    let mut left = rows.len();
    let mut rows = rows.into_iter();
    while left > 0 {
        let size = SQLITE_ROWS.into_iter().find(|size| *size >= left).unwrap_or(SQLITE_ROWS[SQLITE_ROWS.len() - 1]);
        let values = vec![row.as_str(); size].join(",");
        let text = format!("insert into {into} select * from (values {values}) where column1 is not null");
        let mut insert = sqlx::query(AssertSqlSafe(text));
        for cell in rows.by_ref().take(size).flatten() {
            // What is not bound is null.
            insert = match cell {
                Cell::Whole(number) => insert.bind(number),
                Cell::Text(text) => insert.bind(text),
                Cell::Null => insert.bind(None::<&str>),
            };
        }
        insert.execute(&mut **tx).await?;
        left = left.saturating_sub(size);
    }
    Ok(())
}

async fn copy<const N: usize>(tx: &mut Transaction<'_, Postgres>, into: &str, rows: &[[Cell<'_>; N]]) -> Result<()> {
    let mut lines = String::new();
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            if index > 0 {
                lines.push('\t');
            }
            match cell {
                // Writing to a text cannot fail.
                Cell::Whole(number) => _ = write!(lines, "{number}"),
                Cell::Text(text) => escape(text, &mut lines),
                Cell::Null => lines.push_str("\\N"),
            }
        }
        lines.push('\n');
    }
    let mut copy = tx.copy_in_raw(&format!("copy {into} from stdin")).await?;
    copy.send(lines.into_bytes()).await?;
    copy.finish().await?;
    Ok(())
}

fn escape(text: &str, line: &mut String) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'\\' => "\\\\",
            b'\t' => "\\t",
            b'\n' => "\\n",
            b'\r' => "\\r",
            _ => continue,
        };
        line.push_str(&text[from..at]);
        line.push_str(escaped);
        from = at + 1;
    }
    line.push_str(&text[from..]);
}
