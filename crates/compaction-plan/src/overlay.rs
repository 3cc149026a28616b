//! A view with replacements that are not published yet.

use memory_model::{SeqRange, Span, SpanBody, SpanRange};

/// Replacements of ranges of a view by other spans. They are applied to the view's spans page by page.
///
/// ```
/// use compaction_plan::Overlay;
/// use memory_model::{SpanBody, Seq, SeqRange, Span, SpanRange, SummaryId};
///
/// let at = SeqRange::new(Seq(1), Seq(40)).unwrap();
/// let leaf = SpanBody::Summary { id: SummaryId::new("sum_0123456789abcdef"), depth: 0 };
/// let overlay = Overlay::new([(at, vec![Span::closed(at, leaf, 90)])]);
/// let open = SpanRange { first: Seq(1), last: None };
/// let view = overlay.apply(&[Span { range: open, body: SpanBody::Raw, tokens: 0 }]);
/// assert_eq!(view.len(), 2);
/// assert_eq!(view[1].range.first, Seq(41));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Replaced ranges with their new spans, in ascending order and without overlaps.
    pieces: Vec<(SeqRange, Vec<Span>)>,
}

impl Overlay {
    /// Creates an overlay from ranges and the spans that replace them. The ranges must not overlap, and the spans of
    /// each range must cover it exactly.
    pub fn new(pieces: impl IntoIterator<Item = (SeqRange, Vec<Span>)>) -> Self {
        let mut pieces: Vec<_> = pieces.into_iter().collect();
        pieces.sort_by_key(|(range, _)| *range);
        Self { pieces }
    }

    /// Returns whether the overlay contains no replacement.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Replaces the spans over `range` by `spans`. Discards earlier replacements inside the range.
    pub fn replace(&mut self, range: SeqRange, spans: Vec<Span>) {
        self.pieces.retain(|(piece, _)| !range.covers(piece));
        let place = self.pieces.partition_point(|(piece, _)| *piece < range);
        self.pieces.insert(place, (range, spans));
    }

    /// Returns the spans of a page after the replacements. The spans of a replacement appear on the page that contains
    /// its first position. A raw span (messages shown unchanged) that a replacement covers partly is cut, and its cost
    /// in tokens must be counted again. Neighbouring raw spans are not merged.
    #[must_use]
    pub fn apply(&self, page: &[Span]) -> Vec<Span> {
        let mut shown = Vec::with_capacity(page.len());
        for span in page {
            self.cover(span, &mut shown);
        }
        shown
    }

    /// Adds the parts of a span that no replacement covers, and the replacements that begin inside the span.
    fn cover(&self, span: &Span, shown: &mut Vec<Span>) {
        let from = self
            .pieces
            .partition_point(|(piece, _)| piece.last < span.range.first);
        let mut first = span.range.first;
        for (piece, spans) in self.pieces.iter().skip(from) {
            if span.range.last.is_some_and(|last| piece.first > last) {
                break;
            }
            if first < piece.first {
                let range = SpanRange {
                    first,
                    last: Some(piece.first.prev()),
                };
                shown.push(rest(span, range));
            }
            if piece.first >= span.range.first {
                shown.extend(spans.iter().cloned());
            }
            first = piece.last.next();
        }
        if span.range.last.is_none_or(|last| first <= last) {
            let range = SpanRange {
                first,
                last: span.range.last,
            };
            shown.push(rest(span, range));
        }
    }
}

/// Returns the part of a span inside `range`. Only raw and omitted spans are cut.
fn rest(span: &Span, range: SpanRange) -> Span {
    Span {
        range,
        body: span.body.clone(),
        tokens: match (&span.body, range == span.range) {
            (SpanBody::Raw | SpanBody::Omitted, false) => 0,
            _ => span.tokens,
        },
    }
}
