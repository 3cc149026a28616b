//! The state as it is kept: a fold over the log, stretch by stretch.

use std::collections::BTreeSet;

use memory_model::conventions::AgentConventions;
use memory_model::{EntryKind, LogEntry, Part, Role, Seq};
use serde::{Deserialize, Serialize};

use super::facts::is_decided;
use super::{CONCLUSIONS, FAILED, REQUESTS, SEARCHES, asks, is_goal};
use crate::failure;
use crate::gather;
use crate::item::{ASKED, COMMAND, FileStat, Gathered, INSTRUCTIONS, Item, Kind, LAST_WORD, TYPED};
use crate::print::ARROW;
use crate::source::Source;
use crate::standing;
use crate::tasks;
use crate::text::{clip, line_sentences};

/// Least number of entries of a stretch that ends before a user's message.
const STRETCH: usize = 32;
/// Number of entries after which a stretch ends behind results of tools, and at any entry.
const LONG: usize = 256;
const LONGEST: usize = 1_024;

/// Number of the last messages of the user that are kept whole. Of earlier ones, lines with rules, values, numbers and
/// corrections are kept.
const WHOLE: usize = 48;
/// Maximum number of messages of the user that are kept.
const USERS: usize = 256;
/// Number of the last conclusions of the assistant that are kept whole, and maximum number of earlier messages of the assistant
/// with decisions, of which the decisions are kept.
const REPLIES: usize = 6 * CONCLUSIONS;
const DECISIONS: usize = 64;
/// Maximum number of texts with instructions that are kept.
const INSTRUCTED: usize = 4;
/// Maximum number of lines that are kept of a first request, of instructions, and of a failure's output.
const LINES: usize = 64;
/// Number of lines that are kept of the start and of the end of a long text of the user.
const BEGINS: usize = 4;
const ENDS: usize = 8;
/// Maximum number of changed files, and of other files, that are kept.
const CHANGED: usize = 512;
const OTHERS: usize = 32;
/// Maximum number of failures that are kept.
const FAILURES: usize = 64;
/// Number of characters to which kept lines of long texts are clipped, and number of bytes of a text that is not long.
const LINE: usize = 1_000;
const BYTES: usize = 8_000;
/// Weight of a message of which only the decisions are kept.
const DECIDED: u32 = 45;

/// The state of a conversation at the end of a stretch of its log. Where stretches end depends on the log alone, so reading the
/// log at once or in parts of any size gives the same state, byte for byte.
///
/// Its size does not grow with the log, except for the user's rules and decisions up to a maximum.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KeptState {
    through: Seq,
    /// Position up to which messages of the assistant and instructions are kept in part.
    reduced: Seq,
    /// Position before which messages of the user are kept in part.
    whole: Seq,
    gathered: Gathered,
}

impl KeptState {
    /// Name of the form of kept states. A state in another form, or read with other conventions, is read from the log again.
    pub const FORMAT: &str = "state 1";

    /// Returns the position of the last message that was read; [`Seq::NONE`] if none was.
    pub fn through(&self) -> Seq {
        self.through
    }

    /// Reads the whole stretches at the start of `entries`, which follow [`through`](Self::through). Returns the number of entries
    /// that were read. The other ones are needed again.
    pub fn read(&mut self, entries: &[&LogEntry], conventions: &dyn AgentConventions) -> usize {
        let mut rest = entries;
        while let Some((stretch, after)) = stretch(rest).and_then(|n| rest.split_at_checked(n)) {
            self.add(stretch, conventions);
            self.reduce();
            rest = after;
        }
        entries.len() - rest.len()
    }

    /// Returns the state after `entries`, which follow [`through`](Self::through).
    pub fn then(
        &self,
        entries: &[&LogEntry],
        conventions: &dyn AgentConventions,
    ) -> super::ConversationState {
        let mut state = self.clone();
        let read = state.read(entries, conventions);
        state.add(entries.get(read..).unwrap_or_default(), conventions);
        super::ConversationState::new(state.gathered)
    }

