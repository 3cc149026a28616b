//! `doctor`: shows for which agents the program is installed, and the state of their events.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agent_memory::Memory;
use agent_memory::store::ConversationFilter;
use clap::ValueEnum as _;
use serde::Serialize;

use crate::agents::{Agent, Program, State, read_json};
use crate::app::App;
use crate::error::Failure;
use crate::hook::log::{Line, Log};
use crate::kept::KeptTranscripts;
use crate::output::{bytes, count, number};

/// Time before a transcript's deletion in which it is reported.
const NOTICE: Duration = Duration::from_hours(7 * 24);

/// Age at which Claude Code deletes transcripts unless its settings say otherwise, in days.
const CLEANUP_DAYS: u64 = 30;

/// Time above which an event counts as slow, in milliseconds.
const SLOW: u64 = 2_000;

/// Number of transcripts that the text output names.
const NAMED: usize = 5;

#[derive(Debug, Serialize)]
struct Report {
    program: String,
    version: &'static str,
    database: Database,
    log: PathBuf,
    log_bytes: u64,
    kept_transcripts: KeptReport,
    agents: Vec<AgentReport>,
}

#[derive(Debug, Serialize)]
struct Database {
    path: PathBuf,
    /// 0 if there is none yet.
    bytes: u64,
    /// `None` if it cannot be read.
    sessions: Option<u64>,
    error: Option<String>,
}

/// The copies of transcripts next to the database.
#[derive(Debug, Serialize)]
struct KeptReport {
    transcripts: u64,
    bytes: u64,
    /// Bytes of the copies that share no space with the agents' own files.
    alone_bytes: u64,
}

#[derive(Debug, Serialize)]
struct AgentReport {
    agent: &'static str,
    home: PathBuf,
    /// Whether the agent's home exists.
    exists: bool,
    parts: Vec<PartReport>,
    events: Events,
    deletion: Option<Deletion>,
}

#[derive(Debug, Serialize)]
struct PartReport {
    part: &'static str,
    path: PathBuf,
    state: State,
}

/// Summary of an agent's events in the log.
#[derive(Debug, Default, Serialize)]
struct Events {
    events: usize,
    errors: usize,
    /// Events that were not answered in time. The work went on.
    deferred: usize,
    slow: usize,
    p50_ms: Option<u64>,
    p99_ms: Option<u64>,
    last: Option<Line>,
    last_error: Option<Line>,
}

/// Transcripts that the agent deletes soon.
#[derive(Debug, Serialize)]
struct Deletion {
    /// Age at which the agent deletes transcripts.
    days: u64,
    /// Number of transcripts that it deletes within a week.
    transcripts: u64,
    /// Transcripts of sessions that the database does not have.
    not_stored: Vec<PathBuf>,
}

impl Events {
    fn of(agent: Agent, lines: &[Line]) -> Self {
        let of_agent = |line: &&Line| line.agent.as_deref() == Some(agent.name());
        let lines: Vec<&Line> = lines.iter().filter(of_agent).collect();
        let with = |result: &str| lines.iter().filter(|line| line.result == result).count();
        let mut times: Vec<u64> = lines.iter().map(|line| line.ms).collect();
        times.sort_unstable();
        let quantile = |of_100: usize| {
            let at = (times.len() * of_100).div_ceil(100);
            times.get(at.saturating_sub(1)).copied()
        };
        let mut errors = lines.iter().filter(|line| line.result == "error");
        Self {
            events: lines.len(),
            errors: with("error"),
            deferred: with("deferred"),
            slow: times.iter().filter(|ms| **ms > SLOW).count(),
            p50_ms: quantile(50),
            p99_ms: quantile(99),
            last: lines.last().map(|line| (*line).clone()),
            last_error: errors.next_back().map(|line| (*line).clone()),
        }
    }
}

