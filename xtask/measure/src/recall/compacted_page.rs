//! The section of docs/measurements/recall.md about compacted conversations.

use std::fmt::Write as _;

use super::compacted::{CALLS, Compacted, Found, NEIGHBOURS, RATIO, READ, TEXTS};

/// Returns the section.
pub(super) fn section(locomo: &Compacted, beam: &Compacted) -> String {
    let percent = |one: &Compacted| one.view_tokens as f64 / one.log_tokens as f64 * 100.0;
    let mut out = format!(
        "
## What is found after compaction

Each conversation is one session, and is compacted to at most 1/{RATIO} of its tokens: one summary by the
extractive summarizer, without a model, and the newest messages. The views cost {:.1} % of LoCoMo's
messages and {:.1} % of BEAM's. Then each question is asked as it is written. Tokens are those of
OpenAI's o200k, as in [density.md](density.md), and of all that is read: citations, times and notes of
the tools too.

- *grep, then two expands*: `memory_grep` with the question as its pattern, in the mode `prose`, over messages
  and summaries; then `memory_expand` of the best message and of the best one that this does not
  show, {NEIGHBOURS} messages before and behind with it where the hit shows it whole, else by itself. {CALLS} calls; grep
  may take half of {READ} tokens, each expand a quarter. What is behind the {READ}th token does not count.
- *one recall*: `memory_recall` with a budget of {READ} tokens.
- *plain list of hits*: the messages that the same ranking finds, whole and without citations, the best first, up to {READ}
  tokens.
- *context after compaction*: `assemble` with a budget of {READ} tokens, without any call. It costs less where
  the whole view does.
- *newest* and *oldest*: what a sliding window and a cut of {READ} tokens keep of the messages.

An answering message is **reached** where it is there whole, or at least 70 % of its different words of four
characters and more are, wherever they stand; **whole** is the first alone. The figures are parts of the
answering messages, averaged over questions. Words that stand apart may meet by chance, which
favours long texts and short messages: the column *whole* is free of that. The rules of the
calls were fixed before anything was measured, and nothing was tuned.
",
        percent(locomo),
        percent(beam),
    );
    out.push_str("\nLoCoMo:\n\n");
    table(&mut out, locomo, true);
    out.push_str("\nBEAM:\n\n");
    table(&mut out, beam, false);
    out
}

fn table(out: &mut String, compacted: &Compacted, kinds: bool) {
    out.push_str("| what is read | tokens | reached | whole |");
    let shown = compacted.found.keys().filter(|_| kinds);
    let shown: Vec<&String> = shown.collect();
    for kind in &shown {
        let _ = write!(out, " {kind}, reached |");
    }
    let _ = writeln!(out, "\n|---|{}", "--:|".repeat(3 + shown.len()));
    let rows = TEXTS.iter().zip(compacted.pooled()).enumerate();
    for (at, (name, sum)) in rows {
        let _ = write!(
            out,
            "| {name} | {:.0} | {:.3} | {:.3} |",
            sum.tokens(),
            sum.reached(),
            sum.whole()
        );
        let of_kinds = shown.iter().filter_map(|kind| compacted.found.get(*kind));
        for found in of_kinds.filter_map(|found| found.get(at)) {
            let _ = write!(out, " {:.3} |", Found::reached(found));
        }
        out.push('\n');
    }
}
