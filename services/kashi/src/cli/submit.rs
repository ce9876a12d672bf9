//! Submitting a job.
//!
//! Owns: what a person may leave out and in which units it is said. Does not own: what is left out, which the server
//! fills in.
//! Invariants: what it will cost an hour is said before it is submitted, or not at all where it is not certain; standard
//! output holds the id, or with `--follow` nothing but the job's own output.

use crate::cli::Session;
use crate::cli::api::Api;
use crate::cli::fault::{DONE, Fault};
use crate::cli::follow::{copy, ending, within};
use crate::cli::jobs::JOB;
use crate::cli::outcome::{self, NOT_FINISHED};
use crate::cli::output::{Format, Output, instant, text};
use crate::cli::words;
use chrono::Utc;
use domain::kernel::{MILLI, Model, Resource};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Map, Value, json};

/// Submit a job.
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// What people call it; the program's name, unless it is said.
    #[arg(long)]
    name: Option<String>,
    /// How many cards, all on one node.
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u32).range(1..))]
    cards: Option<u32>,
    /// Of which model.
    #[arg(long, requires = "cards")]
    model: Option<Model>,
    /// How many cores, such as 0.5; one, or one for each card, unless it is said.
    #[arg(long, value_name = "N", value_parser = milli)]
    cores: Option<i64>,
    /// How much memory, such as 512M or 2G; 512M, unless it is said.
    #[arg(long, value_name = "SIZE", value_parser = mebibytes)]
    memory: Option<i64>,
    /// An environment variable; may be said again. It is kept in the log for good: pass no password or token in it.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Where it starts on the node; in a folder of its own, unless it is said.
    #[arg(long)]
    folder: Option<String>,
    /// It is ended after so many seconds of running.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..))]
    max_seconds: Option<i64>,
    /// Start it again so many times where its machine is lost; 0 unless it is said. KASHI_RESTART tells it which time it is.
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(0..=100))]
    restarts: Option<u32>,
    /// Wait for its end; the exit code says how it ended.
    #[arg(long, group = "ends")]
    wait: bool,
    /// Write its output until its end; the exit code says how it ended.
    #[arg(long, group = "ends")]
    follow: bool,
    /// With --wait or --follow: end with the job's own exit code.
    #[arg(long, requires = "ends")]
    job_exit: bool,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

fn milli(text: &str) -> Result<i64, String> {
    let whole = text.parse::<Decimal>().ok().and_then(|cores| cores.checked_mul(Decimal::from(MILLI)));
    let milli = whole.filter(|milli| milli.is_integer() && *milli > Decimal::ZERO).and_then(|milli| milli.to_i64());
    milli.ok_or_else(|| "cores are above 0, with at most three places, such as 0.5".to_owned())
}

fn mebibytes(text: &str) -> Result<i64, String> {
    let sizes = [("M", 1), ("G", 1024)];
    let mebibytes = sizes.into_iter().find_map(|(unit, mebibytes)| {
        let number = text.strip_suffix("iB").unwrap_or(text).strip_suffix(unit)?;
        number.parse::<u32>().ok().map(|number| i64::from(number) * mebibytes)
    });
    mebibytes
        .filter(|size| *size > 0)
        .ok_or_else(|| "memory is a whole number with M or G, such as 512M or 2G".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("an environment variable is written NAME=VALUE".to_owned()),
    }
}

impl Submit {
    pub(crate) async fn run(self: Box<Self>, session: &Session, out: &mut Output) -> Result<u8, Fault> {
        if self.follow && out.format() == Format::Json {
            return Err(Fault::Usage(
                "--follow writes the job's own output; leave `-o json` out, or --wait".to_owned(),
            ));
        }
        let api = &session.api;
        if out.format() != Format::Name {
            out.note(&self.plan(api).await);
        }
        let made = api.post("/jobs", Some(&self.body())).await?;
        let id = text(&made["id"]);
        let until = session.until();
        if self.follow {
            out.note(&format!("submitted {id}"));
            if within(until, copy(api, &id, 0, true, out)).await?.is_none() {
                return Ok(NOT_FINISHED);
            }
        } else if !(self.wait && out.format() == Format::Json) {
            out.done(&JOB, &made, "")?;
        }
        if !self.follow && !self.wait {
            out.note(&format!("follow it: kashi logs -f {id}"));
            return Ok(DONE);
        }
        let job = outcome::wait(api, &id, until).await?;
        if out.format() == Format::Json {
            out.one(&JOB, &job)?;
        }
        out.note(&ending(&job));
        Ok(outcome::code_of(&job, self.job_exit))
    }

    fn body(&self) -> Value {
        let mut body = Map::from_iter([("command".to_owned(), json!(self.command))]);
        let env: Map<String, Value> = self.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let cards = self.cards.zip(self.model.as_ref());
        for (field, value) in [
            ("name", json!(self.name)),
            ("env", if env.is_empty() { Value::Null } else { env.into() }),
            ("folder", json!(self.folder)),
            ("cards", cards.map_or(Value::Null, |(count, model)| json!({ "model": model, "count": count }))),
            ("milli_cores", json!(self.cores)),
            ("memory_mib", json!(self.memory)),
            ("time_limit_s", json!(self.max_seconds)),
            ("restarts", json!(self.restarts)),
        ] {
            if !value.is_null() {
                body.insert(field.to_owned(), value);
            }
        }
        body.into()
    }

