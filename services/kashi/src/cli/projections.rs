//! Read models, for operators: how far each is, and making them anew while reads go on.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::output::{Form, Kind, Output, column, text};
use crate::cli::words::Lang;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// How often it is asked how far a rebuild is.
const AGAIN: Duration = Duration::from_millis(500);

/// Read models.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Projections {
    /// List the read models, how far each is, and why one has stopped.
    Status,
    /// Make one of them or all of them anew from the log, and wait until it is served; reads go on meanwhile.
    Rebuild(Rebuild),
}

/// What is made anew.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Rebuild {
    /// A read model.
    name: Option<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
}

const PROJECTION: Kind = Kind {
    name: "Projection",
    id: "name",
    columns: &[
        column("READ MODEL", "读模型", "name", Form::Text),
        column("STATE", "状态", "stopped_position", Form::Of(state)),
        column("POSITION", "位置", "position", Form::Text),
        column("CAUSE", "原因", "stopped_cause", Form::Text),
    ],
    more: &[],
};

const VERSION: Kind = Kind {
    name: "ProjectionVersion",
    id: "version",
    columns: &[
        column("VERSION", "版本", "version", Form::Text),
        column("STATE", "状态", "status", Form::Text),
        column("READ MODEL", "读模型", "model", Form::Text),
        column("POSITION", "位置", "position", Form::Text),
    ],
    more: &[],
};

fn state(model: &Value, lang: Lang) -> String {
    if model["stopped_position"].is_null() {
        lang.say("follows", "跟随中").to_owned()
    } else {
        format!("{} {}", lang.say("stopped at", "停止于"), text(&model["stopped_position"]))
    }
}

impl Projections {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        match self {
            Self::Status => out.list(&PROJECTION, &api.whole("/projections", &[]).await?),
            Self::Rebuild(rebuild) => rebuild.run(api, out).await,
        }
    }
}

impl Rebuild {
    async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let mut version = api.post("/projections/rebuild", Some(&json!({ "name": self.name }))).await?;
        let number = version["version"].clone();
        let mut said = String::new();
        loop {
            match version["status"].as_str() {
                Some("asked" | "building") => {}
                Some("failed") => {
                    let detail = format!("version {number} could not be made: {}", text(&version["fault"]));
                    let document = json!({ "status": 500, "code": "projection.failed", "detail": detail });
                    return Err(Fault::Refused { host: api.settings().host.clone(), document });
                }
                _ => return out.done(&VERSION, &version, &format!("version {number} is served")),
            }
            let far = format!("at {} of {}", text(&version["position"]), text(&version["target"]));
            if far != said {
                out.note(&far);
                said = far;
            }
            sleep(AGAIN).await;
            let mut list = api.get("/projections", &[]).await?;
            let Value::Array(versions) = list["versions"].take() else { continue };
            let found = versions.into_iter().find(|found| found["version"] == number);
            version = found.unwrap_or_else(|| json!({ "version": number, "status": "dropped" }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_model_follows_or_says_where_it_stopped() {
        let stopped = json!({ "stopped_position": 7, "stopped_cause": "a defect" });
        assert_eq!(state(&stopped, Lang::En), "stopped at 7");
        assert_eq!(state(&json!({ "stopped_position": null }), Lang::Zh), "跟随中");
    }
}
