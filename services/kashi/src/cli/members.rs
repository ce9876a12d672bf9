//! The members of a tenant, and what is known of them as persons.
//!
//! Invariant: a password that the server made is written once, to whoever asked.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::find;
use crate::cli::output::{Form, Format, Kind, Output, column, text, warn};
use crate::cli::prompt;
use serde_json::{Value, json};

const ROLES: [&str; 5] = ["tenant_admin", "engineer", "finance", "operator", "auditor"];

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
        #[arg(long = "role", value_name = "ROLE", required = true, value_parser = ROLES)]
        roles: Vec<String>,
        /// Take the password from standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Give a member other roles, in place of those it has.
    Roles {
        /// By handle or id.
        member: String,
        /// tenant_admin, engineer or finance; in the platform's own tenant also operator and auditor. May be said again.
        #[arg(long = "role", value_name = "ROLE", required = true, value_parser = ROLES)]
        roles: Vec<String>,
    },
    /// Give a member a new password who has lost the old one; it is made and shown once, unless one is given.
    Password {
        /// By handle or id.
        member: String,
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
    /// Show what is known of a member as a person, or change it; each look is recorded.
    Profile(Profile),
    /// Erase what is known of a member as a person; the member itself stays.
    Erase {
        /// By handle or id.
        member: String,
        /// Nobody can bring it back.
        #[arg(long, required = true)]
        for_good: bool,
    },
}

/// Whose profile, and what to make of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Profile {
    /// By handle or id; one's own, unless it is said.
    member: Option<String>,
    /// 1 to 64 characters.
    #[arg(long)]
    name: Option<String>,
    /// An address with `@`.
    #[arg(long)]
    email: Option<String>,
    /// With `+` and the country in front.
    #[arg(long)]
    phone: Option<String>,
    /// Forget one of them. May be said again.
    #[arg(long, value_name = "FIELD", value_parser = ["name", "email", "phone"])]
    clear: Vec<String>,
}

const PROFILE: Kind = Kind {
    name: "MemberProfile",
    id: "id",
    columns: &[
        column("MEMBER", "成员", "id", Form::Text),
        column("NAME", "姓名", "name", Form::Text),
        column("EMAIL", "邮箱", "email", Form::Text),
        column("PHONE", "电话", "phone", Form::Text),
        column("ERASED", "抹除时间", "erased_at", Form::Time),
    ],
    more: &[],
};

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
                return told_once(out, &added, &note);
            }
            Self::Password { member, password_stdin } => {
                let password = if password_stdin { Some(prompt::line("password")?) } else { None };
                let id = find::member(api, &member).await?;
                let body = json!({ "password": password });
                let set = api.post(&format!("/members/{id}/password"), Some(&body)).await?;
                return told_once(out, &set, "every session has ended; the member signs in with the new password");
            }
            Self::Roles { member, roles } => {
                let id = find::member(api, &member).await?;
                let set = api.put(&format!("/members/{id}/roles"), &json!({ "roles": roles })).await?;
                return out.done(&MEMBER, &set, "they hold from now on");
            }
            Self::Lock { member, reason } => (member, "lock", Some(json!({ "reason": reason })), "it is locked"),
            Self::Unlock { member } => (member, "unlock", None, "it may sign in"),
            Self::Erase { member, for_good: _ } => {
                (member, "erase", None, "what was known of the person is gone for good")
            }
            Self::Profile(profile) => return profile.run(api, out).await,
        };
        let id = find::member(api, &member).await?;
        let changed = api.post(&format!("/members/{id}/{path}"), body.as_ref()).await?;
        out.done(&MEMBER, &changed, note)
    }
}

/// Tells a password also where nothing else is to be told: there is no other way to learn it.
fn told_once(out: &mut Output, answer: &Value, note: &str) -> Result<(), Fault> {
    out.done(&MEMBER, answer, note)?;
    if let (Some(made), true) = (answer["password"].as_str(), out.format() != Format::Json) {
        warn(&format!("password, not shown again: {made}"));
    }
    Ok(())
}

impl Profile {
    async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let id = match self.member {
            Some(member) => find::member(api, &member).await?.to_string(),
            None => text(&api.get("/whoami", &[]).await?["member"]),
        };
        let path = format!("/members/{id}/profile");
        let said = [("name", self.name), ("email", self.email), ("phone", self.phone)];
        if self.clear.is_empty() && said.iter().all(|(_, value)| value.is_none()) {
            return out.one(&PROFILE, &api.get(&path, &[]).await?);
        }
        // What is not said stays as it is.
        let known = match api.get(&path, &[]).await {
            Err(Fault::Refused { document, .. }) if document["code"] == "profile.not_found" => Value::Null,
            known => known?,
        };
        let field = |(name, value): (&str, Option<String>)| {
            let kept = if self.clear.iter().any(|cleared| cleared == name) { Value::Null } else { known[name].clone() };
            (name.to_owned(), value.map_or(kept, Value::from))
        };
        let body = Value::Object(said.into_iter().map(field).collect());
        out.done(&PROFILE, &api.put(&path, &body).await?, "it is set")
    }
}
