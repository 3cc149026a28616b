//! Copies of agents' transcripts, which stay when the agents delete their own.
//!
//! A copy is a hard link where the file system permits it. It then costs no space while the agent keeps its own file, and
//! grows with it. The copies of a session are in a folder of their own next to the database.

use std::fs::Metadata;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agent_memory::model::{Clock as _, SystemClock};
use agent_memory::store::{Conversation, ConversationFilter, read_conversations};
use agent_memory::{Memory, Session, SessionKey};

use crate::app::App;
use crate::files;
use crate::output::short_hash;

/// The copies next to a database.
#[derive(Debug, Clone)]
pub(crate) struct KeptTranscripts {
    folder: PathBuf,
}

/// A copy of a transcript.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) path: PathBuf,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// Time of the last write.
    written: SystemTime,
    /// Whether the agent's own file is gone, or is another file, so that the copy costs space.
    pub(crate) is_alone: bool,
}

impl Copy {
    fn new(path: PathBuf, meta: &Metadata) -> Self {
        Self {
            path,
            bytes: meta.len(),
            written: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            is_alone: is_alone(meta),
        }
    }
}

#[cfg(unix)]
fn is_alone(meta: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(meta) < 2
}

#[cfg(not(unix))]
fn is_alone(_: &Metadata) -> bool {
    true
}

impl KeptTranscripts {
    /// Returns the copies next to the database of this run.
    pub(crate) fn of(app: &App) -> anyhow::Result<Self> {
        Ok(Self {
            folder: app.place()?.beside("-transcripts"),
        })
    }

    /// Returns the folder of a session's copies. Its name is made from the session's key, which may be any text.
    fn folder(&self, key: &SessionKey) -> PathBuf {
        self.folder.join(short_hash(key.as_str().as_bytes()))
    }

    /// Keeps a transcript of a session. The transcript is not kept if words of the session, its forks or its sub-agents
    /// were erased, because it may have the words.
    pub(crate) async fn keep(&self, session: &Session, path: &Path) -> anyhow::Result<()> {
        let (Some(name), false) = (path.file_name(), path.is_symlink()) else {
            return Ok(());
        };
        let family = family(session.memory(), &session.info().await?.conversation).await?;
        if family.iter().any(|one| one.erasures > 0) {
            return Ok(());
        }
        let folder = self.folder(session.key());
        files::create_folder(&self.folder)?;
        files::create_folder(&folder)?;
        let mut copy = folder.join(name);
        for number in 2.. {
            let Ok(meta) = std::fs::symlink_metadata(&copy) else {
                break;
            };
            if meta.is_file() && (is_same(path, &meta)? || continues(path, &copy)?) {
                break;
            }
            // The agent has begun another file with this name.
            copy = folder.join(format!("{number}-{}", name.to_string_lossy()));
        }
        match std::fs::symlink_metadata(&copy) {
            Ok(meta) if is_same(path, &meta)? => return Ok(()),
            // A file that the agent has written anew, or a copy on another file system.
            Ok(_) => replace(path, &copy)?,
            Err(_) => link(path, &copy)?,
        }
        Ok(())
    }

    /// Returns the copies of a session, by name.
    pub(crate) fn of_session(&self, key: &SessionKey) -> io::Result<Vec<Copy>> {
        match files::is_folder(&self.folder) {
            true => copies(&self.folder(key)),
            false => Ok(Vec::new()),
        }
    }

    /// Returns all copies, those that were written to last first.
    pub(crate) fn all(&self) -> io::Result<Vec<Copy>> {
        let mut all = Vec::new();
        for folder in entries(&self.folder)? {
            all.extend(copies(&folder)?);
        }
        all.sort_by_key(|copy| std::cmp::Reverse(copy.written));
        Ok(all)
    }

    /// Removes the copies of a session and of its forks and sub-agents, which may have the same words. Returns their
    /// number.
    pub(crate) async fn remove(
        &self,
        memory: &Memory,
        session: &Conversation,
    ) -> anyhow::Result<u64> {
        let mut removed = 0;
        for one in family(memory, session).await? {
            let folder = self.folder(&one.key);
            removed += self.of_session(&one.key)?.len() as u64;
            if files::is_folder(&self.folder) && files::is_folder(&folder) {
                std::fs::remove_dir_all(folder)?;
            }
        }
        Ok(removed)
    }

    /// Removes copies that are older than `age`, and then the oldest until the others have at most `bytes`. Only copies
    /// count that cost space. Returns the removed ones.
    pub(crate) fn limit(&self, age: Option<Duration>, bytes: Option<u64>) -> io::Result<Vec<Copy>> {
        let micros = u64::try_from(SystemClock.now().0).unwrap_or(0);
        let now = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        let (mut sum, mut removed) = (0_u64, Vec::new());
        for copy in self.all()?.into_iter().filter(|copy| copy.is_alone) {
            sum += copy.bytes;
            let old = now.duration_since(copy.written).unwrap_or_default();
            if age.is_some_and(|age| old > age) || bytes.is_some_and(|most| sum > most) {
                std::fs::remove_file(&copy.path)?;
                removed.push(copy);
            }
        }
        Ok(removed)
    }
}

/// Returns a session with its forks and sub-agents, and the sessions that it comes from.
async fn family(memory: &Memory, session: &Conversation) -> anyhow::Result<Vec<Conversation>> {
    let mut filter = ConversationFilter::default();
    (filter.archived, filter.family) = (true, Some(session.family));
    Ok(read_conversations(&**memory.store(), &filter).await?)
}

/// Returns the paths in a folder. None if there is no such folder, or something else in its place.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !files::is_folder(folder) {
        return Ok(Vec::new());
    }
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

fn copies(folder: &Path) -> io::Result<Vec<Copy>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        let meta = std::fs::symlink_metadata(&path)?;
        if meta.is_file() {
            found.push(Copy::new(path, &meta));
        }
    }
    Ok(found)
}

/// Returns whether a copy and a transcript are the same file, or copies that do not differ in size and time.
fn is_same(path: &Path, copy: &Metadata) -> io::Result<bool> {
    let meta = std::fs::metadata(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if (meta.dev(), meta.ino()) == (copy.dev(), copy.ino()) {
            return Ok(true);
        }
    }
    Ok(meta.len() == copy.len() && meta.modified()? == copy.modified()?)
}

/// Returns whether a transcript begins with all bytes of a copy.
fn continues(path: &Path, copy: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (files::open(path)?, files::open(copy)?);
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let read = io::Read::read(&mut other, &mut right)?;
        if read == 0 {
            return Ok(true);
        }
        let same = left.get_mut(..read);
        let Some(same) = same else {
            return Ok(false);
        };
        match io::Read::read_exact(&mut one, same) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            done => done?,
        }
        if right.get(..read) != Some(same) {
            return Ok(false);
        }
    }
}

/// Creates the copy of a transcript.
fn link(path: &Path, copy: &Path) -> io::Result<()> {
    match std::fs::hard_link(path, copy) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Ok(()) => Ok(()),
        Err(_) => replace(path, copy),
    }
}

/// Puts a transcript in the place of an older copy, at once.
fn replace(path: &Path, copy: &Path) -> io::Result<()> {
    let folder = copy.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    let mut file = files::open(path)?;
    io::copy(&mut file, &mut new)?;
    new.flush()?;
    files::keep_private(new.as_file())?;
    new.as_file().set_modified(file.metadata()?.modified()?)?;
    new.persist(copy)?;
    Ok(())
}
