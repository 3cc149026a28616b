//! Checks that every store makes before it publishes, as functions without I/O.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{
    Child, Seq, SeqRange, Span, SpanBody, SpliceError, Summary, SummaryId, ViewVersion, summary_id,
};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{Publish, Published};

/// Facts about a stored summary to which a publish refers, by its spans or by its own summaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSummary {
    /// Range of messages that the summary covers.
    pub range: SeqRange,
    /// Number of levels of summaries below the summary: 0 for a leaf, which summarizes messages.
    pub depth: u32,
    /// Cost of the summary, in tokens.
    pub tokens: u64,
}

impl From<&Summary> for KnownSummary {
    fn from(summary: &Summary) -> Self {
        Self {
            range: summary.range,
            depth: summary.depth,
            tokens: summary.tokens,
        }
    }
}

/// Checks that all publishes of one call name the same view.
///
/// # Errors
/// `Invalid` if they name different views. The message names two of the views.
pub fn check_one_view(publishes: &[Publish]) -> Result<()> {
    for (a, b) in publishes.iter().zip(publishes.iter().skip(1)) {
        if a.view != b.view {
            return Err(invalid(format!(
                "cannot publish to the views {} and {} in one call: call once for each",
                a.view, b.view
            )));
        }
    }
    Ok(())
}

/// Returns the outcome of a publish whose spans could not be spliced into the view (the compacted log) at `version`.
/// `error` is the error of the splice. The outcome is `Already` if the view already has the new spans, else `Lost`.
///
/// # Errors
/// `Invalid` if the new spans fit no view: they have a gap or an overlap, or cut through a span that cannot be divided.
pub fn unfit(publish: &Publish, version: ViewVersion, error: SpliceError) -> Result<Published> {
    match error {
        SpliceError::Lost { found } => {
            let same = found.len() == publish.spans.len()
                && found.iter().zip(&publish.spans).all(|(a, b)| a.same(b));
            Ok(match same {
                true => Published::Already(version),
                false => Published::Lost { found },
            })
        }
        error => Err(Error::new(ErrorKind::Invalid, error.to_string()).with_source(error)),
    }
}

/// Checks everything in a publish that can be checked without the store. `head` is the last position of the log.
/// Returns the ids of all summaries to which the publish refers. The store must look these ids up and pass the
/// summaries to [`check_references`]. A summary that the store already has does not change.
///
/// # Errors
/// `Invalid` if a span or a summary is wrong. The message names it.
pub fn check_shape(publish: &Publish, head: Seq) -> Result<BTreeSet<SummaryId>> {
    let at = publish.at;
    if SeqRange::new(at.first, at.last).is_none() {
        return Err(invalid(format!(
            "cannot publish over {at}: it is not a range"
        )));
    }
    if at.last > head {
        return Err(invalid(format!(
            "cannot publish over {at}: the log ends at {head}"
        )));
    }
    tile(
        "the new spans",
        at,
        publish.spans.iter().map(Span::closed_range),
    )?;
    let given: BTreeMap<&SummaryId, &Summary> = publish
        .summaries
        .iter()
        .map(|summary| (&summary.id, summary))
        .collect();
    if given.len() != publish.summaries.len() {
        return Err(invalid(format!(
            "the publish over {at} contains a summary twice"
        )));
    }
    let mut referred = BTreeSet::new();
    for summary in &publish.summaries {
        check_summary(summary)?;
        let children = summary.children.iter().filter_map(Child::summary);
        referred.extend(children.chain(summary.source_summaries()).cloned());
    }
    referred.extend(
        publish
            .spans
            .iter()
            .filter_map(|span| span.body.summary())
            .cloned(),
    );
    for id in given.keys() {
        if !referred.contains(*id) {
            return Err(invalid(format!(
                "the publish over {at} contains {id}, but its spans and summaries do not use it"
            )));
        }
    }
    Ok(referred)
}

