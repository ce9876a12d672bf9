//! The agent as a whole: one loop that compares and acts, and beside it the calls that may take long.
//!
//! Owns: the order of things. Invariants: only the loop changes what is taken and heard; a call that waits, however
//! long, stops no other; a generation is reported only after it was acted upon; under a desired set that is not on the
//! disk, work is ended but nothing is begun or forgotten, for an agent that starts again would know the set before it.

use crate::{
    config::Settings,
    identity::{Identity, JoinError},
    link::{Link, LinkError},
    output,
    patience::Patience,
    probe,
    reconcile::{Heard, Step, Which, kept, steps},
    report::report,
    run::Runner,
    state::{Data, DataError, Local, Taken},
};
use agent_protocol::{Acknowledged, Desired};
use std::{collections::BTreeMap, convert::Infallible, io, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::Instant,
};

/// How soon what failed on the disk is tried again.
const TRY_EVERY: Duration = Duration::from_secs(10);
/// How soon an answer without news may be asked for again, so that a server that does not wait is not flooded.
const POLL_PAUSE: Duration = Duration::from_secs(1);
const NEWS_MAX: usize = 64;

/// Why the agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("the leases' folders cannot be used")]
    Leases(#[source] io::Error),
}

/// What the calls bring.
#[derive(Debug)]
pub(crate) enum News {
    Desired(Desired),
    Reported { ended: Vec<Which>, all: Vec<Which>, answer: Acknowledged },
    Delivered(Which),
}

/// What the loop works on.
struct Agent {
    data: Data,
    link: Link,
    runner: Arc<Runner>,
    taken: Taken,
    /// Whether what was taken is on the disk.
    kept: bool,
    heard: Heard,
    /// The generation that was acted upon.
    acted: watch::Sender<i64>,
    news: mpsc::Sender<News>,
    delivering: BTreeMap<Which, AbortHandle>,
    /// They end with the agent.
    deliveries: JoinSet<()>,
}

/// Runs until it is dropped; jobs go on after that. `program` is the agent's binary, which also keeps the jobs.
pub async fn run(settings: &Settings, program: PathBuf) -> Result<Infallible, AgentError> {
    let data = Data::open(&settings.data)?;
    let inventory = probe::inventory(settings);
    let identity = Identity::open(data.path(), settings, &inventory).await?;
    let link = Link::new(&settings.server, &identity)?;
    let runner = Arc::new(Runner::open(data.path(), program).map_err(AgentError::Leases)?);
    let taken = data.taken();
    tracing::info!(node.id = %identity.node, generation = taken.generation(), "the agent runs");
    let (news, hears) = mpsc::channel(NEWS_MAX);
    let acted = watch::Sender::new(0);
    let poll = poll(link.clone(), taken.generation(), news.clone());
    let report = report(link.clone(), Arc::clone(&runner), inventory, acted.subscribe(), news.clone());
    let heard = Heard::default();
    let (delivering, deliveries) = (BTreeMap::new(), JoinSet::new());
    let mut agent = Agent { data, link, runner, taken, kept: true, heard, acted, news, delivering, deliveries };
    // Before the first report, so that it says what was made of the set that was kept.
    agent.pass().await.map_err(AgentError::Leases)?;
    tokio::select! {
        never = agent.work(hears) => Ok(never),
        never = poll => Ok(never),
        never = report => Ok(never),
    }
}

