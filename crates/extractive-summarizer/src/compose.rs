//! Chooses the items of an extract, their lengths, and the values of their lines. An item is a candidate for a line,
//! such as a message, a call or an error.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::SummaryBody;
use token_estimate::TokenEstimator;

use crate::cut::cut_to_tokens;
use crate::frame;
use crate::item::{Gathered, Item, Kind, LAST_WORD, RULE, TASKS, TYPED};
use crate::lines::{Printed, lines};
use crate::names::has_name;
use crate::parts::{LISTED, Parts, is_dense};
use crate::print::{self, Length};
use crate::rank;
use crate::source::Source;
use crate::users::{self, Sentences};
use crate::wrap::wrapped;
use sentence_model::is_unspaced;

/// Minimum weight of an informative item (a candidate line of the extract). Lighter items mostly fill the rest of the
/// budget.
const TELLING: u32 = 24;

/// Maximum length of an item (a candidate line of the extract), and of the assistant's last text before the user's
/// turn, in characters. Each step allows more.
const STEPS: [(usize, usize); 5] = [
    (100, 400),
    (220, 800),
    (480, 2_000),
    (1_500, 8_000),
    (usize::MAX, usize::MAX),
];
/// Lengths in characters at which failures and commands are printed first, before all other items (candidate lines of
/// the extract).
const CORE_RUN: usize = 96;
const CORE_ERROR: usize = 150;
/// Lengths in characters at which the state of a task list is printed. Only rules are printed before it.
const TASK_LIST: (usize, usize) = (600, 600);
/// Minimum length of an assistant's message that counts as an explanation, in bytes, and the lengths in characters at
/// which explanations are printed first.
const EXPLAINS: usize = 500;
const EXPLAINED: (usize, usize) = (2_000, 8_000);
/// Share of users' words in the extract of a conversation with few tool calls, in per cent. The second constant is the
/// minimum number of users' messages for each tool call in such a conversation.
const TALK: u64 = 75;
const CALLS: usize = 4;
/// Maximum number of lines of detail (bodies and output) of an item (a candidate line of the extract). Each step allows
/// more.
const DETAILS: [usize; 5] = [3, 8, 24, 80, usize::MAX];

/// Length of an extract from which room is kept for its last line, the list of subjects to expand, in tokens.
const LAST_LINE: u64 = 500;
/// Length below which an extract may be a single sentence, in tokens.
const SHORT: u64 = 150;
/// Length of an extract from which its long lines are broken into several, in tokens.
const WRAPS: u64 = 500;
/// Number of characters at the start of a text from which its script is recognized.
const WIDE_CHARS: usize = 60;
/// Number of times that an assistant says the same words without a name until they count as a formula without content.
const FORMULA: usize = 3;
/// Maximum number of attempts with less room for users' words.
const USER_ROUNDS: usize = 12;

/// A printed line.
struct Line {
    text: String,
    cost: u64,
}

struct Composer<'a> {
    /// Whether long lines are broken into several.
    wraps: bool,
    items: Vec<&'a Item>,
    estimator: &'a dyn TokenEstimator,
    last_reply: Option<usize>,
    /// Printed lines, by the index of the item (candidate line) from which they come.
    lines: BTreeMap<usize, Line>,
    /// Length of each item (candidate line), in characters.
    sizes: Vec<usize>,
    /// Costs of printed items (candidate lines), in tokens, by the index of the item, the number of characters, and the
    /// number of lines of detail.
    costs: BTreeMap<(usize, usize, usize), u64>,
}

