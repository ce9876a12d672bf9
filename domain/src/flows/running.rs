//! Running: a submitted job is held under the quota, then in the wallet, then waits for a place; a placement becomes a
//! lease and the lease the job's place; the node's word moves the job on; a lost node loses its leases; the job's end gives
//! quota and money back.

#![expect(clippy::wildcard_enum_match_arm, reason = "a story looks at the few events that concern it")]

use super::provisioning::quota_key;
use super::{Action, Facts, id_of};
use crate::Event;
use crate::allocation::job::{Refusal, Submission};
use crate::allocation::{Job, Lease, job, lease, plan};
use crate::billing::{Wallet, wallet};
use crate::catalog::PriceBook;
use crate::kernel::{Aggregate, CustomerId, Id, JobId, LeaseId, MILLI, Quantity, Recorded, StreamName};
use crate::quota::{Allowance, allowance};
use rust_decimal::Decimal;

/// The epoch of wallet streams that this version writes.
const EPOCH: u32 = 0;
const HOUR_S: i64 = 3600;

/// The key of a customer's wallet.
pub fn wallet_key(customer: CustomerId) -> String {
    format!("{customer}-{EPOCH}")
}

/// The lease that a placement becomes.
pub fn lease_of(placed: &Recorded) -> LeaseId {
    Id::derived(placed.event, "lease")
}

fn lease_stream(lease: &LeaseId) -> StreamName {
    StreamName::new(Lease::STREAM, lease)
}

pub(super) fn needs(cause: &Recorded, event: &Event, facts: &Facts) -> Vec<StreamName> {
    let job = |id: &JobId| StreamName::new(Job::STREAM, id);
    match event {
        Event::Quota(allowance::Event::JobHeld { job: id, .. }) => {
            let submission = facts.of::<Job>(id).and_then(Job::submission);
            let book = submission.map(|of| StreamName::new(PriceBook::STREAM, of.bill_to.book));
            [job(id)].into_iter().chain(book).collect()
        }
        Event::Wallet(wallet::Event::HoldRefused { job: id, .. }) => vec![job(id)],
        Event::Job(job::Event::Ended { .. } | job::Event::AdmissionVoided) => vec![cause.stream.clone()],
        Event::Plan(plan::Event::Placed(placement)) => vec![job(&placement.job)],
        Event::Plan(plan::Event::NodeLost(loss)) => loss.leases.iter().map(lease_stream).collect(),
        Event::Lease(lease::Event::Granted(_) | lease::Event::Started { .. } | lease::Event::Ended { .. }) => {
            vec![cause.stream.clone()]
        }
        _ => vec![],
    }
}

pub(super) fn react(cause: &Recorded, event: &Event, facts: &Facts) -> Vec<Action> {
    match event {
        Event::Job(event) => of_job(cause, event, facts),
        Event::Quota(event) => of_quota(cause, event, facts),
        Event::Wallet(event) => of_wallet(cause, event, facts),
        Event::Plan(plan::Event::Placed(placement)) => grant(cause, placement, facts).into_iter().collect(),
        Event::Plan(plan::Event::NodeLost(loss)) => lose(loss, facts),
        Event::Lease(event) => of_lease(cause, event, facts).into_iter().collect(),
        _ => vec![],
    }
}

fn to_quota(arm: &'static str, of: &Submission, command: allowance::Command) -> Action {
    let key = quota_key(of.above.root(of.tenant), &of.spec.demand.resource());
    Action::new::<Allowance>(arm, of.tenant, key, command)
}

fn to_job(arm: &'static str, cause: &Recorded, job: JobId, command: job::Command) -> Action {
    Action::new::<Job>(arm, cause.meta.tenant, job, command)
}

fn of_job(cause: &Recorded, event: &job::Event, facts: &Facts) -> Vec<Action> {
    let Some(id) = id_of::<JobId>(cause) else { return vec![] };
    match event {
        job::Event::Submitted(submission) => {
            let below = submission.above.below_root(submission.tenant);
            let hold = allowance::Command::HoldJob { job: id, below, milli: submission.spec.demand.milli() };
            vec![to_quota("hold_quota_for_job", submission, hold)]
        }
        job::Event::Ended { .. } | job::Event::AdmissionVoided => {
            let Some(submission) = facts.of::<Job>(id).and_then(Job::submission) else { return vec![] };
            let customer = wallet_key(submission.bill_to.customer);
            vec![
                to_quota("release_quota_of_job", submission, allowance::Command::ReleaseJob { job: id }),
                Action::new::<Wallet>(
                    "release_money_of_job",
                    submission.tenant,
                    customer,
                    wallet::Command::Release { job: id },
                ),
            ]
        }
        job::Event::PlacementVoided { lease } => {
            vec![Action::new::<Lease>("void_lease", cause.meta.tenant, lease, lease::Command::Void)]
        }
        job::Event::QuotaQueued { .. }
        | job::Event::Admitted
        | job::Event::Placed { .. }
        | job::Event::Started { .. }
        | job::Event::CancelRequested { .. }
        | job::Event::Requeued { .. } => vec![],
    }
}

