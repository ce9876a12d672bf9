//! Who one is: signing in and out, the first operator, a new password.
//!
//! Owns: which secret is taken from where. Does not own: where it is kept (`settings`).
//! Invariants: a password comes from standard input, from `KASHI_PASSWORD` or from a person, never from an argument; no
//! secret is written to standard output or error.

use crate::cli::api::Api;
use crate::cli::fault::{DONE, Fault, is_local};
use crate::cli::output::{Form, Kind, Output, column, instant, text};
use crate::cli::prompt;
use crate::cli::settings::{Credential, Profile};
use crate::cli::words;
use serde_json::{Value, json};

const PASSWORD: &str = "KASHI_PASSWORD";

/// Sign in.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// The name to sign in with; that of the last time, unless it is said.
    #[arg(long)]
    handle: Option<String>,
    /// Take the password from standard input; otherwise it comes from KASHI_PASSWORD or is asked for.
    #[arg(long)]
    password_stdin: bool,
    /// Become the first operator of a new platform.
    #[arg(long)]
    setup: bool,
    /// The one-time secret that the server showed; from standard input, unless it is said.
    // It is base 64 for URLs, so it may begin with a dash.
    #[arg(long, requires = "setup", allow_hyphen_values = true)]
    secret: Option<String>,
    /// Store an API key from standard input instead of signing in: `--token -`.
    #[arg(long, value_name = "-", value_parser = ["-"], conflicts_with_all = ["setup", "password_stdin", "handle"])]
    token: Option<String>,
}

/// A new password.
#[derive(Debug, clap::Args)]
pub(crate) struct NewPassword {
    /// Take the current and the new password from standard input, a line each; otherwise they are asked for.
    #[arg(long)]
    stdin: bool,
}

const SESSION: Kind = Kind {
    name: "Session",
    id: "handle",
    columns: &[
        column("HANDLE", "账号", "handle", Form::Text),
        column("TENANT", "租户", "tenant", Form::Text),
        column("HOST", "服务器", "host", Form::Text),
        column("UNTIL", "有效至", "expires_at", Form::Time),
    ],
    more: &[],
};

const WHOAMI: Kind = Kind {
    name: "Whoami",
    id: "handle",
    columns: &[
        column("HANDLE", "账号", "handle", Form::Text),
        column("MEMBER", "成员", "member", Form::Text),
        column("TENANT", "租户", "tenant", Form::Text),
        column("NAME", "租户名称", "tenant_name", Form::Text),
        column("ROLES", "角色", "roles", Form::Text),
        column("PERMISSIONS", "权限", "permissions", Form::Text),
    ],
    more: &[],
};

impl Login {
    pub(crate) async fn run(self, api: Api, out: &mut Output) -> Result<u8, Fault> {
        let host = api.settings().host.clone();
        if host.starts_with("http://") && !is_local(&host) {
            out.note("the connection is not encrypted: anybody on the way can read the password; use https");
        }
        let (api, session) = if self.token.is_some() {
            let key = prompt::line("API key")?;
            let api = api.with_token(key.clone());
            let mut session = api.get("/whoami", &[]).await?;
            session["token"] = key.into();
            (api, session)
        } else {
            let session = self.session(&api).await?;
            (api, session)
        };
        let token = session["token"].as_str().filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| Fault::BadAnswer { host: host.clone(), what: "it has no token".into() })?;
        keep(&api, session["handle"].as_str(), token)?;
        let shown = json!({
            "handle": session["handle"], "member": session["member"], "tenant": session["tenant"],
            "expires_at": session["expires_at"], "host": host, "profile": api.settings().profile,
        });
        let until = instant(&session["expires_at"]).map(|end| format!(" until {}", words::time(end)));
        let note = format!(
            "signed in at {host}{} (profile {})",
            until.unwrap_or_default(),
            words::clean(&api.settings().profile)
        );
        out.done(&SESSION, &shown, &note)?;
        Ok(DONE)
    }

    async fn session(&self, api: &Api) -> Result<Value, Fault> {
        // The secret is on the first line, where both come from standard input.
        let secret = match (self.setup, &self.secret) {
            (false, _) => None,
            (true, Some(secret)) => Some(secret.clone()),
            (true, None) if prompt::is_possible() => Some(prompt::ask_secret("one-time secret: ")?),
            (true, None) => Some(prompt::line("one-time secret")?),
        };
        let handle = match self.handle.clone().or_else(|| api.settings().handle.clone()) {
            Some(handle) => handle,
            None if prompt::is_possible() => prompt::ask("handle: ")?,
            None => return Err(Fault::Usage("say as whom: --handle".to_owned())),
        };
        let password = match (self.password_stdin, std::env::var(PASSWORD)) {
            (true, _) => prompt::line("password")?,
            (false, Ok(password)) if !password.is_empty() => password,
            (false, _) if prompt::is_possible() => prompt::ask_secret(&format!("password of {handle}: "))?,
            (false, _) => {
                return Err(Fault::Usage(format!("there is no password: give --password-stdin or set {PASSWORD}")));
            }
        };
        match secret {
            Some(secret) => {
                let body = json!({ "secret": secret, "handle": handle, "password": password });
                api.introduce("/setup", &body).await
            }
            None => api.introduce("/login", &json!({ "handle": handle, "password": password })).await,
        }
    }
}

/// Keeps the token, and forgets how far the server was: it may be another one at the same address.
fn keep(api: &Api, handle: Option<&str>, token: &str) -> Result<(), Fault> {
    let settings = api.settings();
    let (profile, host) = (settings.profile.clone(), settings.host.clone());
    let credential = Credential { host: host.clone(), token: token.to_owned() };
    settings.files.change_credentials(|credentials| {
        credentials.profiles.insert(profile.clone(), credential);
    })?;
    settings.files.change_config(|config| {
        config.positions.remove(&host);
        let handle = handle.map(str::to_owned);
        config.profiles.insert(profile, Profile { host: Some(host), handle });
    })
}

/// Forgets the token.
pub(crate) fn logout(api: &Api, out: &mut Output) -> Result<(), Fault> {
    let settings = api.settings();
    settings.files.change_credentials(|credentials| {
        credentials.profiles.remove(&settings.profile);
    })?;
    out.note(&format!("signed out (profile {})", words::clean(&settings.profile)));
    Ok(())
}

/// Says who one is.
pub(crate) async fn whoami(api: &Api, out: &mut Output) -> Result<(), Fault> {
    out.one(&WHOAMI, &api.get("/whoami", &[]).await?)
}

impl NewPassword {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let (current, new) = if self.stdin {
            (prompt::line("current password")?, prompt::line("new password")?)
        } else if prompt::is_possible() {
            let current = prompt::ask_secret("current password: ")?;
            let new = prompt::ask_secret("new password: ")?;
            if prompt::ask_secret("the new password again: ")? != new {
                return Err(Fault::Usage("the new passwords differ".to_owned()));
            }
            (current, new)
        } else {
            return Err(Fault::Usage("there is nobody to ask: give --stdin".to_owned()));
        };
        let changed = api.post("/password", Some(&json!({ "current": current, "new": new }))).await?;
        let kind = Kind { name: "Member", id: "id", columns: &[], more: &[] };
        out.done(&kind, &changed, &format!("the password of {} is changed; sign in again", text(&changed["id"])))
    }
}
