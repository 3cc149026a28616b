//! A handoff of a list of entries without a view, for programs that keep their own log.

use compaction_plan::Request;
use memory_model::conventions::AgentConventions;
use memory_model::{EntryKind, LogEntry, Purpose, Seq, SeqRange, Summary};

use crate::boundary::Recent;
use crate::files::FileLedger;
use crate::policy::HandoffPolicy;

/// Everything that the summaries of a handoff are written from, and the first entry that the handoff would keep.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preparation {
    /// Range of the messages that are summarized together with the previous summary. `None` if only the beginning of a
    /// turn is summarized. The previous summary then stays in the view (the compacted log).
    pub history: Option<SeqRange>,
    /// Range of the beginning of a turn that the cut divides. It gets a separate summary. `None` if the cut is between
    /// turns.
    pub turn_prefix: Option<SeqRange>,
    /// Position of the first entry that is kept unchanged.
    pub kept_from: Seq,
    /// External id of the entry at `kept_from`; `None` if it has none.
    pub kept_from_id: Option<String>,
    /// Cost of the previous summary and of all entries since then, in tokens.
    pub tokens_before: u64,
    /// Entries in the range `history`, which are summarized together with the previous summary.
    pub history_entries: Vec<LogEntry>,
    /// Entries in the range `turn_prefix`, which get a separate summary.
    pub turn_prefix_entries: Vec<LogEntry>,
    /// Summary of the previous handoff; `None` before the first handoff.
    pub previous: Option<Summary>,
    /// Policy by which the cut was selected, and which limits the summaries.
    pub policy: HandoffPolicy,
    /// Files that the previous summary records, and files of all messages that this handoff summarizes.
    pub files: FileLedger,
}

impl Preparation {
    /// Returns whether the cut divides a turn.
    pub fn is_split_turn(&self) -> bool {
        self.turn_prefix.is_some()
    }

    /// Returns the request for the summary with this purpose, with the same lengths and prompts as a planned handoff.
    pub fn request(&self, purpose: Purpose) -> Request {
        let (before, entries) = match purpose {
            Purpose::TurnPrefix => (0, &self.turn_prefix_entries),
            _ => (
                self.previous.as_ref().map_or(0, |s| s.tokens),
                &self.history_entries,
            ),
        };
        let new = entries.iter().map(|entry| entry.tokens);
        self.policy
            .request(purpose, before, new.fold(0, u64::saturating_add))
    }
}

/// Returns the messages that a handoff of `entries` would summarize. It writes no summary. `entries` are the entries
/// since the previous handoff, oldest first.
///
/// Entries that the previous summary covers are skipped. Returns `None` if the policy allows no handoff of these
/// messages.
pub fn prepare(
    entries: &[LogEntry],
    previous: Option<&Summary>,
    policy: &HandoffPolicy,
    conventions: &dyn AgentConventions,
) -> Option<Preparation> {
    let covered = previous.map(|summary| summary.range.last);
    let is_new = |entry: &&LogEntry| covered.is_none_or(|last| entry.seq > last);
    let entries: Vec<&LogEntry> = entries.iter().filter(is_new).collect();
    let mut recent = Recent::new(entries.first()?.seq);
    entries.iter().for_each(|entry| recent.push(entry));
    let (cut, costs) = recent.cut(policy, None, &[])?;
    let ranges = [cut.history, cut.prefix];
    let new: u64 = ranges
        .into_iter()
        .flatten()
        .map(|range| costs.of(range))
        .sum();
    if new < policy.min_tokens {
        return None;
    }
    let mut files = previous.and_then(FileLedger::of).unwrap_or_default();
    let folded = entries.iter().filter(|entry| entry.seq < cut.kept);
    folded.for_each(|entry| files.add_entry(entry, conventions));
    files.end();
    let kept = entries.iter().filter(|entry| entry.seq >= cut.kept);
    let mut kept = kept.filter(|entry| entry.kind == EntryKind::Message);
    let since = entries.iter().map(|entry| entry.tokens);
    let entries_in = |range: Option<SeqRange>| {
        let inside = entries
            .iter()
            .filter(|entry| range.is_some_and(|range| range.contains(entry.seq)));
        inside.map(|entry| LogEntry::clone(entry)).collect()
    };
    Some(Preparation {
        history: cut.history,
        turn_prefix: cut.prefix,
        kept_from: cut.kept,
        kept_from_id: kept.next().and_then(|entry| entry.external_id.clone()),
        tokens_before: since.fold(previous.map_or(0, |s| s.tokens), u64::saturating_add),
        history_entries: entries_in(cut.history),
        turn_prefix_entries: entries_in(cut.prefix),
        previous: previous.cloned(),
        policy: policy.clone(),
        files,
    })
}
