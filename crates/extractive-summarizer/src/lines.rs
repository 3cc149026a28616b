//! Lines of an extract in order, with their topics and values.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::Seq;
use token_estimate::TokenEstimator;

use crate::folders;
use crate::item::{Item, Kind};
use crate::ledger::{self, Entry};
use crate::parts::Parts;
use crate::ran::Ran;
use crate::rank::{Line, Topic};
use crate::text::is_fence;
use crate::users;
use crate::value;
use crate::wrap::REST;

/// An item (a candidate line of an extract) with its printed text.
pub(crate) struct Printed<'a> {
    pub(crate) item: &'a Item,
    /// Value of the item in comparison with all other items (candidate lines).
    pub(crate) score: u64,
    /// Printed lines of the item; `None` if the item is not printed.
    pub(crate) text: Option<&'a str>,
}

/// Returns the lines of an extract.
pub(crate) fn lines(
    parts: &Parts,
    printed: &[Printed<'_>],
    estimator: &dyn TokenEstimator,
) -> Vec<Line> {
    let mut lines = Lines {
        lines: Vec::new(),
        estimator,
    };
    lines.all(parts.header.as_deref(), Topic::Frame);
    let told = told_elsewhere(parts, printed);
    let users = printed
        .iter()
        .filter(|printed| printed.item.kind.users())
        .count();
    let mut user = 0;
    for (at, Printed { item, score, text }) in printed.iter().enumerate() {
        user += usize::from(item.kind.users());
        let Some(text) = text else {
            continue;
        };
        let place = value::Place {
            score: *score,
            end: item.kind.users() && (user == 1 || user == users),
            newness: (at + 1) as u64 * 100 / printed.len() as u64,
            told: told.contains(&at),
        };
        lines.item(item, text, place);
    }
    lines.entries(&parts.failed, Topic::Failures);
    lines.entries(&parts.ran, Topic::Commands);
    lines.all(parts.files.as_deref(), Topic::Frame);
    lines.files(&parts.folded);
    lines.all(parts.expand.as_deref(), Topic::Frame);
    lines.lines
}

struct Lines<'a> {
    lines: Vec<Line>,
    estimator: &'a dyn TokenEstimator,
}

impl Lines<'_> {
    /// Adds lines of one topic, each with a lower value than the line before.
    fn all<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>, topic: Topic) {
        for text in texts.into_iter().flat_map(|text| text.split('\n')) {
            let worth = u64::MAX - self.lines.len() as u64;
            let cost = self.cost(text);
            self.push(text, cost, topic, worth, None);
        }
    }

    /// Adds the lines of a ledger.
    fn entries(&mut self, entries: &[Entry], topic: Topic) {
        let first = self.lines.len();
        for entry in entries {
            let cost = self.cost(&entry.text);
            let head = entry.head.map(|head| first + head);
            self.push(&entry.text, cost, topic, entry.worth, head);
        }
    }

    /// Adds the lines of files by folder. The line that names the common folder is tied to the first line below it.
    fn files(&mut self, texts: &[String]) {
        let mut head = None;
        for (n, text) in texts.iter().enumerate() {
            let cost = self.cost(text);
            let below = text.starts_with(folders::BELOW);
            let worth = if below { 0 } else { u64::MAX - n as u64 };
            self.push(text, cost, Topic::Files, worth, head);
            if below {
                head = Some(self.lines.len() - 1);
            }
        }
    }

    /// Adds the printed lines of an item (a candidate line of an extract).
    fn item(&mut self, item: &Item, text: &str, place: value::Place) {
        let head = self.lines.len();
        let code = code_lines(item);
        // Whether the current line still continues the item's first line.
        let mut first = true;
        for (n, line) in text.split('\n').enumerate() {
            first &= n == 0 || line.starts_with(REST);
            let cost = self.cost(line);
            let mut worth = value::of_line(item, line, n, cost, place);
            if code.contains(line.trim().trim_end_matches(" …")) {
                worth /= users::CODE;
            }
            let topic = match n > 0 && value::is_quoted(item, line, first) {
                true => Topic::Documents,
                false => value::topic(item, line, n, place),
            };
            self.push(line, cost, topic, worth, (n > 0).then_some(head));
        }
    }

    fn cost(&self, line: &str) -> u64 {
        self.estimator.text(line) + 1
    }

    fn push(&mut self, text: &str, cost: u64, topic: Topic, worth: u64, head: Option<usize>) {
        self.lines.push(Line {
            text: text.to_owned(),
            cost,
            topic,
            worth,
            head,
        });
    }
}

/// Returns the lines of code in a user's message, with the fences around them.
fn code_lines(item: &Item) -> BTreeSet<&str> {
    let mut code = false;
    let lines = item.lines.iter().filter(|_| item.kind.users());
    let inside = lines.filter(|line| {
        code ^= is_fence(line);
        code || is_fence(line)
    });
    inside.map(|line| line.trim()).collect()
}

/// Returns the indices of the items (candidate lines) whose content another line of the extract already gives. These
/// are items in a ledger, users' words that are repeated or corrected later, and commands that an earlier failure names
/// as the ones that resolved it.
fn told_elsewhere(parts: &Parts, printed: &[Printed<'_>]) -> BTreeSet<usize> {
    let mut told = BTreeSet::new();
    let listed: BTreeSet<Seq> = parts
        .failed
        .iter()
        .filter_map(|entry| Some(ledger::read_failed(&entry.text)?.0))
        .collect();
    let commands = ledger::commands(&parts.ran);
    let mut later: BTreeSet<&[String]> = BTreeSet::new();
    let mut runs: BTreeMap<Seq, Vec<usize>> = BTreeMap::new();
    for (at, Printed { item, .. }) in printed.iter().enumerate().rev() {
        if item.kind == Kind::User && (item.later.is_some() || !later.insert(&item.lines)) {
            told.insert(at);
        }
        let in_ledger = match item.kind {
            Kind::Error => listed.contains(&item.range.first),
            Kind::Act if item.runs() => {
                let ran = item.lines.first().and_then(|line| Ran::listed(line));
                ran.is_some_and(|ran| commands.contains(&ran.head))
            }
            _ => false,
        };
        if in_ledger {
            told.insert(at);
        }
        if item.runs() {
            runs.entry(item.range.first).or_default().push(at);
        }
    }
    let errors = printed.iter().map(|printed| printed.item);
    let errors = errors.filter(|item| item.kind == Kind::Error);
    let made_good = errors.filter_map(|item| runs.get(&item.later?));
    told.extend(made_good.flatten());
    told
}
