//! Chooses the items of an extract, their lengths, and the value of their lines.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Seq, SummaryBody};
use token_estimate::TokenEstimator;

use crate::cut::cut_to_tokens;
use crate::folders;
use crate::frame;
use crate::item::{FileStat, Gathered, Item, Kind, LAST_WORD, TYPED};
use crate::print::{self, Length};
use crate::rank::{self, Topic};
use crate::source::Source;
use crate::status;
use crate::text::has_name;
use crate::users;
use crate::value;
use crate::wrap::wrapped;

/// Minimum weight of an item that tells something; lighter ones fill the rest of the budget.
const TELLING: u32 = 24;
/// Maximum weight of an item that is printed only after all heavier ones.
const LISTED: u32 = 3;

/// Maximum length of an item and of the assistant's last word, in characters, step by step.
const STEPS: [(usize, usize); 5] = [
    (100, 400),
    (220, 800),
    (480, 2_000),
    (1_500, 8_000),
    (usize::MAX, usize::MAX),
];
/// The lengths at which what failed and what ran is printed before anything else.
const CORE_RUN: usize = 96;
const CORE_ERROR: usize = 150;
/// Maximum number of lines of detail, step by step.
const DETAILS: [usize; 5] = [3, 8, 24, 80, usize::MAX];

/// Length from which an extract has lines for its shorter forms, in tokens.
const DENSE: u64 = 2_500;
/// The same for an extract of summaries.
const DENSE_CONDENSED: u64 = 500;
/// Length from which room is kept for the lines of names and of what to expand, in tokens.
const LAST_LINES: u64 = 150;
/// Length from which the long lines of an extract are broken, in tokens.
const WRAPS: u64 = 500;
/// Number of times that users' words get less room.
const USER_ROUNDS: usize = 12;
/// Maximum cost of the lines of files by folder, in tokens.
const FOLDED: u64 = 1_000;
/// Maximum cost of the lines of the names that are used most, in tokens.
const CORE_NAMES: u64 = 600;

/// Maximum cost of the lines about the state of the work, in tokens.
const STAND: u64 = 240;

/// A printed line.
struct Line {
    text: String,
    cost: u64,
}

struct Composer<'a> {
    /// Whether long lines are broken.
    wraps: bool,
    items: Vec<&'a Item>,
    estimator: &'a dyn TokenEstimator,
    last_reply: Option<usize>,
    /// Printed lines, by the index of their item.
    lines: BTreeMap<usize, Line>,
    /// Length of each item, in characters.
    sizes: Vec<usize>,
    /// Costs of items, in tokens, by index, characters and lines of detail.
    costs: BTreeMap<(usize, usize, usize), u64>,
}

