//! Sizes of the parts of a database.

use std::collections::BTreeMap;

use memory_store::Usage;

/// Composes the sizes of the parts of a database from numbers by name: the bytes of each table; the number of `texts`
/// that are stored once and of their `uses`; the number of summaries of each tier; and of entries of each month.
pub fn usage_of(
    tables: BTreeMap<String, u64>,
    texts: &BTreeMap<String, u64>,
    tiers: BTreeMap<String, u64>,
    months: BTreeMap<String, u64>,
) -> Usage {
    let mut usage = Usage::default();
    for (table, bytes) in tables {
        let part = match table.as_str() {
            "message" | "payload" | "facts" | "conversation" | "family" | "erasure" => {
                &mut usage.log
            }
            "view" | "span" | "span_history" | "publication" => &mut usage.views,
            table if table.contains("summary") => &mut usage.summaries,
            table if table.starts_with("search_") || table.contains("vector") => &mut usage.search,
            _ => &mut usage.other,
        };
        *part += bytes;
    }
    let number = |name| texts.get(name).copied().unwrap_or(0);
    (usage.texts, usage.uses_of_texts) = (number("texts"), number("uses"));
    (usage.tiers, usage.months) = (tiers, months);
    usage
}
