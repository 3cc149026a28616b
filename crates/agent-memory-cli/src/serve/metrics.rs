//! Counts of requests, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Requests by route and status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// Durations by route.
    durations: Mutex<BTreeMap<&'static str, Histogram>>,
    pub(super) stored: AtomicU64,
    pub(super) compactions: AtomicU64,
}

#[derive(Debug, Default)]
struct Histogram {
    /// Numbers of requests up to each bound.
    up_to: [u64; BOUNDS.len()],
    sum: f64,
    count: u64,
}

impl Metrics {
    /// Counts a request. `route` is a pattern, never a path with a session's key.
    pub(super) fn add(&self, route: &'static str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route, status)).or_default() += 1;
        drop(requests);
        let mut durations = self
            .durations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let histogram = durations.entry(route).or_default();
        let seconds = took.as_secs_f64();
        let counts = histogram.up_to.iter_mut().zip(BOUNDS);
        counts.for_each(|(count, bound)| *count += u64::from(seconds <= bound));
        histogram.sum += seconds;
        histogram.count += 1;
    }

    /// Returns all counts as text.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        out.push_str("# TYPE agent_memory_requests_total counter\n");
        for ((route, status), count) in &*requests {
            let labels = format!("route=\"{route}\",status=\"{status}\"");
            let _ = writeln!(out, "agent_memory_requests_total{{{labels}}} {count}");
        }
        drop(requests);
        const NAME: &str = "agent_memory_request_duration_seconds";
        let _ = writeln!(out, "# TYPE {NAME} histogram");
        let durations = self
            .durations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (route, histogram) in &*durations {
            for (bound, count) in BOUNDS.iter().zip(histogram.up_to) {
                let _ = writeln!(
                    out,
                    "{NAME}_bucket{{route=\"{route}\",le=\"{bound}\"}} {count}"
                );
            }
            let Histogram { sum, count, .. } = histogram;
            let _ = writeln!(
                out,
                "{NAME}_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}"
            );
            let _ = writeln!(out, "{NAME}_sum{{route=\"{route}\"}} {sum}");
            let _ = writeln!(out, "{NAME}_count{{route=\"{route}\"}} {count}");
        }
        for (name, count) in [
            ("agent_memory_messages_stored_total", &self.stored),
            ("agent_memory_compactions_total", &self.compactions),
        ] {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(out, "# TYPE {name} counter\n{name} {count}");
        }
        out
    }
}
