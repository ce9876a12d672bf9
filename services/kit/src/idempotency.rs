//! Idempotency: the same key with the same request has one effect, however often it is sent.
//!
//! Owns: the header `Idempotency-Key`, the command id that it makes, what is stored of a command. Does not own: that a
//! command id has one effect (`eventlog`).
//! Invariant: a command id is derived from tenant, member and key, so nobody's key meets another's.

use crate::{Actor, Clock, Digest, Problem};
use axum::{
    extract::FromRequestParts,
    http::{HeaderName, StatusCode, request::Parts},
};
use domain::kernel::{CommandId, Id, Meta};
use uuid::Uuid;

const NAME: HeaderName = HeaderName::from_static("idempotency-key");
const LENGTH_MAX: usize = 128;

/// What the asker calls the thing that is asked for; a fresh UUID if nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key of this text, which has 1 to 128 visible ASCII characters.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_graphic());
        fits.then(|| Self(text.into()))
    }

    /// A key that nobody used.
    pub fn fresh() -> Self {
        Self(Uuid::now_v7().to_string())
    }

    /// The command that an actor gives with this key.
    pub fn command(&self, actor: &Actor) -> CommandId {
        CommandId::derived(actor.tenant, &format!("{}/{}", actor.member, self.0))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut sent = parts.headers.get_all(NAME).into_iter();
        let Some(first) = sent.next() else { return Ok(Self::fresh()) };
        let key = first.to_str().ok().and_then(Self::new).filter(|_| sent.next().is_none());
        key.ok_or_else(|| {
            let detail = format!("`Idempotency-Key` is sent once and has 1 to {LENGTH_MAX} visible ASCII characters");
            Problem::new(StatusCode::BAD_REQUEST, "request.bad_idempotency_key", detail)
        })
    }
}

/// What is stored beside the events of an actor's command. The thing is the actor's tenant's; a handler that acts on
/// another tenant's thing names it: `Meta { tenant, ..meta(…) }`.
pub fn meta(actor: &Actor, key: &IdempotencyKey, digest: &Digest, clock: &Clock) -> Meta {
    let command = key.command(actor);
    Meta {
        tenant: actor.tenant,
        actor: actor.name(),
        command,
        digest: digest.as_str().into(),
        correlation: command,
        causation: None,
        trace: None,
        occurred_at: clock.now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{
        identity::{Role, member_of},
        kernel::TenantId,
    };

    fn actor(handle: &str) -> Actor {
        Actor {
            member: member_of(handle),
            tenant: TenantId::PLATFORM,
            handle: handle.into(),
            roles: [Role::Operator].into(),
            key: None,
        }
    }

    async fn sent(values: &[&[u8]]) -> Result<IdempotencyKey, Problem> {
        let mut request = axum::http::Request::builder();
        for value in values {
            request = request.header(NAME, *value);
        }
        IdempotencyKey::from_request_parts(&mut request.body(()).unwrap().into_parts().0, &()).await
    }

    #[tokio::test]
    async fn is_taken_from_its_header() {
        assert_eq!(sent(&[b"order-1"]).await, Ok(IdempotencyKey("order-1".into())));
        assert_ne!(sent(&[]).await, sent(&[]).await);
        let long = [b'x'; LENGTH_MAX + 1];
        assert!(sent(&[&long[1..]]).await.is_ok());
        for bad in [&[b"".as_slice()][..], &[b"a b"], &[&long], &["é".as_bytes()], &[b"a", b"b"]] {
            assert_eq!(sent(bad).await.unwrap_err().code(), "request.bad_idempotency_key", "{bad:?}");
        }
    }

    #[test]
    fn makes_one_command_for_each_member_and_key() {
        let key = IdempotencyKey("1".into());
        assert_eq!(key.command(&actor("li")), key.command(&actor("li")));
        assert_ne!(key.command(&actor("li")), key.command(&actor("wang")));
        assert_ne!(key.command(&actor("li")), IdempotencyKey("2".into()).command(&actor("li")));
    }

    #[test]
    fn what_is_stored_names_who_asked_and_when() {
        let clock = Clock::manual(chrono::DateTime::UNIX_EPOCH);
        let digest = Digest::of("POST", "/", b"");
        let meta = meta(&actor("li"), &IdempotencyKey("1".into()), &digest, &clock);
        assert_eq!(meta.actor, member_of("li").to_string());
        assert_eq!((meta.correlation, meta.occurred_at), (meta.command, chrono::DateTime::UNIX_EPOCH));
        assert_eq!(meta.digest, digest.as_str());
    }
}
