//! Writing: results to stdout, everything else to stderr.
//!
//! All text for people goes through [`safe`], so that nothing in a transcript, a file's name or a
//! session's reaches the terminal as a command. Names go through [`one_line`] as well, so that none
//! can look like a line of our own.

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

    /// Writes one line for people, whatever the text holds.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(one_line(text).as_bytes())?;
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

/// Writes one line to stderr, whatever the text holds. That stderr may be closed is ignored.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", one_line(text));
}

/// Text without characters that a terminal would obey, or that make text read as another: each
/// becomes its picture (`␛`, `⟦RLO⟧`), or `�`. Tabs and the ends of lines stay.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            c if is_unsafe(c) => picture(c, &mut out),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// As [`safe`], on one line: the ends of lines and tabs become pictures too.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| c == '\n' || c == '\t' || is_unsafe(c);
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match breaks(c) {
            true => picture(c, &mut out),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a character is never written as it is.
fn is_unsafe(c: char) -> bool {
    let control = c.is_control() && c != '\n' && c != '\t';
    control || matches!(c, '\u{2028}' | '\u{2029}') || bidi_name(c).is_some()
}

/// Adds what is shown in place of a character.
fn picture(c: char, out: &mut String) {
    match (c, bidi_name(c)) {
        (_, Some(name)) => out.extend(["⟦", name, "⟧"]),
        ('\0'..='\x1f', _) => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
        ('\x7f', _) => out.push('\u{2421}'),
        ('\u{2028}' | '\u{2029}', _) => out.push('\u{2424}'),
        _ => out.push('\u{fffd}'),
    }
}

/// Unicode's abbreviation of a bidirectional control: all of the property `Bidi_Control`.
fn bidi_name(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{61c}' => "ALM",
        '\u{200e}' => "LRM",
        '\u{200f}' => "RLM",
        '\u{202a}' => "LRE",
        '\u{202b}' => "RLE",
        '\u{202c}' => "PDF",
        '\u{202d}' => "LRO",
        '\u{202e}' => "RLO",
        '\u{2066}' => "LRI",
        '\u{2067}' => "RLI",
        '\u{2068}' => "FSI",
        '\u{2069}' => "PDI",
        _ => return None,
    })
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

/// Rows as columns; the first is aligned to the left, the others to the right. A row is one line,
/// whatever its cells hold.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| row.iter().map(|cell| one_line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        for (index, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(index) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let mut out = String::new();
    for row in &rows {
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

/// An argument as a shell takes it, without any character that is shown as a picture: pasted, it is
/// the argument again (in bash, zsh and ksh where it holds such characters).
pub(crate) fn quoted(argument: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return Cow::Borrowed(argument);
    }
    let escaped = |c: char| c.is_control() || is_unsafe(c);
    if !argument.contains(escaped) {
        return Cow::Owned(format!("'{}'", argument.replace('\'', r"'\''")));
    }
    let mut out = "$'".to_owned();
    for c in argument.chars() {
        match c {
            '\n' => out.push_str(r"\n"),
            '\t' => out.push_str(r"\t"),
            '\'' | '\\' => out.extend(['\\', c]),
            c if escaped(c) => out.push_str(&format!(r"\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('\'');
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(
            safe("\x1b[2J\x1b]0;title\x07 a\tb\r\nc\rd\u{9b}31m \x7f\0\u{202e}"),
            "␛[2J␛]0;title␇ a\tb\nc␍d\u{fffd}31m ␡␀⟦RLO⟧"
        );
        for c in (0..=0x2fff).filter_map(char::from_u32) {
            let shown = one_line(&c.to_string()).into_owned();
            let bidi = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
                || ('\u{202a}'..='\u{202e}').contains(&c)
                || ('\u{2066}'..='\u{2069}').contains(&c);
            let breaks = c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
            assert_eq!(shown != c.to_string(), bidi || breaks, "{c:?}");
            assert!(!shown.contains(|c: char| c.is_control()), "{c:?}");
        }
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
        let forged = [row(&["a\nb  9", "1"])];
        assert_eq!(table(&forged), "a␊b  9  1\n");
    }

    #[test]
    fn arguments_survive_a_shell() {
        assert_eq!(quoted("sum_0a:7"), "sum_0a:7");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a\n'b\\\u{202e}\0"), r"$'a\n\'b\\\u202e\u0000'");
    }
}
