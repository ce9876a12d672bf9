//! The key store: a database of its own, with one key per person and generation, each sealed under the master key.
//!
//! Owns: the tables of `migrations/keys`. Does not own: what is sealed with the keys, the master key's file.
//! Invariants: no key is stored in clear; a key is made at most once per person and generation, whoever asks first; a
//! destroyed key's material is written over before its row forgets it, and the row stays to say when.

use super::KeysError;
use chrono::{DateTime, SubsecRound, Utc};
use crypto::{Cipher, MacKey, Provider, SealKey, SealedText, Sealer, Secret, hmac_sm3};
use domain::kernel::SubjectKey;
use store::{Db, MemberId, Time};

/// The schema of the key store.
pub static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/keys");

const CIPHERS: [Cipher; 2] = [Cipher::Sm4Gcm, Cipher::Aes256Gcm];

pub(super) struct KeyStore {
    db: Db,
    /// Wraps keys, one for each cipher.
    wraps: [Sealer; 2],
    /// What new keys are for.
    cipher: Cipher,
}

impl KeyStore {
    pub(super) async fn open(
        url: &str,
        master: &MacKey,
        cipher: Cipher,
        provider: Provider,
    ) -> Result<Self, KeysError> {
        let wrap = |cipher| wrap_key(master, cipher).map(|key| Sealer::with_provider(key, provider));
        let [sm4, aes] = CIPHERS.map(wrap);
        Ok(Self { db: Db::open(url, &MIGRATIONS).await?, wraps: [sm4?, aes?], cipher })
    }

    /// The key of a person and generation, made if it never was; `None` if it was destroyed.
    pub(super) async fn key(&self, subject: SubjectKey) -> Result<Option<SealKey>, KeysError> {
        let new = SealKey::generate(self.cipher)?;
        let material = self.wrap(new.expose_bytes(), &subject.to_string())?;
        self.db
            .sql(
                "insert into subject_keys (subject, generation, material, created_at) values ($1, $2, $3, $4)
                 on conflict (subject, generation) do nothing",
            )
            .bind(MemberId::from(subject.member))
            .bind(i64::from(subject.generation))
            .bind(material)
            .bind(now())
            .run()
            .await?;
        self.find(subject).await
    }

    /// The key of a person and generation, if it is there.
    pub(super) async fn find(&self, subject: SubjectKey) -> Result<Option<SealKey>, KeysError> {
        let found: Option<(Option<String>,)> = self
            .db
            .sql("select material from subject_keys where subject = $1 and generation = $2")
            .bind(MemberId::from(subject.member))
            .bind(i64::from(subject.generation))
            .optional()
            .await?;
        let Some((material,)) = found else {
            tracing::warn!(key = %subject, "the key store does not know a key that something was sealed under");
            return Ok(None);
        };
        let Some(material) = material else { return Ok(None) };
        let bytes = self.unwrap_key(&material, &subject.to_string())?;
        let fits = |cipher: &Cipher| cipher.key_bytes() == bytes.expose().len();
        let cipher = CIPHERS.into_iter().find(fits).unwrap_or_default();
        Ok(Some(SealKey::from_bytes(cipher, bytes.expose())?))
    }

    /// Destroys a person's keys up to a generation. Says whether there were any left.
    pub(super) async fn destroy(&self, up_to: SubjectKey, at: DateTime<Utc>) -> Result<bool, KeysError> {
        let (member, generation) = (MemberId::from(up_to.member), i64::from(up_to.generation));
        // As long as it was, so that it is written where the key was; a reader sees the key or none.
        let zeros = "0".repeat(self.wrap(&[0; 32], "")?.len());
        let over = "update subject_keys set material = $3
                    where subject = $1 and generation <= $2 and material is not null";
        let forget = "update subject_keys set material = null, destroyed_at = $3
                      where subject = $1 and generation <= $2 and material is not null";
        let mut tx = self.db.begin().await?;
        let written = tx.sql(over).bind(member).bind(generation).bind(zeros).run().await?;
        if written == 0 {
            return Ok(false);
        }
        tx.sql(forget).bind(member).bind(generation).bind(Time::from(at)).run().await?;
        tx.commit().await?;
        self.db.scrub("subject_keys").await?;
        Ok(true)
    }

    /// The key of a blind index, made if it never was. `KeysError::OtherMaster` if it was sealed under another master.
    pub(super) async fn index_key(&self, purpose: &str) -> Result<MacKey, KeysError> {
        let name = format!("index/{purpose}");
        let material = self.wrap(MacKey::generate()?.expose_bytes(), &name)?;
        self.db
            .sql(
                "insert into index_keys (purpose, material, created_at) values ($1, $2, $3)
                 on conflict (purpose) do nothing",
            )
            .bind(purpose.to_owned())
            .bind(material)
            .bind(now())
            .run()
            .await?;
        let select = self.db.sql("select material from index_keys where purpose = $1").bind(purpose.to_owned());
        let (material,): (String,) = select.one().await?;
        // It is the first key that a process opens, so a wrong master is told before anything rests on it.
        let bytes = self.unwrap_key(&material, &name).map_err(|_| KeysError::OtherMaster)?;
        Ok(MacKey::from_bytes(bytes.expose())?)
    }

    pub(super) async fn close(&self) {
        self.db.close().await;
    }

    fn wrap(&self, key: &[u8], name: &str) -> Result<String, KeysError> {
        Ok(self.wrapper(self.cipher).seal(key, name.as_bytes())?.to_string())
    }

    fn unwrap_key(&self, material: &str, name: &str) -> Result<Secret, KeysError> {
        let sealed: SealedText = material.parse()?;
        Ok(self.wrapper(sealed.cipher()).open(&sealed, name.as_bytes())?)
    }

    fn wrapper(&self, cipher: Cipher) -> &Sealer {
        let [sm4, aes] = &self.wraps;
        match cipher {
            Cipher::Sm4Gcm => sm4,
            Cipher::Aes256Gcm => aes,
        }
    }
}

/// The key that wraps keys with a cipher, derived from the master key.
fn wrap_key(master: &MacKey, cipher: Cipher) -> Result<SealKey, KeysError> {
    let name: &[u8] = match cipher {
        Cipher::Sm4Gcm => b"kashi wrap sm4_gcm",
        Cipher::Aes256Gcm => b"kashi wrap aes256_gcm",
    };
    let derived = hmac_sm3(master, name);
    Ok(SealKey::from_bytes(cipher, &derived.as_bytes()[..cipher.key_bytes()])?)
}

fn now() -> Time {
    Utc::now().trunc_subsecs(6).into()
}
