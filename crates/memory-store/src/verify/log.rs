//! Checks of a log: positions have no gap, entries are unchanged, and sums are right.

use memory_model::{Accounting, EntryKind, Hash, LogEntry, Seq, SeqRange};

use super::scope::Known;
use crate::erasure::{Erasures, erased_parts};
use crate::error::{ErrorKind, Result};
use crate::store::Store;
use crate::types::{Conversation, LogRead};
use crate::violation::{Report, ViolationKind};

/// Part of a conversation's log to check.
pub(super) struct Part {
    first: Seq,
    /// Positions of the part. `None` if the part has no entries.
    range: Option<SeqRange>,
    /// Running sum before the part, in tokens.
    start: u64,
    /// Whether the part is the conversation's whole own log.
    own: bool,
}

impl Part {
    /// Returns the part for a conversation's own log. `start` is the running sum before it.
    pub(super) fn own(conversation: &Conversation, start: u64) -> Self {
        let first = conversation.own_first();
        Self {
            first,
            range: SeqRange::new(first, conversation.head),
            start,
            own: true,
        }
    }

    /// Returns the part for a range that a fork shares with an ancestor. `start` is the running sum before it.
    pub(super) fn shared(range: SeqRange, start: u64) -> Self {
        Self {
            first: range.first,
            range: Some(range),
            start,
            own: false,
        }
    }
}

/// Reads and checks a part of the log that a conversation sees, and returns its entries.
pub(super) async fn verify<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    part: Part,
    rules: Option<&dyn Accounting>,
    erasures: &Erasures,
    report: &mut Report,
) -> Result<Vec<Known>> {
    let mut check = Check {
        conversation,
        rules,
        erasures,
        log: Vec::new(),
        chain: Hash::ZERO,
        sum: part.start,
        expected: part.first,
    };
    let mut rest = part.range;
    while let Some(range) = rest {
        let page = read_what_can_be(store, conversation, range, report).await?;
        external_ids(store, conversation, &page.entries, report).await?;
        for (seq, entry) in page.entries {
            check.entry(range, seq, entry, report);
        }
        rest = page.next;
        if rest.is_some_and(|next| next.first <= range.first || next.last > range.last) {
            let message = format!(
                "{}: the page after {range} begins at {}, which it already contains or skips: the rest was not read",
                conversation.key,
                rest.map_or(Seq::NONE, |next| next.first)
            );
            report.add(ViolationKind::Other, message);
            break;
        }
    }
    Ok(check.finish(&part, report))
}

/// State of a check that goes through the entries of a log in order.
struct Check<'a> {
    conversation: &'a Conversation,
    rules: Option<&'a dyn Accounting>,
    erasures: &'a Erasures,
    log: Vec<Known>,
    /// Chain hash over the recorded hashes of the entries so far.
    chain: Hash,
    sum: u64,
    expected: Seq,
}

