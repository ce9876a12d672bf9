//! Words of the kernel that are kept as the text that they are written as.

use super::column;
use domain::kernel;
use serde::{Deserialize, Serialize};
use sqlx::error::BoxDynError;
use utoipa::openapi::ObjectBuilder;

macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident named $shown:literal, written $pattern:literal;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub kernel::$name);

        impl $name {
            fn kept(&self) -> Result<String, BoxDynError> {
                Ok(self.0.to_string())
            }

            fn from_sql(text: String) -> Result<Self, BoxDynError> {
                Ok(Self(text.parse()?))
            }

            fn describe(schema: ObjectBuilder) -> ObjectBuilder {
                schema.pattern(Some($pattern))
            }
        }

        impl From<kernel::$name> for $name {
            fn from(word: kernel::$name) -> Self {
                Self(word)
            }
        }

        column!($name is TEXT as String, named $shown, in GraphQL String);
    )+};
}

texts! {
    /// A currency, by its ISO 4217 code.
    #[derive(Copy)]
    Currency named "Currency", written "^[A-Z]{3}$";

    /// A calendar month, such as `2026-11`.
    #[derive(Copy, PartialOrd, Ord)]
    Month named "Month", written r"^\d{4}-(0[1-9]|1[0-2])$";

    /// What is held, ordered and priced: `core`, or `card.` and a model.
    #[derive(PartialOrd, Ord)]
    Resource named "Resource", written r"^(core|card\.[a-z0-9][a-z0-9.-]{0,39})$";

    /// A time zone, by its IANA name.
    #[derive(Copy)]
    Zone named "Zone", written "^[A-Za-z0-9_+/-]+$";
}
