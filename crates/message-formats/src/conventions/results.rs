//! Results of tools without what the programs of agents write around them.

use std::borrow::Cow;

use serde_json::Value;

/// Words in the result of a call that the user interrupted, and that of one which another call's failure kept from running.
const INTERRUPTED: &str = "[Request interrupted by user";
const ABORTED: [&str; 2] = ["Command aborted", "aborted by user"];
const CANCELLED: &str = "[Operation Cancelled]";
const NOT_RUN: &str = "Sibling tool call errored";
/// Before what a program adds to the report of an agent.
const REPORT_ENDS: [&str; 2] = ["\n<usage>", "\nagentId: "];
/// Longest addition to a report, in bytes.
const REPORT_END_BYTES: usize = 400;
/// First words of a result that stands for an empty output.
const NO_OUTPUT: &str = "(no output";

/// First words of the lines that Codex writes before the output of a command, and the line that ends them.
const OUTPUT_HEADS: [&str; 3] = ["Chunk ID: ", "Wall time: ", "Exit code: "];
const OUTPUT: &str = "\nOutput:\n";
/// Longest such lines, in bytes.
const OUTPUT_HEAD_BYTES: usize = 400;
/// Around the output of Gemini CLI's tools.
const UNTRUSTED: (&str, &str) = ("<untrusted_context>\n", "\n</untrusted_context>");

/// Whether a failed call did not fail by itself.
pub(super) fn is_interrupted(text: &str) -> bool {
    let end = text.trim_end();
    let marks = [INTERRUPTED, NOT_RUN, CANCELLED];
    marks.iter().any(|mark| text.contains(mark)) || ABORTED.iter().any(|mark| end.ends_with(mark))
}

pub(super) fn is_no_output(text: &str) -> bool {
    text.starts_with(NO_OUTPUT) && text.lines().count() == 1
}

/// A tool's output without the program's words around it.
pub(super) fn output(text: &str) -> Cow<'_, str> {
    if OUTPUT_HEADS.iter().any(|head| text.starts_with(head))
        && let Some((head, output)) = text.split_once(OUTPUT)
        && head.len() < OUTPUT_HEAD_BYTES
    {
        return Cow::Borrowed(output);
    }
    let untrusted = text.strip_prefix(UNTRUSTED.0);
    if let Some(output) = untrusted.and_then(|text| text.trim_end().strip_suffix(UNTRUSTED.1)) {
        return Cow::Borrowed(output.strip_prefix("Output: ").unwrap_or(output));
    }
    if text.starts_with("{\"output\":")
        && let Ok(Value::Object(mut fields)) = serde_json::from_str(text)
        && fields.contains_key("metadata")
        && let Some(Value::String(output)) = fields.remove("output")
    {
        return Cow::Owned(output);
    }
    Cow::Borrowed(text)
}

/// An agent's report without the program's additions.
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
