//! The story over real processes: a server, an agent and jobs that are killed, stopped, cut off and left without disk.
//!
//! Owns: what each kind of fault does to a process. Does not own: starting and finding processes (`processes`), the
//! account at the end (`audit`).
//! Invariants: as whoever supervises a server would, the story starts one again that has ended; every process of the
//! story has ended with it.

use crate::faults::audit::{Account, of_world};
use crate::faults::client::{Acks, Answer, Ask, begun, once};
use crate::faults::dice::Dice;
use crate::faults::disk::SmallDisk;
use crate::faults::{Tried, plan};
use crate::processes::proxy::Proxy;
use crate::processes::{Process, Server, agent, keeper, leases, nothing_runs, sweep, until};
use crate::world::{Person, World, first_pool};
use domain::kernel::{Id, TenantId};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// How many jobs may wait or run before a story waits for some to end.
const UNFINISHED_MAX: usize = 6;
/// How long a client waits for a server that stands still.
const CALL_MAX: Duration = Duration::from_millis(300);
const YIELDS_MAX: i64 = 2000;
/// How much of a program's log a failure shows.
const LOG_LINES: usize = 60;
const JOBS: &[&str] = &["exit 0", "exit 3", "read line; sleep 0.2", "sleep 0.7", "(sleep 0.4 &); exit 0", "kill -9 $$"];

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ServerKilled,
    ServerKilledInCall,
    AgentKilled,
    BothKilled,
    ServerStopped,
    AgentStopped,
    KeeperKilled,
    ConnectionCut,
    AnswersLost,
    CallsRepeated,
    DiskFull,
}

/// Every kind that needs no disk of its own.
pub const KINDS: &[Kind] = &[
    Kind::ServerKilled,
    Kind::ServerKilledInCall,
    Kind::AgentKilled,
    Kind::BothKilled,
    Kind::ServerStopped,
    Kind::AgentStopped,
    Kind::KeeperKilled,
    Kind::ConnectionCut,
    Kind::AnswersLost,
    Kind::CallsRepeated,
];

impl Kind {
    /// What a report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServerKilled => "real_server_killed",
            Self::ServerKilledInCall => "real_server_killed_in_call",
            Self::AgentKilled => "real_agent_killed",
            Self::BothKilled => "real_both_killed",
            Self::ServerStopped => "real_server_stopped",
            Self::AgentStopped => "real_agent_stopped",
            Self::KeeperKilled => "real_keeper_killed",
            Self::ConnectionCut => "real_connection_cut",
            Self::AnswersLost => "real_answers_lost",
            Self::CallsRepeated => "real_calls_repeated",
            Self::DiskFull => "real_disk_full",
        }
    }
}

/// A server and an agent as processes, on folders of their own.
pub struct Platform {
    /// Where the server's data is.
    data: PathBuf,
    pub agent_data: PathBuf,
    pub proxy: Proxy,
    server: Option<Server>,
    agent: Option<Process>,
    /// Told at each start, since the agent may be killed before it has joined.
    token: String,
    operator: Person,
    pub engineer: Person,
    pub acks: Acks,
    /// Unmounted before the folder goes.
    disk: Option<SmallDisk>,
    folder: tempfile::TempDir,
}

/// The story.
struct Story {
    platform: Platform,
    dice: Dice,
    jobs: Vec<String>,
}

/// Tells the story with so many faults; what it came to, and what was tried.
pub async fn tell(seed: u64, faults: u32) -> (Account, Tried) {
    let platform = Platform::begin().await;
    let mut kinds = KINDS.to_vec();
    kinds.extend(platform.disk.as_ref().map(|_| Kind::DiskFull));
    let mut story = Story { platform, dice: Dice::new(seed), jobs: vec![] };
    let mut tried = Tried::new();
    for kind in plan(&kinds, faults, &mut story.dice) {
        story.live().await;
        story.suffer(kind).await;
        *tried.entry(kind.name()).or_default() += 1;
    }
    (story.platform.end().await, tried)
}

