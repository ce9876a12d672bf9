//! What a job promises, as histories and answers.

use super::*;
use crate::allocation::Cards;
use crate::kernel::Id;
use crate::kernel::spec::{bill_to, given, member};

fn submission() -> Submission {
    let cards = Some(Cards { model: "a100".parse().unwrap(), count: 1 });
    let spec = Spec {
        name: "train".into(),
        command: vec!["python3".into(), "train.py".into()],
        env: BTreeMap::new(),
        folder: None,
        demand: Demand { cards, milli_cores: 1000, memory_mib: 512 },
        time_limit_s: None,
        restarts: 0,
    };
    Submission { tenant: TenantId::PLATFORM, above: Ancestors::NONE, by: member("li"), spec, bill_to: bill_to() }
}

fn submitted() -> Event {
    Event::Submitted(submission())
}

fn lease(name: &str) -> LeaseId {
    Id::derived(TenantId::PLATFORM, name)
}

fn node() -> NodeId {
    Id::derived(TenantId::PLATFORM, "node")
}

fn placed() -> Event {
    Event::Placed { lease: lease("a"), node: node(), cards: vec![0] }
}

fn place(name: &str) -> Command {
    Command::Place { lease: lease(name), node: node(), cards: vec![0] }
}

fn at() -> DateTime<Utc> {
    "2026-11-30T16:00:00Z".parse().unwrap()
}

fn cancel() -> Command {
    Command::Cancel { by: member("li"), reason: "changed my mind".into() }
}

fn asked() -> Event {
    Event::CancelRequested { by: member("li"), reason: "changed my mind".into() }
}

#[test]
fn is_submitted_once_and_only_if_it_can_be_meant() {
    given::<Job>([]).when(Command::Submit(submission())).then([submitted()]);
    given::<Job>([submitted()]).when(Command::Submit(submission())).then_refused(Error::AlreadyExists);
    let refused = |change: fn(&mut Spec), error: Error| {
        let mut submission = submission();
        change(&mut submission.spec);
        given::<Job>([]).when(Command::Submit(submission)).then_refused(error);
    };
    refused(|spec| spec.name.clear(), Error::BadName);
    refused(|spec| spec.name = "a\nb".into(), Error::BadName);
    refused(|spec| spec.command.clear(), Error::BadCommand);
    refused(|spec| spec.command = vec![String::new()], Error::BadCommand);
    refused(|spec| spec.command.push("a\0b".into()), Error::BadCommand);
    refused(|spec| spec.command = vec!["x".repeat(TEXT_BYTES_MAX + 1)], Error::BadCommand);
    refused(|spec| drop(spec.env.insert("A=B".into(), "c".into())), Error::BadCommand);
    refused(|spec| spec.demand.milli_cores = 0, Error::BadDemand);
    refused(|spec| spec.demand.memory_mib = -1, Error::BadDemand);
    refused(|spec| spec.demand.cards = Some(Cards { model: "a100".parse().unwrap(), count: 0 }), Error::BadDemand);
    refused(|spec| spec.time_limit_s = Some(0), Error::BadTimeLimit);
    refused(|spec| spec.restarts = RESTARTS_MAX + 1, Error::BadRestarts);
}

#[test]
fn is_admitted_placed_started_and_ended() {
    let admitted = [submitted(), Event::Admitted];
    given::<Job>([submitted()]).when(Command::Admit).then([Event::Admitted]);
    given::<Job>(admitted.clone()).when(place("a")).then([placed()]);
    let running = [&admitted[..], &[placed(), Event::Started { lease: lease("a"), at: at() }]].concat();
    given::<Job>(&running[..3])
        .when(Command::Start { lease: lease("a"), at: at() })
        .then([Event::Started { lease: lease("a"), at: at() }]);
    let end = |name: &str| Command::End { lease: lease(name), outcome: Outcome::Succeeded, at: at() };
    given::<Job>(running.clone()).when(end("a")).then([Event::Ended { outcome: Outcome::Succeeded, at: Some(at()) }]);
    given::<Job>(running).when(end("other")).then([]);
}

#[test]
fn waits_for_quota_visibly() {
    let queue = Command::Queue { wanted_milli: 2000, free_milli: 0 };
    given::<Job>([submitted()]).when(queue).then([Event::QuotaQueued { wanted_milli: 2000, free_milli: 0 }]);
}

#[test]
fn a_cancelled_job_takes_no_place() {
    let ended = Event::Ended { outcome: Outcome::Cancelled, at: None };
    given::<Job>([submitted()]).when(cancel()).then([asked(), ended.clone()]);
    let over = [submitted(), Event::Admitted, asked(), ended];
    given::<Job>(over.clone()).when(place("a")).then([Event::PlacementVoided { lease: lease("a") }]);
    given::<Job>(over.clone()).when(Command::Admit).then([Event::AdmissionVoided]);
    given::<Job>(over).when(cancel()).then_refused(Error::WrongState("ended"));
}

#[test]
fn a_running_job_is_cancelled_on_the_nodes_word() {
    let running = [submitted(), Event::Admitted, placed(), Event::Started { lease: lease("a"), at: at() }];
    given::<Job>(running.clone()).when(cancel()).then([asked()]);
    given::<Job>([&running[..], &[asked()]].concat()).when(cancel()).then([]);
}

#[test]
fn has_one_place() {
    let history = [submitted(), Event::Admitted, placed()];
    given::<Job>(history).when(place("b")).then([Event::PlacementVoided { lease: lease("b") }]);
}

#[test]
fn what_was_lost_with_its_node_starts_again_as_often_as_it_may() {
    let mut may = submission();
    may.spec.restarts = 2;
    let end = |name: &str, outcome| Command::End { lease: lease(name), outcome, at: at() };
    let again = |outcome, restarts_left| Event::Requeued { lease: lease("a"), outcome, restarts_left };
    let placed_first = [Event::Submitted(may), Event::Admitted, placed()];
    let running = [&placed_first[..], &[Event::Started { lease: lease("a"), at: at() }]].concat();
    for history in [&placed_first[..], &running] {
        given::<Job>(history).when(end("a", Outcome::Lost)).then([again(Outcome::Lost, 1)]);
        given::<Job>(history).when(end("a", Outcome::Vanished)).then([again(Outcome::Vanished, 1)]);
    }
    given::<Job>(running.clone()).when(end("b", Outcome::Lost)).then([]);
    let failed = Event::Ended { outcome: Outcome::Failed { code: 1 }, at: Some(at()) };
    given::<Job>(running.clone()).when(end("a", Outcome::Failed { code: 1 })).then([failed]);
    let unwanted = [&running[..], &[asked()]].concat();
    let cancelled = Event::Ended { outcome: Outcome::Cancelled, at: Some(at()) };
    given::<Job>(unwanted).when(end("a", Outcome::Lost)).then([cancelled]);
    let waits = [&running[..], &[again(Outcome::Lost, 1)]].concat();
    given::<Job>(waits.clone()).when(end("a", Outcome::Lost)).then([]);
    given::<Job>(waits.clone()).when(place("a")).then([placed()]);
    let twice = [&waits[..], &[placed(), again(Outcome::Lost, 0), placed()]].concat();
    given::<Job>(twice).when(end("a", Outcome::Lost)).then([Event::Ended { outcome: Outcome::Lost, at: Some(at()) }]);
    let may_not = [submitted(), Event::Admitted, placed()];
    given::<Job>(may_not).when(end("a", Outcome::Lost)).then([Event::Ended { outcome: Outcome::Lost, at: Some(at()) }]);
}