    fn add(&mut self, entries: &[&LogEntry], conventions: &dyn AgentConventions) {
        let source: Vec<Source<'_>> = entries.iter().map(|entry| Source::from(*entry)).collect();
        gather::add(&mut self.gathered, &source, conventions);
        self.through = entries.last().map_or(self.through, |last| last.seq);
    }

    /// Leaves out the parts that later states hardly show.
    fn reduce(&mut self) {
        let gathered = &mut self.gathered;
        // The last message of the assistant stays whole, because a short answer to it may follow.
        let last = gathered.items.last();
        let last = last.filter(|item| item.kind == Kind::Reply);
        let last_reply = last.map(|item| item.range.first);
        let goal = gathered.items.iter().position(is_goal);
        let mut limits = Limits {
            reduced: self.reduced,
            whole: self.whole,
            ..Limits::default()
        };
        let mut kept = Vec::new();
        for (at, mut item) in std::mem::take(&mut gathered.items)
            .into_iter()
            .enumerate()
            .rev()
        {
            item.detail.clear();
            let (is_user, lines) = (item.kind == Kind::User, item.lines.len());
            let is_kept = if Some(at) == goal {
                if item.kind != Kind::User || item.is_pasted() {
                    leave_ends(&mut item.lines, BEGINS, ENDS);
                }
                true
            } else {
                let is_reply = item.kind == Kind::Reply;
                (is_reply && Some(item.range.first) == last_reply) || limits.keep(&mut item)
            };
            let is_whole = is_kept && item.lines.len() == lines;
            let mut newer = kept.iter_mut().rev();
            if is_user
                && !is_whole
                && let Some(newer) = newer.find(|one: &&mut Item| one.kind == Kind::User)
            {
                newer.after_gap = true;
            }
            if is_kept {
                kept.push(item);
            }
        }
        kept.reverse();
        self.whole = limits.oldest_whole.unwrap_or(self.whole);
        self.reduced = last_reply.map_or(self.through, |seq| Seq(seq.0.saturating_sub(1)));
        gathered.gap = if last_reply.is_some() { 0 } else { kept.len() };
        gathered.items = kept;
        gathered.ran.clear();
        last_distinct(&mut gathered.searches, SEARCHES);
        last_used(gathered, CHANGED, |file| file.changed > 0);
        last_used(gathered, OTHERS, |file| file.changed == 0);
    }
}

/// Counts of kept items (candidate lines), from the newest one back.
#[derive(Default)]
struct Limits {
    reduced: Seq,
    whole: Seq,
    users: usize,
    /// Position of the oldest message of the user that stays whole.
    oldest_whole: Option<Seq>,
    asked: usize,
    pasted: usize,
    failures: usize,
    conclusions: usize,
    decisions: usize,
    tasks: usize,
    instructions: BTreeSet<Vec<String>>,
}

