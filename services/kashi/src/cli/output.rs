//! What a command writes: tables for people, JSON and names for programs.
//!
//! Owns: the three formats, the envelope of JSON, the shape of a table. Does not own: what is shown (`Kind`, one per
//! subject, beside its commands), faults.
//! Invariants: results are on standard output and remarks on standard error; JSON holds what the server sent, unchanged,
//! under `apiVersion: kashi/v1`; a table is never cut or coloured; what others wrote cannot steer a terminal.

use crate::cli::fault::Fault;
use crate::cli::words::{self, Lang};
use chrono::{DateTime, Utc};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Of the JSON that programs read; what is there stays.
pub(crate) const API_VERSION: &str = "kashi/v1";

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Table,
    /// Stable JSON.
    Json,
    /// Ids only, one a line.
    Name,
}

/// How a field is written for people.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// As it is.
    Text,
    /// A state or unit, in the reader's language.
    Word,
    /// An instant.
    Time,
    /// Thousandths of a unit, as units.
    Milli,
    /// An amount, with two places.
    Amount,
    /// A price.
    Price,
    /// A quantity, in unit-hours with four places.
    Hours,
    /// Yes or no.
    Bool,
    /// Whatever this makes of the row.
    Of(fn(&Value, Lang) -> String),
}

/// A column of a table: its head in English and Chinese, its field, and how that is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) en: &'static str,
    pub(crate) zh: &'static str,
    pub(crate) field: &'static str,
    pub(crate) form: Form,
}

/// A column in one line.
pub(crate) const fn column(en: &'static str, zh: &'static str, field: &'static str, form: Form) -> Column {
    Column { en, zh, field, form }
}

/// A kind of thing.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// The field that `-o name` writes.
    pub(crate) id: &'static str,
    /// What a list shows of it.
    pub(crate) columns: &'static [Column],
    /// What is shown of one beside that.
    pub(crate) more: &'static [Column],
}

impl Column {
    /// What the row has in this column.
    pub(crate) fn cell(&self, row: &Value, lang: Lang) -> String {
        let value = &row[self.field];
        if value.is_null() && !matches!(self.form, Form::Of(_)) {
            return String::new();
        }
        match self.form {
            Form::Text => text(value),
            Form::Word => words::word(&text(value), lang),
            Form::Time => instant(value).map_or_else(|| text(value), words::time),
            Form::Milli => value.as_i64().map_or_else(|| text(value), |milli| words::units(milli).to_string()),
            Form::Amount => words::amount(&text(value)),
            Form::Price => words::price(&text(value)),
            Form::Hours => value.as_i64().map_or_else(|| text(value), words::hours),
            Form::Bool if value.as_bool() == Some(true) => lang.say("yes", "是").to_owned(),
            Form::Bool => lang.say("no", "否").to_owned(),
            Form::Of(make) => make(row, lang),
        }
    }
}

/// A JSON value as one line of text.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => words::clean(text),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => words::clean(&value.to_string()),
    }
}

/// A JSON value as an instant.
pub(crate) fn instant(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str()?.parse().ok()
}

/// Where a command writes to.
pub(crate) struct Output {
    format: Format,
    lang: Lang,
    quiet: bool,
    out: Box<dyn Write>,
}

impl Output {
    /// Standard output. `quiet` leaves remarks out, and of a table everything but the ids.
    pub(crate) fn standard(format: Format, lang: Lang, quiet: bool) -> Self {
        Self { format, lang, quiet, out: Box::new(io::BufWriter::new(io::stdout())) }
    }

    pub(crate) fn lang(&self) -> Lang {
        self.lang
    }

    pub(crate) fn format(&self) -> Format {
        if self.quiet && self.format == Format::Table { Format::Name } else { self.format }
    }

    /// Writes a list.
    pub(crate) fn list(&mut self, kind: &Kind, items: &[Value]) -> Result<(), Fault> {
        match self.format() {
            Format::Json => self.json(json!({ "kind": format!("{}List", kind.name), "items": items })),
            Format::Name => items.iter().try_for_each(|item| self.line(&text(&item[kind.id]))),
            Format::Table if items.is_empty() => {
                self.note(self.lang.say("there is none", "没有记录"));
                Ok(())
            }
            Format::Table => self.table(kind.columns, items),
        }
    }

    /// Writes one thing, a field a line.
    pub(crate) fn one(&mut self, kind: &Kind, item: &Value) -> Result<(), Fault> {
        match self.format() {
            Format::Json => self.json(named(kind.name, item)),
            Format::Name => self.line(&text(&item[kind.id])),
            Format::Table => {
                let rows = kind.columns.iter().chain(kind.more).filter_map(|column| {
                    let cell = column.cell(item, self.lang);
                    (!cell.is_empty()).then(|| vec![self.lang.say(column.en, column.zh).to_owned(), cell])
                });
                let rows = rows.collect();
                self.lines(&grid(None, rows))
            }
        }
    }

    /// Says that something was done: its id on standard output, and a remark.
    pub(crate) fn done(&mut self, kind: &Kind, item: &Value, note: &str) -> Result<(), Fault> {
        match self.format() {
            Format::Json => self.json(named(kind.name, item))?,
            Format::Name | Format::Table => self.line(&text(&item[kind.id]))?,
        }
        self.flush()?;
        self.note(note);
        Ok(())
    }

