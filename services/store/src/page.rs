//! Lists in pages: the rows after a cursor, never an offset. One `Slice` answers REST and GraphQL.
//!
//! Owns: `limit` and `cursor`, `{items, next_cursor}`. Does not own: a list's order, which its `Keyset` and SQL share.
//! Invariant: a `Page` is valid once it exists, so a list needs no check of its own.

use crate::{Error, Result};
use async_graphql::{
    OutputType,
    connection::{Connection, Edge},
};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, str::FromStr};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// How many items a page has unless it is said.
pub const PAGE_DEFAULT: u32 = 50;
/// How many items a page has at most.
pub const PAGE_MAX: u32 = 200;

/// Which part of a list is wanted: the query parameters `limit` and `cursor`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(try_from = "Asked")]
pub struct Page {
    /// How many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    limit: Option<u32>,
    cursor: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slice<T> {
    /// The things themselves.
    pub items: Vec<T>,
    /// Where the next page starts; null at the end.
    pub next_cursor: Option<String>,
}

/// A row with a place in its list: the value of its sort key.
pub trait Keyset {
    /// Where the rows after this one start.
    fn cursor(&self) -> String;
}

impl TryFrom<Asked> for Page {
    type Error = Error;
    fn try_from(asked: Asked) -> Result<Self> {
        Self::new(asked.limit, asked.cursor)
    }
}

impl Page {
    /// The page of at most `limit` rows after `cursor`; GraphQL's `first` and `after`. `Error::BadLimit` unless the
    /// limit is 1 to 200.
    pub fn new(limit: Option<u32>, cursor: Option<String>) -> Result<Self> {
        match limit {
            Some(limit) if !(1..=PAGE_MAX).contains(&limit) => Err(Error::BadLimit(limit)),
            Some(_) | None => Ok(Self { limit, cursor }),
        }
    }

    /// The sort key that the page starts after; `start` is one before all others. `Error::BadCursor` if it is none.
    pub fn after_or<K: FromStr>(&self, start: K) -> Result<K> {
        let bad = |cursor: &str| Error::BadCursor(cursor.chars().take(64).collect());
        self.cursor.as_deref().map_or(Ok(start), |cursor| cursor.parse().map_err(|_| bad(cursor)))
    }

    /// For SQL's `limit`: one row more than is shown tells whether there is a next page.
    pub fn limit(&self) -> i64 {
        i64::from(self.size()) + 1
    }

    fn size(&self) -> u32 {
        self.limit.unwrap_or(PAGE_DEFAULT)
    }

    /// The page out of the rows that `limit` let through.
    pub fn slice<T: Keyset>(&self, mut items: Vec<T>) -> Slice<T> {
        let size = self.size() as usize;
        let more = items.len() > size;
        items.truncate(size);
        let next_cursor = items.last().filter(|_| more).map(Keyset::cursor);
        Slice { items, next_cursor }
    }
}

impl<T: Keyset + OutputType> From<Slice<T>> for Connection<String, T> {
    /// The same page as a Relay connection (forward only).
    fn from(slice: Slice<T>) -> Self {
        let mut connection = Self::new(false, slice.next_cursor.is_some());
        connection.edges.extend(slice.items.into_iter().map(|row| Edge::new(row.cursor(), row)));
        connection
    }
}

/// Written by hand because the derive repeats the row's schema inside each page instead of naming it.
impl<T: ToSchema> PartialSchema for Slice<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let text_or_null = SchemaType::from_iter([Type::String, Type::Null]);
        let next = ObjectBuilder::new()
            .schema_type(text_or_null)
            .description(Some("Where the next page starts: send it as `cursor`. Null at the end."));
        let page = ObjectBuilder::new().property("items", items).property("next_cursor", next);
        page.required("items").required("next_cursor").description(Some("A part of a list.")).into()
    }
}

impl<T: ToSchema> ToSchema for Slice<T> {
    fn name() -> Cow<'static, str> {
        format!("{}Page", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}