/// Checks one summary without the store: its children cover exactly its range, its sources do not end after its range,
/// and its id and hash follow from its content.
fn check_summary(summary: &Summary) -> Result<()> {
    let id = &summary.id;
    if SeqRange::new(summary.range.first, summary.range.last).is_none() {
        return Err(invalid(format!(
            "{id} covers {}, which is not a range",
            summary.range
        )));
    }
    let name = format!("the children of {id}");
    tile(
        &name,
        summary.range,
        summary.children.iter().map(|child| Some(child.range())),
    )?;
    if summary.sources.is_empty() {
        return Err(invalid(format!("{id} has no sources")));
    }
    for source in summary.sources.iter().map(Child::range) {
        // Forks see summaries within the range that they share, so the sources must be shared too.
        if SeqRange::new(source.first, source.last).is_none() || source.last > summary.range.last {
            return Err(invalid(format!(
                "the source {source} of {id} is not a range up to {}",
                summary.range.last
            )));
        }
    }
    if summary.hash != summary.expected_hash() || *id != summary_id(summary.hash) {
        return Err(invalid(format!(
            "the hash or id of {id} does not match its content"
        )));
    }
    let leaf = summary
        .children
        .iter()
        .all(|child| child.summary().is_none());
    if leaf != (summary.depth == 0) {
        return Err(invalid(format!(
            "{id} has depth {}, which does not match its children",
            summary.depth
        )));
    }
    Ok(())
}

/// Checks that the spans and summaries of a publish agree with the summaries to which they refer. `stored` contains the
/// conversation's summaries with the ids that [`check_shape`] returned.
///
/// # Errors
/// `Invalid` if a reference does not agree. The message names the summary.
pub fn check_references(
    publish: &Publish,
    stored: &BTreeMap<SummaryId, KnownSummary>,
) -> Result<()> {
    let given: BTreeMap<&SummaryId, KnownSummary> = publish
        .summaries
        .iter()
        .map(|summary| (&summary.id, summary.into()))
        .collect();
    let find = |id: &SummaryId| {
        stored.get(id).or_else(|| given.get(id)).ok_or_else(|| {
            invalid(format!(
                "{id} is neither in the publish nor in the conversation"
            ))
        })
    };
    for span in &publish.spans {
        let SpanBody::Summary { id, depth } = &span.body else {
            continue;
        };
        let summary = find(id)?;
        let right = Some(summary.range) == span.closed_range()
            && summary.depth == *depth
            && summary.tokens == span.tokens;
        if !right {
            return Err(invalid(format!(
                "the span {} differs from its summary {id} in range, depth or tokens",
                span.range
            )));
        }
    }
    for summary in &publish.summaries {
        let mut deepest = None;
        for child in &summary.children {
            let known = reference(summary, child, "child", find)?;
            deepest = deepest.max(known.map(|known| known.depth));
        }
        for source in &summary.sources {
            reference(summary, source, "source", find)?;
        }
        let depth = deepest.map_or(0, |deepest| deepest.saturating_add(1));
        if depth != summary.depth {
            return Err(invalid(format!(
                "{} has depth {}, but its children give {depth}",
                summary.id, summary.depth
            )));
        }
    }
    Ok(())
}

/// Returns the range, depth and cost of a child or source of a summary, and checks that the child or source covers the
/// given range.
fn reference<'k>(
    summary: &Summary,
    named: &Child,
    role: &str,
    find: impl Fn(&SummaryId) -> Result<&'k KnownSummary>,
) -> Result<Option<&'k KnownSummary>> {
    let Child::Summary { range, id } = named else {
        return Ok(None);
    };
    let known = find(id)?;
    if known.range != *range {
        return Err(invalid(format!(
            "{} names {id} as its {role} over {range}, but {id} covers {}",
            summary.id, known.range
        )));
    }
    Ok(Some(known))
}

/// Returns the total cost of spans in a context, in tokens. `raw` returns the cost of the messages of a range, in
/// tokens.
pub fn spans_cost(spans: &[Span], raw: impl Fn(SeqRange) -> u64) -> u64 {
    spans
        .iter()
        .map(|span| match (&span.body, span.closed_range()) {
            (SpanBody::Raw, Some(range)) => raw(range),
            (SpanBody::Raw | SpanBody::Omitted, _) => 0,
            _ => span.tokens,
        })
        .fold(0, u64::saturating_add)
}

fn tile(what: &str, range: SeqRange, pieces: impl Iterator<Item = Option<SeqRange>>) -> Result<()> {
    let mut next = range.first;
    for piece in pieces {
        match piece {
            Some(piece) if piece.first == next && piece.first <= piece.last => {
                next = piece.last.next();
            }
            _ => {
                return Err(invalid(format!(
                    "{what} do not tile {range}: one should begin at {next}"
                )));
            }
        }
    }
    if next != range.last.next() {
        return Err(invalid(format!(
            "{what} do not tile {range}: they end at {}",
            next.prev()
        )));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
