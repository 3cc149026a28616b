//! Breaking of long lines into several short ones, so that a context that shows only some lines of a summary can keep
//! the beginning of a long one.

use crate::print::{ARROW, DETAIL};
use crate::results::REFUSAL;

/// Beginning of a line that continues the line before it in the middle of a sentence.
pub(crate) const REST: &str = "   ";

/// Width from which a line is broken, in quarters of a token: about 45 tokens.
const WIDTH: usize = 180;
/// Width from which the line of a call is broken, in quarters of a token. It is smaller, so that the part before the
/// outcome takes at most about 30 tokens.
const CALL_WIDTH: usize = 120;
/// Width from which the line of a refused call is broken, in quarters of a token. The call precedes the user's reason.
const REFUSAL_WIDTH: usize = 80;
/// Minimum length of a call and of its outcome for separate lines, in bytes.
const OUTCOME: usize = 30;

/// Breaks the long lines of a printed item (a line about a message or a call) of an extract. A line is broken after a
/// sentence or before a space, and the line of a call also before its outcome. [`joined`] restores the whole lines.
pub(crate) fn wrapped(text: &str, call: bool) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.split('\n') {
        let mut rest = line;
        let mut first = true;
        if call
            && let Some(at) = line
                .find(ARROW)
                .filter(|at| *at > OUTCOME && line.len() > 2 * OUTCOME)
        {
            let (begin, after) = rest.split_at(at);
            first = parts(begin, CALL_WIDTH, first, &mut out);
            rest = after.trim_start();
        }
        let width = match call {
            true => CALL_WIDTH,
            false if is_refusal(line) => REFUSAL_WIDTH,
            false => WIDTH,
        };
        parts(rest, width, first, &mut out);
    }
    out
}

/// Returns whether a line shows a call that the user refused.
fn is_refusal(line: &str) -> bool {
    line.split_once(": ")
        .is_some_and(|(_, said)| said.starts_with(REFUSAL))
}

/// Breaks a line into parts of at most `width` and adds them to `out`. `first` says whether the first part begins a
/// printed line. Always returns false, because the next part is not the first.
fn parts(line: &str, width: usize, mut first: bool, out: &mut Vec<String>) -> bool {
    let mut rest = line;
    while let Some(at) = place(rest, width) {
        let (begin, after) = rest.split_at(at);
        push(out, begin, first);
        (rest, first) = (after.trim_start(), false);
    }
    push(out, rest, first);
    false
}

fn push(out: &mut Vec<String>, text: &str, first: bool) {
    let text = text.trim_end();
    match first {
        true => out.push(text.to_owned()),
        false => out.push(format!("{REST}{text}")),
    }
}

/// Returns the byte offset at which a line is broken: after the last sentence that ends beyond a third of the width,
/// otherwise before the last space. `None` if the line or its rest is short, or if it has no such offset.
fn place(line: &str, most: usize) -> Option<usize> {
    if line.starts_with(DETAIL) || line.len() <= most / 2 {
        return None;
    }
    let (mut width, mut space, mut sentence) = (0, None, None);
    let indent = line.len() - line.trim_start().len();
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        width += if c.is_ascii() { 1 } else { 3 };
        if width > most {
            // The rest must be long enough for a separate line.
            let rest = line.get(at..)?;
            let long = rest.len() > most / 3;
            return sentence.or(space).filter(|_| long);
        }
        let next = chars.peek().map(|(_, next)| *next);
        if c == ' ' && at >= indent && next != Some(' ') {
            space = Some(at);
        }
        let ends = match c {
            '.' | '!' | '?' | ';' | '|' => next == Some(' '),
            // A question in quotation marks stays with its answer.
            '。' | '！' | '？' => next.is_some_and(|next| next != '"'),
            _ => false,
        };
        if ends && width > most / 3 {
            sentence = Some(at + c.len_utf8());
        }
    }
    None
}

/// Returns the lines of a text, with lines that [`wrapped`] broke restored.
pub(crate) fn joined(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let rest = line
            .strip_prefix(REST)
            .filter(|rest| !rest.starts_with(' '));
        match (rest, out.last_mut()) {
            (Some(rest), Some(last)) => {
                let wide = last.ends_with(['。', '！', '？']);
                last.push_str(if wide { "" } else { " " });
                last.push_str(rest);
            }
            _ => out.push(line.to_owned()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_lines_are_short_and_made_whole_again() {
        let long =
            "[3] User: ".to_owned() + &"Keep the old name of the module, please. ".repeat(12);
        let wide = "[4] User: ".to_owned() + &"設定ファイルを必ず残してください。".repeat(9);
        let text = format!(
            "{}\n  second line\n    detail of code\n{wide}",
            long.trim_end()
        );
        let lines = wrapped(&text, false);
        assert!(lines.len() > 6);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH + 1));
        assert!(
            lines
                .get(1)
                .is_some_and(|line| line.starts_with("   Keep the old"))
        );
        assert_eq!(joined(&lines.join("\n")).join("\n"), text);
    }

    #[test]
    fn what_cannot_be_broken_stays() {
        let line = "x".repeat(1_000);
        assert_eq!(wrapped(&line, true), [line.as_str()]);
        let detail = format!("    {}", "a b ".repeat(100));
        assert_eq!(wrapped(&detail, true), [detail.trim_end()]);
    }
}
