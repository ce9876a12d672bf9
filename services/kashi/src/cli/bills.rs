//! What a month costs: a statement (账单) with its lines.
//!
//! Invariants: amounts are those of the server, shown with two places; nothing is added up here.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::find;
use crate::cli::output::{Column, Form, Format, Kind, Output, column, text};
use crate::cli::words::{self, Lang};
use domain::kernel::{Month, StatementId};
use serde_json::Value;

/// Which month of whom.
#[derive(Debug, clap::Args)]
pub(crate) struct Bill {
    /// Such as 2026-11; the newest with a statement, unless it is said.
    #[arg(long)]
    month: Option<Month>,
    /// The tenant, by name or id; every one that you may see, unless it is said.
    #[arg(long)]
    tenant: Option<String>,
}

pub(crate) const STATEMENT: Kind = Kind {
    name: "Statement",
    id: "id",
    columns: &[
        column("STATEMENT", "账单", "id", Form::Text),
        column("MONTH", "月份", "month", Form::Text),
        column("STATUS", "状态", "status", Form::Word),
        column("NUMBER", "编号", "number", Form::Text),
        column("CURRENCY", "币种", "currency", Form::Text),
        column("TENANT", "租户", "tenant", Form::Text),
    ],
    more: &[],
};

pub(crate) const LINES: &[Column] = &[
    column("LINE", "行", "line", Form::Text),
    column("SKU", "产品", "sku", Form::Text),
    column("UNIT", "单位", "unit", Form::Word),
    column("QUANTITY", "用量", "quantity", Form::Hours),
    column("PRICE", "单价", "price", Form::Price),
    column("AMOUNT", "金额", "shown", Form::Amount),
];

impl Bill {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        api.settled().await?;
        let mut found = self.statements(api).await?;
        if found.len() != 1 {
            return out.list(&STATEMENT, &found);
        }
        let bill = api.get(&format!("/statements/{}", text(&found.remove(0)["id"])), &[]).await?;
        match out.format() {
            Format::Json => out.one(&STATEMENT, &bill),
            Format::Name => out.line(&text(&bill["statement"]["id"])),
            Format::Table => write(out, &bill),
        }
    }

    /// Those of the month, or of the newest month.
    async fn statements(&self, api: &Api) -> Result<Vec<Value>, Fault> {
        let month: Vec<_> = self.month.iter().map(|month| ("month", month.to_string())).collect();
        let (mut found, _) = api.list("/statements", &month, usize::MAX).await?;
        if let Some(tenant) = &self.tenant {
            let tenant = find::tenant(api, tenant).await?.to_string();
            found.retain(|statement| statement["tenant"] == tenant.as_str());
        }
        // They come newest month first.
        if let Some(newest) = found.first().map(|statement| statement["month"].clone()) {
            found.retain(|statement| statement["month"] == newest);
        }
        Ok(found)
    }
}

/// Reads a statement with its lines, which are counted from 1.
pub(crate) async fn read(api: &Api, id: StatementId) -> Result<Value, Fault> {
    let mut bill = api.get(&format!("/statements/{id}"), &[]).await?;
    number(&mut bill);
    Ok(bill)
}

fn number(bill: &mut Value) {
    for (at, line) in bill["lines"].as_array_mut().into_iter().flatten().enumerate() {
        line["line"] = (at + 1).into();
    }
}

/// The statement itself in one line.
pub(crate) fn heading(statement: &Value, lang: Lang) -> String {
    let field = |name: &str| text(&statement[name]);
    let number = match field("number") {
        number if number.is_empty() => number,
        number => format!("  {number}"),
    };
    let status = words::word(&field("status"), lang);
    format!(
        "{} {}  {} ({})  {status}{number}",
        lang.say("statement", "账单"),
        field("id"),
        field("month"),
        field("zone")
    )
}

/// The quantity, price and amount of a line in one line.
pub(crate) fn reckoning(line: &Value, currency: &str, lang: Lang) -> String {
    let cells: Vec<String> = LINES.iter().map(|column| column.cell(line, lang)).collect();
    let [at, sku, unit, quantity, price, amount] = cells.as_slice() else { return String::new() };
    let label = lang.say("line", "行");
    format!("{label} {at}  {sku}  {quantity} {unit} × {price} {currency} = {amount} {currency}")
}

