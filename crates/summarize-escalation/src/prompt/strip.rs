//! Removal of notes before the summary in a model's answer.

/// Removes a model's notes from its summary. Removes the first closed `<analysis>` block, then returns only the text
/// between `<summary>` tags if both tags exist. Several blank lines become one.
///
/// An unclosed block is left unchanged.
///
/// ```
/// use summarize_escalation::prompt::strip_analysis_block;
///
/// let text = "<analysis>\nnotes\n</analysis>\n<summary>\nIt works.\n</summary>";
/// assert_eq!(strip_analysis_block(text), "It works.");
/// ```
pub fn strip_analysis_block(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(range) = block(&text, "<analysis>", "</analysis>") {
        text.replace_range(range, "");
    }
    if let Some(range) = block(&text, "<summary>", "</summary>") {
        let inner = range.start + "<summary>".len()..range.end - "</summary>".len();
        text = text.get(inner).unwrap_or_default().to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for line in text.trim().lines() {
        let empty = line.trim().is_empty();
        if empty && blank {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        if !empty {
            out.push_str(line);
        }
        blank = empty;
    }
    out
}

/// Returns the byte range from an opening tag to its closing tag, both included.
fn block(text: &str, open: &str, close: &str) -> Option<std::ops::Range<usize>> {
    let start = text.find(open)?;
    let length = text.get(start..)?.find(close)?;
    Some(start..start + length + close.len())
}

#[cfg(test)]
mod tests {
    use super::strip_analysis_block as strip;

    #[test]
    fn notes_are_dropped_and_the_summary_taken() {
        assert_eq!(strip("<analysis>a</analysis><summary>b</summary>"), "b");
        assert_eq!(strip("<summary>\n b\n</summary> after"), "b");
        assert_eq!(strip("no tags"), "no tags");
        assert_eq!(strip("<analysis>never closed"), "<analysis>never closed");
        assert_eq!(strip("<summary>never closed"), "<summary>never closed");
        assert_eq!(strip("<analysis>a</analysis>\n\n\nb\n\n\n\nc"), "b\n\nc");
        assert_eq!(
            strip("<analysis>1</analysis><analysis>2</analysis>b"),
            "<analysis>2</analysis>b"
        );
        assert_eq!(strip("</analysis><analysis>x"), "</analysis><analysis>x");
        assert_eq!(strip(""), "");
    }
}
