//! From a statement or a job down to the events: for each line each charge, and what happened for it.
//!
//! Invariants: every number here is the server's; each event has its position, under which `kashi event` shows it.

use crate::cli::api::Api;
use crate::cli::bills;
use crate::cli::fault::Fault;
use crate::cli::output::{Column, Form, Format, Kind, Output, column, instant, text};
use crate::cli::words::{self, Lang};
use domain::kernel::{JobId, StatementId};
use serde_json::Value;
use std::collections::BTreeSet;
use std::str::FromStr;

/// What to explain.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// A statement or a job.
    #[arg(value_name = "STATEMENT|JOB")]
    of: Of,
    /// Of a statement, this line only, counted from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    line: Option<u64>,
}

/// A statement or a job.
#[derive(Debug, Clone, Copy)]
enum Of {
    Statement(StatementId),
    Job(JobId),
}

impl FromStr for Of {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let statement = text.parse().map(Self::Statement);
        let job = text.parse().map(Self::Job);
        statement.or(job).map_err(|_| "write the id of a statement, `sta_…`, or of a job, `job_…`".to_owned())
    }
}

const CHARGE: Kind = Kind {
    name: "Explanation",
    id: "position",
    columns: &[
        column("JOB", "作业", "job", Form::Text),
        column("FROM", "自", "from_at", Form::Of(|charge, _| exact(&charge["from_at"]))),
        column("TO", "至", "to_at", Form::Of(|charge, _| exact(&charge["to_at"]))),
        column("SECONDS", "秒", "", Form::Of(|charge, _| seconds(charge))),
        column("HELD", "占用", "", Form::Of(held)),
        column("QUANTITY", "用量", "quantity", Form::Hours),
        column("PRICE", "单价", "price", Form::Price),
        column("AMOUNT, EXACT", "精确金额", "amount", Form::Text),
    ],
    more: &[],
};

const EVENTS: &[Column] = &[
    column("POSITION", "位置", "position", Form::Text),
    column("EVENT", "事件", "kind", Form::Text),
    column("AT", "时间", "occurred_at", Form::Of(|event, _| exact(&event["occurred_at"]))),
];

fn exact(value: &Value) -> String {
    instant(value).map_or_else(|| text(value), words::exact_time)
}

fn seconds(charge: &Value) -> String {
    let took = instant(&charge["from_at"]).zip(instant(&charge["to_at"])).map(|(from, to)| to - from);
    took.map(words::seconds).unwrap_or_default()
}

/// How many cards or cores were held, as the lease says.
fn held(charge: &Value, lang: Lang) -> String {
    let lease = &charge["lease"];
    match lease["cards"].as_i64() {
        Some(1) => lang.say("1 card", "1 卡").to_owned(),
        Some(cards) if cards > 0 => format!("{cards} {}", lang.say("cards", "卡")),
        _ => match lease["milli_cores"].as_i64() {
            Some(1000) => lang.say("1 core", "1 核").to_owned(),
            Some(milli) => format!("{} {}", words::units(milli), lang.say("cores", "核")),
            None => String::new(),
        },
    }
}

/// A line of a statement, and what is asked of it.
struct Line {
    statement: Value,
    line: Value,
    /// Only charges for this job.
    job: Option<JobId>,
}

impl Explain {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        api.settled().await?;
        let lines = match self.of {
            Of::Statement(id) => self.of_statement(api, id).await?,
            Of::Job(_) if self.line.is_some() => {
                return Err(Fault::Usage("--line is for a statement".to_owned()));
            }
            Of::Job(job) => of_job(api, job).await?,
        };
        let mut all = vec![];
        for (at, line) in lines.iter().enumerate() {
            let charges = line.charges(api).await?;
            if out.format() == Format::Table {
                if at == 0 || line.statement["id"] != lines[at - 1].statement["id"] {
                    out.line(&bills::heading(&line.statement, out.lang()))?;
                }
                line.write(out, &charges)?;
            }
            all.extend(charges);
        }
        match out.format() {
            Format::Json => out.list(&CHARGE, &all),
            Format::Name => all.iter().try_for_each(|explained| out.line(&text(&explained["charge"]["position"]))),
            Format::Table if all.is_empty() => {
                out.note(out.lang().say("nothing has been charged for it", "尚无计费"));
                Ok(())
            }
            Format::Table => {
                out.note(out.lang().say("an event in full:  kashi event POSITION", "事件全文：kashi event 位置"));
                Ok(())
            }
        }
    }

    async fn of_statement(&self, api: &Api, id: StatementId) -> Result<Vec<Line>, Fault> {
        let bill = bills::read(api, id).await?;
        let lines = bill["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
        let count = lines.len();
        let wanted = lines.iter().filter(|line| self.line.is_none_or(|wanted| line["line"] == wanted));
        let statement = |line: &Value| Line { statement: bill["statement"].clone(), line: line.clone(), job: None };
        let found: Vec<Line> = wanted.map(statement).collect();
        match self.line {
            Some(line) if found.is_empty() => {
                Err(Fault::Usage(format!("the statement has {count} lines, and no line {line}")))
            }
            _ => Ok(found),
        }
    }
}