fn write(out: &mut Output, bill: &Value) -> Result<(), Fault> {
    let lang = out.lang();
    let mut numbered = bill.clone();
    number(&mut numbered);
    let statement = &bill["statement"];
    let currency = text(&statement["currency"]);
    out.line(&heading(statement, lang))?;
    match numbered["lines"].as_array().map(Vec::as_slice) {
        None | Some([]) => out.note(lang.say("nothing was used", "没有用量")),
        Some(lines) => out.table(LINES, lines)?,
    }
    let total = |name: &str| text(&bill["total"][name]);
    out.line(&format!("{}  {} {currency}", lang.say("TOTAL", "合计"), words::amount(&total("total"))))?;
    if words::amount(&total("rounding")) != "0.00" {
        let label = lang.say("ROUNDING (the exact sum is rounded once)", "舍入差 (合计只舍入一次)");
        out.line(&format!("{label}  {} {currency}", words::amount(&total("rounding"))))?;
    }
    for remark in remarks(bill, lang) {
        out.note(&remark);
    }
    Ok(())
}

fn remarks(bill: &Value, lang: Lang) -> Vec<String> {
    let statement = &bill["statement"];
    let id = text(&statement["id"]);
    let mut remarks = vec![];
    if statement["unrated"].as_i64().is_some_and(|unrated| unrated > 0) {
        let unrated = text(&statement["unrated"]);
        remarks.push(match lang {
            Lang::En => format!("not in the total: {unrated} uses that have no price yet"),
            Lang::Zh => format!("合计未含 {unrated} 笔尚无价格的用量"),
        });
    }
    if statement["status"] == "draft" {
        let draft = "a draft: it grows until the month is closed";
        remarks.push(lang.say(draft, "草稿：关账前还会变化").to_owned());
    }
    if bill["lines"].as_array().is_some_and(|lines| !lines.is_empty()) {
        remarks.push(format!("{}  kashi explain {id}", lang.say("why", "明细")));
        remarks.push(format!("     kashi explain {id} --line 1"));
    }
    remarks
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cli::output::tests::written;
    use serde_json::json;

    pub(crate) fn bill() -> Value {
        json!({
            "statement": {
                "id": "sta_1", "tenant": "ten_1", "month": "2026-11", "zone": "Asia/Shanghai", "currency": "CNY",
                "status": "draft", "number": null, "closed": false, "unrated": 0,
            },
            "lines": [
                { "sku": "card.sim-a100", "price_version": 1, "unit": "card-hour", "price": "80", "quantity": 6_083_000,
                  "hours": "0.00168972", "amount": "0.13517778", "shown": "0.14" },
                { "sku": "core", "price_version": 1, "unit": "core-hour", "price": "0.35", "quantity": 3_600_000_000_i64,
                  "hours": "1", "amount": "0.35", "shown": "0.35" },
            ],
            "total": { "total": "0.49", "rounding": "0" },
        })
    }

    #[test]
    fn a_bill_has_lines_and_a_total() {
        let en = written(Format::Table, Lang::En, |out| write(out, &bill()));
        assert_eq!(
            en,
            "statement sta_1  2026-11 (Asia/Shanghai)  draft\n\
             LINE  SKU            UNIT       QUANTITY  PRICE  AMOUNT\n\
             1     card.sim-a100  card-hour  0.0017    80.00  0.14\n\
             2     core           core-hour  1.0000    0.35   0.35\n\
             TOTAL  0.49 CNY\n"
        );
    }

    #[test]
    fn rounding_is_shown_where_there_is_some() {
        let mut bill = bill();
        bill["total"] = json!({ "total": "0.5", "rounding": "0.01" });
        bill["statement"]["number"] = "2026-000001".into();
        let zh = written(Format::Table, Lang::Zh, |out| write(out, &bill));
        assert!(zh.starts_with("账单 sta_1  2026-11 (Asia/Shanghai)  草稿  2026-000001\n"), "{zh}");
        assert!(zh.ends_with("合计  0.50 CNY\n舍入差 (合计只舍入一次)  0.01 CNY\n"), "{zh}");
        assert!(zh.contains("卡时"), "{zh}");
    }

    #[test]
    fn what_is_missing_from_the_total_is_said() {
        let mut bill = bill();
        bill["statement"]["unrated"] = 2.into();
        let remarks = remarks(&bill, Lang::En);
        assert!(remarks[0].contains("2 uses") && remarks[1].contains("draft"), "{remarks:?}");
        assert_eq!(remarks[2], "why  kashi explain sta_1");
    }

    #[test]
    fn a_line_is_reckoned_in_one_line() {
        let mut bill = bill();
        number(&mut bill);
        let expected = "line 1  card.sim-a100  0.0017 card-hour × 80.00 CNY = 0.14 CNY";
        assert_eq!(reckoning(&bill["lines"][0], "CNY", Lang::En), expected);
    }
}
