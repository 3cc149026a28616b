//! Writing: results to stdout, everything else to stderr.
//!
//! All text for people goes through [`safe`], so that nothing in a transcript, a file's name or a
//! session's reaches the terminal as a command.

use std::borrow::Cow;
use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;

/// Where results go. A closed pipe is an error of the kind `BrokenPipe`, which `main` ends quietly.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
        }
    }

    /// Writes text for people.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(safe(text).as_bytes())
    }

    /// Writes a line for people.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.text(text)?;
        self.out.write_all(b"\n")
    }

    /// Writes a JSON value over several lines.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// Writes a JSON value on one line.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// Writes bytes of our own making, such as a shell script.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a line to stderr. That it may be closed is nobody's concern.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", safe(text));
}

/// Text without characters that a terminal would obey: each becomes its picture (`␛`), or `�`.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_override(c);
    if !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\0'..='\x1f' if bad(c) => {
                out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'));
            }
            '\x7f' => out.push('\u{2421}'),
            c if bad(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a character forces the direction of what follows, so that text reads as another.
fn is_override(c: char) -> bool {
    matches!(c, '\u{202d}' | '\u{202e}')
}

/// A number with commas between thousands.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 message`, `1,200 messages`.
pub(crate) fn count(how_many: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        number(how_many),
        if how_many == 1 { one } else { many }
    )
}

/// `part` as a percentage of `whole`, with one digit after the point.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "100.0 %".to_owned();
    }
    let tenths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A number of bytes for people.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut size = bytes;
    let mut unit = "bytes";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 10_000 {
            break;
        }
        size /= 1024;
        unit = next;
    }
    format!("{} {unit}", number(size))
}

/// The beginning of a text: at most `max` characters, with `…` where it was cut.
pub(crate) fn clip(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}

/// Rows as columns; the first is aligned to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(index) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let fill = " ".repeat(width - cell.chars().count());
            match index {
                0 => line.extend([cell.as_str(), &fill]),
                _ => line.extend(["  ", &fill, cell]),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// An argument as a shell takes it.
pub(crate) fn quoted(argument: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return Cow::Borrowed(argument);
    }
    Cow::Owned(format!("'{}'", argument.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(
            safe("\x1b[2J\x1b]0;title\x07 a\tb\r\nc\rd\u{9b}31m \x7f\0\u{202e}"),
            "␛[2J␛]0;title␇ a\tb\nc␍d\u{fffd}31m ␡␀\u{fffd}"
        );
        assert!(matches!(safe("Grüße 緑\n\tשלום"), Cow::Borrowed(_)));
    }

    #[test]
    fn figures_are_readable() {
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(999), "999");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "100.0 %");
        assert_eq!(bytes(123), "123 bytes");
        assert_eq!(bytes(5 << 20), "5,120 KiB");
        assert_eq!(count(1, "message", "messages"), "1 message");
        assert_eq!(clip("緑の木", 2), "緑の…");
    }

    #[test]
    fn columns_line_up() {
        let row = |cells: &[&str]| cells.iter().map(|c| (*c).to_owned()).collect();
        let rows: Vec<Vec<String>> = vec![row(&["a", "100"]), row(&["bcd", "7"])];
        assert_eq!(table(&rows), "a    100\nbcd    7\n");
    }

    #[test]
    fn arguments_survive_a_shell() {
        assert_eq!(quoted("sum_0a:7"), "sum_0a:7");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
