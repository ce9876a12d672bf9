//! A tenant with a quota and a wallet, a node with cards, and what people and machines do there.

use super::platform::Platform;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Event;
use domain::allocation::job::{Outcome, Spec, Submission};
use domain::allocation::{Cards, Demand, Job, Lease, Plan, job, lease, plan};
use domain::billing::{Wallet, wallet};
use domain::catalog::{PriceBook, price_book};
use domain::flows::{quota_key, wallet_key};
use domain::kernel::spec::{bill_to, member};
use domain::kernel::{Ancestors, CommandId, Currency, Id, JobId, LeaseId, MILLI, NodeId, OrderId, Resource, TenantId};
use domain::ordering::{Order, order};
use domain::quota::{Allowance, allowance};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// Where the stories take place: a card-hour costs 80.
pub(crate) struct World(Platform);

impl Deref for World {
    type Target = Platform;

    fn deref(&self) -> &Platform {
        &self.0
    }
}

pub(crate) fn id<I: Id>(name: &str) -> I {
    I::derived(TenantId::PLATFORM, name)
}

pub(crate) fn tenant() -> TenantId {
    id("tenant")
}

pub(crate) fn a100() -> Resource {
    "card.a100".parse().unwrap()
}

pub(crate) fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

pub(crate) fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The lease's generation, and the job that it is for.
fn granted(lease: &Lease) -> lease::Grant {
    lease.grant().unwrap().clone()
}

impl World {
    /// A tenant that may have so many cards at once and spend so much; it is 09:00 in Shanghai.
    pub(crate) fn with(cards: i64, funds: &str) -> Self {
        let world = Self(Platform::starting(instant("2026-11-05T01:00:00Z")));
        let (to, by, now) = (bill_to(), member("root"), world.now.get());
        let open = price_book::Command::Open { name: "list".into(), currency: Currency::Cny };
        world.ask::<PriceBook>(to.book, TenantId::PLATFORM, open).unwrap();
        let prices = BTreeMap::from([(to.sku, decimal("80"))]);
        let publish = price_book::Command::Publish { effective_at: now, prices, now };
        world.ask::<PriceBook>(to.book, TenantId::PLATFORM, publish).unwrap();
        let wallet = wallet_key(to.customer);
        world.ask::<Wallet>(&wallet, tenant(), wallet::Command::Open { currency: Currency::Cny }).unwrap();
        let top_up = wallet::Command::TopUp { amount: decimal(funds), by, reference: "bank".into() };
        world.ask::<Wallet>(&wallet, tenant(), top_up).unwrap();
        let (root, resource, milli) = (tenant(), a100(), cards * MILLI);
        let ceiling = allowance::Command::SetCeiling { root, below: vec![], resource, milli, by };
        world.ask::<Allowance>(quota_key(tenant(), &a100()), tenant(), ceiling).unwrap();
        world
    }

    /// One with an active order for all of its cards.
    pub(crate) fn ordered(cards: i64, funds: &str) -> Self {
        let world = Self::with(cards, funds);
        world.order("all", cards);
        world.settle();
        world
    }

    pub(crate) fn quota(&self) -> Allowance {
        self.state(quota_key(tenant(), &a100()))
    }

    pub(crate) fn wallet(&self) -> Wallet {
        self.state(wallet_key(bill_to().customer))
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.now.set(self.now.get() + TimeDelta::seconds(seconds));
    }

    /// Li asks for cards and Wang approves.
    pub(crate) fn order(&self, name: &str, cards: i64) -> OrderId {
        let order = id::<OrderId>(name);
        let terms = order::Terms {
            tenant: tenant(),
            above: Ancestors::NONE,
            bill_to: bill_to(),
            resource: a100(),
            milli: cards * MILLI,
            price: decimal("80"),
            price_version: 1,
        };
        self.ask::<Order>(order, tenant(), order::Command::Request { by: member("li"), terms }).unwrap();
        self.ask::<Order>(order, tenant(), order::Command::Approve { by: member("wang") }).unwrap();
        order
    }

    /// Li submits a job of so many cards.
    pub(crate) fn submit(&self, name: &str, cards: u32) -> JobId {
        self.submit_with(name, cards, 0)
    }

    /// One that is started again so often after it was lost with its node.
    pub(crate) fn submit_with(&self, name: &str, cards: u32, restarts: u32) -> JobId {
        let job = id::<JobId>(name);
        let spec = Spec {
            name: name.into(),
            command: vec!["train".into()],
            env: BTreeMap::new(),
            folder: None,
            demand: demand(cards),
            time_limit_s: None,
            restarts,
        };
        let submission =
            Submission { tenant: tenant(), above: Ancestors::NONE, by: member("li"), spec, bill_to: bill_to() };
        self.ask::<Job>(job, tenant(), job::Command::Submit(submission)).unwrap();
        job
    }

    pub(crate) fn cancel(&self, job: JobId) -> Result<(), job::Error> {
        self.ask::<Job>(job, tenant(), job::Command::Cancel { by: member("li"), reason: "wrong data".into() })
    }

    pub(crate) fn job(&self, job: JobId) -> Job {
        self.state(job)
    }

