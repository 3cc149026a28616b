//! Errors for people and scripts: a message, a hint with the next step, a kind and an exit code.

use std::fmt;

use agent_memory::store::ErrorKind as StoreKind;
use agent_memory::{
    ErrorKind as MemoryKind,
    compaction::{LeaseHolder, ProcessOwner},
};
use serde::Serialize;
use serde_json::json;

/// Kind of a failure. It determines the name in `--json` and the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A failure of any other kind.
    Other,
    /// The arguments of the command line are wrong.
    Usage,
    /// A session, summary or message does not exist.
    NotFound,
    /// A prefix of a session's name matches several sessions.
    Ambiguous,
    /// The database does not exist yet.
    NoDatabase,
    /// A file cannot be read.
    Unreadable,
    /// A file is empty.
    Empty,
    /// A file is not text.
    NotText,
    /// The format of a transcript is not known.
    UnknownFormat,
    /// The value of an argument is invalid.
    Invalid,
    /// A file is not a database of agent-memory.
    ForeignDatabase,
    /// The database was written by a newer version of the program.
    NewerSchema,
    /// Another process locked the database for the whole time limit.
    DatabaseBusy,
    /// The database was written by an older version, and must be migrated first.
    OlderSchema,
    /// The database cannot be written.
    ReadOnly,
    /// The database contains contradictory data.
    DatabaseCorrupt,
    /// The database cannot be read or written.
    Database,
    /// The last messages do not fit into the budget, even if they are shortened.
    BudgetTooSmall,
    /// The verification found violations.
    VerificationFailed,
    /// A line or a file was skipped, and `--strict` is given.
    Skipped,
    /// The summarizer failed.
    Summarizer,
    /// The limit on model calls stopped a command before it changed anything.
    CallLimit,
    /// Another process is doing the same work.
    Held,
    /// SIGINT stopped the command.
    #[serde(rename = "stopped")]
    Interrupted,
    /// SIGTERM stopped the command.
    #[serde(rename = "stopped")]
    Terminated,
}

impl Kind {
    /// Returns the exit code. `--help` lists all exit codes.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Kind::Other | Kind::Summarizer | Kind::CallLimit => 1,
            Kind::Usage => 2,
            Kind::NotFound | Kind::Ambiguous | Kind::NoDatabase => 3,
            Kind::Unreadable
            | Kind::Empty
            | Kind::NotText
            | Kind::UnknownFormat
            | Kind::Invalid => 4,
            Kind::ForeignDatabase
            | Kind::NewerSchema
            | Kind::OlderSchema
            | Kind::ReadOnly
            | Kind::DatabaseCorrupt
            | Kind::Database => 5,
            Kind::BudgetTooSmall => 6,
            Kind::VerificationFailed => 7,
            Kind::Skipped => 8,
            Kind::DatabaseBusy => 9,
            Kind::Held => 10,
            Kind::Interrupted => 130,
            Kind::Terminated => 143,
        }
    }
}

