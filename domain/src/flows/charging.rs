//! Charging: a contract opens its customer's wallet; a lease that runs is metered; what the meter reads is rated and charged to the month's ledger; a charge is
//! consumed from the wallet; a ledger has a statement, which is numbered and issued when the ledger is closed.

#![expect(clippy::wildcard_enum_match_arm, reason = "a story looks at the few events that concern it")]

use super::running::wallet_key;
use super::{Action, Facts, id_of};
use crate::Event;
use crate::allocation::{Lease, lease};
use crate::billing::ledger::{Charge, Heading, Source, Unrated};
use crate::billing::line::LineKey;
use crate::billing::series::STATEMENTS;
use crate::billing::statement::{ledger_key, ledger_of, statement_of};
use crate::billing::{Ledger, Series, Statement, Wallet, ledger, series, statement, wallet};
use crate::catalog::rating::{Rated, rate};
use crate::catalog::{Contract, PriceBook, contract};
use crate::kernel::{Aggregate, LeaseId, Period, Recorded, StreamName, TenantId};
use crate::metering::{Meter, meter};

pub(super) fn needs(cause: &Recorded, event: &Event, facts: &Facts) -> Vec<StreamName> {
    let (first, then) = match event {
        Event::Lease(lease::Event::Started { .. } | lease::Event::Ended { .. })
        | Event::Ledger(ledger::Event::Deferred(_)) => (cause.stream.clone(), None),
        Event::Meter(meter::Event::Measured { .. } | meter::Event::Closed { .. }) => {
            let subject = facts.of::<Meter>(cause.stream.key()).and_then(Meter::subject);
            let Some(to) = subject.map(|of| &of.bill_to) else { return vec![cause.stream.clone()] };
            let book = StreamName::new(PriceBook::STREAM, to.book);
            return vec![cause.stream.clone(), book, StreamName::new(Contract::STREAM, to.contract)];
        }
        Event::Series(series::Event::Taken { statement, .. }) => {
            let heading = facts.of::<Statement>(statement).and_then(Statement::heading);
            let ledger = heading.map(|of| StreamName::new(Ledger::STREAM, ledger_key(of.customer, of.month)));
            (StreamName::new(Statement::STREAM, statement), ledger)
        }
        _ => return vec![],
    };
    [first].into_iter().chain(then).collect()
}

pub(super) fn react(cause: &Recorded, event: &Event, facts: &Facts) -> Vec<Action> {
    match event {
        Event::Lease(event) => of_lease(cause, event, facts).into_iter().collect(),
        Event::Meter(meter::Event::Measured { from, to, .. } | meter::Event::Closed { from, to, .. }) => {
            charges(cause, Period { from: *from, to: *to }, facts)
        }
        Event::Ledger(event) => of_ledger(cause, event, facts).into_iter().collect(),
        Event::Contract(contract::Event::Signed(terms)) => {
            let open = wallet::Command::Open { currency: terms.currency };
            vec![Action::new::<Wallet>("open_wallet", terms.tenant, wallet_key(terms.customer), open)]
        }
        Event::Series(series::Event::Taken { statement, number }) => {
            let Some(heading) = facts.of::<Statement>(statement).and_then(Statement::heading) else { return vec![] };
            let Some(ledger) = facts.of::<Ledger>(ledger_key(heading.customer, heading.month)) else { return vec![] };
            let number = format!("{}-{number:06}", heading.month);
            let issue = statement::Command::Issue { number, lines: ledger.lines(), total: ledger.total() };
            vec![Action::new::<Statement>("issue_statement", heading.tenant, statement, issue)]
        }
        _ => vec![],
    }
}

fn of_lease(cause: &Recorded, event: &lease::Event, facts: &Facts) -> Option<Action> {
    let lease = id_of::<LeaseId>(cause)?;
    let grant = facts.of::<Lease>(lease).and_then(Lease::grant)?;
    let (arm, command) = match event {
        lease::Event::Started { at } => {
            let subject = meter::Subject {
                lease,
                job: grant.job,
                tenant: grant.tenant,
                bill_to: grant.bill_to.clone(),
                resource: grant.resource.clone(),
                milli: grant.milli,
            };
            ("open_meter", meter::Command::Open { subject, from: *at })
        }
        lease::Event::Ended { started_at: Some(_), at, .. } => ("close_meter", meter::Command::Close { at: *at }),
        lease::Event::Ended { started_at: None, .. } | lease::Event::Granted(_) | lease::Event::Voided => return None,
    };
    Some(Action::new::<Meter>(arm, grant.tenant, lease, command))
}