impl Platform {
    /// Starts both, with an engineer who may use four cards.
    pub async fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [data, agent_data] = ["server", "agent"].map(|name| folder.path().join(name));
        let disk = SmallDisk::at(&data);
        let server = Server::start(&data, &folder.path().join("server.log")).await.expect("the server does not start");
        let proxy = Proxy::open().await;
        proxy.leads_to(&server.url);
        let (operator, engineer) = people(&server).await;
        let issued = operator.made(&format!("/api/v1/pools/{}/join-tokens", first_pool()), json!({})).await;
        let log = folder.path().join("agent.log");
        let token = issued["token"].as_str().unwrap().to_owned();
        let agent = agent(&proxy.url, &agent_data, &token, &log);
        let (server, agent, acks) = (Some(server), Some(agent), Acks::default());
        Self { data, agent_data, proxy, server, agent, token, operator, engineer, acks, disk, folder }
    }

    /// Kills the server, if it runs.
    pub async fn kill_server(&mut self) {
        if let Some(server) = self.server.take() {
            server.process.kill().await;
        }
    }

    /// Kills the agent, if it runs.
    pub async fn kill_agent(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.kill().await;
        }
    }

    /// Starts the server, unless it runs.
    pub async fn start_server(&mut self) {
        if self.server.as_mut().is_some_and(|server| !server.process.has_ended()) {
            return;
        }
        let log = self.folder.path().join("server.log");
        let server = Server::start(&self.data, &log).await.expect("the server does not start again");
        self.operator = self.operator.moved(&server.url);
        self.engineer = self.engineer.moved(&server.url);
        self.proxy.leads_to(&server.url);
        self.server = Some(server);
    }

    /// Starts the agent, unless it runs.
    pub fn start_agent(&mut self) {
        if self.agent.as_mut().is_some_and(|agent| !agent.has_ended()) {
            return;
        }
        let log = self.folder.path().join("agent.log");
        self.agent = Some(agent(&self.proxy.url, &self.agent_data, &self.token, &log));
    }

    /// Waits until no more jobs than that are not over.
    pub async fn at_most(&self, unfinished: usize) {
        until("jobs to end", || async {
            let Answered(Some(jobs)) = read(&self.engineer, "/api/v1/jobs").await else { return false };
            jobs["items"].as_array().unwrap().len() <= unfinished
        })
        .await;
    }

    /// Waits until all is done and said; ends both processes; the account of it.
    pub async fn end(mut self) -> Account {
        self.start_server().await;
        self.start_agent();
        self.at_most(0).await;
        until("the agent to forget", || async { leases(&self.agent_data).is_empty() }).await;
        self.agent.take().unwrap().end().await;
        self.server.take().unwrap().process.end().await;
        let spans = self.proxy.spans();
        assert!(nothing_runs(spans.keys().copied()), "a job left a process");
        let world = World::over(&self.data).await;
        world.settled().await;
        let account = of_world(&world, &self.acks, &spans).await;
        world.stopped().await;
        account
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        if let Some(agent) = &self.agent {
            agent.signal(Signal::KILL);
        }
        sweep(&self.agent_data);
        if std::thread::panicking() {
            for name in ["server.log", "agent.log"] {
                let log = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                eprintln!("--- {name}\n{}", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"));
            }
        }
        drop(self.disk.take());
    }
}

/// What a read brought, if anything.
struct Answered(Option<Value>);

async fn read(who: &Person, path: &str) -> Answered {
    let reply = who.attempt(reqwest::Method::GET, path, None, None).await;
    Answered(reply.ok().filter(|reply| reply.status.is_success()).map(|reply| reply.body))
}

/// The operator, and an engineer of the trial's tenant with an active order; by keys, which outlive any session.
async fn people(server: &Server) -> (Person, Person) {
    let nobody = Person::at(&server.url);
    let secret = server.secret.as_deref().expect("a first start shows a secret");
    let setup = json!({ "secret": secret, "handle": "admin", "password": "correct horse battery" });
    let session = nobody.made("/api/v1/setup", setup).await;
    let operator = nobody.with(session["token"].as_str().unwrap());
    let demo: TenantId = Id::derived(TenantId::PLATFORM, "demo");
    let password = "engineers password";
    let member = json!({ "handle": "li", "tenant": demo.to_string(), "roles": ["engineer"], "password": password });
    operator.made("/api/v1/members", member).await;
    let login = json!({ "handle": "li", "password": password });
    let signed_in = || async { nobody.post("/api/v1/login", login.clone()).await };
    until("the engineer to be known", || async { signed_in().await.status.is_success() }).await;
    let engineer = nobody.with(signed_in().await.body["token"].as_str().unwrap());
    let order = json!({ "resource": "card.sim-a100", "quantity": 4 });
    let order = engineer.made("/api/v1/orders", order).await["id"].as_str().unwrap().to_owned();
    operator.made(&format!("/api/v1/orders/{order}/approve"), json!({})).await;
    let active = || async { engineer.get(&format!("/api/v1/orders/{order}")).await.body["status"] == "active" };
    until("the order to be active", active).await;
    let key = async |person: &Person| {
        let issued = person.made("/api/v1/keys", json!({ "name": "faults" })).await;
        person.with(issued["key"].as_str().unwrap())
    };
    (key(&operator).await, key(&engineer).await)
}

