//! The state of the work: the last request, its outcome, what is open.

use token_estimate::TokenEstimator;

use crate::item::{Item, Kind};
use crate::print::{ARROW, ending, findings};
use crate::results::REFUSAL;
use crate::text::{clip, digest, sentences, squeeze};

/// Beginning of the line of the user's last request.
pub(crate) const ASKED: &str = "Asked last: ";
/// Beginning of the line of its outcome.
pub(crate) const STAND: &str = "Where it stands: ";

/// Minimum number of items of an extract that states the state of the work.
const ITEMS: usize = 8;
/// Length below which a request is printed with the one before it, in characters.
const SHORT: usize = 24;
/// Length below which a request is printed with what it answers, in characters.
const ANSWER: usize = 32;
/// Maximum lengths of each part, in characters; the longest that fits is used.
const LENGTHS: [usize; 2] = [120, 60];
/// Minimum weight of a call that changed something or had an outcome.
const DONE: u32 = 24;
/// Minimum weight of an error.
const TROUBLE: u32 = 30;

/// Returns the two lines, if they cost less than `room` tokens.
pub(crate) fn stand(items: &[&Item], room: u64, estimator: &dyn TokenEstimator) -> Option<String> {
    let all = items.iter().copied();
    let items: Vec<&Item> = all.filter(|item| item.weight > 0).collect();
    if items.len() < ITEMS {
        return None;
    }
    let mut told = LENGTHS.iter().filter_map(|chars| lines(&items, *chars));
    told.find(|text| estimator.text(text) < room)
}

fn lines(items: &[&Item], chars: usize) -> Option<String> {
    let wishes = wishes(items);
    let since = wishes.last().map_or(0, |(at, _)| at + 1);
    let news: Vec<&Item> = items.iter().skip(since).copied().collect();
    let mut parts = Vec::new();
    let done = |item: &&Item| item.kind == Kind::Act && item.weight >= DONE;
    let done = news.iter().rposition(done);
    if let Some(item) = done.and_then(|at| news.get(at)) {
        parts.push(format!("last done {}", act(item, chars)));
    }
    let after = news.iter().skip(done.map_or(0, |at| at + 1));
    let failed = |item: &&&Item| item.kind == Kind::Error && item.weight >= TROUBLE;
    if let Some(item) = after.rev().find(failed) {
        parts.push(format!("failed since {}", act(item, chars)));
    }
    let reply = news.iter().rposition(|item| item.kind == Kind::Reply);
    if let Some(item) = reply.and_then(|at| news.get(at)) {
        parts.push(format!("last said {}", word(item, chars)));
    } else if news.is_empty() {
        parts.push("no answer yet".to_owned());
    }
    // The user's mark at the very end, such as an interruption.
    if let Some(item) = news.last()
        && item.kind == Kind::User
    {
        parts.push(format!("then {}", wish(item, chars)));
    }
    if parts.is_empty() {
        return None;
    }
    let stand = format!("{STAND}{}", parts.join("; "));
    let mut asked: Vec<String> = wishes.iter().map(|(_, item)| wish(item, chars)).collect();
    if let (Some((at, item)), Some(asked)) = (wishes.last(), asked.last_mut())
        && let Some(offer) = offer(items, *at, item)
    {
        asked.push_str(&format!(", after {}", word(offer, chars / 2)));
    }
    Some(match asked.is_empty() {
        true => stand,
        false => format!("{ASKED}{}\n{stand}", asked.join("; then ")),
    })
}

/// The user's last request, after the one before it if it is short.
fn wishes<'a>(items: &[&'a Item]) -> Vec<(usize, &'a Item)> {
    let own = |item: &Item| item.kind == Kind::User && !is_mark(item);
    let mut all = items.iter().enumerate().rev();
    let mut out: Vec<(usize, &Item)> = Vec::new();
    if let Some((at, item)) = all.find(|(_, item)| own(item)) {
        if length(item) < SHORT {
            let before = all.find(|(_, item)| own(item) && length(item) >= SHORT);
            out.extend(before.map(|(at, item)| (at, *item)));
        }
        out.push((at, item));
    }
    out
}

/// The assistant's message directly before a short request. Of `yes, the second one` alone nobody could
/// tell what the user wants.
fn offer<'a>(items: &[&'a Item], at: usize, request: &Item) -> Option<&'a Item> {
    let before = items.get(at.checked_sub(1)?)?;
    (before.kind == Kind::Reply && length(request) < ANSWER).then_some(*before)
}

fn length(item: &Item) -> usize {
    item.lines.iter().map(|line| line.chars().count()).sum()
}

/// Whether a user's line asks nothing of the assistant: an interruption, a refusal without a
/// reason, a command to the program.
pub(crate) fn is_mark(item: &Item) -> bool {
    let [line] = item.lines.as_slice() else {
        return false;
    };
    let line = line.trim();
    let bracketed = line.starts_with(['[', '(']) && line.ends_with([']', ')']);
    bracketed || line.starts_with("! ") || (line.starts_with('/') && !line.contains(' '))
}

fn wish(item: &Item, chars: usize) -> String {
    let mut lines = item.lines.clone();
    if let [first, _, ..] = lines.as_mut_slice()
        && first.starts_with(REFUSAL)
        && let Some((call, _)) = first.split_once(ARROW)
    {
        *first = format!("{call})");
    }
    let said = digest(&sentences(&lines.join("\n")), chars, true);
    format!("[{}] {said}", item.range.last)
}

fn act(item: &Item, chars: usize) -> String {
    let about = clip(&squeeze(&item.lines.join(" ")), chars / 2);
    let (label, ended) = match item.kind {
        Kind::Error => (String::new(), ending(item, chars / 2)),
        _ => {
            let ended = clip(&item.outcome.join(" | "), chars / 2);
            let colon = if item.runs() { " " } else { ": " };
            (format!("{}{colon}", item.label), ended)
        }
    };
    let arrow = if ended.is_empty() { "" } else { ARROW };
    format!("[{}] {label}{about}{arrow}{ended}", item.range.last)
}

/// The beginning and the end of the assistant's text: its result, and its question or next step.
fn word(item: &Item, chars: usize) -> String {
    let said = digest(&findings(item, true), chars, true);
    format!("[{}] {said}", item.range.last)
}
