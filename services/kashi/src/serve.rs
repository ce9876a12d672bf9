//! The server side: `kashi up` (every role and a local agent, in one folder) and `kashi server`.
//!
//! Owns: opening the data folder and the database, starting the roles in the right order, the first words on the
//! terminal, a clean end. Does not own: what a first start puts in place (`first_start`), the local agent
//! (`local_agent`).
//! Invariants: SQLite files have one process, a PostgreSQL database has any number of them, and the folder beside it is
//! shared by all; the address of a database, which may hold a password, is never shown; nobody is served before the fleet
//! is caught up; INT and TERM end it within seconds, and running jobs go on.

use crate::{first_start, local_agent};
use anyhow::{Context, bail};
use axum::Router;
use chrono::TimeDelta;
use control::{Fleets, SILENCE_MAX, Versions};
use domain::kernel::{BadResource, Model};
use domain::pools::SIMULATED_PREFIX;
use eventlog::{Executor, Log, SqlLog};
use kit::objects::Outputs;
use kit::runtime::Runtime;
use kit::{Access, Clock, Keyring, Kit, Progress, SessionKey};
use std::convert::Infallible;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use store::{Engine, Home};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Where everything is, and where it listens.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArgs {
    /// The folder of the keys and the output of jobs, and of the log and the read models where there is no --database.
    #[arg(long, env = "KASHI_DATA", default_value = "kashi-data")]
    pub(crate) data: PathBuf,
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, env = "KASHI_LISTEN", default_value = "127.0.0.1:8030")]
    pub(crate) listen: SocketAddr,
    /// Keep the log, the read models and the runtime state in this PostgreSQL database, `postgres://…`. Several servers may
    /// share it; they share the folder of --data as well. A password is better told by the environment.
    #[arg(long, env = "KASHI_DATABASE", hide_env_values = true, value_name = "URL")]
    pub(crate) database: Option<DatabaseUrl>,
    /// The file with the key that signs sessions, if not in the folder of --data. Servers that share a database share it.
    #[arg(long, env = "KASHI_SESSION_KEY", value_name = "FILE")]
    pub(crate) session_key: Option<PathBuf>,
    /// Keep the keys of personal data in this database, `sqlite:PATH` or `postgres://…`, if not beside the log. It is
    /// backed up apart from the log: a backup that holds both undoes erasures.
    #[arg(long, env = "KASHI_KEY_STORE", hide_env_values = true, value_name = "URL")]
    pub(crate) key_store: Option<DatabaseUrl>,
    /// The file with the key that the key store is sealed under, if not in the folder of --data. Servers that share a
    /// database share it.
    #[arg(long, env = "KASHI_MASTER_KEY", value_name = "FILE")]
    pub(crate) master_key: Option<PathBuf>,
    /// Give up a node that is silent for so many seconds: what ran there is lost, and starts elsewhere or fails.
    #[arg(long, env = "KASHI_NODE_SILENCE_MAX_S", value_name = "S", default_value_t = SILENCE_MAX.num_seconds())]
    #[arg(value_parser = clap::value_parser!(i64).range(60..=86_400))]
    pub(crate) node_silence_max_s: i64,
}

/// The address of a database. It may hold a password, so it is taken as it is and shown nowhere.
#[derive(Clone)]
pub(crate) struct DatabaseUrl(String);

impl FromStr for DatabaseUrl {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(hidden)")
    }
}

impl ServerArgs {
    fn home(&self) -> anyhow::Result<Home> {
        match &self.database {
            None => Ok(Home::folder(&self.data)),
            Some(DatabaseUrl(url)) => Home::postgres(url).context("--database"),
        }
    }
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
    versions: Versions,
    fleets: Fleets,
    listener: TcpListener,
    address: SocketAddr,
    silence_max: TimeDelta,
    _lock: File,
}

impl Opened {
    async fn open(args: &ServerArgs) -> anyhow::Result<Self> {
        let (data, home) = (&args.data, args.home()?);
        make_private(data)?;
        let lock = lock(data, home.engine())?;
        let listener = TcpListener::bind(args.listen)
            .await
            .with_context(|| format!("cannot listen on {}; another program may do so: try --listen", args.listen))?;
        let address = listener.local_addr()?;
        let (kit, versions) = open_kit(args, home).await.with_context(|| match args.database {
            None => format!("cannot open the data folder {}", data.display()),
            Some(_) => format!("cannot open the database of --database, or the data folder {}", data.display()),
        })?;
        let fleets = Fleets::caught_up(kit.executor.log()).await?;
        let silence_max = TimeDelta::seconds(args.node_silence_max_s);
        Ok(Self { kit, versions, fleets, listener, address, silence_max, _lock: lock })
    }

    async fn serve(self, agent: Option<local_agent::Offer>) -> anyhow::Result<()> {
        let Self { kit, versions, fleets, listener, silence_max, .. } = self;
        let routes = Router::new()
            .merge(tenant::router(kit.clone()))
            .merge(portal::router(kit.clone()))
            .merge(control::agents_router(kit.clone(), fleets.clone()));
        let served = axum::serve(listener, kit::edge(routes)).into_future();
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let outcome = tokio::select! {
            served = served => served.context("the server stopped"),
            stopped = control::run(kit.clone(), fleets, silence_max) => stopped.context("the control service stopped"),
            () = versions.run(&kit) => Ok(()),
            ended = local_agent::run(&kit, agent) => ended,
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        };
        kit.read.close().await;
        kit.keys.close().await;
        tracing::info!("stopped; running jobs go on and are taken up at the next start");
        outcome
    }
}

async fn open_kit(args: &ServerArgs, home: Home) -> anyhow::Result<(Kit, Versions)> {
    let data = &args.data;
    let log: Log = Arc::new(SqlLog::open(&home.url("log")).await?);
    let runtime = Runtime::open(&home.url("runtime")).await?;
    let key_store = args.key_store.as_ref().map_or_else(|| home.url("keys"), |DatabaseUrl(url)| url.clone());
    let master_key = args.master_key.clone().unwrap_or_else(|| data.join("keys.master"));
    let (read, versions) = Versions::open(home, &runtime).await?;
    let session_key = args.session_key.clone().unwrap_or_else(|| data.join("session.key"));
    let clock = Clock::System;
    let kit = Kit {
        access: Access::new(log.clone(), clock.clone()),
        executor: Executor::new(log),
        read,
        clock,
        sessions: SessionKey::open(&session_key)?,
        keys: Keyring::open(&key_store, &master_key).await.context("the key store")?,
        runtime,
        outputs: Outputs::open(&data.join("objects")),
        progress: Progress::default(),
    };
    Ok((kit, versions))
}

fn make_private(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make the data folder {}", folder.display()))?;
    // One that was there before may be open to others.
    let mode = std::fs::metadata(folder)?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!(folder = %folder.display(), "the data folder was open to other accounts; it is closed to them");
        let closed = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
        closed.with_context(|| format!("the data folder {} is open to other accounts", folder.display()))?;
    }
    Ok(())
}

/// One process per data folder, or several that keep nothing in it but what they share.
fn lock(data: &Path, engine: Engine) -> anyhow::Result<File> {
    let path = data.join("lock");
    let lock = File::options().create(true).append(true).open(&path)?;
    let taken = match engine {
        Engine::Sqlite => lock.try_lock(),
        Engine::Postgres => lock.try_lock_shared(),
    };
    match taken {
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
