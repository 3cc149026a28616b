//! Import of what was appended to a transcript since the last event.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use agent_memory::{Memory, SessionKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::answer::Door;
use crate::app::App;
use crate::commands::import;

/// Number of bytes before the end of the imported part that must be the same, so that the rest counts as appended.
const COMPARED: u64 = 4_096;

/// The part of a transcript that was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    path: PathBuf,
    /// Size of the part, in bytes.
    bytes: u64,
    /// Hash of the last bytes of the part.
    end: String,
}

impl Checkpoint {
    /// Returns the checkpoint at the end of the last whole line of a transcript's first `bytes` bytes.
    fn at(path: &Path, bytes: u64) -> std::io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            bytes,
            end: end(path, bytes)?,
        })
    }

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
    let hash = Sha256::digest(&bytes);
    Ok(hash
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Imports a transcript. Returns the key of its main session.
pub(super) async fn import(
    app: &App,
    memory: &Memory,
    session: &str,
    path: &Path,
) -> anyhow::Result<Option<SessionKey>> {
    let size = std::fs::metadata(path)?.len();
    if let Some(session) = memory.find_session(session).await? {
        let door = Door::of(&session).await?;
        if door
            .source()
            .is_some_and(|known| known.bytes == size && known.holds(path))
        {
            return Ok(Some(session.key().clone()));
        }
    }
    let transcript = import::read(path, &import::options(app, None))?;
    let key = memory.import(&transcript).await?.main;
    if let Some(key) = &key {
        let session = memory.get_session(key.clone()).await?;
        let mut door = Door::of(&session).await?;
        door.set_source(&session, Checkpoint::at(path, size)?)
            .await?;
    }
    Ok(key)
}
