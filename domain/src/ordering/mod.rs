//! Ordering: from a tenant's request for capacity to its return (申请→审批→开通→退订).
//!
//! Owns: the request, its terms, its approval, its life. Does not own: the ceiling (`quota`), the running cards
//! (`allocation`), money (`billing`). On failure: an approved order that finds no quota ends as refused, with the numbers.

pub mod order;

pub use order::Order;
