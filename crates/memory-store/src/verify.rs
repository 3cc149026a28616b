//! Verification: is everything that was ever said still there, and does everything add up?

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use memory_model::{
    Accounting, Body, Child, ConversationId, Hash, LogEntry, Seq, SeqRange, SourceHasher, Span,
    SpanStart, Summary, SummaryId, View, ViewVersion, summary_id,
};
use serde::Serialize;
use token_estimate::EstimatorId;

use crate::error::{Error, ErrorKind, Result};
use crate::store::Store;
use crate::types::{
    Conversation, ConversationRef, LogRead, Order, Publication, Snapshot, ViewInfo,
    publication_hash,
};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// An entry of the log is missing.
    EntryMissing,
    /// An entry cannot be read.
    EntryUnreadable,
    /// An entry is not what was stored: its hash does not match its content.
    EntryChanged,
    /// The chain over a log's hashes does not match the log.
    ChainBroken,
    /// A token figure is not what the conversation's estimator gives.
    EstimatorMixed,
    /// A sum of token figures is wrong.
    SumWrong,
    /// A view's spans do not cover every position exactly once.
    SpansOverlap,
    /// A view's spans are not what its history of publications gives.
    ViewDiffers,
    /// The history of publications was changed or does not follow the rules.
    HistoryChanged,
    /// A view shows a summary that is missing or covers something else.
    SpanWrong,
    /// A summary is not what was stored.
    SummaryChanged,
    /// A summary's sources are not what it was made from.
    SourceChanged,
    /// A summary's children do not tile its range.
    ChildRangeWrong,
    /// A summary is not deeper than its children.
    Cycle,
    /// A summary's child is missing from the conversation, or belongs to another.
    ForeignLineage,
    /// The database's own structure is damaged: pages, indices, keys, triggers.
    Database,
    /// Anything else that contradicts itself.
    Other,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What.
    pub kind: ViolationKind,
    /// A sentence that names the object.
    pub message: String,
}

impl Violation {
    /// A violation; `message` is a sentence that names the object.
    pub fn new(kind: ViolationKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What a verification looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Log entries read.
    pub messages: u64,
    /// Summaries checked.
    pub summaries: u64,
    /// Views replayed.
    pub views: u64,
    /// What is wrong; empty when everything is right.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Whether everything is right.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    fn add(&mut self, kind: ViolationKind, message: impl Into<String>) {
        self.violations.push(Violation::new(kind, message));
    }
}

/// Verifies one conversation.
///
/// Reads the log once and checks that it is dense, that every entry hashes to what was recorded,
/// that the chain over the hashes and all token figures are right; that each summary's children
/// tile its range, exist, and hash to its source hash; and that each view follows from its
/// publications, covers every position once, and shows only what exists. By induction every
/// summary then expands to exactly its messages.
///
/// `accounting` gives the rules of the estimator that the conversation is recorded with.
///
/// # Errors
/// `NotFound`; and when the store cannot be read at all. What is wrong *in* the store is not an
/// error but a violation.
pub async fn verify<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    accounting: &(dyn Fn(&EstimatorId) -> Option<Arc<dyn Accounting>> + Send + Sync),
) -> Result<Report> {
    let found = store
        .conversation(&ConversationRef::Id(conversation))
        .await?;
    let Some(found) = found else {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no conversation {conversation}"),
        ));
    };
    let mut report = Report::default();
    let rules = accounting(&found.estimator);
    if rules.is_none() {
        let message = format!(
            "conversation {} is counted with {}, which is not known here: its token figures were \
             not checked",
            found.key, found.estimator
        );
        report.add(ViolationKind::EstimatorMixed, message);
    }
    let rules = rules.as_deref();
    let log = verify_log(store, &found, rules, &mut report).await?;
    let summaries = verify_summaries(store, &found, &log, rules, &mut report).await?;
    for view in store.views(conversation).await? {
        report.views += 1;
        verify_view(store, &found, &view, &log, &summaries, &mut report).await?;
    }
    Ok(report)
}

/// What the rest of a verification needs to know of the log: by position, from 1.
struct Log {
    hashes: Vec<Option<Hash>>,
    running: Vec<u64>,
}

impl Log {
    fn hash(&self, seq: Seq) -> Option<Hash> {
        self.hashes.get(seq.0 as usize - 1).copied().flatten()
    }

