//! Wallets: what is left, what is paid in, how far one may go below zero.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::find;
use crate::cli::output::{Form, Kind, Output, column};
use rust_decimal::Decimal;
use serde_json::json;

/// A wallet.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Wallet {
    #[command(subcommand)]
    command: Option<Change>,
    /// The tenant, by name or id; your own, unless it is said.
    #[arg(long)]
    tenant: Option<String>,
}

/// What can be changed.
#[derive(Debug, clap::Subcommand)]
enum Change {
    /// Pay money into a tenant's wallet.
    TopUp {
        /// The tenant, by name or id.
        #[arg(long)]
        tenant: String,
        /// In the wallet's currency.
        #[arg(long)]
        amount: Decimal,
        /// What the payment is known by elsewhere.
        #[arg(long)]
        reference: String,
    },
    /// Set how far a tenant's wallet may go below zero.
    Credit {
        /// The tenant, by name or id.
        #[arg(long)]
        tenant: String,
        /// In the wallet's currency.
        #[arg(long)]
        amount: Decimal,
    },
}

const WALLET: Kind = Kind {
    name: "Wallet",
    id: "customer",
    columns: &[
        column("AVAILABLE", "可用", "available", Form::Amount),
        column("HELD", "冻结", "held", Form::Amount),
        column("CONSUMED", "已消费", "consumed", Form::Amount),
        column("PAID IN", "已充值", "granted", Form::Amount),
        column("CREDIT LINE", "授信", "credit", Form::Amount),
        column("CURRENCY", "币种", "currency", Form::Text),
        column("CUSTOMER", "客户", "customer", Form::Text),
        column("TENANT", "租户", "tenant", Form::Text),
    ],
    more: &[],
};

impl Wallet {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        match self.command {
            None => {
                let tenant = find::tenant_or_own(api, self.tenant.as_deref()).await?;
                out.one(&WALLET, &api.get(&format!("/tenants/{tenant}/wallet"), &[]).await?)
            }
            Some(Change::TopUp { tenant, amount, reference }) => {
                let tenant = find::tenant(api, &tenant).await?;
                let body = json!({ "amount": amount.to_string(), "reference": reference });
                let done = api.post(&format!("/tenants/{tenant}/wallet/top-ups"), Some(&body)).await?;
                out.done(&CUSTOMER, &done, &format!("{amount} is paid in"))
            }
            Some(Change::Credit { tenant, amount }) => {
                let tenant = find::tenant(api, &tenant).await?;
                let body = json!({ "amount": amount.to_string() });
                let done = api.put(&format!("/tenants/{tenant}/wallet/credit"), &body).await?;
                out.done(&CUSTOMER, &done, &format!("the credit line is {amount}"))
            }
        }
    }
}

/// What a change of a wallet answers: whose it is.
const CUSTOMER: Kind = Kind { name: "Wallet", id: "id", columns: &[], more: &[] };
