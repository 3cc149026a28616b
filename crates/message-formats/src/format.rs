//! The trait that a format implements, and what it is given.

use std::cell::OnceCell;
use std::fmt;
use std::io::BufRead;
use std::path::Path;

use crate::lines::BOM;
use crate::outline::Outline;
use crate::{Error, ReadOptions, Report, SessionLog};

/// A format of transcripts: recognises its sources and reads their conversations.
///
/// A source is a stream of bytes (a file, a pipe) or a directory. Formats of one JSON object a
/// line have their loop in [`json_lines`](crate::json_lines).
pub trait Format: fmt::Debug + Send + Sync {
    /// The format's name in reports, such as `claude-code`.
    fn name(&self) -> &str;

    /// Returns how certain it is that a source with this beginning is in the format.
    ///
    /// As long as some format answers [`Confidence::Undecided`] and none [`Confidence::Certain`],
    /// all are asked again with a longer head, up to [`ReadOptions::max_line_bytes`].
    fn sniff(&self, head: &Head<'_>) -> Confidence;

    /// Returns the folder in which the agent of this format keeps its transcripts; `None` if it has none.
    fn home(&self) -> Option<AgentHome> {
        None
    }

    /// Returns whether a file belongs to a transcript beside it, and is not a transcript itself.
    fn is_companion(&self, _path: &Path) -> bool {
        false
    }

    /// Reads a source from its beginning and hands each conversation to the sink.
    ///
    /// A record that cannot be read is no error: the report counts it. Reading must be stable while
    /// the source grows: see [`Transcript`](crate::Transcript).
    ///
    /// # Errors
    /// When the source cannot be read, or the sink fails.
    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error>;
}

/// Folder in which an agent keeps its transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentHome {
    /// Name of the environment variable that may name the folder; empty if there is none.
    pub variable: &'static str,
    /// Path of the folder in the user's home folder.
    pub folder: &'static str,
    /// Paths inside the folder of the files and folders that have transcripts.
    pub transcripts: &'static [&'static str],
}

impl AgentHome {
    /// Creates the description of a home that no environment variable names.
    pub const fn new(folder: &'static str, transcripts: &'static [&'static str]) -> Self {
        Self {
            variable: "",
            folder,
            transcripts,
        }
    }

    /// Sets the environment variable that may name the folder.
    #[must_use]
    pub const fn with_variable(mut self, variable: &'static str) -> Self {
        self.variable = variable;
        self
    }
}

/// Receives the conversations of a source, in file order.
pub trait Sink {
    /// Takes one conversation.
    ///
    /// # Errors
    /// When it cannot be kept; reading stops.
    fn session(&mut self, session: SessionLog) -> Result<(), Error>;
}

/// Collects the conversations.
impl Sink for Vec<SessionLog> {
    fn session(&mut self, session: SessionLog) -> Result<(), Error> {
        self.push(session);
        Ok(())
    }
}

/// How certain a format is that a source is in it. Greater is more certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The source is in another format.
    No,
    /// The head is too short to tell.
    Undecided,
    /// The source can be read in this format unless a more specific one claims it.
    Possible,
    /// The source is in this format.
    Certain,
}

/// The beginning of a source, or a directory.
#[derive(Debug, Clone)]
pub struct Head<'a> {
    bytes: &'a [u8],
    complete: bool,
    path: Option<&'a Path>,
    directory: bool,
    outline: OnceCell<Option<Outline<'a>>>,
}

impl<'a> Head<'a> {
    /// The first bytes of a stream. `complete` says whether nothing comes after them.
    pub fn new(bytes: &'a [u8], complete: bool) -> Self {
        Self {
            bytes,
            complete,
            path: None,
            directory: false,
            outline: OnceCell::new(),
        }
    }

    /// A directory.
    pub fn of_directory(path: &'a Path) -> Self {
        Self {
            bytes: &[],
            complete: true,
            path: Some(path),
            directory: true,
            outline: OnceCell::new(),
        }
    }

    /// Sets the path that the stream was opened from.
    #[must_use]
    pub fn with_path(mut self, path: &'a Path) -> Self {
        self.path = Some(path);
        self
    }

    /// The source's first bytes; empty for a directory.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns whether the bytes are the whole source.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The path of the file or directory; `None` for a stream without one.
    pub fn path(&self) -> Option<&'a Path> {
        self.path
    }

    /// Returns whether the source is a directory.
    pub fn is_directory(&self) -> bool {
        self.directory
    }

    /// The outline of the source's first document; `None` where it is neither an object nor a list.
    pub(crate) fn outline(&self) -> Option<&Outline<'a>> {
        self.outline
            .get_or_init(|| Outline::of(self.bytes, self.complete))
            .as_ref()
    }

    /// The lines of the head, without their ends. The last one is left out unless a newline ends
    /// it or the head is the whole source. A byte order mark is passed over.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes.strip_prefix(BOM).unwrap_or(self.bytes);
        let end = match self.complete {
            true => bytes.len(),
            false => memchr::memrchr(b'\n', bytes).unwrap_or_default(),
        };
        let bytes = bytes.get(..end).unwrap_or_default();
        bytes.split(|&byte| byte == b'\n')
    }
}

/// A source to read.
pub struct Input<'a> {
    reader: &'a mut dyn BufRead,
    path: Option<&'a Path>,
}

impl<'a> Input<'a> {
    /// A stream at its beginning.
    pub fn new(reader: &'a mut dyn BufRead) -> Self {
        Self { reader, path: None }
    }

    /// Sets the path of the file or directory that it comes from.
    #[must_use]
    pub fn with_path(mut self, path: &'a Path) -> Self {
        self.path = Some(path);
        self
    }

    /// The source's bytes from the beginning; empty for a directory.
    pub fn reader(&mut self) -> &mut dyn BufRead {
        self.reader
    }

    /// The path of the file or directory; `None` for a stream without one. A pipe has a path that
    /// cannot be opened a second time: formats that need random access open only regular files.
    pub fn path(&self) -> Option<&'a Path> {
        self.path
    }
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
