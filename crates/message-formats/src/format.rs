//! The trait of a format, and the values that a format gets.

use std::cell::OnceCell;
use std::fmt;
use std::io::BufRead;
use std::path::Path;

use crate::lines::BOM;
use crate::outline::Outline;
use crate::{Error, ReadOptions, Report, SessionLog};

/// A format of transcripts.
///
/// It recognises its sources and reads their conversations. A source is a stream of bytes (a file or a pipe) or a
/// directory. Formats with one JSON object on each line use the loop in [`json_lines`](crate::json_lines).
pub trait Format: fmt::Debug + Send + Sync {
    /// Returns the format's name in reports, such as `claude-code`.
    fn name(&self) -> &str;

    /// Returns how certain the format is of a source with this beginning.
    ///
    /// All formats are asked again with a longer head, up to [`ReadOptions::max_line_bytes`], as long as one of them
    /// answers [`Confidence::Undecided`] and none answers [`Confidence::Certain`].
    fn sniff(&self, head: &Head<'_>) -> Confidence;

    /// Returns the folder in which the agent of this format keeps its transcripts, or `None` if there is none.
    fn home(&self) -> Option<AgentHome> {
        None
    }

    /// Returns whether a file belongs to a transcript next to it and is not a transcript itself.
    fn is_companion(&self, _path: &Path) -> bool {
        false
    }

    /// Returns whether records at the end of a source continue the branch that ends with the entry `last`, and can be read
    /// without the records before them. See [`Formats::read_appended`](crate::Formats::read_appended).
    fn continues(&self, _records: &[u8], _last: &str) -> bool {
        false
    }

    /// Reads a source from its beginning and passes each conversation to the sink.
    ///
    /// A record that cannot be read is not an error: the report counts it. The result must be stable while the source
    /// grows: see [`Transcript`](crate::Transcript).
    ///
    /// # Errors
    /// Fails if the source cannot be read or the sink fails.
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
    /// Name of the environment variable that can name the folder, or empty if there is none.
    pub variable: &'static str,
    /// Path of the folder, relative to the user's home folder.
    pub folder: &'static str,
    /// Paths of the files and folders with transcripts, relative to the folder.
    pub transcripts: &'static [&'static str],
}

impl AgentHome {
    /// Creates the description of a home without an environment variable.
    pub const fn new(folder: &'static str, transcripts: &'static [&'static str]) -> Self {
        Self {
            variable: "",
            folder,
            transcripts,
        }
    }

    /// Sets the environment variable that can name the folder.
    #[must_use]
    pub const fn with_variable(mut self, variable: &'static str) -> Self {
        self.variable = variable;
        self
    }
}

/// Receives the conversations of a source in file order.
pub trait Sink {
    /// Takes one conversation.
    ///
    /// # Errors
    /// Fails if the conversation cannot be kept. Reading then stops.
    fn session(&mut self, session: SessionLog) -> Result<(), Error>;
}

/// Collects the conversations in a list.
impl Sink for Vec<SessionLog> {
    fn session(&mut self, session: SessionLog) -> Result<(), Error> {
        self.push(session);
        Ok(())
    }
}

/// How certain a format is of a source. A greater value is more certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The source is in another format.
    No,
    /// The head is too short for an answer.
    Undecided,
    /// The format can read the source, unless a more specific format claims it.
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
    /// Creates the head of a stream from its first bytes. `complete` means that the stream has no more bytes.
    pub fn new(bytes: &'a [u8], complete: bool) -> Self {
        Self {
            bytes,
            complete,
            path: None,
            directory: false,
            outline: OnceCell::new(),
        }
    }

    /// Creates the head of a directory.
    pub fn of_directory(path: &'a Path) -> Self {
        Self {
            bytes: &[],
            complete: true,
            path: Some(path),
            directory: true,
            outline: OnceCell::new(),
        }
    }

    /// Sets the path from which the stream was opened.
    #[must_use]
    pub fn with_path(mut self, path: &'a Path) -> Self {
        self.path = Some(path);
        self
    }

    /// Returns the source's first bytes. They are empty for a directory.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns whether the bytes are the whole source.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the path of the file or directory, or `None` for a stream without a path.
    pub fn path(&self) -> Option<&'a Path> {
        self.path
    }

    /// Returns whether the source is a directory.
    pub fn is_directory(&self) -> bool {
        self.directory
    }

    /// Returns the outline of the source's first document, or `None` if the document is neither an object nor a list.
    pub(crate) fn outline(&self) -> Option<&Outline<'a>> {
        self.outline
            .get_or_init(|| Outline::of(self.bytes, self.complete))
            .as_ref()
    }

    /// Returns the lines of the head, without line ends and without a byte order mark.
    ///
    /// The last line is left out, unless a newline ends it or the head is the whole source.
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
    /// Creates an input from a stream at its beginning.
    pub fn new(reader: &'a mut dyn BufRead) -> Self {
        Self { reader, path: None }
    }

    /// Sets the path of the file or directory that the stream comes from.
    #[must_use]
    pub fn with_path(mut self, path: &'a Path) -> Self {
        self.path = Some(path);
        self
    }

    /// Returns the source's bytes from the beginning. They are empty for a directory.
    pub fn reader(&mut self) -> &mut dyn BufRead {
        self.reader
    }

    /// Returns the path of the file or directory, or `None` for a stream without a path.
    ///
    /// A pipe has a path that cannot be opened a second time. Formats with random access therefore open only regular
    /// files.
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