/// Returns the extract. It costs at most `target` tokens.
pub(crate) fn compose(
    gathered: &mut Gathered,
    source: &[Source<'_>],
    target: u64,
    estimator: &dyn TokenEstimator,
) -> SummaryBody {
    let cost = |line: &Option<String>| line.as_deref().map_or(0, |line| estimator.text(line) + 1);
    let costs =
        |lines: &[String]| -> u64 { lines.iter().map(|line| estimator.text(line) + 1).sum() };
    let share = |percent: u64| target.saturating_mul(percent) / 100;

    let mut parts = Parts::around(gathered, source, target, estimator);
    let gathered = &*gathered;
    let items = without_repeats(&gathered.items);
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
    let entries = parts.failed.iter().chain(&parts.ran);
    let entries: u64 = entries.map(|entry| estimator.text(&entry.text) + 1).sum();
    let listed = costs(&parts.folded) + entries;
    let around = cost(&parts.header) + cost(&parts.files);
    let room = target.saturating_sub(around + listed);

    // If only users speak, all text is theirs, and may not fit.
    let prose = composer.items.iter().all(|item| item.kind.users());
    // In a conversation without tool calls, the users' words are the events.
    let talk = is_talk(&composer.items);
    let expand_share = match gathered.topics.is_empty() && target < LAST_LINE {
        true => 0,
        false => share(10).min(120),
    };
    let mut left = room.saturating_sub(expand_share);
    composer.rules(left / 5 * 4, &mut left);
    let tasks = composer.places(|item| item.kind == Kind::Act && item.weight == TASKS);
    composer.print_at(&tasks, TASK_LIST, &mut left, &|_| share(10));
    if is_dense(source, target) {
        composer.core((share(6), share(8)), &mut left);
    }
    match (prose, talk) {
        (true, _) => composer.users(left, left, &mut left),
        (false, true) => {
            composer.users(share(TALK).min(left), share(TALK).min(left), &mut left);
            composer.explained(left / 5 * 2, &mut left);
        }
        (false, false) => {
            composer.explained(left / 5 * 2, &mut left);
            composer.users(share(50).min(left), share(66).min(left), &mut left);
        }
    }
    composer.others(&mut left);

    composer.use_up(&parts, expand_share, left, target);
    let shown: BTreeSet<usize> = composer.lines.keys().copied().collect();
    parts.expand = frame::expand(gathered, &composer.items, &shown, expand_share, estimator);
    composer.trim(&mut parts, target);
    composer.body_within(&parts, target)
}

/// Returns whether a text has a name, apart from the positions of messages.
fn names_something(text: &str) -> bool {
    text.lines().any(|line| has_name(print::said(line)))
}

/// Returns whether the items (candidate lines) are mainly talk, with few tool calls between the users' messages.
fn is_talk(items: &[&Item]) -> bool {
    let calls = |item: &&&Item| matches!(item.kind, Kind::Act | Kind::Error);
    let calls = items.iter().filter(calls).count();
    let users = items.iter().filter(|item| item.kind == Kind::User).count();
    calls * CALLS <= users
}

/// Returns whether the text of an item (a candidate line) is in a script with few characters in a word, such as
/// Chinese.
fn is_wide_text(item: &Item) -> bool {
    let text = item.lines.first().map_or("", String::as_str);
    let begin = || text.chars().take(WIDE_CHARS);
    begin().filter(|c| is_unspaced(*c)).count() * 3 > begin().count()
}

/// Returns the items (candidate lines) without items that a later one repeats, except users' words, and without replies
/// that the assistant repeats as a formula without content.
fn without_repeats(items: &[Item]) -> Vec<&Item> {
    let is_reply = |item: &&Item| item.kind == Kind::Reply;
    let mut said: BTreeMap<&[String], usize> = BTreeMap::new();
    for reply in items.iter().filter(is_reply) {
        *said.entry(&reply.lines).or_default() += 1;
    }
    let is_formula = |item: &Item| {
        let times = said.get(item.lines.as_slice()).copied().unwrap_or(0);
        times >= FORMULA && !item.lines.iter().any(|line| has_name(line))
    };
    let mut seen = BTreeSet::new();
    let mut kept: Vec<&Item> = items
        .iter()
        .rev()
        .filter(|item| match item.kind {
            // A user's words are kept even if they are repeated.
            Kind::User => true,
            Kind::Reply if is_formula(item) => false,
            _ => seen.insert((&item.label, &item.lines, &item.outcome)),
        })
        .collect();
    kept.reverse();
    kept
}

impl Composer<'_> {
    /// Returns the text of the extract.
    fn body(&self, parts: &Parts) -> String {
        let items = self.lines.values().map(|line| line.text.as_str());
        let all = parts.above().chain(items).chain(parts.below());
        all.collect::<Vec<_>>().join("\n")
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

    fn runs(&self, at: usize) -> bool {
        self.items.get(at).is_some_and(|item| item.runs())
    }

    /// Returns the value of the item (candidate line) with index `at`: its weight, plus up to 30 for its position.
    /// Later items get more.
    fn score(&self, at: usize) -> u64 {
        let weight = self.items.get(at).map_or(0, |item| u64::from(item.weight));
        let recency = 30 * (at as u64 + 1) / (self.items.len() as u64).max(1);
        weight + recency
    }

    /// Sorts indices of items (candidate lines) by value, most valuable first.
    fn by_score(&self, mut places: Vec<usize>) -> Vec<usize> {
        places.sort_by_key(|at| (std::cmp::Reverse(self.score(*at)), *at));
        places
    }

    /// Prints users' rules within `most` tokens. Rules with a value come first, and later rules come before earlier
    /// ones.
    fn rules(&mut self, most: u64, left: &mut u64) {
        let mut rules = self.places(|item| item.kind == Kind::User && item.weight >= RULE);
        let weight = |at: &usize| self.items.get(*at).map_or(0, |item| item.weight);
        rules.sort_by_key(|at| std::cmp::Reverse((weight(at), *at)));
        let mut room = most.min(*left);
        let before = room;
        for at in rules {
            self.set(at, Length::FULL, &mut room);
        }
        *left -= before - room;
    }

    /// Prints long explanations line by line within `most` tokens, from the last explanation to the first.
    fn explained(&mut self, most: u64, left: &mut u64) {
        let mut explained = self.places(|item| {
            item.kind == Kind::Reply && item.weight >= TELLING && item.bytes() >= EXPLAINS
        });
        explained.reverse();
        self.print_at(&explained, EXPLAINED, left, &|_| most);
    }

    /// Prints the users' words other than rules. Prints all of them verbatim if that costs at most `soft` tokens,
    /// otherwise only the typed ones if they cost at most `soft` tokens. Prints sentences of the rest within `hard`
    /// tokens.
    fn users(&mut self, soft: u64, hard: u64, left: &mut u64) {
        let mut users = self.places(|item| item.kind == Kind::User);
        users.retain(|at| !self.lines.contains_key(at));
        let mut typed = self.places(|item| item.kind == Kind::User && item.weight >= TYPED);
        typed.retain(|at| !self.lines.contains_key(at));
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
        // The cost of a line may exceed the sum of the costs of its sentences. The room is therefore reduced until the
        // lines fit.
        let mut room = hard.saturating_sub(spent);
        let sentences = Sentences::of(&self.items, &rest, self.estimator);
        for _ in 0..USER_ROUNDS {
            let lines = sentences
                .within(room)
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

    /// Prints failures and commands at a short length, because they are needed when a context shows only a part of the
    /// summary. `failed` and `ran` are the maximum costs, in tokens.
    fn core(&mut self, (failed, ran): (u64, u64), left: &mut u64) {
        let errors = self.by_score(self.places(|item| item.kind == Kind::Error));
        self.print_at(&errors, (CORE_ERROR, CORE_ERROR), left, &|_| failed);
        let runs = self.by_score(self.places(Item::runs));
        self.print_at(&runs, (CORE_RUN, CORE_RUN), left, &|_| ran);
    }

    /// Prints the other items (candidate lines), most valuable first, with a maximum cost for each kind of item.
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
            Kind::Reply => all * 3 / 5,
            _ => all,
        });
        for step in 1..4 {
            self.fill(&errors, step, left, &|_| all / 3);
        }
        self.fill(&first, 0, left, &|_| all);
        let runs: Vec<usize> = telling
            .iter()
            .copied()
            .filter(|at| self.runs(*at))
            .collect();
        self.fill(&runs, 1, left, &|_| all / 2);
        self.fill(&first, 1, left, &|kind| match kind {
            Kind::Error => all * 2 / 5,
            Kind::Act => all * 2 / 5,
            Kind::Reply => all * 3 / 5,
            _ => all,
        });
        self.fill(&telling, 1, left, &|_| all);
        self.fill(&rest, 0, left, &|_| all);
        self.fill(&telling, 2, left, &|_| all);
        self.fill(&rest, 1, left, &|_| all);
    }

    /// Spends the remaining tokens: first on more text of shortened items (candidate lines), then on their details.
    fn grow(&mut self, left: &mut u64) {
        let users = self.by_score(self.places(|item| item.kind == Kind::User));
        // A program's text gets one line, and more lines only if everything else fits.
        let injected = self.by_score(self.places(|item| item.kind == Kind::Injected));
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
        self.fill(&injected, 1, left, all);
        self.fill(&listed, STEPS.len() - 1, left, all);
        self.fill(&injected, STEPS.len() - 1, left, all);
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

    /// Prints the items (candidate lines) with the indices in `order` at the length of a step, within the remaining
    /// tokens `left` and the maximum cost `most` of each kind.
    fn fill(&mut self, order: &[usize], step: usize, left: &mut u64, most: &dyn Fn(Kind) -> u64) {
        if let Some(lengths) = STEPS.get(step) {
            self.print_at(order, *lengths, left, most);
        }
    }

    /// Prints items (candidate lines) at one length, and the assistant's last text before the user's turn at another.
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
                true => *left - *left / 4,
                false => most(item.kind).saturating_sub(*spent).min(*left),
            };
            let before = room;
            let chars = match item.kind {
                Kind::Reply if last => last_word,
                // The assistant's last text in a turn is the result of the turn.
                Kind::Reply if item.weight >= LAST_WORD => chars.saturating_mul(2),
                _ => chars,
            };
            // A character of such a script contains about as much information as two Latin ones, and costs as much as
            // three.
            let chars = match item.kind == Kind::Reply && chars < usize::MAX && is_wide_text(item) {
                true => chars / 5 * 3,
                false => chars,
            };
            if !self.set(*at, Length::chars(chars), &mut room) && last {
                self.set(*at, Length::chars(chars / 4), &mut room);
            }
            *spent += before - room;
            *left -= before - room;
        }
    }

    /// Prints an item (a candidate line) at a length if the additional cost is at most `left` tokens. Returns whether
    /// it is printed at this length or at a greater one.
    fn set(&mut self, at: usize, length: Length, left: &mut u64) -> bool {
        let (Some(item), Some(size)) = (self.items.get(at), self.sizes.get(at)) else {
            return false;
        };
        // A length above the item's own prints the whole item.
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

    /// Returns the most important line, for a target in which no whole line fits.
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

    /// Spends the rest of `target` tokens on longer lines, except for `expand` tokens for the list of subjects to
    /// expand.
    fn use_up(&mut self, parts: &Parts, expand: u64, mut left: u64, target: u64) {
        self.grow(&mut left);
        // The cost of the text can be below the sum of the costs of its lines. The rounds spend this difference, too.
        for _ in 0..3 {
            let spent = self.estimator.text(&self.body(parts)) + expand;
            let mut slack = target.saturating_sub(spent);
            if slack * 50 < target {
                break;
            }
            self.grow(&mut slack);
        }
    }

    /// Returns the extract. If no whole informative line fits, returns the beginning of the most important line.
    fn body_within(&self, parts: &Parts, target: u64) -> SummaryBody {
        let tells = |at: &usize| {
            let item = self.items.get(*at);
            item.is_some_and(|item| item.weight >= TELLING || item.kind.users())
        };
        let text = self.body(parts);
        let tells = match self.items.is_empty() {
            true => !text.is_empty(),
            false => self.lines.keys().any(tells),
        };
        // In a short extract, the most informative sentence is worth more than other whole lines.
        let best = self.best();
        let (_, sentence) = best.split_once(": ").unwrap_or_default();
        let short = target < SHORT && self.items.iter().all(|item| item.kind.users());
        let lost = short && has_name(sentence) && !names_something(&text);
        if tells && !lost {
            return rank::ranked(
                &lines(parts, &self.printed(), self.estimator),
                is_talk(&self.items),
            );
        }
        let text = cut_to_tokens(&best, target, self.estimator).unwrap_or_default();
        rank::rank_lines(&text, self.estimator)
    }

    /// Returns all items (candidate lines of the extract), with the text of those that are printed.
    fn printed(&self) -> Vec<Printed<'_>> {
        let items = self.items.iter().enumerate();
        let printed = items.map(|(at, item)| Printed {
            item,
            score: self.score(at),
            text: self.lines.get(&at).map(|line| line.text.as_str()),
        });
        printed.collect()
    }

    /// Drops lines, least valuable first, until the text costs at most `target` tokens.
    fn trim(&mut self, parts: &mut Parts, target: u64) {
        let mut many = 1;
        while self.estimator.text(&self.body(parts)) > target {
            if parts.drop_one() {
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
