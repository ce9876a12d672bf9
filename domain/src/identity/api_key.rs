//! An API key (访问密钥): a member's secret for programs.
//!
//! Owns: whose key it is, until when it is valid, its revocation. Does not own: the text of a key, how it is compared
//! (`services/kit`), whether the member may still act (`Member`).
//!
//! Invariants:
//! - only the hash of the secret is known here;
//! - a revoked key is never valid again.

use super::tenant::is_line;
use crate::kernel::{Aggregate, Kind, MemberId, Rejection, TenantId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

const NAME_LENGTH_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum ApiKey {
    #[default]
    Absent,
    Issued(Grant),
    Revoked(Grant),
}

/// Whose key it is and what proves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub tenant: TenantId,
    pub member: MemberId,
    pub name: String,
    /// SHA-256 of the secret, in hex.
    pub hash: String,
    /// The first instant at which it is no longer valid.
    pub expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone)]
pub enum Command {
    Issue {
        tenant: TenantId,
        member: MemberId,
        name: String,
        /// SHA-256 of the secret, in hex.
        hash: String,
        expires_at: Option<DateTime<Utc>>,
    },
    Revoke {
        by: MemberId,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Issued { tenant: TenantId, member: MemberId, name: String, hash: String, expires_at: Option<DateTime<Utc>> },
    Revoked { by: MemberId },
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such key")]
    NotFound,
    #[error("the key already exists")]
    AlreadyExists,
    #[error(
        "a key's name has 1 to {NAME_LENGTH_MAX} characters, no control character and no space at its beginning or end"
    )]
    BadName,
}

impl ApiKey {
    /// Whose key it is, revoked and expired ones too.
    pub fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Absent => None,
            Self::Issued(grant) | Self::Revoked(grant) => Some(grant),
        }
    }

    /// Whose key it is, where it is valid at an instant.
    pub fn valid_at(&self, at: DateTime<Utc>) -> Option<&Grant> {
        match self {
            Self::Issued(grant) if grant.expires_at.is_none_or(|end| at < end) => Some(grant),
            Self::Absent | Self::Issued(_) | Self::Revoked(_) => None,
        }
    }
}

impl Aggregate for ApiKey {
    const STREAM: &'static str = "key";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Issue { name, .. }) if !is_line(&name, NAME_LENGTH_MAX) => Err(Error::BadName),
            (Self::Absent, Command::Issue { tenant, member, name, hash, expires_at }) => {
                Ok(vec![Event::Issued { tenant, member, name, hash, expires_at }])
            }
            (Self::Absent, Command::Revoke { .. }) => Err(Error::NotFound),
            (Self::Issued(_) | Self::Revoked(_), Command::Issue { .. }) => Err(Error::AlreadyExists),
            (Self::Issued(_), Command::Revoke { by }) => Ok(vec![Event::Revoked { by }]),
            (Self::Revoked(_), Command::Revoke { .. }) => Ok(vec![]),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Issued { tenant, member, name, hash, expires_at }) => Self::Issued(Grant {
                tenant: *tenant,
                member: *member,
                name: name.clone(),
                hash: hash.clone(),
                expires_at: *expires_at,
            }),
            (Self::Issued(grant) | Self::Revoked(grant), Event::Revoked { .. }) => Self::Revoked(grant),
            (Self::Absent, Event::Revoked { .. }) => Self::Absent,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "key.not_found",
            Self::AlreadyExists => "key.already_exists",
            Self::BadName => "key.bad_name",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::AlreadyExists => Kind::Conflict,
            Self::BadName => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        identity::member_of,
        kernel::{fold, spec::given},
    };
    use chrono::TimeDelta;

    fn issue(name: &str) -> Command {
        Command::Issue {
            tenant: TenantId::PLATFORM,
            member: member_of("li"),
            name: name.into(),
            hash: "ab".into(),
            expires_at: Some(DateTime::UNIX_EPOCH),
        }
    }

    fn issued() -> Event {
        Event::Issued {
            tenant: TenantId::PLATFORM,
            member: member_of("li"),
            name: "ci".into(),
            hash: "ab".into(),
            expires_at: Some(DateTime::UNIX_EPOCH),
        }
    }

    fn revoked() -> Event {
        Event::Revoked { by: member_of("li") }
    }

    #[test]
    fn is_issued_once_with_a_name() {
        given::<ApiKey>([]).when(issue("ci")).then([issued()]);
        given::<ApiKey>([]).when(issue("")).then_refused(Error::BadName);
        given::<ApiKey>([issued()]).when(issue("ci")).then_refused(Error::AlreadyExists);
        given::<ApiKey>([issued(), revoked()]).when(issue("ci")).then_refused(Error::AlreadyExists);
    }

    #[test]
    fn is_revoked_once() {
        let revoke = || Command::Revoke { by: member_of("li") };
        given::<ApiKey>([issued()]).when(revoke()).then([revoked()]);
        given::<ApiKey>([issued(), revoked()]).when(revoke()).then([]);
        given::<ApiKey>([]).when(revoke()).then_refused(Error::NotFound);
    }

    #[test]
    fn is_valid_until_just_before_it_expires_or_is_revoked() {
        let (end, before) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH - TimeDelta::microseconds(1));
        let key = fold::<ApiKey>(&[issued()]);
        assert!(key.valid_at(before).is_some());
        assert!(key.valid_at(end).is_none());
        let key = fold::<ApiKey>(&[issued(), revoked()]);
        assert!(key.valid_at(before).is_none());
        assert!(key.grant().is_some());
    }
}
