//! A tenant (租户): a node of the organisation tree, and on the platform's own stream the one-time setup.
//!
//! Owns: a tenant's name and place in the tree, whether it is suspended, the setup secret of the first operator.
//! Does not own: the members (`Member`); a flow adds the first one after `SetupUsed`. Nor what a suspension stops: it
//! holds for the node and all below it, and the edges and the scheduler ask for it.
//!
//! Invariants:
//! - the parent never changes, so that the tree has no cycle, and a tenant knows all nodes above it for good;
//! - a path has at most `DEPTH_MAX` nodes, and a project is below a tenant;
//! - a setup is used exactly once, and only the platform has one;
//! - a setup that was used is never opened again.

use crate::identity::member::{HANDLE_RULE, is_handle, member_of};
use crate::kernel::{Aggregate, Ancestors, DEPTH_MAX, Kind, MemberId, Rejection, TenantId};
use serde::{Deserialize, Serialize};

const NAME_LENGTH_MAX: usize = 64;
const REASON_LENGTH_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Tenant {
    #[default]
    Absent,
    Created {
        tenant: TenantId,
        name: String,
        parent: Option<TenantId>,
        above: Ancestors,
        /// Why, while it is suspended.
        suspended: Option<String>,
        setup: Setup,
    },
}

/// What a node of the tree is for people; the rules are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A customer, or a part of one.
    #[default]
    Tenant,
    /// Something that a tenant works on, below it.
    Project,
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
        kind: Level,
        above: Ancestors,
    },
    /// Lets the node and all below it begin nothing new.
    Suspend {
        by: MemberId,
        reason: String,
    },
    Resume {
        by: MemberId,
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
    Created {
        tenant: TenantId,
        name: String,
        parent: Option<TenantId>,
        #[serde(default)]
        kind: Level,
        #[serde(default, skip_serializing_if = "Ancestors::is_empty")]
        above: Ancestors,
    },
    Suspended {
        by: MemberId,
        reason: String,
    },
    Resumed {
        by: MemberId,
    },
    SetupOpened {
        hash: String,
    },
    SetupUsed {
        hash: String,
        member: MemberId,
        handle: String,
        password: String,
    },
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
    #[error("a tenant is below its parent and all nodes above that, and never below itself")]
    BadParent,
    #[error("a path of the organisation tree has at most {DEPTH_MAX} nodes")]
    TooDeep,
    #[error("a project is below a tenant; name the tenant as its parent")]
    ProjectWithoutTenant,
    #[error("the platform itself is not suspended")]
    SuspendPlatform,
    #[error("a reason has 1 to {REASON_LENGTH_MAX} characters, no control character and no space at its ends")]
    BadReason,
    #[error("only the platform is set up with a secret")]
    SetupElsewhere,
    #[error("no setup is open: it was used already, or was never opened")]
    SetupClosed,
    #[error("this is not the secret of the setup; the newest one that was shown is valid")]
    SetupWrongSecret,
    #[error("`{0}` is not the handle of the member: a handle has {rule}", rule = HANDLE_RULE)]
    BadHandle(String),
}

impl Tenant {
    /// The nodes above it. `None`: there is no such tenant.
    pub fn above(&self) -> Option<&Ancestors> {
        match self {
            Self::Absent => None,
            Self::Created { above, .. } => Some(above),
        }
    }

    /// Why it is suspended itself, if it is.
    pub fn suspended(&self) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Created { suspended, .. } => suspended.as_deref(),
        }
    }
}

impl Aggregate for Tenant {
    const STREAM: &'static str = "tenant";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Create { tenant, name, parent, kind, above }) => {
                let created = Event::Created { tenant, name, parent, kind, above };
                check(&created).map(|()| vec![created])
            }
            (Self::Created { .. }, Command::Create { .. }) => Err(Error::AlreadyExists),
            (Self::Absent, _) => Err(Error::NotFound),
            (Self::Created { tenant, suspended, .. }, Command::Suspend { by, reason }) => match suspended {
                _ if *tenant == TenantId::PLATFORM => Err(Error::SuspendPlatform),
                _ if !is_line(&reason, REASON_LENGTH_MAX) => Err(Error::BadReason),
                Some(known) if *known == reason => Ok(vec![]),
                Some(_) | None => Ok(vec![Event::Suspended { by, reason }]),
            },
            (Self::Created { suspended, .. }, Command::Resume { by }) => {
                Ok(suspended.iter().map(|_| Event::Resumed { by }).collect())
            }
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

    fn evolve(mut self, event: &Event) -> Self {
        if let Event::Created { tenant, name, parent, above, .. } = event {
            let (tenant, name, parent, above) = (*tenant, name.clone(), *parent, above.clone());
            return Self::Created { tenant, name, parent, above, suspended: None, setup: Setup::Never };
        }
        if let Self::Created { suspended, setup, .. } = &mut self {
            match event {
                Event::Suspended { reason, .. } => *suspended = Some(reason.clone()),
                Event::Resumed { .. } => *suspended = None,
                Event::SetupOpened { hash } => *setup = Setup::Open { hash: hash.clone() },
                Event::SetupUsed { hash, member, .. } => *setup = Setup::Used { hash: hash.clone(), member: *member },
                Event::Created { .. } => {}
            }
        }
        self
    }
}

/// Whether a tenant may be made so.
fn check(created: &Event) -> Result<(), Error> {
    let Event::Created { tenant, name, parent, kind, above } = created else { return Ok(()) };
    let parent = parent.filter(|parent| *parent != TenantId::PLATFORM);
    if !is_line(name, NAME_LENGTH_MAX) {
        Err(Error::BadName)
    } else if parent != above.parent() || parent == Some(*tenant) || above.contains(*tenant) {
        Err(Error::BadParent)
    } else if above.depth() > DEPTH_MAX {
        Err(Error::TooDeep)
    } else if *kind == Level::Project && above.is_empty() {
        Err(Error::ProjectWithoutTenant)
    } else {
        Ok(())
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "tenant.not_found",
            Self::AlreadyExists => "tenant.already_exists",
            Self::BadName => "tenant.bad_name",
            Self::BadParent => "tenant.bad_parent",
            Self::TooDeep => "tenant.too_deep",
            Self::ProjectWithoutTenant => "tenant.project_without_tenant",
            Self::SuspendPlatform => "tenant.suspend_platform",
            Self::BadReason => "tenant.bad_reason",
            Self::SetupElsewhere => "tenant.setup_elsewhere",
            Self::SetupClosed => "tenant.setup_closed",
            Self::SetupWrongSecret => "tenant.setup_wrong_secret",
            Self::BadHandle(_) => "tenant.bad_handle",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::BadName
            | Self::BadParent
            | Self::TooDeep
            | Self::ProjectWithoutTenant
            | Self::SuspendPlatform
            | Self::BadReason
            | Self::BadHandle(_) => Kind::Invalid,
            Self::SetupWrongSecret => Kind::Forbidden,
            Self::AlreadyExists | Self::SetupElsewhere | Self::SetupClosed => Kind::Conflict,
        }
    }
}

/// Whether a text is one line that people can read: 1 to `length_max` characters, no control character, no space at
/// its beginning or end.
pub(in crate::identity) fn is_line(text: &str, length_max: usize) -> bool {
    let length = text.chars().take(length_max + 1).count();
    (1..=length_max).contains(&length) && text.trim() == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;
