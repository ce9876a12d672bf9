//! Permissions and roles: the closed list of what may be permitted, and to whom.
//!
//! Owns: both lists, their written forms, and which role has which permissions. Does not own: what a permission
//! guards (the handlers name it in their signature).
//!
//! Invariants: a written form never changes; the operator has every permission; the auditor changes nothing; no role
//! that a tenant may give has a permission over prices, nodes, contracts, suspensions, wallets or the issuing of
//! statements, and what it has over tenants and quotas is for the nodes below one's own.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $bad:ident: $(#[$bad_doc:meta])* $message:literal,
     $($(#[$word_doc:meta])* $word:ident = $text:literal;)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$word_doc])* $word,)+
        }

        $(#[$bad_doc])*
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[error($message)]
        pub struct $bad(String);

        impl $name {
            /// Every one, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$word,)+];

            /// The written form.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = $bad;
            fn from_str(text: &str) -> Result<Self, $bad> {
                let found = Self::ALL.iter().find(|known| known.as_str() == text);
                found.copied().ok_or_else(|| $bad(text.chars().take(64).collect()))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

words! {
    /// What may be permitted.
    Permission, BadPermission:
    /// Not a permission.
    "`{0}` is not a permission, which is written like order:read",
    AuditRead = "audit:read";
    BillIssue = "bill:issue";
    BillRead = "bill:read";
    ContractSign = "contract:sign";
    JobCancel = "job:cancel";
    JobRead = "job:read";
    JobSubmit = "job:submit";
    KeyManage = "key:manage";
    MemberManage = "member:manage";
    NodeManage = "node:manage";
    NodeRead = "node:read";
    OrderApprove = "order:approve";
    OrderRead = "order:read";
    OrderRequest = "order:request";
    PricePublish = "price:publish";
    PriceRead = "price:read";
    ProjectionManage = "projection:manage";
    QuotaRead = "quota:read";
    QuotaSet = "quota:set";
    TenantManage = "tenant:manage";
    TenantSuspend = "tenant:suspend";
    WalletManage = "wallet:manage";
}

words! {
    /// A fixed set of permissions.
    Role, BadRole:
    /// Not a role.
    "`{0}` is not a role; operator, tenant_admin, engineer, finance and auditor are",
    /// Runs the platform.
    Operator = "operator";
    /// Runs a tenant and all below it: members, approvals, projects and their quotas.
    TenantAdmin = "tenant_admin";
    /// Orders capacity and submits jobs.
    Engineer = "engineer";
    /// Reads what is used and billed.
    Finance = "finance";
    /// Reads everything of the platform, and changes nothing.
    Auditor = "auditor";
}

/// How far a role reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The member's own node of the organisation tree.
    Node,
    /// That node and all below it.
    Subtree,
    /// Every tenant, and the platform itself.
    Platform,
}

impl Role {
    /// What a member with this role may do.
    pub fn permissions(self) -> &'static [Permission] {
        use Permission::*;
        match self {
            Self::Operator => Permission::ALL,
            Self::TenantAdmin => &[
                BillRead,
                JobCancel,
                JobRead,
                JobSubmit,
                KeyManage,
                MemberManage,
                NodeRead,
                OrderApprove,
                OrderRead,
                OrderRequest,
                PriceRead,
                QuotaRead,
                QuotaSet,
                TenantManage,
            ],
            Self::Engineer => &[
                BillRead,
                JobCancel,
                JobRead,
                JobSubmit,
                KeyManage,
                NodeRead,
                OrderRead,
                OrderRequest,
                PriceRead,
                QuotaRead,
            ],
            Self::Finance => &[BillRead, JobRead, KeyManage, OrderRead, PriceRead, QuotaRead],
            Self::Auditor => &[AuditRead, BillRead, JobRead, NodeRead, OrderRead, PriceRead, QuotaRead],
        }
    }

    /// Whose things it lets its members reach.
    pub fn reach(self) -> Reach {
        match self {
            Self::Engineer => Reach::Node,
            Self::TenantAdmin | Self::Finance => Reach::Subtree,
            Self::Operator | Self::Auditor => Reach::Platform,
        }
    }

    /// Whether it is held by members of the platform tenant only, who see every tenant with it.
    pub fn is_platform(self) -> bool {
        self.reach() == Reach::Platform
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn is_written_one_way() {
        for permission in Permission::ALL {
            assert_eq!(permission.to_string().parse(), Ok(*permission));
        }
        for role in Role::ALL {
            assert_eq!(serde_json::from_str::<Role>(&serde_json::to_string(role).unwrap()).unwrap(), *role);
        }
        for text in ["", "Order:read", "order.read", "order:read ", "root"] {
            assert!(text.parse::<Permission>().is_err() && text.parse::<Role>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_operator_has_all_and_no_role_has_a_permission_twice() {
        assert_eq!(Role::Operator.permissions(), Permission::ALL);
        for role in Role::ALL {
            let once: BTreeSet<_> = role.permissions().iter().collect();
            assert_eq!(once.len(), role.permissions().len(), "{role}");
        }
    }

    #[test]
    fn a_tenants_roles_reach_nothing_of_the_platform() {
        use Permission::*;
        for role in Role::ALL.iter().filter(|role| !role.is_platform()) {
            for platform in [
                AuditRead,
                BillIssue,
                ContractSign,
                NodeManage,
                PricePublish,
                ProjectionManage,
                TenantSuspend,
                WalletManage,
            ] {
                assert!(!role.permissions().contains(&platform), "{role} {platform}");
            }
        }
    }

    #[test]
    fn the_auditor_only_reads() {
        assert!(Role::Auditor.permissions().iter().all(|permission| permission.as_str().ends_with(":read")));
    }
}
