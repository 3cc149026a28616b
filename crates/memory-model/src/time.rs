//! Timestamps, and the clocks that return the current time.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Time as a number of microseconds since the Unix epoch, in UTC; 0 if the time is unknown.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Parses an RFC 3339 time such as `2026-02-08T09:16:52.874Z`, truncated to microseconds. `None`
    /// for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|t| Self(t.as_microsecond()))
    }

    /// Parses a time in the formats that programs write: RFC 3339, RFC 2822, or a number (see
    /// [`Timestamp::from_number`]). RFC 3339 may have a space for the `T`, a slash for a dash, `UTC` at its end, or no
    /// offset, which means UTC. `None` for any other text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::from_text_in(text, &Zone::default())
    }

    /// Parses a time as [`Timestamp::from_text`] does. A time without an offset is a clock time of `zone`. Of a clock
    /// time that comes twice when the clocks go back, the first is meant.
    pub fn from_text_in(text: &str, zone: &Zone) -> Option<Self> {
        let text = text.trim();
        if let Some(time) = Self::parse(text).or_else(|| Self::from_number(text)) {
            return Some(time);
        }
        let dashed = text.replace('/', "-");
        let (whole, utc) = match ["UTC", "GMT"]
            .iter()
            .find_map(|zone| dashed.strip_suffix(zone))
        {
            Some(whole) => (whole.trim_end(), true),
            None => (dashed.as_str(), false),
        };
        let with_offset = || Self::parse(&whole.replace(" +", "+").replace(" -", "-"));
        let without = || {
            let civil = whole.parse::<jiff::civil::DateTime>().ok()?;
            let zone = match utc {
                true => jiff::tz::TimeZone::UTC,
                false => zone.0.clone(),
            };
            let zoned = civil.to_zoned(zone).ok()?;
            Some(Self(zoned.timestamp().as_microsecond()))
        };
        let letter = || {
            let zoned = jiff::fmt::rfc2822::parse(text).ok()?;
            Some(Self(zoned.timestamp().as_microsecond()))
        };
        with_offset()
            .filter(|_| !utc)
            .or_else(without)
            .or_else(letter)
    }

    /// Parses a number of seconds, milliseconds, microseconds or nanoseconds since the Unix epoch, with or without a
    /// fraction. The size of the number determines the unit. `None` for any other text, and for a number below
    /// 100,000,000 (in seconds, the spring of 1973). Programs write small numbers, mostly zero, for unknown times.
    pub fn from_number(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.contains(['e', 'E']) {
            let number = text.parse::<f64>().ok()?;
            return Self::from_number(&format!("{number:.6}")).filter(|_| number < 1e19);
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = whole.parse::<i64>().ok()?;
        // Number of decimal places between the unit and microseconds.
        let places = match number {
            ..100_000_000 => return None,
            100_000_000..100_000_000_000 => 6,
            100_000_000_000..100_000_000_000_000 => 3,
            100_000_000_000_000..100_000_000_000_000_000 => 0,
            _ => return Some(Self(number / 1000)),
        };
        let digits: String = fraction
            .chars()
            .chain("000000".chars())
            .take(places)
            .collect();
        let rest = match digits.is_empty() {
            true => 0,
            false => digits.parse::<i64>().ok()?,
        };
        let unit = 10_i64.pow(u32::try_from(places).ok()?);
        number.checked_mul(unit)?.checked_add(rest).map(Self)
    }

    /// Returns whether the time is known. The time 0 means that a message has no time.
    pub fn is_known(self) -> bool {
        self != Self::default()
    }

    /// Returns the time, or `None` if it is unknown.
    pub fn known(self) -> Option<Self> {
        self.is_known().then_some(self)
    }

    /// Creates a timestamp from milliseconds since the Unix epoch.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Returns the time since an earlier timestamp; zero if that timestamp is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the time that is `duration` later, or the largest timestamp if the sum is larger.
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC, without trailing zeros in the fraction. A time outside the years -9999 to 9999 is
    /// written as its number of microseconds, such as `-5us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(t) => t.fmt(f),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

/// Time zone of clock times that are written without an offset. The default is UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(jiff::tz::TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(jiff::tz::TimeZone::UTC)
    }
}

impl Zone {
    /// Creates a zone from a rule in the form of POSIX, such as `CET-1CEST,M3.5.0,M10.5.0/3`. `None` for any other text.
    pub fn from_posix(rule: &str) -> Option<Self> {
        jiff::tz::TimeZone::posix(rule).ok().map(Self)
    }

