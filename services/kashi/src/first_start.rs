//! What a first start puts in place, and what it says.
//!
//! Owns: the platform's own tenant and first pool, the one-time setup secret, and for a trial a tenant, prices, quotas
//! and a credit line, so that the quickstart needs no more. Does not own: any rule; all of it goes through commands.
//! Invariants: every step is a command with an id of its own, so a start that was cut off goes on at the next one and a
//! later start repeats nothing; a secret is shown once, here, and only its hash is kept.

use crate::serve::say;
use anyhow::Context;
use chrono::TimeDelta;
use domain::billing::{Wallet, wallet};
use domain::catalog::{Contract, PriceBook, Product, contract, price_book, product};
use domain::flows::{quota_key, wallet_key};
use domain::identity::Tenant;
use domain::identity::tenant::{self, Level, Setup};
use domain::kernel::{
    Aggregate, Ancestors, CommandId, Currency, CustomerId, Id, MILLI, MemberId, Meta, Model, PoolId, PriceBookId,
    Resource, TenantId, Zone,
};
use domain::pools::{Pool, pool};
use domain::quota::{Allowance, allowance};
use kit::Kit;
use kit::auth::secret;
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The tenant of a trial.
pub(crate) const TRIAL_TENANT: &str = "demo";
const TRIAL_CARDS: i64 = 8;
const TRIAL_CORES: i64 = 64;
const CORE_SKU: &str = "core";
/// How long a join token of the local agent may be used.
const JOIN_TOKEN_FOR: TimeDelta = TimeDelta::hours(1);

/// Who does what is done here.
fn myself() -> MemberId {
    // No handle has a space, so this is nobody's id.
    Id::derived(TenantId::PLATFORM, "first start")
}

fn first_pool() -> PoolId {
    Id::derived(TenantId::PLATFORM, "default")
}

async fn give<A: Aggregate>(
    kit: &Kit,
    tenant: TenantId,
    key: impl std::fmt::Display,
    step: &str,
    command: A::Command,
) -> anyhow::Result<()> {
    let id = CommandId::derived(TenantId::PLATFORM, &format!("first start/{step}"));
    let meta = Meta {
        tenant,
        actor: "system".into(),
        command: id,
        digest: eventlog::digest(&[step]),
        correlation: id,
        causation: None,
        trace: None,
        occurred_at: kit.clock.now(),
    };
    kit.executor
        .execute::<A>(key, meta, command)
        .await
        .with_context(|| format!("the first start failed at: {step}"))?;
    Ok(())
}

fn create_root(tenant: TenantId, name: &str, parent: Option<TenantId>) -> tenant::Command {
    tenant::Command::Create { tenant, name: name.into(), parent, kind: Level::Tenant, above: Ancestors::NONE }
}

/// What every platform has: its own tenant and a first pool.
pub(crate) async fn for_real(kit: &Kit) -> anyhow::Result<()> {
    let platform = TenantId::PLATFORM;
    let create = create_root(platform, "platform", None);
    give::<Tenant>(kit, platform, platform, "create the platform", create).await?;
    let create = pool::Command::Create { pool: first_pool(), name: "default".into() };
    give::<Pool>(kit, platform, first_pool(), "create the first pool", create).await
}

/// The same, and on a fresh log what a trial needs.
pub(crate) async fn for_a_trial(kit: &Kit, model: &Model) -> anyhow::Result<()> {
    let demo: TenantId = Id::derived(TenantId::PLATFORM, TRIAL_TENANT);
    let fresh = kit.executor.log().read_all(0, 1).await?.is_empty();
    let begun = fresh || kit.executor.load::<Tenant>(demo).await?.events > 0;
    for_real(kit).await?;
    if !begun {
        return Ok(());
    }
    let create = create_root(demo, TRIAL_TENANT, Some(TenantId::PLATFORM));
    give::<Tenant>(kit, demo, demo, "create the trial tenant", create).await?;
    let card = Resource::Card(model.clone());
    let book = list_prices(kit, &card).await?;
    on_account(kit, demo, book).await?;
    for (resource, units) in [(card, TRIAL_CARDS), (Resource::Core, TRIAL_CORES)] {
        let step = format!("set the trial quota of {}", if resource == Resource::Core { "cores" } else { "cards" });
        let key = quota_key(demo, &resource);
        let (root, below, milli, by) = (demo, vec![], units * MILLI, myself());
        let set = allowance::Command::SetCeiling { root, below, resource, milli, by };
        give::<Allowance>(kit, demo, key, &step, set).await?;
    }
    Ok(())
}

