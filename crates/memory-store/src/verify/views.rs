//! Checks of views: their spans match their publications, and cover every position once.

use std::collections::BTreeMap;

use memory_model::{Hash, Seq, SeqRange, Span, SpanBody, SpanStart, View, ViewVersion, spans_of};

use super::scope::{Facts, Scope};
use crate::error::Result;
use crate::store::Store;
use crate::types::{Conversation, Order, Publication, Snapshot, ViewInfo, publication_hash};
use crate::violation::{Report, ViolationKind};

pub(super) async fn verify<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    view: &ViewInfo,
    scope: &Scope<'_>,
    report: &mut Report,
) -> Result<()> {
    let name = format!("{}: view {}", conversation.key, view.name);
    let replayed = replay(store, conversation, view, &name, report).await?;
    let snapshot = Snapshot {
        erasures: conversation.erasures,
        conversation: conversation.id,
        head: conversation.head,
        log_tokens: conversation.tokens,
        view: view.name.clone(),
        version: view.version,
        saved: view.saved,
        spans: view.spans,
    };
    let live = live_spans(store, &snapshot, &name, report).await?;
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
    let whole = spans_of(&starts, None);
    for (span, whole) in live.iter().zip(&whole) {
        if span.range != whole.range {
            let message = format!(
                "{name}: a span reaches over {}, but it should reach over {}",
                span.range, whole.range
            );
            report.add(ViolationKind::SpansOverlap, message);
        }
    }
    if view.spans != live.len() as u64 {
        let message = format!(
            "{name} is recorded with {} spans, but has {}",
            view.spans,
            live.len()
        );
        report.add(ViolationKind::ViewDiffers, message);
    }
    if starts != replayed {
        let message = format!("{name} does not match its publications");
        report.add(ViolationKind::ViewDiffers, message);
    }
    let mut saved = 0i128;
    for span in &live {
        let Some(range) = span.closed_range() else {
            continue;
        };
        if span.body == SpanBody::Raw {
            continue;
        }
        if range.last > conversation.head {
            let message = format!("{name}: the span {range} lies beyond the log's end");
            report.add(ViolationKind::SpansOverlap, message);
        }
        saved += i128::from(scope.cost(range)) - i128::from(span.tokens);
        verify_shown(&name, span, range, scope, report);
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

/// Checks a span with a summary against the summary that it shows.
fn verify_shown(name: &str, span: &Span, range: SeqRange, scope: &Scope<'_>, report: &mut Report) {
    let SpanBody::Summary { id, depth } = &span.body else {
        return;
    };
    let shown = scope.summary(id);
    let right = shown.is_some_and(|summary| {
        summary.range == range && summary.depth == *depth && summary.tokens == span.tokens
    });
    let reaches_out = |summary: &&Facts| {
        range.intersect(&summary.range).is_some() && !range.covers(&summary.range)
    };
    if let Some(summary) = shown.filter(reaches_out) {
        let message = format!(
            "{name}: the span {range} shows {id}, which covers {}: it reaches into its \
             neighbours",
            summary.range
        );
        report.add(ViolationKind::SpansOverlap, message);
    } else if !right {
        let message = format!("{name}: the span {range} differs from {id} in depth or tokens");
        report.add(ViolationKind::SpanWrong, message);
    }
}

/// Replays all publications of a view from the beginning, and returns the starts of the resulting spans.
async fn replay<S: Store + ?Sized>(
    store: &S,
    conversation: &Conversation,
    view: &ViewInfo,
    name: &str,
    report: &mut Report,
) -> Result<Vec<SpanStart>> {
    let mut rows: BTreeMap<Seq, SpanStart> = BTreeMap::from([(Seq::FIRST, SpanStart::FIRST)]);
    let mut chain = Hash::ZERO;
    let mut version = ViewVersion(0);
    loop {
        let page = store
            .publications(conversation.id, &view.name, version, 256)
            .await?;
        let before = version;
        // Publications with later versions were added while this verification ran.
        for publication in page.items.iter().filter(|p| p.version <= view.version) {
            if publication.version <= version {
                let message = format!(
                    "{name}: version {} is repeated after version {version}",
                    publication.version
                );
                report.add(ViolationKind::HistoryChanged, message);
                continue;
            }
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
        if page.next.is_none() || version == view.version || version == before {
            break;
        }
    }
    if version != view.version {
        let message = format!(
            "{name} has version {}, but its history ends at {version}",
            view.version
        );
        report.add(ViolationKind::HistoryChanged, message);
    }
    if chain != view.chain {
        let message = format!("{name}: the chain over its history does not match the history");
        report.add(ViolationKind::HistoryChanged, message);
    }
    Ok(rows.into_values().collect())
}

/// Applies a publication to the span starts (rows) of a view. Reports a publication that changes spans outside of its
/// range.
fn apply(
    rows: &mut BTreeMap<Seq, SpanStart>,
    publication: &Publication,
) -> std::result::Result<(), String> {
    let at = publication.at;
    let row_at = |rows: &BTreeMap<Seq, SpanStart>, seq: Seq| {
        rows.range(..=seq).next_back().map(|(_, row)| row.clone())
    };
    let body_at = |rows: &BTreeMap<Seq, SpanStart>, seq| row_at(rows, seq).map(|row| row.body);
    // To the left of the range only the adjacent row may change, because a new span may be merged with it.
    let left = row_at(rows, at.first.prev()).map_or(at.first, |row| row.first);
    let before = [
        body_at(rows, at.first.prev()),
        body_at(rows, at.last.next()),
    ];
    for row in &publication.removed {
        if rows.remove(&row.first).as_ref() != Some(row) {
            return Err(format!(
                "removes a span at {} that does not exist",
                row.first
            ));
        }
    }
    for row in &publication.added {
        if rows.insert(row.first, row.clone()).is_some() {
            return Err(format!("adds a span at {}, at which one exists", row.first));
        }
    }
    let outside = publication
        .removed
        .iter()
        .chain(&publication.added)
        .any(|row| row.first > at.last.next() || (row.first < at.first && row.first != left));
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
    name: &str,
    report: &mut Report,
) -> Result<Vec<Span>> {
    let mut spans = Vec::new();
    let mut rest = SeqRange::new(Seq::FIRST, Seq(u32::MAX));
    while let Some(range) = rest {
        let page = store
            .spans(snapshot, range, Order::OldestFirst, 1024)
            .await?;
        spans.extend(page.items);
        rest = page.next;
        if rest.is_some_and(|next| next.first <= range.first || next.last > range.last) {
            let message = format!("{name}: reading its spans does not end");
            report.add(ViolationKind::Other, message);
            break;
        }
    }
    Ok(spans)
}