impl Deletion {
    /// Returns the transcripts that Claude Code deletes within a week.
    async fn of(home: &Path, memory: Option<&Memory>) -> anyhow::Result<Self> {
        let settings = crate::files::read_text(&home.join("settings.json"), 16 << 20).ok();
        let settings = settings.and_then(|text| read_json(&text));
        let days = settings.and_then(|settings| settings.get("cleanupPeriodDays")?.as_u64());
        let days = days.unwrap_or(CLEANUP_DAYS);
        let age = Duration::from_secs(days.saturating_mul(86_400)).saturating_sub(NOTICE);
        let mut report = Self {
            days,
            transcripts: 0,
            not_stored: Vec::new(),
        };
        let folders = std::fs::read_dir(home.join("projects"));
        let folders = folders.into_iter().flatten().flatten();
        let files = folders.filter_map(|folder| std::fs::read_dir(folder.path()).ok());
        for file in files.flatten().flatten() {
            let path = file.path();
            let modified = file.metadata().and_then(|meta| meta.modified()).ok();
            let is_old = modified
                .and_then(|at| at.elapsed().ok())
                .is_some_and(|elapsed| elapsed >= age);
            if !is_old || path.extension().is_none_or(|end| end != "jsonl") {
                continue;
            }
            report.transcripts += 1;
            let name = path.file_stem().and_then(|name| name.to_str());
            let is_stored = match (memory, name) {
                (Some(memory), Some(name)) => memory.find_session(name).await?.is_some(),
                _ => false,
            };
            if !is_stored {
                report.not_stored.push(path);
            }
        }
        report.not_stored.sort();
        Ok(report)
    }
}

pub(crate) async fn run(app: &mut App) -> anyhow::Result<()> {
    let program = Program::of(app)?;
    let place = app.place()?;
    // Without a database, or with one that cannot be read, the rest is shown all the same.
    let (memory, error) = match place.exists() {
        false => (None, None),
        true => match app.open().await {
            Ok(memory) => (Some(memory), None),
            Err(error) => (None, Some(Failure::from_any(error).message)),
        },
    };
    let mut sessions = error.is_none().then_some(0);
    if let Some(memory) = &memory {
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        sessions = Some(memory.sessions(&filter).await?.len() as u64);
    }
    let log = Log::of(app);
    let log_path = log.as_ref().map(|log| log.path().to_owned());
    let log_path = log_path.unwrap_or_default();
    let lines = log.map(|log| log.lines()).unwrap_or_default();
    let copies = KeptTranscripts::of(app)?.all()?;
    let mut report = Report {
        kept_transcripts: KeptReport {
            transcripts: copies.len() as u64,
            bytes: copies.iter().map(|copy| copy.bytes).sum(),
            alone_bytes: copies
                .iter()
                .filter(|copy| copy.is_alone)
                .map(|copy| copy.bytes)
                .sum(),
        },
        program: program.path().to_owned(),
        version: env!("CARGO_PKG_VERSION"),
        database: Database {
            bytes: place.bytes(),
            path: place.name().into(),
            sessions,
            error,
        },
        log_bytes: std::fs::metadata(&log_path).map_or(0, |meta| meta.len()),
        log: log_path,
        agents: Vec::new(),
    };
    for agent in Agent::value_variants() {
        let home = agent.home();
        let exists = home.is_dir();
        let parts = agent.parts(&program).into_iter();
        let deletion = match agent {
            Agent::ClaudeCode if exists => Some(Deletion::of(&home, memory.as_ref()).await?),
            _ => None,
        };
        report.agents.push(AgentReport {
            agent: agent.name(),
            exists,
            parts: parts
                .map(|part| PartReport {
                    part: part.name,
                    state: part.state(),
                    path: part.path,
                })
                .collect(),
            events: Events::of(*agent, &lines),
            deletion,
            home,
        });
    }
    match app.json {
        true => Ok(app.out.json(&report)?),
        false => print(app, &report),
    }
}

fn print(app: &mut App, report: &Report) -> anyhow::Result<()> {
    let Database { path, sessions, .. } = &report.database;
    let path = path.display();
    let size = bytes(report.database.bytes);
    let state = match (&report.database.error, sessions) {
        (Some(error), _) => error.clone(),
        _ if report.database.bytes == 0 => "none yet".to_owned(),
        (None, sessions) => count(sessions.unwrap_or(0), "session", "sessions"),
    };
    app.out
        .line(&format!("program: {} {}", report.program, report.version))?;
    app.out
        .line(&format!("database: {path}, {size}, {state}"))?;
    let (log, size) = (report.log.display(), bytes(report.log_bytes));
    app.out.line(&format!("log of events: {log}, {size}"))?;
    for agent in &report.agents {
        app.out
            .line(&format!("{}: {}", agent.agent, agent.state()))?;
        for line in agent.details(app) {
            app.out.line(&format!("  {line}"))?;
        }
    }
    Ok(())
}

