//! Lines of a source, read one by one within a stated limit.

use std::io::{BufRead, ErrorKind};

/// What one line turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line; its bytes are in the buffer, without line end.
    Line {
        /// Whether a newline ended it; only the last line may lack one.
        ended: bool,
    },
    /// A line longer than the limit; its bytes were passed over.
    TooLong,
    /// Nothing is left.
    End,
}

/// Reads the next line into `buffer`, which never grows beyond `limit` bytes.
pub(crate) fn next_line(
    reader: &mut impl BufRead,
    buffer: &mut Vec<u8>,
    limit: usize,
) -> std::io::Result<Found> {
    buffer.clear();
    let mut too_long = false;
    let mut any = false;
    loop {
        let chunk = match reader.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let newline = chunk.iter().position(|&byte| byte == b'\n');
        let (taken, ended) = match newline {
            Some(at) => (at, true),
            None => (chunk.len(), false),
        };
        let at_end = chunk.is_empty();
        any |= !at_end;
        if buffer.len().saturating_add(taken) > limit {
            too_long = true;
            buffer.clear();
        }
        if !too_long {
            buffer.extend_from_slice(chunk.get(..taken).unwrap_or_default());
        }
        reader.consume(taken + usize::from(ended));
        if ended || at_end {
            return Ok(match (any, too_long) {
                (false, _) => Found::End,
                (true, true) => Found::TooLong,
                (true, false) => Found::Line { ended },
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
        loop {
            let found = next_line(&mut reader, &mut buffer, 5).unwrap();
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
                (Found::TooLong, String::new()),
                line("last", false)
            ]
        );
    }
}
