//! A tenant (租户): a node of the organisation tree, and on the platform's own stream the one-time setup.
//!
//! Owns: a tenant's name and place in the tree, the setup secret of the first operator.
//! Does not own: the members (`Member`); a flow adds the first one after `SetupUsed`.
//!
//! Invariants:
//! - the parent never changes, so that the tree has no cycle;
//! - a setup is used exactly once, and only the platform has one;
//! - a setup that was used is never opened again.

use super::member::{is_handle, member_of};
use crate::kernel::{Aggregate, Kind, MemberId, Rejection, TenantId};
use serde::{Deserialize, Serialize};

const NAME_LENGTH_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Tenant {
    #[default]
    Absent,
    Created {
        tenant: TenantId,
        name: String,
        parent: Option<TenantId>,
        setup: Setup,
    },
}

/// How far the one-time setup has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Setup {
    #[default]
    Never,
    Open {
        hash: String,
    },
    Used {
        hash: String,
        member: MemberId,
    },
}

#[derive(Debug, Clone)]
pub enum Command {
    Create {
        tenant: TenantId,
        name: String,
        parent: Option<TenantId>,
    },
    /// Replaces a setup that was not used.
    OpenSetup {
        /// SHA-256 of the secret, in hex.
        hash: String,
    },
    UseSetup {
        /// SHA-256 of the secret, in hex.
        hash: String,
        /// The member of the handle.
        member: MemberId,
        handle: String,
        /// The password's argon2 hash.
        password: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Created { tenant: TenantId, name: String, parent: Option<TenantId> },
    SetupOpened { hash: String },
    SetupUsed { hash: String, member: MemberId, handle: String, password: String },
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such tenant")]
    NotFound,
    #[error("the tenant already exists")]
    AlreadyExists,
    #[error(
        "a tenant's name has 1 to {NAME_LENGTH_MAX} characters, no control character and no space at its beginning or end"
    )]
    BadName,
    #[error("a tenant is not its own parent")]
    BadParent,
    #[error("only the platform is set up with a secret")]
    SetupElsewhere,
    #[error("no setup is open: it was used already, or was never opened")]
    SetupClosed,
    #[error("this is not the secret of the setup; the newest one that was shown is valid")]
    SetupWrongSecret,
    #[error("`{0}` is not the handle of the member: a handle has {rule}", rule = super::member::HANDLE_RULE)]
    BadHandle(String),
}

impl Aggregate for Tenant {
    const STREAM: &'static str = "tenant";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Create { name, .. }) if !is_line(&name, NAME_LENGTH_MAX) => Err(Error::BadName),
            (Self::Absent, Command::Create { tenant, parent, .. }) if parent == Some(tenant) => Err(Error::BadParent),
            (Self::Absent, Command::Create { tenant, name, parent }) => {
                Ok(vec![Event::Created { tenant, name, parent }])
            }
            (Self::Absent, Command::OpenSetup { .. } | Command::UseSetup { .. }) => Err(Error::NotFound),
            (Self::Created { .. }, Command::Create { .. }) => Err(Error::AlreadyExists),
            (Self::Created { tenant, setup, .. }, Command::OpenSetup { hash }) => match setup {
                _ if *tenant != TenantId::PLATFORM => Err(Error::SetupElsewhere),
                Setup::Used { .. } => Err(Error::SetupClosed),
                Setup::Open { hash: open } if *open == hash => Ok(vec![]),
                Setup::Never | Setup::Open { .. } => Ok(vec![Event::SetupOpened { hash }]),
            },
            (Self::Created { setup, .. }, Command::UseSetup { hash, member, handle, password }) => match setup {
                // The secret is asked for again: knowing who signed up is not enough to be told that it worked.
                Setup::Used { hash: used, member: first } if *used == hash && *first == member => Ok(vec![]),
                Setup::Never | Setup::Used { .. } => Err(Error::SetupClosed),
                Setup::Open { hash: open } if *open != hash => Err(Error::SetupWrongSecret),
                Setup::Open { .. } if !is_handle(&handle) || member_of(&handle) != member => {
                    Err(Error::BadHandle(handle.chars().take(NAME_LENGTH_MAX).collect()))
                }
                Setup::Open { .. } => Ok(vec![Event::SetupUsed { hash, member, handle, password }]),
            },
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Created { tenant, name, parent }) => {
                Self::Created { tenant: *tenant, name: name.clone(), parent: *parent, setup: Setup::Never }
            }
            (Self::Created { tenant, name, parent, .. }, Event::SetupOpened { hash }) => {
                Self::Created { tenant, name, parent, setup: Setup::Open { hash: hash.clone() } }
            }
            (Self::Created { tenant, name, parent, .. }, Event::SetupUsed { hash, member, .. }) => {
                Self::Created { tenant, name, parent, setup: Setup::Used { hash: hash.clone(), member: *member } }
            }
            (Self::Absent, Event::SetupOpened { .. } | Event::SetupUsed { .. }) => Self::Absent,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "tenant.not_found",
            Self::AlreadyExists => "tenant.already_exists",
            Self::BadName => "tenant.bad_name",
            Self::BadParent => "tenant.bad_parent",
            Self::SetupElsewhere => "tenant.setup_elsewhere",
            Self::SetupClosed => "tenant.setup_closed",
            Self::SetupWrongSecret => "tenant.setup_wrong_secret",
            Self::BadHandle(_) => "tenant.bad_handle",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::BadName | Self::BadParent | Self::BadHandle(_) => Kind::Invalid,
            Self::SetupWrongSecret => Kind::Forbidden,
            Self::AlreadyExists | Self::SetupElsewhere | Self::SetupClosed => Kind::Conflict,
        }
    }
}

/// Whether a text is one line that people can read: 1 to `length_max` characters, no control character, no space at
/// its beginning or end.
pub(super) fn is_line(text: &str, length_max: usize) -> bool {
    let length = text.chars().take(length_max + 1).count();
    (1..=length_max).contains(&length) && text.trim() == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Id, spec::given};

    fn create(tenant: TenantId, name: &str) -> Command {
        Command::Create { tenant, name: name.into(), parent: None }
    }

    fn created(tenant: TenantId) -> Event {
        Event::Created { tenant, name: "platform".into(), parent: None }
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
    fn has_a_name_that_people_can_read_and_another_tenant_as_parent() {
        for name in ["", " ", " a", "a\n", "a\u{7}b", &"租".repeat(65)] {
            given::<Tenant>([]).when(create(PLATFORM, name)).then_refused(Error::BadName);
        }
        let name = "租".repeat(64);
        given::<Tenant>([]).when(create(PLATFORM, &name)).then([Event::Created {
            tenant: PLATFORM,
            name,
            parent: None,
        }]);
        let own = Command::Create { tenant: PLATFORM, name: "a".into(), parent: Some(PLATFORM) };
        given::<Tenant>([]).when(own).then_refused(Error::BadParent);
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
}
