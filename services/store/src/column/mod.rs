//! Column types. Each knows its three forms: what SQL keeps, what JSON and GraphQL show, and how OpenAPI describes it.
//! A row struct uses them as fields and needs no mapping; a parameter is wrapped on the spot: `.bind(Id(order))`.
//!
//! Owns: the forms. Does not own: the words themselves (`domain::kernel`). Invariant: what is read back is what was
//! written, or reading fails; nothing is rounded or guessed.

mod id;
mod number;
mod text;

pub use id::{
    CommandId, ContractId, CustomerId, EventId, Id, JobId, KeyId, LeaseId, MemberId, NodeId, OrderId, PoolId,
    PriceBookId, ProductId, StatementId, TenantId,
};
pub use number::{Amount, Time};
pub use text::{Currency, Month, Resource, Zone};

/// Makes a type with `kept`, `from_sql` and `describe` a column of both engines, a GraphQL scalar and an OpenAPI schema.
macro_rules! column {
    ($type:ident $(<$t:ident: $bound:path>)? is $kept:ident as $sql:ty, named $name:expr, in GraphQL $scalar:ty) => {
        impl<DB: sqlx::Database $(, $t: $bound)?> sqlx::Type<DB> for $type$(<$t>)? where $sql: sqlx::Type<DB> {
            fn type_info() -> DB::TypeInfo {
                <$sql as sqlx::Type<DB>>::type_info()
            }

            fn compatible(kept: &DB::TypeInfo) -> bool {
                <$sql as sqlx::Type<DB>>::compatible(kept)
            }
        }

        impl<'q, DB: sqlx::Database $(, $t: $bound)?> sqlx::Encode<'q, DB> for $type$(<$t>)? where $sql: sqlx::Encode<'q, DB> {
            fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                sqlx::Encode::<'q, DB>::encode(self.kept()?, buffer)
            }
        }

        impl<'r, DB: sqlx::Database $(, $t: $bound)?> sqlx::Decode<'r, DB> for $type$(<$t>)? where $sql: sqlx::Decode<'r, DB> {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                Self::from_sql(<$sql as sqlx::Decode<'r, DB>>::decode(value)?)
            }
        }

        impl$(<$t: $bound>)? utoipa::PartialSchema for $type$(<$t>)? {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                Self::describe(utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::Type::String)).into()
            }
        }

        impl$(<$t: $bound>)? utoipa::ToSchema for $type$(<$t>)? {
            fn name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
        }

        impl$(<$t: $bound>)? async_graphql::OutputType for $type$(<$t>)? {
            fn type_name() -> std::borrow::Cow<'static, str> {
                <$scalar as async_graphql::OutputType>::type_name()
            }

            fn create_type_info(registry: &mut async_graphql::registry::Registry) -> String {
                <$scalar as async_graphql::OutputType>::create_type_info(registry)
            }

            async fn resolve(
                &self,
                _: &async_graphql::ContextSelectionSet<'_>,
                field: &async_graphql::Positioned<async_graphql::parser::types::Field>,
            ) -> async_graphql::ServerResult<async_graphql::Value> {
                async_graphql::to_value(self).map_err(|e| async_graphql::ServerError::new(e.to_string(), Some(field.pos)))
            }
        }

        impl$(<$t: $bound>)? async_graphql::InputType for $type$(<$t>)? {
            type RawValueType = Self;

            fn type_name() -> std::borrow::Cow<'static, str> {
                <$scalar as async_graphql::InputType>::type_name()
            }

            fn create_type_info(registry: &mut async_graphql::registry::Registry) -> String {
                <$scalar as async_graphql::InputType>::create_type_info(registry)
            }

            fn parse(value: Option<async_graphql::Value>) -> async_graphql::InputValueResult<Self> {
                Ok(async_graphql::from_value(value.unwrap_or_default())?)
            }

            fn to_value(&self) -> async_graphql::Value {
                async_graphql::to_value(self).unwrap_or_default()
            }

            fn as_raw_value(&self) -> Option<&Self> {
                Some(self)
            }
        }
    };
}
use column;
