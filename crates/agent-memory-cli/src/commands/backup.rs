//! `backup`: copies the database to a new file.

use serde::Serialize;

use crate::app::App;
use crate::args::Backup;
use crate::error::{Failure, Kind};
use crate::output::count;
use crate::place::Place;

#[derive(Debug, Serialize)]
struct Report {
    database: String,
    file: String,
    sessions: u64,
    entries: u64,
    bytes: u64,
}

pub(crate) async fn run(app: &mut App, args: &Backup) -> anyhow::Result<()> {
    let place = app.place()?;
    let path = file_of(&place)?;
    // Says so if there is no database.
    app.open().await?;
    let copied = app.sqlite_options().backup(path, &args.file).await;
    let copied = copied.map_err(agent_memory::Error::from)?;
    let report = Report {
        database: place.name(),
        file: args.file.display().to_string(),
        sessions: copied.conversations,
        entries: copied.entries,
        bytes: copied.bytes,
    };
    if app.json {
        return Ok(app.out.json(&report)?);
    }
    app.out.line(&format!(
        "copied {} with {} from {} to {}: {}",
        count(report.sessions, "session", "sessions"),
        count(report.entries, "log entry", "log entries"),
        report.database,
        report.file,
        count(report.bytes, "byte", "bytes"),
    ))?;
    Ok(())
}

/// Returns the path of a database in a file.
///
/// # Errors
/// `Usage` for a database on a server.
pub(super) fn file_of(place: &Place) -> Result<&std::path::Path, Failure> {
    place.file().ok_or_else(|| {
        let text = format!("{} is on a server, which has its own backups", place.name());
        Failure::new(Kind::Usage, text).hint(
            "use pg_dump and pg_restore, or copy the sessions with `agent-memory migrate --to FILE`",
        )
    })
}
