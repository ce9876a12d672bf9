//! Where a command speaks to and as whom: flags, environment, the profile, defaults.
//!
//! Owns: `config.toml` (profiles, and the newest own position of each server) and `credentials.toml` (the secrets), their
//! places and modes. Does not own: signing in.
//! Invariants: a flag wins over the environment, that over the profile, that over the default; the credentials are made
//! private and stay so; a token is sent to no server but the one that issued it; a file is replaced whole or not at all.

use crate::cli::fault::Fault;
use crate::cli::output::warn;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The server of `kashi up` on this machine.
pub(crate) const DEFAULT_HOST: &str = "http://127.0.0.1:8030";
/// The profile that is used unless another is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";
const CONFIG: &str = "config.toml";
const CREDENTIALS: &str = "credentials.toml";
const PRIVATE: u32 = 0o600;

/// `config.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) profiles: BTreeMap<String, Profile>,
    /// By server, the newest position of what was written from here: what a read has to show.
    pub(crate) positions: BTreeMap<String, i64>,
}

/// Whom a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Profile {
    pub(crate) host: Option<String>,
    pub(crate) handle: Option<String>,
}

/// `credentials.toml`.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Credentials {
    pub(crate) profiles: BTreeMap<String, Credential>,
}

/// A session's token or an API key, and the server that issued it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Credential {
    pub(crate) host: String,
    pub(crate) token: String,
}

/// The folder with both files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    /// The folder that the environment names.
    pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Fault> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = set("KASHI_CONFIG_DIR")
            .or_else(|| Some(set("XDG_CONFIG_HOME")?.join("kashi")))
            .or_else(|| Some(set("HOME")?.join(".config/kashi")));
        let missing =
            || Fault::Usage("neither HOME nor KASHI_CONFIG_DIR is set: say where the settings are".to_owned());
        Ok(Self { folder: folder.ok_or_else(missing)? })
    }

    pub(crate) fn config(&self) -> Result<Config, Fault> {
        read(&self.folder.join(CONFIG))
    }

    pub(crate) fn credentials(&self) -> Result<Credentials, Fault> {
        let path = self.folder.join(CREDENTIALS);
        if std::fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0) {
            warn(&format!("others can read {}: chmod 600 it", path.display()));
        }
        read(&path)
    }

    /// Changes the settings, if that changes anything.
    pub(crate) fn change_config(&self, change: impl FnOnce(&mut Config)) -> Result<(), Fault> {
        let _lock = self.lock()?;
        let before = self.config()?;
        let mut after = before.clone();
        change(&mut after);
        if after == before { Ok(()) } else { self.replace(CONFIG, &after) }
    }

    /// Changes the credentials.
    pub(crate) fn change_credentials(&self, change: impl FnOnce(&mut Credentials)) -> Result<(), Fault> {
        let _lock = self.lock()?;
        let mut credentials: Credentials = read(&self.folder.join(CREDENTIALS))?;
        change(&mut credentials);
        self.replace(CREDENTIALS, &credentials)
    }

    /// Keeps the position of an own write. That it cannot be kept is no reason to fail: the write is done.
    pub(crate) fn keep_position(&self, host: &str, position: i64) {
        let kept = self.change_config(|config| {
            let newest = config.positions.entry(host.to_owned()).or_default();
            *newest = position.max(*newest);
        });
        if let Err(fault) = kept {
            warn(&format!("the next command may not see this write: {fault}"));
        }
    }

    /// One process at a time, until the file is closed.
    fn lock(&self) -> Result<File, Fault> {
        let fault = |error| self.fault("lock", &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(fault)?;
        let options = OpenOptions::new().create(true).append(true).mode(PRIVATE).open(self.folder.join("lock"));
        let file = options.map_err(fault)?;
        file.lock().map_err(fault)?;
        Ok(file)
    }

    fn replace(&self, name: &str, content: &impl Serialize) -> Result<(), Fault> {
        let text = toml::to_string(content).map_err(|error| self.fault(name, &error))?;
        let new = self.folder.join(format!(".{name}.new"));
        let write = || {
            match std::fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().create_new(true).write(true).mode(PRIVATE).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, self.folder.join(name))
        };
        write().map_err(|error| self.fault(name, &error))
    }

    fn fault(&self, name: &str, cause: &dyn std::fmt::Display) -> Fault {
        Fault::File { path: self.folder.join(name), cause: cause.to_string() }
    }
}

