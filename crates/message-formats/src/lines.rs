//! Reads the lines of a source one by one within a limit.

use std::io::{BufRead, ErrorKind};

/// The byte order mark of UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Maximum length of the sample that is kept of a too long line, in bytes.
const SAMPLE: usize = 64;

/// Result of reading a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line. The buffer has its bytes, without the line end.
    Line {
        /// Whether a newline ended the line. The source may continue a line without a newline, so no byte behind it may
        /// be read.
        ended: bool,
    },
    /// A line longer than the limit. The buffer has only its first bytes.
    TooLong {
        /// Whether a newline ended the line before `give_up` bytes.
        ended: bool,
    },
    /// The source has ended.
    End,
}

/// Maximum lengths of a line, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Length above which a line is passed over.
    pub(crate) line: usize,
    /// Length above which reading stops in the middle of a line.
    pub(crate) give_up: usize,
}

/// Reads the next line into `buffer`, which never grows beyond `limits.line` bytes.
pub(crate) fn next_line(
    reader: &mut (impl BufRead + ?Sized),
    buffer: &mut Vec<u8>,
    limits: Limits,
) -> std::io::Result<Found> {
    buffer.clear();
    let mut length = 0usize;
    loop {
        let chunk = match reader.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let at_end = chunk.is_empty();
        if at_end && length == 0 {
            return Ok(Found::End);
        }
        let newline = memchr::memchr(b'\n', chunk);
        let (taken, ended) = match newline {
            Some(at) => (at, true),
            None => (chunk.len(), false),
        };
        let kept = length <= limits.line;
        length = length.saturating_add(taken);
        if length <= limits.line {
            buffer.extend_from_slice(chunk.get(..taken).unwrap_or_default());
        } else if kept {
            if buffer.is_empty() {
                let sample = taken.min(SAMPLE);
                buffer.extend_from_slice(chunk.get(..sample).unwrap_or_default());
            }
            buffer.truncate(SAMPLE);
            buffer.shrink_to_fit();
        }
        reader.consume(taken + usize::from(ended));
        if ended || at_end || length > limits.give_up {
            return Ok(if length > limits.line {
                Found::TooLong { ended }
            } else {
                Found::Line { ended }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_within_the_limit() {
        let mut reader = std::io::BufReader::with_capacity(3, &b"ab\n\nabcdefgh\nlast"[..]);
        let mut buffer = Vec::new();
        let mut seen = Vec::new();
        let limits = Limits {
            line: 5,
            give_up: 9,
        };
        loop {
            let found = next_line(&mut reader, &mut buffer, limits).unwrap();
            if found == Found::End {
                break;
            }
            seen.push((found, String::from_utf8(buffer.clone()).unwrap()));
        }
        let line = |text: &str, ended| (Found::Line { ended }, text.to_owned());
        assert_eq!(
            seen,
            [
                line("ab", true),
                line("", true),
                (Found::TooLong { ended: true }, "abcde".to_owned()),
                line("last", false)
            ]
        );
    }
}
