//! What a member may and may not do, as histories, and the stored form.

use super::*;
use crate::kernel::{fold, spec::given};
use std::collections::BTreeMap;

fn add(tenant: TenantId, handle: &str, role: Role) -> Command {
    Command::Add { tenant, handle: handle.into(), roles: [role].into(), password: None }
}

fn added() -> Event {
    let roles = [Role::Engineer].into();
    Event::Added { tenant: acme(), handle: "li".into(), roles, password: Some("$1".into()) }
}

fn acme() -> TenantId {
    TenantId::derived(TenantId::PLATFORM, "acme")
}

fn lock(reason: &str) -> Command {
    Command::Lock { by: member_of("root"), reason: reason.into() }
}

fn locked() -> Event {
    Event::Locked { by: member_of("root"), reason: "left".into() }
}

fn unlocked() -> Event {
    Event::Unlocked { by: member_of("root") }
}

#[test]
fn is_added_once() {
    let roles = [Role::Engineer].into();
    let event = Event::Added { tenant: acme(), handle: "li".into(), roles, password: None };
    given::<Member>([]).when(add(acme(), "li", Role::Engineer)).then([event]);
    given::<Member>([added()]).when(add(acme(), "li", Role::Engineer)).then_refused(Error::AlreadyExists);
}

#[test]
fn has_a_proper_handle() {
    let long = "a".repeat(33);
    for handle in ["", "a", "1a", "Li", "l i", "-li", "李雷", "li@x", &long] {
        let refused = Error::BadHandle(handle.into());
        given::<Member>([]).when(add(acme(), handle, Role::Engineer)).then_refused(refused);
    }
    for handle in ["ab", "li.lei-2_x", &long[..32]] {
        assert!(is_handle(handle), "{handle}");
    }
    assert_ne!(member_of("li"), member_of("wang"));
}

#[test]
fn holds_a_role_of_the_platform_only_there() {
    for role in [Role::Operator, Role::Auditor] {
        let refused = Error::RoleNotForTenant(role);
        given::<Member>([]).when(add(acme(), "li", role)).then_refused(refused);
        let platform = TenantId::PLATFORM;
        let event = Event::Added { tenant: platform, handle: "li".into(), roles: [role].into(), password: None };
        given::<Member>([]).when(add(platform, "li", role)).then([event]);
    }
}

#[test]
fn gets_other_roles_and_keeps_to_its_tenant() {
    let by = member_of("root");
    let set = |roles: &[Role]| Command::SetRoles { by, roles: roles.iter().copied().collect() };
    let finance = Event::RolesSet { by, roles: [Role::Finance].into() };
    given::<Member>([added()]).when(set(&[Role::Finance])).then([finance.clone()]);
    given::<Member>([added(), locked()]).when(set(&[Role::Finance])).then([finance]);
    given::<Member>([added()]).when(set(&[Role::Engineer])).then([]);
    let refused = Error::RoleNotForTenant(Role::Operator);
    given::<Member>([added()]).when(set(&[Role::Engineer, Role::Operator])).then_refused(refused);
    given::<Member>([]).when(set(&[])).then_refused(Error::NotFound);
    let left = fold::<Member>(&[added(), Event::RolesSet { by, roles: [].into() }]);
    assert!(left.active().unwrap().roles.is_empty());
}

#[test]
fn does_not_lock_itself_out() {
    let lock = Command::Lock { by: member_of("li"), reason: "left".into() };
    given::<Member>([added()]).when(lock).then_refused(Error::LockSelf);
}

#[test]
fn is_locked_and_unlocked_with_a_reason() {
    given::<Member>([added()]).when(lock("left")).then([locked()]);
    given::<Member>([added()]).when(lock(" ")).then_refused(Error::BadReason);
    given::<Member>([added(), locked()]).when(lock("again")).then([]);
    let unlock = || Command::Unlock { by: member_of("root") };
    given::<Member>([added(), locked()]).when(unlock()).then([unlocked()]);
    given::<Member>([added()]).when(unlock()).then([]);
    given::<Member>([]).when(unlock()).then_refused(Error::NotFound);
}

#[test]
fn a_password_or_a_lock_ends_sessions_and_an_unlock_does_not_revive_them() {
    let version = |history: &[Event]| fold::<Member>(history).account().map(|account| account.session_version);
    let set = Event::PasswordSet { password: "$2".into() };
    assert_eq!(version(&[added()]), Some(1));
    assert_eq!(version(&[added(), set.clone()]), Some(2));
    assert_eq!(version(&[added(), locked(), unlocked()]), Some(2));
    assert_eq!(version(&[added(), locked(), set.clone()]), Some(3));
    assert!(fold::<Member>(&[added(), locked(), set]).active().is_none());
}

fn sealed(generation: u32) -> Sealed<Profile> {
    Sealed::new(SubjectKey { member: member_of("li"), generation }, "c2VhbGVk".into(), BTreeMap::new())
}

#[test]
fn a_profile_is_sealed_for_this_member_and_this_time() {
    let set = |generation| Command::SetProfile { profile: sealed(generation) };
    let done = |generation| Event::ProfileSet { profile: sealed(generation) };
    given::<Member>([added()]).when(set(1)).then([done(1)]);
    given::<Member>([added(), locked()]).when(set(1)).then([done(1)]);
    given::<Member>([]).when(set(1)).then_refused(Error::NotFound);
    let subject = SubjectKey { member: member_of("wang"), generation: 1 };
    let anothers = Command::SetProfile { profile: Sealed::new(subject, "c2VhbGVk".into(), BTreeMap::new()) };
    given::<Member>([added()]).when(anothers).then_refused(Error::StaleProfile);
    let erased = [added(), done(1), erased(1)];
    given::<Member>(&erased).when(set(1)).then_refused(Error::StaleProfile);
    given::<Member>(&erased).when(set(2)).then([done(2)]);
}

fn erased(generation: u32) -> Event {
    let subject = SubjectKey { member: member_of("li"), generation };
    Event::PersonalDataErased { subject, by: member_of("root") }
}

#[test]
fn is_erased_once_for_each_time_something_was_known() {
    let erase = || Command::Erase { by: member_of("root") };
    let set = |generation| Event::ProfileSet { profile: sealed(generation) };
    given::<Member>([added()]).when(erase()).then([]);
    given::<Member>([]).when(erase()).then_refused(Error::NotFound);
    given::<Member>([added(), locked(), set(1)]).when(erase()).then([erased(1)]);
    given::<Member>([added(), set(1), erased(1)]).when(erase()).then([]);
    given::<Member>([added(), set(1), erased(1), set(2)]).when(erase()).then([erased(2)]);
}

#[test]
fn is_stored_in_this_form() {
    let json = serde_json::to_string(&added()).unwrap();
    let tenant = acme();
    let stored =
        format!(r#"{{"type":"added","tenant":"{tenant}","handle":"li","roles":["engineer"],"password":"$1"}}"#);
    assert_eq!(json, stored);
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), added());
}
