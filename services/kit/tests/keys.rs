//! The keyring: what it seals only it opens, and after a key is destroyed nobody does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use chrono::{DateTime, Utc};
use crypto::{Cipher, Provider};
use domain::identity::{Profile, member_of};
use domain::kernel::{Sealed, SubjectKey};
use kit::Keyring;
use kit::auth::key_file::KeyFileError;
use kit::keys::KeysError;
use std::collections::BTreeMap;
use std::path::Path;
use store::testing::Scratch;

const NAME: &str = "Zhang Weiming";
const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn key(generation: u32) -> SubjectKey {
    SubjectKey { member: member_of("li"), generation }
}

fn profile() -> Profile {
    Profile::new(Some(NAME.into()), Some("li@example.org".into()), None).unwrap()
}

async fn open(scratch: &Scratch) -> Result<Keyring, KeysError> {
    Keyring::open(&scratch.url("keys"), &scratch.path().join("keys.master")).await
}

async fn seal(keys: &Keyring, generation: u32) -> Sealed<Profile> {
    keys.seal(key(generation), Profile::PURPOSE, &profile(), BTreeMap::new()).await.unwrap()
}

async fn unseal(keys: &Keyring, sealed: &Sealed<Profile>) -> Option<Profile> {
    keys.unseal(Profile::PURPOSE, sealed).await.unwrap()
}

/// What is written in the files of the key store.
fn written(folder: &Path) -> Vec<u8> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_store = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("keys.db");
    paths.filter(of_store).flat_map(|path| std::fs::read(path).unwrap()).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn what_is_sealed_is_opened_again_also_by_a_later_process() {
    let scratch = Scratch::new();
    let keys = open(&scratch).await.unwrap();
    let sealed = seal(&keys, 1).await;
    assert!(!sealed.text().contains(NAME));
    assert_ne!(sealed.text(), seal(&keys, 1).await.text(), "sealed anew, it is another text");
    assert!(unseal(&keys, &sealed).await == Some(profile()));
    let later = open(&scratch).await.unwrap();
    assert!(unseal(&later, &sealed).await == Some(profile()));
    assert_eq!(later.blind_index("email", "a@b"), keys.blind_index("email", "a@b"));
    assert_ne!(keys.blind_index("email", "a@b"), keys.blind_index("phone", "a@b"));
}

#[tokio::test]
async fn a_destroyed_key_opens_nothing_and_is_never_made_again() {
    let scratch = Scratch::new();
    let keys = open(&scratch).await.unwrap();
    let (first, second, other) = (seal(&keys, 1).await, seal(&keys, 2).await, open(&scratch).await.unwrap());
    let db = store::Db::open(&scratch.url("keys"), &kit::keys::MIGRATIONS).await.unwrap();
    let (material,): (String,) = db.sql("select material from subject_keys where generation = 1").one().await.unwrap();
    assert!(holds(&written(scratch.path()), &material));
    assert!(keys.destroy(key(1), NOW).await.unwrap());
    assert!(!keys.destroy(key(1), NOW).await.unwrap(), "there is nothing left to destroy");
    for keys in [&keys, &other] {
        assert!(unseal(keys, &first).await.is_none());
        assert!(unseal(keys, &second).await.is_some(), "the next generation stays");
        let again = keys.seal(key(1), Profile::PURPOSE, &profile(), BTreeMap::new()).await;
        assert!(matches!(again, Err(KeysError::Destroyed(destroyed)) if destroyed == key(1)));
    }
    let rows: Vec<(i64, Option<String>, Option<i64>)> =
        db.sql("select generation, material, destroyed_at from subject_keys order by generation").all().await.unwrap();
    assert_eq!((rows[0].0, rows[0].1.is_none(), rows[0].2), (1, true, Some(0)));
    assert_eq!((rows[1].0, rows[1].1.is_some(), rows[1].2), (2, true, None));
    assert!(!holds(&written(scratch.path()), &material), "what was written over is not in the files");
}

#[tokio::test]
async fn a_text_opens_only_as_what_it_is_and_for_whom() {
    let scratch = Scratch::new();
    let keys = open(&scratch).await.unwrap();
    let sealed = seal(&keys, 1).await;
    assert!(matches!(keys.unseal::<Profile>("member.other", &sealed).await, Err(KeysError::Broken(_))));
    seal(&keys, 2).await;
    let moved: Sealed<Profile> = Sealed::new(key(2), sealed.text().into(), BTreeMap::new());
    assert!(matches!(keys.unseal(Profile::PURPOSE, &moved).await, Err(KeysError::Broken(_))));
    let cut: Sealed<Profile> = Sealed::new(key(1), sealed.text()[..40].into(), BTreeMap::new());
    let refused = keys.unseal(Profile::PURPOSE, &cut).await.unwrap_err();
    assert!(!refused.to_string().contains(&sealed.text()[..40]));
}

#[tokio::test]
async fn ciphers_and_engines_are_chosen_and_understand_each_other() {
    let scratch = Scratch::new();
    let master = scratch.path().join("keys.master");
    let sm4 = open(&scratch).await.unwrap();
    let (cipher, provider) = (Cipher::Aes256Gcm, Provider::Libsm);
    let aes = Keyring::open_with(&scratch.url("keys"), &master, cipher, provider).await.unwrap();
    let (first, second) = (seal(&sm4, 1).await, seal(&aes, 2).await);
    for keys in [&sm4, &aes] {
        assert!(unseal(keys, &first).await.is_some() && unseal(keys, &second).await.is_some());
    }
    assert_ne!(first.text()[..3], second.text()[..3], "the sealed text says its cipher");
}

#[tokio::test]
async fn another_master_key_is_told_at_once() {
    let scratch = Scratch::new();
    open(&scratch).await.unwrap();
    let other = Keyring::open(&scratch.url("keys"), &scratch.path().join("other.master")).await;
    assert!(matches!(other, Err(KeysError::OtherMaster)));
    std::fs::write(scratch.path().join("keys.master"), b"short").unwrap();
    assert!(matches!(open(&scratch).await, Err(KeysError::File(KeyFileError::Length(_)))));
}

#[tokio::test]
async fn a_key_that_is_not_there_opens_nothing() {
    let scratch = Scratch::new();
    let sealed = seal(&open(&scratch).await.unwrap(), 1).await;
    let elsewhere = Scratch::new();
    assert!(unseal(&open(&elsewhere).await.unwrap(), &sealed).await.is_none());
}
