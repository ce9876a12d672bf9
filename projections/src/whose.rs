//! Whose rows a list shows: a node of the organisation tree, that node and all below it, or every tenant.
//!
//! Owns: the two parameters that such a list binds. Does not own: who may see what (`kit`), the tree (`tenants`).
//! A list's SQL has `(tenant = $1 or $1 is null or tenant in (select below from tenant_tree where node = $2))`, with
//! `one` as `$1` and `top` as `$2`.

use store::TenantId;

/// Whose rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of every tenant.
    All,
    /// Those of one tenant, and not of those below it.
    One(TenantId),
    /// Those of a tenant and of all below it.
    Subtree(TenantId),
}

impl Whose {
    /// The tenant whose rows are shown in any case; none for all.
    pub(crate) fn one(self) -> Option<TenantId> {
        match self {
            Self::All => None,
            Self::One(tenant) | Self::Subtree(tenant) => Some(tenant),
        }
    }

    /// The tenant below which all rows are shown too.
    pub(crate) fn top(self) -> Option<TenantId> {
        match self {
            Self::All | Self::One(_) => None,
            Self::Subtree(tenant) => Some(tenant),
        }
    }
}
