//! What a tenant promises, as histories and answers.

use super::*;
use crate::kernel::{Id, fold, spec::given};

fn create(tenant: TenantId, name: &str) -> Command {
    Command::Create { tenant, name: name.into(), parent: None, kind: Level::Tenant, above: Ancestors::NONE }
}

fn created(tenant: TenantId) -> Event {
    Event::Created { tenant, name: "platform".into(), parent: None, kind: Level::Tenant, above: Ancestors::NONE }
}

fn open(hash: &str) -> Command {
    Command::OpenSetup { hash: hash.into() }
}

fn opened(hash: &str) -> Event {
    Event::SetupOpened { hash: hash.into() }
}

fn r#use(hash: &str, handle: &str) -> Command {
    Command::UseSetup { hash: hash.into(), member: member_of(handle), handle: handle.into(), password: "$a".into() }
}

fn used(hash: &str) -> Event {
    Event::SetupUsed { hash: hash.into(), member: member_of("li"), handle: "li".into(), password: "$a".into() }
}

const PLATFORM: TenantId = TenantId::PLATFORM;

#[test]
fn is_created_once() {
    given::<Tenant>([]).when(create(PLATFORM, "platform")).then([created(PLATFORM)]);
    given::<Tenant>([created(PLATFORM)]).when(create(PLATFORM, "other")).then_refused(Error::AlreadyExists);
}

#[test]
fn has_a_name_that_people_can_read() {
    for name in ["", " ", " a", "a\n", "a\u{7}b", &"租".repeat(65)] {
        given::<Tenant>([]).when(create(PLATFORM, name)).then_refused(Error::BadName);
    }
    let name = "租".repeat(64);
    given::<Tenant>([]).when(create(PLATFORM, &name)).then([Event::Created {
        tenant: PLATFORM,
        name,
        parent: None,
        kind: Level::Tenant,
        above: Ancestors::NONE,
    }]);
}

fn node(name: &str) -> TenantId {
    Id::derived(PLATFORM, name)
}

fn below(parent: TenantId, kind: Level, above: Ancestors) -> Command {
    Command::Create { tenant: node("own"), name: "own".into(), parent: Some(parent), kind, above }
}

#[test]
fn stands_below_its_parent_and_not_too_deep() {
    let at = |depth: usize| (1..depth).fold(Ancestors::NONE, |above, n| above.with(node(&n.to_string())));
    let deepest = at(DEPTH_MAX);
    let made = Tenant::default().decide(below(deepest.parent().unwrap(), Level::Project, deepest.clone()));
    assert_eq!(fold::<Tenant>(&made.unwrap()).above(), Some(&deepest));
    let refused = |command, error| given::<Tenant>([]).when(command).then_refused(error);
    let deeper = at(DEPTH_MAX + 1);
    refused(below(deeper.parent().unwrap(), Level::Project, deeper), Error::TooDeep);
    refused(below(node("other"), Level::Tenant, at(3)), Error::BadParent);
    refused(below(node("1"), Level::Tenant, Ancestors::NONE), Error::BadParent);
    refused(below(node("own"), Level::Tenant, Ancestors::NONE.with(node("own"))), Error::BadParent);
    refused(below(PLATFORM, Level::Project, Ancestors::NONE), Error::ProjectWithoutTenant);
}

#[test]
fn is_suspended_for_a_reason_and_resumed() {
    let (tenant, by) = (node("acme"), member_of("root"));
    let suspend = |reason: &str| Command::Suspend { by, reason: reason.into() };
    let suspended = |reason: &str| Event::Suspended { by, reason: reason.into() };
    given::<Tenant>([created(tenant)]).when(suspend("arrears")).then([suspended("arrears")]);
    let history = [created(tenant), suspended("arrears")];
    given::<Tenant>(&history).when(suspend("arrears")).then([]);
    given::<Tenant>(&history).when(suspend("abuse")).then([suspended("abuse")]);
    given::<Tenant>(&history).when(Command::Resume { by }).then([Event::Resumed { by }]);
    given::<Tenant>([created(tenant)]).when(Command::Resume { by }).then([]);
    given::<Tenant>([created(tenant)]).when(suspend(" ")).then_refused(Error::BadReason);
    given::<Tenant>([created(PLATFORM)]).when(suspend("x")).then_refused(Error::SuspendPlatform);
    given::<Tenant>([]).when(suspend("x")).then_refused(Error::NotFound);
    assert_eq!(fold::<Tenant>(&history).suspended(), Some("arrears"));
}

#[test]
fn is_set_up_on_the_platform_only() {
    let tenant = TenantId::derived(PLATFORM, "acme");
    given::<Tenant>([created(tenant)]).when(open("h1")).then_refused(Error::SetupElsewhere);
    given::<Tenant>([]).when(open("h1")).then_refused(Error::NotFound);
    given::<Tenant>([created(PLATFORM)]).when(open("h1")).then([opened("h1")]);
}

#[test]
fn the_newest_setup_replaces_an_unused_one() {
    let history = [created(PLATFORM), opened("h1"), opened("h2")];
    given::<Tenant>(&history).when(r#use("h1", "li")).then_refused(Error::SetupWrongSecret);
    given::<Tenant>(&history).when(r#use("h2", "li")).then([used("h2")]);
    given::<Tenant>(&history).when(open("h2")).then([]);
    given::<Tenant>(&history).when(open("h3")).then([opened("h3")]);
}

#[test]
fn a_setup_is_used_once_and_the_same_use_again_changes_nothing() {
    let history = [created(PLATFORM), opened("h1"), used("h1")];
    given::<Tenant>(&history).when(r#use("h1", "li")).then([]);
    given::<Tenant>(&history).when(r#use("h1", "wang")).then_refused(Error::SetupClosed);
    given::<Tenant>(&history).when(r#use("h0", "li")).then_refused(Error::SetupClosed);
    given::<Tenant>(&history).when(open("h2")).then_refused(Error::SetupClosed);
    given::<Tenant>([created(PLATFORM)]).when(r#use("h1", "li")).then_refused(Error::SetupClosed);
}

#[test]
fn a_setup_is_for_the_member_of_a_proper_handle() {
    let history = [created(PLATFORM), opened("h1")];
    given::<Tenant>(&history).when(r#use("h1", "Li")).then_refused(Error::BadHandle("Li".into()));
    let member = member_of("wang");
    let other = Command::UseSetup { hash: "h1".into(), member, handle: "li".into(), password: "$a".into() };
    given::<Tenant>(&history).when(other).then_refused(Error::BadHandle("li".into()));
}
