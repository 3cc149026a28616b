//! Chooses the segments that are merged into one.

use memory_store::{IndexSegment, IndexedKind};

use super::extension::{LEAST_MESSAGES, LEAST_SUMMARIES};

/// Number of segments of one size that are merged into a segment of the next size.
const MERGED: usize = 4;

/// Maximum number of documents in a merged segment.
const MOST_MERGED: u32 = 65_536;

/// Returns the segments of one kind to merge into one: the last two or more, or none.
///
/// If there are none, no segment is larger than the one before it, and fewer than [`MERGED`] segments have the same
/// size. The number of segments therefore stays small. Segments that together would exceed [`MOST_MERGED`] documents
/// are not merged.
pub(super) fn to_merge<'s, 'i>(segments: &'s [&'i IndexSegment]) -> &'s [&'i IndexSegment] {
    let Some(newest) = segments.last() else {
        return &[];
    };
    let largest = size(newest);
    let mut documents = 0_u32;
    let fits = |one: &&&IndexSegment| {
        documents = one.documents.saturating_add(documents);
        size(one) <= largest && documents <= MOST_MERGED
    };
    let count = segments.iter().rev().take_while(fits).count();
    let last = segments.get(segments.len() - count..).unwrap_or_default();
    if last.len() >= MERGED {
        return last;
    }
    let smaller = last.iter().position(|one| size(one) < largest);
    smaller
        .and_then(|first| last.get(first..))
        .unwrap_or_default()
}

/// Returns the size of a segment as an exponent of [`MERGED`], relative to the minimum size.
fn size(segment: &IndexSegment) -> u32 {
    let least = match segment.kind {
        IndexedKind::Messages | IndexedKind::States => LEAST_MESSAGES,
        IndexedKind::Summaries => LEAST_SUMMARIES,
    };
    (segment.documents / least as u32)
        .max(1)
        .ilog(MERGED as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(kind: IndexedKind, documents: u32) -> IndexSegment {
        IndexSegment {
            id: 0,
            kind,
            first: 1,
            last: documents,
            documents,
            format: String::new(),
        }
    }

    /// However many documents come at once, segments are few and each document is merged few times.
    #[test]
    fn segments_of_all_sizes_are_merged() {
        for (kind, least) in [(IndexedKind::Messages, 16), (IndexedKind::Summaries, 2)] {
            for seed in 0..30 {
                let rng = &mut fastrand::Rng::with_seed(seed);
                let most = [1, 2, 6, 64][rng.usize(..4)];
                let (mut sizes, mut written) = (Vec::new(), 0_u32);
                for _ in 0..2_000 {
                    sizes.push(least * rng.u32(1..=most));
                    loop {
                        let segments: Vec<_> =
                            sizes.iter().map(|size| segment(kind, *size)).collect();
                        let segments: Vec<&IndexSegment> = segments.iter().collect();
                        let merged = to_merge(&segments).len();
                        if merged == 0 {
                            break;
                        }
                        let all: u32 = sizes.split_off(sizes.len() - merged).iter().sum();
                        assert!(merged > 1 && all <= MOST_MERGED);
                        written += all;
                        sizes.push(all);
                    }
                }
                let documents: u32 = sizes.iter().sum();
                let full = documents / (MOST_MERGED / 2);
                assert!(sizes.len() as u32 <= full + 24, "{most}: {sizes:?}");
                assert!(written / documents < 7, "{most}: {written} of {documents}");
            }
        }
    }
}
