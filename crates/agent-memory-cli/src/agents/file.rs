//! Files of agents: reading, changing as a whole, and the backup of the original.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Failure, Kind, unreadable};
use crate::files;

/// A file, and its new text.
#[derive(Debug)]
pub(crate) struct File {
    /// Path as the agent names it.
    pub(crate) path: PathBuf,
    /// Path behind links.
    place: PathBuf,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// Whether the text before has nothing of ours: a backup keeps no other.
    pub(crate) is_original: bool,
}

/// A kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    Unchanged,
    Created,
    Changed,
    Deleted,
}

impl File {
    /// Reads a file, which may not exist.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let place = match path.canonicalize() {
            Ok(place) => place,
            Err(_) if path.is_symlink() => {
                let text = format!("the link {} leads to no file", path.display());
                return Err(Failure::new(Kind::Unreadable, text).hint("remove or mend the link"));
            }
            Err(_) => path.to_owned(),
        };
        let before = read(&place)?;
        Ok(Self {
            path: path.to_owned(),
            after: before.clone(),
            is_original: true,
            before,
            place,
        })
    }

    pub(crate) fn change(&self) -> Change {
        match (&self.before, &self.after) {
            (before, after) if before == after => Change::Unchanged,
            (None, _) => Change::Created,
            (_, None) => Change::Deleted,
            _ => Change::Changed,
        }
    }

    /// Returns the path of the backup, next to the file.
    pub(crate) fn backup_path(&self) -> PathBuf {
        let mut name = self.place.clone().into_os_string();
        name.push(".before-agent-memory");
        PathBuf::from(name)
    }

    /// Returns the text that the file had before the installation. `None` if the installation created the file.
    pub(crate) fn backup(&self) -> Result<Option<String>, Failure> {
        read(&self.backup_path())
    }

    /// Fails if the file may not be changed.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let meta = std::fs::metadata(&self.place);
        if self.change() != Change::Unchanged && meta.is_ok_and(|m| m.permissions().readonly()) {
            let text = format!("{} is read-only", self.path.display());
            return Err(Failure::new(Kind::Other, text)
                .hint("no file was changed: allow writing, or make the change by hand as --dry-run shows it"));
        }
        Ok(())
    }

    /// Writes the change. Keeps a backup next to a file that `install` changes for the first time.
    pub(crate) fn write(&self, install: bool) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            let text = format!("cannot change {}: {error}", self.path.display());
            Failure::new(Kind::Other, text).hint("check that you may write there")
        };
        if self.change() != Change::Unchanged && read(&self.place)? != self.before {
            let text = format!("{} was changed meanwhile", self.path.display());
            return Err(Failure::new(Kind::Other, text).hint("run it again"));
        }
        let backup = self.backup_path();
        if self.change() == Change::Changed && install && self.is_original && !backup.exists() {
            let before = self.before.as_deref().unwrap_or_default();
            replace(&backup, before, &self.place).map_err(failed)?;
        }
        match (self.change(), &self.after) {
            (Change::Unchanged, _) => {}
            (_, Some(after)) => replace(&self.place, after, &self.place).map_err(failed)?,
            (_, None) => std::fs::remove_file(&self.place).map_err(failed)?,
        }
        if !install && backup.exists() {
            std::fs::remove_file(&backup).map_err(failed)?;
        }
        Ok(())
    }

    /// Removes the folders of a deleted file that are empty, up to `home`.
    pub(crate) fn prune(&self, home: &Path) {
        let folders = self.path.ancestors().skip(1);
        let folders = folders.take_while(|folder| *folder != home && folder.starts_with(home));
        for folder in folders {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

/// Maximum size of a configuration, in bytes.
const MOST_BYTES: u64 = 16 << 20;

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match files::read_text(path, MOST_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let name = path.display().to_string();
            Err(unreadable(&name, Some(&error.to_string())))
        }
    }
}

/// Replaces a file as a whole, with the permissions of the file `like` if it exists.
fn replace(path: &Path, text: &str, like: &Path) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    files::create_folders(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    match std::fs::metadata(like) {
        Ok(meta) => file.as_file().set_permissions(meta.permissions())?,
        Err(_) => files::keep_private(file.as_file())?,
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
