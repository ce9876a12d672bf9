//! Catalogue: what is sold, for how much, to whom, on which terms.
//!
//! Owns: products, price books with dated immutable versions, contracts, and rating (计价), which is a pure function.
//! Does not own: usage (`metering`), charges and statements (`billing`). On failure: what has no price is said to have
//! none; it is never free by accident.

pub mod contract;
pub mod price_book;
pub mod product;
pub mod rating;

pub use contract::Contract;
pub use price_book::PriceBook;
pub use product::Product;