/// The lines on which a job is charged.
async fn of_job(api: &Api, job: JobId) -> Result<Vec<Line>, Fault> {
    let charges = api.whole(&format!("/jobs/{job}/charges"), &[]).await?;
    let key = |row: &Value| (text(&row["sku"]), row["price_version"].as_i64());
    let statements: BTreeSet<StatementId> =
        charges.iter().filter_map(|charge| charge["statement"].as_str()?.parse().ok()).collect();
    let mut lines = vec![];
    for id in statements {
        let bill = bills::read(api, id).await?;
        let here = charges.iter().filter(|charge| charge["statement"] == id.to_string().as_str());
        let wanted: BTreeSet<_> = here.map(key).collect();
        let found = bill["lines"].as_array().into_iter().flatten().filter(|line| wanted.contains(&key(line)));
        let line = |line: &Value| Line { statement: bill["statement"].clone(), line: line.clone(), job: Some(job) };
        lines.extend(found.map(line));
    }
    Ok(lines)
}

impl Line {
    /// Every charge of the line, with its events.
    async fn charges(&self, api: &Api) -> Result<Vec<Value>, Fault> {
        let (statement, sku) = (text(&self.statement["id"]), text(&self.line["sku"]));
        let version = text(&self.line["price_version"]);
        let path = format!("/statements/{statement}/lines/{sku}/{version}/explain");
        let (mut charges, _) = api.list(&path, &[], usize::MAX).await?;
        if let Some(job) = self.job {
            charges.retain(|explained| explained["charge"]["job"] == job.to_string().as_str());
        }
        Ok(charges)
    }

    fn write(&self, out: &mut Output, charges: &[Value]) -> Result<(), Fault> {
        let currency = text(&self.statement["currency"]);
        out.line("")?;
        out.line(&bills::reckoning(&self.line, &currency, out.lang()))?;
        for explained in charges {
            let mut charge = explained["charge"].clone();
            charge["lease"] = explained["lease"].clone();
            let job = &explained["job"];
            charge["job"] = format!("{} {}", text(&job["id"]), text(&job["name"])).trim_end().into();
            out.line("")?;
            out.table(CHARGE.columns, &[charge])?;
            out.table(EVENTS, explained["events"].as_array().map(Vec::as_slice).unwrap_or_default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::tests::written;
    use serde_json::json;

    #[test]
    fn is_told_from_its_id() {
        let id = "01J00000000000000000000000";
        assert!(matches!(format!("sta_{id}").parse(), Ok(Of::Statement(_))));
        assert!(matches!(format!("job_{id}").parse(), Ok(Of::Job(_))));
        assert!(format!("ord_{id}").parse::<Of>().is_err());
    }

    #[test]
    fn a_charge_shows_what_was_held_for_how_long() {
        let cards = json!({ "from_at": "2026-11-10T01:00:00Z", "to_at": "2026-11-10T01:00:06.083Z",
                            "lease": { "cards": 2, "milli_cores": 1000 } });
        assert_eq!((seconds(&cards), held(&cards, Lang::En)), ("6.083".into(), "2 cards".into()));
        let cores = json!({ "lease": { "cards": 0, "milli_cores": 500 } });
        assert_eq!((seconds(&cores), held(&cores, Lang::Zh)), (String::new(), "0.5 核".into()));
        assert_eq!(held(&json!({ "lease": null }), Lang::En), "");
    }

    #[test]
    fn a_line_leads_down_to_positions() {
        let bill = crate::cli::bills::tests::bill();
        let line = Line { statement: bill["statement"].clone(), line: bill["lines"][0].clone(), job: None };
        let explained = json!({
            "charge": { "position": 30, "quantity": 6_083_000, "price": "80", "amount": "0.13517778", "job": "job_1" },
            "job": { "id": "job_1", "name": "train" }, "lease": { "cards": 1 }, "share": "1",
            "events": [{ "position": 12, "kind": "job.submitted" }, { "position": 30, "kind": "ledger.charged" }],
        });
        let said = written(Format::Table, Lang::En, |out| line.write(out, &[explained]));
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[3].split("  ").next(), Some("JOB"));
        assert!(lines[4].starts_with("job_1 train") && lines[4].ends_with("0.0017    80.00  0.13517778"), "{said}");
        assert_eq!(lines[6], "12        job.submitted");
        assert_eq!(lines[7], "30        ledger.charged");
    }
}
