//! Options for reading a source.

/// How to read a transcript.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Name of the source in errors; default "the transcript". [`read_file`](crate::read_file) takes the path.
    pub name: String,
    /// The session of plain JSON lines that name none. By default the key is `jsonl-` and 16 hex digits of the first line's
    /// SHA-256, and the session counts as not [named](crate::SessionLog::named).
    pub session: Option<String>,
    /// Lines of more bytes than this are counted as `too_long` and passed over; default 256 MiB.
    /// It bounds the memory that a line takes, and a source without end: reading stops in a line
    /// that is four times as long, and in a source whose format does not show in this many bytes.
    pub max_line_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            name: "the transcript".to_owned(),
            session: None,
            max_line_bytes: 256 << 20,
        }
    }
}

impl ReadOptions {
    /// Sets the name of the source in errors.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the session of plain JSON lines that name none.
    pub fn with_session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the longest line that is read, in bytes.
    pub fn with_max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }
}
