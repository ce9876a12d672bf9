//! On whose account something is used, as agreed when it was asked for.
//!
//! Owns: the value that orders, jobs, leases, meters and ledgers carry. Does not own: the contract itself (`catalog`).

use super::{ContractId, Currency, CustomerId, PriceBookId, Zone};
use serde::{Deserialize, Serialize};

/// Who pays, by which price book, in whose calendar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillTo {
    pub contract: ContractId,
    pub customer: CustomerId,
    pub book: PriceBookId,
    /// The product that is charged.
    pub sku: String,
    /// Whose months the statements follow.
    pub zone: Zone,
    pub currency: Currency,
}
