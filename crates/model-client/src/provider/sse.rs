//! Server-sent events, the form of streamed answers.

/// Reads the data of events from the bytes of a stream, in pieces of any size. Comments, names, ids and other fields
/// are skipped: the data of all providers name their type.
#[derive(Debug, Default)]
pub(super) struct SseReader {
    line: Vec<u8>,
    /// Whether the last byte was `\r`, which ends a line with or without a `\n` behind it.
    after_return: bool,
    data: Option<String>,
}

impl SseReader {
    /// Reads bytes, and calls `event` with the data of each complete event. Returns the first error of `event`.
    pub(super) fn read<E>(
        &mut self,
        bytes: &[u8],
        mut event: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\r' | b'\n' => {
                    if let Some(data) = self.end_line() {
                        event(&data)?;
                    }
                }
                byte => self.line.push(*byte),
            }
        }
        Ok(())
    }

    /// Returns the data of an event that the end of the stream completes. Servers may leave out the last empty line.
    pub(super) fn end(&mut self) -> Option<String> {
        let before = self.end_line();
        before.or_else(|| self.data.take())
    }

    /// Returns the number of bytes that are kept until the event is complete.
    pub(super) fn kept(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// Ends a line. Returns the data of an event if the line is empty.
    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take();
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}

/// Returns whether a body is a stream of events, by its beginning and its type. `None` if the beginning decides
/// nothing yet.
///
/// Some servers answer a streamed request with a single JSON document, some name another type.
pub(super) fn is_stream(body: &[u8], content_type: &str) -> Option<bool> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    let start = body.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let body = body.get(start..).unwrap_or_default();
    if matches!(body.first(), Some(b'{' | b'[' | b'<')) {
        return Some(false);
    }
    if content_type.starts_with("text/event-stream") {
        return Some(true);
    }
    const FIELDS: [&str; 5] = ["data:", "event:", "id:", "retry:", ":"];
    if FIELDS
        .iter()
        .any(|field| body.starts_with(field.as_bytes()))
    {
        return Some(true);
    }
    let may_become = FIELDS
        .iter()
        .any(|field| field.as_bytes().starts_with(body));
    (!may_become).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a stream in pieces of this many bytes.
    fn events(stream: &str, size: usize) -> Vec<String> {
        let (mut reader, mut found) = (SseReader::default(), Vec::new());
        for piece in stream.as_bytes().chunks(size) {
            let read: Result<(), ()> = reader.read(piece, |data| {
                found.push(data.to_owned());
                Ok(())
            });
            read.unwrap();
        }
        found.extend(reader.end());
        assert_eq!(reader.kept(), 0);
        found
    }

    #[test]
    fn events_are_the_same_in_pieces_of_any_size() {
        for (stream, expected) in [
            (
                "data: {\"a\":1}\n\ndata: [DONE]\n\n",
                vec!["{\"a\":1}", "[DONE]"],
            ),
            ("data:a\r\n\r\ndata:b\r\n\r\n", vec!["a", "b"]),
            ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
            (
                "event: ping\ndata: {}\n\n: keep-alive\n\nid: 4\ndata: 요약\n\n",
                vec!["{}", "요약"],
            ),
            ("data: two\ndata: lines\n\n", vec!["two\nlines"]),
            ("\u{feff}data: marked\n\n", vec!["marked"]),
            // The last empty line, or the end of the last line, may be missing.
            ("data: a\n\ndata: b\n", vec!["a", "b"]),
            ("data: a\n\ndata: b", vec!["a", "b"]),
            ("data\n\n", vec![""]),
            (": only comments\n\n\n\n", vec![]),
            ("", vec![]),
        ] {
            for size in [1, 2, 3, 7, 1_000] {
                assert_eq!(events(stream, size), expected, "{stream:?} by {size}");
            }
        }
    }

    #[test]
    fn a_stream_is_known_by_its_beginning_or_its_type() {
        let sse = "text/event-stream; charset=utf-8";
        for (body, content_type, expected) in [
            ("", sse, None),
            ("\r\n ", sse, None),
            ("{\"choices\"", sse, Some(false)),
            ("\n[{", "application/json", Some(false)),
            ("<html>", "", Some(false)),
            ("data: {", "application/json", Some(true)),
            ("event: message_start", "", Some(true)),
            (": hello", "text/plain", Some(true)),
            ("da", "text/plain", None),
            ("da", sse, Some(true)),
            ("dear user", "text/plain", Some(false)),
        ] {
            assert_eq!(
                is_stream(body.as_bytes(), content_type),
                expected,
                "{body:?}"
            );
        }
    }
}