fn charges(cause: &Recorded, reading: Period, facts: &Facts) -> Vec<Action> {
    let Some(subject) = facts.of::<Meter>(cause.stream.key()).and_then(Meter::subject) else { return vec![] };
    let to = &subject.bill_to;
    let Some(book) = facts.of::<PriceBook>(to.book) else { return vec![] };
    let parts = rate(book, &to.sku, to.zone, subject.milli, reading).unwrap_or_default();
    // A project's use is on the bill of the tenant above it that has the contract.
    let signed = facts.of::<Contract>(to.contract).and_then(Contract::terms);
    let payer = signed.map_or(subject.tenant, |terms| terms.tenant);
    let of = |(part, rated)| charge(Source { event: cause.event, part }, payer, subject, rated);
    (0..).zip(parts).map(of).collect()
}

fn charge(source: Source, payer: TenantId, subject: &meter::Subject, rated: Rated) -> Action {
    let to = &subject.bill_to;
    let heading =
        Heading { customer: to.customer, tenant: payer, month: rated.month, zone: to.zone, currency: to.currency };
    let key = ledger_key(to.customer, rated.month);
    let (lease, job, period, quantity) = (subject.lease, subject.job, rated.period, rated.quantity);
    let command = match rated.price {
        Some((price, price_version)) => {
            let key = LineKey { sku: to.sku.clone(), book: to.book, price_version };
            let unit = subject.resource.unit();
            let charge = Charge { source, lease, job, period, key, unit, price, quantity };
            ledger::Command::Charge { heading, charge }
        }
        None => {
            let unrated = Unrated { source, lease, job, period, sku: to.sku.clone(), quantity };
            ledger::Command::RecordUnrated { heading, unrated }
        }
    };
    Action { part: source.part, ..Action::new::<Ledger>("charge_reading", subject.tenant, key, command) }
}

fn of_ledger(cause: &Recorded, event: &ledger::Event, facts: &Facts) -> Option<Action> {
    let (tenant, (customer, month)) = (cause.meta.tenant, ledger_of(cause.stream.key())?);
    let statement = statement_of(customer, month);
    match event {
        ledger::Event::Opened(heading) => {
            let draft = statement::Command::Draft(heading.clone());
            Some(Action::new::<Statement>("draft_statement", heading.tenant, statement, draft))
        }
        ledger::Event::Charged { charge, amount, .. } => {
            let consume = wallet::Command::Consume { source: charge.source, job: charge.job, amount: *amount };
            Some(Action::new::<Wallet>("consume_charge", tenant, wallet_key(customer), consume))
        }
        ledger::Event::Deferred(charge) => {
            let heading = facts.of::<Ledger>(cause.stream.key()).and_then(Ledger::heading)?;
            let heading = Heading { month: month.next(), ..heading.clone() };
            let key = ledger_key(customer, heading.month);
            let charge = ledger::Command::Charge { heading, charge: charge.clone() };
            Some(Action::new::<Ledger>("charge_deferred", tenant, key, charge))
        }
        ledger::Event::Closed { .. } => {
            let take = series::Command::Take { statement };
            Some(Action::new::<Series>("number_statement", tenant, STATEMENTS, take))
        }
        ledger::Event::Unrated(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::contract::Terms;
    use crate::kernel::{CommandId, EventId, Id, Meta, TenantId};
    use chrono::DateTime;

    #[test]
    fn a_contract_opens_its_customers_wallet() {
        let tenant = TenantId::derived(TenantId::PLATFORM, "lab");
        let bill_to = crate::kernel::spec::bill_to();
        let (customer, book, zone, currency) = (bill_to.customer, bill_to.book, bill_to.zone, bill_to.currency);
        let event = Event::from(contract::Event::Signed(Terms { tenant, customer, book, zone, currency }));
        let command = CommandId::derived(tenant, "sign");
        let meta = Meta {
            tenant,
            actor: "system".into(),
            command,
            digest: String::new(),
            correlation: command,
            causation: None,
            trace: None,
            occurred_at: DateTime::UNIX_EPOCH,
        };
        let cause = Recorded {
            event: EventId::derived(command, "0"),
            stream: StreamName::new("contract", bill_to.contract),
            revision: 0,
            position: 1,
            kind: "contract.signed".into(),
            schema: 1,
            meta,
            recorded_at: DateTime::UNIX_EPOCH,
            payload: event.encode().unwrap(),
        };
        let [action] = &super::super::react(&cause, &event, &Facts::default())[..] else { panic!("one action") };
        assert_eq!((action.arm, action.tenant), ("open_wallet", tenant));
        assert_eq!(action.stream, StreamName::new(Wallet::STREAM, wallet_key(customer)));
    }
}
