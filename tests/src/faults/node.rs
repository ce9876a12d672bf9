//! A machine with an agent on it, without processes: the real comparison of desired and local, on a clock that is moved
//! by hand, over a connection that loses, repeats and reorders.
//!
//! Owns: what the machine remembers on its disk, and its own record of what ran when. Does not own: the comparison
//! (`kashi_agent::reconcile`).
//! Invariants: a card has one living work; a job runs once on a machine; the record is never changed by what the server
//! says.

use crate::fake_agent::inventory;
use crate::faults::dice::Dice;
use crate::world::Person;
use agent_protocol::{Acknowledged, Desired, DesiredLease, Exit, Inventory, ObservedLease, Phase, Report};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::kernel::{JobId, LeaseId};
use kashi_agent::reconcile::{Heard, Step, Which, steps};
use kashi_agent::state::{Local, Taken};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;

/// The cards of each machine.
pub const CARDS: u32 = 4;
/// How long work runs at most, in seconds.
const RUNS_S_MAX: i64 = 5400;

/// A machine.
pub struct Node {
    pub id: String,
    credential: String,
    inventory: Inventory,
    taken: Taken,
    heard: Heard,
    /// What is on the disk now.
    here: BTreeMap<LeaseId, Ran>,
    /// All that was ever here.
    pub record: BTreeMap<LeaseId, Ran>,
    /// Reports that are still on their way.
    late: Vec<Report>,
    /// When it was last seen to work: what its keepers marked on the disk.
    alive_at: DateTime<Utc>,
}

/// One lease's work.
#[derive(Debug, Clone)]
pub struct Ran {
    pub job: JobId,
    pub generation: i64,
    cards: Vec<u32>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended: Option<(DateTime<Utc>, Exit)>,
    until: DateTime<Utc>,
}

impl Ran {
    fn phase(&self) -> Phase {
        match (&self.ended, self.started_at) {
            (Some((ended_at, exit)), started_at) => {
                Phase::Ended { started_at, ended_at: *ended_at, exit: exit.clone(), output_bytes: 0 }
            }
            (None, Some(started_at)) => Phase::Running { started_at },
            (None, None) => panic!("a lease on the disk has started or ended"),
        }
    }
}

impl Node {
    /// A machine that has just joined.
    pub async fn join(operator: &Person, nobody: &Person, pool: &str, name: &str) -> Self {
        let issued = operator.made(&format!("/api/v1/pools/{pool}/join-tokens"), json!({})).await;
        let credential = format!("{name:c<64}");
        let inventory = inventory(CARDS);
        let asked = json!({ "token": issued["token"], "name": name, "credential": credential, "inventory": inventory });
        let made = nobody.made("/agent/v1/register", asked).await;
        let id = made["node"].as_str().unwrap().to_owned();
        let (taken, heard) = (Taken::default(), Heard::default());
        let (here, record, late) = (BTreeMap::new(), BTreeMap::new(), vec![]);
        Self { id, credential, inventory, taken, heard, here, record, late, alive_at: DateTime::UNIX_EPOCH }
    }

    /// Whether anything is still here.
    pub fn is_idle(&self) -> bool {
        self.here.is_empty()
    }

    /// The agent's process is killed: what it had in memory is gone.
    pub fn kill(&mut self) {
        self.heard = Heard::default();
    }

    /// The machine starts anew: nobody saw how its work ended, which counts up to the last mark, and not up to now. A
    /// mark of the time before the clock was set back says no more than that.
    pub fn reboot(&mut self, now: DateTime<Utc>) {
        self.kill();
        let marked = self.alive_at.min(now.trunc_subsecs(3));
        for ran in self.here.values_mut().filter(|ran| ran.ended.is_none()) {
            ran.ended = Some((ran.started_at.map_or(marked, |start| start.max(marked)), Exit::Vanished));
        }
        self.keep();
    }

    /// Asks, acts, and says what it sees, as far as it gets.
    pub async fn pass(&mut self, nobody: &Person, now: DateTime<Utc>, dice: &mut Dice) {
        if let Some(desired) = self.call::<Desired>(nobody, Method::GET, "desired?after=-1", None).await {
            self.taken.take(desired);
        }
        self.act(now.trunc_subsecs(3), dice);
        self.say(nobody).await;
        self.act(now.trunc_subsecs(3), dice);
    }

    /// A report that is made now and arrives later.
    pub fn say_later(&mut self) {
        self.late.push(self.report());
    }

    /// What was on its way arrives, newest first.
    pub async fn deliver_late(&mut self, nobody: &Person) {
        while let Some(report) = self.late.pop() {
            self.tell(nobody, &report).await;
        }
    }

