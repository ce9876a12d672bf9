//! The clock of billing: when a month is over in a contract's zone, its meters are read and its ledger is closed.
//!
//! Owns: when. Does not own: what is charged (`domain::flows::charging`).
//! Invariants: a month is closed only after every meter that ran in it was read up to its end and the flows have
//! charged those readings; each step is a command with an id of its own, so it can be repeated from any point.

use crate::ControlError;
use crate::holds::extend_due;
use chrono::{DateTime, TimeDelta, Utc};
use domain::billing::Ledger;
use domain::billing::ledger::{self, Heading};
use domain::billing::statement::ledger_key;
use domain::kernel::{Aggregate, CommandId, Id, Meta, Month, TenantId};
use domain::metering::{Meter, meter};
use eventlog::{Done, LogError, Refused};
use kit::Kit;
use projections::{meters, statements};
use std::time::Duration;

/// How often to look.
const EVERY: Duration = Duration::from_secs(60);
/// How long after its end a month stays open for the word of nodes that were away; later word goes to the next month.
const GRACE: TimeDelta = TimeDelta::hours(1);

/// Looks every minute.
pub async fn run(kit: &Kit) -> Result<(), ControlError> {
    loop {
        if let Err(error) = close_due(kit).await {
            tracing::error!(cause = %error, "months could not be closed; trying again in a minute");
        }
        if let Err(error) = extend_due(kit).await {
            tracing::error!(cause = %error, "holds could not be extended; trying again in a minute");
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Reads the meters of months that are over and closes their ledgers. Returns the ledgers that were closed.
pub async fn close_due(kit: &Kit) -> Result<Vec<String>, ControlError> {
    let now = kit.clock.now();
    let read_until = read_meters(kit, now).await?;
    kit.progress.flowed(read_until).await;
    // What the flows charged is below the head by now; the list of open ledgers has to show it.
    let head = last_position(kit).await?;
    if let Err(behind) = kit.progress.shown(head).await {
        let stopped: Vec<_> = kit.progress.stops().into_keys().collect();
        if stopped.is_empty() {
            tracing::warn!(head, "the read models are behind; months are closed the next time");
        } else {
            tracing::error!(
                head,
                ?stopped,
                cause = behind.detail(),
                "no month is closed while a read model has stopped"
            );
        }
        return Ok(vec![]);
    }
    let mut closed = vec![];
    for statement in statements::open(&kit.read).await? {
        let heading = Heading {
            customer: statement.customer.0,
            tenant: statement.tenant.0,
            month: statement.month.0,
            zone: statement.zone.0,
            currency: statement.currency.0,
        };
        if heading.month.period(heading.zone).to + GRACE <= now {
            closed.extend(close(kit, heading).await?);
        }
    }
    Ok(closed)
}

/// The log's last position, whichever process wrote it.
async fn last_position(kit: &Kit) -> Result<i64, LogError> {
    let log = kit.executor.log();
    let mut head = *log.head().borrow();
    while let Some(last) = log.read_all(head, 500).await?.last() {
        head = last.position;
    }
    Ok(head)
}

/// Reads every open meter at each month's end that lies behind it; the position of the last reading.
async fn read_meters(kit: &Kit, now: DateTime<Utc>) -> Result<i64, ControlError> {
    let mut position = 0;
    for open in meters::open(&kit.read).await? {
        let zone = open.zone.0;
        let mut month = Month::of(open.until_at.at(), zone);
        while month.period(zone).to <= now {
            let at = month.period(zone).to;
            let lease = open.lease.0;
            let step = Step { name: format!("read/{lease}/{month}"), tenant: open.tenant.0 };
            let done = give::<Meter>(kit, &lease.to_string(), step, meter::Command::Cut { at }).await?;
            position = done.unwrap_or_default().max(position);
            month = month.next();
        }
    }
    Ok(position)
}

async fn close(kit: &Kit, heading: Heading) -> Result<Option<String>, ControlError> {
    let key = ledger_key(heading.customer, heading.month);
    let step = Step { name: format!("close/{key}"), tenant: heading.tenant };
    Ok(give::<Ledger>(kit, &key, step, ledger::Command::Close { heading }).await?.map(|_| key))
}

/// What the clock does once: its name makes the command's id.
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) tenant: TenantId,
}

impl Step {
    fn meta(&self, kit: &Kit) -> Meta {
        let id = CommandId::derived(self.tenant, &format!("clock/{}", self.name));
        Meta {
            tenant: self.tenant,
            actor: "clock".into(),
            command: id,
            digest: eventlog::digest(&[&self.name]),
            correlation: id,
            causation: None,
            trace: None,
            occurred_at: kit.clock.now(),
        }
    }

    /// The position of what it did, or `None` where it was refused, which is reported.
    fn told<A: Aggregate>(
        self,
        key: &str,
        outcome: Result<Done<A::Event>, Refused<A::Error>>,
    ) -> Result<Option<i64>, ControlError> {
        match outcome {
            Ok(done) => Ok(Some(done.position)),
            Err(Refused::Domain(error)) => {
                let (stream, step) = (A::STREAM, self.name);
                tracing::warn!(stream, key, step, cause = %error, "the clock's command was refused");
                Ok(None)
            }
            Err(Refused::Log(error)) => Err(error.into()),
            Err(Refused::CommandReused) => Err(LogError::CommandReused.into()),
        }
    }
}

/// The position of what it did, or `None` where it was refused, which is reported.
pub(crate) async fn give<A: Aggregate>(
    kit: &Kit,
    key: &str,
    step: Step,
    command: A::Command,
) -> Result<Option<i64>, ControlError> {
    let outcome = kit.executor.execute::<A>(key, step.meta(kit), command).await;
    step.told::<A>(key, outcome)
}

/// The same, only if the stream has so many events; `None` too where it has moved on.
pub(crate) async fn give_at<A: Aggregate>(
    kit: &Kit,
    key: &str,
    step: Step,
    (command, expected): (A::Command, i64),
) -> Result<Option<i64>, ControlError> {
    match kit.executor.execute_at::<A>(key, step.meta(kit), command, expected).await {
        Err(Refused::Log(LogError::Moved { .. })) => Ok(None),
        outcome => step.told::<A>(key, outcome),
    }
}
