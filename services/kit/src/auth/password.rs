//! Passwords: argon2id, off the request threads.
//!
//! Owns: the rule for a password, its hash, the comparison. Does not own: where hashes are stored (`Member`).
//! Invariants: at most `AT_ONCE_MAX` are hashed at once, since each takes 19 MiB; an unknown member costs the same time
//! as a wrong password, so that handles cannot be guessed by the clock.

use crate::Problem;
use argon2::{Argon2, PasswordHash, PasswordHasher, PasswordVerifier};
use std::sync::LazyLock;
use tokio::{sync::Semaphore, task::spawn_blocking};

/// The fewest characters of a password.
pub const LENGTH_MIN: usize = 10;
/// The most bytes of a password, so that hashing costs little more than its memory.
pub const BYTES_MAX: usize = 1024;
const AT_ONCE_MAX: usize = 4;

static TURNS: Semaphore = Semaphore::const_new(AT_ONCE_MAX);
/// The hash of a password that nobody has, for members without one.
static NOBODYS: LazyLock<Option<String>> = LazyLock::new(|| hashed(&super::secret::generate()).ok());

/// Why there is no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error("a password has at least {LENGTH_MIN} characters")]
    TooShort,
    #[error("a password has at most {BYTES_MAX} bytes")]
    TooLong,
    #[error("the password could not be hashed: {0}")]
    Failed(String),
}

/// The argon2id hash of a new password, as a PHC string.
pub async fn hash(password: String) -> Result<String, PasswordError> {
    if password.chars().take(LENGTH_MIN).count() < LENGTH_MIN {
        return Err(PasswordError::TooShort);
    }
    if password.len() > BYTES_MAX {
        return Err(PasswordError::TooLong);
    }
    in_turn(move || hashed(&password)).await?
}

/// Whether a password is the one of a stored hash; never without a hash, but after the same time.
pub async fn verify(password: String, stored: Option<String>) -> Result<bool, PasswordError> {
    if password.len() > BYTES_MAX {
        return Ok(false);
    }
    in_turn(move || {
        let known = stored.is_some();
        let Some(stored) = stored.or_else(|| NOBODYS.clone()) else { return false };
        let same = PasswordHash::new(&stored)
            .is_ok_and(|stored| Argon2::default().verify_password(password.as_bytes(), &stored).is_ok());
        known && same
    })
    .await
}

async fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, PasswordError> {
    let failed = |error: &dyn std::error::Error| PasswordError::Failed(error.to_string());
    let turn = TURNS.acquire().await.map_err(|error| failed(&error))?;
    spawn_blocking(move || {
        // Kept until the work is done, also when who asked has gone away meanwhile.
        let _turn = turn;
        work()
    })
    .await
    .map_err(|error| failed(&error))
}

fn hashed(password: &str) -> Result<String, PasswordError> {
    let hash: PasswordHash = Argon2::default()
        .hash_password(password.as_bytes())
        .map_err(|error| PasswordError::Failed(error.to_string()))?;
    Ok(hash.to_string())
}

impl From<PasswordError> for Problem {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::TooShort => Self::invalid("auth.password_too_short", error.to_string()),
            PasswordError::TooLong => Self::invalid("auth.password_too_long", error.to_string()),
            PasswordError::Failed(_) => Self::internal(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn is_known_by_its_hash_only() {
        let hash = super::hash("correct horse".into()).await.unwrap();
        assert!(hash.starts_with("$argon2id$") && !hash.contains("horse"));
        assert_eq!(verify("correct horse".into(), Some(hash.clone())).await, Ok(true));
        assert_eq!(verify("correct Horse".into(), Some(hash.clone())).await, Ok(false));
        assert_eq!(verify(String::new(), Some(hash.clone())).await, Ok(false));
        assert_ne!(super::hash("correct horse".into()).await, Ok(hash));
    }

    #[tokio::test]
    async fn nobody_has_no_password() {
        assert_eq!(verify("correct horse".into(), None).await, Ok(false));
        assert_eq!(verify("correct horse".into(), Some("plain".into())).await, Ok(false));
        assert_eq!(verify("x".repeat(BYTES_MAX + 1), None).await, Ok(false));
    }

    #[tokio::test]
    async fn is_neither_short_nor_endless() {
        assert_eq!(super::hash("密码密码密码密码密".into()).await, Err(PasswordError::TooShort));
        assert_eq!(super::hash("x".repeat(BYTES_MAX + 1)).await, Err(PasswordError::TooLong));
        assert!(super::hash("密码密码密码密码密码".into()).await.is_ok());
    }
}
