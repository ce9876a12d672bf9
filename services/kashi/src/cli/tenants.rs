//! The tree of tenants and projects, for operators and those who administer a part of it.

use crate::cli::api::Api;
use crate::cli::fault::{DONE, Fault, IN_PART};
use crate::cli::find;
use crate::cli::output::{Form, Kind, Output, column, text, warn};
use crate::cli::words::Lang;
use domain::kernel::Zone;
use serde_json::{Map, Value, json};

/// Tenants.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Tenant {
    /// List tenants.
    List,
    /// Add a tenant, or a project below one; sign its contract where a price book is named.
    Add {
        /// What people call it.
        name: String,
        /// The tenant or project right above it, by name or id; it is a project of it, with its contract and quota.
        #[arg(long)]
        parent: Option<String>,
        /// Below another it is a tenant of its own name all the same, such as a department.
        #[arg(long, requires = "parent")]
        tenant: bool,
        /// The price book of its contract, by name or id.
        #[arg(long)]
        book: Option<String>,
        /// Whose months its statements follow; Asia/Shanghai, unless it is said.
        #[arg(long, requires = "book")]
        zone: Option<Zone>,
    },
    /// Sign a tenant's contract; it can order from then on.
    Sign {
        /// By name or id.
        tenant: String,
        /// The price book, by name or id.
        #[arg(long)]
        book: String,
        /// Whose months its statements follow; Asia/Shanghai, unless it is said.
        #[arg(long)]
        zone: Option<Zone>,
    },
    /// Let a tenant and all below it begin nothing new; what runs goes on, and all can be read.
    Suspend {
        /// By name or id.
        tenant: String,
        /// Why; its members are told.
        #[arg(long)]
        reason: String,
    },
    /// Let a suspended tenant go on.
    Resume {
        /// By name or id.
        tenant: String,
    },
}

const TENANT: Kind = Kind {
    name: "Tenant",
    id: "id",
    columns: &[
        column("TENANT", "租户", "id", Form::Text),
        column("NAME", "名称", "name", Form::Text),
        column("KIND", "类型", "kind", Form::Of(kind)),
        column("PARENT", "上级", "parent", Form::Text),
        column("SUSPENDED", "停用原因", "suspended", Form::Text),
        column("CURRENCY", "币种", "currency", Form::Text),
        column("ZONE", "时区", "zone", Form::Text),
        column("PRICE BOOK", "价目表", "book", Form::Text),
        column("CONTRACT", "合同", "contract", Form::Text),
    ],
    more: &[],
};

const CONTRACT: Kind = Kind { name: "Contract", id: "contract", columns: &[], more: &[] };

fn kind(tenant: &Value, lang: Lang) -> String {
    match tenant["kind"].as_str() {
        Some("project") => lang.say("project", "项目").to_owned(),
        _ => lang.say("tenant", "租户").to_owned(),
    }
}

impl Tenant {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<u8, Fault> {
        match self {
            Self::List => {
                let (tenants, _) = api.list("/tenants", &[], usize::MAX).await?;
                out.list(&TENANT, &tenants)?;
            }
            Self::Sign { tenant, book, zone } => {
                let (tenant, book) = (find::tenant(api, &tenant).await?, find::book(api, &book).await?);
                let signed = sign(api, &tenant.to_string(), &book.to_string(), zone).await?;
                out.done(
                    &CONTRACT,
                    &signed,
                    "it is signed; the tenant can order once it has a quota: kashi quota set",
                )?;
            }
            Self::Add { name, parent, tenant, book, zone } => {
                let mut body = json!({ "name": name });
                if let Some(parent) = parent {
                    body["parent"] = json!(find::tenant(api, &parent).await?.to_string());
                    body["kind"] = json!(if tenant { "tenant" } else { "project" });
                }
                return add(api, out, &body, book.map(|book| (book, zone))).await;
            }
            Self::Suspend { tenant, reason } => {
                let id = find::tenant(api, &tenant).await?;
                let body = json!({ "reason": reason });
                let changed = api.post(&format!("/tenants/{id}/suspend"), Some(&body)).await?;
                out.done(&TENANT, &changed, "it begins nothing new; what runs goes on: kashi ps")?;
            }
            Self::Resume { tenant } => {
                let id = find::tenant(api, &tenant).await?;
                let changed = api.post(&format!("/tenants/{id}/resume"), None).await?;
                out.done(&TENANT, &changed, "it goes on, unless one above it is suspended")?;
            }
        }
        Ok(DONE)
    }
}

async fn add(api: &Api, out: &mut Output, body: &Value, contract: Option<(String, Option<Zone>)>) -> Result<u8, Fault> {
    // A book that is not there is found out before anything is made.
    let contract = match contract {
        Some((book, zone)) => Some((find::book(api, &book).await?.to_string(), zone)),
        None => None,
    };
    let mut made = api.post("/tenants", Some(body)).await?;
    let id = text(&made["id"]);
    let Some((book, zone)) = contract else {
        let note = if body["parent"].is_null() {
            format!("it has no contract yet: kashi tenant sign {id} --book BOOK")
        } else {
            format!("it orders on the contract above it, as far as its quota goes: kashi quota set --tenant {id} …")
        };
        out.done(&TENANT, &made, &note)?;
        return Ok(DONE);
    };
    match sign(api, &id, &book, zone).await {
        Ok(signed) => {
            made["contract"] = signed["contract"].clone();
            made["customer"] = signed["customer"].clone();
            out.done(&TENANT, &made, &format!("it can order once it has a quota: kashi quota set --tenant {id} …"))?;
            Ok(DONE)
        }
        Err(fault) => {
            out.done(&TENANT, &made, "")?;
            fault.tell(out.format());
            warn(&format!("the tenant is there, without a contract: kashi tenant sign {id} --book {book}"));
            Ok(IN_PART)
        }
    }
}

async fn sign(api: &Api, tenant: &str, book: &str, zone: Option<Zone>) -> Result<Value, Fault> {
    let mut body = Map::from_iter([("book".to_owned(), json!(book))]);
    body.extend(zone.map(|zone| ("zone".to_owned(), json!(zone.to_string()))));
    api.post(&format!("/tenants/{tenant}/contract"), Some(&body.into())).await
}
