//! A member (成员): a person or a service of a tenant, known by a handle.
//!
//! Owns: handles, roles, password hashes, locks and what ends a member's sessions.
//! Does not own: sessions (`services/kit` compares their version with this state), keys (`ApiKey`).
//!
//! Invariants:
//! - the id is derived from the handle, so a handle is one member of the whole platform;
//! - a role of the platform is held by members of the platform tenant only;
//! - each new password and each lock raises `session_version`, which ends every older session at once.

use super::{Role, tenant::is_line};
use crate::kernel::{Aggregate, Id, Kind, MemberId, Rejection, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a handle has, for texts that people read.
pub(super) const HANDLE_RULE: &str =
    "2 to 32 small letters, digits, dots, dashes or underscores, and starts with a letter";
const REASON_LENGTH_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Member {
    #[default]
    Absent,
    Active(Account),
    Locked(Account),
}

/// What is known of a member.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    pub tenant: TenantId,
    pub handle: String,
    pub roles: BTreeSet<Role>,
    /// The password's argon2 hash; without one a member has keys only.
    pub password: Option<String>,
    /// How many passwords were set and how often the member was locked. A session of another version is over.
    pub session_version: u32,
}

#[derive(Debug, Clone)]
pub enum Command {
    Add {
        tenant: TenantId,
        handle: String,
        roles: BTreeSet<Role>,
        /// The password's argon2 hash.
        password: Option<String>,
    },
    SetPassword {
        /// The password's argon2 hash.
        password: String,
    },
    Lock {
        by: MemberId,
        reason: String,
    },
    Unlock {
        by: MemberId,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Added { tenant: TenantId, handle: String, roles: BTreeSet<Role>, password: Option<String> },
    PasswordSet { password: String },
    Locked { by: MemberId, reason: String },
    Unlocked { by: MemberId },
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such member")]
    NotFound,
    #[error("a member with this handle already exists")]
    AlreadyExists,
    #[error("`{0}` is not a handle, which has {HANDLE_RULE}")]
    BadHandle(String),
    #[error("the role `{0}` is held by members of the platform only")]
    RoleNotForTenant(Role),
    #[error("a reason has 1 to {REASON_LENGTH_MAX} characters, no control character and no space at its ends")]
    BadReason,
}

/// The member that a handle names.
pub fn member_of(handle: &str) -> MemberId {
    MemberId::derived(TenantId::PLATFORM, handle)
}

/// Whether a text is a handle.
pub(super) fn is_handle(text: &str) -> bool {
    let known = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'.' | b'-' | b'_');
    let starts = text.bytes().next().is_some_and(|c| c.is_ascii_lowercase());
    starts && (2..=32).contains(&text.len()) && text.bytes().all(known)
}

impl Member {
    /// What is known of the member, locked or not.
    pub fn account(&self) -> Option<&Account> {
        match self {
            Self::Absent => None,
            Self::Active(account) | Self::Locked(account) => Some(account),
        }
    }

    /// The account of a member who may act now.
    pub fn active(&self) -> Option<&Account> {
        match self {
            Self::Active(account) => Some(account),
            Self::Absent | Self::Locked(_) => None,
        }
    }
}

impl Aggregate for Member {
    const STREAM: &'static str = "member";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Add { tenant, handle, roles, password }) => {
                let of_platform = roles.iter().find(|role| role.is_platform() && tenant != TenantId::PLATFORM);
                match of_platform {
                    _ if !is_handle(&handle) => Err(Error::BadHandle(handle.chars().take(64).collect())),
                    Some(role) => Err(Error::RoleNotForTenant(*role)),
                    None => Ok(vec![Event::Added { tenant, handle, roles, password }]),
                }
            }
            (Self::Absent, Command::SetPassword { .. } | Command::Lock { .. } | Command::Unlock { .. }) => {
                Err(Error::NotFound)
            }
            (Self::Active(_) | Self::Locked(_), Command::Add { .. }) => Err(Error::AlreadyExists),
            // A locked member gets a new password before the lock is taken away.
            (Self::Active(_) | Self::Locked(_), Command::SetPassword { password }) => {
                Ok(vec![Event::PasswordSet { password }])
            }
            (Self::Active(_), Command::Lock { reason, .. }) if !is_line(&reason, REASON_LENGTH_MAX) => {
                Err(Error::BadReason)
            }
            (Self::Active(_), Command::Lock { by, reason }) => Ok(vec![Event::Locked { by, reason }]),
            (Self::Locked(_), Command::Unlock { by }) => Ok(vec![Event::Unlocked { by }]),
            (Self::Locked(_), Command::Lock { .. }) | (Self::Active(_), Command::Unlock { .. }) => Ok(vec![]),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Added { tenant, handle, roles, password }) => Self::Active(Account {
                tenant: *tenant,
                handle: handle.clone(),
                roles: roles.clone(),
                password: password.clone(),
                session_version: u32::from(password.is_some()),
            }),
            (Self::Active(account), Event::PasswordSet { password }) => Self::Active(account.with_password(password)),
            (Self::Locked(account), Event::PasswordSet { password }) => Self::Locked(account.with_password(password)),
            (Self::Active(account) | Self::Locked(account), Event::Locked { .. }) => {
                Self::Locked(Account { session_version: account.session_version + 1, ..account })
            }
            (Self::Active(account) | Self::Locked(account), Event::Unlocked { .. }) => Self::Active(account),
            (Self::Absent, Event::PasswordSet { .. } | Event::Locked { .. } | Event::Unlocked { .. }) => Self::Absent,
        }
    }
}

impl Account {
    fn with_password(self, hash: &str) -> Self {
        Self { password: Some(hash.into()), session_version: self.session_version + 1, ..self }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "member.not_found",
            Self::AlreadyExists => "member.already_exists",
            Self::BadHandle(_) => "member.bad_handle",
            Self::RoleNotForTenant(_) => "member.role_not_for_tenant",
            Self::BadReason => "member.bad_reason",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::AlreadyExists => Kind::Conflict,
            Self::BadHandle(_) | Self::RoleNotForTenant(_) | Self::BadReason => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{fold, spec::given};

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

    #[test]
    fn is_stored_in_this_form() {
        let json = serde_json::to_string(&added()).unwrap();
        let tenant = acme();
        let stored =
            format!(r#"{{"type":"added","tenant":"{tenant}","handle":"li","roles":["engineer"],"password":"$1"}}"#);
        assert_eq!(json, stored);
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), added());
    }
}
