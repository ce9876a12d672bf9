//! What to do: the desired set compared with what is here. Pure.
//!
//! Owns: the comparison. Does not own: doing it. Invariants: the same input gives the same steps, and doing them twice
//! harms nothing; a lease is forgotten only when it is no longer desired, the server has heard of its end and has its
//! output; a card is never given to a lease while another one's processes may use it, and a job is never started again
//! while its earlier start may still run.

use crate::state::Local;
use agent_protocol::{Desired, DesiredLease};
use domain::kernel::{JobId, LeaseId};
use std::collections::BTreeSet;

/// How long a lease has after TERM when the server does not say, in milliseconds.
pub const GRACE_MS: i64 = 10_000;

/// A lease in one of its generations.
pub type Which = (LeaseId, i64);

/// What the server has said of our leases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// It knows that they ended.
    pub ended: BTreeSet<Which>,
    /// It has their output, or does not want it.
    pub output: BTreeSet<Which>,
    /// It does not count them.
    pub stale: BTreeSet<Which>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Start(DesiredLease),
    /// TERM, then KILL after so many milliseconds.
    Stop {
        lease: LeaseId,
        grace_ms: i64,
    },
    /// Its folder goes.
    Forget(Which),
}

impl Step {
    /// What a log calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Stop { .. } => "stop",
            Self::Forget(_) => "forget",
        }
    }
}

impl Heard {
    /// Drops what concerns no lease that is here.
    pub fn retain(&mut self, local: &[Local]) {
        let here: BTreeSet<Which> = local.iter().map(|local| (local.lease, local.generation)).collect();
        for known in [&mut self.ended, &mut self.output, &mut self.stale] {
            known.retain(|which| here.contains(which));
        }
    }
}

/// What is to be done, in this order.
pub fn steps(desired: &Desired, local: &[Local], heard: &Heard) -> Vec<Step> {
    let ending = local.iter().filter_map(|local| ending(desired, local, heard));
    ending.chain(starting(desired, local)).collect()
}

/// What is to be done with a lease that is here.
fn ending(desired: &Desired, local: &Local, heard: &Heard) -> Option<Step> {
    let which = (local.lease, local.generation);
    let wanted = desired.leases.iter().find(|wanted| (wanted.lease, wanted.generation) == which);
    let stale = heard.stale.contains(&which);
    match (wanted, local.ended()) {
        (Some(wanted), false) if stale => Some(stop(local, wanted.stop_after_ms.unwrap_or(GRACE_MS).min(GRACE_MS))),
        (Some(wanted), false) => wanted.stop_after_ms.map(|grace_ms| stop(local, grace_ms)),
        // It stays, also a stale one, so that the same generation is never run a second time.
        (Some(_), true) => None,
        (None, false) => Some(stop(local, GRACE_MS)),
        (None, true) => {
            let settled = heard.ended.contains(&which) && heard.output.contains(&which);
            (stale || settled).then_some(Step::Forget(which))
        }
    }
}

fn stop(local: &Local, grace_ms: i64) -> Step {
    Step::Stop { lease: local.lease, grace_ms: grace_ms.max(0) }
}

/// What is not here and whose cards are free.
fn starting(desired: &Desired, local: &[Local]) -> Vec<Step> {
    let living = local.iter().filter(|local| !local.ended());
    let jobs: BTreeSet<JobId> = living.clone().map(|local| local.job).collect();
    let mut held: BTreeSet<u32> = living.flat_map(|local| local.cards.iter().copied()).collect();
    let mut steps = Vec::new();
    for wanted in &desired.leases {
        let here = local.iter().any(|local| local.lease == wanted.lease);
        if !here && !jobs.contains(&wanted.job) && wanted.work.cards.iter().all(|card| !held.contains(card)) {
            held.extend(&wanted.work.cards);
            steps.push(Step::Start(wanted.clone()));
        }
    }
    steps
}

