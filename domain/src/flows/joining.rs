//! Joining: a setup that was used makes the first operator; a machine that joined a pool becomes a node.

#![expect(clippy::wildcard_enum_match_arm, reason = "a story looks at the few events that concern it")]

use super::{Action, id_of};
use crate::Event;
use crate::identity::{Member, Role, member, tenant};
use crate::kernel::{PoolId, Recorded, TenantId};
use crate::pools::{Node, node, pool};
use std::collections::BTreeSet;

pub(super) fn react(cause: &Recorded, event: &Event) -> Vec<Action> {
    let platform = TenantId::PLATFORM;
    match event {
        Event::Tenant(tenant::Event::SetupUsed { member, handle, password, .. }) => {
            let add = member::Command::Add {
                tenant: platform,
                handle: handle.clone(),
                roles: BTreeSet::from([Role::Operator]),
                password: Some(password.clone()),
            };
            vec![Action::new::<Member>("add_first_operator", platform, member, add)]
        }
        Event::Pool(pool::Event::NodeJoined { node, credential, name, inventory, .. }) => {
            let Some(pool) = id_of::<PoolId>(cause) else { return vec![] };
            let register = node::Command::Register {
                pool,
                name: name.clone(),
                credential: credential.clone(),
                inventory: inventory.clone(),
            };
            vec![Action::new::<Node>("register_node", platform, node, register)]
        }
        _ => vec![],
    }
}
