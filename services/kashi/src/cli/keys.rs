//! One's own API keys.
//!
//! Invariant: a key is written once, to standard output, and is not kept here.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::output::{Form, Format, Kind, Output, column, text};
use chrono::{DateTime, Utc};
use domain::kernel::KeyId;
use serde_json::json;

/// API keys.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Key {
    /// List your keys, without their secrets.
    List,
    /// Issue a key that acts as you; it is shown once.
    Add {
        /// What it is for.
        name: String,
        /// When it ends, such as 2027-01-01T00:00:00Z; never, unless it is said.
        #[arg(long, value_name = "TIME")]
        expires_at: Option<DateTime<Utc>>,
    },
    /// Revoke one of your keys, at once and for good.
    Revoke {
        #[arg(value_name = "KEY")]
        id: KeyId,
    },
}

const KEY: Kind = Kind {
    name: "Key",
    id: "id",
    columns: &[
        column("KEY", "密钥", "id", Form::Text),
        column("NAME", "名称", "name", Form::Text),
        column("EXPIRES", "到期", "expires_at", Form::Time),
        column("REVOKED", "已吊销", "revoked", Form::Bool),
    ],
    more: &[],
};

impl Key {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        match self {
            Self::List => {
                let (keys, _) = api.list("/keys", &[], usize::MAX).await?;
                out.list(&KEY, &keys)
            }
            Self::Add { name, expires_at } => {
                let issued = api.post("/keys", Some(&json!({ "name": name, "expires_at": expires_at }))).await?;
                let note = format!("{}: it is not shown again; use it as KASHI_TOKEN", text(&issued["id"]));
                if out.format() == Format::Json {
                    return out.done(&KEY, &issued, &note);
                }
                // The secret is what a script wants, and nothing shows it later.
                out.line(&text(&issued["key"]))?;
                out.flush()?;
                out.note(&note);
                Ok(())
            }
            Self::Revoke { id } => {
                let revoked = api.delete(&format!("/keys/{id}")).await?;
                out.done(&KEY, &revoked, "it is revoked")
            }
        }
    }
}