impl Agent {
    async fn work(mut self, mut hears: mpsc::Receiver<News>) -> Infallible {
        let mut changed = self.runner.changed();
        loop {
            if let Err(error) = self.pass().await {
                tracing::error!(%error, "the leases cannot be seen to; it is tried again");
            }
            tokio::select! {
                news = hears.recv() => if let Some(news) = news { self.hear(news) },
                _ = changed.changed() => {}
                // What failed on the disk is tried again, though nothing has changed.
                () = tokio::time::sleep(TRY_EVERY) => {}
                _ = self.deliveries.join_next(), if !self.deliveries.is_empty() => {}
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Desired(offered) => {
                if self.taken.take(offered) {
                    self.kept = false;
                }
            }
            News::Reported { ended, all, answer } => {
                self.heard.ended.extend(ended);
                self.heard.stale.extend(all.into_iter().filter(|(lease, _)| answer.stale.contains(lease)));
            }
            News::Delivered(which) => {
                self.delivering.remove(&which);
                self.heard.output.insert(which);
            }
        }
    }

    /// Looks and acts once.
    async fn pass(&mut self) -> io::Result<()> {
        self.keep();
        let local = self.runner.observe()?;
        self.heard.retain(&local);
        let all = self.taken.desired().map_or_else(Vec::new, |desired| steps(desired, &local, &self.heard));
        let whole = self.kept;
        for step in all.into_iter().filter(|step| whole || matches!(step, Step::Stop { .. })) {
            let done = match &step {
                Step::Start(wanted) => self.runner.start(wanted).await,
                Step::Stop { lease, grace_ms } => self.runner.stop(*lease, *grace_ms),
                Step::Forget(which) => self.forget(*which),
            };
            if let Err(error) = done {
                tracing::error!(%error, step = step.name(), "a step failed; it is tried again");
            }
        }
        if self.kept {
            self.settle(&local);
        }
        for local in self.runner.observe()? {
            self.deliver((local.lease, local.generation));
        }
        Ok(())
    }

    /// Keeps what was taken, unless that is done.
    fn keep(&mut self) {
        if !self.kept {
            match self.data.keep(&self.taken) {
                Ok(()) => self.kept = true,
                Err(error) => tracing::error!(%error, "the desired set cannot be kept on the disk; it is tried again"),
            }
        }
    }

    /// What is left to do when the set was acted upon as a whole.
    fn settle(&self, local: &[Local]) {
        if let Some(desired) = self.taken.desired()
            && let Err(error) = self.runner.keep_checkpoints(&kept(desired, local))
        {
            tracing::error!(%error, "the checkpoints of jobs that are over cannot be removed; it is tried again");
        }
        let generation = self.taken.generation();
        self.acted.send_if_modified(|acted| std::mem::replace(acted, generation) != generation);
    }

    fn forget(&mut self, which: Which) -> io::Result<()> {
        if let Some(delivery) = self.delivering.remove(&which) {
            delivery.abort();
        }
        self.runner.forget(which)
    }

    /// Delivers the output of a lease, unless that is done or being done.
    fn deliver(&mut self, which: Which) {
        if self.heard.output.contains(&which) || self.delivering.contains_key(&which) {
            return;
        }
        let (link, folder, news) = (self.link.clone(), self.runner.folder(which.0), self.news.clone());
        let call = async move {
            while let Err(error) = output::deliver(&link, which.0, &folder).await {
                tracing::error!(lease.id = %which.0, %error, "the output of a lease cannot be read");
                tokio::time::sleep(TRY_EVERY).await;
            }
            // The loop is gone only when the agent is.
            let _ = news.send(News::Delivered(which)).await;
        };
        self.delivering.insert(which, self.deliveries.spawn(call));
    }
}

/// Asks for the desired set, for ever.
async fn poll(link: Link, mut after: i64, news: mpsc::Sender<News>) -> Infallible {
    let mut patience = Patience::new("desired");
    loop {
        let asked = Instant::now();
        match link.desired(after).await {
            Ok(desired) => {
                patience.rewarded();
                let newer = desired.generation > after;
                after = after.max(desired.generation);
                // The loop that hears it ends together with this one.
                let _ = news.send(News::Desired(desired)).await;
                if !newer {
                    tokio::time::sleep_until(asked + POLL_PAUSE).await;
                }
            }
            Err(error) => tokio::time::sleep(patience.after(&error)).await,
        }
    }
}
