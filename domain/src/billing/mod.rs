//! Billing (计费): money. Kept apart from metering 计量, rating 计价 and settlement 结算.
//!
//! Owns: the wallet (what may be spent), the monthly double-entry ledger (what was charged), the statement 账单 (what
//! the customer is told) and series (numbers without gaps). Does not own: prices (`catalog`), usage (`metering`), the
//! tax invoice 发票.
//! On failure: what has no price stays visible as unrated and blocks the close; a charge that comes after the close is
//! deferred to the next month, with its own dates.

pub mod ledger;
pub mod line;
pub mod series;
pub mod statement;
pub mod wallet;

pub use ledger::Ledger;
pub use series::Series;
pub use statement::Statement;
pub use wallet::Wallet;
