//! The outline of a JSON document: the places of its keys, as far as the head of a source shows them.

use std::collections::BTreeMap;

use crate::lines::BOM;

/// Number of levels in an outline. Deeper levels are passed over.
const LEVELS: usize = 4;
/// Number of a list's items that are read.
const ITEMS: usize = 8;
/// Maximum length of the sample of a value's text, in bytes.
const SAMPLE: usize = 64;

/// The places of a document. For example, `messages[].role` is a key of an item of the list `messages`. Each place has
/// the beginning of its first value's text, without the quotes of a string.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outline<'a> {
    places: BTreeMap<String, &'a [u8]>,
    settled: bool,
}

impl<'a> Outline<'a> {
    /// Reads the outline of the first document in the head of a source. Returns `None` if the document is neither an
    /// object nor a list. `complete` means that the head is the whole source.
    pub(crate) fn of(head: &'a [u8], complete: bool) -> Option<Self> {
        let bytes = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
        if !bytes.starts_with(b"{") && !bytes.starts_with(b"[") {
            return None;
        }
        let mut scan = Scan {
            rest: bytes,
            outline: Self::default(),
        };
        scan.outline.settled = match scan.value(&mut String::new(), 0) {
            Ok(()) | Err(Stop::Enough) => true,
            Err(Stop::Cut) => complete,
        };
        Some(scan.outline)
    }

    /// Returns whether a longer head would add no places.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Returns whether a place exists.
    pub(crate) fn has(&self, place: &str) -> bool {
        self.places.contains_key(place)
    }

    /// Returns whether a place exists and its first value begins with a text.
    pub(crate) fn begins(&self, place: &str, text: &str) -> bool {
        let value = self.places.get(place);
        value.is_some_and(|value| value.starts_with(text.as_bytes()))
    }
}

/// Reason for which a scan ends before the document does.
enum Stop {
    /// The head ends.
    Cut,
    /// A list at the top has more items than are read, or the text is no JSON.
    Enough,
}

struct Scan<'a> {
    rest: &'a [u8],
    outline: Outline<'a>,
}

impl<'a> Scan<'a> {
    /// Returns the next byte that is not white space, without taking it.
    fn peek(&mut self) -> Result<u8, Stop> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied().ok_or(Stop::Cut)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Records a place and scans its value.
    fn value(&mut self, place: &mut String, level: usize) -> Result<(), Stop> {
        let first = self.peek()?;
        let text = self.rest.strip_prefix(b"\"").unwrap_or(self.rest);
        let sample = text.get(..SAMPLE.min(text.len())).unwrap_or_default();
        self.outline.places.entry(place.clone()).or_insert(sample);
        match first {
            b'{' | b'[' if level >= LEVELS => self.pass_over(),
            b'{' => {
                self.take(1);
                self.members(place, level)
            }
            b'[' => {
                self.take(1);
                self.items(place, level)
            }
            b'"' => self.string().map(|_| ()),
            _ => {
                let ends =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                let end = self.rest.iter().position(ends).ok_or(Stop::Cut)?;
                let scalar = self.take(end);
                let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(scalar).is_ok();
                if is_json { Ok(()) } else { Err(Stop::Enough) }
            }
        }
    }

    fn members(&mut self, place: &mut String, level: usize) -> Result<(), Stop> {
        let length = place.len();
        loop {
            match self.peek()? {
                b'}' => {
                    self.take(1);
                    return Ok(());
                }
                b',' => {
                    self.take(1);
                }
                b'"' => {
                    let key = self.string()?;
                    if self.peek()? != b':' {
                        return Err(Stop::Enough);
                    }
                    self.take(1);
                    if length > 0 {
                        place.push('.');
                    }
                    place.push_str(&String::from_utf8_lossy(key));
                    self.value(place, level + 1)?;
                    place.truncate(length);
                }
                _ => return Err(Stop::Enough),
            }
        }
    }

