//! What a summary without some of its lines keeps beside its text.

use std::collections::BTreeMap;

use memory_model::{RawJson, Summary};

use crate::details::{Details, JobSource, WrittenText};

/// Name of the fact: the number of lines that were left out, those left out earlier included.
const DROPPED: &str = "dropped_lines";
/// Facts about the making of one summary, which are no facts of another.
const OF_ONE: [&str; 7] = [
    "target_tokens",
    "tokens_in",
    "tokens_out",
    "model_calls",
    "scores",
    "refused",
    "figures",
];

/// Number of lines that are not blank.
pub(super) fn lines(text: &str) -> u64 {
    let lines = text.split('\n').filter(|line| !line.trim().is_empty());
    lines.count() as u64
}

/// Returns the facts of the summary that the text was made from, and how many of its lines are gone.
pub(super) fn kept(written: &WrittenText<'_>) -> Details {
    let Some(JobSource::Summary(before)) = written.sources.first() else {
        return Details::default();
    };
    let mut facts = facts_of(before);
    let earlier = facts.remove(DROPPED);
    let earlier = earlier.and_then(|count| serde_json::from_str::<u64>(count.as_str()).ok());
    let gone = lines(before.text()).saturating_sub(lines(written.text));
    let gone = gone.saturating_add(earlier.unwrap_or_default());
    if let Ok(gone) = RawJson::from_value(&gone) {
        facts.insert(DROPPED.to_owned(), gone);
    }
    Details {
        facts,
        ..Details::default()
    }
}

fn facts_of(summary: &Summary) -> BTreeMap<String, RawJson> {
    let meta = summary.meta.as_ref();
    let read = meta.map(|meta| serde_json::from_str::<BTreeMap<String, RawJson>>(meta.as_str()));
    let mut facts = read.and_then(Result::ok).unwrap_or_default();
    facts.retain(|name, _| !OF_ONE.contains(&name.as_str()));
    facts
}
