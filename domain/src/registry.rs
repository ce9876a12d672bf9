//! Every aggregate there is, in one list. A new one is one line here.
//!
//! Owns: the platform-wide `Event`, `State` and `Command`, and reading stored events back. Does not own: any rule.
//! Invariants: a stored event of a known category that cannot be read is an error, never skipped; categories of others
//! (`ext_…`, `access`) are not ours to read.

use crate::kernel::{Aggregate, Recorded, StreamName};
use crate::{allocation, billing, catalog, identity, metering, ordering, pools, quota};

macro_rules! aggregates {
    ($($name:ident = $aggregate:ty;)+) => {
        /// Any event of the platform, for those who read the whole log.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($name(<$aggregate as Aggregate>::Event),)+
        }

        /// The state of any stream.
        #[derive(Debug, Clone)]
        pub enum State {
            $($name($aggregate),)+
        }

        /// A command to any stream.
        #[derive(Debug, Clone)]
        pub enum Command {
            $($name(<$aggregate as Aggregate>::Command),)+
        }

        impl Event {
            /// Reads a stored event back.
            pub fn read(stored: &Recorded) -> Result<Self, Unreadable> {
                Self::decode(stored.stream.category(), &stored.payload)
                    .map_err(|cause| Unreadable { stream: stored.stream.clone(), position: stored.position, cause })
            }

            /// Reads the JSON of a category's event. `None` as the cause: no aggregate has the category.
            pub fn decode(category: &str, json: &str) -> Result<Self, Option<serde_json::Error>> {
                match category {
                    $(<$aggregate as Aggregate>::STREAM => Ok(Self::$name(serde_json::from_str(json).map_err(Some)?)),)+
                    _ => Err(None),
                }
            }

            /// The event as it is stored.
            pub fn encode(&self) -> Result<String, serde_json::Error> {
                match self {
                    $(Self::$name(event) => serde_json::to_string(event),)+
                }
            }

            /// The category that it belongs to.
            pub fn category(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$aggregate as Aggregate>::STREAM,)+
                }
            }
        }

        impl State {
            /// The state of a stream before its first event. `None` where no aggregate has the category.
            pub fn of(category: &str) -> Option<Self> {
                match category {
                    $(<$aggregate as Aggregate>::STREAM => Some(Self::$name(<$aggregate>::default())),)+
                    _ => None,
                }
            }

            /// Hands the aggregate, as a type, to whoever can fold its stream.
            pub fn fold<F: Fold>(&self, folder: &F) -> F::Answer {
                match self {
                    $(Self::$name(_) => folder.fold::<$aggregate>(),)+
                }
            }
        }

        impl Command {
            /// The category of the streams that take it.
            pub fn category(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$aggregate as Aggregate>::STREAM,)+
                }
            }

            /// Hands the command to whoever can give it, with its aggregate as the type.
            pub fn give<G: Give>(self, giver: &G) -> G::Answer {
                match self {
                    $(Self::$name(command) => giver.give::<$aggregate>(command),)+
                }
            }
        }

        /// The categories of all aggregates.
        pub const CATEGORIES: &[&str] = &[$(<$aggregate as Aggregate>::STREAM,)+];

        $(impl From<<$aggregate as Aggregate>::Event> for Event {
            fn from(event: <$aggregate as Aggregate>::Event) -> Self {
                Self::$name(event)
            }
        }

        impl Listed for $aggregate {
            fn state(state: &State) -> Option<&Self> {
                match state {
                    State::$name(state) => Some(state),
                    #[expect(clippy::allow_attributes, reason = "with one aggregate there would be no other")]
                    #[allow(unreachable_patterns, clippy::wildcard_enum_match_arm, reason = "any other aggregate's state")]
                    _ => None,
                }
            }

            fn into_state(self) -> State {
                State::$name(self)
            }

            fn command(command: Self::Command) -> Command {
                Command::$name(command)
            }
        })+
    };
}

aggregates! {
    ApiKey = identity::ApiKey;
    Contract = catalog::Contract;
    Job = allocation::Job;
    Lease = allocation::Lease;
    Ledger = billing::Ledger;
    Member = identity::Member;
    Meter = metering::Meter;
    Node = pools::Node;
    Order = ordering::Order;
    Plan = allocation::Plan;
    Pool = pools::Pool;
    PriceBook = catalog::PriceBook;
    Product = catalog::Product;
    Quota = quota::Allowance;
    Series = billing::Series;
    Statement = billing::Statement;
    Tenant = identity::Tenant;
    Wallet = billing::Wallet;
}

/// An aggregate of the list.
pub trait Listed: Aggregate {
    /// Its state, if it is of this aggregate.
    fn state(state: &State) -> Option<&Self>;
    /// Its state among all others.
    fn into_state(self) -> State;
    /// A command to it among all others.
    fn command(command: Self::Command) -> Command;
}

/// Somebody who can give a command to a stream of any aggregate.
pub trait Give {
    /// What comes of it.
    type Answer;
    /// Gives it.
    fn give<A: Listed>(&self, command: A::Command) -> Self::Answer;
}

/// Somebody who can fold a stream of any aggregate.
pub trait Fold {
    /// What comes of it.
    type Answer;
    /// Folds it.
    fn fold<A: Listed>(&self) -> Self::Answer;
}

/// A stored event that this build cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the event at position {position} in `{stream}` cannot be read by this version")]
pub struct Unreadable {
    stream: StreamName,
    position: i64,
    #[source]
    cause: Option<serde_json::Error>,
}
