//! Quotas: what may be ordered, what is, and what jobs use of it.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::find;
use crate::cli::output::{Form, Kind, Output, column};
use domain::kernel::Resource;
use serde_json::json;

/// Quotas.
#[derive(Debug, clap::Args)]
pub(crate) struct Quota {
    #[command(subcommand)]
    command: Option<Change>,
}

/// What can be changed.
#[derive(Debug, clap::Subcommand)]
enum Change {
    /// Set how much of a resource a tenant and all below it may order.
    Set {
        /// The tenant, by name or id.
        #[arg(long)]
        tenant: String,
        /// `card.` and a model, or `core`.
        #[arg(long)]
        resource: Resource,
        /// Whole cards or cores.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
        ceiling: i64,
    },
}

const QUOTA: Kind = Kind {
    name: "Quota",
    id: "resource",
    columns: &[
        column("RESOURCE", "资源", "resource", Form::Text),
        column("CEILING", "上限", "ceiling", Form::Text),
        column("COUNTED", "已计入", "counted", Form::Text),
        column("ORDERED", "已订购", "ordered", Form::Text),
        column("IN USE", "使用中", "in_use", Form::Text),
        column("WAITING", "等待作业", "waiting", Form::Text),
        column("TENANT", "租户", "tenant", Form::Text),
        column("CEILING OF", "上限所属", "ceiling_of", Form::Text),
    ],
    more: &[],
};

impl Quota {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let Some(Change::Set { tenant, resource, ceiling }) = self.command else {
            let (quotas, _) = api.list("/quotas", &[], usize::MAX).await?;
            return out.list(&QUOTA, &quotas);
        };
        let tenant = find::tenant(api, &tenant).await?;
        let set = api.put(&format!("/quotas/{tenant}/{resource}"), &json!({ "ceiling": ceiling })).await?;
        out.done(&QUOTA, &set, &format!("{tenant} may order {ceiling} of {resource}"))
    }
}
