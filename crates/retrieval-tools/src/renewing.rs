//! Which passages of `recall` later messages changed, and how these change their order.

use memory_model::{Role, Seq, SummaryId};
use memory_search::{Changes, Hit, HitTarget, Said};

use crate::recall::PassageChange;

/// Factor on the score of a passage that a later message changed.
const STALE: f64 = 0.5;

/// Most changes that are shown with a passage.
const SHOWN_CHANGES: usize = 3;

/// Maximum length of a change's text, in characters.
const CHANGE_CHARS: usize = 120;

/// A passage before its place in the answer is known.
pub(crate) struct Candidate {
    pub(crate) hit: Hit,
    pub(crate) seq: Seq,
    pub(crate) summary: Option<SummaryId>,
    pub(crate) score: f64,
    /// Changes by later messages.
    pub(crate) changed: Vec<PassageChange>,
}

/// Adds to each candidate the changes by later ones. If the question asks for a changed statement, the later one is as good an
/// answer as the earlier one, and comes before it.
pub(crate) fn renew(candidates: &mut [Candidate], question: &str) {
    let is_said = |one: &Candidate| match &one.hit.target {
        HitTarget::Message { role, .. } => *role != Role::Tool,
        HitTarget::Summary { .. } => false,
    };
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.retain(|at| candidates.get(*at).is_some_and(is_said));
    order.sort_by_key(|at| candidates.get(*at).map(|one| one.seq));
    let said = order.iter().filter_map(|at| candidates.get(*at));
    let role = |one: &Candidate| match &one.hit.target {
        HitTarget::Message { role, .. } => Some(*role),
        HitTarget::Summary { .. } => None,
    };
    let is_agent = candidates.iter().any(|one| role(one) == Some(Role::Tool));
    let said = said.map(|one| read(&one.hit.snippet, role(one), is_agent));
    let said = said.collect();
    let changes = Changes::new(said, question);
    // By place in the order of the log: the newest of the messages that change what is asked for.
    let mut stale: Vec<Option<usize>> = vec![None; order.len()];
    let mut shown: Vec<Vec<PassageChange>> = Vec::with_capacity(order.len());
    for (place, newest) in stale.iter_mut().enumerate() {
        let mut list: Vec<PassageChange> = Vec::new();
        let mut all = changes.of(place);
        // What is asked for comes first.
        all.sort_by_key(|change| !change.is_asked);
        for change in all {
            if change.is_asked {
                *newest = (*newest).max(Some(change.by));
            }
            let by = order.get(change.by).and_then(|at| candidates.get(*at));
            let Some(by) = by else { continue };
            let text = short(change.statement);
            if list.len() < SHOWN_CHANGES
                && !list.iter().any(|one| one.seq == by.seq && one.text == text)
            {
                list.push(PassageChange { seq: by.seq, text });
            }
        }
        shown.push(list);
    }
    let score = |candidates: &[Candidate], place: usize| {
        let one = order.get(place).and_then(|at| candidates.get(*at));
        one.map_or(0.0, |one| one.score)
    };
    let before: Vec<f64> = (0..order.len())
        .map(|place| score(candidates, place))
        .collect();
    let set = |candidates: &mut [Candidate], place: usize, score: f64| {
        let one = order.get(place).and_then(|at| candidates.get_mut(*at));
        one.into_iter().for_each(|one| one.score = score);
    };
    for (place, before) in before.iter().enumerate() {
        if stale.get(place).copied().flatten().is_some() {
            set(candidates, place, before * STALE);
        }
    }
    for (by, before) in stale.iter().zip(&before) {
        if let Some(by) = *by {
            let best = score(candidates, by).max(*before);
            set(candidates, by, best);
        }
    }
    // From the newest on: what changes a message has its score already.
    for (place, by) in stale.iter().enumerate().rev() {
        if let Some(by) = *by {
            let most = score(candidates, by) * BELOW;
            let own = score(candidates, place);
            set(candidates, place, own.min(most));
        }
    }
    // Of answers that may be as good, the newer one comes first.
    for (place, by) in stale.iter().enumerate().rev() {
        if let (None, Some(newer)) = (by, changes.newer_answer(place))
            && stale.get(newer).is_some_and(Option::is_none)
        {
            let own = score(candidates, place);
            let best = score(candidates, newer).max(own / BELOW);
            set(candidates, newer, best);
        }
    }
    for (at, list) in order.iter().zip(shown) {
        candidates
            .get_mut(*at)
            .into_iter()
            .for_each(|one| one.changed = list.clone());
    }
}

/// Reads a message. In a conversation with tools the assistant's words are narration.
pub(crate) fn read(text: &str, role: Option<Role>, is_agent: bool) -> Said {
    let said = Said::of(text);
    match is_agent && role == Some(Role::Assistant) {
        true => said.as_narration(),
        false => said,
    }
}

/// The highest score of a changed passage, as a part of the score of the one that changes it.
const BELOW: f64 = 0.999;

/// The text of a change, shortened in front: a value is most often at its end.
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
