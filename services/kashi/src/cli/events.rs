//! One stored event.
//!
//! Invariant: what the server hides stays hidden; its `kind` is the event's, also in JSON.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::output::{Form, Format, Kind, Output, column, instant};
use crate::cli::words;

/// Which event.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// Its place in the log.
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    position: i64,
}

const EVENT: Kind = Kind {
    name: "Event",
    id: "event_id",
    columns: &[
        column("POSITION", "位置", "position", Form::Text),
        column("KIND", "类型", "kind", Form::Text),
        column("STREAM", "流", "stream", Form::Text),
        column("REVISION", "序号", "revision", Form::Text),
        column(
            "OCCURRED",
            "发生于",
            "occurred_at",
            Form::Of(|event, _| instant(&event["occurred_at"]).map(words::exact_time).unwrap_or_default()),
        ),
        column(
            "RECORDED",
            "记录于",
            "recorded_at",
            Form::Of(|event, _| instant(&event["recorded_at"]).map(words::exact_time).unwrap_or_default()),
        ),
        column("ACTOR", "操作者", "actor", Form::Text),
        column("TENANT", "租户", "tenant", Form::Text),
        column("EVENT", "事件", "event_id", Form::Text),
        column("CORRELATION", "关联", "correlation", Form::Text),
        column("CAUSATION", "起因", "causation", Form::Text),
        column("SCHEMA", "格式版本", "schema", Form::Text),
    ],
    more: &[],
};

impl One {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let event = api.get(&format!("/events/{}", self.position), &[]).await?;
        out.one(&EVENT, &event)?;
        if out.format() == Format::Table {
            // JSON escapes every control character.
            out.line(&format!("{:#}", event["payload"]))?;
        }
        Ok(())
    }
}
