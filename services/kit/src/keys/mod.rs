//! The keyring: seals what is personal, and opens it as long as the person's key is there.
//!
//! Owns: sealing and opening (`Sealed`), blind indexes, destroying a key, the keys held in memory. Does not own: what is
//! personal (`domain`), the keys at rest (`store`), the file of the master key.
//! Invariants: a text opens only as what it was sealed as, and for whom; a destroyed key opens nothing and is never made
//! again; no key and no text is in an error or a `Debug` text.

mod store;

pub use store::MIGRATIONS;

use self::store::KeyStore;
use crate::Problem;
use crate::auth::key_file::{self, KeyFileError};
use ::store::Error as StoreError;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use crypto::{Cipher, MacKey, Provider, SealKey, SealedText, Sealer, Secret, hmac_sm3};
use domain::kernel::{Sealed, SubjectKey};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many keys are held in memory; beyond that they are read again.
const HELD_MAX: usize = 4096;

/// Seals and opens. Clones share the keys.
#[derive(Clone)]
pub struct Keyring(Arc<Ring>);

struct Ring {
    store: KeyStore,
    provider: Provider,
    index: MacKey,
    held: Mutex<HashMap<SubjectKey, SealKey>>,
}

/// Why nothing was sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The key store did not answer.
    #[error("the key store: {0}")]
    Store(#[from] StoreError),
    /// There is no master key.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The key store is of another master key.
    #[error("the master key is not the one that the key store was sealed under; restore both from their backups")]
    OtherMaster,
    /// The key is gone, and what was sealed under it.
    #[error("the key {0} was destroyed; what is sealed anew takes the next one")]
    Destroyed(SubjectKey),
    /// Something was changed, or is not what it is said to be.
    #[error("a sealed text or key does not open: {0}")]
    Broken(#[from] crypto::Error),
    /// What was sealed is not of the form that is read.
    #[error("what was sealed cannot be read")]
    Form(#[source] serde_json::Error),
}

impl Keyring {
    /// The keys of `sqlite:PATH` or `postgres://…`, sealed under the master key in this file; both are made if they are
    /// not there. New keys are for SM4.
    pub async fn open(url: &str, master: &Path) -> Result<Self, KeysError> {
        Self::open_with(url, master, Cipher::default(), Provider::default()).await
    }

    /// The same, with new keys for this cipher and with this engine. What another cipher sealed still opens.
    pub async fn open_with(url: &str, master: &Path, cipher: Cipher, provider: Provider) -> Result<Self, KeysError> {
        let bytes = Secret::from(key_file::read_or_make(master)?.as_slice());
        let store = KeyStore::open(url, &MacKey::from_bytes(bytes.expose())?, cipher, provider).await?;
        let index = store.index_key("search").await?;
        Ok(Self(Arc::new(Ring { store, provider, index, held: Mutex::default() })))
    }

    /// Seals a value for a person, as what `purpose` says, with the digests of fields that are searched for.
    /// `KeysError::Destroyed` if the key is gone already.
    pub async fn seal<T: Serialize>(
        &self,
        key: SubjectKey,
        purpose: &str,
        value: &T,
        indexes: BTreeMap<String, String>,
    ) -> Result<Sealed<T>, KeysError> {
        let seal = match self.held(key) {
            Some(held) => held,
            None => self.hold(key, self.0.store.key(key).await?).ok_or(KeysError::Destroyed(key))?,
        };
        let plain = Secret::from(serde_json::to_vec(value).map_err(KeysError::Form)?);
        let sealed = self.sealer(seal).seal(plain.expose(), &belongs(key, purpose))?;
        Ok(Sealed::new(key, sealed.to_string(), indexes))
    }

    /// The value, or `None` if its key is gone.
    pub async fn unseal<T: DeserializeOwned>(&self, purpose: &str, sealed: &Sealed<T>) -> Result<Option<T>, KeysError> {
        let key = sealed.key();
        let held = match self.held(key) {
            Some(held) => Some(held),
            None => self.hold(key, self.0.store.find(key).await?),
        };
        let Some(seal) = held else { return Ok(None) };
        let text: SealedText = sealed.text().parse()?;
        let plain = self.sealer(seal).open(&text, &belongs(key, purpose))?;
        serde_json::from_slice(plain.expose()).map(Some).map_err(KeysError::Form)
    }

    /// The keyed digest under which a value of this field is found, in 64 hex digits. The caller normalises the value.
    pub fn blind_index(&self, field: &str, value: &str) -> String {
        hmac_sm3(&self.0.index, format!("{field}\0{value}").as_bytes()).to_string()
    }

    /// Destroys a person's keys up to this generation for good. Says whether there were any left.
    pub async fn destroy(&self, up_to: SubjectKey, at: DateTime<Utc>) -> Result<bool, KeysError> {
        let gone = |key: &SubjectKey| key.member == up_to.member && key.generation <= up_to.generation;
        let destroyed = self.0.store.destroy(up_to, at).await?;
        self.keys().retain(|key, _| !gone(key));
        Ok(destroyed)
    }

    /// Closes the key store, also for the clones.
    pub async fn close(&self) {
        self.0.store.close().await;
    }

    /// What projections open profiles with.
    pub fn opener(&self) -> projections::Opener {
        let ring = self.clone();
        Arc::new(move |sealed| {
            let ring = ring.clone();
            Box::pin(async move { Ok(ring.unseal(domain::identity::Profile::PURPOSE, &sealed).await?) })
        })
    }

    fn sealer(&self, key: SealKey) -> Sealer {
        Sealer::with_provider(key, self.0.provider)
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<SubjectKey, SealKey>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self, key: SubjectKey) -> Option<SealKey> {
        self.keys().get(&key).cloned()
    }

    fn hold(&self, key: SubjectKey, found: Option<SealKey>) -> Option<SealKey> {
        let mut keys = self.keys();
        if keys.len() >= HELD_MAX {
            keys.clear();
        }
        keys.extend(found.clone().map(|found| (key, found)));
        found
    }
}

/// Where a sealed text belongs: it opens nowhere else.
fn belongs(key: SubjectKey, purpose: &str) -> Vec<u8> {
    format!("{key}/{purpose}").into_bytes()
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").finish_non_exhaustive()
    }
}

impl From<KeysError> for Problem {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::Store(error) => error.into(),
            KeysError::Destroyed(_) => {
                Self::new(StatusCode::CONFLICT, "member.stale_profile", "the personal data was erased meanwhile")
                    .with_hint("send the profile again")
            }
            KeysError::File(_) | KeysError::OtherMaster | KeysError::Broken(_) | KeysError::Form(_) => {
                Self::internal(&error)
            }
        }
    }
}

/// A read model that cannot open what is there stops, as with any row that it cannot read.
impl From<KeysError> for StoreError {
    fn from(error: KeysError) -> Self {
        if let KeysError::Store(error) = error { error } else { sqlx::Error::Decode(Box::new(error)).into() }
    }
}
