//! Listings that a user pasted: diffs, and lines of a file with their numbers.

/// Minimum number of numbered lines in a listing.
const LISTING: usize = 3;

/// Divides a user's text into the typed lines and the lines of a pasted listing: a diff, or lines of a file with their
/// numbers. A listing ends with its last numbered or changed line and the indented lines after it. The listing is empty
/// if there is none.
pub(crate) fn split_listing(text: &str) -> (String, String) {
    let lines: Vec<&str> = text.lines().collect();
    let hunk = lines.iter().position(|line| line.starts_with("@@ -"));
    let range = match hunk {
        Some(start) => {
            let changes = lines.iter().skip(start);
            let changes = changes.take_while(|line| line.starts_with(['+', '-', ' ', '@', '\\']));
            Some((start, start + changes.count()))
        }
        None => numbered(&lines),
    };
    let (start, end) = range.unwrap_or_default();
    let rest = lines.get(end..).unwrap_or_default().iter();
    let wrapped = rest.take_while(|line| line.starts_with(' ') && !line.trim().is_empty());
    let end = end + usize::from(end > 0) * wrapped.count();
    let listing = lines.get(start..end).unwrap_or_default().join("\n");
    let typed = [lines.get(..start), lines.get(end..)];
    (
        typed.map(Option::unwrap_or_default).concat().join("\n"),
        listing,
    )
}

/// Returns the range from the first to the last line with a number that is a line of a listing: the numbers rise, and
/// some lines have a plus or a line after their number. `None` for a list with other numbers.
fn numbered(lines: &[&str]) -> Option<(usize, usize)> {
    let (mut first, mut end, mut count, mut last) = (0, 0, 0, 0);
    let mut is_listing = false;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim_start();
        let text = line.trim_start_matches(['+', '-']).trim_start();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = text.split_at(digits);
        let Some(number) = number.parse::<u32>().ok().filter(|number| *number > last) else {
            continue;
        };
        let is_line = behind.starts_with(['→', '│', '|']);
        if !is_line && !behind.is_empty() && !behind.starts_with(' ') {
            continue;
        }
        let is_change = |text: &str| text.starts_with(['+', '-']);
        if !is_line && !is_change(line) && !is_change(behind.trim_start()) {
            continue;
        }
        is_listing |= is_line || line.starts_with('+') || behind.trim_start().starts_with('+');
        if count == 0 {
            first = at;
        }
        (count, last, end) = (count + 1, number, at + 1);
    }
    (is_listing && count >= LISTING).then_some((first, end))
}

#[cfg(test)]
mod tests {
    use super::split_listing;

    fn listing(text: &str) -> String {
        split_listing(text).1
    }

    #[test]
    fn a_diff_ends_before_the_words_about_it() {
        let diff = "@@ -1,2 +1,2 @@ fn main\n-let a = 1;\n+let a = 2;\n }";
        let (typed, listing) = split_listing(&format!("Look:\n{diff}\nPlease undo this."));
        assert_eq!(listing, diff);
        assert_eq!(typed, "Look:\nPlease undo this.");
    }

    #[test]
    fn lines_with_numbers_are_a_listing() {
        assert_eq!(
            listing("  8→a\n  9→b\n 10→c\nnot this"),
            "  8→a\n  9→b\n 10→c"
        );
        let diff = " 7 + a long line that the terminal\n   wrapped\n 8 - b\n 9 + c\n   wrapped";
        assert_eq!(listing(&format!("{diff}\n\nNo, go back.")), diff);
    }

    #[test]
    fn a_list_of_wishes_is_no_listing() {
        for text in [
            "- 1 apple\n- 2 pears\n- 3 figs",
            "1. one\n2. two\n3. three",
            "1 - one\n2 - two\n3 - three",
            "+ 1 for this\nThank you.",
            "",
        ] {
            assert_eq!(split_listing(text), (text.to_owned(), String::new()));
        }
    }
}