    /// What is charged and how much of it: a card decides, where there are any.
    fn charged(&self) -> (Resource, Decimal) {
        match (self.cards, &self.model) {
            (Some(cards), Some(model)) => (Resource::Card(model.clone()), Decimal::from(cards)),
            _ => (Resource::Core, words::units(self.cores.unwrap_or(MILLI))),
        }
    }

    /// What is asked for, and what that costs an hour where it is known.
    async fn plan(&self, api: &Api) -> String {
        let (resource, units) = self.charged();
        let unit = resource.unit();
        // That the price cannot be read is no reason not to submit.
        match price(api, &resource).await.ok().flatten() {
            Some((price, currency)) => {
                let hour = words::amount(&(price * units).to_string());
                let price = words::price(&price.to_string());
                format!("{units} × {resource} at {price} {currency} per {unit}: {hour} {currency} an hour")
            }
            None => format!("{units} × {resource}, at the price of the contract"),
        }
    }
}

/// The price of a resource now, where every price book that has one agrees.
async fn price(api: &Api, resource: &Resource) -> Result<Option<(Decimal, String)>, Fault> {
    let products = api.whole("/products", &[]).await?;
    let prices = api.whole("/prices", &[]).await?;
    let wanted = resource.to_string();
    let skus: Vec<String> = products
        .iter()
        .filter(|product| product["resource"] == wanted.as_str())
        .map(|product| text(&product["sku"]))
        .collect();
    Ok(agreed(&prices, &skus))
}

/// The one price among the newest versions that are in force.
fn agreed(prices: &[Value], skus: &[String]) -> Option<(Decimal, String)> {
    let in_force = |row: &&Value| instant(&row["effective_at"]).is_some_and(|from| from <= Utc::now());
    let mut newest: Map<String, Value> = Map::new();
    for row in prices.iter().filter(in_force) {
        let book = newest.entry(text(&row["book"])).or_insert_with(|| row["version"].clone());
        if row["version"].as_i64() > book.as_i64() {
            *book = row["version"].clone();
        }
    }
    let rows = prices.iter().filter(|row| newest.get(&text(&row["book"])) == Some(&row["version"]));
    let mut found = rows
        .filter(|row| skus.contains(&text(&row["sku"])))
        .filter_map(|row| Some((row["price"].as_str()?.parse::<Decimal>().ok()?, text(&row["currency"]))));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly() {
        assert_eq!((milli("0.5"), milli("2"), milli("0.001")), (Ok(500), Ok(2000), Ok(1)));
        for bad in ["0", "-1", "0.0001", "x", "", "1e30", "99999999999999999999"] {
            assert!(milli(bad).is_err(), "{bad}");
        }
        assert_eq!((mebibytes("512M"), mebibytes("2G"), mebibytes("2GiB")), (Ok(512), Ok(2048), Ok(2048)));
        for bad in ["", "0M", "1.5G", "2T", "512", "-1M", "M"] {
            assert!(mebibytes(bad).is_err(), "{bad}");
        }
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(variable("A="), Ok(("A".into(), String::new())));
    }

    #[test]
    fn what_is_left_out_is_not_sent() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            submit: Submit,
        }
        let of = |line: &str| <Line as clap::Parser>::parse_from(line.split(' ')).submit;
        assert_eq!(of("x -- true").body(), json!({ "command": ["true"] }));
        let all =
            of("x --name n --cards 2 --model a100 --cores 1.5 --memory 1G --env A=b --folder f --max-seconds 9 -- a b");
        let expected = json!({
            "command": ["a", "b"], "name": "n", "cards": { "model": "a100", "count": 2 }, "milli_cores": 1500,
            "memory_mib": 1024, "env": { "A": "b" }, "folder": "f", "time_limit_s": 9,
        });
        assert_eq!(all.body(), expected);
        assert_eq!(all.charged().1, Decimal::TWO);
        assert_eq!(of("x --cores 0.5 -- a").charged(), (Resource::Core, Decimal::new(5, 1)));
    }

    #[test]
    fn a_price_is_said_only_where_it_is_certain() {
        let row = |book: &str, version: i64, price: &str, from: &str| json!({ "book": book, "version": version, "sku": "core", "price": price, "currency": "CNY", "effective_at": from });
        let (past, future) = ("2020-01-01T00:00:00Z", "9000-01-01T00:00:00Z");
        let of = |rows: &[Value]| agreed(rows, &["core".to_owned()]).map(|(price, _)| price.to_string());
        assert_eq!(of(&[row("a", 3, "9", future), row("a", 2, "2", past), row("a", 1, "1", past)]), Some("2".into()));
        assert_eq!(of(&[row("a", 1, "1", past), row("b", 1, "1", past)]), Some("1".into()));
        assert_eq!(of(&[row("a", 1, "1", past), row("b", 1, "2", past)]), None);
        assert_eq!(of(&[row("a", 1, "1", future)]), None);
        assert_eq!(agreed(&[row("a", 1, "1", past)], &["card".to_owned()]), None);
    }
}
