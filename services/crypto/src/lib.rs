//! SM2, SM3, SM4 and their international twins, behind few types of our own.
//!
//! Owns: digests and their keyed twins ([`Digest`], [`hmac_sm3`]), sealed texts ([`Sealer`]), SM2 keys and signatures
//! ([`PrivateKey`], [`PublicKey`], [`Signature`]), and the choice between two engines ([`Provider`]).
//! Does not own: where keys are kept and whose they are, passwords, TLS, and what is hashed or signed in which order.
//!
//! Invariants:
//! - No input makes a call panic; what is wrong is an [`Error`], and no error or `Debug` text holds a secret.
//! - What is sealed, signed or hashed by one provider is opened, verified or met by the other.
//! - The bytes that a key type holds are cleared when it is dropped. Copies that the engines make while they compute are
//!   beyond our reach; libsm clears nothing and is not constant in time, so it is the second choice.
//!
//! These are software engines, neither of them a certified 密码产品: a site that needs one (GB/T 37092, level 2) puts
//! its device in as a further [`Provider`].

mod digest;
mod error;
mod hex;
mod keys;
mod mac;
mod provider;
mod random;
mod seal;
mod sealed_text;
mod secret;
mod signature;
mod user_id;

pub use digest::{Digest, HashAlgorithm, Hasher};
pub use error::Error;
pub use keys::{ENCRYPTED_BYTES_MAX, PrivateKey, PublicKey};
pub use mac::{MacKey, hmac_sha256, hmac_sm3};
pub use provider::Provider;
pub use seal::{NONCE_BYTES, SEALED_BYTES_MAX, SealKey, Sealer};
pub use sealed_text::{Cipher, SealedText};
pub use secret::Secret;
pub use signature::Signature;
pub use user_id::UserId;
