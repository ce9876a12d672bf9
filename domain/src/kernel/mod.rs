//! The few words that every context speaks: aggregates, ids, envelopes, quantities, money, periods, rejections.
//!
//! Owns: shapes and units. Does not own: any business rule. Everything here is pure.

mod aggregate;
mod ancestors;
mod bill_to;
mod id;
pub mod money;
mod period;
mod quantity;
mod recorded;
mod sealed;
pub mod spec;

pub use aggregate::{Aggregate, Kind, Rejection, fold};
pub use ancestors::{Ancestors, DEPTH_MAX};
pub use bill_to::BillTo;
pub use id::{
    BadId, CommandId, ContractId, CustomerId, EventId, Id, JobId, KeyId, LeaseId, MemberId, NodeId, OrderId, PoolId,
    PriceBookId, ProductId, StatementId, TenantId,
};
pub use money::{BadCurrency, Currency};
pub use period::{BadMonth, BadZone, Month, Period, Zone};
pub use quantity::{BadResource, MILLI, Model, Quantity, Resource, Unit};
pub use recorded::{Meta, Recorded, StreamName};
pub use sealed::{BadSubjectKey, Sealed, SubjectKey};
