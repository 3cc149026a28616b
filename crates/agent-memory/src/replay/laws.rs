//! Laws: invariants that must hold after every step of a replay.

use std::collections::BTreeSet;
use std::fmt;

use context_assembler::{Budget, Context, ContextMessage, MessageOrigin};
use memory_model::{Accounting, EntryKind, LogEntry, Message, Part, Role, Seq, SeqRange};
use memory_store::EntryOutcome;
use serde::Serialize;

use crate::error::Result;
use crate::replay::step::Step;
use crate::session::Session;

/// An invariant that must hold after every step of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Law {
    /// The last entry of the log equals the message that was just appended, word for word.
    Kept,
    /// The reported cost of a context is correct, and does not exceed the budget.
    Budget,
    /// A context shows messages in the order of the log, except for tool results that follow their calls directly. No
    /// part of the log is shown twice.
    Order,
    /// In a context, tool messages with the results directly follow the message with the tool calls, as providers
    /// require. Every call has a result, and every result has a call.
    Pairs,
    /// The context shows every message of the log, or its receipt lists the message as left out.
    Accounted,
    /// The context shows the last message of the log.
    Newest,
    /// The view's spans cover the log without gap or overlap, and the sum of their costs is the view's cost.
    Tiled,
    /// A compaction that publishes makes the view (the compacted log) cheaper. No compaction makes it more expensive.
    Shrinks,
    /// No step executes more database statements than [`Replay::most_statements`](super::Replay::most_statements).
    Statements,
    /// [`Session::verify`] finds no violation.
    Verified,
}

/// A violation of a [`Law`] in one step of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Broken {
    /// Number of the step that violated the law; the first step is 1.
    pub step: u64,
    /// Position of the log's last entry at that step.
    pub head: Seq,
    /// The law that the step violated.
    pub law: Law,
    /// Description of the violation, for people.
    pub found: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step,
            head,
            law,
            found,
        } = self;
        write!(f, "step {step}, head {head}: {law:?}: {found}")
    }
}

/// Checker of the laws, with the data about the log that the checks need.
#[derive(Debug)]
pub(super) struct Laws {
    step: u64,
    head: Seq,
    /// For each entry of the log, in order: whether the entry is a message, not a note.
    messages: Vec<bool>,
    tokens: u64,
    broken: Vec<Broken>,
}

impl Laws {
    /// Creates the checker from the entries that the session already has.
    pub(super) async fn open(session: &Session) -> Result<Self> {
        let log = session.entries().await?;
        Ok(Self {
            step: 0,
            head: log.last().map_or(Seq::NONE, |entry| entry.seq),
            messages: log.iter().map(is_message).collect(),
            tokens: log.last().map_or(0, |entry| entry.running),
            broken: Vec::new(),
        })
    }

    pub(super) fn log_tokens(&self) -> u64 {
        self.tokens
    }

    pub(super) fn into_broken(self) -> Vec<Broken> {
        self.broken
    }

    pub(super) async fn after_step(
        &mut self,
        session: &Session,
        message: &Message,
        step: &Step,
        budget: Budget,
    ) -> Result<()> {
        self.step += 1;
        self.kept(session, message, step).await?;
        let accounting = session.accounting();
        for (law, held) in [
            (Law::Budget, within(&step.context, budget, accounting)),
            (Law::Order, in_order(&step.context.messages)),
            (Law::Pairs, paired(&step.context)),
            (Law::Accounted, self.accounted(&step.context)),
            (Law::Newest, self.newest(&step.context)),
            (Law::Shrinks, shrinks(step)),
            (Law::Statements, few_statements(step)),
        ] {
            self.note(law, held);
        }
        self.tiled(session).await
    }

    pub(super) async fn verify(&mut self, session: &Session) -> Result<()> {
        for violation in session.verify().await?.violations {
            self.note(Law::Verified, Err(violation.to_string()));
        }
        Ok(())
    }

