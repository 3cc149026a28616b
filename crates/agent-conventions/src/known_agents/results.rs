//! Reads results of tools without the text that the agents' programs write around them.

use std::borrow::Cow;

use memory_model::raw::RawObject;

/// Part of a result that says that the user refused the call, and parts of the first line of such a result, in small
/// letters.
const REFUSED: &str = "The user doesn't want to";
const REFUSALS: [&str; 9] = [
    "rejected by user",
    "rejected by the user",
    "declined by user",
    "declined by the user",
    "user rejected",
    "user declined",
    "user has declined",
    "denied by the user",
    "the user denied",
];
/// First words of Codex' result of a command that did not start. The command follows and can have many lines.
const NOT_STARTED: &str = "exec_command failed for ";
/// Text before the user's reason.
pub(super) const REASONS: [&str; 2] = ["the user said:", "with the following feedback:"];
/// Words in the result of a call that the user interrupted.
const INTERRUPTED: &str = "[Request interrupted by user";
const ABORTED: &str = "Command aborted";
/// First words of Codex' result of such a call, and the line that can come before them. The other two marks are of an
/// operation that was cancelled, and of a call that did not run because another one failed.
const ABORTED_BY_USER: &str = "aborted by user";
const WALL_TIME: &str = "Wall time: ";
const CANCELLED: &str = "[Operation Cancelled]";
const NOT_RUN: &str = "Sibling tool call errored";
/// Beginnings of a program's additions to an agent's report.
const REPORT_ENDS: [&str; 2] = ["\n<usage>", "\nagentId: "];
/// Limit on the length of an addition to a report, in bytes.
const REPORT_END_BYTES: usize = 400;
/// First words of a result for an empty output.
const NO_OUTPUT: &str = "(no output";

/// First words of the lines that Codex writes before the output of a command, and the line that ends them.
const OUTPUT_HEADS: [&str; 3] = ["Chunk ID: ", WALL_TIME, "Exit code: "];
const OUTPUT: &str = "\nOutput:\n";
/// Limit on the length of these lines, in bytes.
const OUTPUT_HEAD_BYTES: usize = 400;
/// Text around the output of Gemini CLI's tools.
const UNTRUSTED: (&str, &str) = ("<untrusted_context>\n", "\n</untrusted_context>");

/// Returns whether a failed call was interrupted and did not fail by itself.
pub(super) fn is_interrupted(text: &str) -> bool {
    let end = text.trim_end();
    let marks = [INTERRUPTED, NOT_RUN, CANCELLED];
    let ends = [ABORTED, ABORTED_BY_USER];
    marks.iter().any(|mark| text.contains(mark))
        || ends.iter().any(|words| end.ends_with(words))
        || is_aborted(text)
}

/// Returns whether Codex reports that the user ended a call. Its report of a refused call is the same.
pub fn is_aborted(text: &str) -> bool {
    let timed = text.strip_prefix(WALL_TIME);
    let said = timed.and_then(|text| text.split_once('\n'));
    let said = said.map_or(text, |(_, said)| said).trim_end();
    said == "aborted" || said.starts_with(ABORTED_BY_USER) && !said.contains('\n')
}

/// Returns whether a result says that the user refused the call.
pub(super) fn is_refused(text: &str) -> bool {
    let mut lines = text.lines();
    let line = match text.starts_with(NOT_STARTED) {
        true => lines.next_back(),
        false => lines.next(),
    };
    let line = line.unwrap_or_default().to_lowercase();
    text.contains(REFUSED) || is_aborted(text) || REFUSALS.iter().any(|words| line.contains(words))
}

/// Divides the result of a command into the lines that Codex writes before the output, and the output.
pub fn output_of_command(text: &str) -> Option<(&str, &str)> {
    let is_headed = OUTPUT_HEADS.iter().any(|head| text.starts_with(head));
    let parts = is_headed.then(|| text.split_once(OUTPUT)).flatten();
    parts.filter(|(head, _)| head.len() < OUTPUT_HEAD_BYTES)
}

pub(super) fn is_no_output(text: &str) -> bool {
    text.starts_with(NO_OUTPUT) && text.lines().count() == 1
}

/// Returns a tool's output without the program's text around it.
pub(super) fn output(text: &str) -> Cow<'_, str> {
    if let Some((_, output)) = output_of_command(text) {
        return Cow::Borrowed(output);
    }
    let untrusted = text.strip_prefix(UNTRUSTED.0);
    if let Some(output) = untrusted.and_then(|text| text.trim_end().strip_suffix(UNTRUSTED.1)) {
        return Cow::Borrowed(output.strip_prefix("Output: ").unwrap_or(output));
    }
    if text.starts_with('{')
        && let Some(fields) = RawObject::parse(text)
        && fields.get("metadata").is_some()
        && let Some(output) = fields.string("output")
    {
        return Cow::Owned(output);
    }
    Cow::Borrowed(text)
}

/// Returns an agent's report without the program's additions.
pub(super) fn report(text: &str) -> &str {
    let mut text = text.trim_end();
    for mark in REPORT_ENDS {
        if let Some((before, after)) = text.rsplit_once(mark)
            && after.len() < REPORT_END_BYTES
        {
            text = before.trim_end();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_ends_where_the_program_begins() {
        assert_eq!(
            report("All done.\nagentId: a1\n<usage>1</usage>"),
            "All done."
        );
        assert_eq!(report("All done.\n<usage>1</usage>"), "All done.");
        assert_eq!(report("<usage> is a tag"), "<usage> is a tag");
        let long = format!("See:\nagentId: {}", "x".repeat(400));
        assert_eq!(report(&long), long);
    }
}
