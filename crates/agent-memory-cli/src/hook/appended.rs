//! Import of the lines that were appended to a transcript since the last event.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use agent_memory::transcripts::{ReadOptions, Transcript};
use agent_memory::{Memory, SessionKey};

use super::door::{Checkpoint, Door};
use super::event::Event;
use super::log::{Log, Outcome};
use crate::app::App;
use crate::commands::import;
use crate::error::Kind;
use crate::output::short_hash;
use crate::scope;

/// Number of bytes before the end of the imported part that must be the same, so that the rest counts as appended.
const COMPARED: u64 = 4_096;

impl Checkpoint {
    /// Returns whether the transcript still begins with the imported part.
    fn holds(&self, path: &Path) -> bool {
        self.path == path && end(path, self.bytes).is_ok_and(|end| end == self.end)
    }
}

/// Returns the hash of the last bytes before an offset.
fn end(path: &Path, offset: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let from = offset.saturating_sub(COMPARED);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(offset - from).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != offset - from {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(short_hash(&bytes))
}

/// Returns the size of a transcript up to its last whole line, of its first `size` bytes.
fn whole_lines(path: &Path, size: u64) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut end = size;
    while end > 0 {
        let from = end.saturating_sub(COMPARED);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        (&file).take(end - from).read_to_end(&mut bytes)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// Imports the records of a transcript that are new since the last event. Returns the key of its main session.
pub(super) async fn import(
    app: &App,
    memory: &Memory,
    event: &Event,
    path: &Path,
) -> anyhow::Result<Option<SessionKey>> {
    let key = import_new(app, memory, event, path).await?;
    if let (Some(key), Some(folder)) = (&key, &event.cwd) {
        let session = memory.get_session(key.clone()).await?;
        scope::set_folder(&session, folder).await?;
    }
    Ok(key)
}

async fn import_new(
    app: &App,
    memory: &Memory,
    event: &Event,
    path: &Path,
) -> anyhow::Result<Option<SessionKey>> {
    // The transcript may grow while it is read.
    let size = std::fs::metadata(path)?.len();
    let bytes = whole_lines(path, size)?;
    let options = import::options(app, None);
    if let Some(session) = memory.find_session(event.session_id.as_str()).await?
        && let Some(known) = Door::of(&session).await?.source()
        && known.bytes <= bytes
        && known.holds(path)
    {
        if known.bytes == size {
            return Ok(Some(session.key().clone()));
        }
        let end = match &known.last {
            Some(last) => {
                let options = ReadOptions::default();
                import::formats().read_appended(path, known.bytes, last, &options)?
            }
            None => None,
        };
        let last = end.as_ref().and_then(last);
        // The lines may name another session.
        if let Some(end) =
            end.filter(|end| end.sessions.iter().all(|log| log.key == *session.key()))
            && let Some(imported) = memory.import_appended(end).await?
            && let Some(key) = imported.main
        {
            record(memory, &key, path, bytes, last).await?;
            return Ok(Some(key));
        }
    }
    let transcript = match import::read(path, &options) {
        // Nothing was said yet.
        Err(failure) if failure.kind == Kind::Empty => return Ok(None),
        read => read?,
    };
    let own = format!("session {}", SessionKey::RESERVED);
    let left_out = transcript.report.skipped.keys();
    for what in left_out.filter(|what| what.starts_with(&own)) {
        if let Some(log) = Log::of(app) {
            let detail = format!("left out the {what}, which is the memory's own");
            log.add(Some(event), Duration::ZERO, &Outcome::Done(detail));
        }
    }
    let key = memory.import(&transcript).await?.main;
    if let Some(key) = &key {
        record(memory, key, path, bytes, last(&transcript)).await?;
    }
    Ok(key)
}

/// Records the part of a transcript that was imported. The rest cannot be read alone if some of it was imported too.
async fn record(
    memory: &Memory,
    key: &SessionKey,
    path: &Path,
    bytes: u64,
    last: Option<String>,
) -> anyhow::Result<()> {
    let size = std::fs::metadata(path)?.len();
    let source = Checkpoint {
        path: path.to_owned(),
        bytes,
        end: end(path, bytes)?,
        last: last.filter(|_| size == bytes),
    };
    let session = memory.get_session(key.clone()).await?;
    let mut door = Door::of(&session).await?;
    door.set_source(&session, source).await
}

/// Returns the id of the entry that the rest of a transcript follows.
fn last(transcript: &Transcript) -> Option<String> {
    let log = transcript.sessions.iter().find(|log| log.in_use)?;
    log.last.clone()
}