fn read<T: DeserializeOwned + Default>(path: &Path) -> Result<T, Fault> {
    let fault = |cause: String| Fault::File { path: path.to_owned(), cause };
    match std::fs::read_to_string(path) {
        // The parser quotes the line that it does not understand, which may hold a secret.
        Ok(text) => toml::from_str(&text).map_err(|error| fault(format!("it is not understood: {}", error.message()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(fault(error.to_string())),
    }
}

/// Where to and as whom.
pub(crate) struct Settings {
    pub(crate) files: Files,
    pub(crate) profile: String,
    /// Without a slash at its end.
    pub(crate) host: String,
    /// Who signed in last with this profile.
    pub(crate) handle: Option<String>,
    pub(crate) token: Option<String>,
    /// What a read has to show; 0 where nothing was written.
    pub(crate) position: i64,
}

impl Settings {
    /// From flags (which the environment has filled in), `KASHI_TOKEN`, and the files.
    pub(crate) fn found(
        files: Files,
        profile: Option<String>,
        host: Option<String>,
        token: Option<String>,
    ) -> Result<Self, Fault> {
        let profile = profile.unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        let config = files.config()?;
        let known = config.profiles.get(&profile).cloned().unwrap_or_default();
        let host = server(&host.or(known.host).unwrap_or_else(|| DEFAULT_HOST.to_owned()))?;
        let token = match token.filter(|token| !token.is_empty()) {
            Some(token) => Some(token),
            None => {
                let credential = files.credentials()?.profiles.remove(&profile);
                credential.filter(|credential| credential.host == host).map(|credential| credential.token)
            }
        };
        let position = config.positions.get(&host).copied().unwrap_or_default();
        Ok(Self { files, profile, host, handle: known.handle, token, position })
    }
}

/// The address of a server, written one way.
fn server(text: &str) -> Result<String, Fault> {
    let bad = || Fault::Usage(format!("`{text}` is not a server, which is written like {DEFAULT_HOST}"));
    let url = reqwest::Url::parse(text).map_err(|_| bad())?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if plain && url.fragment().is_none() && url.has_host() && matches!(url.scheme(), "http" | "https") {
        Ok(url.as_str().trim_end_matches('/').to_owned())
    } else {
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        let files = Files { folder: folder.path().join("kashi") };
        (folder, files)
    }

    fn profile(files: &Files, name: &str, host: &str, token: &str) {
        files
            .change_config(|config| {
                let host = Some(host.to_owned());
                config.profiles.insert(name.into(), Profile { host, handle: Some("li".into()) });
            })
            .unwrap();
        let credential = Credential { host: host.into(), token: token.into() };
        files.change_credentials(|credentials| drop(credentials.profiles.insert(name.into(), credential))).unwrap();
    }

    #[test]
    fn a_flag_wins_over_the_profile_and_that_over_the_default() {
        let (_folder, files) = files();
        let found = |profile: Option<&str>, host: Option<&str>, token: Option<&str>| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            let found = Settings::found(files.clone(), own(profile), own(host), own(token)).unwrap();
            (found.profile, found.host, found.token)
        };
        let of =
            |profile: &str, host: &str, token: Option<&str>| (profile.into(), host.into(), token.map(str::to_owned));
        assert_eq!(found(None, None, None), of("default", DEFAULT_HOST, None));
        profile(&files, "default", "http://a:1", "ta");
        profile(&files, "li", "https://b", "tb");
        assert_eq!(found(None, None, None), of("default", "http://a:1", Some("ta")));
        assert_eq!(found(Some("li"), None, None), of("li", "https://b", Some("tb")));
        assert_eq!(found(Some("li"), None, Some("env")), of("li", "https://b", Some("env")));
        assert_eq!(found(Some("li"), Some("https://b/"), None), of("li", "https://b", Some("tb")));
        assert_eq!(found(Some("new"), Some("http://c"), Some("")), of("new", "http://c", None));
        // What one server issued is not shown to another.
        assert_eq!(found(Some("li"), Some("http://evil"), None), of("li", "http://evil", None));
    }

    #[test]
    fn the_newest_position_is_kept_by_server() {
        let (_folder, files) = files();
        files.keep_position("http://a:1", 7);
        files.keep_position("http://a:1", 5);
        files.keep_position("http://b", 1);
        assert_eq!(files.config().unwrap().positions, [("http://a:1".into(), 7), ("http://b".into(), 1)].into());
        let found = Settings::found(files, None, Some("http://a:1".into()), None).unwrap();
        assert_eq!(found.position, 7);
    }

    #[test]
    fn the_credentials_are_private() {
        let (_folder, files) = files();
        profile(&files, "default", "http://a:1", "secret");
        let path = files.folder.join(CREDENTIALS);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&files.folder)), (0o600, 0o700));
        assert!(!std::fs::read_to_string(files.folder.join(CONFIG)).unwrap().contains("secret"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        profile(&files, "default", "http://a:1", "another");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn the_folder_comes_from_the_environment() {
        let of = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            Files::of_environment(value).map(|files| files.folder.display().to_string())
        };
        let all = [("KASHI_CONFIG_DIR", "a"), ("XDG_CONFIG_HOME", "b"), ("HOME", "c")];
        assert_eq!(of(&all).unwrap(), "a");
        assert_eq!(of(&all[1..]).unwrap(), "b/kashi");
        assert_eq!(of(&all[2..]).unwrap(), "c/.config/kashi");
        assert_eq!(of(&[("KASHI_CONFIG_DIR", "")]).unwrap_err().exit(), 2);
    }

    #[test]
    fn a_file_that_is_broken_is_named_and_not_quoted() {
        let (_folder, files) = files();
        profile(&files, "default", "http://a:1", "t");
        std::fs::write(files.folder.join(CREDENTIALS), "token = hush-hush").unwrap();
        let Err(fault) = files.credentials() else { panic!("it was read") };
        assert!(fault.to_string().contains(CREDENTIALS) && !fault.to_string().contains("hush"), "{fault}");
    }

    #[test]
    fn a_server_is_written_one_way() {
        assert_eq!(server("http://h:80/").unwrap(), "http://h");
        assert_eq!(server("https://h/kashi/").unwrap(), "https://h/kashi");
        for bad in ["", "h:8030", "localhost", "ftp://h", "http://", "http://u:p@h", "http://h?q", "http://h#f"] {
            assert_eq!(server(bad).unwrap_err().exit(), 2, "{bad}");
        }
    }
}