    /// The scheduler finds a place for a job, as far as it knows.
    pub(crate) fn place(&self, job: JobId) {
        let of = self.job(job);
        let demand = of.submission().unwrap().spec.demand.clone();
        let placement = plan::Placement {
            pool: id("pool"),
            tenant: tenant(),
            job,
            node: id("node"),
            cards: (0..demand.cards.as_ref().unwrap().count).collect(),
            demand,
            rule: "best_fit".into(),
            score: "0".into(),
            facts: String::new(),
        };
        self.ask::<Plan>("pool-0", TenantId::PLATFORM, plan::Command::Record(vec![placement])).unwrap();
    }

    /// Every lease there is, oldest first.
    pub(crate) fn leases(&self) -> Vec<(LeaseId, Lease)> {
        let events = self.events();
        let granted = events.iter().filter(|(_, event)| matches!(event, Event::Lease(lease::Event::Granted(_))));
        granted.map(|(stream, _)| (stream.key().parse().unwrap(), self.state(stream.key()))).collect()
    }

    /// The node says that a lease's work has begun.
    pub(crate) fn start(&self, lease: LeaseId) {
        let grant = granted(&self.state(lease));
        let start = lease::Command::ReportStart { node: id("node"), generation: grant.generation, at: self.now.get() };
        self.ask::<Lease>(lease, tenant(), start).unwrap();
    }

    /// The node says that a lease's work is over, since an instant.
    pub(crate) fn end(&self, lease: LeaseId, at: DateTime<Utc>, outcome: Outcome) {
        let state: Lease = self.state(lease);
        let started_at = if let Lease::Running { since, .. } = &state { Some(*since) } else { None };
        let generation = granted(&state).generation;
        let end = lease::Command::ReportEnd { node: id::<NodeId>("node"), generation, started_at, at, outcome };
        self.ask::<Lease>(lease, tenant(), end).unwrap();
    }

    /// The node is lost, last heard of at an instant.
    pub(crate) fn lose(&self, alive_until: DateTime<Utc>) {
        let leases = self.leases().into_iter().map(|(lease, _)| lease).collect();
        let loss = plan::Loss { node: id("node"), alive_until, leases };
        self.ask::<Plan>("pool-0", TenantId::PLATFORM, plan::Command::RecordLoss(loss)).unwrap();
    }

    /// What the scheduler or the node does next, or nothing. A node ends what nobody wants any more.
    pub(crate) fn act(&self) -> bool {
        for (lease, state) in self.leases() {
            let job = self.job(granted(&state).job);
            let unwanted = match job {
                Job::Placed { lease: of, cancelled, .. } | Job::Running { lease: of, cancelled, .. } => {
                    cancelled || of != lease
                }
                Job::Ended(_) => true,
                Job::Absent | Job::Submitted(_) | Job::Admitted { .. } => false,
            };
            match state {
                Lease::Granted(_) | Lease::Running { .. } if unwanted => {
                    self.end(lease, self.now.get(), Outcome::Cancelled);
                }
                Lease::Granted(_) => self.start(lease),
                Lease::Running { .. } => self.end(lease, self.now.get(), Outcome::Succeeded),
                Lease::Absent | Lease::Over(_) | Lease::Lost(_) => continue,
            }
            return true;
        }
        let waiting = self.jobs().into_iter().find(|job| matches!(self.job(*job), Job::Admitted { .. }));
        waiting.inspect(|job| self.place(*job)).is_some()
    }

    /// Every job there is, oldest first.
    pub(crate) fn jobs(&self) -> Vec<JobId> {
        let events = self.events();
        let submitted = events.iter().filter(|(_, event)| matches!(event, Event::Job(job::Event::Submitted(_))));
        submitted.map(|(stream, _)| stream.key().parse().unwrap()).collect()
    }

    /// Handling every event anew asks for the same commands, which change nothing; no command was refused.
    pub(crate) fn is_sound(&self) {
        self.settle();
        let before = self.log();
        let asked = || -> Vec<CommandId> {
            let all = before.iter().flat_map(|cause| {
                self.follows(cause).into_iter().map(|action| action.command_id(cause)).collect::<Vec<_>>()
            });
            all.collect()
        };
        let first = asked();
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), first.len(), "each command has its own id");
        self.forget();
        self.settle();
        assert_eq!(self.log(), before, "a repeated event changed something");
        assert_eq!(asked(), first);
        assert_eq!(*self.refused.borrow(), [], "a flow's command was refused without an event");
        let quota = self.quota();
        assert!(quota.in_use() <= quota.ordered() && quota.ordered() <= quota.ceiling(), "{quota:?}");
    }

    /// Nothing is held any more, neither quota nor money nor cards.
    pub(crate) fn is_free(&self) {
        assert_eq!(self.quota().in_use(), 0);
        assert_eq!(self.wallet().held(), Decimal::ZERO);
        for (lease, state) in self.leases() {
            assert!(matches!(state, Lease::Over(_) | Lease::Lost(_)), "{lease} is {state:?}");
        }
    }
}

fn demand(cards: u32) -> Demand {
    Demand { cards: Some(Cards { model: "a100".parse().unwrap(), count: cards }), milli_cores: 1000, memory_mib: 1024 }
}
