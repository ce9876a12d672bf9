//! A profile (个人资料): what is known of a member as a person. Personal data, so it lies in events `Sealed` only.
//!
//! Owns: the fields, what each may be, and how an e-mail address is spelt for searching. Does not own: sealing (a
//! keyring's), who may read it (each edge's handlers).
//! Invariants: neither an error nor `Debug` shows what was given; two spellings of one e-mail address are one index entry.

use super::tenant::is_line;
use crate::kernel::{Kind, Rejection};
use serde::{Deserialize, Serialize};
use std::fmt;

const NAME_LENGTH_MAX: usize = 64;
/// RFC 5321 allows 254 characters with 64 before the `@`.
const EMAIL_LENGTH_MAX: usize = 254;
const EMAIL_LOCAL_MAX: usize = 64;
/// E.164.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 5..=15;

/// What is known of a member as a person; each of it only where it was said.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Profile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// With the country in front: `+8613800000000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
}

/// Which field of a profile is wrong. What was given is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadProfile {
    #[error("a name has 1 to {NAME_LENGTH_MAX} characters, no control character and no space at its ends")]
    Name,
    #[error("an e-mail address has one `@` with something before it and a domain after it, and no space")]
    Email,
    #[error("a phone number is `+`, the country and the number: 5 to 15 digits, which spaces and dashes may part")]
    Phone,
}

impl Profile {
    /// Under which name it is sealed, so that no other sealed text opens in its place.
    pub const PURPOSE: &'static str = "member.profile";
    /// The field that is searched for.
    pub const EMAIL: &'static str = "email";

    /// The profile of these, each checked; the phone number without what parts its digits.
    pub fn new(name: Option<String>, email: Option<String>, phone: Option<String>) -> Result<Self, BadProfile> {
        if name.as_deref().is_some_and(|name| !is_line(name, NAME_LENGTH_MAX)) {
            return Err(BadProfile::Name);
        }
        if email.as_deref().is_some_and(|email| !is_email(email)) {
            return Err(BadProfile::Email);
        }
        let phone = phone.map(|phone| digits(&phone).ok_or(BadProfile::Phone)).transpose()?;
        Ok(Self { name, email, phone })
    }

    /// Its e-mail address as it is searched for.
    pub fn searched_email(&self) -> Option<String> {
        self.email.as_deref().map(searched_email)
    }
}

/// An e-mail address as it is searched for: in small letters and without spaces at its ends.
pub fn searched_email(email: &str) -> String {
    email.trim().to_lowercase()
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let fits = text.chars().count() <= EMAIL_LENGTH_MAX && (1..=EMAIL_LOCAL_MAX).contains(&local.chars().count());
    let odd = |c: char| c.is_control() || c.is_whitespace() || c == '@';
    fits && !local.contains(odd) && !domain.contains(odd) && domain.split('.').all(|label| !label.is_empty())
}

fn digits(text: &str) -> Option<String> {
    let number = text.strip_prefix('+')?;
    let parted = |c: char| matches!(c, ' ' | '-');
    let digits: String = number.chars().filter(|c| !parted(*c)).collect();
    let is_number = digits.bytes().all(|c| c.is_ascii_digit()) && PHONE_DIGITS.contains(&digits.len());
    is_number.then(|| format!("+{digits}"))
}

impl BadProfile {
    /// The field's JSON pointer.
    pub fn pointer(self) -> &'static str {
        match self {
            Self::Name => "/name",
            Self::Email => "/email",
            Self::Phone => "/phone",
        }
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").finish_non_exhaustive()
    }
}

impl Rejection for BadProfile {
    fn code(&self) -> &'static str {
        match self {
            Self::Name | Self::Email | Self::Phone => "member.bad_profile",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Name | Self::Email | Self::Phone => Kind::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, email: &str, phone: &str) -> Result<Profile, BadProfile> {
        Profile::new(Some(name.into()), Some(email.into()), Some(phone.into()))
    }

    #[test]
    fn is_checked_field_by_field() {
        let known = of("李雷", "Li.Lei@Example.org", "+86 138-0000-0000").unwrap();
        assert_eq!(known.phone.as_deref(), Some("+8613800000000"));
        assert_eq!(known.searched_email().as_deref(), Some("li.lei@example.org"));
        assert_eq!(Profile::new(None, None, None), Ok(Profile::default()));
        for name in ["", " a", "a\n", &"名".repeat(65)] {
            assert_eq!(of(name, "a@b", "+86138"), Err(BadProfile::Name), "{name}");
        }
        let long = format!("{}@b", "a".repeat(65));
        for email in ["", "a", "@b", "a@", "a@b@c", "a b@c", "a@b.", "a@.b", "a@b\n", &long] {
            assert_eq!(of("a", email, "+86138"), Err(BadProfile::Email), "{email}");
        }
        for phone in ["", "138", "+1234", "+1234567890123456", "+86x38000", "+86 (138) 000", "+٠١٢٣٤٥"] {
            assert_eq!(of("a", "a@b", phone), Err(BadProfile::Phone), "{phone}");
        }
    }

    #[test]
    fn is_not_shown_by_accident() {
        let shown = format!("{:?}", of("李雷", "a@b", "+86138").unwrap());
        assert_eq!(shown, "Profile { .. }");
    }
}
