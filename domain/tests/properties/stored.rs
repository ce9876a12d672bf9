//! Every event of every aggregate is read back from its JSON as it was.

use super::given::{config, history, instant, one_of, text};
use super::{ends, money, quota, usage};
use domain::allocation::{Job, Lease, Plan, plan};
use domain::billing::ledger::Heading;
use domain::billing::line::{Line, LineKey, Total};
use domain::billing::{Ledger, Series, Statement, Wallet, series, statement};
use domain::catalog::{Contract, PriceBook, Product, contract, product};
use domain::identity::{ApiKey, Member, Role, Tenant, api_key, member, tenant};
use domain::kernel::spec::bill_to;
use domain::kernel::{Aggregate, Ancestors, Currency, Id, Quantity, TenantId, Unit};
use domain::metering::Meter;
use domain::ordering::Order;
use domain::pools::{Card, Inventory, Node, Pool, node, pool};
use domain::quota::Allowance;
use domain::{CATEGORIES, Event};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::{option, sample};
use rust_decimal::Decimal;

/// The histories of an aggregate, as events of the platform.
fn of<A: Aggregate>(commands: impl Strategy<Value = Vec<A::Command>> + 'static) -> BoxedStrategy<Vec<Event>>
where
    Event: From<A::Event>,
{
    commands.prop_map(|commands| history::<A>(commands).into_iter().map(Event::from).collect()).boxed()
}

/// One command first, others after it.
fn after<C: Clone + std::fmt::Debug + 'static>(
    first: impl Strategy<Value = C> + 'static,
    others: impl Strategy<Value = C> + 'static,
) -> impl Strategy<Value = Vec<C>> {
    (first, vec(others, 0..10)).prop_map(|(first, others)| [first].into_iter().chain(others).collect())
}

fn tenants() -> BoxedStrategy<Vec<Event>> {
    use tenant::Command;
    let level = || sample::select(vec![tenant::Level::Tenant, tenant::Level::Project]);
    let create = (one_of(2), text(), vec(one_of(9), 0..9), level()).prop_map(|(tenant, name, above, kind)| {
        let above = above.into_iter().fold(Ancestors::NONE, |above, node| above.with(node));
        Command::Create { tenant, name, parent: above.parent(), kind, above }
    });
    let (platform, name) = (TenantId::PLATFORM, String::from("平台"));
    let (kind, above) = (tenant::Level::Tenant, Ancestors::NONE);
    let platform = Just(Command::Create { tenant: platform, name, parent: None, kind, above });
    let others = prop_oneof![
        text().prop_map(|hash| Command::OpenSetup { hash }),
        Just(Command::OpenSetup { hash: "h".into() }),
        text().prop_map(|reason| Command::Suspend { by: member::member_of("root"), reason }),
        Just(Command::Resume { by: member::member_of("root") }),
        ("[a-z]{2,9}", text()).prop_map(|(handle, password)| {
            let member = member::member_of(&handle);
            Command::UseSetup { hash: "h".into(), member, handle, password }
        }),
    ];
    of::<Tenant>(after(prop_oneof![create, platform], others))
}

fn members() -> BoxedStrategy<Vec<Event>> {
    use member::Command;
    let roles = btree_set(sample::select(Role::ALL.to_vec()), 0..4);
    let add = ("[a-z]{2,9}", roles, option::of(text())).prop_map(|(handle, roles, password)| Command::Add {
        tenant: TenantId::PLATFORM,
        handle,
        roles,
        password,
    });
    let others = prop_oneof![
        text().prop_map(|password| Command::SetPassword { password }),
        (one_of(2), text()).prop_map(|(by, reason)| Command::Lock { by, reason }),
        one_of(2).prop_map(|by| Command::Unlock { by }),
    ];
    of::<Member>(after(add, others))
}

fn keys() -> BoxedStrategy<Vec<Event>> {
    use api_key::Command;
    let issue = (text(), text(), option::of(instant())).prop_map(|(name, hash, expires_at)| Command::Issue {
        tenant: TenantId::PLATFORM,
        member: member::member_of("li"),
        name,
        hash,
        expires_at,
    });
    of::<ApiKey>(after(issue, one_of(2).prop_map(|by| Command::Revoke { by })))
}

fn inventory() -> impl Strategy<Value = Inventory> {
    let card =
        (any::<u32>(), text(), 0_i64..100_000, any::<bool>()).prop_map(|(index, uuid, memory_mib, simulated)| Card {
            index,
            uuid,
            model: "a100".parse().unwrap(),
            memory_mib,
            simulated,
        });
    (1_i64..100_000, 1_i64..100_000, vec(card, 0..3), text(), text()).prop_map(
        |(milli_cores, memory_mib, cards, platform, agent)| Inventory {
            milli_cores,
            memory_mib,
            cards,
            platform,
            agent,
        },
    )
}

