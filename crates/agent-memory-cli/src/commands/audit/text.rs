//! The report as text for people.

use super::report::{Compaction, Kind, KindCounts, Known, Report};
use crate::output::{clip, count, number, one_line, table};

/// Maximum number of lost items of a compaction in the text.
const LISTED: usize = 8;
/// Column of the table with the items that an earlier compaction lost.
const EARLIER: usize = 3;
/// Maximum number of characters of a lost item.
const WORDS: usize = 160;
/// Maximum number of characters in a line of the introduction.
const WIDTH: usize = 76;
/// Maximum number of characters of an item in a line with several.
const NAME: usize = 60;

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
    for paragraph in introduction(report) {
        out += &format!("\n{}\n", wrapped(&paragraph));
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
        out += &format!("\n{}", counts(&one.kinds));
        out += &lost(one);
    }
    let total = &report.total;
    if report.compactions.len() > 1 {
        let ours = report.compactions.iter();
        let ours = ours.filter_map(|one| one.agent_memory.as_ref());
        out += &format!(
            "\nAll {} compactions: {} tokens became {}, and {} in agent-memory's contexts\n{}",
            total.compactions,
            number(total.tokens_before),
            number(total.tokens_after),
            number(ours.map(|ours| ours.tokens).sum()),
            counts(&total.kinds),
        );
    }
    out
}

/// Returns a text in lines of at most [`WIDTH`] characters.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        let space = match width {
            0 => "",
            _ if width + 1 + length > WIDTH => {
                width = 0;
                "\n"
            }
            _ => " ",
        };
        out += &format!("{space}{word}");
        width += length + usize::from(space == " ");
    }
    out
}

/// Returns the result of the audit in one sentence, and the meaning of its words.
pub(super) fn introduction(report: &Report) -> Vec<String> {
    let total = &report.total;
    let known: u64 = total.kinds.iter().map(|one| one.known).sum();
    let mut result = format!(
        "Of {} that the agent knew, its compactions lost {}.",
        count(known, "item", "items"),
        number(total.missing)
    );
    if total.missing > 0 {
        result += &format!(
            " Commands return {} of them from the log; each was tried. First run `agent-memory import FILE`.",
            number(total.recoverable)
        );
    }
    vec![
        result,
        "An item is kept if its words are in the summary or in the messages that stayed. What the agent's program adds to \
         requests and the transcript does not show, such as files that it reads again, is not seen here, so the agent may \
         still know some of the lost items. Names used next are files, identifiers, hashes and numbers that the agent used \
         in the 40 messages after."
            .to_owned(),
        "The column agent-memory is for its own context of as many tokens, or 300. It is made to keep these kinds of items, but \
         the names used next are not known to it in advance."
            .to_owned(),
    ]
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
            " (the agent counted {}, with all that the transcript does not show)",
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
                "of these {} tokens, {} are the same as before at the start of the next request; {} are new",
                number(after.tokens),
                number(cache.same),
                number(cache.rewritten)
            ),
        ),
    ];
    if let (Some(before), Some(after)) = (cache.counted_before, cache.counted_after) {
        let text = format!(
            "counted {} tokens from its cache and {} new ones in the last request before, {} and {} in the first after",
            number(before.cached),
            number(before.new),
            number(after.cached),
            number(after.new),
        );
        facts.push(("the provider", text));
    }
    if let Some(ours) = &one.agent_memory {
        let text = format!("a context of {} tokens instead", number(ours.tokens));
        facts.push(("agent-memory", text));
    }
    facts
}

/// Returns the counts as a table.
fn counts(kinds: &[KindCounts]) -> String {
    let earlier = kinds.iter().any(|one| one.missing_before > 0);
    let mut rows = Vec::new();
    for (name, cells) in cells(kinds) {
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
pub(super) fn cells(kinds: &[KindCounts]) -> Vec<(&'static str, [String; 5])> {
    let head = ["known", "kept", "lost", "lost before", "agent-memory"].map(str::to_owned);
    let known = kinds.iter().filter(|one| one.known > 0);
    let rows = known.map(|one| {
        let numbers = [
            one.known,
            one.kept,
            one.lost,
            one.missing_before,
            one.agent_memory,
        ];
        (plural(one.kind), numbers.map(number))
    });
    std::iter::once(("", head)).chain(rows).collect()
}

pub(super) fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::NewestRequest => "newest request",
        Kind::StandingInstruction => "standing instructions",
        Kind::Decision => "decisions",
        Kind::ChangedFile => "changed files",
        Kind::FailingCheck => "failing checks",
        Kind::OpenTask => "open tasks",
        Kind::UsedNext => "names used next",
    }
}

/// Returns the first lost items of a compaction, each with the command that returns it.
fn lost(one: &Compaction) -> String {
    let missing: Vec<&Known> = one.missing().collect();
    if missing.is_empty() {
        return format!("\n  Nothing of this was lost.\n{}", lacks(one));
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
    out + &lacks(one)
}

/// Returns a line with the items that agent-memory's context lacks.
pub(super) fn lacks(one: &Compaction) -> String {
    let lacking: Vec<&Known> = one.items.iter().filter(|item| !item.agent_memory).collect();
    if lacking.is_empty() {
        return String::new();
    }
    let names = lacking.iter().take(LISTED);
    let names = names.map(|item| {
        let words = item.text.split_whitespace().collect::<Vec<_>>().join(" ");
        clip(&one_line(&words), NAME).into_owned()
    });
    let more = match lacking.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.collect::<Vec<_>>().join(", ");
    format!("\n  agent-memory's context lacks: {names}{more}\n")
}

/// Returns the kind of a lost item, and its message.
pub(super) fn what(lost: &Known) -> String {
    let mut out = lost.kind.name().to_owned();
    if let Some(seq) = lost.seq {
        out += &format!(", said in message {}", number(seq));
    }
    if lost.missing_before {
        out += ", lost before";
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
