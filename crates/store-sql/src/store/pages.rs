//! Pages of answers, and lists of the fixed lengths that prepared SQL statements accept.

use memory_store::Page;

/// Returns `limit` plus one: the number of rows to request so that a next page is noticed.
pub(super) fn one_more(limit: usize) -> u64 {
    u32::try_from(limit.max(1)).map_or(u64::from(u32::MAX), |limit| u64::from(limit) + 1)
}

/// Makes a page of at most `limit` items. `items` may have one item more, which shows that there is a next page.
pub(super) fn page<T, C>(mut items: Vec<T>, limit: usize, cursor: impl Fn(&T) -> C) -> Page<T, C> {
    let limit = limit.max(1);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = if more { items.last().map(cursor) } else { None };
    Page { items, next }
}

/// Splits a list into lists of the fixed lengths that prepared SQL statements accept. The last list is filled up by
/// repeating its last item, which does not change the meaning of `in (…)`.
pub(super) fn batched<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let [large, middle, one] = crate::message::BATCHES;
    items
        .chunks(large)
        .map(|chunk| {
            let size = [one, middle, large]
                .into_iter()
                .find(|size| chunk.len() <= *size);
            let mut batch = chunk.to_vec();
            if let (Some(size), Some(last)) = (size, chunk.last()) {
                batch.resize(size, last.clone());
            }
            batch
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::batched;

    #[test]
    fn batches_have_few_sizes_and_all_items() {
        for len in [0_usize, 1, 2, 8, 9, 64, 65, 130] {
            let items: Vec<usize> = (0..len).collect();
            let batches = batched(&items);
            assert!(
                batches.iter().all(|b| [1, 8, 64].contains(&b.len())),
                "{len}"
            );
            let mut all: Vec<usize> = batches.into_iter().flatten().collect();
            all.dedup();
            assert_eq!(all, items);
        }
    }
}