impl AgentReport {
    /// Returns which parts are installed.
    fn state(&self) -> String {
        if !self.exists {
            return format!("no folder {}", self.home.display());
        }
        let mut names: Vec<&str> = self.parts.iter().map(|part| part.part).collect();
        names.dedup();
        let states = |name: &str| {
            let parts = self.parts.iter().filter(|part| part.part == name);
            parts.map(|part| part.state).collect::<Vec<_>>()
        };
        let is_missing = |name: &&str| states(name).iter().all(|one| *one == State::Missing);
        if names.iter().all(is_missing) {
            return "not installed".to_owned();
        }
        let shown = names.iter().map(|name| {
            let states = states(name);
            let all = |state| states.iter().all(|one| *one == state);
            match () {
                () if all(State::Installed) => format!("{name} installed"),
                () if all(State::Missing) => format!("{name} missing"),
                () if states.contains(&State::Unreadable) => format!("{name} unreadable"),
                () => format!("{name} of another path or version of the program"),
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    fn details(&self, app: &App) -> Vec<String> {
        let mut lines = Vec::new();
        let is = |state| self.parts.iter().any(|part| part.state == state);
        if is(State::Different) || is(State::Installed) && is(State::Missing) {
            let install = app.command(&["install"], &[self.agent]);
            lines.push(format!("install it again: {install}"));
        }
        for part in &self.parts {
            if part.state == State::Unreadable {
                let path = part.path.display();
                lines.push(format!("cannot read or edit {path}"));
            }
        }
        if self.agent == Agent::Codex.name() && is(State::Installed) {
            lines.push("whether its hooks are trusted is unknown: /hooks in Codex shows it".into());
        }
        let events = &self.events;
        if let Some(last) = &events.last {
            lines.push(format!("last event: {}", shown(last)));
            let [errors, deferred, slow] = [
                (events.errors, "error", "errors"),
                (
                    events.deferred,
                    "not answered in time",
                    "not answered in time",
                ),
                (events.slow, "over 2 seconds", "over 2 seconds"),
            ]
            .map(|(number, one, many)| count(number as u64, one, many));
            lines.push(format!(
                "{}: {errors}, {deferred}, {slow}; half within {} ms, 99 % within {} ms",
                count(events.events as u64, "event", "events"),
                number(events.p50_ms.unwrap_or(0)),
                number(events.p99_ms.unwrap_or(0)),
            ));
        }
        if let Some(error) = &events.last_error {
            lines.push(format!("last error: {}: {}", shown(error), error.detail));
        }
        if let Some(deletion) = self.deletion.as_ref().filter(|one| one.transcripts > 0) {
            lines.push(format!(
                "deletes transcripts after {}: {} within a week, {} of them not in the database",
                count(deletion.days, "day", "days"),
                number(deletion.transcripts),
                number(deletion.not_stored.len() as u64),
            ));
            let paths = deletion
                .not_stored
                .iter()
                .map(|path| path.to_string_lossy());
            for path in paths.take(NAMED) {
                lines.push(format!("import it: {}", app.command(&["import"], &[&path])));
            }
            if deletion.not_stored.len() > NAMED {
                let home = self.home.to_string_lossy();
                let import = app.command(&["import"], &[&home]);
                lines.push(format!("import all: {import}"));
            }
        }
        lines
    }
}

/// Returns an event with its age.
fn shown(line: &Line) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(line.at);
    let seconds = at.elapsed().map_or(0, |age| age.as_secs());
    let (n, one, many) = match seconds {
        0..120 => (seconds, "second", "seconds"),
        120..7_200 => (seconds / 60, "minute", "minutes"),
        7_200..172_800 => (seconds / 3_600, "hour", "hours"),
        _ => (seconds / 86_400, "day", "days"),
    };
    format!(
        "{} of {}, {} ago, {} in {} ms",
        line.event.as_deref().unwrap_or("unreadable event"),
        line.session.as_deref().unwrap_or("no session"),
        count(n, one, many),
        line.result,
        number(line.ms)
    )
}
