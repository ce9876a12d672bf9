//! What must be true of a log whatever happened on the way to it, by an account of our own.
//!
//! Owns: the account: what each machine's own record says that each lease used. Does not own: making events.
//! Invariants: positions and revisions have no hole; what was acknowledged is there; each lease ended once and has a
//! job; what was charged is what was used, to the millisecond, once; every posting sums to zero.

use crate::faults::client::Acks;
use crate::stored;
use crate::world::World;
use chrono::{DateTime, Utc};
use domain::Event;
use domain::allocation::job::{self, Outcome};
use domain::allocation::lease::{self, Grant};
use domain::billing::{Wallet, ledger, wallet};
use domain::kernel::{Aggregate, JobId, LeaseId, Period, Recorded, StreamName};
use domain::quota::Allowance;
use rust_decimal::{Decimal, RoundingStrategy};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Milli-units × milliseconds of a unit-hour.
const UNIT_HOUR: i64 = 1000 * 3_600_000;

/// When a lease's work began and ended, by its machine's own record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// The record of all machines.
pub type Spans = BTreeMap<LeaseId, Span>;

/// What a log came to.
#[derive(Debug, Default)]
pub struct Account {
    pub events: usize,
    pub jobs: usize,
    pub leases: usize,
    /// Leases that were lost with their node.
    pub lost: usize,
    /// Milli-units × milliseconds that were used and charged.
    pub quantity: i64,
    pub amount: Decimal,
}

/// A lease as the log tells it.
struct Lease {
    grant: Grant,
    started_at: Option<DateTime<Utc>>,
    /// How it ended; `None` in it: it was void.
    ended: Option<Option<(DateTime<Utc>, Outcome)>>,
}

/// Looks at a platform that has come to rest: its log, what is still held, and its read models against those that the
/// log makes anew. Stops where something is wrong.
pub async fn of_world(world: &World, acks: &Acks, spans: &Spans) -> Account {
    let events = stored::events(world).await;
    let account = audit(&events, acks, spans);
    let executor = &world.kit.executor;
    let streams: BTreeSet<&StreamName> = events.iter().map(|event| &event.stream).collect();
    for stream in streams {
        let held = match stream.category() {
            Allowance::STREAM => Decimal::from(executor.load::<Allowance>(stream.key()).await.unwrap().state.in_use()),
            Wallet::STREAM => executor.load::<Wallet>(stream.key()).await.unwrap().state.held(),
            _ => Decimal::ZERO,
        };
        assert_eq!(held, Decimal::ZERO, "{stream} holds something for nobody");
    }
    stored::rebuilt_equals_live(world).await;
    account
}

/// Looks at a log.
fn audit(stored: &[Recorded], acks: &Acks, spans: &Spans) -> Account {
    gapless(stored);
    acknowledged(stored, acks);
    let ours = stored.iter().filter(|event| domain::CATEGORIES.contains(&event.stream.category()));
    let events: Vec<(&Recorded, Event)> = ours.map(|stored| (stored, Event::read(stored).unwrap())).collect();
    let jobs = jobs(&events);
    let leases = leases(&events);
    for (id, lease) in &leases {
        assert!(jobs.contains(&lease.grant.job), "{id} has no job that ended");
    }
    let used: BTreeMap<LeaseId, i64> =
        leases.iter().map(|(id, lease)| (*id, used(*id, lease, spans.get(id)))).collect();
    for (id, span) in spans.iter().filter(|(_, span)| span.started_at.is_some()) {
        assert!(leases.contains_key(id), "{id} ran from {:?} and is not in the log", span.started_at);
    }
    let amount = charged(&events, &used);
    let lost = |lease: &&Lease| matches!(lease.ended, Some(Some((_, Outcome::Lost))));
    Account {
        events: stored.len(),
        jobs: jobs.len(),
        leases: leases.len(),
        lost: leases.values().filter(lost).count(),
        quantity: used.values().sum(),
        amount,
    }
}

fn gapless(stored: &[Recorded]) {
    let mut revisions: HashMap<&str, i64> = HashMap::new();
    for (position, event) in (1..).zip(stored) {
        assert_eq!(event.position, position, "positions have no hole");
        let next = revisions.entry(event.stream.as_str()).or_default();
        assert_eq!(event.revision, *next, "the revisions of {} have no hole", event.stream);
        *next += 1;
    }
    let ids: BTreeSet<_> = stored.iter().map(|event| event.event).collect();
    assert_eq!(ids.len(), stored.len(), "an event is there twice");
}

/// Each answer named a position; there is an event of the stream that it was about.
fn acknowledged(stored: &[Recorded], acks: &Acks) {
    for ack in &acks.0 {
        let there = usize::try_from(ack.position - 1).ok().and_then(|index| stored.get(index));
        let found = there.map(|event| event.stream.as_str());
        assert_eq!(found, Some(ack.stream.as_str()), "{ack:?} was acknowledged and is not there");
    }
}