fn pools() -> BoxedStrategy<Vec<Event>> {
    use pool::Command;
    let create = text().prop_map(|name| Command::Create { pool: Id::derived(TenantId::PLATFORM, "pool"), name });
    let hash = || sample::select(vec!["a", "b"]).prop_map(str::to_owned);
    let others = prop_oneof![
        (hash(), instant(), one_of(2)).prop_map(|(hash, expires_at, by)| Command::IssueJoinToken {
            hash,
            expires_at,
            by,
        }),
        (hash(), text(), text(), inventory(), instant()).prop_map(|(hash, credential, name, inventory, at)| {
            Command::Join { hash, credential, name, inventory, at }
        }),
    ];
    of::<Pool>(after(create, others))
}

fn nodes() -> BoxedStrategy<Vec<Event>> {
    use node::Command;
    let register = (text(), text(), inventory()).prop_map(|(name, credential, inventory)| Command::Register {
        pool: Id::derived(TenantId::PLATFORM, "pool"),
        name,
        credential,
        inventory,
    });
    let others = prop_oneof![
        inventory().prop_map(|inventory| Command::ReportInventory { inventory }),
        (one_of(2), text()).prop_map(|(by, reason)| Command::Drain { by, reason }),
        one_of(2).prop_map(|by| Command::Resume { by }),
        instant().prop_map(|at| Command::ProveAlive { at }),
    ];
    of::<Node>(after(register, others))
}

fn products() -> BoxedStrategy<Vec<Event>> {
    let offer = (text(), text()).prop_map(|(name_zh, name_en)| product::Command::Offer {
        sku: "card.a100".into(),
        resource: "card.a100".parse().unwrap(),
        name_zh,
        name_en,
    });
    of::<Product>(vec(offer, 1..3))
}

fn contracts() -> BoxedStrategy<Vec<Event>> {
    let sign = (one_of(3), sample::select(chrono_tz::TZ_VARIANTS.to_vec())).prop_map(|(tenant, zone)| {
        let (customer, book) = (bill_to().customer, bill_to().book);
        let zone = zone.name().parse().unwrap();
        contract::Command::Sign(contract::Terms { tenant, customer, book, zone, currency: Currency::Usd })
    });
    of::<Contract>(vec(sign, 1..3))
}

fn plans() -> BoxedStrategy<Vec<Event>> {
    let placement = (one_of(3), vec(any::<u32>(), 0..4), ends::demand(), text(), text()).prop_map(
        |(job, cards, demand, rule, score)| plan::Placement {
            pool: Id::derived(TenantId::PLATFORM, "pool"),
            tenant: TenantId::PLATFORM,
            job,
            node: Id::derived(TenantId::PLATFORM, "node"),
            cards,
            demand,
            rule,
            score,
            facts: "00".into(),
        },
    );
    of::<Plan>(vec(vec(placement, 0..3).prop_map(plan::Command::Record), 1..5))
}

fn statements() -> BoxedStrategy<Vec<Event>> {
    let to = bill_to();
    let draft = (2020_i32..2040, 1_u32..13).prop_map(move |(year, month)| {
        let month = format!("{year}-{month:02}").parse().unwrap();
        let (tenant, zone, currency) = (TenantId::PLATFORM, to.zone, to.currency);
        statement::Command::Draft(Heading { customer: to.customer, tenant, month, zone, currency })
    });
    let line =
        (text(), any::<(u32, i64, i64, i64)>()).prop_map(|(sku, (price_version, quantity, price, amount))| Line {
            key: LineKey { sku, book: bill_to().book, price_version },
            unit: Unit::CoreHour,
            price: Decimal::new(price, 8),
            quantity: Quantity(quantity),
            amount: Decimal::new(amount, 8),
        });
    let issue = (text(), vec(line, 0..4), any::<i64>()).prop_map(|(number, lines, total)| statement::Command::Issue {
        number,
        lines,
        total: Total { total: Decimal::new(total, 2), rounding: Decimal::new(0, 2) },
    });
    of::<Statement>(after(draft, issue))
}

fn all() -> Vec<BoxedStrategy<Vec<Event>>> {
    vec![
        tenants(),
        members(),
        keys(),
        pools(),
        nodes(),
        products(),
        contracts(),
        plans(),
        statements(),
        of::<PriceBook>(usage::price_book()),
        of::<Order>(ends::order_commands()),
        of::<Allowance>(quota::commands()),
        of::<Job>(ends::job_commands()),
        of::<Lease>(ends::lease_commands()),
        of::<Meter>(usage::meter_commands()),
        of::<Wallet>(money::wallet_commands()),
        of::<Ledger>(money::ledger_commands()),
        of::<Series>(vec(one_of(5).prop_map(|statement| series::Command::Take { statement }), 1..9)),
    ]
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn an_event_is_read_back_as_it_was(histories in all()) {
        for event in histories.concat() {
            let json = event.encode().unwrap();
            let again = Event::decode(event.category(), &json);
            prop_assert_eq!(again.ok(), Some(event), "{}", json);
        }
    }
}

#[test]
fn every_aggregate_is_among_them() {
    assert_eq!(all().len(), CATEGORIES.len());
}

#[test]
fn what_is_not_an_event_is_said_to_be_none() {
    assert!(matches!(Event::decode("ext_ten", "{}"), Err(None)));
    for json in ["", "{}", "[]", r#"{"type":"melted"}"#, r#"{"type":"approved","by":"li"}"#] {
        assert!(matches!(Event::decode("order", json), Err(Some(_))), "{json}");
    }
}
