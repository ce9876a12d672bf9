//! Permission in a handler's signature: `can: Can<OrderRead>`.
//!
//! Owns: one marker type for each permission, the extractor, and the scope that goes with a permission.
//! Does not own: who has which permission (`domain::identity::Role`).
//! Invariants: the scope is that of the widest role which grants the permission, so an auditor who is also an engineer
//! reads every tenant and orders for their own only; a thing out of scope is answered as if there were none; whether a
//! thing is in scope is asked of the log, so that a node which was just made is in it at once.

use crate::{Actor, Kit, Problem};
use axum::{
    extract::{FromRef, FromRequestParts},
    http::{StatusCode, request::Parts},
};
use domain::{
    identity::{Permission, Tenant},
    kernel::TenantId,
};
use projections::Whose;
use std::marker::PhantomData;

/// A marker type that names a permission.
pub trait Permit: Send + Sync + 'static {
    /// The permission.
    const PERMISSION: Permission;
}

macro_rules! permits {
    ($($name:ident)+) => {
        $(
            #[doc = concat!("Names `Permission::", stringify!($name), "` in a handler's signature.")]
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Permit for $name {
                const PERMISSION: Permission = Permission::$name;
            }
        )+

        #[cfg(test)]
        const NAMED: &[Permission] = &[$(Permission::$name,)+];
    };
}

permits! {
    AuditRead BillIssue BillRead ContractSign JobCancel JobRead JobSubmit KeyManage MemberManage NodeManage NodeRead OrderApprove
    OrderRead OrderRequest PricePublish PriceRead ProjectionManage QuotaRead QuotaSet TenantManage
    TenantSuspend WalletManage
}

/// Whose things a permission reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of one node of the organisation tree, and not of those below it.
    One(TenantId),
    /// Those of a node and of all below it.
    Subtree(TenantId),
    /// Those of every tenant and of the platform itself.
    Platform,
}

impl Scope {
    /// Whether a tenant's things are in it. What is not is answered with 404.
    pub async fn sees(self, kit: &Kit, tenant: TenantId) -> Result<bool, Problem> {
        match self {
            Self::Platform => Ok(true),
            Self::One(own) | Self::Subtree(own) if own == tenant => Ok(true),
            Self::One(_) => Ok(false),
            Self::Subtree(top) => {
                let tenant = kit.executor.load::<Tenant>(tenant).await?.state;
                Ok(tenant.above().is_some_and(|above| above.contains(top)))
            }
        }
    }

    /// 404 `tenant.not_found`, unless a tenant's things are in it.
    pub async fn reaches(self, kit: &Kit, tenant: TenantId) -> Result<(), Problem> {
        if self.sees(kit, tenant).await? { Ok(()) } else { Err(Problem::not_found("tenant.not_found")) }
    }

    /// Whose things a list shows.
    pub fn whose(self) -> Whose {
        match self {
            Self::One(tenant) => Whose::One(tenant.into()),
            Self::Subtree(top) => Whose::Subtree(top.into()),
            Self::Platform => Whose::All,
        }
    }
}

/// Who asks, with the permission `P`. A handler that takes it is reached by nobody else.
#[derive(Debug, Clone)]
pub struct Can<P> {
    actor: Actor,
    scope: Scope,
    permit: PhantomData<P>,
}

impl<P: Permit> Can<P> {
    /// The same actor with the permission, or 403 with the name of the missing one.
    pub fn check(actor: Actor) -> Result<Self, Problem> {
        match actor.scope(P::PERMISSION) {
            Some(scope) => Ok(Self { actor, scope, permit: PhantomData }),
            None => Err(forbidden(P::PERMISSION)),
        }
    }

    /// Who asks.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Whose things the permission reaches.
    pub fn scope(&self) -> Scope {
        self.scope
    }
}

impl<P: Permit, S: Send + Sync> FromRequestParts<S> for Can<P>
where
    Kit: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Self::check(Actor::from_request_parts(parts, state).await?)
    }
}

/// The problem of an actor who lacks a permission.
pub fn forbidden(missing: Permission) -> Problem {
    let detail = format!("the permission `{missing}` is missing");
    Problem::new(StatusCode::FORBIDDEN, "auth.forbidden", detail)
        .with_hint("ask an administrator for a role that has it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{
        identity::{Reach, Role, member_of},
        kernel::Id,
    };
    use std::collections::BTreeSet;

    fn actor(tenant: TenantId, roles: &[Role]) -> Actor {
        let roles = roles.iter().copied().collect();
        Actor { member: member_of("li"), tenant, handle: "li".into(), roles, key: None }
    }

    fn acme() -> TenantId {
        TenantId::derived(TenantId::PLATFORM, "acme")
    }

    #[test]
    fn every_permission_has_a_marker() {
        let named: BTreeSet<_> = NAMED.iter().collect();
        assert_eq!(named, Permission::ALL.iter().collect());
    }

    #[test]
    fn a_role_reaches_what_it_permits_and_no_more() {
        for role in Role::ALL {
            let tenant = if role.is_platform() { TenantId::PLATFORM } else { acme() };
            for permission in Permission::ALL {
                let scope = actor(tenant, &[*role]).scope(*permission);
                let expected = match role.reach() {
                    Reach::Node => Scope::One(acme()),
                    Reach::Subtree => Scope::Subtree(acme()),
                    Reach::Platform => Scope::Platform,
                };
                assert_eq!(scope, role.permissions().contains(permission).then_some(expected), "{role} {permission}");
            }
        }
        assert_eq!(actor(acme(), &[]).scope(Permission::JobRead), None);
    }

    #[test]
    fn the_scope_is_that_of_the_role_which_permits() {
        let both = actor(TenantId::PLATFORM, &[Role::Auditor, Role::Engineer]);
        assert_eq!(both.scope(Permission::OrderRead), Some(Scope::Platform));
        assert_eq!(both.scope(Permission::OrderRequest), Some(Scope::One(TenantId::PLATFORM)));
    }

    #[test]
    fn a_platform_role_outside_the_platform_permits_nothing() {
        let stray = actor(acme(), &[Role::Operator]);
        assert_eq!(stray.scope(Permission::TenantManage), None);
    }

    #[test]
    fn the_missing_permission_is_named() {
        let problem = Can::<PricePublish>::check(actor(acme(), &[Role::Engineer])).unwrap_err();
        assert_eq!((problem.status(), problem.code()), (StatusCode::FORBIDDEN, "auth.forbidden"));
        assert!(problem.detail().contains("price:publish"));
        assert!(Can::<OrderRead>::check(actor(acme(), &[Role::Engineer])).is_ok());
    }

    #[test]
    fn the_widest_role_counts() {
        let both = actor(acme(), &[Role::Engineer, Role::TenantAdmin]);
        assert_eq!(both.scope(Permission::JobRead), Some(Scope::Subtree(acme())));
        let both = actor(acme(), &[Role::Engineer, Role::Finance]);
        assert_eq!(both.scope(Permission::JobSubmit), Some(Scope::One(acme())));
    }
}
