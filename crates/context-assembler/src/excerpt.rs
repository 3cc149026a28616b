//! The parts of a written summary that are still current, for a context that has no room for the whole summary: its last
//! paragraph, what comes next, what is open, and the rules that hold. A part is a paragraph or an item of a list, and is
//! shown whole, with its title.

use std::cmp::Reverse;
use std::ops::Range;

/// Words in the titles of parts that are current.
const CURRENT: [&str; 44] = [
    "next",
    "open",
    "to do",
    "todo",
    "pending",
    "remain",
    "block",
    "under way",
    "in progress",
    "current",
    "constraint",
    "rule",
    "limit",
    "must",
    "preference",
    "requirement",
    "nächst",
    "offen",
    "regel",
    "vorgabe",
    "einschränk",
    "grenze",
    "siguiente",
    "pendiente",
    "regla",
    "prochain",
    "contrainte",
    "règle",
    "다음",
    "남은",
    "미완",
    "진행",
    "규칙",
    "제약",
    "제한",
    "지켜야",
    "次",
    "残り",
    "未完",
    "制約",
    "ルール",
    "约束",
    "规则",
    "待办",
];

/// Titles of parts that only help to look things up.
const FOR_LOOKING_UP: [&str; 2] = ["files", "expand for details"];

/// Maximum length of a title on the line of its text, in characters.
const INLINE_TITLE: usize = 48;

/// A part of a summary: a paragraph or an item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) lines: Range<usize>,
    /// Lines of the title above the part. `None` if it has none.
    pub(crate) title: Option<Range<usize>>,
}

/// Returns the parts of a text, the most current first: the last paragraph, then parts with a title such as `Next`,
/// `Open` or `Constraints`, then the others from the end of the text.
pub(crate) fn most_current(text: &[&str]) -> Vec<Part> {
    let parts = parts(text);
    let mut ordered: Vec<(Part, u8)> = Vec::with_capacity(parts.len());
    for part in parts {
        let above = part.title.clone().and_then(|title| text.get(title));
        let above = above.map(|lines| lines.join(" ")).unwrap_or_default();
        let own = text
            .get(part.lines.start)
            .and_then(|line| inline_title(line));
        let titles = [above.as_str(), own.unwrap_or_default()].map(str::to_lowercase);
        let is_current = titles
            .iter()
            .any(|title| CURRENT.iter().any(|word| title.contains(word)));
        let is_index = titles
            .iter()
            .any(|title| FOR_LOOKING_UP.iter().any(|name| title.starts_with(name)));
        let class = match is_current {
            _ if is_index => 3,
            true => 1,
            false => 2,
        };
        ordered.push((part, class));
    }
    if let Some((_, class)) = ordered.iter_mut().rfind(|(_, class)| *class < 3) {
        *class = 0;
    }
    // Items below a title stay in their order.
    ordered.sort_by_key(|(part, class)| {
        let of = part.title.as_ref().unwrap_or(&part.lines).start;
        (*class, Reverse(of), part.lines.start)
    });
    ordered.into_iter().map(|(part, _)| part).collect()
}

/// Returns the parts of a text, in order. Titles are not parts.
fn parts(text: &[&str]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut title: Option<Range<usize>> = None;
    let mut open: Option<Range<usize>> = None;
    let (mut is_code, mut is_list) = (false, false);
    for (at, line) in text.iter().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        let is_blank = line.trim().is_empty() && !is_code;
        let starts_section = is_heading(line) && !is_code;
        let is_item = is_item(line) && !is_code;
        let continues = is_code
            || !(is_blank || starts_section || is_item || inline_title(line).is_some())
            || line.starts_with([' ', '\t']) && !is_blank;
        is_code ^= is_fence;
        if continues && let Some(open) = &mut open {
            open.end = at + 1;
            continue;
        }
        close(text, open.take(), &mut title, &mut parts);
        if is_blank {
            continue;
        }
        if starts_section {
            title = Some(at..at + 1);
            continue;
        }
        // A title with a colon is the title of the list or the paragraph that follows it.
        let titles = title.as_ref().and_then(|title| text.get(title.start));
        let is_over = titles.is_some_and(|line| !is_heading(line))
            && parts.last().is_some_and(|last| last.title == title)
            && !(is_item && is_list);
        if is_over {
            title = None;
        }
        is_list = is_item;
        open = Some(at..at + 1);
    }
    close(text, open, &mut title, &mut parts);
    parts
}

