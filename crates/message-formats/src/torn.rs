//! Finds the whole records in a line that is not one record.
//!
//! A program that is killed leaves half a record, and the next record then follows it in the same line. Two
//! programs that write at once can leave two records without a line break between them.
//!
//! Such a line is read from its ends, because the end of half a record is unknown. A whole record closes at the end of
//! the line, or where another record opens right behind it, which JSON has nowhere else. Reading backwards from there
//! finds its start. A whole object inside half a record looks the same if that record broke off right behind it. It is
//! a record only if no value could stand in its place, or if its keys are those of a record.
//!
//! All of this takes time in proportion to the length of the line.

use std::ops::Range;

use serde_json::value::RawValue;

use crate::raw::RawObject;

/// Number of times that the bytes of a line may be read in search of the starts of records.
const MOST_READINGS: usize = 8;

/// The first two keys of a record. Records of one program begin alike.
pub(crate) type Beginning = [String; 2];

/// A piece of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A whole record.
    Record(Range<usize>),
    /// Bytes that are no whole record.
    Torn(Range<usize>),
}

/// Returns the pieces of a line in order, without the white space between them.
///
/// `ended` means that a newline ended the line. Otherwise the line may grow, and an object at the place of a value is no
/// record. `is_known` returns whether a record is known to begin with these keys.
pub(crate) fn pieces(
    line: &[u8],
    ended: bool,
    is_known: impl Fn(&Beginning) -> bool,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = leading(line, &mut pieces);
    let mut scan = Scan::default();
    let mut read = start;
    for record in behind(line, start) {
        scan.take(line.get(read..record.start).unwrap_or_default());
        read = record.start;
        let is_certain = !scan.may_hold_an_object();
        let begins = || {
            let keys = line.get(record.clone()).and_then(beginning_of);
            keys.is_some_and(|keys| scan.keys == keys || is_known(&keys))
        };
        if is_certain || ended && begins() {
            torn(line, start..record.start, &mut pieces);
            start = record.end;
            read = record.end;
            pieces.push(Piece::Record(record));
            scan = Scan::default();
        }
    }
    torn(line, start..line.len(), &mut pieces);
    pieces
}

/// Returns the whole records of a line that is not one record, if only the line itself is known.
pub(crate) fn records(line: &[u8], ended: bool) -> impl Iterator<Item = &str> {
    let pieces = pieces(line, ended, |_| false).into_iter();
    pieces.filter_map(|piece| match piece {
        Piece::Record(range) => std::str::from_utf8(line.get(range)?).ok(),
        Piece::Torn(_) => None,
    })
}

/// Adds the bytes of a range, unless all of them are white space.
fn torn(line: &[u8], range: Range<usize>, pieces: &mut Vec<Piece>) {
    let bytes = line.get(range.clone()).unwrap_or_default();
    if !bytes.trim_ascii().is_empty() {
        pieces.push(Piece::Torn(range));
    }
}

/// Adds the whole records at the start of a line, and returns their end.
fn leading(line: &[u8], pieces: &mut Vec<Piece>) -> usize {
    let mut values = serde_json::Deserializer::from_slice(line).into_iter::<&RawValue>();
    let mut end = 0;
    while let Some(Ok(value)) = values.next()
        && value.get().starts_with('{')
    {
        let start = values.byte_offset() - value.get().len();
        end = values.byte_offset();
        pieces.push(Piece::Record(start..end));
    }
    end
}

/// Returns the whole objects behind a place that end where records end, in order.
fn behind(line: &[u8], from: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut budget = line.len().saturating_mul(MOST_READINGS);
    let mut end = line.trim_ascii_end().len();
    let mut closes = line.get(..end).is_some_and(|all| all.ends_with(b"}"));
    while end > from {
        let before = line.get(from..end).unwrap_or_default();
        let object = closes
            .then(|| opening(before, &mut budget))
            .flatten()
            .map(|start| from + start..end);
        let whole = object.filter(|object| {
            let object = line.get(object.clone()).unwrap_or_default();
            object.len() > 2 && serde_json::from_slice::<&RawValue>(object).is_ok()
        });
        match whole {
            Some(object) => {
                end = from
                    + line
                        .get(from..object.start)
                        .unwrap_or_default()
                        .trim_ascii_end()
                        .len();
                found.push(object);
                closes = line.get(..end).is_some_and(|before| before.ends_with(b"}"));
            }
            None => closes = false,
        }
        if !closes {
            let Some(next) = joint(line.get(from..end).unwrap_or_default()) else {
                break;
            };
            end = from + next;
            closes = true;
        }
    }
    found.reverse();
    found
}

