//! A pool (资源池): nodes that are ordered and scheduled together, and how a machine joins them.
//!
//! Owns: the pool's name, its join tokens and who used them. Does not own: the node itself; a flow registers it after
//! `NodeJoined`.
//!
//! Invariants:
//! - a join token is used by one credential only; the same one again gets the same node;
//! - only hashes of tokens and credentials are known here.

use super::inventory::{BadInventory, Inventory, is_line};
use crate::kernel::{Aggregate, Id, Kind, MemberId, NodeId, PoolId, Rejection};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const NAME_LENGTH_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Pool {
    #[default]
    Absent,
    Created {
        pool: PoolId,
        name: String,
        /// By the token's hash.
        tokens: BTreeMap<String, Token>,
    },
}

/// A join token.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Open {
        /// The first instant at which it is no longer valid.
        expires_at: DateTime<Utc>,
    },
    Used {
        credential: String,
        node: NodeId,
    },
}

#[derive(Debug, Clone)]
pub enum Command {
    Create {
        pool: PoolId,
        name: String,
    },
    IssueJoinToken {
        /// SHA-256 of the token, in hex.
        hash: String,
        /// The first instant at which it is no longer valid.
        expires_at: DateTime<Utc>,
        by: MemberId,
    },
    Join {
        /// SHA-256 of the token, in hex.
        hash: String,
        /// SHA-256 of the agent's credential, in hex.
        credential: String,
        /// What people call the machine.
        name: String,
        inventory: Inventory,
        at: DateTime<Utc>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Created { pool: PoolId, name: String },
    JoinTokenIssued { hash: String, expires_at: DateTime<Utc>, by: MemberId },
    NodeJoined { hash: String, node: NodeId, credential: String, name: String, inventory: Inventory },
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("there is no such pool")]
    NotFound,
    #[error("the pool already exists")]
    AlreadyExists,
    #[error(
        "the name of a pool or a node has 1 to {NAME_LENGTH_MAX} characters, no control character and no space at its ends"
    )]
    BadName,
    #[error("this is not a join token of the pool; ask an operator for one")]
    JoinTokenUnknown,
    #[error("the join token was used by another agent; ask an operator for a new one")]
    JoinTokenUsed,
    #[error("the join token expired; ask an operator for a new one")]
    JoinTokenExpired,
    #[error(transparent)]
    BadInventory(#[from] BadInventory),
}

impl Pool {
    /// The node that a credential joined as with the token of this hash.
    pub fn node_of(&self, hash: &str, credential: &str) -> Option<NodeId> {
        let Self::Created { tokens, .. } = self else { return None };
        match tokens.get(hash)? {
            Token::Used { credential: used, node } if used == credential => Some(*node),
            Token::Used { .. } | Token::Open { .. } => None,
        }
    }
}

