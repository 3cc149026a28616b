//! The report as text for people.

use super::report::{Compaction, Kind, KindCounts, Known, Report};
use crate::output::{clip, count, number, one_line, table};

/// Maximum number of lost items of a compaction in the text.
const LISTED: usize = 8;
/// Column of the table with the items that an earlier compaction lost.
const EARLIER: usize = 3;
/// Maximum number of characters of a lost item.
const WORDS: usize = 160;

/// Hint for a session without compactions.
const NEEDED: &str = "\
An audit needs a transcript in which the agent compacted its own conversation, with the messages before that.
Claude Code, Codex, opencode, pi and Qwen Code write such records.";

pub(super) fn text(report: &Report) -> String {
    let mut out = format!(
        "{}\n{}, {}, {}\n",
        one_line(&report.file),
        heading(report),
        count(report.messages, "message", "messages"),
        count(
            report.total.compactions,
            "compaction by the agent",
            "compactions by the agent"
        ),
    );
    if report.compactions.is_empty() {
        out += &format!("\n{}\n", none(report));
        return out;
    }
    for one in &report.compactions {
        out += &format!(
            "\nCompaction {} of {}: {}\n",
            one.number,
            report.total.compactions,
            place(one)
        );
        for (name, text) in facts(one) {
            out += &format!("  {name:<13} {text}\n");
        }
        out += &format!(
            "\n{}",
            counts(
                &one.kinds,
                one.agent_memory.as_ref().map(|ours| ours.budget)
            )
        );
        out += &lost(one);
    }
    let total = &report.total;
    if report.compactions.len() > 1 {
        out += &format!(
            "\nAll {} compactions: {} tokens became {}; {} are written anew to the prompt cache\n{}",
            total.compactions,
            number(total.tokens_before),
            number(total.tokens_after),
            number(total.tokens_rewritten),
            counts(&total.kinds, None),
        );
    }
    out += &recovery(report);
    out
}

/// Returns a text for a session without compactions.
pub(super) fn none(report: &Report) -> String {
    let elsewhere = match report.elsewhere as u64 {
        0 => String::new(),
        n => format!(
            " Abandoned branches and sub-agents of the file have {}, which are not audited.",
            number(n)
        ),
    };
    format!("Nothing to audit: no compaction was found in this session.{elsewhere}\n{NEEDED}")
}

pub(super) fn heading(report: &Report) -> String {
    one_line(&format!("session {} ({})", report.session, report.format)).into_owned()
}

/// Returns the position, the time and the cause of a compaction.
pub(super) fn place(one: &Compaction) -> String {
    let mut place = format!("at message {} of the log", number(one.seq));
    if let Some(time) = &one.created_at {
        place += &format!(", {}", time.get(..16).unwrap_or(time).replace('T', " "));
    }
    match one.trigger.as_deref() {
        Some("manual") => place += ", the user asked for it",
        Some("auto") => place += ", automatic",
        Some(other) => place += &format!(", cause: {}", one_line(other)),
        None => {}
    }
    place
}

/// Returns the sizes of a compaction and its effect on the prompt cache, each with its name.
pub(super) fn facts(one: &Compaction) -> Vec<(&'static str, String)> {
    let (before, after, cache) = (&one.before, &one.after, &one.cache);
    let mut was = format!(
        "{} tokens in {}",
        number(before.tokens),
        count(before.messages, "message", "messages")
    );
    if let Some(tokens) = before.tokens_by_agent {
        was += &format!(
            " (the agent counted {}, with its instructions and tools)",
            number(tokens)
        );
    }
    let mut parts = vec![format!("a summary of {}", number(after.summary_tokens))];
    if after.messages > 0 {
        let messages = count(after.messages, "message", "messages");
        parts.push(format!(
            "{messages} word for word ({})",
            number(after.message_tokens)
        ));
    }
    if after.added > 0 {
        let added = count(after.added, "message", "messages");
        parts.push(format!(
            "{added} that the program added, such as files ({})",
            number(after.added_tokens)
        ));
    }
    let mut facts = vec![
        ("before", was),
        (
            "after",
            format!("{} tokens: {}", number(after.tokens), parts.join(", ")),
        ),
        (
            "prompt cache",
            format!(
                "the next request could reuse {} tokens without the compaction, and {} with it; {} are written anew",
                number(cache.before),
                number(cache.same),
                number(cache.rewritten)
            ),
        ),
    ];
    if let (Some(before), Some(after)) = (cache.counted_before, cache.counted_after) {
        let text = format!(
            "last request before: {} tokens from the cache, {} new; first after: {} and {}, of which the transcript shows {}",
            number(before.cached),
            number(before.new),
            number(after.cached),
            number(after.new),
            number(one.after.tokens),
        );
        facts.push(("provider", text));
    }
    facts
}

