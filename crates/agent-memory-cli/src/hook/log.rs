//! The log of the events, one JSON object a line, for people and for `doctor`.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::door::now;
use super::event::Event;
use crate::app::App;
use crate::files;

/// Size above which a log becomes the old log, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Maximum size of the part of a log that is read, in bytes.
const MOST_READ: u64 = 16 * MOST_BYTES;

/// The log next to a database.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    path: PathBuf,
}

/// A line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Time in milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) agent: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) ms: u64,
    pub(crate) result: String,
    pub(crate) detail: String,
}

/// How an event ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was answered, with details for people.
    Done(String),
    /// The deadline came first. The work goes on.
    Deferred,
    /// It failed for this reason.
    Failed(String),
}

impl Log {
    /// Returns the log next to the database of this run; `None` if there is no place for a database.
    pub(crate) fn of(app: &App) -> Option<Self> {
        Some(Self {
            path: app.place().ok()?.beside("-hook.log"),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the lines of the old log and of the log, in their order. Lines that cannot be read are left out.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let logs = [beside(&self.path, ".1"), self.path.clone()];
        let texts = logs.iter().filter_map(|log| {
            let mut text = String::new();
            let log = files::open(log).ok()?.take(MOST_READ);
            { log }.read_to_string(&mut text).ok().map(|_| text)
        });
        let lines = texts.flat_map(|text| {
            let lines = text.lines().map(serde_json::from_str);
            lines.filter_map(Result::ok).collect::<Vec<Line>>()
        });
        lines.collect()
    }

    /// Adds a line. The log is for diagnosis, so an event does not fail if it cannot be written.
    pub(super) fn add(&self, event: Option<&Event>, took: Duration, outcome: &Outcome) {
        let (result, detail) = match outcome {
            Outcome::Done(detail) => ("ok", detail.as_str()),
            Outcome::Deferred => ("deferred", ""),
            Outcome::Failed(reason) => ("error", reason.as_str()),
        };
        let line = json!({
            "at": now(),
            "agent": event.map(|event| event.agent.as_str()),
            "event": event.map(|event| event.name.as_str()),
            "session": event.map(|event| event.session_id.as_str()),
            "ms": took.as_millis() as u64,
            "result": result,
            "detail": detail,
        });
        let meta = std::fs::symlink_metadata(&self.path);
        if meta.is_ok_and(|meta| meta.is_file() && meta.len() > MOST_BYTES) {
            let _ = std::fs::rename(&self.path, beside(&self.path, ".1"));
        }
        if let Ok(mut file) = files::open_private(&self.path) {
            // One write, so that lines of several processes do not mix.
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }
}

/// Returns a path with more characters at its end.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
