//! Personal data as it lies in events: sealed under the key of one person, never opened here.
//!
//! Owns: the stored form, and the name of the key that opens it. Does not own: keys, sealing and opening (a keyring's),
//! how a value is normalised before it is indexed (the value's own type).
//! Invariants: without the key nothing but the length of the text is known; nothing here shows the cipher text; a key is
//! of one person and one generation, so that destroying it takes the text of that time and no other.

use super::{BadId, MemberId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// The key that seals what is known of a person between two erasures. Written `mem_…/1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectKey {
    /// The person.
    pub member: MemberId,
    /// From 1; one more after each erasure.
    pub generation: u32,
}

/// A text that does not name a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSubjectKey {
    #[error("a key of a person is written as the member's id, `/` and a generation from 1 on, such as `mem_…/1`")]
    Form,
    #[error(transparent)]
    Member(#[from] BadId),
}

/// A sealed `T`.
///
/// `text` is the sealed JSON of the `T` in base64url; `indexes` are keyed digests by the name of the field, for those
/// fields that are searched for as a whole.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Sealed<T> {
    key: SubjectKey,
    text: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    indexes: BTreeMap<String, String>,
    #[serde(skip)]
    of: PhantomData<fn() -> T>,
}

impl<T> Sealed<T> {
    /// What a keyring sealed under this key.
    pub fn new(key: SubjectKey, text: String, indexes: BTreeMap<String, String>) -> Self {
        Self { key, text, indexes, of: PhantomData }
    }

    /// The key that opens it.
    pub fn key(&self) -> SubjectKey {
        self.key
    }

    /// The cipher text in base64url, for who has the key.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The keyed digest of a field, where it is indexed.
    pub fn index(&self, field: &str) -> Option<&str> {
        self.indexes.get(field).map(String::as_str)
    }
}

// Derived ones would ask for the same of `T`, which is not there.
impl<T> Clone for Sealed<T> {
    fn clone(&self) -> Self {
        Self::new(self.key, self.text.clone(), self.indexes.clone())
    }
}

impl<T> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.text == other.text && self.indexes == other.indexes
    }
}

impl<T> Eq for Sealed<T> {}

impl<T> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("key", &self.key).finish_non_exhaustive()
    }
}

impl fmt::Display for SubjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.member, self.generation)
    }
}

impl FromStr for SubjectKey {
    type Err = BadSubjectKey;
    fn from_str(text: &str) -> Result<Self, BadSubjectKey> {
        let (member, number) = text.split_once('/').ok_or(BadSubjectKey::Form)?;
        let generation = number.parse().ok().filter(|from_1: &u32| *from_1 > 0 && from_1.to_string() == number);
        Ok(Self { member: member.parse()?, generation: generation.ok_or(BadSubjectKey::Form)? })
    }
}

impl Serialize for SubjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SubjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Id, TenantId};

    fn key() -> SubjectKey {
        SubjectKey { member: MemberId::derived(TenantId::PLATFORM, "li"), generation: 2 }
    }

    #[test]
    fn a_key_is_written_one_way() {
        assert_eq!(key().to_string().parse(), Ok(key()));
        let member = key().member;
        let bad = [String::new(), format!("{member}"), format!("{member}/0"), format!("{member}/01"), "mem_x/1".into()];
        for text in bad.into_iter().chain([format!("{member}/-1"), format!("{member}/1 ")]) {
            assert!(text.parse::<SubjectKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn is_stored_with_its_key_and_shows_nothing() {
        let indexes = BTreeMap::from([("email".to_owned(), "ab".to_owned())]);
        let sealed: Sealed<u8> = Sealed::new(key(), "c2VhbGVk".into(), indexes);
        let json = serde_json::to_string(&sealed).unwrap();
        assert_eq!(json, format!(r#"{{"key":"{}","text":"c2VhbGVk","indexes":{{"email":"ab"}}}}"#, key()));
        assert_eq!(serde_json::from_str::<Sealed<u8>>(&json).unwrap(), sealed);
        assert_eq!((sealed.index("email"), sealed.index("phone")), (Some("ab"), None));
        let shown = format!("{sealed:?}");
        assert!(!shown.contains("c2VhbGVk") && !shown.contains("\"ab\""), "{shown}");
        let plain = format!(r#"{{"key":"{}","text":"c2VhbGVk"}}"#, key());
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Sealed<u8>>(&plain).unwrap()).unwrap(), plain);
    }
}
