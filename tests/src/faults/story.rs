//! The story in this process: people order, submit and cancel, machines run the work, and a fault comes between.
//!
//! Owns: what each kind of fault does, and ordinary life around it. Does not own: the account at the end (`audit`).
//! Invariant: the platform itself is never told of a fault; it sees what it would see.

use crate::faults::audit::{Account, Span, Spans, of_world};
use crate::faults::client::{Acks, Ask, begun};
use crate::faults::dice::Dice;
use crate::faults::kind::Kind;
use crate::faults::node::Node;
use crate::faults::weather::Weather;
use crate::faults::{Tried, plan};
use crate::lab::Lab;
use crate::world::{Person, World, first_pool};
use chrono::{DateTime, TimeDelta, Utc};
use control::{SILENCE_MAX, Watch, close_due};
use domain::allocation::Job;
use domain::kernel::JobId;
use serde_json::{Value, json};
use store::Engine;

const START: &str = "2026-11-10T01:00:00Z";
/// How many yields a call is given at most before something happens to it.
const YIELDS_MAX: i64 = 400;
/// How often ordinary life goes on at most before everything is done.
const LIVES_MAX: u32 = 1000;

/// The story.
pub struct Story {
    /// Absent only while it is being started again.
    world: Option<World>,
    weather: Weather,
    operator: Person,
    engineer: Person,
    nodes: Vec<Node>,
    dice: Dice,
    acks: Acks,
    /// The latest that its clock has shown.
    latest: DateTime<Utc>,
    /// The submissions so far, and the jobs that they made.
    submitted: Vec<(Ask, String)>,
}

/// Tells the story with so many faults; what it came to, and what was tried.
pub async fn tell(seed: u64, faults: u32) -> (Account, Tried) {
    let mut story = Story::begin(seed).await;
    let mut tried = Tried::new();
    let kinds = Kind::on(story.world().home.engine());
    for kind in plan(&kinds, faults, &mut story.dice) {
        story.live().await;
        story.suffer(kind).await;
        *tried.entry(kind.name()).or_default() += 1;
    }
    (story.end().await, tried)
}

impl Story {
    async fn begin(seed: u64) -> Self {
        let (mut dice, weather) = (Dice::new(seed), Weather::default());
        let engine = if dice.one_in(3) { Engine::Postgres } else { Engine::Sqlite };
        let world = World::through(engine, weather.between(), START).await;
        let lab = Lab::found(&world, 8).await;
        lab.order(&world, "card.sim-a100", 6).await;
        let credit = format!("/api/v1/tenants/{}/wallet/credit", lab.tenant);
        assert!(lab.operator.put(&credit, json!({ "amount": "1000000000" })).await.status.is_success());
        // A session ends when the clock jumps; a key does not.
        let lasting = async |person: &Person| {
            let issued = person.made("/api/v1/keys", json!({ "name": "faults" })).await;
            person.with(issued["key"].as_str().unwrap())
        };
        let (operator, engineer) = (lasting(&lab.operator).await, lasting(&lab.engineer).await);
        let mut nodes = vec![];
        for name in ["a", "b"] {
            nodes.push(Node::join(&lab.operator, &world.nobody(), &first_pool().to_string(), name).await);
        }
        world.settled().await;
        // Far from the day on which the prices began, for a clock that is set back.
        world.pass(TimeDelta::days(40));
        let (latest, acks, submitted) = (world.now(), Acks::default(), vec![]);
        Self { world: Some(world), weather, operator, engineer, nodes, dice, acks, latest, submitted }
    }

    fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    async fn start_again(&mut self) {
        let world = self.world.take().unwrap().restarted().await;
        self.operator = world.again(&self.operator);
        self.engineer = world.again(&self.engineer);
        self.world = Some(world);
    }

    fn pass(&mut self, from_s: i64, to_s: i64) {
        let by = TimeDelta::milliseconds(self.dice.from_to(from_s * 1000, to_s * 1000));
        self.world().pass(by);
    }

    async fn yields(&mut self) {
        for _ in 0..self.dice.from_to(0, YIELDS_MAX) {
            tokio::task::yield_now().await;
        }
    }

    fn submission(&mut self) -> Ask {
        let (cards, restarts) = (self.dice.from_to(1, 2), self.dice.from_to(0, 2));
        let body = json!({
            "name": "train", "command": ["train"], "restarts": restarts,
            "cards": { "model": "sim-a100", "count": cards },
        });
        Ask { key: self.dice.key(), path: "/api/v1/jobs".into(), body, of: "job", or: &[] }
    }

