//! A series: numbers without gaps, each given once for one thing.
//!
//! Invariants: numbers count from 1; the same thing asks again and gets its number.

use crate::kernel::{Aggregate, Kind, Rejection, StatementId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of the stream that numbers statements.
pub const STATEMENTS: &str = "statement";

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    taken: BTreeMap<StatementId, u64>,
}

#[derive(Debug, Clone)]
pub enum Command {
    Take { statement: StatementId },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Taken { statement: StatementId, number: u64 },
}

/// Numbers do not run out.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {}

impl Aggregate for Series {
    const STREAM: &'static str = "series";
    type Command = Command;
    type Event = Event;
    type Error = Error;

    fn decide(&self, command: Command) -> Result<Vec<Event>, Error> {
        let Command::Take { statement } = command;
        if self.taken.contains_key(&statement) {
            return Ok(vec![]);
        }
        let number = self.taken.values().max().copied().unwrap_or_default() + 1;
        Ok(vec![Event::Taken { statement, number }])
    }

    fn evolve(mut self, event: &Event) -> Self {
        let Event::Taken { statement, number } = event;
        self.taken.insert(*statement, *number);
        self
    }
}

impl Rejection for Error {
    fn code(&self) -> &'static str {
        match *self {}
    }

    fn kind(&self) -> Kind {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::spec::given;
    use crate::kernel::{Id, TenantId};

    #[test]
    fn gives_each_thing_one_number_without_gaps() {
        let statement = |name: &str| -> StatementId { Id::derived(TenantId::PLATFORM, name) };
        let taken = |name: &str, number| Event::Taken { statement: statement(name), number };
        let take = |name: &str| Command::Take { statement: statement(name) };
        given::<Series>([]).when(take("a")).then([taken("a", 1)]);
        given::<Series>([taken("a", 1)]).when(take("b")).then([taken("b", 2)]);
        given::<Series>([taken("a", 1), taken("b", 2)]).when(take("a")).then([]);
    }
}
