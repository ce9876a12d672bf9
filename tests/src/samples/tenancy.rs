//! Samples of tenants, members, keys, pools and nodes.

use super::samples;
use super::values::{at, hash, id, tenant};
use domain::Event;
use domain::identity::{Profile, Role, api_key, member, tenant as organisation};
use domain::kernel::{Ancestors, Sealed, SubjectKey, TenantId};
use domain::pools::{inventory, node, pool};
use std::collections::{BTreeMap, BTreeSet};

const PASSWORD: &str = "$argon2id$v=19$m=19456,t=2,p=1$c2FtcGxl$c2FtcGxl";

pub(super) fn all() -> Vec<Event> {
    let platform = created(TenantId::PLATFORM, "平台", None);
    let project = organisation::Event::Created {
        tenant: id("project"),
        name: "Segmentation".into(),
        parent: Some(tenant()),
        kind: organisation::Level::Project,
        above: Ancestors::NONE.with(tenant()),
    };
    let program = member::Event::Added {
        tenant: tenant(),
        handle: "ci-runner".into(),
        roles: BTreeSet::from([Role::Engineer]),
        password: None,
    };
    let for_ever = api_key::Event::Issued {
        tenant: tenant(),
        member: id("li"),
        name: "laptop".into(),
        hash: hash('a'),
        expires_at: None,
    };
    let silent = node::Event::Lost { by: None, reason: "not heard of for 600 s".into(), alive_until: at("01:10:00") };
    let unsearched = member::Event::ProfileSet { profile: sealed(1, &[]) };
    let more = vec![unsearched.into(), platform.into(), project.into(), program.into(), for_ever.into(), silent.into()];
    [tenants(), members(), keys(), pools(), nodes(), more].concat()
}

fn created(tenant: TenantId, name: &str, parent: Option<TenantId>) -> organisation::Event {
    let (kind, above) = (organisation::Level::Tenant, Ancestors::NONE);
    organisation::Event::Created { tenant, name: name.into(), parent, kind, above }
}

samples! { tenants of organisation:
    Created {
        tenant: tenant(),
        name: "Vision Lab".into(),
        parent: Some(TenantId::PLATFORM),
        kind: organisation::Level::Tenant,
        above: Ancestors::NONE,
    };
    Suspended { by: id("wang"), reason: "in arrears".into() };
    Resumed { by: id("wang") };
    SetupOpened { hash: hash('a') };
    SetupUsed { hash: hash('a'), member: id("wang"), handle: "wang".into(), password: PASSWORD.into() };
}

samples! { members of member:
    Added {
        tenant: TenantId::PLATFORM,
        handle: "wang".into(),
        roles: Role::ALL.iter().copied().collect(),
        password: Some(PASSWORD.into()),
    };
    PasswordSet { password: PASSWORD.into() };
    RolesSet { by: id("wang"), roles: [Role::Engineer, Role::Finance].into() };
    Locked { by: id("wang"), reason: "left the company".into() };
    Unlocked { by: id("wang") };
    ProfileSet { profile: sealed(2, &[("email", &hash('e'))]) };
    PersonalDataErased { subject: subject(2), by: id("wang") };
}

fn subject(generation: u32) -> SubjectKey {
    SubjectKey { member: id("li"), generation }
}

fn sealed(generation: u32, indexes: &[(&str, &str)]) -> Sealed<Profile> {
    let indexes: BTreeMap<String, String> =
        indexes.iter().map(|(field, index)| ((*field).to_owned(), (*index).to_owned())).collect();
    Sealed::new(subject(generation), "AQEAAAAAAAAAAAAAAABzZWFsZWQgcHJvZmlsZSB0YWc".into(), indexes)
}

samples! { keys of api_key:
    Issued {
        tenant: tenant(),
        member: id("li"),
        name: "training".into(),
        hash: hash('b'),
        expires_at: Some(at("01:00:00")),
    };
    Revoked { by: id("li") };
}

fn machine() -> inventory::Inventory {
    let card = |index: u32, simulated| inventory::Card {
        index,
        uuid: format!("GPU-{index}"),
        model: "a100".parse().unwrap(),
        memory_mib: 81_920,
        simulated,
    };
    inventory::Inventory {
        milli_cores: 8000,
        memory_mib: 32_768,
        cards: vec![card(0, false), card(1, true)],
        platform: "linux 6.1 x86_64".into(),
        agent: "0.1.0".into(),
    }
}

samples! { pools of pool:
    Created { pool: id("pool"), name: "main".into() };
    JoinTokenIssued { hash: hash('c'), expires_at: at("02:00:00"), by: id("wang") };
    NodeJoined {
        hash: hash('c'),
        node: id("node"),
        credential: hash('d'),
        name: "gpu-01".into(),
        inventory: machine(),
    };
}

samples! { nodes of node:
    Registered { pool: id("pool"), name: "gpu-01".into(), credential: hash('d'), inventory: machine() };
    InventoryReported { inventory: inventory::Inventory { cards: vec![], ..machine() } };
    Drained { by: id("wang"), reason: "new memory".into() };
    Resumed { by: id("wang") };
    Alive { at: at("01:05:00.123456") };
    Lost { by: Some(id("wang")), reason: "no power".into(), alive_until: at("01:10:00.5") };
    Returned { at: at("02:00:00") };
}
