//! A log in memory and the flows that follow it.
//!
//! Owns: appending, idempotency by command id, facts as of a position, one step of the flows at a time.
//! Invariants: positions are gapless from 1, revisions from 0; a command that a flow gives twice has one effect; what a
//! flow's command is refused is remembered, since no event answers it.

use chrono::{DateTime, Utc};
use domain::flows::{Action, Facts, needs, react};
use domain::kernel::{Aggregate, CommandId, EventId, Id, Meta, Recorded, Rejection, StreamName, TenantId};
use domain::{Event, Fold, Give, Listed, State};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A log and how far the flows have followed it.
pub(crate) struct Platform {
    log: RefCell<Vec<Recorded>>,
    /// The places in the log of each stream's events.
    streams: RefCell<HashMap<StreamName, Vec<usize>>>,
    handled: Cell<usize>,
    given: Cell<u64>,
    pub(crate) now: Cell<DateTime<Utc>>,
    /// The arms whose command was refused, with the code: each is a defect.
    pub(crate) refused: RefCell<Vec<(&'static str, &'static str)>>,
}

impl Platform {
    /// An empty log.
    pub(crate) fn starting(now: DateTime<Utc>) -> Self {
        Self {
            log: RefCell::default(),
            streams: RefCell::default(),
            handled: Cell::new(0),
            given: Cell::new(0),
            now: Cell::new(now),
            refused: RefCell::default(),
        }
    }

    /// Everything that has happened.
    pub(crate) fn log(&self) -> Vec<Recorded> {
        self.log.borrow().clone()
    }

    /// All events, as this build reads them.
    pub(crate) fn events(&self) -> Vec<(StreamName, Event)> {
        self.log.borrow().iter().map(|stored| (stored.stream.clone(), Event::read(stored).unwrap())).collect()
    }

    /// The state of a stream now.
    pub(crate) fn state<A: Aggregate>(&self, key: impl std::fmt::Display) -> A {
        self.load(&StreamName::new(A::STREAM, key), i64::MAX)
    }

    fn load<A: Aggregate>(&self, stream: &StreamName, position: i64) -> A {
        let (log, streams) = (self.log.borrow(), self.streams.borrow());
        let places = streams.get(stream).into_iter().flatten();
        let past = places.map(|place| &log[*place]).take_while(|stored| stored.position <= position);
        past.fold(A::default(), |state, stored| state.evolve(&serde_json::from_str(&stored.payload).unwrap()))
    }

    /// Gives a command as somebody outside: each time it is another command.
    pub(crate) fn ask<A: Aggregate>(
        &self,
        key: impl std::fmt::Display,
        tenant: TenantId,
        command: A::Command,
    ) -> Result<(), A::Error> {
        self.given.set(self.given.get() + 1);
        let id = CommandId::derived(TenantId::PLATFORM, &self.given.get().to_string());
        let meta = Meta {
            tenant,
            actor: "system".into(),
            command: id,
            digest: String::new(),
            correlation: id,
            causation: None,
            trace: None,
            occurred_at: self.now.get(),
        };
        self.execute::<A>(&StreamName::new(A::STREAM, key), meta, command)
    }

    fn execute<A: Aggregate>(&self, stream: &StreamName, meta: Meta, command: A::Command) -> Result<(), A::Error> {
        let places = self.streams.borrow().get(stream).cloned().unwrap_or_default();
        if places.iter().any(|place| self.log.borrow()[*place].meta.command == meta.command) {
            return Ok(());
        }
        let events = self.load::<A>(stream, i64::MAX).decide(command)?;
        for event in events {
            let mut log = self.log.borrow_mut();
            let payload = serde_json::to_value(&event).unwrap();
            let position = i64::try_from(log.len()).unwrap() + 1;
            let mut streams = self.streams.borrow_mut();
            let places = streams.entry(stream.clone()).or_default();
            places.push(log.len());
            log.push(Recorded {
                event: EventId::derived(meta.command, &format!("{stream}/{}", places.len())),
                stream: stream.clone(),
                revision: i64::try_from(places.len()).unwrap() - 1,
                position,
                kind: format!("{}.{}", A::STREAM, payload["type"].as_str().unwrap()),
                schema: A::SCHEMA,
                meta: meta.clone(),
                recorded_at: self.now.get(),
                payload: payload.to_string(),
            });
        }
        Ok(())
    }

    /// What follows from an event, by the facts as they were then.
    pub(crate) fn follows(&self, cause: &Recorded) -> Vec<Action> {
        let event = Event::read(cause).unwrap();
        let mut facts = Facts::default();
        loop {
            let wanted = needs(cause, &event, &facts);
            if wanted.is_empty() {
                return react(cause, &event, &facts);
            }
            for stream in wanted {
                let at = At { platform: self, stream: &stream, position: cause.position };
                let state = State::of(stream.category()).unwrap().fold(&at);
                facts.know(stream, state);
            }
        }
    }

    fn give(&self, cause: &Recorded, action: Action) {
        let meta = Meta {
            tenant: action.tenant,
            actor: format!("flow:{}", action.arm),
            command: action.command_id(cause),
            digest: String::new(),
            correlation: cause.meta.correlation,
            causation: Some(cause.event),
            trace: None,
            occurred_at: self.now.get(),
        };
        let giver = Giver { platform: self, stream: action.stream, meta };
        if let Err(code) = action.command.give(&giver) {
            self.refused.borrow_mut().push((action.arm, code));
        }
    }

    /// Lets the flows handle one more event. Whether there was one.
    pub(crate) fn step(&self) -> bool {
        let next = self.log.borrow().get(self.handled.get()).cloned();
        let Some(cause) = next else { return false };
        for action in self.follows(&cause) {
            self.give(&cause, action);
        }
        self.handled.set(self.handled.get() + 1);
        true
    }

    /// Lets the flows handle all that there is and all that follows.
    pub(crate) fn settle(&self) {
        for _ in 0..100_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the flows go on for ever");
    }

    /// The checkpoint of the flows is lost: they begin again.
    pub(crate) fn forget(&self) {
        self.handled.set(0);
    }
}

/// Folds a stream up to a position.
struct At<'a> {
    platform: &'a Platform,
    stream: &'a StreamName,
    position: i64,
}

impl Fold for At<'_> {
    type Answer = State;

    fn fold<A: Listed>(&self) -> State {
        self.platform.load::<A>(self.stream, self.position).into_state()
    }
}

/// Gives a command to its stream; answers with the code of a refusal.
struct Giver<'a> {
    platform: &'a Platform,
    stream: StreamName,
    meta: Meta,
}

impl Give for Giver<'_> {
    type Answer = Result<(), &'static str>;

    fn give<A: Listed>(&self, command: A::Command) -> Self::Answer {
        self.platform.execute::<A>(&self.stream, self.meta.clone(), command).map_err(|error| error.code())
    }
}
