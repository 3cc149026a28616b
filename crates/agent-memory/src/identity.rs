//! The identity at the beginning of every context: a text of the application, and files that the user and the agent
//! edit.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use context_assembler::render_identity;

use crate::error::{Error, ErrorKind, Result};

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
/// the project's `.agents` folder replaces the user's file. The files are read for each context, so that the next
/// context shows a change. A missing file is left out. A file that cannot be read, is larger than 64 KiB or is not
/// UTF-8 is left out with a warning in the log.
///
/// ```
/// use agent_memory::context::IdentityFiles;
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
                let text = read(&self.find(name)?)?;
                let text = text.trim();
                (!text.is_empty()).then(|| format!("# {name}\n\n{text}"))
            })
            .collect();
        (!sections.is_empty()).then(|| sections.join("\n\n"))
    }

    /// Writes one of the three files, for a tool of the agent. Replaces the project's file if there is one, otherwise
    /// the user's file. If neither exists, creates the file in the user's folder. The old text stays if writing fails.
    ///
    /// # Errors
    /// `Invalid` if the name is not one of the three, if the text is larger than 64 KiB, or if the file cannot be
    /// written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let invalid = |what: String| Error::new(ErrorKind::Invalid, what);
        let known = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name));
        let Some(name) = known else {
            let names = NAMES.join(", ");
            return Err(invalid(format!(
                "there is no identity file {name}: write one of {names}"
            )));
        };
        if text.len() as u64 > MOST_BYTES {
            return Err(invalid(format!(
                "the text for {name} has {} bytes: shorten it to {MOST_BYTES}",
                text.len()
            )));
        }
        let path = self.find(name).unwrap_or_else(|| self.user.join(name));
        let failed = |error: std::io::Error| {
            invalid(format!(
                "cannot write {}: {error}; check the folder",
                path.display()
            ))
        };
        // A reader sees either the old text or the new text.
        let new = path.with_extension("md.new");
        fs::write(&new, text).map_err(failed)?;
        fs::rename(&new, &path).map_err(failed)
    }

    /// Returns the path of the file with this name in any case: the project's file, otherwise the user's file.
    fn find(&self, name: &str) -> Option<PathBuf> {
        let folders = self.project.iter().chain([&self.user]);
        folders.into_iter().find_map(|folder| {
            let files = fs::read_dir(folder).ok()?.flatten();
            let mut same: Vec<PathBuf> = files
                .filter(|file| file.file_name().eq_ignore_ascii_case(name))
                .map(|file| file.path())
                .collect();
            // Of names that differ only in case, the documented spelling is preferred.
            same.sort_by_key(|path| path.file_name().is_none_or(|found| found != name));
            same.into_iter().next()
        })
    }
}

fn read(path: &Path) -> Option<String> {
    let is_small = fs::metadata(path).map(|data| data.is_file() && data.len() <= MOST_BYTES);
    let text = match is_small {
        Ok(true) => fs::read_to_string(path).map_err(|error| error.to_string()),
        Ok(false) => Err(format!("it is not a file of at most {MOST_BYTES} bytes")),
        Err(error) => Err(error.to_string()),
    };
    match text {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::warn!(path = %path.display(), error, "an identity file is left out");
            None
        }
    }
}

/// The agent's identity, which begins every context: a text, files, or both.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    text: Option<String>,
    files: Option<IdentityFiles>,
    /// The rendered text. Not used if the identity has files, because they may change.
    rendered: Option<Arc<str>>,
}

impl Identity {
    /// Adds files, which are read for each context. Their texts follow the identity's text.
    pub fn with_files(mut self, files: IdentityFiles) -> Self {
        self.files = Some(files);
        self
    }

    /// Returns the identity in the form that contexts show; `None` if it has no text.
    pub(crate) fn render(&self) -> Option<Arc<str>> {
        let Some(files) = &self.files else {
            return self.rendered.clone();
        };
        let texts = [
            self.text.as_deref().map(Cow::Borrowed),
            files.text().map(Cow::Owned),
        ];
        let texts: Vec<Cow<'_, str>> = texts.into_iter().flatten().collect();
        (!texts.is_empty()).then(|| render_identity(&texts.join("\n\n")).into())
    }
}

/// Creates an identity from one text.
impl From<String> for Identity {
    fn from(text: String) -> Self {
        Self {
            rendered: Some(render_identity(&text).into()),
            text: Some(text),
            files: None,
        }
    }
}

/// Creates an identity from one text.
impl From<&str> for Identity {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Creates an identity from files, without an additional text.
impl From<IdentityFiles> for Identity {
    fn from(files: IdentityFiles) -> Self {
        Self::default().with_files(files)
    }
}
