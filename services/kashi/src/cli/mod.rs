//! The command line of users and operators: each command asks the REST edge and writes what it answers.
//!
//! Owns: which commands there are, the flags that all share, what a process ends with. Does not own: any rule; a command
//! knows no more than anybody who speaks to the API. One subject a file.
//! Invariants: the same flags everywhere; results on standard output, remarks and faults on standard error.

mod access;
mod api;
mod bills;
mod events;
mod explain;
mod fault;
mod find;
mod follow;
mod jobs;
mod keys;
mod members;
mod nodes;
mod orders;
mod outcome;
mod output;
mod prices;
mod projections;
mod prompt;
mod quotas;
mod settings;
mod sign_in;
mod submit;
mod tenants;
mod wallets;
mod words;

use api::Api;
use fault::{DONE, Fault, INTERRUPTED};
use output::{Format, Output};
use settings::{Files, Settings};
use std::time::Duration;
use tokio::signal::ctrl_c;
use words::Lang;

/// How long an answer may take, unless it is said.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The flags of every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Globals {
    /// How results are written: a table, JSON for programs, or ids only.
    #[arg(short, long, global = true, env = "KASHI_OUTPUT", value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Write ids only, and no remarks.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// As whom: a name that `kashi login --profile` gave.
    #[arg(long, global = true, env = "KASHI_PROFILE", value_name = "NAME")]
    profile: Option<String>,
    /// The server, such as http://127.0.0.1:8030.
    #[arg(long, global = true, env = "KASHI_HOST", value_name = "URL")]
    host: Option<String>,
    /// The language of tables; that of LANG, unless it is said.
    #[arg(long, global = true, env = "KASHI_LANG", value_enum)]
    lang: Option<Lang>,
    /// How long an answer may take, 30 unless it is said; for commands that wait for a job: how long they wait for it.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    timeout: Option<u64>,
}

/// What can be asked for.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Sign in with a password, store an API key, or set up a new platform.
    Login(sign_in::Login),
    /// Forget the session or key of the profile.
    Logout,
    /// Say who you are and what you may do.
    Whoami,
    /// Change your own password; every session ends.
    Password(sign_in::NewPassword),
    /// Order capacity; it may be used once it is approved.
    Order(orders::New),
    /// List orders, newest first.
    Orders(orders::List),
    /// Approve an order, and say what became of it.
    Approve(orders::Approve),
    /// Reject an order, for a reason.
    Reject(orders::Reject),
    /// Give an order back.
    Return(orders::Return),
    /// Submit a job.
    Submit(Box<submit::Submit>),
    /// List jobs, newest first, with why each waits.
    Ps(jobs::List),
    /// Show a job.
    Show(jobs::One),
    /// Write a job's output, byte by byte as the job wrote it.
    Logs(follow::Logs),
    /// Say why a job is where it is, and what to do.
    Why(jobs::One),
    /// Cancel jobs; what has run is billed.
    Cancel(jobs::Cancel),
    /// Wait until jobs have ended; the exit code says how.
    Wait(follow::Wait),
    /// List quotas, or set one.
    Quota(quotas::Quota),
    /// Show what a month costs.
    Bill(bills::Bill),
    /// Explain a statement or a job's cost, charge by charge, down to the events.
    Explain(explain::Explain),
    /// Show a stored event.
    Event(events::One),
    /// List refused commands, sign-ins and reads of personal data, oldest first.
    Access(access::Access),
    /// List nodes; take one out for maintenance, give one up.
    #[command(subcommand)]
    Node(nodes::Node),
    /// List pools; let machines join.
    #[command(subcommand)]
    Pool(nodes::Pool),
    /// List tenants and projects; add, suspend and resume them.
    #[command(subcommand)]
    Tenant(tenants::Tenant),
    /// List members; add, lock and unlock them; what is known of them as persons.
    #[command(subcommand)]
    Member(members::Member),
    /// Your own API keys.
    #[command(subcommand)]
    Key(keys::Key),
    /// Prices and price books.
    #[command(subcommand)]
    Price(prices::Price),
    /// What is sold.
    #[command(subcommand)]
    Product(prices::Product),
    /// How far the read models are; make them anew.
    #[command(subcommand)]
    Projections(projections::Projections),
    /// Show a wallet; pay into it; set its credit line.
    Wallet(wallets::Wallet),
    /// Say which version this is.
    Version,
}

