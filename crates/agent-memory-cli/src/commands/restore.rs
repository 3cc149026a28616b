//! `restore`: puts a backup in the place of the database.

use agent_memory::store::{ErrorKind, LaterErasure, LostEntries, Replaced, SqliteStore};
use agent_memory::{Memory, VerifyReport};
use serde::Serialize;

use super::backup::file_of;
use crate::app::App;
use crate::args::Restore;
use crate::error::{Failure, Kind, unreadable};
use crate::output::{count, note};

/// Maximum number of sessions with lost entries that are listed as text, and of violations of a damaged backup.
const LISTED: usize = 10;

#[derive(Debug, Serialize)]
struct Report {
    database: String,
    file: String,
    sessions: u64,
    entries: u64,
    /// Database that was replaced. `None` if it could not be read.
    replaced: Option<ReplacedDatabase>,
}

#[derive(Debug, Serialize)]
struct ReplacedDatabase {
    sessions: u64,
    lost: Vec<Lost>,
    erased_again: Vec<ErasedAgain>,
}

/// Entries of a session that the backup does not have.
#[derive(Debug, Serialize)]
struct Lost {
    session: String,
    entries: u64,
    /// Whether the backup does not have the session.
    whole: bool,
}

impl From<&LostEntries> for Lost {
    fn from(lost: &LostEntries) -> Self {
        Self {
            session: lost.key.to_string(),
            entries: lost.entries,
            whole: lost.conversation,
        }
    }
}

/// An erasure after the backup, which was made in the restored database again.
#[derive(Debug, Serialize)]
struct ErasedAgain {
    session: String,
    first: u32,
    last: u32,
    at: String,
    reason: String,
}

impl From<&LaterErasure> for ErasedAgain {
    fn from(erasure: &LaterErasure) -> Self {
        Self {
            session: erasure.key.to_string(),
            first: erasure.range.first.0,
            last: erasure.range.last.0,
            at: erasure.at.to_string(),
            reason: erasure.reason.clone(),
        }
    }
}

impl From<&Replaced> for ReplacedDatabase {
    fn from(replaced: &Replaced) -> Self {
        Self {
            sessions: replaced.conversations,
            lost: replaced.lost.iter().map(Lost::from).collect(),
            erased_again: replaced.erasures.iter().map(ErasedAgain::from).collect(),
        }
    }
}

impl ReplacedDatabase {
    /// Returns lines about the lost entries, and about the erasures that are made again.
    fn lines(&self) -> Vec<String> {
        let lost = |lost: &Lost| {
            let entries = count(lost.entries, "entry", "entries");
            match lost.whole {
                true => format!("not in the backup: the session {}, {entries}", lost.session),
                false => format!("not in the backup: {entries} of {}", lost.session),
            }
        };
        let mut lines: Vec<String> = self.lost.iter().take(LISTED).map(lost).collect();
        if let Some(more) = self.lost.get(LISTED..).filter(|more| !more.is_empty()) {
            let entries = more.iter().map(|lost| lost.entries).sum();
            lines.push(format!(
                "not in the backup: {} of {} more",
                count(entries, "entry", "entries"),
                count(more.len() as u64, "session", "sessions"),
            ));
        }
        lines.extend(self.erased_again.iter().map(|erasure| {
            let ErasedAgain {
                session,
                first,
                last,
                at,
                reason,
            } = erasure;
            format!("erased after the backup: {session}, entries {first}-{last}, at {at}: {reason}")
        }));
        lines
    }
}

pub(crate) async fn run(app: &mut App, args: &Restore) -> anyhow::Result<()> {
    let place = app.place()?;
    let path = file_of(&place)?;
    let file = args.file.display().to_string();
    if let Err(error) = std::fs::metadata(&args.file) {
        return Err(unreadable(&file, Some(&error.to_string())).into());
    }
    let options = app.sqlite_options();
    let backup = options.clone().read_only().open(&args.file).await;
    let verified = verified(&file, backup.map_err(agent_memory::Error::from)?).await?;
    place.prepare()?;
    let restore = options.begin_restore(&args.file, path).await;
    let mut restore = restore.map_err(agent_memory::Error::from)?;
    let replaced = match restore.compare().await {
        Ok(replaced) => Some(replaced),
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            note(&error.to_string());
            note("erasures that were made after the backup are unknown: erase again by hand");
            None
        }
        Err(error) => return Err(agent_memory::Error::from(error).into()),
    };
    let report = Report {
        database: place.name(),
        file,
        sessions: verified.conversations,
        entries: verified.messages,
        replaced: replaced.as_ref().map(ReplacedDatabase::from),
    };
    let has_sessions = replaced
        .as_ref()
        .is_none_or(|replaced| replaced.conversations > 0);
    let lines = report.replaced.as_ref().map(ReplacedDatabase::lines);
    let lines = lines.unwrap_or_default();
    if has_sessions && !args.replace {
        lines.iter().for_each(|line| note(line));
        let text = match &replaced {
            Some(replaced) => format!(
                "{} has {}, which the backup would replace",
                report.database,
                count(replaced.conversations, "session", "sessions")
            ),
            None => format!("{} cannot be read and would be replaced", report.database),
        };
        return Err(Failure::new(Kind::Usage, text)
            .hint("copy it first with `backup`, and give --replace; or name another place with --store")
            .into());
    }
    let erasures = replaced.map(|replaced| replaced.erasures);
    let finished = restore.finish(&erasures.unwrap_or_default()).await;
    finished.map_err(agent_memory::Error::from)?;
    if app.json {
        return Ok(app.out.json(&report)?);
    }
    app.out.line(&format!(
        "restored {} with {} from {} to {}",
        count(report.sessions, "session", "sessions"),
        count(report.entries, "log entry", "log entries"),
        report.file,
        report.database,
    ))?;
    for line in lines {
        app.out.line(&line)?;
    }
    let again = report
        .replaced
        .map_or(0, |replaced| replaced.erased_again.len());
    if again > 0 {
        let again = count(again as u64, "erasure was", "erasures were");
        app.out
            .line(&format!("{again} made again in the restored database"))?;
    }
    Ok(())
}

/// Verifies a backup, and closes it.
async fn verified(file: &str, store: SqliteStore) -> anyhow::Result<VerifyReport> {
    let memory = Memory::builder().store(store).open().await?;
    let report = memory.verify().await;
    memory.close().await?;
    let report = report?;
    if report.is_ok() {
        return Ok(report);
    }
    for violation in report.violations.iter().take(LISTED) {
        note(&format!("wrong: {violation}"));
    }
    let text = format!(
        "the backup {file} is damaged: {} found",
        count(report.violations.len() as u64, "violation", "violations")
    );
    Err(Failure::new(Kind::VerificationFailed, text)
        .hint("take another backup: the database did not change")
        .into())
}