/// The jobs whose checkpoints stay: those that are not over, and those of which something may still run.
pub fn kept(desired: &Desired, local: &[Local]) -> BTreeSet<JobId> {
    let wanted = desired.leases.iter().map(|lease| lease.job);
    let living = local.iter().filter(|local| !local.ended()).map(|local| local.job);
    desired.jobs.iter().copied().chain(wanted).chain(living).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_protocol::{Exit, Phase, Work};
    use chrono::DateTime;
    use domain::kernel::Id;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    fn id(lease: u128) -> LeaseId {
        LeaseId::from_uuid(Uuid::from_u128(lease))
    }

    fn job(number: u128) -> JobId {
        JobId::from_uuid(Uuid::from_u128(number))
    }

    fn wanted(lease: u128, generation: i64, cards: &[u32]) -> DesiredLease {
        let work = Work {
            command: vec!["true".into()],
            env: BTreeMap::new(),
            folder: None,
            time_limit_s: None,
            milli_cores: 1000,
            memory_mib: 1,
            cards: cards.to_vec(),
        };
        DesiredLease { lease: id(lease), generation, job: job(lease), work, stop_after_ms: None }
    }

    fn stopping(lease: u128, generation: i64, grace_ms: i64) -> DesiredLease {
        DesiredLease { stop_after_ms: Some(grace_ms), ..wanted(lease, generation, &[]) }
    }

    fn running(lease: u128, generation: i64, cards: &[u32]) -> Local {
        let phase = Some(Phase::Running { started_at: DateTime::UNIX_EPOCH });
        Local { lease: id(lease), job: job(lease), generation, cards: cards.to_vec(), phase }
    }

    fn ended(lease: u128, generation: i64) -> Local {
        let at = DateTime::UNIX_EPOCH;
        let exit = Exit::Code { code: 0 };
        let phase = Some(Phase::Ended { started_at: Some(at), ended_at: at, exit, output_bytes: 1 });
        Local { phase, ..running(lease, generation, &[]) }
    }

    fn heard(ended: &[Which], output: &[Which], stale: &[Which]) -> Heard {
        let set = |of: &[Which]| of.iter().copied().collect();
        Heard { ended: set(ended), output: set(output), stale: set(stale) }
    }

    #[track_caller]
    fn expect(desired: &[DesiredLease], local: &[Local], heard: &Heard, expected: &[Step]) {
        let desired = Desired { generation: 9, leases: desired.to_vec(), jobs: vec![] };
        assert_eq!(steps(&desired, local, heard), expected);
    }

    fn stop(lease: u128, grace_ms: i64) -> Step {
        Step::Stop { lease: id(lease), grace_ms }
    }

    #[test]
    fn starts_what_is_not_here_and_leaves_what_is() {
        let nothing = Heard::default();
        expect(&[wanted(1, 3, &[])], &[], &nothing, &[Step::Start(wanted(1, 3, &[]))]);
        expect(&[wanted(1, 3, &[])], &[running(1, 3, &[])], &nothing, &[]);
        expect(&[wanted(1, 3, &[])], &[Local { phase: None, ..running(1, 3, &[]) }], &nothing, &[]);
        expect(&[wanted(1, 3, &[])], &[ended(1, 3)], &heard(&[(id(1), 3)], &[(id(1), 3)], &[]), &[]);
    }

    #[test]
    fn stops_with_the_servers_grace_and_once_it_ended_does_nothing() {
        expect(&[stopping(1, 3, 500)], &[running(1, 3, &[])], &Heard::default(), &[stop(1, 500)]);
        expect(&[stopping(1, 3, -4)], &[running(1, 3, &[])], &Heard::default(), &[stop(1, 0)]);
        expect(&[stopping(1, 3, 500)], &[ended(1, 3)], &Heard::default(), &[]);
    }

    #[test]
    fn a_lease_to_be_stopped_that_never_started_is_handed_on_to_be_answered() {
        expect(&[stopping(1, 3, 500)], &[], &Heard::default(), &[Step::Start(stopping(1, 3, 500))]);
    }

    #[test]
    fn ends_what_disappeared_and_forgets_it_when_all_is_delivered() {
        let which = (id(1), 3);
        expect(&[], &[running(1, 3, &[])], &Heard::default(), &[stop(1, GRACE_MS)]);
        expect(&[], &[ended(1, 3)], &Heard::default(), &[]);
        expect(&[], &[ended(1, 3)], &heard(&[which], &[], &[]), &[]);
        expect(&[], &[ended(1, 3)], &heard(&[], &[which], &[]), &[]);
        expect(&[], &[ended(1, 3)], &heard(&[which], &[which], &[]), &[Step::Forget(which)]);
    }

    #[test]
    fn ends_and_forgets_what_the_server_does_not_count() {
        let stale = heard(&[], &[], &[(id(1), 3)]);
        expect(&[], &[running(1, 3, &[])], &stale, &[stop(1, GRACE_MS)]);
        expect(&[], &[ended(1, 3)], &stale, &[Step::Forget((id(1), 3))]);
        expect(&[wanted(1, 3, &[])], &[running(1, 3, &[])], &stale, &[stop(1, GRACE_MS)]);
        expect(&[wanted(1, 3, &[])], &[ended(1, 3)], &stale, &[]);
    }

    #[test]
    fn another_generation_waits_for_the_end_of_the_old_one() {
        let (which, new) = ((id(1), 3), wanted(1, 5, &[]));
        expect(std::slice::from_ref(&new), &[running(1, 3, &[])], &Heard::default(), &[stop(1, GRACE_MS)]);
        let forgotten = heard(&[which], &[which], &[]);
        expect(std::slice::from_ref(&new), &[ended(1, 3)], &forgotten, &[Step::Forget(which)]);
        expect(std::slice::from_ref(&new), &[], &forgotten, &[Step::Start(new.clone())]);
    }

    #[test]
    fn a_card_is_not_given_before_it_is_free() {
        let new = wanted(2, 5, &[1, 2]);
        expect(std::slice::from_ref(&new), &[running(1, 3, &[0, 1])], &Heard::default(), &[stop(1, GRACE_MS)]);
        let free = [stop(1, GRACE_MS), Step::Start(new.clone())];
        expect(std::slice::from_ref(&new), &[running(1, 3, &[0])], &Heard::default(), &free);
        let twice = [wanted(1, 5, &[0]), wanted(2, 5, &[0])];
        expect(&twice, &[], &Heard::default(), &[Step::Start(twice[0].clone())]);
    }

    #[test]
    fn a_job_is_not_started_again_before_its_earlier_start_has_ended() {
        let again = DesiredLease { job: job(1), ..wanted(2, 5, &[]) };
        expect(std::slice::from_ref(&again), &[running(1, 3, &[])], &Heard::default(), &[stop(1, GRACE_MS)]);
        expect(std::slice::from_ref(&again), &[ended(1, 3)], &Heard::default(), &[Step::Start(again.clone())]);
    }

    #[test]
    fn checkpoints_stay_until_the_job_is_over_and_none_of_it_runs() {
        let desired = Desired { generation: 9, leases: vec![wanted(1, 3, &[])], jobs: vec![job(2)] };
        assert_eq!(kept(&desired, &[running(3, 3, &[]), ended(4, 3)]), BTreeSet::from([job(1), job(2), job(3)]));
    }

    #[test]
    fn keeps_in_mind_only_what_is_here() {
        let mut known = heard(&[(id(1), 3), (id(2), 3)], &[(id(1), 2)], &[(id(1), 3)]);
        known.retain(&[ended(1, 3)]);
        assert_eq!(known, heard(&[(id(1), 3)], &[], &[(id(1), 3)]));
    }
}
