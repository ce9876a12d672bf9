//! Periods: half-open spans of time, and calendar months in a contract's zone.
//!
//! Owns: `Period`, `Zone`, `Month`. Invariants: `from <= to`; months tile time without gap or overlap in every zone;
//! a boundary is computed from the calendar, never by adding days. The zone data is compiled in (`chrono-tz`).

use chrono::{DateTime, Datelike, LocalResult, NaiveDate, TimeDelta, TimeZone, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

/// From an instant until just before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

impl Period {
    /// How long it is, in whole milliseconds (cut, so that parts never sum to more than the whole).
    pub fn ms(&self) -> i64 {
        self.to.timestamp_millis() - self.from.timestamp_millis()
    }

    /// The part in which both hold, if any.
    pub fn overlap(&self, other: &Self) -> Option<Self> {
        let (from, to) = (self.from.max(other.from), self.to.min(other.to));
        (from < to).then_some(Self { from, to })
    }
}

/// A time zone by its IANA name, such as `Asia/Shanghai`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Zone(chrono_tz::Tz);

impl Default for Zone {
    /// Where most contracts are made.
    fn default() -> Self {
        Self(chrono_tz::Asia::Shanghai)
    }
}

/// Not a time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time zone of the IANA list, such as Asia/Shanghai")]
pub struct BadZone(String);

impl FromStr for Zone {
    type Err = BadZone;
    fn from_str(text: &str) -> Result<Self, BadZone> {
        text.parse().map(Self).map_err(|_| BadZone(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// A calendar month, written `2026-11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: i32,
    month: u32,
}

/// Not a month.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a month, which is written like 2026-11")]
pub struct BadMonth(String);

impl Month {
    /// The month that an instant falls in, where the contract is.
    pub fn of(at: DateTime<Utc>, zone: Zone) -> Self {
        let local = at.with_timezone(&zone.0);
        Self { year: local.year(), month: local.month() }
    }

    /// The month after this one.
    pub fn next(self) -> Self {
        if self.month == 12 { Self { year: self.year + 1, month: 1 } } else { Self { month: self.month + 1, ..self } }
    }

    /// From its first instant until the next month's.
    pub fn period(self, zone: Zone) -> Period {
        Period { from: self.starts(zone), to: self.next().starts(zone) }
    }

    /// Its year.
    pub fn year(self) -> i32 {
        self.year
    }

    /// Its first instant: midnight, or the first moment that exists after it where clocks skip midnight.
    fn starts(self, zone: Zone) -> DateTime<Utc> {
        let first = NaiveDate::from_ymd_opt(self.year, self.month, 1).unwrap_or_default();
        let midnight = first.and_hms_opt(0, 0, 0).unwrap_or_default();
        (0..=180)
            .find_map(|minutes| match zone.0.from_local_datetime(&(midnight + TimeDelta::minutes(minutes))) {
                LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.to_utc()),
                LocalResult::None => None,
            })
            .unwrap_or_else(|| midnight.and_utc())
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl FromStr for Month {
    type Err = BadMonth;
    fn from_str(text: &str) -> Result<Self, BadMonth> {
        let bad = || BadMonth(text.chars().take(16).collect());
        let digits = text.len() == 7 && text.bytes().enumerate().all(|(i, c)| (i == 4) != c.is_ascii_digit());
        let (year, month) = text.split_once('-').filter(|_| digits).ok_or_else(bad)?;
        let month = Self { year: year.parse().map_err(|_| bad())?, month: month.parse().map_err(|_| bad())? };
        if (1..=12).contains(&month.month) && (1970..=9998).contains(&month.year) { Ok(month) } else { Err(bad()) }
    }
}

impl Serialize for Month {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Month {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_tile_time_in_every_zone() {
        for name in ["Asia/Shanghai", "UTC", "America/Juneau", "Pacific/Apia", "America/Sao_Paulo"] {
            let zone: Zone = name.parse().unwrap();
            let mut month: Month = "1985-01".parse().unwrap();
            while month.year() < 2040 {
                let (this, next) = (month.period(zone), month.next().period(zone));
                assert_eq!(this.to, next.from);
                assert!(this.from < this.to);
                assert_eq!(Month::of(this.from, zone), month);
                assert_eq!(Month::of(this.to - TimeDelta::microseconds(1), zone), month);
                month = month.next();
            }
        }
    }

    #[test]
    fn a_month_starts_at_local_midnight() {
        let month: Month = "2026-12".parse().unwrap();
        assert_eq!(month.period(Zone::default()).from.to_rfc3339(), "2026-11-30T16:00:00+00:00");
    }

    #[test]
    fn a_month_is_written_one_way() {
        for text in ["2026-1", "2026-13", "2026/01", "26-01", "2026-00", "+026-01", "202é-01"] {
            assert!(text.parse::<Month>().is_err(), "{text}");
        }
    }
}
