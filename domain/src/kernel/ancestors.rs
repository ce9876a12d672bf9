//! Where a tenant stands in the organisation tree: the nodes above it.
//!
//! Owns: the value that tenants, orders and jobs carry, and how deep a tree may be. Does not own: who is whose child
//! (`identity`). Invariant: a parent never changes, so what was true of a node when it was made stays true.

use super::TenantId;
use serde::{Deserialize, Serialize};

/// How many nodes a path from a root down to a node has at most, both ends counted.
pub const DEPTH_MAX: usize = 8;

/// The nodes above a tenant, the root first. None: the tenant is a root itself, below the platform only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ancestors(Vec<TenantId>);

impl Ancestors {
    /// Those of a root.
    pub const NONE: Self = Self(Vec::new());

    /// Those of a child of `tenant`, which has these itself. The platform is no node of any tree.
    #[must_use]
    pub fn with(&self, tenant: TenantId) -> Self {
        if tenant == TenantId::PLATFORM {
            return Self::NONE;
        }
        Self(self.0.iter().copied().chain([tenant]).collect())
    }

    /// Whether it is a root's.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The node right above. `None` for a root.
    pub fn parent(&self) -> Option<TenantId> {
        self.0.last().copied()
    }

    /// Whether a node is among them.
    pub fn contains(&self, node: TenantId) -> bool {
        self.0.contains(&node)
    }

    /// How many nodes the path down to a tenant with these has.
    pub fn depth(&self) -> usize {
        self.0.len() + 1
    }

    /// The root of the tree in which `tenant` has these.
    pub fn root(&self, tenant: TenantId) -> TenantId {
        self.0.first().copied().unwrap_or(tenant)
    }

    /// The way from `tenant`, which has these, up to the root.
    pub fn upwards(&self, tenant: TenantId) -> impl Iterator<Item = TenantId> {
        [tenant].into_iter().chain(self.0.iter().rev().copied())
    }

    /// The way from below the root down to `tenant`, which has these; none for the root itself.
    pub fn below_root(&self, tenant: TenantId) -> Vec<TenantId> {
        self.0.iter().copied().chain([tenant]).skip(1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Id;

    fn node(name: &str) -> TenantId {
        Id::derived(TenantId::PLATFORM, name)
    }

    #[test]
    fn leads_up_to_the_root_and_down_from_it() {
        let (root, team, project) = (node("root"), node("team"), node("project"));
        let of_root = Ancestors::NONE.with(TenantId::PLATFORM);
        assert!(of_root.is_empty() && of_root.depth() == 1 && of_root.root(root) == root);
        assert!(of_root.below_root(root).is_empty() && of_root.parent().is_none());
        let of_project = of_root.with(root).with(team);
        assert_eq!((of_project.root(project), of_project.parent()), (root, Some(team)));
        assert_eq!(of_project.upwards(project).collect::<Vec<_>>(), [project, team, root]);
        assert_eq!(of_project.below_root(project), [team, project]);
        assert!(of_project.contains(team) && !of_project.contains(project) && of_project.depth() == 3);
    }
}