    fn note(&mut self, law: Law, held: std::result::Result<(), String>) {
        if let Err(found) = held {
            self.broken.push(Broken {
                step: self.step,
                head: self.head,
                law,
                found,
            });
        }
    }

    async fn kept(&mut self, session: &Session, message: &Message, step: &Step) -> Result<()> {
        match step.ingested {
            EntryOutcome::Inserted(seq) => {
                let next = self.head.next();
                if seq != next {
                    let found = format!("the message got {seq} instead of {next}");
                    self.note(Law::Kept, Err(found));
                }
                self.head = seq;
                let page = session.entries_in(SeqRange::single(seq)).await?;
                let Some(entry) = page.items.first() else {
                    let found = format!("message {seq} cannot be read back");
                    self.note(Law::Kept, Err(found));
                    return Ok(());
                };
                self.messages.push(is_message(entry));
                self.tokens = entry.running;
                let same = entry.parts == message.parts
                    && entry.role == message.role
                    && entry.kind == message.kind
                    && entry.name == message.name
                    && entry.external_id == message.external_id;
                if !same {
                    let found = format!("message {seq} is not what was stored");
                    self.note(Law::Kept, Err(found));
                }
            }
            EntryOutcome::Duplicate(_) => {}
            other => self.note(Law::Kept, Err(format!("{other:?}"))),
        }
        Ok(())
    }

    fn accounted(&self, context: &Context) -> std::result::Result<(), String> {
        let mut covered: Vec<(Seq, Seq)> = context
            .messages
            .iter()
            .filter_map(|message| message.source.range())
            .map(|range| (range.first, range.last))
            .chain(context.receipt.dropped.iter().map(|d| (d.first, d.last)))
            .collect();
        covered.sort_unstable();
        let mut next = Seq::FIRST;
        for (first, last) in covered
            .into_iter()
            .chain([(self.head.next(), self.head.next())])
        {
            let gap = SeqRange::new(next, first.prev());
            let missing = gap.into_iter().flat_map(|gap| gap.first.0..=gap.last.0);
            let missing = missing.into_iter().find(|seq| {
                let index = (*seq as usize).saturating_sub(1);
                self.messages.get(index).copied().unwrap_or(true)
            });
            if let Some(seq) = missing {
                return Err(format!(
                    "message {seq} is neither shown nor named as left out"
                ));
            }
            next = next.max(last.next());
        }
        Ok(())
    }

    fn newest(&self, context: &Context) -> std::result::Result<(), String> {
        let newest = self.messages.iter().rposition(|is| *is);
        let Some(newest) = newest.and_then(|index| u32::try_from(index + 1).ok()) else {
            return Ok(());
        };
        let shown = context
            .messages
            .iter()
            .filter_map(|message| message.source.range())
            .any(|range| range.contains(Seq(newest)));
        match shown {
            true => Ok(()),
            false => Err(format!("message {newest}, the newest, is not shown")),
        }
    }

    async fn tiled(&mut self, session: &Session) -> Result<()> {
        let snapshot = session.snapshot().await?;
        let spans = session.spans().await?;
        let mut next = Seq::FIRST;
        let mut tokens = 0;
        for span in &spans {
            if span.range.first != next {
                let found = format!("a span begins at {} instead of {next}", span.range.first);
                self.note(Law::Tiled, Err(found));
            }
            next = span.range.last.map_or(self.head.next(), Seq::next);
            tokens += span.tokens;
        }
        if next <= self.head {
            let found = format!("the spans end before {next}");
            self.note(Law::Tiled, Err(found));
        }
        if tokens != snapshot.tokens() {
            let found = format!(
                "the spans cost {tokens}, the view says {}",
                snapshot.tokens()
            );
            self.note(Law::Tiled, Err(found));
        }
        Ok(())
    }
}

fn is_message(entry: &LogEntry) -> bool {
    entry.kind == EntryKind::Message
}