    /// Says what it sees; an answer is taken to heart.
    pub async fn say(&mut self, nobody: &Person) {
        let report = self.report();
        let Some(answer) = self.tell(nobody, &report).await else { return };
        let which = |seen: &ObservedLease| (seen.lease, seen.generation);
        let over = |seen: &&ObservedLease| matches!(seen.phase, Phase::Ended { .. });
        self.heard.ended.extend(report.leases.iter().filter(over).map(which));
        self.heard.output.extend(report.leases.iter().filter(over).map(which));
        self.heard.stale.extend(report.leases.iter().map(which).filter(|(lease, _)| answer.stale.contains(lease)));
    }

    /// The same report again and again, at the same time.
    pub async fn repeat(&self, nobody: &Person) {
        let report = self.report();
        futures::future::join_all((0..3).map(|_| self.tell(nobody, &report))).await;
    }

    fn report(&self) -> Report {
        let seen = |(lease, ran): (&LeaseId, &Ran)| ObservedLease {
            lease: *lease,
            generation: ran.generation,
            phase: ran.phase(),
        };
        let leases = self.here.iter().map(seen).collect();
        Report { generation: self.taken.generation(), inventory: self.inventory.clone(), leases }
    }

    async fn tell(&self, nobody: &Person, report: &Report) -> Option<Acknowledged> {
        self.call(nobody, Method::POST, "report", Some(serde_json::to_value(report).unwrap())).await
    }

    /// What the server answers. `None` where it does not, or says that it cannot now.
    async fn call<T: DeserializeOwned>(
        &self,
        nobody: &Person,
        method: Method,
        call: &str,
        body: Option<serde_json::Value>,
    ) -> Option<T> {
        let bearer = nobody.with(&format!("{}.{}", self.id, self.credential));
        let reply = bearer.attempt(method, &format!("/agent/v1/{call}"), body, None).await.ok()?;
        match reply.status {
            StatusCode::OK => Some(serde_json::from_value(reply.body).unwrap()),
            status if status.is_server_error() => None,
            status => panic!("an agent was refused at {call}: {status} {}", reply.body),
        }
    }

    fn local(&self) -> Vec<Local> {
        let local = |(lease, ran): (&LeaseId, &Ran)| Local {
            lease: *lease,
            job: ran.job,
            generation: ran.generation,
            cards: ran.cards.clone(),
            phase: Some(ran.phase()),
        };
        self.here.iter().map(local).collect()
    }

    fn act(&mut self, now: DateTime<Utc>, dice: &mut Dice) {
        self.alive_at = now;
        for ran in self.here.values_mut().filter(|ran| ran.ended.is_none() && ran.until <= now) {
            let code = i32::from(dice.one_in(5));
            ran.ended = Some((now, Exit::Code { code }));
        }
        let local = self.local();
        self.heard.retain(&local);
        let all = self.taken.desired().map_or_else(Vec::new, |desired| steps(desired, &local, &self.heard));
        for step in all {
            match step {
                Step::Start(wanted) => self.start(wanted, now, dice),
                Step::Stop { lease, .. } => self.here.get_mut(&lease).unwrap().ended = Some((now, Exit::Stopped)),
                Step::Forget(which) => self.forget(which),
            }
        }
        self.keep();
    }

    fn start(&mut self, wanted: DesiredLease, now: DateTime<Utc>, dice: &mut Dice) {
        let living = || self.here.values().filter(|ran| ran.ended.is_none());
        assert!(living().all(|ran| ran.job != wanted.job), "{} runs twice", wanted.job);
        let held = |card: &u32| living().any(|ran| ran.cards.contains(card));
        assert!(!wanted.work.cards.iter().any(held), "a card of {} is held by another", wanted.lease);
        assert!(!self.record.contains_key(&wanted.lease), "{} starts a second time", wanted.lease);
        let stopped = wanted.stop_after_ms.is_some();
        let ran = Ran {
            job: wanted.job,
            generation: wanted.generation,
            cards: wanted.work.cards,
            started_at: (!stopped).then_some(now),
            ended: stopped.then_some((now, Exit::Stopped)),
            until: now + TimeDelta::seconds(dice.from_to(1, RUNS_S_MAX)),
        };
        self.here.insert(wanted.lease, ran);
    }

    fn forget(&mut self, (lease, generation): Which) {
        let gone = self.here.remove(&lease).unwrap();
        assert!(gone.ended.is_some() && gone.generation == generation, "{lease} is forgotten while it runs");
    }

    /// Writes down what is here, for good.
    fn keep(&mut self) {
        self.record.extend(self.here.iter().map(|(lease, ran)| (*lease, ran.clone())));
    }
}
