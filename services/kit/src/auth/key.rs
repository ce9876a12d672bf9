//! The text of an API key: `kashi_<26 digits of its id>_<secret of 43 characters>`.
//!
//! Owns: how a key is written and read. Does not own: whose key it is and whether it is valid (`domain::identity`).
//! Invariants: the id is public, the secret is not: `Debug` hides it; a key is written one way only.

use super::secret;
use domain::kernel::{Id, KeyId};
use std::{fmt, str::FromStr};

/// What a key starts with, so that leaked ones are found by searching.
pub const PREFIX: &str = "kashi_";

/// An API key with its secret. Shown once, when it is made.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText {
    id: KeyId,
    secret: String,
}

/// Not an API key. The text itself is not shown, since it may be nearly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an API key, which is written `kashi_`, 26 characters, `_` and 43 characters")]
pub struct BadKey;

impl KeyText {
    /// A new secret for the key of this id.
    pub fn generate(id: KeyId) -> Self {
        Self { id, secret: secret::generate() }
    }

    /// The id, which is public.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// What is stored of its secret.
    pub fn hash(&self) -> String {
        secret::hash(&self.secret)
    }

    /// Whether its secret is the one of a stored hash.
    pub fn matches(&self, stored: &str) -> bool {
        secret::matches(&self.secret, stored)
    }
}

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.to_string();
        let digits = id.rsplit('_').next().unwrap_or_default();
        write!(f, "{PREFIX}{digits}_{}", self.secret)
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyText").field("id", &self.id).finish_non_exhaustive()
    }
}

impl FromStr for KeyText {
    type Err = BadKey;
    fn from_str(text: &str) -> Result<Self, BadKey> {
        // The secret may have an underscore, the id has none.
        let (digits, secret) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(BadKey)?;
        let id = format!("{}_{digits}", KeyId::PREFIX).parse().map_err(|_| BadKey)?;
        if secret::is_secret(secret) { Ok(Self { id, secret: secret.into() }) } else { Err(BadKey) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn is_read_as_it_was_written() {
        for _ in 0..50 {
            let key = KeyText::generate(KeyId(Uuid::now_v7()));
            let text = key.to_string();
            assert_eq!(text.len(), PREFIX.len() + 26 + 1 + secret::LENGTH);
            assert_eq!(text.parse(), Ok(key.clone()));
            assert!(key.matches(&key.hash()));
            assert!(!key.matches(&KeyText::generate(key.id()).hash()));
        }
    }

    #[test]
    fn another_text_is_refused() {
        let text = KeyText::generate(KeyId(Uuid::now_v7())).to_string();
        let bad = [
            "",
            "kashi_",
            "kashi__",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}A"),
            &format!(" {text}"),
            &text.to_lowercase(),
            &text.replace("kashi_", "kashi_kashi_"),
            "kashi_é_é",
        ];
        for text in bad {
            assert_eq!(text.parse::<KeyText>(), Err(BadKey), "{text}");
        }
    }

    #[test]
    fn its_secret_is_not_shown_by_accident() {
        let key = KeyText::generate(KeyId(Uuid::now_v7()));
        assert!(!format!("{key:?}").contains(&key.secret));
    }
}
