//! `migrate`: copies all sessions to another database.

use agent_memory::Memory;
use agent_memory::store::{Copied, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use serde::Serialize;

use super::verify::Verified;
use crate::app::App;
use crate::args::Migrate;
use crate::error::{Failure, Kind};
use crate::output::{count, note};
use crate::place::{Location, Place};

#[derive(Debug, Serialize)]
struct Report {
    from: String,
    to: String,
    sessions: u64,
    entries: u64,
    /// Families of sessions that were copied now.
    copied: u64,
    /// Families that an earlier run had copied.
    known: u64,
    verify: Verified,
}

/// An open store in a database.
enum Opened {
    File(Box<SqliteStore>),
    Server(Box<PostgresStore>),
}

pub(crate) async fn run(app: &mut App, args: &Migrate) -> anyhow::Result<()> {
    let from = match &args.from {
        Some(from) => Place::find(Some(from))?,
        None => app.place()?,
    };
    let to = Place::find(Some(&args.to))?;
    if from.absolute() == to.absolute() {
        let failure = Failure::new(Kind::Usage, "--from and --to name the same database");
        return Err(failure.hint("name another database with --to").into());
    }
    if !from.exists() {
        let text = format!("there is no database at {}", from.name());
        let failure = Failure::new(Kind::NoDatabase, text);
        return Err(failure.hint("name an existing one with --from").into());
    }
    to.prepare()?;
    let source = open(&from, true).await?;
    let target = open(&to, false).await?;
    let progress = |copied: &Copied| {
        if (copied.families + copied.known).is_multiple_of(100) {
            note(&format!(
                "{}, {}",
                count(copied.conversations, "session copied", "sessions copied"),
                count(copied.entries, "log entry", "log entries")
            ));
        }
    };
    let copied = match (&source, &target) {
        (Opened::File(source), Opened::File(target)) => source.copy_to(target, progress).await,
        (Opened::File(source), Opened::Server(target)) => source.copy_to(target, progress).await,
        (Opened::Server(source), Opened::File(target)) => source.copy_to(target, progress).await,
        (Opened::Server(source), Opened::Server(target)) => source.copy_to(target, progress).await,
    };
    let copied = copied.map_err(agent_memory::Error::from)?;
    let memory = Memory::builder();
    let memory = match target {
        Opened::File(store) => memory.store(*store),
        Opened::Server(store) => memory.store(*store),
    };
    let memory = memory.open().await?;
    let verified = memory.verify().await;
    memory.close().await?;
    let report = Report {
        from: from.name(),
        to: to.name(),
        sessions: copied.conversations,
        entries: copied.entries,
        copied: copied.families,
        known: copied.known,
        verify: verified?.into(),
    };
    if app.json {
        app.out.json(&report)?;
    } else {
        app.out.line(&format!(
            "copied {} with {} from {} to {}",
            count(report.sessions, "session", "sessions"),
            count(report.entries, "log entry", "log entries"),
            report.from,
            report.to
        ))?;
        if report.known > 0 {
            app.out.line(&format!(
                "{} there already",
                count(
                    report.known,
                    "family of sessions was",
                    "families of sessions were"
                )
            ))?;
        }
        report.verify.print(app)?;
    }
    report.verify.check()?;
    Ok(())
}

async fn open(place: &Place, read_only: bool) -> agent_memory::Result<Opened> {
    Ok(match &place.location {
        Location::File(path) => {
            let options = SqliteOptions::new();
            let options = if read_only {
                options.read_only()
            } else {
                options
            };
            Opened::File(Box::new(options.open(path).await?))
        }
        Location::Server(url) => {
            let options = PostgresOptions::new();
            let options = if read_only {
                options.read_only()
            } else {
                options
            };
            Opened::Server(Box::new(options.open(url).await?))
        }
    })
}