fn within(
    context: &Context,
    budget: Budget,
    accounting: &dyn Accounting,
) -> std::result::Result<(), String> {
    let counted: u64 = context
        .messages
        .iter()
        .map(|m| accounting.parts(m.role, &m.parts))
        .sum();
    if counted == context.tokens && counted <= budget.get() {
        return Ok(());
    }
    Err(format!(
        "{counted} tokens counted, {} said, {} allowed",
        context.tokens,
        budget.get()
    ))
}

/// Checks that messages are in the log's order, and that no message is inside the range of a summary, of an omission or
/// of a group that was made one text. Two kinds of messages may begin before the end of a preceding message: results,
/// which follow their calls, and messages between the lines of one response, because these lines are shown joined.
fn in_order(messages: &[ContextMessage]) -> std::result::Result<(), String> {
    // Last position of the shown messages other than tool results, and last position of shown ranges that no message
    // may enter.
    let (mut last, mut closed) = (Seq::NONE, Seq::NONE);
    // Range of the last message with calls, of the last response with joined lines, and of the messages shown between
    // them.
    let (mut calls, mut joined): (Option<SeqRange>, Option<SeqRange>) = (None, None);
    let mut between: Vec<SeqRange> = Vec::new();
    let mut before: Option<&ContextMessage> = None;
    for message in messages {
        let Some(range) = message.source.range() else {
            continue;
        };
        let has = |is: fn(&Part) -> bool| message.parts.iter().any(is);
        let outside = || Err(format!("{range} stands after {}", last.max(closed)));
        // One message of the log, or one summary, may become several messages of a context.
        let again = before.is_some_and(|before| before.source == message.source);
        before = Some(message);
        if again {
            continue;
        }
        if range.first <= closed {
            return outside();
        }
        if let MessageOrigin::Summary { .. } | MessageOrigin::Omitted { .. } = message.source {
            if range.first <= last {
                return outside();
            }
            (last, closed) = (range.last, range.last);
            continue;
        }
        if has(|part| matches!(part, Part::ToolResult { .. })) {
            // The source of a stub is the range of its call.
            if calls.is_none_or(|calls| range.first < calls.first) {
                return outside();
            }
            continue;
        }
        if range.first <= last {
            let inside = |joined: SeqRange| joined.first < range.first && range.last <= joined.last;
            if !joined.is_some_and(inside) || between.contains(&range) {
                return outside();
            }
            between.push(range);
            continue;
        }
        last = range.last;
        if message.role == Role::Assistant {
            joined = Some(range);
            between.clear();
            if has(|part| matches!(part, Part::ToolCall { .. })) {
                calls = Some(range);
            }
        } else if range.first < range.last {
            closed = range.last;
        }
    }
    Ok(())
}

fn paired(context: &Context) -> std::result::Result<(), String> {
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for message in &context.messages {
        if message.role != Role::Tool && !waiting.is_empty() {
            return Err(format!(
                "{} speaks before the results of {waiting:?}",
                message.role
            ));
        }
        for part in &message.parts {
            match part {
                Part::ToolCall { id, .. } => {
                    if message.role != Role::Assistant || !ids.insert(id) {
                        return Err(format!("{} calls {id}, or calls it twice", message.role));
                    }
                    waiting.insert(id);
                }
                Part::ToolResult { call_id, .. } => {
                    let answers = waiting.remove(call_id.as_str());
                    if message.role != Role::Tool || !answers {
                        return Err(format!("a result of {call_id} has no call before it"));
                    }
                }
                _ => {}
            }
        }
    }
    match waiting.is_empty() {
        true => Ok(()),
        false => Err(format!("there are no results of {waiting:?}")),
    }
}