    fn cost(&self, range: SeqRange) -> u64 {
        let through = |seq: Seq| match seq.0 {
            0 => 0,
            n => self
                .running
                .get(n as usize - 1)
                .or(self.running.last())
                .copied()
                .unwrap_or(0),
        };
        through(range.last).saturating_sub(through(range.first.prev()))
    }
}

async fn verify_log<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    rules: Option<&dyn Accounting>,
    report: &mut Report,
) -> Result<Log> {
    let key = &conversation.key;
    let mut log = Log {
        hashes: Vec::new(),
        running: Vec::new(),
    };
    let mut chain = Hash::ZERO;
    let mut sum = 0u64;
    let mut rest = conversation.range();
    let mut expected = Seq::FIRST;
    while let Some(range) = rest {
        let page = read_what_can_be(store, conversation, range, report).await?;
        for (seq, entry) in page.entries {
            while expected < seq {
                report.add(
                    ViolationKind::EntryMissing,
                    format!("{key}: entry {expected} is missing"),
                );
                log.hashes.push(None);
                log.running.push(sum);
                expected = expected.next();
            }
            expected = expected.next();
            let Some(entry) = entry else {
                log.hashes.push(None);
                log.running.push(sum);
                continue;
            };
            report.messages += 1;
            let hash = match entry.message.body() {
                Ok(body) => entry.message.hash(&body),
                Err(_) => Hash::ZERO,
            };
            if hash != entry.hash {
                let message =
                    format!("{key}: entry {seq} is not what was stored: its hash differs");
                report.add(ViolationKind::EntryChanged, message);
            }
            if let Some(rules) = rules {
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
            sum = sum.saturating_add(entry.tokens);
            if sum != entry.running {
                let message = format!(
                    "{key}: the running sum at entry {seq} is {}, but the figures give {sum}",
                    entry.running
                );
                report.add(ViolationKind::SumWrong, message);
                sum = entry.running;
            }
            if seq >= conversation.own_first() {
                chain = chain.chain(hash);
            }
            log.hashes.push(Some(hash));
            log.running.push(sum);
        }
        rest = page.next;
    }
    while expected <= conversation.head {
        report.add(
            ViolationKind::EntryMissing,
            format!("{key}: entry {expected} is missing"),
        );
        log.hashes.push(None);
        log.running.push(sum);
        expected = expected.next();
    }
    if chain != conversation.chain {
        let message = format!("{key}: the chain over the log's hashes does not match the log");
        report.add(ViolationKind::ChainBroken, message);
    }
    if sum != conversation.tokens {
        let message = format!(
            "{key}: the log is recorded with {} tokens, but its entries give {sum}",
            conversation.tokens
        );
        report.add(ViolationKind::SumWrong, message);
    }
    Ok(log)
}

struct ReadPage {
    entries: Vec<(Seq, Option<LogEntry>)>,
    next: Option<SeqRange>,
}

/// Reads a page; where an entry cannot be read, reads one by one and reports which.
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
    let mut seq = range.first;
    while seq <= last {
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
        seq = seq.next();
    }
    Ok(ReadPage {
        entries,
        next: SeqRange::new(last.next(), range.last),
    })
}