fn of_quota(cause: &Recorded, event: &allowance::Event, facts: &Facts) -> Vec<Action> {
    match event {
        allowance::Event::JobHeld { job, .. } => hold_money(cause, *job, facts).into_iter().collect(),
        allowance::Event::JobQueued { job, wanted_milli, free_milli, .. } => {
            let queue = job::Command::Queue { wanted_milli: *wanted_milli, free_milli: *free_milli };
            vec![to_job("queue_job_for_quota", cause, *job, queue)]
        }
        allowance::Event::JobHoldRefused { job, wanted_milli, ordered_milli } => {
            let reason = Refusal::Quota { wanted_milli: *wanted_milli, ordered_milli: *ordered_milli };
            vec![to_job("refuse_job_for_quota", cause, *job, job::Command::Refuse { reason })]
        }
        _ => vec![],
    }
}

/// What the first hour costs, or less where the job's time limit is shorter.
fn first_hour(of: &Submission, price: Decimal) -> Option<Decimal> {
    let seconds = of.spec.time_limit_s.unwrap_or(HOUR_S).min(HOUR_S);
    Quantity::held(of.spec.demand.milli(), seconds.checked_mul(MILLI)?)?.cost(price)
}

fn hold_money(cause: &Recorded, job: JobId, facts: &Facts) -> Option<Action> {
    let submission = facts.of::<Job>(job).and_then(Job::submission)?;
    let bill_to = &submission.bill_to;
    let book = facts.of::<PriceBook>(bill_to.book)?;
    let amount =
        book.price_at(&bill_to.sku, cause.meta.occurred_at).and_then(|(price, _)| first_hour(submission, price));
    Some(match amount {
        Some(amount) => Action::new::<Wallet>(
            "hold_money_for_job",
            submission.tenant,
            wallet_key(bill_to.customer),
            wallet::Command::Hold { job, amount },
        ),
        None => {
            let reason = Refusal::NoPrice { sku: bill_to.sku.clone() };
            to_job("refuse_job_without_price", cause, job, job::Command::Refuse { reason })
        }
    })
}

fn of_wallet(cause: &Recorded, event: &wallet::Event, facts: &Facts) -> Vec<Action> {
    match event {
        wallet::Event::Held { job, .. } => vec![to_job("admit_job", cause, *job, job::Command::Admit)],
        wallet::Event::HoldRefused { job, wanted, available } => {
            let reason = Refusal::Money { wanted: *wanted, available: *available };
            let waits = matches!(facts.of::<Job>(job), Some(Job::Submitted(_)));
            let refuse = to_job("refuse_job_for_money", cause, *job, job::Command::Refuse { reason });
            if waits { vec![refuse] } else { vec![] }
        }
        _ => vec![],
    }
}

fn grant(cause: &Recorded, placement: &plan::Placement, facts: &Facts) -> Option<Action> {
    let submission = facts.of::<Job>(placement.job).and_then(Job::submission)?;
    let demand = &placement.demand;
    let grant = lease::Grant {
        tenant: placement.tenant,
        job: placement.job,
        node: placement.node,
        cards: placement.cards.clone(),
        milli_cores: demand.milli_cores,
        memory_mib: demand.memory_mib,
        resource: demand.resource(),
        milli: demand.milli(),
        bill_to: submission.bill_to.clone(),
        generation: cause.position,
    };
    let command = lease::Command::Grant(grant);
    Some(Action::new::<Lease>("grant_lease", placement.tenant, lease_of(cause), command))
}

/// A lease that its placement never became has nobody to tell.
fn lose(loss: &plan::Loss, facts: &Facts) -> Vec<Action> {
    let lose = |lease: &LeaseId| {
        let tenant = facts.of::<Lease>(lease).and_then(Lease::grant)?.tenant;
        let command = lease::Command::Lose { alive_until: loss.alive_until };
        Some(Action::new::<Lease>("lose_lease", tenant, lease, command))
    };
    loss.leases.iter().filter_map(lose).collect()
}

fn of_lease(cause: &Recorded, event: &lease::Event, facts: &Facts) -> Option<Action> {
    let lease = id_of::<LeaseId>(cause)?;
    let grant = facts.of::<Lease>(lease).and_then(Lease::grant)?;
    let (arm, command) = match event {
        lease::Event::Granted(grant) => {
            ("place_job", job::Command::Place { lease, node: grant.node, cards: grant.cards.clone() })
        }
        lease::Event::Started { at } => ("start_job", job::Command::Start { lease, at: *at }),
        lease::Event::Ended { at, outcome, .. } => {
            ("end_job", job::Command::End { lease, outcome: outcome.clone(), at: *at })
        }
        lease::Event::Voided => return None,
    };
    Some(to_job(arm, cause, grant.job, command))
}