/// Returns the last place at which an object ends and another one opens right behind it.
fn joint(bytes: &[u8]) -> Option<usize> {
    let mut opens = memchr::memrchr_iter(b'{', bytes);
    opens.find_map(|open| {
        let before = bytes.get(..open)?.trim_ascii_end();
        before.ends_with(b"}").then_some(before.len())
    })
}

/// Returns the start of the object that closes at the end of these bytes. Reading takes from the budget, in bytes.
fn opening(bytes: &[u8], budget: &mut usize) -> Option<usize> {
    let mut open = 0usize;
    let mut at = bytes.len();
    let mut in_string = false;
    while at > 0 {
        *budget = budget.checked_sub(1)?;
        at -= 1;
        match bytes.get(at)? {
            b'"' => {
                let before = bytes.get(..at)?.iter().rev();
                let escapes = before.take_while(|byte| **byte == b'\\').count();
                *budget = budget.checked_sub(escapes)?;
                // A quote outside of a string ends one. Nothing there is escaped.
                in_string = !in_string || escapes % 2 == 1;
            }
            _ if in_string => {}
            b'}' | b']' => open += 1,
            b'{' | b'[' => {
                open = open.checked_sub(1)?;
                if open == 0 {
                    return (bytes.get(at) == Some(&b'{')).then_some(at);
                }
            }
            _ if open == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the first two keys of an object. A key that is not there is empty.
pub(crate) fn beginning(object: &RawObject<'_>) -> Beginning {
    let mut names = object.members.iter().map(|member| member.name.to_string());
    [(); 2].map(|()| names.next().unwrap_or_default())
}

/// Returns whether an object begins with these keys.
pub(crate) fn begins_with(object: &RawObject<'_>, keys: &Beginning) -> bool {
    let mut names = object.members.iter().map(|member| member.name.as_ref());
    keys.iter()
        .all(|key| names.next().unwrap_or_default() == key)
}

fn beginning_of(object: &[u8]) -> Option<Beginning> {
    let object = RawObject::parse(std::str::from_utf8(object).ok()?)?;
    Some(beginning(&object))
}

/// The state behind the bytes of half a record.
#[derive(Debug, Default)]
struct Scan {
    /// The open objects and lists, by their first bytes.
    open: Vec<u8>,
    in_string: bool,
    is_escaped: bool,
    /// The last byte outside of strings that is no white space.
    last: u8,
    /// The first two keys of the record.
    keys: Beginning,
    /// Bytes of the key that is being read, and its place among the two.
    key: Option<(usize, Vec<u8>)>,
}

impl Scan {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_string {
                self.in_string = self.is_escaped || *byte != b'"';
                self.is_escaped = !self.is_escaped && *byte == b'\\';
                match &mut self.key {
                    Some((_, key)) if self.in_string => key.push(*byte),
                    _ => self.end_key(),
                }
                continue;
            }
            match byte {
                byte if byte.is_ascii_whitespace() => continue,
                b'"' => {
                    self.in_string = true;
                    let is_key = self.open.as_slice() == b"{" && matches!(self.last, b'{' | b',');
                    let free = self.keys.iter().position(String::is_empty);
                    self.key = free.filter(|_| is_key).map(|place| (place, Vec::new()));
                }
                b'{' | b'[' => self.open.push(*byte),
                b'}' | b']' => drop(self.open.pop()),
                _ => {}
            }
            self.last = *byte;
        }
    }

    fn end_key(&mut self) {
        let Some((place, key)) = self.key.take() else {
            return;
        };
        if let Some(slot) = self.keys.get_mut(place) {
            *slot = String::from_utf8_lossy(&key).into_owned();
        }
    }

    /// Returns whether an object could follow as a value of the record.
    fn may_hold_an_object(&self) -> bool {
        let in_list = self.open.last() == Some(&b'[');
        !self.in_string
            && match self.last {
                b':' => !self.open.is_empty(),
                b'[' | b',' => in_list,
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pieces of a line: records as they are, other bytes in angle brackets.
    fn shown(line: &str, ended: bool) -> Vec<String> {
        let is_known = |keys: &Beginning| keys[0] == "id" && keys[1] == "said";
        let pieces = pieces(line.as_bytes(), ended, is_known).into_iter();
        let shown = pieces.map(|piece| match piece {
            Piece::Record(range) => line[range].to_owned(),
            Piece::Torn(range) => format!("<{}>", &line[range]),
        });
        shown.collect()
    }

    const WHOLE: &str = r#"{"id":1,"said":{"text":"a } { \" \\"}}"#;

    #[test]
    fn whole_records_are_found_behind_half_a_record_wherever_it_broke_off() {
        let long = r#"{"id":2,"said":{"texts":["é } {\"id\":3}{ \\",{"x":[1,{}]},-1.5e3,null]},"tail":"end"}"#;
        for at in (1..long.len()).filter(|at| long.is_char_boundary(*at)) {
            let torn = &long[..at];
            let cut = format!("<{torn}>");
            assert_eq!(shown(&format!("{torn}{WHOLE}"), true), [&cut, WHOLE]);
            assert_eq!(
                shown(&format!("{WHOLE}{torn}{WHOLE} {WHOLE}"), true),
                [WHOLE, &cut, WHOLE, WHOLE]
            );
            // The last line may still grow, so that it is read only where it cannot be half a record.
            for ended in [true, false] {
                assert_eq!(shown(&format!("{WHOLE}{torn}"), ended), [WHOLE, &cut]);
                assert_eq!(shown(torn, ended), [cut.as_str()]);
            }
            let growing = shown(&format!("{torn}{WHOLE}"), false);
            let waits = format!("<{torn}{WHOLE}>");
            assert!(growing == [&cut, WHOLE] || growing == [waits.as_str()]);
        }
    }

    #[test]
    fn several_halves_cost_only_themselves() {
        let line = format!(r#"{{"id":2,"said":{{"te{WHOLE}{{"id":3,"sa{WHOLE}{{"id"#);
        assert_eq!(
            shown(&line, true),
            [
                r#"<{"id":2,"said":{"te>"#,
                WHOLE,
                r#"<{"id":3,"sa>"#,
                WHOLE,
                r#"<{"id>"#
            ]
        );
        // Bytes that are no text, and the zeros of a lost block.
        let line = [b"\0\0{\"said\":\"\xc3".as_slice(), WHOLE.as_bytes()].concat();
        let found = pieces(&line, true, |_| false);
        assert_eq!(found, [Piece::Torn(0..12), Piece::Record(12..line.len())]);
    }

    #[test]
    fn an_object_inside_half_a_record_is_no_record() {
        for torn in [
            r#"{"id":1,"said":{"text":"a"}"#,
            r#"{"id":1,"said":[{"text":"a"},{"text":"b"}"#,
            r#"{"id":1,"said":[{"text":"a"} , {"text":"b"}]"#,
            "}{}{}",
            r#"tail":{"text":"a"}}"#,
        ] {
            assert_eq!(shown(torn, true), [format!("<{torn}>")]);
        }
    }

    #[test]
    fn a_line_without_records_costs_linear_time() {
        for unit in ["}{", "}{}", "{\"}{", "\\\"}{", "{\"a\":{}}{", "]}{"] {
            let line = unit.repeat(400_000 / unit.len());
            let found = pieces(line.as_bytes(), true, |_| false);
            assert!(!found.is_empty());
        }
    }
}
