//! The members of a tenant.
//!
//! Invariant: a password that the server made is written once, to whoever asked.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::find;
use crate::cli::output::{Form, Format, Kind, Output, column, text, warn};
use crate::cli::prompt;
use serde_json::json;

/// Members.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Member {
    /// List members.
    List,
    /// Add a member; a password is made and shown once, unless one is given.
    Add {
        /// The name to sign in with.
        handle: String,
        /// Where the member belongs, by name or id.
        #[arg(long)]
        tenant: String,
        /// tenant_admin, engineer or finance; in the platform's own tenant also operator and auditor. May be said again.
        #[arg(long = "role", value_name = "ROLE", required = true, value_parser = ["tenant_admin", "engineer", "finance", "operator", "auditor"])]
        roles: Vec<String>,
        /// Take the password from standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Lock a member out; every session and key ends at once.
    Lock {
        /// By handle or id.
        member: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
    /// Take a member's lock away.
    Unlock {
        /// By handle or id.
        member: String,
    },
}

const MEMBER: Kind = Kind {
    name: "Member",
    id: "id",
    columns: &[
        column("MEMBER", "成员", "id", Form::Text),
        column("HANDLE", "账号", "handle", Form::Text),
        column("ROLES", "角色", "roles", Form::Text),
        column("LOCKED", "锁定", "locked", Form::Bool),
        column("TENANT", "租户", "tenant", Form::Text),
    ],
    more: &[],
};

impl Member {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let (member, path, body, note) = match self {
            Self::List => {
                let (members, _) = api.list("/members", &[], usize::MAX).await?;
                return out.list(&MEMBER, &members);
            }
            Self::Add { handle, tenant, roles, password_stdin } => {
                let password = if password_stdin { Some(prompt::line("password")?) } else { None };
                let tenant = find::tenant(api, &tenant).await?;
                let body = json!({ "handle": handle, "tenant": tenant, "roles": roles, "password": password });
                let added = api.post("/members", Some(&body)).await?;
                let note = format!("{} is added: kashi login --profile NAME --handle {0}", text(&added["handle"]));
                out.done(&MEMBER, &added, &note)?;
                // It is told also where nothing else is to be: there is no other way to learn it.
                if let (Some(made), true) = (added["password"].as_str(), out.format() != Format::Json) {
                    warn(&format!("password, not shown again: {made}"));
                }
                return Ok(());
            }
            Self::Lock { member, reason } => (member, "lock", Some(json!({ "reason": reason })), "it is locked"),
            Self::Unlock { member } => (member, "unlock", None, "it may sign in"),
        };
        let id = find::member(api, &member).await?;
        let changed = api.post(&format!("/members/{id}/{path}"), body.as_ref()).await?;
        out.done(&MEMBER, &changed, note)
    }
}
