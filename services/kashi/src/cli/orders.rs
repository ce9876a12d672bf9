//! Orders: asking for capacity, deciding, giving back.
//!
//! Invariant: a decision is followed until it is known what became of it, or for a few seconds: an order that is
//! approved is active only once the quota has room.

use crate::cli::api::Api;
use crate::cli::fault::{CONFLICT, DONE, EXHAUSTED, Fault};
use crate::cli::output::{Form, Kind, Output, column, text};
use domain::kernel::{OrderId, Resource};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long what became of a decision is waited for, and how often it is asked for.
const FOLLOWED: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

/// Order capacity.
#[derive(Debug, clap::Args)]
pub(crate) struct New {
    /// What: `card.` and a model, or `core`.
    #[arg(long, required_unless_present = "sku", conflicts_with = "sku")]
    resource: Option<Resource>,
    /// Which product, instead.
    #[arg(long)]
    sku: Option<String>,
    /// How many whole cards or cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    quantity: i64,
}

/// Which orders.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// Approve an order.
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    #[arg(value_name = "ORDER")]
    id: OrderId,
}

/// Reject an order.
#[derive(Debug, clap::Args)]
pub(crate) struct Reject {
    #[arg(value_name = "ORDER")]
    id: OrderId,
    /// Why.
    #[arg(long)]
    reason: String,
}

/// Give an order back.
#[derive(Debug, clap::Args)]
pub(crate) struct Return {
    #[arg(value_name = "ORDER")]
    id: OrderId,
}

const ORDER: Kind = Kind {
    name: "Order",
    id: "id",
    columns: &[
        column("ORDER", "订单", "id", Form::Text),
        column("STATUS", "状态", "status", Form::Word),
        column("RESOURCE", "资源", "resource", Form::Text),
        column("QUANTITY", "数量", "quantity", Form::Text),
        column("PRICE", "单价", "price", Form::Price),
        column("CURRENCY", "币种", "currency", Form::Text),
        column("TENANT", "租户", "tenant", Form::Text),
        column("REQUESTED", "申请时间", "requested_at", Form::Time),
        column("REASON", "原因", "reason", Form::Text),
    ],
    more: &[],
};

impl New {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let body = match (self.sku, self.resource) {
            (Some(sku), _) => json!({ "sku": sku, "quantity": self.quantity }),
            (None, resource) => json!({ "resource": resource, "quantity": self.quantity }),
        };
        let made = api.post("/orders", Some(&body)).await?;
        let note = format!("it waits for approval by another member: kashi approve {}", text(&made["id"]));
        out.done(&ORDER, &made, &note)
    }
}

impl List {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let (orders, more) = api.list("/orders", &[], self.limit as usize).await?;
        out.list(&ORDER, &orders)?;
        if more {
            out.note("there are more: --limit");
        }
        Ok(())
    }
}

impl Approve {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<u8, Fault> {
        api.post(&format!("/orders/{}/approve", self.id), None).await?;
        let order = became(api, self.id, &["requested", "approved"]).await?;
        let (note, code) = match order["status"].as_str() {
            Some("active") => ("it is active".to_owned(), DONE),
            Some("refused") => (format!("the quota has no room for it: {}", text(&order["reason"])), EXHAUSTED),
            _ => ("it is approved and waits for quota: kashi orders".to_owned(), DONE),
        };
        out.done(&ORDER, &order, &note)?;
        Ok(code)
    }
}

impl Reject {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let changed = api.post(&format!("/orders/{}/reject", self.id), Some(&json!({ "reason": self.reason }))).await?;
        out.done(&ORDER, &changed, "it is rejected")
    }
}

impl Return {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<u8, Fault> {
        api.post(&format!("/orders/{}/return", self.id), None).await?;
        let order = became(api, self.id, &["returning"]).await?;
        let (note, code) = match order["status"].as_str() {
            Some("returned") => ("it is returned".to_owned(), DONE),
            Some("active") => (format!("it cannot be returned now: {}", text(&order["reason"])), CONFLICT),
            _ => ("it is being returned: kashi orders".to_owned(), DONE),
        };
        out.done(&ORDER, &order, &note)?;
        Ok(code)
    }
}

/// The order once it is in none of these states, or as it is after a while.
async fn became(api: &Api, id: OrderId, passing: &[&str]) -> Result<Value, Fault> {
    let until = Instant::now() + FOLLOWED;
    loop {
        let order = api.get(&format!("/orders/{id}"), &[]).await?;
        let passes = order["status"].as_str().is_some_and(|status| passing.contains(&status));
        if !passes || Instant::now() >= until {
            return Ok(order);
        }
        sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::{Format, tests::written};
    use crate::cli::words::Lang;

    #[test]
    fn orders_are_a_table() {
        let order = json!({
            "id": "ord_1", "status": "active", "resource": "card.sim-a100", "quantity": 2, "price": "80",
            "currency": "CNY", "tenant": "ten_1", "requested_at": null, "reason": null,
        });
        let table = written(Format::Table, Lang::Zh, |out| out.list(&ORDER, std::slice::from_ref(&order)));
        assert_eq!(
            table,
            "订单   状态    资源           数量  单价   币种  租户   申请时间  原因\n\
             ord_1  已生效  card.sim-a100  2     80.00  CNY   ten_1\n"
        );
        assert_eq!(written(Format::Name, Lang::Zh, |out| out.list(&ORDER, &[order])), "ord_1\n");
    }
}