/// A product for cards and one for cores, and a price book with both.
async fn list_prices(kit: &Kit, card: &Resource) -> anyhow::Result<PriceBookId> {
    let platform = TenantId::PLATFORM;
    let sku = card.to_string();
    let offers = [
        ("offer cards", sku.clone(), card.clone(), "模拟卡时", "Simulated card-hours"),
        ("offer cores", CORE_SKU.into(), Resource::Core, "核时", "Core-hours"),
    ];
    for (step, sku, resource, zh, en) in offers {
        let key = product::product_of(&sku);
        let offer = product::Command::Offer { sku, resource, name_zh: zh.into(), name_en: en.into() };
        give::<Product>(kit, platform, key, step, offer).await?;
    }
    let book: PriceBookId = Id::derived(platform, "list");
    let open = price_book::Command::Open { name: "list".into(), currency: Currency::Cny };
    give::<PriceBook>(kit, platform, book, "open the price book", open).await?;
    let prices = BTreeMap::from([(sku, Decimal::new(80, 0)), (CORE_SKU.into(), Decimal::new(35, 2))]);
    let now = kit.clock.now();
    let publish = price_book::Command::Publish { effective_at: now, prices, now };
    give::<PriceBook>(kit, platform, book, "publish prices", publish).await?;
    Ok(book)
}

/// A contract, and a wallet with a credit line.
async fn on_account(kit: &Kit, tenant: TenantId, book: PriceBookId) -> anyhow::Result<()> {
    let customer: CustomerId = Id::derived(tenant, "customer");
    let (zone, currency) = (Zone::default(), Currency::Cny);
    let sign = contract::Command::Sign(contract::Terms { tenant, customer, book, zone, currency });
    give::<Contract>(kit, tenant, contract::contract_of(tenant), "sign the trial contract", sign).await?;
    let wallet = wallet_key(customer);
    give::<Wallet>(kit, tenant, &wallet, "open the trial wallet", wallet::Command::Open { currency }).await?;
    let credit = wallet::Command::SetCredit { amount: Decimal::new(10_000, 0), by: myself() };
    give::<Wallet>(kit, tenant, &wallet, "set the trial credit line", credit).await
}

/// A new one-time secret for the first operator, unless there is one.
pub(crate) async fn setup_secret(kit: &Kit) -> anyhow::Result<Option<String>> {
    let platform = kit.executor.load::<Tenant>(TenantId::PLATFORM).await?.state;
    if matches!(platform, Tenant::Created { setup: Setup::Used { .. }, .. }) {
        return Ok(None);
    }
    let secret = secret::generate();
    let hash = secret::hash(&secret);
    let step = format!("open the setup/{hash}");
    let open = tenant::Command::OpenSetup { hash };
    give::<Tenant>(kit, TenantId::PLATFORM, TenantId::PLATFORM, &step, open).await?;
    Ok(Some(secret))
}

/// A join token of the first pool, for the agent on this machine.
pub(crate) async fn join_token(kit: &Kit) -> anyhow::Result<String> {
    let secret = secret::generate();
    let hash = secret::hash(&secret);
    let step = format!("issue a join token/{hash}");
    let issue = pool::Command::IssueJoinToken { hash, expires_at: kit.clock.now() + JOIN_TOKEN_FOR, by: myself() };
    give::<Pool>(kit, TenantId::PLATFORM, first_pool(), &step, issue).await?;
    Ok(format!("{}.{secret}", first_pool()))
}

/// Says where the platform is and what to do next.
pub(crate) fn greet(address: &SocketAddr, secret: Option<&str>, cards: Option<&Model>) -> anyhow::Result<()> {
    say(&format!("kashi is up at http://{address}   (Ctrl-C stops it; running jobs go on)"))?;
    if let Some(model) = cards {
        say(&format!("the cards of this machine are SIMULATED ({model}): no such hardware is here"))?;
    }
    let Some(secret) = secret else { return Ok(()) };
    say(&format!("one-time secret of the first operator: {secret}"))?;
    say("next, in another terminal:")?;
    say(&format!("  kashi login --setup --secret {secret} --handle admin"))?;
    say(&format!("  kashi member add li --tenant {TRIAL_TENANT} --role engineer"))?;
    let resource = cards.map_or_else(|| "core".to_owned(), |model| format!("card.{model}"));
    say(&format!(
        "  kashi login --profile li --handle li && kashi --profile li order --resource {resource} --quantity 2"
    ))
}
