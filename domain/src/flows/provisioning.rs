//! Provisioning: an approved order is held under the quota and becomes active, or is refused with the numbers; a return
//! gives the quota back unless jobs still use it.

#![expect(clippy::wildcard_enum_match_arm, reason = "a story looks at the few events that concern it")]

use super::{Action, Facts, id_of};
use crate::Event;
use crate::kernel::{Aggregate, OrderId, Recorded, Resource, StreamName, TenantId};
use crate::ordering::{Order, order};
use crate::quota::{Allowance, allowance};

/// The epoch of quota streams that this version writes.
const EPOCH: u32 = 0;

/// The key of the quota of a resource in the tree of a root.
pub fn quota_key(root: TenantId, resource: &Resource) -> String {
    format!("{root}-{resource}-{EPOCH}")
}

pub(super) fn needs(cause: &Recorded, event: &Event, _: &Facts) -> Vec<StreamName> {
    match event {
        Event::Order(order::Event::Approved { .. } | order::Event::ReturnRequested { .. }) => {
            vec![cause.stream.clone()]
        }
        _ => vec![],
    }
}

pub(super) fn react(cause: &Recorded, event: &Event, facts: &Facts) -> Vec<Action> {
    let tenant = cause.meta.tenant;
    let to_order = |arm, id: &OrderId, command| vec![Action::new::<Order>(arm, tenant, id, command)];
    match event {
        Event::Order(event) => of_order(cause, event, facts).into_iter().collect(),
        Event::Quota(allowance::Event::OrderHeld { order, .. }) => {
            to_order("activate_order", order, order::Command::Activate)
        }
        Event::Quota(allowance::Event::OrderHoldRefused { order, wanted_milli, free_milli, node }) => {
            let node = node.or_else(|| quota_of(cause.stream.key()).map(|(root, _)| root));
            let refuse = order::Command::Refuse { wanted_milli: *wanted_milli, free_milli: *free_milli, node };
            to_order("refuse_order", order, refuse)
        }
        Event::Quota(allowance::Event::OrderReleased { order, .. }) => {
            to_order("confirm_return", order, order::Command::ConfirmReturn)
        }
        Event::Quota(allowance::Event::OrderReleaseRefused { order, in_use_milli }) => {
            to_order("refuse_return", order, order::Command::RefuseReturn { in_use_milli: *in_use_milli })
        }
        _ => vec![],
    }
}

fn of_order(cause: &Recorded, event: &order::Event, facts: &Facts) -> Option<Action> {
    let id = id_of::<OrderId>(cause)?;
    let terms = facts.of::<Order>(id).and_then(Order::terms)?;
    let (arm, command) = match event {
        order::Event::Approved { .. } => {
            let below = terms.above.below_root(terms.tenant);
            ("hold_quota_for_order", allowance::Command::HoldOrder { order: id, below, milli: terms.milli })
        }
        order::Event::ReturnRequested { .. } => {
            ("release_quota_of_order", allowance::Command::ReleaseOrder { order: id })
        }
        order::Event::Requested { .. }
        | order::Event::Rejected { .. }
        | order::Event::Activated
        | order::Event::Refused { .. }
        | order::Event::Returned
        | order::Event::ReturnRefused { .. } => return None,
    };
    let key = quota_key(terms.above.root(terms.tenant), &terms.resource);
    Some(Action::new::<Allowance>(arm, terms.tenant, key, command))
}

/// The stream of the quota of a resource in the tree of a root.
pub fn quota_stream(root: TenantId, resource: &Resource) -> StreamName {
    StreamName::new(Allowance::STREAM, quota_key(root, resource))
}

/// The root whose tree's quota a stream's key names, and of what. `None` for a key that is not so written.
pub fn quota_of(key: &str) -> Option<(TenantId, Resource)> {
    let (of, _epoch) = key.rsplit_once('-')?;
    let (tenant, resource) = of.split_once('-')?;
    Some((tenant.parse().ok()?, resource.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_key_reads_back() {
        let resource: Resource = "card.ascend-910b".parse().unwrap();
        let key = quota_key(TenantId::PLATFORM, &resource);
        assert_eq!(quota_of(&key), Some((TenantId::PLATFORM, resource)));
        assert_eq!(quota_of("x"), None);
    }
}