    fn items(&mut self, place: &mut String, level: usize) -> Result<(), Stop> {
        let length = place.len();
        let mut seen = 0;
        loop {
            match self.peek()? {
                b']' => {
                    self.take(1);
                    return Ok(());
                }
                b',' => {
                    self.take(1);
                }
                _ if seen < ITEMS => {
                    seen += 1;
                    place.push_str("[]");
                    self.value(place, level + 1)?;
                    place.truncate(length);
                }
                _ if level == 0 => return Err(Stop::Enough),
                b'{' | b'[' => self.pass_over()?,
                _ => self.value(&mut "-".to_owned(), level + 1)?,
            }
        }
    }

    /// Passes over an object or a list.
    fn pass_over(&mut self) -> Result<(), Stop> {
        let mut ends = Ends::default();
        let end = ends.of(self.rest).ok_or(Stop::Cut)?;
        self.take(end);
        Ok(())
    }

    /// Returns the inside of a string as it came.
    fn string(&mut self) -> Result<&'a [u8], Stop> {
        let mut ends = Ends::default();
        let end = ends.of(self.rest).ok_or(Stop::Cut)?;
        let text = self.take(end);
        Ok(text.get(1..end.saturating_sub(1)).unwrap_or_default())
    }
}

/// Finds the end of an object, a list or a string in pieces of its text.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Ends {
    /// Returns the number of the piece's bytes that belong to the value, if it ends in this piece.
    pub(crate) fn of(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = piece.get(at..)?;
            if self.in_string && !self.is_escaped {
                at += memchr::memchr2(b'"', b'\\', rest)?;
            }
            let byte = piece.get(at)?;
            at += 1;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => continue,
            }
            if self.depth == 0 && !self.in_string && !self.is_escaped {
                return Some(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, complete: bool) -> Option<Outline<'_>> {
        Outline::of(text.as_bytes(), complete)
    }

    #[test]
    fn places_are_found_in_a_cut_document() {
        let text = r#"{"info":{"id":"a\"}","n":1},"messages":[{"role":"user","parts":[{"text":"x"#;
        let outline = of(text, false).unwrap();
        for place in [
            "info.id",
            "info.n",
            "messages",
            "messages[].role",
            "messages[].parts[]",
        ] {
            assert!(outline.has(place), "{place}");
        }
        assert!(outline.begins("messages[].role", "user") && !outline.settled);
        assert!(!outline.has("messages[].parts[].text.x") && !outline.has("role"));
        assert!(of(text, true).unwrap().settled);
    }

    #[test]
    fn a_document_ends_before_the_source_does() {
        assert!(of("{\"a\":[1,\n{}]}\n{\"b\":", false).unwrap().settled);
        assert!(!of("{\"a\":[1,\n{}]}\n{\"b\":1}", false).unwrap().has("b"));
        let many = format!("[{}", "{\"a\":1},".repeat(9));
        assert!(of(&many, false).unwrap().settled);
        for text in ["[a link](x)", "{x", "[1.2.3]"] {
            assert!(of(text, false).unwrap().settled, "{text}");
        }
        assert!(of("# Title", true).is_none() && of("", true).is_none());
    }

    #[test]
    fn an_end_is_found_in_pieces() {
        let text = br#"{"a":"}\"","b":[{}]} "#;
        for cut in 0..text.len() {
            let mut ends = Ends::default();
            let (one, two) = text.split_at(cut);
            let end = ends.of(one).or_else(|| Some(cut + ends.of(two)?));
            assert_eq!(end, Some(text.len() - 1), "{cut}");
        }
    }

    #[test]
    fn the_end_is_found_in_pieces_of_any_length() {
        let text = br#"{"a\\":["}\"]",{"b":"\\"}]} [1]"#;
        let end = Ends::default().of(text).unwrap();
        assert_eq!(&text[end..], b" [1]");
        for at in 0..end {
            let mut ends = Ends::default();
            assert_eq!(ends.of(&text[..at]), None, "{at}");
            assert_eq!(ends.of(&text[at..]), Some(end - at), "{at}");
        }
    }
}
