//! What the platform knows and decides, as pure functions over events. No clock, no IO, no randomness, no float.
//!
//! | 中文 | word here | meaning |
//! |---|---|---|
//! | 租户 | tenant | a node of the organisation tree that owns resources and bills |
//! | 申请·审批·开通·退订 | request, approve, activate, return | the life of an order |
//! | 配额 | quota | how much capacity a tenant may have at once |
//! | 占用 | lease | the right to cards, cores and memory of one node |
//! | 卡时·核时 | card-hour, core-hour | one card or core for one hour |
//! | 计量·计价·计费·结算 | metering, rating, billing, settlement | used, priced, charged, paid |
//! | 账单 | statement | what a customer is told about a month; not the 发票 (tax invoice) |
//! | 预扣·解冻 | hold, release | money or quota set aside for one job or order |
//! | 资源池 | pool | nodes that are scheduled together |

pub mod allocation;
pub mod billing;
pub mod catalog;
pub mod flows;
pub mod identity;
pub mod kernel;
pub mod metering;
pub mod ordering;
pub mod pools;
pub mod quota;
mod registry;

pub use registry::{CATEGORIES, Command, Event, Fold, Give, Listed, State, Unreadable};