    /// Creates a zone from the content of a file in the form TZif (RFC 9636), such as `/etc/localtime`. `None` for any
    /// other content.
    pub fn from_tzif(content: &[u8]) -> Option<Self> {
        jiff::tz::TimeZone::tzif("", content).ok().map(Self)
    }
}

/// Source of the current time. Code that needs the time takes a clock, so that tests can pass a clock with fixed times.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// A clock that reads the system's time.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that asks the system"
    )]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(0).saturating_add(since.unwrap_or_default())
    }
}

/// A clock for tests and replays. It starts at a given time and advances by a fixed step whenever it is read.
#[derive(Debug)]
pub struct StepClock {
    next: AtomicI64,
    step: i64,
}

impl StepClock {
    /// Creates a clock. The first reading is `start`; each reading advances the clock by `step_micros` microseconds.
    pub fn new(start: Timestamp, step_micros: i64) -> Self {
        Self {
            next: AtomicI64::new(start.0),
            step: step_micros,
        }
    }

    /// Advances the clock by `duration`.
    pub fn advance(&self, duration: Duration) {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.next.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for StepClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.next.fetch_add(self.step, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_same_in_every_form() {
        let moment = Timestamp::parse("2026-05-28T20:26:40.25Z");
        for text in [
            "2026-05-28T20:26:40.25Z",
            "2026-05-28t20:26:40.25z",
            "2026-05-28 20:26:40.25",
            "2026-05-28T20:26:40,25",
            "2026/05/28 20:26:40.250",
            "2026-05-28 20:26:40.25 UTC",
            "2026-05-28 22:26:40.25+02:00",
            "2026-05-28 18:26:40.250 -0200",
            " 2026-05-28T22:26:40.250000+02 ",
            "1780000000.25",
            "1780000000250",
            "1780000000250.0",
            "1780000000250000",
            "1780000000250000000",
            "1.78000000025e9",
        ] {
            assert_eq!(Timestamp::from_text(text), moment, "{text}");
        }
        for number in ["1780000000.25", "1780000000250", "1.78000000025E+9"] {
            assert_eq!(Timestamp::from_number(number), moment, "{number}");
        }
        let second = Timestamp::parse("2026-05-28T20:26:40Z");
        for text in [
            "1780000000",
            "Thu, 28 May 2026 20:26:40 +0000",
            "2026-05-28T20:26:40",
        ] {
            assert_eq!(Timestamp::from_text(text), second, "{text}");
        }
        let day = Timestamp::parse("2026-05-28T00:00:00Z");
        assert_eq!(Timestamp::from_text("2026-05-28"), day);
    }

    #[test]
    fn clock_times_are_those_of_the_zone() {
        let zone = Zone::from_posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (text, utc) in [
            ("2026-01-15T12:00:00", "2026-01-15T11:00:00Z"),
            ("2026-07-15 12:00:00.5", "2026-07-15T10:00:00.5Z"),
            ("2026-07-15 12:00:00 UTC", "2026-07-15T12:00:00Z"),
            ("2026-07-15T12:00:00Z", "2026-07-15T12:00:00Z"),
            ("2026-07-15T12:00:00-02:00", "2026-07-15T14:00:00Z"),
            ("1780000000", "2026-05-28T20:26:40Z"),
            // The clocks go back at 3:00, and forward at 2:00.
            ("2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
            ("2026-03-29T02:30:00", "2026-03-29T01:30:00Z"),
        ] {
            let time = Timestamp::from_text_in(text, &zone);
            assert_eq!(time, Timestamp::parse(utc), "{text}");
        }
        assert_eq!(Zone::from_posix("Mars"), None);
        assert_eq!(Zone::from_tzif(b"no zone"), None);
    }

    #[test]
    fn invalid_times_are_none() {
        for text in [
            "",
            "0",
            "-1",
            "1500",
            "12.5",
            "soon",
            "1.x",
            "9e99",
            "NaN",
            "inf",
            "28.05.2026",
            "1780000000s",
        ] {
            assert_eq!(Timestamp::from_text(text), None, "{text}");
        }
        assert!(!Timestamp::default().is_known() && Timestamp(1).is_known());
        assert_eq!(Timestamp::default().known(), None);
        assert_eq!(Timestamp(-1).known(), Some(Timestamp(-1)));
    }
}
