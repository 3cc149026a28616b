//! Options for reading a source.

/// Options for reading a transcript.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Name of the source in errors. The default is "the transcript". [`read_file`](crate::read_file) uses the path.
    pub name: String,
    /// Session of plain JSON lines that name no session.
    ///
    /// By default the key is `jsonl-` and 16 hex digits of the SHA-256 of the first line, and the session counts as not
    /// [named](crate::SessionLog::named).
    pub session: Option<String>,
    /// Longest line that is read, in bytes. The default is 256 MiB.
    ///
    /// A longer line is counted as `too_long` and passed over. The limit bounds the memory for a line. It also bounds
    /// the reading of a source without an end: reading stops in a line that is four times as long, and in a source that
    /// shows no known format in this number of bytes.
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

    /// Sets the session of plain JSON lines that name no session.
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
