//! The words and numbers of tables, in Chinese and English.
//!
//! Owns: languages, the names of states, how an instant, a quantity and an amount are written for people. Does not own:
//! JSON, which stays as the server sent it.
//! Invariants: a word that is not known is shown as it came; nothing is computed in floating point; what comes from
//! others cannot move a terminal's cursor.

use chrono::{DateTime, Local, TimeDelta, TimeZone, Utc};
use domain::kernel::{MILLI, Quantity, money};
use rust_decimal::{Decimal, RoundingStrategy};
use std::fmt::Display;

/// In which language tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lang {
    Zh,
    En,
}

impl Lang {
    /// What the environment asks for; English unless it asks for Chinese.
    pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
        let asked = names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
        if asked.is_some_and(|asked| asked.starts_with("zh")) { Self::Zh } else { Self::En }
    }

    /// The text in this language.
    pub(crate) fn say<'a>(self, en: &'a str, zh: &'a str) -> &'a str {
        match self {
            Self::Zh => zh,
            Self::En => en,
        }
    }

    /// How the API names it.
    pub(crate) fn code(self) -> &'static str {
        self.say("en", "zh")
    }
}

const STATES: &[(&str, &str)] = &[
    ("requested", "待审批"),
    ("approved", "已批准"),
    ("rejected", "已驳回"),
    ("refused", "未受理"),
    ("active", "已生效"),
    ("returning", "退订中"),
    ("returned", "已退订"),
    ("submitted", "已提交"),
    ("queued", "排队中"),
    ("starting", "启动中"),
    ("running", "运行中"),
    ("succeeded", "成功"),
    ("failed", "失败"),
    ("cancelled", "已取消"),
    ("timed_out", "已超时"),
    ("draft", "草稿"),
    ("issued", "已出账"),
    ("card-hour", "卡时"),
    ("core-hour", "核时"),
];

/// A state or unit in a language.
pub(crate) fn word(code: &str, lang: Lang) -> String {
    let known = STATES.iter().find(|(en, _)| *en == code);
    match (lang, known) {
        (Lang::Zh, Some((_, zh))) => (*zh).to_owned(),
        _ => clean(code),
    }
}

/// A text of others without what a terminal would act on, in one line.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// An instant for a table, in the local zone.
pub(crate) fn time(at: DateTime<Utc>) -> String {
    second(at.with_timezone(&Local))
}

fn second<Z: TimeZone<Offset: Display>>(at: DateTime<Z>) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// An instant to the millisecond, in the local zone, with the zone.
pub(crate) fn exact_time(at: DateTime<Utc>) -> String {
    millisecond(at.with_timezone(&Local))
}

fn millisecond<Z: TimeZone<Offset: Display>>(at: DateTime<Z>) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.3f%:z").to_string()
}

/// How long something took, in seconds with three places.
pub(crate) fn seconds(took: TimeDelta) -> String {
    Decimal::new(took.num_milliseconds(), 3).to_string()
}

/// Thousandths of a card or core as cards or cores.
pub(crate) fn units(milli: i64) -> Decimal {
    (Decimal::from(milli) / Decimal::from(MILLI)).normalize()
}

/// A quantity in unit-hours, with four places.
pub(crate) fn hours(quantity: i64) -> String {
    let mut hours = Quantity(quantity).hours().round_dp_with_strategy(4, RoundingStrategy::MidpointNearestEven);
    hours.rescale(4);
    hours.to_string()
}

/// An amount with two places; a text that is no number as it is.
pub(crate) fn amount(text: &str) -> String {
    text.parse::<Decimal>().map_or_else(|_| clean(text), |amount| money::shown(amount).to_string())
}

/// A price: every place that it has, and two at least.
pub(crate) fn price(text: &str) -> String {
    let Ok(price) = text.parse::<Decimal>() else { return clean(text) };
    let mut price = price.normalize();
    price.rescale(price.scale().max(2));
    price.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::FixedOffset;

    #[test]
    fn the_environment_says_the_language() {
        let of = |name: &'static str, value: &'static str| {
            Lang::of_environment(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(of("LANG", "zh_CN.UTF-8"), Lang::Zh);
        assert_eq!(of("LC_ALL", "zh_TW"), Lang::Zh);
        assert_eq!(of("LANG", "de_DE.UTF-8"), Lang::En);
        assert_eq!(of("PATH", "zh"), Lang::En);
        let both = |asked: &str| match asked {
            "LC_ALL" => Some("C".to_owned()),
            "LANG" => Some("zh_CN".to_owned()),
            _ => None,
        };
        assert_eq!(Lang::of_environment(both), Lang::En);
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(hours(6_083_000), "0.0017");
        assert_eq!(hours(3_600_000_000), "1.0000");
        assert_eq!(
            (amount("80"), amount("0.13517778"), amount("-0.005")),
            ("80.00".into(), "0.14".into(), "0.00".into())
        );
        assert_eq!((price("80"), price("0.3500"), price("0.0125")), ("80.00".into(), "0.35".into(), "0.0125".into()));
        assert_eq!((units(1000).to_string(), units(250).to_string()), ("1".into(), "0.25".into()));
        assert_eq!(seconds(TimeDelta::milliseconds(6083)), "6.083");
    }

    #[test]
    fn an_instant_is_in_the_zone_of_who_reads() {
        let at: DateTime<Utc> = "2026-11-10T01:00:00.250Z".parse().unwrap();
        let there = at.with_timezone(&FixedOffset::east_opt(8 * 3600).unwrap());
        assert_eq!(second(there), "2026-11-10 09:00:00");
        assert_eq!(millisecond(there), "2026-11-10 09:00:00.250+08:00");
    }

    #[test]
    fn a_word_is_in_the_language_and_harmless() {
        assert_eq!((word("running", Lang::Zh), word("running", Lang::En)), ("运行中".into(), "running".into()));
        assert_eq!(word("\u{1b}[2Jnew", Lang::Zh), " [2Jnew");
    }
}