impl Check<'_> {
    fn entry(&mut self, range: SeqRange, seq: Seq, entry: Option<LogEntry>, report: &mut Report) {
        let key = &self.conversation.key;
        if seq < self.expected || !range.contains(seq) {
            let message = format!(
                "{key}: entry {seq} is at the position of entry {}",
                self.expected
            );
            report.add(ViolationKind::EntryMisplaced, message);
            return;
        }
        self.missing_before(seq, report);
        self.expected = seq.next();
        let Some(entry) = entry else {
            self.log.push(Known {
                seq,
                hash: None,
                running: self.sum,
            });
            return;
        };
        report.messages += 1;
        report.notes += u64::from(entry.message.kind == EntryKind::Note);
        // Of an erased entry only the hash, the position and the cost are left to check.
        let erased = self.erasures.covers(seq);
        let hash = entry.message.body().map(|body| entry.message.hash(&body));
        if !erased && hash.ok() != Some(entry.hash) {
            let message = format!("{key}: entry {seq} was changed: its hash differs");
            report.add(ViolationKind::EntryChanged, message);
        }
        if erased && entry.message.parts != erased_parts(entry.tokens) {
            let message = format!("{key}: the words of entry {seq} were erased, and are back");
            report.add(ViolationKind::EntryChanged, message);
        }
        if let Some(rules) = self.rules.filter(|_| !erased) {
            let tokens = rules.message(&entry.message);
            if tokens != entry.tokens {
                let message = format!(
                    "{key}: entry {seq} is recorded with {} tokens, but {} gives {tokens}",
                    entry.tokens,
                    rules.estimator_id()
                );
                report.add(ViolationKind::EstimatorMixed, message);
            }
        }
        self.sum = self.sum.saturating_add(entry.tokens);
        if self.sum != entry.running {
            let message = format!(
                "{key}: the running sum at entry {seq} is {}, but the figures give {}",
                entry.running, self.sum
            );
            report.add(ViolationKind::SumWrong, message);
            self.sum = entry.running;
        }
        self.chain = self.chain.chain(entry.hash);
        self.log.push(Known {
            seq,
            hash: Some(entry.hash),
            running: self.sum,
        });
    }

    /// Reports the entries that are missing between the last checked entry and position `seq`.
    fn missing_before(&self, seq: Seq, report: &mut Report) {
        if let Some(missing) = SeqRange::new(self.expected, seq.prev()) {
            let message = match missing.len() {
                1 => format!(
                    "{}: entry {} is missing",
                    self.conversation.key, missing.first
                ),
                _ => format!("{}: entries {missing} are missing", self.conversation.key),
            };
            report.add(ViolationKind::EntryMissing, message);
        }
    }

    fn finish(self, part: &Part, report: &mut Report) -> Vec<Known> {
        let Conversation {
            key, head, tokens, ..
        } = self.conversation;
        let end = part.range.map_or(*head, |range| range.last);
        self.missing_before(end.next(), report);
        if !part.own {
            return self.log;
        }
        if self.chain != self.conversation.chain {
            let message = format!("{key}: the chain over the log's hashes does not match the log");
            report.add(ViolationKind::ChainBroken, message);
        }
        if self.sum != *tokens {
            let message = format!(
                "{key}: the log is recorded with {tokens} tokens, but its entries give {}",
                self.sum
            );
            report.add(ViolationKind::SumWrong, message);
        }
        self.log
    }
}

struct ReadPage {
    entries: Vec<(Seq, Option<LogEntry>)>,
    next: Option<SeqRange>,
}

/// Reads a page of entries. If an entry cannot be read, reads the entries one by one and reports the unreadable ones.
async fn read_what_can_be<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    range: SeqRange,
    report: &mut Report,
) -> Result<ReadPage> {
    match store.read(conversation.id, &LogRead::new(range)).await {
        Ok(page) => {
            let entries = page.items.into_iter().map(|e| (e.seq, Some(e))).collect();
            return Ok(ReadPage {
                entries,
                next: page.next,
            });
        }
        Err(error) if error.kind() == ErrorKind::Corrupt => {}
        Err(error) => return Err(error),
    }
    let last = Seq(range.first.0.saturating_add(255)).min(range.last);
    let mut entries = Vec::new();
    for seq in (range.first.0..=last.0).map(Seq) {
        match store
            .read(conversation.id, &LogRead::new(SeqRange::single(seq)))
            .await
        {
            Ok(page) => entries.extend(page.items.into_iter().map(|e| (e.seq, Some(e)))),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                report.add(
                    ViolationKind::EntryUnreadable,
                    format!("{}: {error}", conversation.key),
                );
                entries.push((seq, None));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(ReadPage {
        entries,
        next: SeqRange::new(last.next(), range.last),
    })
}

/// Checks that each entry with an external id is found by that id.
async fn external_ids<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    entries: &[(Seq, Option<LogEntry>)],
    report: &mut Report,
) -> Result<()> {
    let (mut ids, mut positions) = (Vec::new(), Vec::new());
    for (seq, entry) in entries {
        if let Some(id) = entry.as_ref().and_then(|entry| entry.external_id.clone()) {
            ids.push(id);
            positions.push(*seq);
        }
    }
    if ids.is_empty() {
        return Ok(());
    }
    let found = store.find(conversation.id, &ids).await?;
    for (index, (id, seq)) in ids.iter().zip(positions).enumerate() {
        let found = found.get(index).copied().flatten();
        if found != Some(seq) {
            let message = match found {
                Some(other) => format!(
                    "{}: entry {seq} has the id {id:?}, which is found at {other}",
                    conversation.key
                ),
                None => format!(
                    "{}: entry {seq} is not found by its id {id:?}",
                    conversation.key
                ),
            };
            report.add(ViolationKind::ExternalIdWrong, message);
        }
    }
    Ok(())
}
