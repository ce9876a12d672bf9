//! Session tokens: JWT, HS256, twelve hours.
//!
//! Owns: the claims and the signing key. Does not own: its file (`key_file`), whether the member may still act (`session`).
//! Invariants: no other algorithm is accepted; the time is the edge's clock; the key is read by its owner only.

use super::key_file::{KEY_BYTES, KeyFileError, read_or_make};
use chrono::{DateTime, TimeDelta, Utc};
use domain::kernel::MemberId;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path, sync::Arc};

/// How long a session lasts.
pub const SESSION_HOURS: i64 = 12;

/// What a session token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The member.
    pub sub: MemberId,
    /// The member's session version when it began.
    pub sv: u32,
    /// When it was issued, in seconds since 1970.
    pub iat: i64,
    /// The first second at which it is over.
    pub exp: i64,
}

/// A new session.
#[derive(Clone)]
pub struct Session {
    /// What the client sends as `Authorization: Bearer …`.
    pub token: String,
    /// When it is over.
    pub expires_at: DateTime<Utc>,
}

/// Why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the session token is not one of this server")]
    Invalid,
    #[error("the session is over")]
    Expired,
}

/// The key that signs session tokens. Clones share it.
#[derive(Clone)]
pub struct SessionKey(Arc<Keys>);

struct Keys {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey")
    }
}

impl SessionKey {
    /// The key of 32 bytes in this file, which is made with random bytes if it is not there. Processes that start at
    /// once get the same key.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        Self::new(&read_or_make(path)?)
    }

    /// The key of these bytes.
    pub fn new(bytes: &[u8; KEY_BYTES]) -> Result<Self, KeyFileError> {
        let unusable = |error: jsonwebtoken::errors::Error| KeyFileError::Unusable(error.to_string());
        let encoding = EncodingKey::from_secret(bytes).map_err(unusable)?;
        let decoding = DecodingKey::from_secret(bytes).map_err(unusable)?;
        Ok(Self(Arc::new(Keys { encoding, decoding })))
    }

    /// Begins a session of a member at an instant. `TokenError::Invalid` where it cannot be signed.
    pub fn issue(&self, member: MemberId, session_version: u32, at: DateTime<Utc>) -> Result<Session, TokenError> {
        let expires_at = at + TimeDelta::hours(SESSION_HOURS);
        let claims = Claims { sub: member, sv: session_version, iat: at.timestamp(), exp: expires_at.timestamp() };
        let header = Header::new(Algorithm::HS256);
        let token = jsonwebtoken::encode(&header, &claims, &self.0.encoding).map_err(|_| TokenError::Invalid)?;
        Ok(Session { token, expires_at })
    }

    /// What a token says, where it is of this key and not over at an instant.
    pub fn read(&self, token: &str, at: DateTime<Utc>) -> Result<Claims, TokenError> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["exp", "sub"]);
        // Checked below, by the edge's clock and without leeway: the same server issued it.
        validation.validate_exp = false;
        let read = jsonwebtoken::decode::<Claims>(token, &self.0.decoding, &validation);
        let claims = read.map_err(|_| TokenError::Invalid)?.claims;
        if at.timestamp() < claims.exp { Ok(claims) } else { Err(TokenError::Expired) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::identity::member_of;
    use std::fs;

    fn key() -> SessionKey {
        SessionKey::new(&[7; KEY_BYTES]).unwrap()
    }

    const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

    #[test]
    fn is_read_until_just_before_it_is_over() {
        let session = key().issue(member_of("li"), 3, START).unwrap();
        let claims = key().read(&session.token, START).unwrap();
        assert_eq!((claims.sub, claims.sv), (member_of("li"), 3));
        assert_eq!(session.expires_at, START + TimeDelta::hours(12));
        assert!(key().read(&session.token, session.expires_at - TimeDelta::seconds(1)).is_ok());
        assert_eq!(key().read(&session.token, session.expires_at), Err(TokenError::Expired));
    }

    #[test]
    fn of_another_key_or_changed_it_is_refused() {
        let token = key().issue(member_of("li"), 1, START).unwrap().token;
        let other = SessionKey::new(&[8; KEY_BYTES]).unwrap();
        assert_eq!(other.read(&token, START), Err(TokenError::Invalid));
        let longer = other.issue(member_of("li"), 1, START).unwrap().token;
        let (body, _) = token.rsplit_once('.').unwrap();
        let (_, signature) = longer.rsplit_once('.').unwrap();
        for text in ["", "a.b.c", "é", body, &format!("{body}."), &format!("{body}.{signature}"), &token[1..]] {
            assert_eq!(key().read(text, START), Err(TokenError::Invalid), "{text}");
        }
    }

    #[test]
    fn of_another_algorithm_it_is_refused() {
        let claims = Claims { sub: member_of("li"), sv: 1, iat: 0, exp: i64::MAX };
        let secret = EncodingKey::from_secret(&[7; KEY_BYTES]).unwrap();
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS512), &claims, &secret).unwrap();
        assert_eq!(key().read(&token, START), Err(TokenError::Invalid));
        // {"alg":"none"} and {"sub":…} without a signature.
        assert_eq!(key().read("eyJhbGciOiJub25lIn0.e30.", START), Err(TokenError::Invalid));
    }

    #[test]
    fn the_key_is_made_once_and_kept_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.key");
        let token = SessionKey::open(&path).unwrap().issue(member_of("li"), 1, START).unwrap().token;
        assert!(SessionKey::open(&path).unwrap().read(&token, START).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(&path, b"short").unwrap();
        assert!(matches!(SessionKey::open(&path), Err(KeyFileError::Length(_))));
        assert!(matches!(SessionKey::open(&folder.path().join("no/key")), Err(KeyFileError::Io(..))));
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.key");
        SessionKey::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(SessionKey::open(&path), Err(KeyFileError::Open(_))));
    }
}