/// What a command works with.
pub(crate) struct Session {
    api: Api,
    /// How long to wait for a job; for ever where it is none.
    patience: Option<Duration>,
}

/// Runs a command, and gives what the process ends with.
pub(crate) async fn run(globals: Globals, command: Command) -> u8 {
    let variable = |name: &str| std::env::var(name).ok();
    let lang = globals.lang.unwrap_or_else(|| Lang::of_environment(variable));
    let mut out = Output::standard(globals.output, lang, globals.quiet);
    let format = globals.output;
    let done = async {
        let code = answer(globals, command, &mut out).await?;
        out.flush()?;
        Ok(code)
    };
    // A prompt is answered before anything listens for Ctrl-C, which it reads itself.
    let code: Result<u8, Fault> = tokio::select! {
        biased;
        code = done => code,
        _ = ctrl_c() => return INTERRUPTED,
    };
    code.unwrap_or_else(|fault| fault.tell(format))
}

async fn answer(globals: Globals, command: Command, out: &mut Output) -> Result<u8, Fault> {
    let variable = |name: &str| std::env::var(name).ok();
    if matches!(command, Command::Version) {
        return version(out);
    }
    let files = Files::of_environment(variable)?;
    let settings = Settings::found(files, globals.profile, globals.host, variable("KASHI_TOKEN"))?;
    let patience = globals.timeout.map(Duration::from_secs);
    // The time for a job is not that for one answer.
    let timeout = if command.waits() { TIMEOUT } else { patience.unwrap_or(TIMEOUT) };
    let session = Session { api: Api::new(settings, timeout)?, patience };
    command.run(session, out).await
}

impl Command {
    fn waits(&self) -> bool {
        matches!(self, Self::Wait(_) | Self::Submit(_) | Self::Logs(_))
    }

    async fn run(self, session: Session, out: &mut Output) -> Result<u8, Fault> {
        let api = &session.api;
        match self {
            Self::Login(login) => return login.run(session.api, out).await,
            Self::Logout => sign_in::logout(api, out)?,
            Self::Whoami => sign_in::whoami(api, out).await?,
            Self::Password(new) => new.run(api, out).await?,
            Self::Order(new) => new.run(api, out).await?,
            Self::Orders(list) => list.run(api, out).await?,
            Self::Approve(approve) => return approve.run(api, out).await,
            Self::Reject(reject) => reject.run(api, out).await?,
            Self::Return(give_back) => return give_back.run(api, out).await,
            Self::Submit(submit) => return submit.run(&session, out).await,
            Self::Ps(list) => list.run(api, out).await?,
            Self::Show(one) => one.show(api, out).await?,
            Self::Logs(logs) => return logs.run(&session, out).await,
            Self::Why(one) => one.why(api, out).await?,
            Self::Cancel(cancel) => return cancel.run(api, out).await,
            Self::Wait(wait) => return wait.run(&session, out).await,
            Self::Quota(quota) => quota.run(api, out).await?,
            Self::Bill(bill) => bill.run(api, out).await?,
            Self::Explain(explain) => explain.run(api, out).await?,
            Self::Event(one) => one.run(api, out).await?,
            Self::Node(node) => node.run(api, out).await?,
            Self::Pool(pool) => pool.run(api, out).await?,
            Self::Tenant(tenant) => return tenant.run(api, out).await,
            Self::Member(member) => member.run(api, out).await?,
            Self::Access(access) => access.run(api, out).await?,
            Self::Key(key) => key.run(api, out).await?,
            Self::Price(price) => price.run(api, out).await?,
            Self::Product(product) => product.run(api, out).await?,
            Self::Projections(projections) => projections.run(api, out).await?,
            Self::Wallet(wallet) => wallet.run(api, out).await?,
            Self::Version => return version(out),
        }
        Ok(DONE)
    }
}

fn version(out: &mut Output) -> Result<u8, Fault> {
    let version = env!("CARGO_PKG_VERSION");
    match out.format() {
        Format::Json => out.json(serde_json::json!({ "kind": "Version", "version": version }))?,
        Format::Name => out.line(version)?,
        Format::Table => out.line(&format!("kashi {version}"))?,
    }
    Ok(DONE)
}