impl Limits {
    /// Returns whether an item (a candidate line) is kept, and leaves out the parts of it that are not.
    fn keep(&mut self, item: &mut Item) -> bool {
        let is_new = item.range.first > self.reduced;
        match item.kind {
            Kind::User if item.label == ASKED => {
                item.lines.retain(|line| line.contains(ARROW));
                item.lines.truncate(LINES);
                self.keep_user(item)
            }
            Kind::User if item.weight < TYPED => {
                leave_ends(&mut item.lines, BEGINS, ENDS);
                self.pasted += usize::from(item.is_pasted());
                item.is_pasted() && self.pasted <= REQUESTS
            }
            Kind::User => {
                self.asked += usize::from(asks(item));
                if self.users < WHOLE {
                    self.oldest_whole = Some(item.range.first);
                } else if item.range.first >= self.whole {
                    let lasts = standing::lasting_lines(item);
                    let mut lasts = lasts.into_iter();
                    item.lines.retain(|_| lasts.next() == Some(true));
                }
                self.keep_user(item)
            }
            Kind::Injected if item.label == INSTRUCTIONS => {
                if is_new {
                    item.lines = standing::wanted(item).rules.clone();
                    item.wanted.take();
                }
                item.lines.truncate(LINES);
                !item.lines.is_empty()
                    && self.instructions.len() < INSTRUCTED
                    && self.instructions.insert(item.lines.clone())
            }
            Kind::Reply if item.weight >= LAST_WORD && self.conclusions < REPLIES => {
                self.conclusions += 1;
                if item.bytes() > BYTES {
                    leave_ends(&mut item.lines, LINES / 2, LINES / 2);
                }
                true
            }
            Kind::Reply => {
                if item.weight >= LAST_WORD || is_new {
                    let lines = item.lines.iter();
                    let sentences = lines.flat_map(|line| line_sentences(line));
                    item.lines = sentences.filter(|sentence| is_decided(sentence)).collect();
                    item.weight = DECIDED;
                }
                let is_kept = !item.lines.is_empty() && self.decisions < DECISIONS;
                self.decisions += usize::from(is_kept);
                is_kept
            }
            Kind::Error => {
                failure::truncate(&mut item.outcome, LINES);
                let runs = item
                    .lines
                    .first()
                    .is_some_and(|line| line.starts_with(COMMAND));
                let fails = runs && item.weight >= FAILED && item.later.is_none();
                let is_kept = fails && self.asked <= REQUESTS && self.failures < FAILURES;
                self.failures += usize::from(is_kept);
                is_kept
            }
            Kind::Act => {
                let list = item.lines.first().filter(|_| !item.runs());
                let is_list = item.weight > 0 && list.is_some_and(|line| tasks::is_list(line));
                self.tasks += usize::from(is_list);
                is_list && self.tasks == 1
            }
            Kind::Injected | Kind::Note => false,
        }
    }

    fn keep_user(&mut self, item: &Item) -> bool {
        let is_kept = !item.lines.is_empty() && self.users < USERS;
        self.users += usize::from(is_kept);
        is_kept
    }
}

/// Returns the number of entries of the stretch at the start of `entries`; `None` if it goes on behind them. A stretch ends before
/// a user's message if no call lacks its result, or else behind results of tools once it is long.
fn stretch(entries: &[&LogEntry]) -> Option<usize> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut is_result = false;
    for (n, entry) in entries.iter().enumerate() {
        if entry.kind != EntryKind::Message {
            continue;
        }
        let has_result = entry
            .parts
            .iter()
            .any(|part| matches!(part, Part::ToolResult { .. }));
        let begins = entry.role == Role::User && !has_result;
        let ends = match () {
            () if begins && n >= STRETCH && open.is_empty() => true,
            () if begins || (is_result && open.is_empty() && !has_result) => n >= LONG,
            () => n >= LONGEST,
        };
        if ends {
            return Some(n);
        }
        for part in &entry.parts {
            match part {
                Part::ToolCall { id, .. } => {
                    open.insert(id);
                }
                Part::ToolResult { call_id, .. } => {
                    open.remove(call_id.as_str());
                }
                _ => {}
            }
        }
        is_result = has_result;
    }
    None
}

/// Leaves out the middle of a long text, and the ends of long lines. A request about a text comes before or behind it.
fn leave_ends(lines: &mut Vec<String>, begins: usize, ends: usize) {
    if let Some(end) = lines.len().checked_sub(ends) {
        lines.drain(begins.min(end)..end);
    }
    for line in lines.iter_mut().filter(|line| line.len() > LINE) {
        *line = clip(line, LINE);
    }
}

/// Keeps the last `most` different texts, in order.
fn last_distinct(texts: &mut Vec<String>, most: usize) {
    let mut seen = BTreeSet::new();
    let last: Vec<String> = std::mem::take(texts)
        .into_iter()
        .rev()
        .filter(|text| seen.insert(text.clone()))
        .take(most)
        .collect();
    texts.extend(last.into_iter().rev());
}

/// Keeps the `most` last used files of a kind.
fn last_used(gathered: &mut Gathered, most: usize, is_kind: fn(&FileStat) -> bool) {
    let mut places: Vec<usize> = gathered
        .files
        .values()
        .filter(|file| is_kind(file))
        .map(|file| file.last)
        .collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    if let Some(last) = places.get(most) {
        gathered
            .files
            .retain(|_, file| !is_kind(file) || file.last > *last);
    }
}