/// Returns the extract, at most `target` tokens.
pub(crate) fn compose(
    gathered: &mut Gathered,
    source: &[Source<'_>],
    target: u64,
    estimator: &dyn TokenEstimator,
) -> SummaryBody {
    let cost = |line: &Option<String>| line.as_deref().map_or(0, |line| estimator.text(line) + 1);
    let share = |percent: u64| target.saturating_mul(percent) / 100;

    let header = frame::header(gathered, source);
    let header = (estimator.text(&header) < share(20)).then_some(header);
    let files = frame::files(&gathered.files, share(16), estimator);
    let (files, listed) = files.map_or_else(Default::default, |(line, named)| (Some(line), named));
    short_names(&mut gathered.items, &gathered.files, &listed);
    let gathered = &*gathered;
    // A text that is short in any case needs no lines for shorter forms, and one of messages fewer than one of
    // summaries, which is what shorter forms are mostly taken from.
    let condensed = source
        .iter()
        .any(|piece| matches!(piece, Source::Summary(_)));
    let dense = |part: u64, most: u64| match condensed {
        true if target >= DENSE_CONDENSED => share(part).min(most),
        false if target >= DENSE => share(part / 2).min(most),
        _ => 0,
    };
    let folded = folders::lines(&gathered.files, dense(10, FOLDED), estimator);
    let core_names = frame::core_names(gathered, dense(6, CORE_NAMES), estimator);
    let items = without_repeats(&gathered.items);
    let stand = status::stand(&items, share(8).min(STAND), estimator);
    let last_reply = items
        .iter()
        .rposition(|item| item.kind == Kind::Reply && item.weight >= LAST_WORD);
    let mut composer = Composer {
        wraps: target >= WRAPS,
        sizes: items.iter().map(|item| print::size(item)).collect(),
        costs: BTreeMap::new(),
        items,
        estimator,
        last_reply,
        lines: BTreeMap::new(),
    };
    let listed = folded.iter().chain(&core_names);
    let listed: u64 = listed.map(|line| estimator.text(line) + 1).sum();
    let room = target.saturating_sub(cost(&header) + cost(&stand) + cost(&files) + listed);

    // Where only users speak, all is theirs, and there may be hardly room for what they said.
    let prose = composer.items.iter().all(|item| item.kind.users());
    // For the last two lines.
    let last_lines = |tokens: u64| match prose && target < LAST_LINES {
        true => 0,
        false => tokens,
    };
    let core: u64 = core_names.iter().map(|line| estimator.text(line) + 1).sum();
    let names_share = last_lines(share(12).saturating_sub(core));
    let expand_share = last_lines(share(10).min(120));
    let mut left = room.saturating_sub(names_share + expand_share);
    if condensed {
        composer.core((share(6), share(16)), &mut left);
    }
    let (soft, hard) = match prose {
        true => (left, left),
        false => (share(50).min(left), share(66).min(left)),
    };
    composer.users(soft, hard, &mut left);
    composer.others(&mut left);

    let mut parts = Parts {
        header,
        stand,
        folded,
        files,
        core_names,
        names: None,
        expand: None,
    };
    parts.names = frame::names(gathered, &composer.body(&parts), names_share, estimator);
    left = left
        .saturating_add(names_share)
        .saturating_sub(cost(&parts.names));
    composer.grow(&mut left);
    // Costs of lines need not add up to the cost of the text: what they left is used, too.
    for _ in 0..3 {
        let spent = estimator.text(&composer.body(&parts)) + expand_share;
        let mut slack = target.saturating_sub(spent);
        if slack * 50 < target {
            break;
        }
        composer.grow(&mut slack);
    }
    if let Some(names) = parts.names.take() {
        let again = frame::names(
            gathered,
            &composer.body(&parts),
            estimator.text(&names) + 1,
            estimator,
        );
        parts.names = again;
    }
    let shown: BTreeSet<usize> = composer.lines.keys().copied().collect();
    parts.expand = frame::expand(gathered, &composer.items, &shown, expand_share, estimator);
    composer.trim(&mut parts, target);
    let told = |at: &usize| {
        let item = composer.items.get(*at);
        item.is_some_and(|item| item.weight >= TELLING || item.kind.users())
    };
    let text = composer.body(&parts);
    // Of a short note the sentence that tells most is worth more than others whole.
    let best = composer.best();
    let (_, sentence) = best.split_once(": ").unwrap_or_default();
    let lost = prose && target < LAST_LINES && has_name(sentence) && !has_name(&said(&text));
    if !lost && composer.lines.keys().any(told) || (composer.items.is_empty() && !text.is_empty()) {
        return rank::ranked(&composer.ranked_lines(&parts));
    }
    // Not one whole line that tells something fits.
    let text = cut_to_tokens(&best, target, estimator).unwrap_or_default();
    rank::rank_lines(&text, estimator)
}

/// What a text says, without the positions of the messages.
fn said(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("] ") {
        Some((start, said)) if start.starts_with('[') => said,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines around the items.
struct Parts {
    header: Option<String>,
    stand: Option<String>,
    folded: Vec<String>,
    files: Option<String>,
    core_names: Vec<String>,
    names: Option<String>,
    expand: Option<String>,
}

/// The lines of a text, one after the other.
struct Lines<'a> {
    lines: Vec<rank::Line>,
    estimator: &'a dyn TokenEstimator,
}

impl Lines<'_> {
    fn push(&mut self, text: &str, topic: Topic, worth: u64, head: Option<usize>) {
        self.lines.push(rank::Line {
            text: text.to_owned(),
            cost: self.estimator.text(text) + 1,
            topic,
            worth,
            head,
        });
    }

    /// Adds lines that are worth the less the later they come.
    fn all<'a>(&mut self, texts: impl Iterator<Item = &'a String>, topic: Topic) {
        for text in texts.flat_map(|text| text.split('\n')) {
            let worth = u64::MAX - self.lines.len() as u64;
            self.push(text, topic, worth, None);
        }
    }

    /// Adds the printed lines of an item.
    fn item(&mut self, item: &Item, text: &str, place: value::Place) {
        let head = self.lines.len();
        for (n, line) in text.split('\n').enumerate() {
            let cost = self.estimator.text(line) + 1;
            let worth = value::of_line(item, line, n, cost, place);
            self.push(line, value::topic(item, n), worth, (n > 0).then_some(head));
        }
    }
}

