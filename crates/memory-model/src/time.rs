//! Time as data: a timestamp and the clock that gives it.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch, UTC.
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

    /// Converts milliseconds since the Unix epoch.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Returns the time that passed since an earlier timestamp; zero where it is a later one.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the time that is `duration` later, at most the largest timestamp.
    pub fn saturating_add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, as precise as it needs to be. A value outside the years -9999 to 9999 is
    /// shown as its number of microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(t) => t.fmt(f),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

/// Source of the current time. What depends on time takes a clock, so that tests can pass theirs.
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

/// A clock for tests and replays that starts at a given time and advances by a fixed step per reading.
#[derive(Debug)]
pub struct StepClock {
    next: AtomicI64,
    step: i64,
}

impl StepClock {
    /// Creates a clock whose first reading is `start`; each reading advances it by `step_micros`
    /// microseconds.
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