/// Returns the counts as a table. `budget` is the size of agent-memory's context.
fn counts(kinds: &[KindCounts], budget: Option<u64>) -> String {
    let earlier = kinds.iter().any(|one| one.missing_before > 0);
    let mut rows = Vec::new();
    for (name, cells) in cells(kinds, budget) {
        let mut row = vec![format!("  {name}")];
        row.extend(
            cells
                .into_iter()
                .enumerate()
                .filter(|(n, _)| *n != EARLIER || earlier)
                .map(|(_, cell)| cell),
        );
        rows.push(row);
    }
    table(&rows)
}

/// Returns the rows of the table of counts, the head first, each with its name.
pub(super) fn cells(kinds: &[KindCounts], budget: Option<u64>) -> Vec<(&'static str, [String; 5])> {
    let ours = budget.map_or_else(
        || "agent-memory keeps".to_owned(),
        |n| format!("agent-memory keeps, in {} tokens", number(n)),
    );
    let head = ["known", "agent keeps", "loses", "lost earlier"].map(str::to_owned);
    let [known, keeps, loses, earlier] = head;
    let mut rows = vec![("", [known, keeps, loses, earlier, ours])];
    for one in kinds.iter().filter(|one| one.known > 0) {
        let part = |n: u64| {
            format!(
                "{} ({} %)",
                number(n),
                (n * 100 + one.known / 2) / one.known
            )
        };
        let cells = [
            number(one.known),
            part(one.kept),
            number(one.lost),
            number(one.missing_before),
            part(one.agent_memory),
        ];
        rows.push((plural(one.kind), cells));
    }
    rows
}

pub(super) fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::NewestRequest => "the newest request",
        Kind::StandingInstruction => "standing instructions",
        Kind::Decision => "decisions",
        Kind::ChangedFile => "changed files",
        Kind::FailingCheck => "failing checks",
        Kind::OpenTask => "open tasks",
        Kind::UsedNext => "names that the next 40 messages use",
    }
}

/// Returns the first lost items of a compaction, each with the command that returns it.
fn lost(one: &Compaction) -> String {
    let missing: Vec<&Known> = one.missing().collect();
    if missing.is_empty() {
        return "\n  Nothing of this was lost.\n".to_owned();
    }
    let mut out = String::new();
    if let Some(n @ 1..) = Some(missing.iter().filter(|item| item.other_script).count() as u64) {
        out += &format!(
            "  {} in another script than the summary, which may say the same in its own words.\n",
            count(n, "lost item is", "lost items are")
        );
    }
    out += "\n  Lost, and the command that returns it:\n";
    for lost in missing.iter().take(LISTED) {
        out += &format!(
            "  - {}: {}\n    {}\n",
            what(lost),
            clip(&one_line(&words(lost)), WORDS),
            command(lost)
        );
    }
    if let Some(more @ 1..) = missing.len().checked_sub(LISTED) {
        out += &format!("  and {more} more: --json or --html lists all\n");
    }
    out
}

/// Returns the kind of a lost item, and its message.
pub(super) fn what(lost: &Known) -> String {
    let mut out = lost.kind.name().to_owned();
    if let Some(seq) = lost.seq {
        out += &format!(" (message {})", number(seq));
    }
    if lost.missing_before {
        out += ", lost earlier";
    }
    if lost.other_script {
        out += ", in another script than the summary";
    }
    out
}

/// Returns the words of a lost item.
pub(super) fn words(lost: &Known) -> String {
    match &lost.says {
        Some(says) => format!("{} → {says}", lost.text),
        None => lost.text.clone(),
    }
}

pub(super) fn command(lost: &Known) -> &str {
    lost.command.as_deref().unwrap_or("no command returns it")
}

/// Returns how the lost items are recovered.
pub(super) fn recovery(report: &Report) -> String {
    let (missing, found) = (report.total.missing, report.total.recoverable);
    if missing == 0 {
        return String::new();
    }
    format!(
        "\nCommands on the log return {} of {}; each was tried. They work after `agent-memory import FILE`.\n",
        number(found),
        count(missing, "lost item", "lost items"),
    )
}
