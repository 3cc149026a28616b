//! The identity files, and the tool by which a model edits them.

use std::fs;
use std::io::Write as _;
use std::iter::once;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::arguments::{Arguments, Reach, or};
use crate::error::{Error, Result};
use crate::text::short;

/// Name of the folder in a project. Its files replace the user's files of the same names.
const PROJECT_FOLDER: &str = ".agents";
/// Names of the files, in the order of their texts: who the agent is, whom it serves, facts to remember.
const NAMES: [&str; 3] = ["SOUL.md", "USER.md", "MEMORY.md"];
/// Maximum size of a file, in bytes.
const MOST_BYTES: u64 = 64 * 1024;

/// Identity files. Every context begins with their texts, between `<memory>` tags: `SOUL.md` (who the agent is),
/// `USER.md` (whom it serves) and `MEMORY.md` (facts to remember).
///
/// The files are in the user's folder; upper and lower case of their names do not matter. A file with the same name in
/// the project's `.agents` folder replaces the user's file. Symbolic links in the project are ignored, because a project
/// may come from somebody else. The files are read for each context, so that the next context shows a change. A missing
/// file is left out. A file that cannot be read, is larger than 64 KiB or is not UTF-8 is left out with a warning in the
/// log.
///
/// ```
/// use retrieval_tools::IdentityFiles;
///
/// let user = tempfile::tempdir()?;
/// std::fs::write(user.path().join("soul.md"), "You are terse.")?;
/// let files = IdentityFiles::new(user.path());
/// assert_eq!(files.text().as_deref(), Some("# SOUL.md\n\nYou are terse."));
/// files.write("USER.md", "Calls the release train R7.")?;
/// assert!(files.text().unwrap().ends_with("# USER.md\n\nCalls the release train R7."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct IdentityFiles {
    user: PathBuf,
    project: Option<PathBuf>,
}

impl IdentityFiles {
    /// Creates identity files in the folder `user`.
    pub fn new(user: impl Into<PathBuf>) -> Self {
        Self {
            user: user.into(),
            project: None,
        }
    }

    /// Sets the project's folder. Each file in its `.agents` folder replaces the user's file with the same name.
    pub fn with_project(mut self, project: impl AsRef<Path>) -> Self {
        self.project = Some(project.as_ref().join(PROJECT_FOLDER));
        self
    }

    /// Reads all existing files and returns their texts, each after a heading with the name of its file; `None` if
    /// there is no text.
    pub fn text(&self) -> Option<String> {
        let sections: Vec<String> = NAMES
            .iter()
            .filter_map(|name| {
                let text = read(&self.find(name)?)
                    .inspect_err(|error| tracing::warn!("an identity file is left out: {error}"))
                    .ok()?;
                let text = text.trim();
                (!text.is_empty()).then(|| format!("# {name}\n\n{text}"))
            })
            .collect();
        (!sections.is_empty()).then(|| sections.join("\n\n"))
    }

    /// Reads one of the three files. Returns its text unchanged; empty if there is no such file.
    ///
    /// # Errors
    /// `Invalid` if the name is not one of the three, or if the file cannot be read, is larger than 64 KiB or is not
    /// UTF-8.
    pub fn read(&self, name: &str) -> Result<String> {
        self.find(known(name)?)
            .map_or(Ok(String::new()), |path| read(&path))
    }

    /// Writes one of the three files. Replaces the project's file if there is one, otherwise the user's file. If neither
    /// exists, creates the file in the user's folder, for this user only. A replaced file keeps its permissions. The
    /// old text stays if writing fails.
    ///
    /// # Errors
    /// `Invalid` if the name is not one of the three, if the text is larger than 64 KiB, or if the file cannot be
    /// written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let name = known(name)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(Error::invalid(format!(
                "the text for {name} has {} bytes: shorten it to {MOST_BYTES}",
                text.len()
            )));
        }
        let path = self.find(name).unwrap_or_else(|| self.user.join(name));
        let failed = |error: std::io::Error| {
            Error::invalid(format!(
                "cannot write {}: {error}; check the folder",
                path.display()
            ))
        };
        // A reader sees either the old text or the new text.
        let folder = path.parent().unwrap_or(&self.user);
        let mut new = NamedTempFile::new_in(folder).map_err(failed)?;
        new.write_all(text.as_bytes()).map_err(failed)?;
        if let Ok(old) = fs::metadata(&path) {
            let kept = new.as_file().set_permissions(old.permissions());
            kept.map_err(failed)?;
        }
        new.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Returns the path of the file with this name in any case: the project's file, otherwise the user's file.
    fn find(&self, name: &str) -> Option<PathBuf> {
        let project = self.project.iter().filter(|folder| !folder.is_symlink());
        let project = project.map(|folder| (folder, false));
        project
            .chain(once((&self.user, true)))
            .find_map(|(folder, follows)| {
                let files = fs::read_dir(folder).ok()?.flatten();
                let same = files.filter(|file| file.file_name().eq_ignore_ascii_case(name));
                // Of names that differ only in case, the documented spelling is preferred.
                once(folder.join(name))
                    .chain(same.map(|file| file.path()))
                    .find(|path| {
                        let found = fs::symlink_metadata(path);
                        found.is_ok_and(|found| follows || !found.is_symlink())
                    })
            })
    }
}

/// Returns the documented spelling of a file's name.
fn known(name: &str) -> Result<&'static str> {
    let known = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name));
    known.copied().ok_or_else(|| {
        Error::invalid(format!(
            "there is no identity file {}: give {}",
            short(name),
            or(&NAMES)
        ))
    })
}

fn read(path: &Path) -> Result<String> {
    let is_small = fs::metadata(path).map(|data| data.is_file() && data.len() <= MOST_BYTES);
    let text = match is_small {
        Ok(true) => fs::read_to_string(path).map_err(|error| error.to_string()),
        Ok(false) => Err(format!("it is not a file of at most {MOST_BYTES} bytes")),
        Err(error) => Err(error.to_string()),
    };
    text.map_err(|error| {
        Error::invalid(format!(
            "cannot read {}: {error}; ask the user to mend the file",
            path.display()
        ))
    })
}

/// Arguments of the tool `memory_identity`. The comments of the fields are also their descriptions for a model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct IdentityArgs {
    /// The file.
    #[schemars(extend("enum" = NAMES))]
    pub(crate) file: String,
    /// The whole new text of the file. If not given, the file is only read.
    pub(crate) content: Option<String>,
}

impl Arguments for IdentityArgs {
    const NAME: &'static str = "memory_identity";
    const TITLE: &'static str = "Edit identity files";
    const DESCRIPTION: &'static str = "Reads or writes a file that begins every later context: SOUL.md (who you are, \
        your tone), USER.md (whom you serve and what they prefer), MEMORY.md (facts to remember). The new content \
        takes the place of the whole file, so keep what still holds.";
    const REACH: Reach = Reach::Set;
    const WRITES: bool = true;
}
