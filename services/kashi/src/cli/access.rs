//! The evidence of access, for auditors.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::output::{Form, Kind, Output, column};
use chrono::{DateTime, SecondsFormat, Utc};

/// Which evidence.
#[derive(Debug, clap::Args)]
pub(crate) struct Access {
    /// Not before this instant, such as 2026-11-01T00:00:00+08:00.
    #[arg(long, value_name = "INSTANT")]
    from: Option<DateTime<Utc>>,
    /// Of this member or key only, by its id; `nobody` for who was not known.
    #[arg(long)]
    actor: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

const ACCESS: Kind = Kind {
    name: "Access",
    id: "position",
    columns: &[
        column("POSITION", "位置", "position", Form::Text),
        column("AT", "时间", "at", Form::Time),
        column("WHAT", "事项", "what", Form::Text),
        column("OPERATION", "操作", "operation", Form::Text),
        column("ACTOR", "操作者", "actor", Form::Text),
        column("THINGS", "对象", "things", Form::Text),
        column("CODE", "拒绝码", "code", Form::Text),
    ],
    more: &[],
};

impl Access {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let from = self.from.map(|from| ("from", from.to_rfc3339_opts(SecondsFormat::AutoSi, true)));
        let query: Vec<_> = from.into_iter().chain(self.actor.map(|actor| ("actor", actor))).collect();
        let (found, more) = api.list("/access", &query, usize::try_from(self.limit).unwrap_or(usize::MAX)).await?;
        out.list(&ACCESS, &found)?;
        if more {
            out.note("there is more: ask with a larger --limit, or --from a later instant");
        }
        Ok(())
    }
}
