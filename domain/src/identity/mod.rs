//! Identity: who there is, and what each may do.
//!
//! Owns: the organisation tree (`Tenant`), its people and services (`Member`), their keys (`ApiKey`), and the closed
//! list of what may be permitted to whom (`Permission`, `Role`). Does not own: sessions, hashing, how a request is
//! authenticated (`services/kit`), what a permission guards (each edge's handlers).
//!
//! Words: a *tenant* owns resources and bills; a *member* is known by a *handle*; what is personal is in the *profile*,
//! which is sealed; a *role* is a fixed set of permissions; the *setup* is the one-time secret with which the first operator signs up.
//! Invariants: a locked member decides nothing; a handle is one member, because the id is derived from it; a role of
//! the platform is held by members of the platform only; events hold hashes, never a password, a secret or a key.
//! On failure: every command may be sent again; what is so already makes no event.

pub mod api_key;
pub mod member;
pub mod permission;
pub mod profile;
pub mod tenant;

pub use api_key::ApiKey;
pub use member::{Member, member_of};
pub use permission::{Permission, Reach, Role};
pub use profile::{BadProfile, Profile};
pub use tenant::Tenant;