/// Shortens the names of files that are named in full elsewhere, and demotes items that only look at
/// such a file.
fn short_names(items: &mut [Item], files: &BTreeMap<String, FileStat>, listed: &BTreeSet<&str>) {
    for item in items {
        let Some(path) = item.file.as_deref().filter(|path| listed.contains(path)) else {
            continue;
        };
        if item.kind == Kind::Act && item.weight > 0 && item.outcome.is_empty() {
            item.weight = LISTED;
            continue;
        }
        let short = frame::short_name(path, files);
        if let Some(line) = item.lines.first_mut() {
            *line = line.replacen(path, short, 1);
        }
        item.file = Some(short.to_owned());
    }
}

/// The items without those that a later one repeats.
fn without_repeats(items: &[Item]) -> Vec<&Item> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<&Item> = items
        .iter()
        .rev()
        .filter(|item| {
            // What a user repeats is kept.
            item.kind == Kind::User || seen.insert((&item.label, &item.lines, &item.outcome))
        })
        .collect();
    kept.reverse();
    kept
}

impl Composer<'_> {
    /// The whole text.
    fn body(&self, parts: &Parts) -> String {
        let mut all: Vec<&str> = Vec::new();
        all.extend(parts.header.as_deref());
        all.extend(parts.stand.as_deref());
        all.extend(self.lines.values().map(|line| line.text.as_str()));
        all.extend(parts.folded.iter().map(String::as_str));
        all.extend(parts.files.as_deref());
        all.extend(parts.core_names.iter().map(String::as_str));
        all.extend(parts.names.as_deref());
        all.extend(parts.expand.as_deref());
        all.join("\n")
    }

    fn line(&self, text: &str, kind: Kind) -> Line {
        let call = matches!(kind, Kind::Act | Kind::Error);
        let text = match self.wraps {
            true => wrapped(text, call).join("\n"),
            false => text.to_owned(),
        };
        let cost = self.estimator.text(&text).saturating_add(1);
        Line { text, cost }
    }

    fn places(&self, wanted: impl Fn(&Item) -> bool) -> Vec<usize> {
        let items = self.items.iter().enumerate();
        let wanted = items.filter(|(_, item)| item.weight > 0 && wanted(item));
        wanted.map(|(at, _)| at).collect()
    }

    /// Value of an item: its weight, and more for newer ones.
    fn score(&self, at: usize) -> u64 {
        let weight = self.items.get(at).map_or(0, |item| u64::from(item.weight));
        let recency = 30 * (at as u64 + 1) / (self.items.len() as u64).max(1);
        weight + recency
    }

    /// Sorts indices by value, the most valuable first.
    fn by_score(&self, mut places: Vec<usize>) -> Vec<usize> {
        places.sort_by_key(|at| (std::cmp::Reverse(self.score(*at)), *at));
        places
    }

    /// Prints what the user said: verbatim if that costs at most `soft` tokens, else what was typed if
    /// that does; and the rest sentence by sentence, within `hard` tokens.
    fn users(&mut self, soft: u64, hard: u64, left: &mut u64) {
        let users = self.places(|item| item.kind.users());
        let typed = self.places(|item| item.kind == Kind::User && item.weight >= TYPED);
        let mut spent = 0;
        let mut full = Vec::new();
        for places in [&users, &typed] {
            let lines: Vec<(usize, Line)> = places
                .iter()
                .filter_map(|at| {
                    let item = self.items.get(*at)?;
                    Some((*at, self.line(&print::item(item, Length::FULL), item.kind)))
                })
                .collect();
            spent = lines.iter().map(|(_, line)| line.cost).sum();
            if spent <= soft {
                full = lines;
                break;
            }
            spent = 0;
        }
        self.lines.extend(full);
        let rest: Vec<usize> = users
            .into_iter()
            .filter(|at| !self.lines.contains_key(at))
            .collect();
        // Costs of sentences do not add up to those of lines: less room is given until they fit.
        let mut room = hard.saturating_sub(spent);
        for _ in 0..USER_ROUNDS {
            let texts = users::shortened(&self.items, &rest, room, self.estimator);
            let lines = texts
                .into_iter()
                .map(|(at, text)| (at, self.line(&text, Kind::User)));
            let lines: Vec<(usize, Line)> = lines.collect();
            let cost: u64 = lines.iter().map(|(_, line)| line.cost).sum();
            if spent + cost <= *left {
                spent += cost;
                self.lines.extend(lines);
                break;
            }
            room = room.saturating_sub((room / 25).max(1));
        }
        *left = left.saturating_sub(spent);
    }

    /// Prints shortly what failed and what ran, within these costs in tokens: shorter forms need it.
    fn core(&mut self, (failed, ran): (u64, u64), left: &mut u64) {
        let errors = self.by_score(self.places(|item| item.kind == Kind::Error));
        self.print_at(&errors, (CORE_ERROR, CORE_ERROR), left, &|_| failed);
        let runs = self.by_score(self.places(Item::runs));
        self.print_at(&runs, (CORE_RUN, CORE_RUN), left, &|_| ran);
    }

    /// Prints all other items, the most valuable first, with a limit for each kind.
    fn others(&mut self, left: &mut u64) {
        let all = *left;
        let (telling, rest): (Vec<usize>, Vec<usize>) = self
            .by_score(self.places(|item| !item.kind.users() && item.weight > LISTED))
            .into_iter()
            .partition(|at| {
                self.items
                    .get(*at)
                    .is_some_and(|item| item.weight >= TELLING)
            });
        let errors = self.by_score(self.places(|item| item.kind == Kind::Error));
        let mut first = telling.clone();
        if let Some(last) = self.last_reply {
            first.retain(|at| *at != last);
            first.insert(0, last);
        }
        self.fill(&first, 0, left, &|kind| match kind {
            Kind::Error => all / 3,
            Kind::Act => all * 2 / 5,
            Kind::Reply => all / 2,
            _ => all,
        });
        for step in 1..4 {
            self.fill(&errors, step, left, &|_| all / 3);
        }
        self.fill(&first, 0, left, &|_| all);
        self.fill(&first, 1, left, &|kind| match kind {
            Kind::Error => all * 2 / 5,
            Kind::Act => all * 2 / 5,
            Kind::Reply => all / 2,
            _ => all,
        });
        self.fill(&telling, 1, left, &|_| all);
        self.fill(&rest, 0, left, &|_| all);
        self.fill(&telling, 2, left, &|_| all);
        self.fill(&rest, 1, left, &|_| all);
    }

    /// Spends the remaining tokens on shortened items, then on details.
    fn grow(&mut self, left: &mut u64) {
        let users = self.by_score(self.places(|item| item.kind.users()));
        let others = self.by_score(self.places(|item| !item.kind.users()));
        let (telling, rest): (Vec<usize>, Vec<usize>) = others.into_iter().partition(|at| {
            self.items
                .get(*at)
                .is_some_and(|item| item.weight >= TELLING)
        });
        let all = &|_| u64::MAX;
        self.fill(&users, STEPS.len() - 1, left, all);
        let (rest, listed): (Vec<usize>, Vec<usize>) = rest
            .into_iter()
            .partition(|at| self.items.get(*at).is_some_and(|item| item.weight > LISTED));
        for step in 0..STEPS.len() {
            self.fill(&telling, step, left, all);
            self.fill(&rest, step, left, all);
        }
        self.fill(&listed, STEPS.len() - 1, left, all);
        let mut newest = self.places(|item| !item.detail.is_empty());
        newest.reverse();
        for detail in DETAILS {
            for at in &newest {
                let length = Length {
                    chars: usize::MAX,
                    detail,
                };
                self.set(*at, length, left);
            }
        }
    }

    /// Prints items at the length of a step, within the remaining tokens and the limit of their kind.
    fn fill(&mut self, order: &[usize], step: usize, left: &mut u64, most: &dyn Fn(Kind) -> u64) {
        if let Some(lengths) = STEPS.get(step) {
            self.print_at(order, *lengths, left, most);
        }
    }

    /// Prints items at a length, and the assistant's last word at another.
    fn print_at(
        &mut self,
        order: &[usize],
        (chars, last_word): (usize, usize),
        left: &mut u64,
        most: &dyn Fn(Kind) -> u64,
    ) {
        let mut spent: BTreeMap<Kind, u64> = BTreeMap::new();
        for (at, line) in &self.lines {
            if let Some(item) = self.items.get(*at) {
                *spent.entry(item.kind).or_default() += line.cost;
            }
        }
        for at in order {
            let Some(item) = self.items.get(*at) else {
                continue;
            };
            let spent = spent.entry(item.kind).or_default();
            let last = Some(*at) == self.last_reply;
            let mut room = match last {
                true => *left,
                false => most(item.kind).saturating_sub(*spent).min(*left),
            };
            let before = room;
            let chars = match item.kind {
                Kind::Reply if last => last_word,
                // The last word of a turn is what came of it.
                Kind::Reply if item.weight >= LAST_WORD => chars.saturating_mul(2),
                _ => chars,
            };
            if !self.set(*at, Length::chars(chars), &mut room) && last {
                self.set(*at, Length::chars(chars / 4), &mut room);
            }
            *spent += before - room;
            *left -= before - room;
        }
    }

    /// Prints an item at a length if its additional cost fits. Returns whether it is printed so.
    fn set(&mut self, at: usize, length: Length, left: &mut u64) -> bool {
        let (Some(item), Some(size)) = (self.items.get(at), self.sizes.get(at)) else {
            return false;
        };
        // What is longer than an item prints all of it.
        let key = (at, length.chars.min(*size), length.detail);
        let before = self.lines.get(&at).map_or(0, |line| line.cost);
        let known = self.costs.get(&key).copied();
        let fits = |cost: u64| cost > before && cost - before <= *left;
        if known.is_some_and(|cost| !fits(cost)) {
            return before > 0 && known <= Some(before);
        }
        let line = self.line(&print::item(item, length), item.kind);
        self.costs.insert(key, line.cost);
        if !fits(line.cost) {
            return before > 0 && line.cost <= before;
        }
        *left -= line.cost - before;
        self.lines.insert(at, line);
        true
    }

    /// The most important line, for a target into which no whole line fits.
    fn best(&self) -> String {
        let best = (0..self.items.len()).max_by_key(|at| self.score(*at));
        let Some(item) = best.and_then(|at| self.items.get(at)) else {
            return "No text.".to_owned();
        };
        let told = users::telling_sentence(&item.lines.join("\n"));
        match told.filter(|_| item.kind.users()) {
            Some(sentence) => format!("{}{sentence}", print::beginning(item)),
            None => print::item(item, Length::chars(300)),
        }
    }

    /// The lines of the text with their topics and values.
    fn ranked_lines(&self, parts: &Parts) -> Vec<rank::Line> {
        let mut lines = Lines {
            lines: Vec::new(),
            estimator: self.estimator,
        };
        lines.all(parts.header.iter(), Topic::Frame);
        if let Some(stand) = &parts.stand {
            let (asked, stands) = stand.split_once('\n').unwrap_or((stand, ""));
            lines.all([asked.to_owned()].iter(), Topic::State);
            let stands = Some(stands.to_owned()).filter(|line| !line.is_empty());
            lines.all(stands.iter(), Topic::Replies);
        }
        let told = self.told_elsewhere();
        let users = self.items.iter().filter(|item| item.kind.users()).count();
        let mut user = 0;
        for (at, item) in self.items.iter().enumerate() {
            user += usize::from(item.kind.users());
            let Some(line) = self.lines.get(&at) else {
                continue;
            };
            let place = value::Place {
                score: self.score(at),
                end: item.kind.users() && (user == 1 || user == users),
                newness: (at + 1) as u64 * 100 / self.items.len() as u64,
                told: told.contains(&at),
            };
            lines.item(item, &line.text, place);
        }
        lines.all(parts.folded.iter(), Topic::Files);
        lines.all(parts.files.iter(), Topic::Frame);
        lines.all(parts.core_names.iter(), Topic::Names);
        lines.all(parts.names.iter(), Topic::Frame);
        lines.all(parts.expand.iter(), Topic::Frame);
        lines.lines
    }

    /// Indices of the items that tell what another one tells: a user's words that come again or are corrected, and a command whose
    /// earlier failure names it as what made it good.
    fn told_elsewhere(&self) -> BTreeSet<usize> {
        let mut told = BTreeSet::new();
        let mut later: BTreeSet<&[String]> = BTreeSet::new();
        for (at, item) in self.items.iter().enumerate().rev() {
            let corrected = item.kind == Kind::User && item.resolved.is_some();
            if corrected || (item.kind == Kind::User && !later.insert(&item.lines)) {
                told.insert(at);
            }
        }
        let errors = self.items.iter().filter(|item| item.kind == Kind::Error);
        let resolved = errors.filter_map(|item| item.resolved);
        let resolved: BTreeSet<Seq> = resolved.collect();
        let runs = self.items.iter().enumerate();
        let runs = runs.filter(|(_, item)| item.runs() && resolved.contains(&item.range.first));
        told.extend(runs.map(|(at, _)| at));
        told
    }

    /// Drops the least valuable lines until the text fits.
    fn trim(&mut self, parts: &mut Parts, target: u64) {
        let mut many = 1;
        while self.estimator.text(&self.body(parts)) > target {
            let mut least = [&mut parts.names, &mut parts.expand, &mut parts.stand].into_iter();
            if least.any(|part| part.take().is_some()) {
                continue;
            }
            if parts.core_names.pop().is_some() || parts.folded.pop().is_some() {
                continue;
            }
            if self.lines.len() > 1 || (parts.files.is_none() && !self.lines.is_empty()) {
                let mut order: Vec<usize> = self.lines.keys().copied().collect();
                order.sort_by_key(|at| {
                    let user = self.items.get(*at).is_some_and(|item| item.kind.users());
                    (user, self.score(*at))
                });
                let drop = many.min(order.len() / 2).max(1);
                for at in order.into_iter().take(drop) {
                    self.lines.remove(&at);
                }
                many += many.div_ceil(2);
            } else if parts.files.take().is_none() && parts.header.take().is_none() {
                break;
            }
        }
    }
}