async fn verify_summaries<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    log: &Log,
    rules: Option<&dyn Accounting>,
    report: &mut Report,
) -> Result<BTreeMap<SummaryId, Summary>> {
    let key = &conversation.key;
    let mut summaries: BTreeMap<SummaryId, Summary> = BTreeMap::new();
    let mut after: Option<SummaryId> = None;
    loop {
        let page = store
            .summary_log(conversation.id, after.as_ref(), 256)
            .await?;
        for summary in page.items {
            report.summaries += 1;
            summaries.insert(summary.id.clone(), summary);
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    for summary in summaries.values() {
        let id = &summary.id;
        if summary.hash != summary.expected_hash() || *id != summary_id(summary.hash) {
            let message = format!("{key}: {id} is not what was stored: its hash or id differs");
            report.add(ViolationKind::SummaryChanged, message);
        }
        verify_children(key.as_str(), conversation, summary, &summaries, log, report);
        if let Some(rules) = rules {
            let tokens = rules.summary(summary);
            if tokens != summary.tokens {
                let message = format!(
                    "{key}: {id} is recorded with {} tokens, but {} gives {tokens}",
                    summary.tokens,
                    rules.estimator_id()
                );
                report.add(ViolationKind::EstimatorMixed, message);
            }
        }
    }
    Ok(summaries)
}

fn verify_children(
    key: &str,
    conversation: &Conversation,
    summary: &Summary,
    summaries: &BTreeMap<SummaryId, Summary>,
    log: &Log,
    report: &mut Report,
) {
    let id = &summary.id;
    let mut next = summary.range.first;
    let mut source = SourceHasher::new();
    let mut cost = 0u64;
    let mut whole = true;
    for child in &summary.children {
        let range = child.range();
        if range.first != next || range.last > conversation.head {
            whole = false;
            let message =
                format!("{key}: the child {range} of {id} does not follow the one before");
            report.add(ViolationKind::ChildRangeWrong, message);
        }
        next = range.last.next();
        match child {
            Child::Messages { range } => {
                cost = cost.saturating_add(log.cost(*range));
                let mut seq = range.first;
                while seq <= range.last.min(conversation.head) {
                    match log.hash(seq) {
                        Some(hash) => source.message(hash),
                        None => whole = false,
                    }
                    seq = seq.next();
                }
            }
            Child::Summary { range, id: child } => match summaries.get(child) {
                None => {
                    whole = false;
                    let message = format!(
                        "{key}: {id} was made from {child}, which is not in this conversation"
                    );
                    report.add(ViolationKind::ForeignLineage, message);
                }
                Some(constituent) => {
                    source.summary(constituent.hash);
                    cost = cost.saturating_add(constituent.tokens);
                    if constituent.range != *range {
                        let message = format!(
                            "{key}: {id} was made from {child} over {range}, but {child} covers {}",
                            constituent.range
                        );
                        report.add(ViolationKind::ChildRangeWrong, message);
                    }
                    if constituent.depth >= summary.depth {
                        let message = format!(
                            "{key}: {id} of depth {} was made from {child} of depth {}: summaries \
                             must not contain themselves",
                            summary.depth, constituent.depth
                        );
                        report.add(ViolationKind::Cycle, message);
                    }
                }
            },
        }
    }
    if next != summary.range.last.next() {
        whole = false;
        let message = format!(
            "{key}: the children of {id} end at {}, not at {}",
            next.prev(),
            summary.range.last
        );
        report.add(ViolationKind::ChildRangeWrong, message);
    }
    let deepest = summary
        .children
        .iter()
        .filter_map(|child| summaries.get(child.summary()?))
        .map(|child| child.depth)
        .max();
    if whole && summary.depth != deepest.map_or(0, |depth| depth.saturating_add(1)) {
        let message = format!(
            "{key}: {id} has depth {}, which its children do not give",
            summary.depth
        );
        report.add(ViolationKind::Cycle, message);
    }
    if whole && source.finish() != summary.source_hash {
        let message = format!("{key}: the sources of {id} are not what it was made from");
        report.add(ViolationKind::SourceChanged, message);
    }
    if whole && cost != summary.source_tokens {
        let message = format!(
            "{key}: the sources of {id} are recorded with {} tokens, but cost {cost}",
            summary.source_tokens
        );
        report.add(ViolationKind::SumWrong, message);
    }
}

async fn verify_view<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    view: &ViewInfo,
    log: &Log,
    summaries: &BTreeMap<SummaryId, Summary>,
    report: &mut Report,
) -> Result<()> {
    let name = format!("{}: view {}", conversation.key, view.name);
    let replayed = replay(store, conversation, view, &name, report).await?;
    let snapshot = Snapshot {
        conversation: conversation.id,
        head: conversation.head,
        log_tokens: conversation.tokens,
        view: view.name.clone(),
        version: view.version,
        saved: view.saved,
    };
    let live = live_spans(store, &snapshot, conversation.head.next()).await?;
    let starts: Vec<SpanStart> = live
        .iter()
        .map(|span| SpanStart {
            first: span.range.first,
            body: span.body.clone(),
            tokens: span.tokens,
        })
        .collect();
    if let Err(problem) = View::from_starts(&starts) {
        report.add(ViolationKind::SpansOverlap, format!("{name}: {problem}"));
    }
    if starts != replayed {
        let message = format!("{name} is not what its publications give");
        report.add(ViolationKind::ViewDiffers, message);
    }
    let mut saved = 0i128;
    for span in &live {
        let Some(range) = span.closed_range() else {
            continue;
        };
        if span.body == Body::Raw {
            continue;
        }
        if range.last > conversation.head {
            let message = format!("{name}: the span {range} lies beyond the log's end");
            report.add(ViolationKind::SpansOverlap, message);
        }
        saved += i128::from(log.cost(range)) - i128::from(span.tokens);
        if let Body::Summary { id, depth } = &span.body {
            let right = summaries.get(id).is_some_and(|summary| {
                summary.range == range && summary.depth == *depth && summary.tokens == span.tokens
            });
            if !right {
                let message = format!("{name}: the span {range} does not show {id} as it is");
                report.add(ViolationKind::SpanWrong, message);
            }
        }
    }
    if saved != i128::from(view.saved) {
        let message = format!(
            "{name} is recorded as saving {} tokens, but it saves {saved}",
            view.saved
        );
        report.add(ViolationKind::SumWrong, message);
    }
    Ok(())
}

/// Replays a view's publications from the beginning and returns the rows that they give.
async fn replay<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    view: &ViewInfo,
    name: &str,
    report: &mut Report,
) -> Result<Vec<SpanStart>> {
    let first = SpanStart {
        first: Seq::FIRST,
        body: Body::Raw,
        tokens: 0,
    };
    let mut rows: BTreeMap<Seq, SpanStart> = BTreeMap::from([(Seq::FIRST, first)]);
    let mut chain = Hash::ZERO;
    let mut version = ViewVersion(0);
    loop {
        let page = store
            .publications(conversation.id, &view.name, version, 256)
            .await?;
        for publication in &page.items {
            if publication.version != version.next() {
                let message = format!(
                    "{name}: version {} is missing from its history",
                    version.next()
                );
                report.add(ViolationKind::HistoryChanged, message);
            }
            version = publication.version;
            chain = publication_hash(
                chain,
                version,
                publication.at,
                &publication.removed,
                &publication.added,
            );
            if chain != publication.hash {
                let message = format!("{name}: the history was changed at version {version}");
                report.add(ViolationKind::HistoryChanged, message);
                chain = publication.hash;
            }
            if let Err(problem) = apply(&mut rows, publication) {
                let message = format!("{name}: version {version} {problem}");
                report.add(ViolationKind::HistoryChanged, message);
            }
        }
        if page.next.is_none() {
            break;
        }
    }
    if version != view.version || chain != view.chain {
        let message = format!(
            "{name} has version {}, but its history ends at {version}",
            view.version
        );
        report.add(ViolationKind::HistoryChanged, message);
    }
    Ok(rows.into_values().collect())
}

