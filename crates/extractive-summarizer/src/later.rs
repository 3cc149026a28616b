//! Notes in an extract about a later message that replaces or contradicts a sentence.

use std::fmt;

use memory_model::Seq;

/// Beginning of the note after a sentence, before the position of the later message.
pub(crate) const BEGIN: &str = " (later: [";
/// Text after the position if the later message replaces only a part of the sentence.
const PART: &str = " in part";

/// A later message that replaces or contradicts a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Later {
    pub(crate) seq: Seq,
    /// Whether the later message replaces only a part of the sentence.
    pub(crate) in_part: bool,
    /// Value that the later message sets instead, or quoted words of the later message.
    pub(crate) value: Option<String>,
}

impl Later {
    /// Parses the note at the end of a text. Returns the text before the note, and the note.
    pub(crate) fn read(text: &str) -> Option<(&str, Self)> {
        let (said, note) = match text.strip_prefix(BEGIN.trim_start()) {
            Some(note) => ("", note.strip_suffix(')')?),
            None => text.strip_suffix(')')?.rsplit_once(BEGIN)?,
        };
        let (seq, rest) = note.split_once(']')?;
        let part = rest.strip_prefix(PART);
        let value = match part.unwrap_or(rest) {
            "" => None,
            value => Some(value.strip_prefix(": ")?.to_owned()),
        };
        let later = Self {
            seq: Seq(seq.parse().ok()?),
            in_part: part.is_some(),
            value,
        };
        Some((said, later))
    }
}

impl fmt::Display for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = if self.in_part { PART } else { "" };
        write!(f, "{BEGIN}{}]{part}", self.seq)?;
        if let Some(value) = &self.value {
            write!(f, ": {value}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back() {
        for (in_part, value, note) in [
            (false, None, " (later: [12])"),
            (true, None, " (later: [12] in part)"),
            (false, Some("'t_'"), " (later: [12]: 't_')"),
            (true, Some("f(x)"), " (later: [12] in part: f(x))"),
        ] {
            let later = Later {
                seq: Seq(12),
                in_part,
                value: value.map(str::to_owned),
            };
            assert_eq!(later.to_string(), note);
            let text = format!("Keep (all) of it.{note}");
            assert_eq!(
                Later::read(&text),
                Some(("Keep (all) of it.", later.clone()))
            );
            assert_eq!(Later::read(note.trim_start()), Some(("", later)));
        }
        assert_eq!(Later::read("It is (later: [soon])"), None);
        assert_eq!(Later::read("It is (later)"), None);
    }
}