/// All jobs; each has ended once.
fn jobs(events: &[(&Recorded, Event)]) -> BTreeSet<JobId> {
    let of = |wanted: fn(&job::Event) -> bool| -> Vec<JobId> {
        let mine = events.iter().filter(|(_, event)| matches!(event, Event::Job(event) if wanted(event)));
        mine.map(|(stored, _)| stored.stream.key().parse().unwrap()).collect()
    };
    let submitted = of(|event| matches!(event, job::Event::Submitted(_)));
    let ended = of(|event| matches!(event, job::Event::Ended { .. }));
    let once: BTreeSet<JobId> = ended.iter().copied().collect();
    assert_eq!(once.len(), ended.len(), "a job ended twice");
    for job in &submitted {
        assert!(once.contains(job), "{job} has not ended");
    }
    assert_eq!(once.len(), submitted.len(), "a job ended that was not submitted");
    once
}

fn leases(events: &[(&Recorded, Event)]) -> BTreeMap<LeaseId, Lease> {
    let mut leases: BTreeMap<LeaseId, Lease> = BTreeMap::new();
    for (stored, event) in events {
        let Event::Lease(event) = event else { continue };
        let id: LeaseId = stored.stream.key().parse().unwrap();
        match event {
            lease::Event::Granted(grant) => {
                let lease = Lease { grant: grant.clone(), started_at: None, ended: None };
                assert!(leases.insert(id, lease).is_none(), "{id} was granted twice");
            }
            lease::Event::Started { at } => {
                let known = leases.get_mut(&id).unwrap();
                assert_eq!(known.started_at.replace(*at), None, "{id} started twice");
            }
            lease::Event::Ended { at, outcome, .. } => {
                let known = leases.get_mut(&id).unwrap().ended.replace(Some((*at, outcome.clone())));
                assert_eq!(known, None, "{id} ended twice");
            }
            lease::Event::Voided => {
                assert_eq!(leases.get_mut(&id).unwrap().ended.replace(None), None, "{id} ended twice");
            }
        }
    }
    leases
}

/// How much of its resource a lease used, by the machine's record; the log says the same.
fn used(id: LeaseId, lease: &Lease, span: Option<&Span>) -> i64 {
    let ended = lease.ended.as_ref().unwrap_or_else(|| panic!("{id} is held by nobody's work for ever"));
    let (Some((at, outcome)), Some(span)) = (ended, span) else {
        assert_eq!(lease.started_at, None, "{id} started on no machine");
        return 0;
    };
    if lease.started_at.is_some() || *outcome != Outcome::Lost {
        assert_eq!(lease.started_at, span.started_at, "{id} started, says the log and says the machine");
    }
    let Some(from) = lease.started_at else { return 0 };
    if *outcome == Outcome::Lost {
        assert!(*at >= from, "{id} was lost before it began");
    } else {
        // A clock that was set back between start and end shows no time.
        assert_eq!(
            Some(*at),
            span.ended_at.map(|ended| ended.max(from)),
            "{id} ended, says the log and says the machine"
        );
    }
    lease.grant.milli * Period { from, to: *at }.ms()
}

/// What was charged in all; it is what was used, line by line and lease by lease.
#[expect(clippy::wildcard_enum_match_arm, reason = "few events are about money")]
fn charged(events: &[(&Recorded, Event)], used: &BTreeMap<LeaseId, i64>) -> Decimal {
    let (mut of_lease, mut lines) = (BTreeMap::<LeaseId, i64>::new(), BTreeMap::new());
    let (mut sources, mut consumed) = (BTreeSet::new(), Decimal::ZERO);
    for (stored, event) in events {
        match event {
            Event::Ledger(ledger::Event::Charged { charge, amount, postings }) => {
                assert!(sources.insert(charge.source), "{:?} is charged twice", charge.source);
                *of_lease.entry(charge.lease).or_default() += charge.quantity.0;
                let line = lines
                    .entry((stored.stream.as_str(), charge.key.clone(), charge.price))
                    .or_insert((0, Decimal::ZERO));
                *line = (line.0 + charge.quantity.0, line.1 + amount);
                assert_eq!(postings.iter().map(|posting| posting.amount).sum::<Decimal>(), Decimal::ZERO);
            }
            Event::Ledger(ledger::Event::Unrated(unrated)) => panic!("{unrated:?} has a price"),
            Event::Wallet(wallet::Event::Consumed { amount, .. }) => consumed += amount,
            _ => {}
        }
    }
    for (lease, quantity) in used {
        assert_eq!(of_lease.remove(lease).unwrap_or_default(), *quantity, "{lease}: charged, and used");
    }
    assert!(of_lease.is_empty(), "charged for no lease: {of_lease:?}");
    let mut all = Decimal::ZERO;
    for ((ledger, key, price), (quantity, amount)) in lines {
        let exact = Decimal::from(quantity) * price / Decimal::from(UNIT_HOUR);
        let exact = exact.round_dp_with_strategy(8, RoundingStrategy::MidpointNearestEven);
        assert_eq!(amount.normalize(), exact.normalize(), "{ledger}: {key:?}");
        all += amount;
    }
    assert_eq!(consumed.normalize(), all.normalize(), "what the wallets paid is what was charged");
    all
}