    fn change(&mut self, of: &'static str, path: String, body: Value, or: &'static [&'static str]) -> Ask {
        Ask { key: self.dice.key(), path, body, of, or }
    }

    async fn submit(&mut self, ask: Ask) {
        let job = self.acks.insist(&self.engineer, &ask).await.unwrap();
        self.submitted.push((ask, job));
    }

    async fn machines(&mut self) {
        let (nobody, now) = (self.world().nobody(), self.world().now());
        for node in &mut self.nodes {
            if !self.dice.one_in(4) {
                node.pass(&nobody, now, &mut self.dice).await;
            }
        }
    }

    /// A while without faults.
    async fn live(&mut self) {
        self.world.as_mut().unwrap().is_up();
        if !self.dice.one_in(3) {
            let ask = self.submission();
            self.submit(ask).await;
        }
        if self.dice.one_in(8) && !self.submitted.is_empty() {
            let job = self.dice.pick(&self.submitted).1.clone();
            let ask = self.change("job", format!("/api/v1/jobs/{job}/cancel"), json!({}), &["job.wrong_state"]);
            self.acks.insist(&self.engineer, &ask).await;
        }
        self.machines().await;
        self.pass(1, 1200);
        self.yields().await;
        self.machines().await;
    }

    async fn suffer(&mut self, kind: Kind) {
        self.latest = self.latest.max(self.world().now());
        match kind {
            Kind::ServerKilled => self.start_again().await,
            Kind::ServerKilledInCall => self.killed_in_call().await,
            Kind::AnswerLost | Kind::WriteRepeated | Kind::WriteRepeatedLate => self.troubled_write(kind).await,
            Kind::ReportRepeated | Kind::ReportsReordered => self.troubled_report(kind).await,
            Kind::AgentKilled => self.one_node().kill(),
            Kind::MachineRestarted => {
                let now = self.world().now();
                self.one_node().reboot(now);
            }
            Kind::AgentSilent | Kind::NodeSilent => self.silence(kind).await,
            Kind::NodeGivenUp => self.give_up().await,
            Kind::ClockForward => self.pass(60, 6 * 3600),
            Kind::ClockBack => self.pass(-2 * 3600, -1),
            Kind::LogAway | Kind::LogMute => self.bad_weather(kind).await,
            Kind::ReadModelsBusy => self.busy().await,
            Kind::MonthEnd => self.month_end().await,
            Kind::DatabaseCut => self.cut().await,
            Kind::ServerBeside => self.beside().await,
        }
    }

    fn one_node(&mut self) -> &mut Node {
        let at = usize::from(self.dice.one_in(2));
        &mut self.nodes[at]
    }

    async fn killed_in_call(&mut self) {
        let ask = self.submission();
        let call = begun(&self.engineer, &ask);
        self.yields().await;
        self.start_again().await;
        // The call ends with the platform that it was made to.
        call.abort();
        if let Ok(answer) = call.await {
            self.acks.hear(answer);
        }
        self.submit(ask).await;
    }

    async fn troubled_write(&mut self, kind: Kind) {
        let ask = if kind == Kind::WriteRepeatedLate && !self.submitted.is_empty() {
            self.dice.pick(&self.submitted).0.clone()
        } else {
            self.submission()
        };
        if kind == Kind::AnswerLost {
            let call = begun(&self.engineer, &ask);
            self.yields().await;
            call.abort();
            return self.submit(ask).await;
        }
        let calls: Vec<_> = (0..3).map(|_| begun(&self.engineer, &ask)).collect();
        for call in calls {
            self.acks.hear(call.await.unwrap());
        }
        let job = self.acks.insist(&self.engineer, &ask).await.unwrap();
        if !self.submitted.iter().any(|(_, known)| *known == job) {
            self.submitted.push((ask, job));
        }
    }

    async fn troubled_report(&mut self, kind: Kind) {
        let (nobody, now) = (self.world().nobody(), self.world().now());
        let at = usize::from(self.dice.one_in(2));
        let node = &mut self.nodes[at];
        if kind == Kind::ReportRepeated {
            return node.repeat(&nobody).await;
        }
        node.say_later();
        node.pass(&nobody, now, &mut self.dice).await;
        node.say_later();
        self.pass(1, 300);
        let now = self.world().now();
        let node = &mut self.nodes[at];
        node.pass(&nobody, now, &mut self.dice).await;
        node.deliver_late(&nobody).await;
    }

    /// A machine that is not heard of, for less or for more than is borne. What a clock that was set back had seen still
    /// proves life when its time comes, so that is waited for.
    async fn silence(&mut self, kind: Kind) {
        let behind = self.latest - self.world().now();
        self.world().pass(behind.max(TimeDelta::zero()));
        let at = usize::from(self.dice.one_in(2));
        let minutes = if kind == Kind::NodeSilent { 12 } else { self.dice.from_to(1, 9) };
        let (nobody, now) = (self.world().nobody(), self.world().now());
        self.nodes[at].pass(&nobody, now, &mut self.dice).await;
        self.world().settled().await;
        let mut watch = Watch::new(&self.world().kit, SILENCE_MAX);
        let mut lost = vec![];
        for _ in 0..minutes {
            self.world().pass(TimeDelta::minutes(1));
            let (nobody, now) = (self.world().nobody(), self.world().now());
            self.nodes[1 - at].pass(&nobody, now, &mut self.dice).await;
            lost.extend(watch.look(&self.world().kit, &self.world().fleets).await.unwrap());
        }
        let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
        let expected = if kind == Kind::NodeSilent { vec![self.nodes[at].id.clone()] } else { vec![] };
        assert_eq!(lost, expected, "given up after {minutes} minutes");
    }

    async fn give_up(&mut self) {
        let node = self.one_node().id.clone();
        let ask = self.change("node", format!("/api/v1/nodes/{node}/lose"), json!({ "reason": "no power" }), &[]);
        self.acks.insist(&self.operator, &ask).await;
    }

    async fn bad_weather(&mut self, kind: Kind) {
        let ask = self.submission();
        let before = self.weather.failed();
        if kind == Kind::LogAway {
            self.weather.away(true);
            let call = begun(&self.engineer, &ask);
            self.machines().await;
            self.acks.hear(call.await.unwrap());
            self.weather.away(false);
            assert!(self.weather.failed() > before, "nobody noticed that the log was away");
        } else {
            self.weather.mute(self.dice.from_to(1, 4));
        }
        self.submit(ask).await;
    }

    async fn busy(&mut self) {
        let held = self.world().kit.read.begin().await.unwrap();
        let ask = self.submission();
        self.submit(ask).await;
        self.machines().await;
        drop(held);
    }

    async fn cut(&mut self) {
        let cut = "select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()";
        let ask = self.submission();
        let call = begun(&self.engineer, &ask);
        self.yields().await;
        let cut: Vec<(bool,)> = self.world().kit.read.sql(cut).all().await.unwrap();
        assert!(cut.len() > 1, "there was nothing to cut");
        self.acks.hear(call.await.unwrap());
        self.submit(ask).await;
    }

    async fn beside(&mut self) {
        let other = self.world().beside().await;
        let (engineer, nobody, now) = (other.again(&self.engineer), other.nobody(), other.now());
        let ask = self.submission();
        let job = self.acks.insist(&engineer, &ask).await.unwrap();
        self.submitted.push((ask, job));
        for node in &mut self.nodes {
            node.pass(&nobody, now, &mut self.dice).await;
        }
        self.machines().await;
        self.yields().await;
        other.stopped().await;
    }

    async fn month_end(&mut self) {
        self.world().pass(TimeDelta::days(31));
        close_due(&self.world().kit).await.unwrap();
    }

    /// Good weather until everything is done; the account of it all.
    async fn end(mut self) -> Account {
        self.weather.mute(0);
        for _ in 0..LIVES_MAX {
            self.world.as_mut().unwrap().is_up();
            self.world().settled().await;
            if self.is_done().await {
                return self.account().await;
            }
            let (nobody, now) = (self.world().nobody(), self.world().now());
            for node in &mut self.nodes {
                node.pass(&nobody, now, &mut self.dice).await;
            }
            self.pass(60, 1200);
        }
        panic!("it goes on for ever");
    }

    async fn is_done(&self) -> bool {
        for (_, job) in &self.submitted {
            let job: JobId = job.parse().unwrap();
            if !matches!(self.world().kit.executor.load::<Job>(job).await.unwrap().state, Job::Ended(_)) {
                return false;
            }
        }
        self.nodes.iter().all(Node::is_idle)
    }

    async fn account(self) -> Account {
        let spans = self.nodes.iter().flat_map(|node| &node.record).map(|(lease, ran)| {
            (*lease, Span { started_at: ran.started_at, ended_at: ran.ended.as_ref().map(|(at, _)| *at) })
        });
        let account = of_world(self.world(), &self.acks, &spans.collect::<Spans>()).await;
        self.world.unwrap().stopped().await;
        account
    }
}
