//! A product: something of one resource that is sold by the unit-hour.
//!
//! Invariants: its SKU and resource never change; its id follows from the SKU, so a SKU exists once.

use crate::kernel::{Aggregate, Id, Kind, ProductId, Rejection, Resource, TenantId};
use serde::{Deserialize, Serialize};

const SKU_LENGTH_MAX: usize = 48;
const NAME_LENGTH_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Product {
    #[default]
    Absent,
    Offered {
        sku: String,
        resource: Resource,
    },
}

#[derive(Debug, Clone)]
pub enum Command {
    Offer { sku: String, resource: Resource, name_zh: String, name_en: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Offered { sku: String, resource: Resource, name_zh: String, name_en: String },
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("a SKU has 1 to {SKU_LENGTH_MAX} of a-z, 0-9, dot and dash")]
    BadSku,
    #[error("a product has a Chinese and an English name of 1 to {NAME_LENGTH_MAX} characters")]
    BadName,
    #[error("the SKU `{0}` is taken")]
    AlreadyExists(String),
}

/// The id of the product with this SKU.
pub fn product_of(sku: &str) -> ProductId {
    Id::derived(TenantId::PLATFORM, sku)
}

/// Whether it is written as a SKU is.
pub fn is_sku(text: &str) -> bool {
    let known = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'.' || c == b'-';
    (1..=SKU_LENGTH_MAX).contains(&text.len()) && text.bytes().all(known)
}

impl Aggregate for Product {
    const STREAM: &'static str = "product";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        let Command::Offer { sku, resource, name_zh, name_en } = command;
        let bad_name = |name: &str| name.trim().is_empty() || name.chars().count() > NAME_LENGTH_MAX;
        match self {
            Self::Absent if !is_sku(&sku) => Err(Error::BadSku),
            Self::Absent if bad_name(&name_zh) || bad_name(&name_en) => Err(Error::BadName),
            Self::Absent => Ok(vec![Event::Offered { sku, resource, name_zh, name_en }]),
            Self::Offered { sku: known, resource: of } if *known == sku && *of == resource => Ok(vec![]),
            Self::Offered { sku, .. } => Err(Error::AlreadyExists(sku.clone())),
        }
    }

    fn evolve(self, event: &Event) -> Self {
        let Event::Offered { sku, resource, .. } = event;
        Self::Offered { sku: sku.clone(), resource: resource.clone() }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::BadSku => "product.bad_sku",
            Self::BadName => "product.bad_name",
            Self::AlreadyExists(_) => "product.already_exists",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::BadSku | Self::BadName => Kind::Invalid,
            Self::AlreadyExists(_) => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::given;

    fn offer(sku: &str, resource: &str) -> Command {
        let resource = resource.parse().unwrap();
        Command::Offer { sku: sku.into(), resource, name_zh: "核时".into(), name_en: "Core-hours".into() }
    }

    fn offered() -> Event {
        let (name_zh, name_en) = ("核时".into(), "Core-hours".into());
        Event::Offered { sku: "core".into(), resource: Resource::Core, name_zh, name_en }
    }

    #[test]
    fn is_offered_once() {
        given::<Product>([]).when(offer("core", "core")).then([offered()]);
        given::<Product>([offered()]).when(offer("core", "core")).then([]);
        given::<Product>([offered()]).when(offer("core", "card.a")).then_refused(Error::AlreadyExists("core".into()));
        given::<Product>([]).when(offer("Core!", "core")).then_refused(Error::BadSku);
    }
}
