//! Typed ids, written `ord_01J…`: a prefix and a UUID in 26 base-32 digits (Crockford) that sort like the UUID.
//!
//! Owns: every kind of id, one line each. Invariants: an id is written one way only; a text of another kind or with
//! small letters is refused; ids are made at the edge (`UUIDv7`) or derived (`UUIDv5`), never here by chance.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, de::DeserializeOwned};
use std::{fmt, hash::Hash, str::FromStr};
use uuid::Uuid;

/// Every typed id.
pub trait Id:
    Copy
    + Eq
    + Ord
    + Hash
    + fmt::Display
    + fmt::Debug
    + FromStr<Err = BadId>
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The type's name, as API schemas show it.
    const NAME: &'static str;
    /// What the written form starts with.
    const PREFIX: &'static str;

    /// The id with this UUID.
    fn from_uuid(uuid: Uuid) -> Self;

    /// Its UUID.
    fn uuid(self) -> Uuid;

    /// The id that a fact determines: the same scope and name always give the same id, so that what is asked for twice
    /// meets its own stream.
    fn derived(scope: impl Id, name: &str) -> Self {
        Self::from_uuid(Uuid::new_v5(&scope.uuid(), format!("{}/{name}", Self::PREFIX).as_bytes()))
    }
}

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an id of the kind {kind}, which is written `{prefix}_` and 26 characters of 0-9 and A-Z")]
pub struct BadId {
    kind: &'static str,
    prefix: &'static str,
    text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl Id for $name {
            const NAME: &'static str = stringify!($name);
            const PREFIX: &'static str = $prefix;

            fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($prefix, "_"))?;
                // The digits are ASCII, so this cannot fail.
                f.write_str(std::str::from_utf8(&base32(self.0.as_u128())).map_err(|_| fmt::Error)?)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                let bad = || BadId { kind: Self::NAME, prefix: Self::PREFIX, text: text.chars().take(64).collect() };
                let digits = text.strip_prefix(concat!($prefix, "_"));
                Ok(Self(Uuid::from_u128(digits.and_then(from_base32).ok_or_else(bad)?)))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// A command: what was asked once, however often it was sent.
    CommandId = "cmd";
    /// A contract: the terms on which a customer is billed.
    ContractId = "ctr";
    /// A customer: who pays.
    CustomerId = "cus";
    /// A stored event.
    EventId = "evt";
    /// A job.
    JobId = "job";
    /// An API key.
    KeyId = "key";
    /// A lease (占用): the right to cards, cores and memory of one node.
    LeaseId = "lea";
    /// A member: a person or a service of a tenant.
    MemberId = "mem";
    /// A node: a machine, or a cluster behind one agent.
    NodeId = "nod";
    /// An order.
    OrderId = "ord";
    /// A pool of nodes.
    PoolId = "poo";
    /// A price book.
    PriceBookId = "pbk";
    /// A product.
    ProductId = "prd";
    /// A statement (账单).
    StatementId = "sta";
    /// A tenant: a node of the organisation tree that owns resources and bills.
    TenantId = "ten";
}

impl TenantId {
    /// The platform itself, for commands and things that belong to no tenant.
    pub const PLATFORM: Self = Self(Uuid::nil());
}

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 26;

/// On the stack: ids are written for every row of the log.
fn base32(number: u128) -> [u8; LENGTH] {
    std::array::from_fn(|index| DIGITS[(number >> (5 * (LENGTH - 1 - index))) as usize & 31])
}

fn from_base32(text: &str) -> Option<u128> {
    let digits = (text.len() == LENGTH).then(|| text.bytes())?;
    digits.into_iter().try_fold(0_u128, |number, digit| {
        let value = DIGITS.iter().position(|&known| known == digit)?;
        Some(number.checked_mul(32)? | value as u128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_and_sorts_like_the_uuid() {
        let (low, high) = (OrderId(Uuid::from_u128(31)), OrderId(Uuid::max()));
        assert_eq!(low.to_string(), "ord_0000000000000000000000000Z");
        assert_eq!(high.to_string().parse(), Ok(high));
        assert!(low.to_string() < high.to_string());
    }

    #[test]
    fn refuses_another_kind_too_large_a_number_and_other_spellings() {
        for text in [
            "ten_0000000000000000000000000Z",
            "ord_Z000000000000000000000000Z",
            "ord_0000000000000000000000000z",
            "ord_",
            "",
            "ord_é",
        ] {
            assert!(text.parse::<OrderId>().is_err(), "{text}");
        }
    }

    #[test]
    fn is_derived_by_kind_scope_and_name() {
        let scope = TenantId::PLATFORM;
        assert_eq!(OrderId::derived(scope, "a"), OrderId::derived(scope, "a"));
        assert_ne!(OrderId::derived(scope, "a").uuid(), JobId::derived(scope, "a").uuid());
        assert_ne!(OrderId::derived(scope, "a"), OrderId::derived(scope, "b"));
    }
}
