//! The server side: `kashi up` (every role and a local agent, in one folder) and `kashi server`.
//!
//! Owns: opening the data folder, starting the roles in the right order, the first words on the terminal, a clean end.
//! Does not own: what a first start puts in place (`first_start`), the local agent (`local_agent`).
//! Invariants: one process per data folder; nobody is served before the fleet is caught up; INT and TERM end it within
//! seconds, and running jobs go on.

use crate::{first_start, local_agent};
use anyhow::{Context, bail};
use axum::Router;
use control::Fleets;
use domain::kernel::{BadResource, Model};
use domain::pools::SIMULATED_PREFIX;
use eventlog::{Executor, Log, SqlLog};
use kit::objects::Outputs;
use kit::runtime::Runtime;
use kit::{Clock, Kit, Progress, SessionKey};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Db;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Where everything is, and where it listens.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArgs {
    /// The folder of the log, the read models and the output of jobs.
    #[arg(long, env = "KASHI_DATA", default_value = "kashi-data")]
    pub(crate) data: PathBuf,
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, env = "KASHI_LISTEN", default_value = "127.0.0.1:8030")]
    pub(crate) listen: SocketAddr,
}

/// The same, and a local agent.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Let the local agent offer so many made-up cards, for a trial.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub(crate) simulate_cards: u32,
    /// The model of the made-up cards; it begins with `sim-`.
    #[arg(long, default_value = "sim-a100", value_parser = simulated_model)]
    pub(crate) model: Model,
    /// Start no agent on this machine.
    #[arg(long)]
    pub(crate) no_agent: bool,
}

fn simulated_model(text: &str) -> Result<Model, String> {
    let model: Model = text.parse().map_err(|error: BadResource| error.to_string())?;
    if model.as_str().starts_with(SIMULATED_PREFIX) {
        Ok(model)
    } else {
        Err(format!(
            "the cards are not real, so their model begins with `{SIMULATED_PREFIX}`: {SIMULATED_PREFIX}{model}"
        ))
    }
}

/// Every role in one process, and one agent on this machine.
pub(crate) async fn up(args: UpArgs) -> anyhow::Result<()> {
    let open = Opened::open(&args.server).await?;
    let cards = (args.simulate_cards > 0).then_some(&args.model);
    first_start::for_a_trial(&open.kit, &args.model).await?;
    let secret = first_start::setup_secret(&open.kit).await?;
    let agent = (!args.no_agent).then(|| local_agent::Offer {
        data: args.server.data.join("agent"),
        server: format!("http://{}", open.address),
        cards: cards.map(|model| (args.simulate_cards, model.clone())),
    });
    first_start::greet(&open.address, secret.as_deref(), cards)?;
    open.serve(agent).await
}

/// Every role in one process; agents join from elsewhere.
pub(crate) async fn server(args: ServerArgs) -> anyhow::Result<()> {
    let open = Opened::open(&args).await?;
    first_start::for_real(&open.kit).await?;
    let secret = first_start::setup_secret(&open.kit).await?;
    first_start::greet(&open.address, secret.as_deref(), None)?;
    open.serve(None).await
}

/// A data folder that is ours, and a port.
struct Opened {
    kit: Kit,
    fleets: Fleets,
    listener: TcpListener,
    address: SocketAddr,
    _lock: File,
}

impl Opened {
    async fn open(args: &ServerArgs) -> anyhow::Result<Self> {
        let data = &args.data;
        make_private(data)?;
        let lock = lock(data)?;
        let listener = TcpListener::bind(args.listen)
            .await
            .with_context(|| format!("cannot listen on {}; another program may do so: try --listen", args.listen))?;
        let address = listener.local_addr()?;
        let kit = open_kit(data).await.with_context(|| format!("cannot open the data folder {}", data.display()))?;
        let fleets = Fleets::caught_up(kit.executor.log()).await?;
        Ok(Self { kit, fleets, listener, address, _lock: lock })
    }

    async fn serve(self, agent: Option<local_agent::Offer>) -> anyhow::Result<()> {
        let Self { kit, fleets, listener, .. } = self;
        let routes = Router::new()
            .merge(tenant::router(kit.clone()))
            .merge(portal::router(kit.clone()))
            .merge(control::agents_router(kit.clone(), fleets.clone()));
        let served = axum::serve(listener, kit::edge(routes)).into_future();
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let outcome = tokio::select! {
            served = served => served.context("the server stopped"),
            stopped = control::run(kit.clone(), fleets) => stopped.context("the control service stopped"),
            ended = local_agent::run(&kit, agent) => ended,
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        };
        kit.read.close().await;
        tracing::info!("stopped; running jobs go on and are taken up at the next start");
        outcome
    }
}

async fn open_kit(data: &Path) -> anyhow::Result<Kit> {
    let at = |name: &str| format!("sqlite:{}", data.join(name).display());
    let log: Log = Arc::new(SqlLog::open(&at("log.db")).await?);
    Ok(Kit {
        executor: Executor::new(log),
        read: Db::open_relaxed(&at("read.db"), &projections::MIGRATIONS).await?,
        clock: Clock::System,
        sessions: SessionKey::open(&data.join("session.key"))?,
        runtime: Runtime::open(&at("runtime.db")).await?,
        outputs: Outputs::open(&data.join("objects")),
        progress: Progress::default(),
    })
}

fn make_private(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make the data folder {}", folder.display()))
}

/// One process per data folder.
fn lock(data: &Path) -> anyhow::Result<File> {
    let path = data.join("lock");
    let lock = File::options().create(true).append(true).open(&path)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            bail!("another kashi runs on {}; stop it, or give another folder with --data", data.display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// Writes for people, to standard output.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