impl Story {
    fn submission(&mut self) -> Ask {
        let script = *self.dice.pick(JOBS);
        let body = json!({
            "name": "job", "command": ["/bin/sh", "-c", script], "milli_cores": 100, "memory_mib": 16,
            "cards": { "model": "sim-a100", "count": 1 }, "restarts": self.dice.from_to(0, 1),
        });
        Ask { key: self.dice.key(), path: "/api/v1/jobs".into(), body, of: "job", or: &[] }
    }

    async fn submit(&mut self, ask: &Ask) {
        let platform = &mut self.platform;
        let job = platform.acks.insist(&platform.engineer, ask).await.unwrap();
        self.jobs.push(job);
    }

    /// A while without faults.
    async fn live(&mut self) {
        self.platform.start_server().await;
        self.platform.start_agent();
        let ask = self.submission();
        self.submit(&ask).await;
        if self.dice.one_in(6) {
            let job = self.dice.pick(&self.jobs).clone();
            let path = format!("/api/v1/jobs/{job}/cancel");
            let ask = Ask { key: self.dice.key(), path, body: json!({}), of: "job", or: &["job.wrong_state"] };
            self.platform.acks.insist(&self.platform.engineer, &ask).await;
        }
        self.platform.at_most(UNFINISHED_MAX).await;
    }

    async fn suffer(&mut self, kind: Kind) {
        let ask = self.submission();
        match kind {
            Kind::ServerKilled | Kind::ServerKilledInCall | Kind::AgentKilled | Kind::BothKilled => {
                self.kill(kind, &ask).await;
            }
            Kind::ServerStopped | Kind::AgentStopped => self.stop(kind, &ask).await,
            Kind::KeeperKilled => self.kill_keeper(),
            Kind::ConnectionCut => {
                self.platform.proxy.cut(true);
                self.submit(&ask).await;
                self.platform.proxy.cut(false);
                return;
            }
            Kind::AnswersLost => self.platform.proxy.lose_answers(self.dice.from_to(1, 5)),
            Kind::CallsRepeated => self.platform.proxy.repeat(self.dice.from_to(1, 8)),
            Kind::DiskFull => self.fill_disk(&ask).await,
        }
        self.submit(&ask).await;
    }

    async fn yields(&mut self) {
        for _ in 0..self.dice.from_to(0, YIELDS_MAX) {
            tokio::task::yield_now().await;
        }
    }

    async fn kill(&mut self, kind: Kind, ask: &Ask) {
        let call = (kind == Kind::ServerKilledInCall).then(|| begun(&self.platform.engineer, ask));
        self.yields().await;
        if kind != Kind::AgentKilled {
            self.platform.kill_server().await;
        }
        if matches!(kind, Kind::AgentKilled | Kind::BothKilled) {
            self.platform.kill_agent().await;
        }
        if let Some(call) = call {
            self.platform.acks.hear(call.await.unwrap());
        }
        self.platform.start_agent();
        self.platform.start_server().await;
    }

    async fn stop(&mut self, kind: Kind, ask: &Ask) {
        let stopped = if kind == Kind::ServerStopped {
            &self.platform.server.as_ref().unwrap().process
        } else {
            self.platform.agent.as_ref().unwrap()
        };
        stopped.freeze().await;
        let answer = timeout(CALL_MAX, once(&self.platform.engineer, ask)).await;
        stopped.signal(Signal::CONT);
        if kind == Kind::ServerStopped {
            assert!(answer.is_err(), "who stands still answers nothing");
        }
        self.platform.acks.hear(answer.unwrap_or(Answer::None));
    }

    fn kill_keeper(&mut self) {
        let keepers: Vec<_> =
            leases(&self.platform.agent_data).iter().filter_map(|(_, folder)| keeper(folder)).collect();
        if !keepers.is_empty() {
            // It may have ended meanwhile.
            let _ = kill_process(*self.dice.pick(&keepers), Signal::KILL);
        }
    }

    async fn fill_disk(&mut self, ask: &Ask) {
        let disk = self.platform.disk.as_ref().unwrap();
        disk.fill();
        for _ in 0..self.dice.from_to(1, 10) {
            let answer = timeout(CALL_MAX, once(&self.platform.engineer, ask)).await;
            self.platform.acks.hear(answer.unwrap_or(Answer::None));
        }
        disk.empty();
        self.platform.start_server().await;
    }
}
