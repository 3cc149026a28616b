//! Flags and ends of texts that several measures use.

use std::path::PathBuf;

use crate::mode::Mode;
use crate::retention::transcripts;

/// The flags of a measure.
pub(crate) struct Flags {
    /// The folder of the corpus.
    pub(crate) data: PathBuf,
    /// Whether the figures of each case are printed.
    pub(crate) each: bool,
    pub(crate) mode: Mode,
}

impl Flags {
    /// Reads `[--data DIR] [--each] [--check | --dry-run]`.
    ///
    /// # Errors
    /// When a flag is unknown, or there is no folder.
    pub(crate) fn of(flags: &[String], words: &[&str], command: &str) -> anyhow::Result<Self> {
        let (mut data, mut each, mut rest) = (None, false, Vec::new());
        for flag in flags {
            match flag.as_str() {
                "--data" => data = words.first().map(PathBuf::from),
                "--each" => each = true,
                _ => rest.push(flag.clone()),
            }
        }
        Ok(Self {
            mode: Mode::from_flags(&rest)?,
            data: transcripts::corpus(data, command)?,
            each,
        })
    }
}

/// The last characters of a text, at most this many.
pub(crate) fn last_characters(text: &str, count: usize) -> &str {
    let first = count
        .checked_sub(1)
        .map(|n| text.char_indices().rev().nth(n));
    match first {
        None => "",
        Some(first) => first.map_or(text, |(at, _)| &text[at..]),
    }
}
