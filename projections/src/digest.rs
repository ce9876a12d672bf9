//! A digest of a projection's tables, to show that a rebuilt one equals the live one.
//!
//! Owns: the canonical text of a row. Invariant: equal rows in any order of writing give the same digest; the
//! checkpoint is not part of it.

use sqlx::{Column, Row, ValueRef, postgres::PgRow, sqlite::SqliteRow};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use store::{Db, Result};

/// Every row of a table as text, sorted, and a hash over them.
pub async fn digest(db: &Db, table: &str) -> Result<(u64, Vec<String>)> {
    let text = sqlx::AssertSqlSafe(format!("select * from {table}"));
    let rows: Vec<Shown> = db.sql(text).all().await?;
    let mut rows: Vec<String> = rows.into_iter().map(|row| row.0).collect();
    rows.sort();
    let mut hash = DefaultHasher::new();
    rows.hash(&mut hash);
    Ok((hash.finish(), rows))
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
                    } else {
                        row.try_get::<i64, _>(place)
                            .map(|number| number.to_string())
                            .or_else(|_| row.try_get::<bool, _>(place).map(|truth| truth.to_string()))
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
