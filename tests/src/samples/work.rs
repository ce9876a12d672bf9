//! Samples of jobs, leases, placements and meters.

use super::samples;
use super::values::{a100, account, at, decimal, id, tenant};
use domain::Event;
use domain::allocation::job::{Outcome, Refusal, Spec, Submission};
use domain::allocation::{Cards, Demand, job, lease, plan};
use domain::kernel::{Ancestors, Quantity};
use domain::metering::meter;
use std::collections::BTreeMap;

pub(super) fn all() -> Vec<Event> {
    let refused = |reason| Outcome::Refused { reason };
    let outcomes = [
        Outcome::Failed { code: 1 },
        Outcome::Killed { signal: 9 },
        Outcome::TimedOut,
        Outcome::Cancelled,
        Outcome::NotStarted { reason: "no such program: python4".into() },
        Outcome::Vanished,
        Outcome::Lost,
        refused(Refusal::Quota { wanted_milli: 9000, ordered_milli: 8000 }),
        refused(Refusal::Money { wanted: decimal("320"), available: decimal("12.5") }),
        refused(Refusal::NoPrice { sku: "a100.card".into() }),
    ];
    let ends = outcomes.map(|outcome| job::Event::Ended { outcome, at: None }.into());
    let submission = submission();
    let spec = Spec {
        env: BTreeMap::new(),
        folder: None,
        demand: Demand { cards: None, ..submission.spec.demand.clone() },
        time_limit_s: None,
        restarts: 0,
        ..submission.spec.clone()
    };
    let least = job::Event::Submitted(Submission { spec, above: Ancestors::NONE.with(id("root")), ..submission });
    let outcome = Outcome::NotStarted { reason: "no such program: python4".into() };
    let never_began = lease::Event::Ended { started_at: None, at: at("01:00:02"), outcome };
    let (started_at, at) = (Some(at("01:00:01.25")), at("01:10:00.5"));
    let lost = lease::Event::Ended { started_at, at, outcome: Outcome::Lost };
    let more = ends.into_iter().chain([least.into(), never_began.into(), lost.into()]).collect();
    [jobs(), leases(), plans(), meters(), more].concat()
}

fn demand() -> Demand {
    let cards = Some(Cards { model: "a100".parse().unwrap(), count: 4 });
    Demand { cards, milli_cores: 16_000, memory_mib: 65_536 }
}

fn submission() -> Submission {
    let spec = Spec {
        name: "train 训练".into(),
        command: vec!["python3".into(), "train.py".into(), "--epochs=3".into()],
        env: BTreeMap::from([("SEED".into(), "7".into())]),
        folder: Some("hello-train".into()),
        demand: demand(),
        time_limit_s: Some(3600),
        restarts: 2,
    };
    Submission { tenant: tenant(), above: Ancestors::NONE, by: id("li"), spec, bill_to: account() }
}

samples! { jobs of job:
    Submitted(submission());
    QuotaQueued { wanted_milli: 4000, free_milli: 1000 };
    Admitted;
    AdmissionVoided;
    Placed { lease: id("lease"), node: id("node"), cards: vec![0, 1, 2, 3] };
    PlacementVoided { lease: id("lease") };
    Started { lease: id("lease"), at: at("01:00:01.25") };
    CancelRequested { by: id("li"), reason: "wrong data".into() };
    Requeued { lease: id("lease"), outcome: Outcome::Lost, restarts_left: 1 };
    Ended { outcome: Outcome::Succeeded, at: Some(at("01:20:01.25")) };
}

samples! { leases of lease:
    Granted(lease::Grant {
        tenant: tenant(),
        job: id("job"),
        node: id("node"),
        cards: vec![0, 1, 2, 3],
        milli_cores: 16_000,
        memory_mib: 65_536,
        resource: a100(),
        milli: 4000,
        bill_to: account(),
        generation: 42,
    });
    Started { at: at("01:00:01.25") };
    Ended { started_at: Some(at("01:00:01.25")), at: at("01:20:01.25"), outcome: Outcome::Succeeded };
    Voided;
}

samples! { plans of plan:
    Placed(plan::Placement {
        pool: id("pool"),
        tenant: tenant(),
        job: id("job"),
        node: id("node"),
        cards: vec![0, 1, 2, 3],
        demand: demand(),
        rule: "best_fit".into(),
        score: "0".into(),
        facts: super::values::hash('e'),
    });
    NodeLost(plan::Loss { node: id("node"), alive_until: at("01:10:00.5"), leases: vec![id("lease")] });
}

samples! { meters of meter:
    Opened {
        subject: meter::Subject {
            lease: id("lease"),
            job: id("job"),
            tenant: tenant(),
            bill_to: account(),
            resource: a100(),
            milli: 4000,
        },
        from: at("01:00:01.25"),
    };
    Measured { from: at("01:00:01.25"), to: at("01:10:01.25"), quantity: Quantity(4000 * 600_000) };
    Closed { from: at("01:10:01.25"), to: at("01:09:01.25"), quantity: Quantity(-4000 * 60_000) };
}