/// Failure of a command: kind, message and hint.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    /// Sets the hint, a text about the next step.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the failure in the form of `--json`.
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({"error": {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
        }})
    }

    /// Converts an error of the program or of a library into a failure.
    pub(crate) fn from_any(error: anyhow::Error) -> Self {
        let error = match error.downcast::<Failure>() {
            Ok(failure) => return failure,
            Err(error) => error,
        };
        if let Some(found) = error.downcast_ref::<agent_memory::Error>() {
            return from_memory(found);
        }
        if let Some(found) = error.downcast_ref::<agent_memory::retrieval::Error>() {
            let kind = match found.kind() {
                agent_memory::retrieval::ErrorKind::NotFound => Kind::NotFound,
                agent_memory::retrieval::ErrorKind::Invalid => Kind::Invalid,
                agent_memory::retrieval::ErrorKind::Corrupt => Kind::DatabaseCorrupt,
                agent_memory::retrieval::ErrorKind::Store(kind) => store_kind(kind),
                agent_memory::retrieval::ErrorKind::Search => Kind::Database,
                _ => Kind::Other,
            };
            // Errors of the tools name them as models see them: `memory_grep` is the command `grep` here.
            return advised(kind, &found.to_string().replace("memory_", ""), found);
        }
        if let Some(found) = error.downcast_ref::<agent_memory::store::Error>() {
            return advised(store_kind(found.kind()), &found.to_string(), found);
        }
        Failure::new(Kind::Other, format!("{error:#}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Returns the failure for the case that another process does all of the remaining work.
pub(crate) fn held(held: Option<&LeaseHolder>) -> Failure {
    let mut text = "nothing was done: ".to_owned();
    match held {
        None => text.push_str("another process works on the same summaries"),
        Some(held) => {
            match ProcessOwner::parse(&held.owner) {
                Some(process) => {
                    text.push_str(&format!("process {}", process.pid));
                    if let Some(host) = process.host {
                        text.push_str(&format!(" on {host}"));
                    }
                }
                None => text.push_str(&held.owner),
            }
            text.push_str(&format!(
                " works on the same summaries; its lease lasts until {}",
                held.until
            ));
        }
    }
    Failure::new(Kind::Held, text).hint("run it again when that process has ended")
}

/// Converts an error of reading the transcript `name` into a failure.
pub(crate) fn from_format(name: &str, error: &agent_memory::transcripts::Error) -> Failure {
    use agent_memory::transcripts::ErrorKind;
    const GIVE: &str = "give a transcript of a coding agent (Claude Code, Codex, Gemini CLI, opencode, \
                        pi, Qwen Code and others: docs/cli.md lists them), or lines such as \
                        {\"role\":\"user\",\"content\":\"…\"}";
    match error.kind() {
        ErrorKind::Io => {
            let cause = std::error::Error::source(error);
            unreadable(name, cause.map(ToString::to_string).as_deref())
        }
        ErrorKind::Empty => Failure::new(Kind::Empty, format!("{name} is empty")).hint(GIVE),
        ErrorKind::NotText => Failure::new(Kind::NotText, format!("{name} is not text")).hint(
            "give a transcript of one JSON object a line; decompress it first if it is compressed",
        ),
        ErrorKind::Encoding => {
            let text = error.to_string();
            let text = text.split(": ").next().unwrap_or(&text).to_owned();
            Failure::new(Kind::NotText, text)
                .hint("convert it to UTF-8, as by iconv -f UTF-16 -t UTF-8")
        }
        ErrorKind::UnknownFormat => Failure::new(
            Kind::UnknownFormat,
            format!("{name} holds no line of a known format"),
        )
        .hint(GIVE),
        _ => Failure::new(Kind::Invalid, error.to_string()),
    }
}

/// Returns the failure for a file that cannot be read.
pub(crate) fn unreadable(name: &str, cause: Option<&str>) -> Failure {
    let message = match cause {
        Some(cause) => format!("cannot read {name}: {cause}"),
        None => format!("cannot read {name}"),
    };
    Failure::new(Kind::Unreadable, message).hint("check that it exists, is a file, and can be read")
}

fn from_memory(error: &agent_memory::Error) -> Failure {
    let text = error.to_string();
    match error.kind() {
        MemoryKind::NotFound => advised(Kind::NotFound, &text, error),
        MemoryKind::BudgetTooSmall { needed } => {
            Failure::new(Kind::BudgetTooSmall, text).hint(format!("give --budget {needed} or more"))
        }
        MemoryKind::TooFewBytes { needed } => {
            Failure::new(Kind::BudgetTooSmall, text).hint(format!("give --bytes {needed} or more"))
        }
        MemoryKind::UnknownEstimator => Failure::new(Kind::NewerSchema, text)
            .hint("use the build of the program that wrote the session"),
        MemoryKind::Store(kind) => advised(store_kind(kind), &text, error),
        _ => advised(Kind::Invalid, &text, error),
    }
}

fn store_kind(kind: StoreKind) -> Kind {
    match kind {
        StoreKind::NotFound => Kind::NotFound,
        StoreKind::Invalid | StoreKind::EstimatorMismatch => Kind::Invalid,
        StoreKind::ForeignDatabase => Kind::ForeignDatabase,
        StoreKind::NewerSchema => Kind::NewerSchema,
        StoreKind::OlderSchema => Kind::OlderSchema,
        StoreKind::ReadOnly => Kind::ReadOnly,
        StoreKind::Busy => Kind::DatabaseBusy,
        StoreKind::Corrupt => Kind::DatabaseCorrupt,
        _ => Kind::Database,
    }
}

/// Converts an error of a library into a failure. The error's text is a message, and after a colon a hint with the next
/// step.
fn advised(kind: Kind, text: &str, error: &dyn std::error::Error) -> Failure {
    let mut failure = match text.rsplit_once(": ") {
        Some((message, hint)) => Failure::new(kind, message).hint(hint),
        None => Failure::new(kind, text),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        // An error often repeats the text of the error that it wraps.
        let text = error.to_string();
        if !failure.message.contains(&text) && !text.contains(&failure.message) {
            failure.message = format!("{} ({text})", failure.message);
        }
        cause = error.source();
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_becomes_the_hint() {
        let error = agent_memory::store::Error::new(
            StoreKind::NewerSchema,
            "x.db has schema 9, but this program supports up to 1: update the program",
        )
        .with_source("deeper");
        let failure = Failure::from_any(error.into());
        assert_eq!(failure.kind.exit_code(), 5);
        assert_eq!(
            failure.message,
            "x.db has schema 9, but this program supports up to 1 (deeper)"
        );
        assert_eq!(failure.hint.as_deref(), Some("update the program"));
    }
}