impl Aggregate for Pool {
    const STREAM: &'static str = "pool";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        match (self, command) {
            (Self::Absent, Command::Create { name, .. }) if !is_line(&name, NAME_LENGTH_MAX) => Err(Error::BadName),
            (Self::Absent, Command::Create { pool, name }) => Ok(vec![Event::Created { pool, name }]),
            (Self::Absent, Command::IssueJoinToken { .. } | Command::Join { .. }) => Err(Error::NotFound),
            (Self::Created { .. }, Command::Create { .. }) => Err(Error::AlreadyExists),
            (Self::Created { tokens, .. }, Command::IssueJoinToken { hash, .. }) if tokens.contains_key(&hash) => {
                Ok(vec![])
            }
            (Self::Created { .. }, Command::IssueJoinToken { hash, expires_at, by }) => {
                Ok(vec![Event::JoinTokenIssued { hash, expires_at, by }])
            }
            (Self::Created { pool, tokens, .. }, Command::Join { hash, credential, name, inventory, at }) => {
                match tokens.get(&hash) {
                    None => Err(Error::JoinTokenUnknown),
                    Some(Token::Used { credential: used, .. }) if *used == credential => Ok(vec![]),
                    Some(Token::Used { .. }) => Err(Error::JoinTokenUsed),
                    Some(Token::Open { expires_at }) if at >= *expires_at => Err(Error::JoinTokenExpired),
                    Some(Token::Open { .. }) if !is_line(&name, NAME_LENGTH_MAX) => Err(Error::BadName),
                    Some(Token::Open { .. }) => {
                        inventory.check()?;
                        let node = NodeId::derived(*pool, &hash);
                        Ok(vec![Event::NodeJoined { hash, node, credential, name, inventory }])
                    }
                }
            }
        }
    }

    fn evolve(self, event: &Event) -> Self {
        match (self, event) {
            (_, Event::Created { pool, name }) => {
                Self::Created { pool: *pool, name: name.clone(), tokens: BTreeMap::new() }
            }
            (Self::Created { pool, name, mut tokens }, Event::JoinTokenIssued { hash, expires_at, .. }) => {
                tokens.insert(hash.clone(), Token::Open { expires_at: *expires_at });
                Self::Created { pool, name, tokens }
            }
            (Self::Created { pool, name, mut tokens }, Event::NodeJoined { hash, node, credential, .. }) => {
                tokens.insert(hash.clone(), Token::Used { credential: credential.clone(), node: *node });
                Self::Created { pool, name, tokens }
            }
            (Self::Absent, Event::JoinTokenIssued { .. } | Event::NodeJoined { .. }) => Self::Absent,
        }
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "pool.not_found",
            Self::AlreadyExists => "pool.already_exists",
            Self::BadName => "pool.bad_name",
            Self::JoinTokenUnknown => "pool.join_token_unknown",
            Self::JoinTokenUsed => "pool.join_token_used",
            Self::JoinTokenExpired => "pool.join_token_expired",
            Self::BadInventory(_) => "pool.bad_inventory",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::BadName | Self::BadInventory(_) => Kind::Invalid,
            Self::JoinTokenUnknown | Self::JoinTokenExpired => Kind::Forbidden,
            Self::AlreadyExists | Self::JoinTokenUsed => Kind::Conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel::{TenantId, fold, spec::given},
        pools::inventory::example,
    };
    use chrono::TimeDelta;

    const END: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn pool() -> PoolId {
        PoolId::derived(TenantId::PLATFORM, "main")
    }

    fn operator() -> MemberId {
        MemberId::derived(TenantId::PLATFORM, "root")
    }

    fn created() -> Event {
        Event::Created { pool: pool(), name: "main".into() }
    }

    fn issued() -> Event {
        Event::JoinTokenIssued { hash: "t1".into(), expires_at: END, by: operator() }
    }

    fn join(hash: &str, credential: &str, at: DateTime<Utc>) -> Command {
        let (hash, credential) = (hash.into(), credential.into());
        Command::Join { hash, credential, name: "n1".into(), inventory: example(), at }
    }

    fn joined() -> Event {
        let node = NodeId::derived(pool(), "t1");
        let (hash, credential) = ("t1".into(), "c1".into());
        Event::NodeJoined { hash, node, credential, name: "n1".into(), inventory: example() }
    }

    fn before() -> DateTime<Utc> {
        END - TimeDelta::microseconds(1)
    }

    #[test]
    fn is_created_once_with_a_name() {
        let create = |name: &str| Command::Create { pool: pool(), name: name.into() };
        given::<Pool>([]).when(create("main")).then([created()]);
        given::<Pool>([]).when(create("")).then_refused(Error::BadName);
        given::<Pool>([created()]).when(create("main")).then_refused(Error::AlreadyExists);
    }

    #[test]
    fn issues_a_token_once() {
        let issue = || Command::IssueJoinToken { hash: "t1".into(), expires_at: END, by: operator() };
        given::<Pool>([]).when(issue()).then_refused(Error::NotFound);
        given::<Pool>([created()]).when(issue()).then([issued()]);
        given::<Pool>([created(), issued()]).when(issue()).then([]);
        given::<Pool>([created(), issued(), joined()]).when(issue()).then([]);
    }

    #[test]
    fn is_joined_with_a_known_token_that_is_not_over() {
        given::<Pool>([]).when(join("t1", "c1", before())).then_refused(Error::NotFound);
        given::<Pool>([created()]).when(join("t1", "c1", before())).then_refused(Error::JoinTokenUnknown);
        given::<Pool>([created(), issued()]).when(join("t1", "c1", before())).then([joined()]);
        given::<Pool>([created(), issued()]).when(join("t1", "c1", END)).then_refused(Error::JoinTokenExpired);
    }

    #[test]
    fn a_token_is_for_one_credential_which_may_ask_again_even_later() {
        let history = [created(), issued(), joined()];
        given::<Pool>(&history).when(join("t1", "c1", END)).then([]);
        given::<Pool>(&history).when(join("t1", "c2", before())).then_refused(Error::JoinTokenUsed);
        let pool = fold::<Pool>(&history);
        assert_eq!(pool.node_of("t1", "c1"), Some(NodeId::derived(self::pool(), "t1")));
        assert_eq!(pool.node_of("t1", "c2"), None);
        assert_eq!(pool.node_of("t2", "c1"), None);
        assert_eq!(fold::<Pool>(&[created(), issued()]).node_of("t1", "c1"), None);
    }

    #[test]
    fn is_not_joined_by_an_impossible_machine() {
        let history = [created(), issued()];
        let with = |name: &str, inventory| Command::Join {
            hash: "t1".into(),
            credential: "c1".into(),
            name: name.into(),
            inventory,
            at: before(),
        };
        let inventory = Inventory { milli_cores: 0, ..example() };
        let refused = Error::BadInventory(BadInventory::MilliCores(0));
        given::<Pool>(&history).when(with("n1", inventory)).then_refused(refused);
        given::<Pool>(&history).when(with("\u{1b}[0m", example())).then_refused(Error::BadName);
    }
}
