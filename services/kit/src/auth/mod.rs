//! Who asks: passwords, session tokens, API keys, one-time secrets.
//!
//! Owns: how each is made, written, hashed and compared, and how a request's `Authorization` becomes an `Actor`.
//! Does not own: who exists and who is locked (`domain::identity`), what an actor may do (`permission`).
//!
//! Invariants: a secret is compared by its hash, in constant time; it is shown once, when it is made, and neither it
//! nor a password is in a log, an error or a `Debug` text; a lock or a new password ends every session at once,
//! because the member is folded from the log at each request.

pub mod key;
pub mod key_file;
pub mod password;
pub mod secret;
pub mod session;
pub mod token;

pub use session::Actor;
pub use token::SessionKey;