    /// Writes a document under the version.
    pub(crate) fn json(&mut self, mut document: Value) -> Result<(), Fault> {
        document["apiVersion"] = API_VERSION.into();
        self.line(&format!("{document:#}"))
    }

    /// Writes a table.
    pub(crate) fn table(&mut self, columns: &[Column], items: &[Value]) -> Result<(), Fault> {
        let heads = columns.iter().map(|column| self.lang.say(column.en, column.zh).to_owned()).collect();
        let cells = |item| columns.iter().map(|column| column.cell(item, self.lang)).collect();
        let rows = items.iter().map(cells).collect();
        self.lines(&grid(Some(heads), rows))
    }

    fn lines(&mut self, lines: &[String]) -> Result<(), Fault> {
        lines.iter().try_for_each(|line| self.line(line))
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Fault> {
        Ok(writeln!(self.out, "{line}")?)
    }

    /// Writes bytes as they are, at once.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.out.write_all(bytes)?;
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        Ok(self.out.flush()?)
    }

    /// A remark on standard error, unless it is to be quiet.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet && !text.is_empty() {
            // What was written before comes first, where both go to one terminal. That it failed is told at the end.
            drop(self.out.flush());
            warn(text);
        }
    }
}

/// Says something on standard error.
pub(crate) fn warn(text: &str) {
    // Where standard error is closed there is nobody to tell.
    drop(writeln!(io::stderr(), "{text}"));
}

/// A thing with the name of its kind; its own `kind` stays, where it has one.
fn named(kind: &str, item: &Value) -> Value {
    let mut document = Map::from_iter([("kind".to_owned(), Value::from(kind))]);
    document.extend(item.as_object().cloned().unwrap_or_default());
    document.into()
}

/// Rows side by side, two spaces apart.
fn grid(heads: Option<Vec<String>>, rows: Vec<Vec<String>>) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if let Some(heads) = heads {
        table.set_header(heads);
    }
    table.add_rows(rows);
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written to standard output in a format and language.
    pub(crate) fn written(format: Format, lang: Lang, write: impl FnOnce(&mut Output) -> Result<(), Fault>) -> String {
        let kept = Kept::default();
        let mut output = Output { format, lang, quiet: false, out: Box::new(kept.clone()) };
        write(&mut output).unwrap();
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const KIND: Kind = Kind {
        name: "Thing",
        id: "id",
        columns: &[
            column("ID", "编号", "id", Form::Text),
            column("STATUS", "状态", "status", Form::Word),
            column("UNITS", "数量", "milli", Form::Milli),
        ],
        more: &[column("LOCKED", "锁定", "locked", Form::Bool), column("WHY", "原因", "why", Form::Text)],
    };

    fn items() -> Vec<Value> {
        vec![
            json!({ "id": "a", "status": "running", "milli": 1500 }),
            json!({ "id": "bcd", "status": "queued", "milli": 1000, "locked": true }),
        ]
    }

    #[test]
    fn a_list_is_a_table_in_the_readers_language() {
        let en = written(Format::Table, Lang::En, |out| out.list(&KIND, &items()));
        assert_eq!(en, "ID   STATUS   UNITS\na    running  1.5\nbcd  queued   1\n");
        let zh = written(Format::Table, Lang::Zh, |out| out.list(&KIND, &items()));
        assert_eq!(zh, "编号  状态    数量\na     运行中  1.5\nbcd   排队中  1\n");
        assert_eq!(written(Format::Table, Lang::En, |out| out.list(&KIND, &[])), "");
    }

    #[test]
    fn one_thing_is_a_field_a_line() {
        let en = written(Format::Table, Lang::En, |out| out.one(&KIND, &items()[1]));
        assert_eq!(en, "ID      bcd\nSTATUS  queued\nUNITS   1\nLOCKED  yes\n");
    }

    #[test]
    fn programs_get_what_the_server_sent() {
        let list = written(Format::Json, Lang::Zh, |out| out.list(&KIND, &items()));
        let list: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list, json!({ "apiVersion": "kashi/v1", "kind": "ThingList", "items": items() }));
        let empty = written(Format::Json, Lang::Zh, |out| out.list(&KIND, &[]));
        assert!(empty.contains("\"items\": []"), "{empty}");
        let one = written(Format::Json, Lang::Zh, |out| out.one(&KIND, &json!({ "id": "a", "milli": 1 })));
        assert_eq!(
            one,
            "{\n  \"apiVersion\": \"kashi/v1\",\n  \"id\": \"a\",\n  \"kind\": \"Thing\",\n  \"milli\": 1\n}\n"
        );
        let event = written(Format::Json, Lang::Zh, |out| out.one(&KIND, &json!({ "kind": "job.submitted" })));
        assert!(event.contains("\"kind\": \"job.submitted\""), "{event}");
    }

    #[test]
    fn scripts_get_ids() {
        assert_eq!(written(Format::Name, Lang::En, |out| out.list(&KIND, &items())), "a\nbcd\n");
        assert_eq!(written(Format::Table, Lang::En, |out| out.done(&KIND, &items()[0], "done")), "a\n");
    }

    #[test]
    fn what_others_wrote_stays_in_its_cell() {
        let row = json!({ "id": "a\u{1b}[2J\nb", "status": "x" });
        assert_eq!(written(Format::Table, Lang::En, |out| out.list(&KIND, &[row])).lines().count(), 2);
    }
}
