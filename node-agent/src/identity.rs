//! Who this agent is: the credential it makes for itself and the node that the server made of it.
//!
//! Owns: both files and joining. Invariants: the credential is on the disk before it is sent, so a lost answer, a crash
//! or a second try never makes a second node; it is never shown.

use crate::{
    config::{JoinToken, Settings},
    durable,
    link::{Link, LinkError},
    patience::Patience,
    probe,
};
use agent_protocol::{Inventory, Register};
use domain::kernel::NodeId;
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

const CREDENTIAL: &str = "credential";
const NODE: &str = "node";
const CREDENTIAL_BYTES: usize = 32;

/// The agent as the server knows it.
#[derive(Debug, Clone)]
pub struct Identity {
    pub node: NodeId,
    pub credential: Credential,
}

/// A secret of 32 random bytes in hex; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

/// Why the machine did not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("this machine has not joined a pool: give a join token with --join-token or KASHI_JOIN_TOKEN")]
    NoToken,
    #[error("the server refuses this machine")]
    Refused(#[source] LinkError),
    #[error("`{0}` does not hold what the agent wrote; restore it, or empty the data folder and join again")]
    Broken(PathBuf),
    #[error("the identity cannot be kept in the data folder")]
    Io(#[from] io::Error),
}

impl Credential {
    /// The secret itself, for the header and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The one in the data folder; a new one is made and kept when there is none.
    pub fn open(data: &Path) -> Result<Self, JoinError> {
        let path = data.join(CREDENTIAL);
        let Some(text) = text(&path)? else {
            let secret: [u8; CREDENTIAL_BYTES] = rand::random();
            let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
            durable::write(&path, hex.as_bytes())?;
            return Ok(Self(hex));
        };
        let known = text.len() == 2 * CREDENTIAL_BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if known { Ok(Self(text)) } else { Err(JoinError::Broken(path)) }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

impl Identity {
    /// Who this agent is; joins first where it has not. Waits as long as the server is away.
    pub async fn open(data: &Path, settings: &Settings, inventory: &Inventory) -> Result<Self, JoinError> {
        let path = data.join(NODE);
        if let Some(text) = text(&path)? {
            let node = text.parse().map_err(|_| JoinError::Broken(path))?;
            return Ok(Self { node, credential: Credential::open(data)? });
        }
        let JoinToken(token) = settings.join_token.clone().ok_or(JoinError::NoToken)?;
        let credential = Credential::open(data)?;
        let name = settings.name.clone().unwrap_or_else(probe::host_name);
        let asked = Register { token, name, credential: credential.reveal().into(), inventory: inventory.clone() };
        let node = join(settings, &asked).await?;
        durable::write(&path, node.to_string().as_bytes())?;
        tracing::info!(node.id = %node, "this machine has joined");
        Ok(Self { node, credential })
    }
}

async fn join(settings: &Settings, asked: &Register) -> Result<NodeId, JoinError> {
    let mut patience = Patience::new("joining");
    loop {
        match Link::register(&settings.server, asked).await {
            Ok(registered) => return Ok(registered.node),
            Err(refused @ LinkError::Refused { .. }) => return Err(JoinError::Refused(refused)),
            Err(away) => tokio::time::sleep(patience.after(&away)).await,
        }
    }
}

fn text(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_credential_is_made_once_and_never_shown() {
        let data = tempfile::tempdir().unwrap();
        let first = Credential::open(data.path()).unwrap();
        assert_eq!(first, Credential::open(data.path()).unwrap());
        assert_eq!(first.reveal().len(), 64);
        assert!(!format!("{first:?}").contains(first.reveal()));
        let mode = fs::metadata(data.path().join(CREDENTIAL)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(first, Credential::open(tempfile::tempdir().unwrap().path()).unwrap());
    }

    #[test]
    fn a_damaged_credential_is_not_replaced() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(CREDENTIAL), "short").unwrap();
        assert!(matches!(Credential::open(data.path()), Err(JoinError::Broken(_))));
    }
}