/// Adds a paragraph or an item to the parts, unless it is the title of the next ones.
fn close(
    text: &[&str],
    lines: Option<Range<usize>>,
    title: &mut Option<Range<usize>>,
    parts: &mut Vec<Part>,
) {
    let Some(lines) = lines else { return };
    let last = text.get(lines.end - 1).map_or("", |line| line.trim_end());
    if last.trim_end_matches(['*', '_']).ends_with([':', '：']) {
        *title = Some(lines);
        return;
    }
    let title = title.clone();
    parts.push(Part { lines, title });
}

/// Returns whether a line is a heading: one of Markdown, or bold as a whole.
fn is_heading(line: &str) -> bool {
    let is_bold = |mark: &str| {
        let inside = line
            .trim_end()
            .strip_prefix(mark)
            .and_then(|it| it.strip_suffix(mark));
        inside.is_some_and(|inside| !inside.is_empty() && !inside.contains(mark))
    };
    line.starts_with('#') || ["**", "__"].into_iter().any(is_bold)
}

/// Returns whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len() && number.starts_with([')', '.']);
    ["- ", "* ", "+ ", "• ", "– "]
        .iter()
        .any(|mark| line.starts_with(mark))
        || is_numbered && number.get(1..).is_some_and(|rest| rest.starts_with(' '))
}

/// Returns the title with which a line begins, such as `Next` in `Next: run the tests.` `None` if it has none.
fn inline_title(line: &str) -> Option<&str> {
    let words = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let (title, rest) = words.split_once([':', '：'])?;
    let is_short = title.chars().count() <= INLINE_TITLE && !title.contains(['.', '/', '`', '(']);
    let begins = title.chars().next().is_some_and(|c| !c.is_lowercase());
    (is_short && begins && (rest.is_empty() || rest.starts_with([' ', '*', '_']))).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
The parser was rewritten by hand.\n\
\n\
Rules that hold:\n\
- keep the old names,\n  also in tests\n\
- no new crates\n\
\n\
Done:\n\
1. lexer\n\
2. parser\n\
Two of them were hard:\n\
the second took a day.\n\
\n\
## Next steps\n\
\n\
Run the tests.\n\
\n\
Then publish.\n\
Files: src/lexer.rs (changed)";

    fn shown(parts: &[Part], text: &[&str]) -> Vec<String> {
        let of = |lines: Range<usize>| text[lines].join("/");
        let line = |part: &Part| match &part.title {
            Some(title) => format!("{} > {}", of(title.clone()), of(part.lines.clone())),
            None => of(part.lines.clone()),
        };
        parts.iter().map(line).collect()
    }

    #[test]
    fn what_is_current_comes_first_with_its_title() {
        let lines: Vec<&str> = TEXT.split('\n').collect();
        assert_eq!(
            shown(&most_current(&lines), &lines),
            [
                "## Next steps > Then publish.",
                "## Next steps > Run the tests.",
                "Rules that hold: > - keep the old names,/  also in tests",
                "Rules that hold: > - no new crates",
                "Two of them were hard:/the second took a day.",
                "Done: > 1. lexer",
                "Done: > 2. parser",
                "The parser was rewritten by hand.",
                "## Next steps > Files: src/lexer.rs (changed)",
            ]
        );
    }

    #[test]
    fn lines_with_their_own_titles_are_parts() {
        let lines = [
            "Done: the lexer",
            "Open: the parser, and",
            "its tests",
            "다음: 배포",
        ];
        assert_eq!(
            shown(&most_current(&lines), &lines),
            [
                "다음: 배포",
                "Open: the parser, and/its tests",
                "Done: the lexer"
            ]
        );
    }

    #[test]
    fn code_and_tables_are_not_divided() {
        let lines = [
            "```",
            "a: 1",
            "",
            "# b",
            "```",
            "",
            "| a | b |",
            "| 1 | 2 |",
            "",
            "Nothing below:",
        ];
        assert_eq!(
            shown(&most_current(&lines), &lines),
            ["| a | b |/| 1 | 2 |", "```/a: 1//# b/```"]
        );
    }
}
