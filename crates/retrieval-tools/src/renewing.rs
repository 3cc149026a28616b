//! Finds passages of `recall` that later passages change, adds these changes to them, and adjusts the scores.

use memory_model::Role;
use memory_search::{Changes, Said};

use crate::recall::{Passage, PassageChange};

/// Factor for the score of a passage if a later passage changes the statement that the question asks for.
const STALE: f64 = 0.5;

/// Maximum number of changes that are shown with a passage.
const SHOWN_CHANGES: usize = 3;

/// Maximum length of a shown change, in characters.
const CHANGE_CHARS: usize = 120;

/// Adds to each passage its changes by later passages. If the question asks for a changed statement, the passage with
/// the later statement gets a score above the passage with the earlier one.
pub(crate) fn renew(passages: &mut [Passage], question: &str) {
    let is_agent = passages.iter().any(|one| one.role == Some(Role::Tool));
    let is_said = |one: &&mut Passage| one.role.is_some_and(|role| role != Role::Tool);
    // In the order of the log.
    let mut said: Vec<&mut Passage> = passages.iter_mut().filter(is_said).collect();
    said.sort_by_key(|one| one.seq);
    let texts = said.iter().map(|one| read(&one.text, one.role, is_agent));
    let changes = Changes::new(texts.collect(), question);
    // For each passage, the index of the last passage that changes the statement in question.
    let mut stale: Vec<Option<usize>> = vec![None; said.len()];
    for (place, newest) in stale.iter_mut().enumerate() {
        let mut all = changes.of(place);
        // Changes of the statement in question come first.
        all.sort_by_key(|change| !change.is_asked);
        let mut shown: Vec<PassageChange> = Vec::new();
        for change in all {
            if change.is_asked {
                *newest = (*newest).max(Some(change.by));
            }
            let change = said.get(change.by).map(|by| PassageChange {
                seq: by.seq,
                text: short(change.statement.text()),
            });
            if shown.len() < SHOWN_CHANGES {
                shown.extend(change.filter(|one| !shown.contains(one)));
            }
        }
        if let Some(passage) = said.get_mut(place) {
            passage.changed = shown;
        }
    }
    let mut scores: Vec<f64> = said.iter().map(|one| one.score).collect();
    let score = |scores: &[f64], place: usize| scores.get(place).copied().unwrap_or_default();
    let set = |scores: &mut [f64], place: usize, new: f64| {
        scores.get_mut(place).into_iter().for_each(|one| *one = new);
    };
    let changed = stale.iter().enumerate();
    let changed = changed.filter_map(|(place, by)| Some((place, (*by)?)));
    for (place, _) in changed.clone() {
        let own = score(&scores, place);
        set(&mut scores, place, own * STALE);
    }
    for (place, by) in changed.clone() {
        let before = said.get(place).map_or(0.0, |one| one.score);
        let best = score(&scores, by).max(before);
        set(&mut scores, by, best);
    }
    // From the latest passage to the earliest, so that the score of a changing passage is final before it is used.
    for (place, by) in changed.rev() {
        let most = score(&scores, by) * BELOW;
        let own = score(&scores, place);
        set(&mut scores, place, own.min(most));
    }
    // Of two answers that may be equally good, the later one gets the higher score.
    for (place, by) in stale.iter().enumerate().rev() {
        if let (None, Some(newer)) = (by, changes.newer_answer(place))
            && stale.get(newer).is_some_and(Option::is_none)
        {
            let own = score(&scores, place);
            let best = score(&scores, newer).max(own / BELOW);
            set(&mut scores, newer, best);
        }
    }
    for (passage, score) in said.into_iter().zip(scores) {
        passage.score = score;
    }
}

/// Reads the statements of a message. In a conversation with tools, the words of the assistant are narration.
pub(crate) fn read(text: &str, role: Option<Role>, is_agent: bool) -> Said {
    let said = Said::of(text);
    match is_agent && role == Some(Role::Assistant) {
        true => said.as_narration(),
        false => said,
    }
}

/// Maximum score of a changed passage, relative to the score of the passage that changes it.
const BELOW: f64 = 0.999;

/// Returns the text of a change, shortened at its beginning, because a value is usually at the end.
fn short(text: &str) -> String {
    let text = text.trim_matches(|c: char| c.is_whitespace() || ",;".contains(c));
    let length = text.chars().count();
    if length <= CHANGE_CHARS {
        return text.to_owned();
    }
    let mut end: String = text.chars().skip(length - CHANGE_CHARS).collect();
    if let Some((_, rest)) = end.split_once(' ') {
        end = rest.to_owned();
    }
    format!("…{end}")
}
