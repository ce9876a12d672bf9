//! Nodes and pools, for operators.
//!
//! Invariants: made-up cards are called SIMULATED in every language; a join token is written once, and is not kept.

use crate::cli::api::Api;
use crate::cli::fault::Fault;
use crate::cli::find;
use crate::cli::output::{Form, Kind, Output, column, instant, text};
use crate::cli::words::{self, Lang};
use serde_json::{Value, json};

/// Nodes.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Node {
    /// List nodes, with what is in use.
    List,
    /// Let a node take no new work; what runs there goes on.
    Drain {
        /// By name or id.
        node: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
    /// Let a node take new work again.
    Resume {
        /// By name or id.
        node: String,
    },
    /// Give a node up that will not come back: its jobs start elsewhere or fail, and what ran is billed up to when it was
    /// last heard of.
    Lose {
        /// By name or id.
        node: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
}

/// Pools.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Pool {
    /// List pools.
    List,
    /// Create a pool.
    Add {
        /// What people call it.
        name: String,
    },
    /// Issue a token with which the agent of one machine joins a pool.
    JoinToken {
        /// By name or id.
        pool: String,
        /// For how many seconds it may be used; an hour, unless it is said.
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..=604_800))]
        expires_in: Option<i64>,
    },
}

const NODE: Kind = Kind {
    name: "Node",
    id: "id",
    columns: &[
        column("NODE", "节点", "id", Form::Text),
        column("NAME", "名称", "name", Form::Text),
        column("STATE", "状态", "draining", Form::Of(state)),
        column("CARDS", "卡", "cards", Form::Of(cards)),
        column("CORES", "核", "milli_cores", Form::Of(|node, _| cores(node))),
        column("MEMORY MIB", "内存 MIB", "memory_mib", Form::Of(|node, _| memory(node))),
        column("LAST SEEN", "最近心跳", "last_seen_at", Form::Time),
        column("AGENT", "代理版本", "agent", Form::Text),
        column("PLATFORM", "系统", "platform", Form::Text),
        column("POOL", "资源池", "pool", Form::Text),
    ],
    more: &[],
};

const POOL: Kind = Kind {
    name: "Pool",
    id: "id",
    columns: &[column("POOL", "资源池", "id", Form::Text), column("NAME", "名称", "name", Form::Text)],
    more: &[],
};

const JOIN_TOKEN: Kind = Kind { name: "JoinToken", id: "token", columns: &[], more: &[] };

fn state(node: &Value, lang: Lang) -> String {
    if node["draining"] == true {
        format!("{}: {}", lang.say("draining", "排空中"), text(&node["drain_reason"]))
    } else {
        lang.say("ready", "可用").to_owned()
    }
}

/// How many are in use of how many, of which models, and whether they are real.
fn cards(node: &Value, lang: Lang) -> String {
    let mut cards = format!("{}/{} {}", text(&node["cards_used"]), text(&node["cards"]), text(&node["card_models"]));
    if node["simulated"] == true {
        cards.push_str(lang.say(" SIMULATED", " SIMULATED 模拟卡"));
    }
    cards.trim_end().to_owned()
}

fn cores(node: &Value) -> String {
    let units = |field: &str| words::units(node[field].as_i64().unwrap_or_default());
    format!("{}/{}", units("milli_cores_used"), units("milli_cores"))
}

fn memory(node: &Value) -> String {
    format!("{}/{}", text(&node["memory_mib_used"]), text(&node["memory_mib"]))
}

impl Node {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        let (node, path, body, note) = match self {
            Self::List => {
                let (nodes, _) = api.list("/nodes", &[], usize::MAX).await?;
                return out.list(&NODE, &nodes);
            }
            Self::Drain { node, reason } => {
                (node, "drain", Some(json!({ "reason": reason })), "it takes no new work; what runs there goes on")
            }
            Self::Resume { node } => (node, "resume", None, "it takes new work"),
            Self::Lose { node, reason } => {
                let note = "it is given up; it takes no work until its agent is heard of again";
                (node, "lose", Some(json!({ "reason": reason })), note)
            }
        };
        let id = find::node(api, &node).await?;
        let changed = api.post(&format!("/nodes/{id}/{path}"), body.as_ref()).await?;
        out.done(&NODE, &changed, note)
    }
}

impl Pool {
    pub(crate) async fn run(self, api: &Api, out: &mut Output) -> Result<(), Fault> {
        match self {
            Self::List => out.list(&POOL, &api.whole("/pools", &[]).await?),
            Self::Add { name } => {
                let made = api.post("/pools", Some(&json!({ "name": name }))).await?;
                out.done(&POOL, &made, &format!("machines join it with: kashi pool join-token {}", text(&made["id"])))
            }
            Self::JoinToken { pool, expires_in } => {
                let id = find::pool(api, &pool).await?;
                let body = json!({ "expires_in_s": expires_in });
                let issued = api.post(&format!("/pools/{id}/join-tokens"), Some(&body)).await?;
                let until = instant(&issued["expires_at"]).map(words::time).unwrap_or_default();
                let note = format!("one machine may join with it until {until}; it is not shown again");
                out.done(&JOIN_TOKEN, &issued, &note)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_cards_are_never_taken_for_real_ones() {
        let node = |simulated: bool| json!({ "cards": 4, "cards_used": 1, "card_models": "4 × sim-a100", "simulated": simulated });
        assert_eq!(cards(&node(true), Lang::En), "1/4 4 × sim-a100 SIMULATED");
        assert_eq!(cards(&node(true), Lang::Zh), "1/4 4 × sim-a100 SIMULATED 模拟卡");
        assert_eq!(cards(&node(false), Lang::En), "1/4 4 × sim-a100");
    }

    #[test]
    fn what_is_in_use_stands_before_what_there_is() {
        let node = json!({ "milli_cores": 8000, "milli_cores_used": 500, "memory_mib": 100, "memory_mib_used": 0,
                           "draining": true, "drain_reason": "fan" });
        assert_eq!((cores(&node), memory(&node)), ("0.5/8".into(), "0/100".into()));
        assert_eq!((state(&node, Lang::En), state(&json!({}), Lang::Zh)), ("draining: fan".into(), "可用".into()));
    }
}