/// Applies a publication to the rows; it must change what stands for its range and nothing else.
fn apply(
    rows: &mut BTreeMap<Seq, SpanStart>,
    publication: &Publication,
) -> std::result::Result<(), String> {
    let at = publication.at;
    let body_at = |rows: &BTreeMap<Seq, SpanStart>, seq: Seq| {
        rows.range(..=seq)
            .next_back()
            .map(|(_, row)| row.body.clone())
    };
    let before = [
        body_at(rows, at.first.prev()),
        body_at(rows, at.last.next()),
    ];
    for row in &publication.removed {
        if rows.remove(&row.first).as_ref() != Some(row) {
            return Err(format!("ends a span at {} that was not there", row.first));
        }
    }
    for row in &publication.added {
        if rows.insert(row.first, row.clone()).is_some() {
            return Err(format!("begins a span at {} where one was", row.first));
        }
    }
    let outside = publication
        .removed
        .iter()
        .chain(&publication.added)
        .any(|row| row.first > at.last.next());
    let after = [
        body_at(rows, at.first.prev()),
        body_at(rows, at.last.next()),
    ];
    if outside || before != after {
        return Err(format!("changes more than {at}"));
    }
    Ok(())
}

async fn live_spans<S: Store + ?Sized>(
    store: &S,
    snapshot: &Snapshot,
    last: Seq,
) -> Result<Vec<Span>> {
    let mut spans = Vec::new();
    let mut rest = SeqRange::new(Seq::FIRST, last);
    while let Some(range) = rest {
        let page = store
            .spans(snapshot, range, Order::OldestFirst, 1024)
            .await?;
        spans.extend(page.items);
        rest = page.next;
    }
    Ok(spans)
}
