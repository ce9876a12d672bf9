//! A member (成员): a person or a service of a tenant, known by a handle.
//!
//! Owns: handles, roles, password hashes, locks, what ends a member's sessions, the sealed profile and its erasure.
//! Does not own: sessions (`services/kit` compares their version with this state), keys (`ApiKey`), the keys that seal
//! (a keyring's).
//!
//! Invariants:
//! - the id is derived from the handle, so a handle is one member of the whole platform;
//! - a role of the platform is held by members of the platform tenant only;
//! - each new password and each lock raises `session_version`, which ends every older session at once;
//! - after an erasure nothing is taken that was sealed under a key of before.

use super::{Profile, Role, tenant::is_line};
use crate::kernel::{Aggregate, Id, Kind, MemberId, Rejection, Sealed, SubjectKey, TenantId};
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
    /// How often the personal data was erased.
    pub erasures: u32,
    /// Whether there is a profile since the last erasure.
    pub has_profile: bool,
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
    /// What it may do from now on, in place of what it might.
    SetRoles {
        by: MemberId,
        roles: BTreeSet<Role>,
    },
    Lock {
        by: MemberId,
        reason: String,
    },
    Unlock {
        by: MemberId,
    },
    SetProfile {
        profile: Sealed<Profile>,
    },
    /// Forgets the profile for good. The key is destroyed once this is recorded.
    Erase {
        by: MemberId,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Added {
        tenant: TenantId,
        handle: String,
        roles: BTreeSet<Role>,
        password: Option<String>,
    },
    PasswordSet {
        password: String,
    },
    RolesSet {
        by: MemberId,
        roles: BTreeSet<Role>,
    },
    Locked {
        by: MemberId,
        reason: String,
    },
    Unlocked {
        by: MemberId,
    },
    ProfileSet {
        profile: Sealed<Profile>,
    },
    /// `subject` is the key that is destroyed, and with it what it sealed.
    PersonalDataErased {
        subject: SubjectKey,
        by: MemberId,
    },
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
    #[error("nobody locks itself out; another who may manage members does")]
    LockSelf,
    #[error("a reason has 1 to {REASON_LENGTH_MAX} characters, no control character and no space at its ends")]
    BadReason,
    #[error("the profile was sealed before an erasure, or for somebody else; send it again")]
    StaleProfile,
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
            (Self::Absent, Command::Add { tenant, handle, roles, password }) => match not_for(tenant, &roles) {
                _ if !is_handle(&handle) => Err(Error::BadHandle(handle.chars().take(64).collect())),
                Some(role) => Err(Error::RoleNotForTenant(role)),
                None => Ok(vec![Event::Added { tenant, handle, roles, password }]),
            },
            (Self::Absent, _) => Err(Error::NotFound),
            (Self::Active(_) | Self::Locked(_), Command::Add { .. }) => Err(Error::AlreadyExists),
            // A locked member gets a new password before the lock is taken away.
            (Self::Active(_) | Self::Locked(_), Command::SetPassword { password }) => {
                Ok(vec![Event::PasswordSet { password }])
            }
            (Self::Active(account) | Self::Locked(account), Command::SetRoles { by, roles }) => {
                match not_for(account.tenant, &roles) {
                    Some(role) => Err(Error::RoleNotForTenant(role)),
                    None if account.roles == roles => Ok(vec![]),
                    None => Ok(vec![Event::RolesSet { by, roles }]),
                }
            }
            (Self::Active(account), Command::Lock { by, .. }) if member_of(&account.handle) == by => {
                Err(Error::LockSelf)
            }
            (Self::Active(_), Command::Lock { reason, .. }) if !is_line(&reason, REASON_LENGTH_MAX) => {
                Err(Error::BadReason)
            }
            (Self::Active(_), Command::Lock { by, reason }) => Ok(vec![Event::Locked { by, reason }]),
            (Self::Locked(_), Command::Unlock { by }) => Ok(vec![Event::Unlocked { by }]),
            (Self::Locked(_), Command::Lock { .. }) | (Self::Active(_), Command::Unlock { .. }) => Ok(vec![]),
            (Self::Active(account) | Self::Locked(account), Command::SetProfile { profile }) => {
                let fits = profile.key() == account.subject();
                if fits { Ok(vec![Event::ProfileSet { profile }]) } else { Err(Error::StaleProfile) }
            }
            (Self::Active(account) | Self::Locked(account), Command::Erase { by }) if account.has_profile => {
                Ok(vec![Event::PersonalDataErased { subject: account.subject(), by }])
            }
            (Self::Active(_) | Self::Locked(_), Command::Erase { .. }) => Ok(vec![]),
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
                erasures: 0,
                has_profile: false,
            }),
            (Self::Active(account), Event::PasswordSet { password }) => Self::Active(account.with_password(password)),
            (Self::Locked(account), Event::PasswordSet { password }) => Self::Locked(account.with_password(password)),
            (Self::Active(account), Event::RolesSet { roles, .. }) => Self::Active(account.with_roles(roles)),
            (Self::Locked(account), Event::RolesSet { roles, .. }) => Self::Locked(account.with_roles(roles)),
            (Self::Active(account) | Self::Locked(account), Event::Locked { .. }) => {
                Self::Locked(Account { session_version: account.session_version + 1, ..account })
            }
            (Self::Active(account) | Self::Locked(account), Event::Unlocked { .. }) => Self::Active(account),
            (Self::Active(account), Event::ProfileSet { .. }) => Self::Active(account.with_profile()),
            (Self::Locked(account), Event::ProfileSet { .. }) => Self::Locked(account.with_profile()),
            (Self::Active(account), Event::PersonalDataErased { subject, .. }) => {
                Self::Active(account.without(subject))
            }
            (Self::Locked(account), Event::PersonalDataErased { subject, .. }) => {
                Self::Locked(account.without(subject))
            }
            (Self::Absent, _) => Self::Absent,
        }
    }
}

/// A role that a member of this tenant does not hold, if there is one among them.
fn not_for(tenant: TenantId, roles: &BTreeSet<Role>) -> Option<Role> {
    roles.iter().copied().find(|role| role.is_platform() && tenant != TenantId::PLATFORM)
}

impl Account {
    /// The key that seals the profile until the next erasure.
    pub fn subject(&self) -> SubjectKey {
        SubjectKey { member: member_of(&self.handle), generation: self.erasures + 1 }
    }

    fn with_profile(self) -> Self {
        Self { has_profile: true, ..self }
    }

    fn without(self, subject: &SubjectKey) -> Self {
        Self { erasures: subject.generation, has_profile: false, ..self }
    }

    fn with_roles(self, roles: &BTreeSet<Role>) -> Self {
        Self { roles: roles.clone(), ..self }
    }

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
            Self::LockSelf => "member.lock_self",
            Self::BadReason => "member.bad_reason",
            Self::StaleProfile => "member.stale_profile",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::AlreadyExists | Self::LockSelf | Self::StaleProfile => Kind::Conflict,
            Self::BadHandle(_) | Self::RoleNotForTenant(_) | Self::BadReason => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests;
