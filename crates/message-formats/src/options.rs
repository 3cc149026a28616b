//! Options for reading a source.

use std::path::PathBuf;

use memory_model::Zone;

use crate::overflow::Overflow;

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
    /// Most bytes that a compressed source may have once it is unpacked. The default is 16 GiB.
    ///
    /// A source that is not compressed has no limit, because its size can be seen.
    pub max_unpacked_bytes: u64,
    /// Zone of the times of agents that write the local time without an offset, such as OpenHands. The default is UTC.
    pub zone: Zone,
    pub(crate) overflow: Overflow,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            name: "the transcript".to_owned(),
            session: None,
            max_line_bytes: 256 << 20,
            max_unpacked_bytes: 16 << 30,
            zone: Zone::default(),
            overflow: Overflow::default(),
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

    /// Sets the zone of times that an agent writes in local time, without an offset.
    #[must_use]
    pub fn with_zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// Bounds the memory for messages. Messages behind the first `kept` bytes of records go to a temporary file in
    /// `folder`, which has no name. [`SessionLog::entry`](crate::SessionLog::entry) reads them.
    ///
    /// This holds for the formats of lines. A format of documents keeps all messages in memory, as every format does by
    /// default.
    #[must_use]
    pub fn with_overflow(mut self, kept: usize, folder: impl Into<PathBuf>) -> Self {
        self.overflow = Overflow::new(kept, folder.into());
        self
    }
}