fn shrinks(step: &Step) -> std::result::Result<(), String> {
    for outcome in &step.compactions {
        let (before, after) = (outcome.before.tokens, outcome.after.tokens);
        let published = outcome.published.total() > 0;
        if after > before || (published && after == before) {
            return Err(format!("a compaction went from {before} to {after} tokens"));
        }
    }
    Ok(())
}

fn few_statements(step: &Step) -> std::result::Result<(), String> {
    match (step.statements, step.most_statements) {
        (Some(took), Some(most)) if took > most => {
            Err(format!("{took} statements, {most} allowed"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{ResultContent, SummaryId};

    use super::*;

    /// Returns a message of a context that shows a range of the log, from its kind and the range's ends.
    fn message(&(kind, first, last): &(&str, u32, u32)) -> ContextMessage {
        let (first, last) = (Seq(first), Seq(last));
        let (role, part) = match kind {
            "result" => {
                let part = Part::ToolResult {
                    call_id: "x".to_owned(),
                    content: ResultContent::Text("found".to_owned()),
                    is_error: None,
                };
                (Role::Tool, part)
            }
            "call" => {
                let part = Part::ToolCall {
                    id: "x".to_owned(),
                    name: "read".to_owned(),
                    arguments: memory_model::RawJson::parse("{}").unwrap(),
                };
                (Role::Assistant, part)
            }
            "joined" => (Role::Assistant, Part::text("said")),
            _ => (Role::User, Part::text("said")),
        };
        let source = match kind {
            "summary" => MessageOrigin::Summary {
                first,
                last,
                summary_id: SummaryId::new("sum_0123456789abcdef"),
            },
            "omitted" => MessageOrigin::Omitted { first, last },
            "trimmed" => MessageOrigin::Trimmed { first, last },
            _ => MessageOrigin::Message { first, last },
        };
        ContextMessage::new(role, source, vec![part])
    }

    fn holds(messages: &[(&str, u32, u32)]) -> bool {
        let messages: Vec<ContextMessage> = messages.iter().map(message).collect();
        in_order(&messages).is_ok()
    }

    #[test]
    fn an_entry_inside_a_span_breaks_the_order() {
        for kind in ["summary", "omitted", "trimmed"] {
            let span = (kind, 1, 10);
            let (user, call) = (("user", 11, 11), ("call", 12, 12));
            assert!(holds(&[span, user, call, ("result", 13, 13)]), "{kind}");
            assert!(!holds(&[span, user, ("user", 5, 5)]), "{kind}");
            for inside in [
                ("user", 1, 1),
                ("user", 10, 10),
                ("joined", 4, 6),
                ("call", 5, 5),
                ("result", 5, 5),
                ("summary", 5, 12),
            ] {
                assert!(!holds(&[span, inside]), "{kind} {inside:?}");
            }
        }
        // A summary or an omission over messages that are already shown.
        assert!(!holds(&[("user", 5, 5), ("summary", 1, 10)]));
        assert!(!holds(&[("user", 1, 1), ("user", 5, 5), ("omitted", 3, 8)]));
    }

    #[test]
    fn results_and_what_stands_between_joined_lines_are_in_order() {
        let user = |seq| ("user", seq, seq);
        let result = |seq| ("result", seq, seq);
        assert!(holds(&[
            ("summary", 1, 9),
            ("call", 10, 12),
            result(11),
            result(13),
            user(14)
        ]));
        // A result that directly follows its call, before a message that the user sent in between.
        assert!(holds(&[
            ("call", 1, 1),
            result(3),
            user(2),
            ("joined", 4, 4)
        ]));
        let joined = ("joined", 1, 3);
        assert!(holds(&[joined, user(2), user(4)]));
        for wrong in [
            &[user(2), user(1)][..],
            &[user(1), user(2), user(1)],
            &[joined, user(2), user(3), user(2)],
            &[joined, user(1)],
            &[("call", 5, 5), result(4)],
            &[result(1)],
        ] {
            assert!(!holds(wrong), "{wrong:?}");
        }
    }
}
