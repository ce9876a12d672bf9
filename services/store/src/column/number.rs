//! Times and amounts as columns: whole numbers in SQL, exact text everywhere else.

use super::column;
use chrono::{DateTime, SubsecRound, Utc};
use domain::kernel::money::AMOUNT_SCALE;
use rust_decimal::{Decimal, prelude::ToPrimitive};
use serde::{Deserialize, Serialize};
use sqlx::error::BoxDynError;
use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat};

/// An instant, kept as BIGINT microseconds since 1970 and shown as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "DateTime<Utc>", into = "DateTime<Utc>")]
pub struct Time(DateTime<Utc>);

impl From<DateTime<Utc>> for Time {
    /// Cuts to the microsecond, so that what is kept equals what was said.
    fn from(at: DateTime<Utc>) -> Self {
        Self(at.trunc_subsecs(6))
    }
}

impl From<Time> for DateTime<Utc> {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl Time {
    /// The instant.
    pub fn at(self) -> DateTime<Utc> {
        self.0
    }

    fn kept(self) -> Result<i64, BoxDynError> {
        Ok(self.0.timestamp_micros())
    }

    fn from_sql(micros: i64) -> Result<Self, BoxDynError> {
        let at = DateTime::from_timestamp_micros(micros);
        Ok(Self(at.ok_or_else(|| format!("{micros} µs since 1970 is not a time"))?))
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        schema.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
    }
}

column!(Time is BIGINT as i64, named "Time", in GraphQL DateTime<Utc>);

/// An exact amount of the row's currency, or of a unit; kept as BIGINT at scale 8 and shown as a decimal string.
/// One that is finer or larger (about ±92 billion) is refused when it is bound, never rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(pub Decimal);

impl Amount {
    fn kept(self) -> Result<i64, BoxDynError> {
        let large = || format!("the amount {} is too large to be kept: it is at most about 92 billion", self.0);
        let units = self.0.checked_mul(Decimal::from(10_u64.pow(AMOUNT_SCALE))).ok_or_else(large)?;
        if !units.is_integer() {
            return Err(format!("the amount {} has more than {AMOUNT_SCALE} decimal places", self.0).into());
        }
        Ok(units.to_i64().ok_or_else(large)?)
    }

    fn from_sql(units: i64) -> Result<Self, BoxDynError> {
        Ok(Self(Decimal::new(units, AMOUNT_SCALE).normalize()))
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        schema.pattern(Some(r"^-?\d+(\.\d{1,8})?$"))
    }
}

column!(Amount is BIGINT as i64, named "Amount", in GraphQL Decimal);
