//! A digest of a projection's tables, to show that a rebuilt one equals the live one.
//!
//! Owns: the canonical text of a row. Invariant: equal rows in any order of writing give the same digest; the
//! checkpoint is not part of it; the digest is the same in every build and on both engines.

use sha2::{Digest, Sha256};
use sqlx::{Column, Row, TypeInfo, ValueRef, postgres::PgRow, sqlite::SqliteRow};
use store::{Db, Result};

/// SHA-256 over the rows of a table, in 64 hex digits, and each row as text, sorted.
pub async fn digest(db: &Db, table: &str) -> Result<(String, Vec<String>)> {
    let text = sqlx::AssertSqlSafe(format!("select * from {table}"));
    let rows: Vec<Shown> = db.sql(text).all().await?;
    let mut rows: Vec<String> = rows.into_iter().map(|row| row.0).collect();
    rows.sort();
    // Each row with its length, so that no two lists of rows have the same bytes.
    let with = |hash: Sha256, row: &String| hash.chain_update(u64::to_le_bytes(row.len() as u64)).chain_update(row);
    let hash = rows.iter().fold(Sha256::new(), with).finalize();
    Ok((hash.iter().map(|byte| format!("{byte:02x}")).collect(), rows))
}

/// A row as `column=value` pairs.
struct Shown(String);

macro_rules! shown {
    ($row:ty) => {
        impl<'r> sqlx::FromRow<'r, $row> for Shown {
            fn from_row(row: &'r $row) -> sqlx::Result<Self> {
                let mut text = String::new();
                for (place, column) in row.columns().iter().enumerate() {
                    let value = if row.try_get_raw(place)?.is_null() {
                        "null".into()
                    } else if column.type_info().name().starts_with("BOOL") {
                        // SQLite keeps a number, which the type of the column tells from one.
                        row.try_get::<bool, _>(place)?.to_string()
                    } else {
                        row.try_get::<i64, _>(place)
                            .map(|number| number.to_string())
                            .or_else(|_| row.try_get::<String, _>(place))?
                    };
                    text.push_str(&format!("{}={value};", column.name()));
                }
                Ok(Self(text))
            }
        }
    };
}
shown!(SqliteRow);
shown!(PgRow);
