//! Ids as columns.

use super::column;
use async_graphql as graphql;
use domain::kernel;
use serde::{Deserialize, Serialize};
use sqlx::error::BoxDynError;
use std::fmt;
use utoipa::openapi::ObjectBuilder;

/// An id, kept as TEXT and shown as the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent, bound = "T: kernel::Id")]
pub struct Id<T>(pub T);

macro_rules! ids {
    ($($name:ident)+) => {$(pub type $name = Id<kernel::$name>;)+};
}

ids! {
    CommandId ContractId CustomerId EventId JobId KeyId LeaseId MemberId NodeId OrderId PoolId PriceBookId ProductId
    StatementId TenantId
}

impl<T: kernel::Id> Id<T> {
    fn kept(self) -> Result<String, BoxDynError> {
        Ok(self.0.to_string())
    }

    fn from_sql(text: String) -> Result<Self, BoxDynError> {
        Ok(Self(text.parse()?))
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        schema.pattern(Some(format!("^{}_[0-9A-HJKMNP-TV-Z]{{26}}$", T::PREFIX)))
    }
}

impl<T: kernel::Id> From<T> for Id<T> {
    fn from(id: T) -> Self {
        Self(id)
    }
}

impl<T: kernel::Id> fmt::Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

column!(Id<T: kernel::Id> is TEXT as String, named T::NAME, in GraphQL graphql::ID);
