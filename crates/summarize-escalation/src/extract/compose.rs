//! Chooses what an extract says, and prints it.

use std::collections::{BTreeMap, BTreeSet};

use token_estimate::TokenEstimator;

use super::gather::{FileStat, Gathered, Item, Kind, TYPED};
use super::parse::ARROW;
use super::text::{clip, digest, lead};
use crate::prompt::minute;
use crate::{SummaryRequest, cut_to_tokens};

/// Begins an extract's first line.
pub(super) const HEADER: &str = "Extract of messages ";
/// Begins the line of files.
pub(super) const FILES: &str = "Files: ";
/// Begins the line of names.
pub(super) const NAMES: &str = "Also named: ";
/// Begins the last line.
pub(super) const EXPAND: &str = "Expand for details about: ";

/// How many characters of a user's message may be shown, most to least.
const USER_CHARS: [usize; 10] = [8_000, 4_000, 2_000, 1_000, 600, 400, 250, 160, 110, 70];
/// How the lengths of other lines are stretched or shrunk, in quarters, most to least.
const SCALES: [usize; 5] = [16, 8, 4, 3, 2];

/// What weighs as much tells something; what weighs less fills up.
const TELLING: u32 = 24;
/// A line is not shortened below this many characters.
const SHORTEST: usize = 60;

/// A line that may be printed.
struct Line {
    at: usize,
    text: String,
    cost: u64,
}

struct Composer<'a> {
    items: Vec<&'a Item>,
    estimator: &'a dyn TokenEstimator,
}

/// The extract, at most `target` tokens.
pub(super) fn compose(found: &Gathered, request: &SummaryRequest<'_>, target: u64) -> String {
    let composer = Composer {
        items: without_repeats(&found.items),
        estimator: request.estimator,
    };
    let share = |percent: u64| target.saturating_mul(percent) / 100;
    let mut left = target;

    let header = header(found, request);
    let header = (composer.cost(&header) <= share(20)).then_some(header);
    left = left.saturating_sub(header.as_deref().map_or(0, |line| composer.cost(line)));
    let files = files_line(&found.files, share(16), &composer);
    left = left.saturating_sub(files.as_deref().map_or(0, |line| composer.cost(line)));
    // For the last two lines.
    let reserve = share(12);
    let mut room = left.saturating_sub(reserve);

    let mut lines = composer.users(room.min(share(50)), room);
    room = room.saturating_sub(lines.iter().map(|line| line.cost).sum());
    lines.extend(composer.others(room));
    left = left.saturating_sub(lines.iter().map(|line| line.cost).sum());
    lines.sort_by_key(|line| line.at);

    let shown: BTreeSet<usize> = lines.iter().map(|line| line.at).collect();
    let expand = composer.expand_line(found, &shown, share(10).min(left));
    left = left.saturating_sub(expand.as_deref().map_or(0, |line| composer.cost(line)));
    let names = composer.names_line(found, &lines, share(12).min(left));

    let mut parts = Parts {
        header,
        lines,
        files,
        names,
        expand,
    };
    composer.trim(&mut parts, target);
    let text = parts.print();
    let told = |line: &Line| {
        let item = composer.items.get(line.at);
        item.is_some_and(|item| item.weight >= TELLING)
    };
    if parts.lines.iter().any(told) || (composer.items.is_empty() && !text.is_empty()) {
        return text;
    }
    // Not one whole line that tells something fits.
    let best = composer.best();
    cut_to_tokens(&best, target, request.estimator).unwrap_or_default()
}

struct Parts {
    header: Option<String>,
    lines: Vec<Line>,
    files: Option<String>,
    names: Option<String>,
    expand: Option<String>,
}

impl Parts {
    fn print(&self) -> String {
        let mut all: Vec<&str> = Vec::new();
        all.extend(self.header.as_deref());
        all.extend(self.lines.iter().map(|line| line.text.as_str()));
        all.extend(self.files.as_deref());
        all.extend(self.names.as_deref());
        all.extend(self.expand.as_deref());
        all.join("\n")
    }
}

/// The items without those that say what a later one says again.
fn without_repeats(items: &[Item]) -> Vec<&Item> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<&Item> = items
        .iter()
        .rev()
        .filter(|item| {
            // What the user says twice, the user said twice.
            item.kind == Kind::User || seen.insert((&item.label, &item.sentences, &item.outcome))
        })
        .collect();
    kept.reverse();
    kept
}

impl Composer<'_> {
    /// What a line costs, with its line break.
    fn cost(&self, line: &str) -> u64 {
        self.estimator.text(line).saturating_add(1)
    }

    fn line(&self, at: usize, chars: usize) -> Option<Line> {
        let text = print_item(self.items.get(at)?, chars);
        let cost = self.cost(&text);
        Some(Line { at, text, cost })
    }

    fn of(&self, kinds: &[Kind]) -> Vec<usize> {
        let kind = |at: &usize| self.items.get(*at).is_some_and(|i| kinds.contains(&i.kind));
        (0..self.items.len()).filter(kind).collect()
    }

    /// How much an item is worth; what is newer is worth more.
    fn score(&self, at: usize) -> u64 {
        let weight = self.items.get(at).map_or(0, |item| u64::from(item.weight));
        let recency = 30 * (at as u64 + 1) / (self.items.len() as u64).max(1);
        weight + recency
    }

    /// What the user said: all of it as long as possible within `soft`, else the first and the
    /// newest messages.
    fn users(&self, soft: u64, hard: u64) -> Vec<Line> {
        let users = self.of(&[Kind::User]);
        // A document among typed messages is named rather than told.
        let typed = users
            .iter()
            .any(|at| self.items.get(*at).is_some_and(|item| item.weight >= TYPED));
        let render = |chars: usize| -> Vec<Line> {
            let last = users.last().copied();
            users
                .iter()
                .filter_map(|at| {
                    let pasted = self.items.get(*at).is_some_and(|item| item.weight < TYPED);
                    let chars = match () {
                        () if pasted && typed => chars.min(160.max(chars / 8)),
                        // The newest is what is being worked on.
                        () if Some(*at) == last => chars.max(400),
                        () => chars,
                    };
                    self.line(*at, chars)
                })
                .collect()
        };
        let mut lines = Vec::new();
        for chars in USER_CHARS {
            lines = render(chars);
            if lines.iter().map(|line| line.cost).sum::<u64>() <= soft {
                return lines;
            }
        }
        // Not all fit: the first, then the newest; what was typed before what was pasted.
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|n| {
            let at = lines.get(*n).map_or(0, |line| line.at);
            let pasted = self.items.get(at).is_some_and(|item| item.weight < TYPED);
            (
                *n != 0 && *n + 1 != lines.len(),
                pasted,
                std::cmp::Reverse(*n),
            )
        });
        let mut spent = 0;
        let mut chosen = BTreeSet::new();
        for n in order {
            let Some(line) = lines.get(n) else { continue };
            // Where the work began and where it stands may take more than the half.
            let ends = n == 0 || n + 1 == lines.len();
            let most = if ends { soft.max(hard * 3 / 4) } else { soft };
            if spent + line.cost <= most {
                spent += line.cost;
                chosen.insert(n);
            }
        }
        lines
            .into_iter()
            .enumerate()
            .filter(|(n, _)| chosen.contains(n))
            .map(|(_, line)| line)
            .collect()
    }

    /// All else, the most valuable first.
    fn others(&self, room: u64) -> Vec<Line> {
        let others = self.of(&[Kind::Reply, Kind::Error, Kind::Act, Kind::Note]);
        let last_reply = others
            .iter()
            .rev()
            .find(|at| {
                self.items
                    .get(**at)
                    .is_some_and(|item| item.kind == Kind::Reply && item.weight >= 60)
            })
            .copied();
        let chars = |at: usize, scale: usize| {
            let base = match self.items.get(at).map(|item| item.kind) {
                Some(Kind::Reply) if Some(at) == last_reply => 800,
                Some(Kind::Reply) => 320,
                Some(Kind::Note) => 400,
                Some(Kind::Error) => 260,
                _ => 240,
            };
            base * scale / 4
        };
        let important: Vec<usize> = others
            .iter()
            .copied()
            .filter(|at| self.items.get(*at).is_some_and(|item| item.weight >= 34))
            .collect();
        let mut scale = 2;
        for candidate in SCALES {
            let sum: u64 = important
                .iter()
                .filter_map(|at| self.line(*at, chars(*at, candidate)))
                .map(|line| line.cost)
                .sum();
            scale = candidate;
            if sum <= room.saturating_mul(3) / 4 {
                break;
            }
        }
        let mut order = others;
        order.sort_by_key(|at| {
            (
                Some(*at) != last_reply,
                std::cmp::Reverse(self.score(*at)),
                *at,
            )
        });
        let (telling, rest): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|at| {
            self.items
                .get(*at)
                .is_some_and(|item| item.weight >= TELLING)
        });
        let mut chosen = Vec::new();
        let mut left = room;
        let mut waiting = Vec::new();
        let mut spent: BTreeMap<Kind, u64> = BTreeMap::new();
        // First what tells something, no kind of it crowding out the others.
        for at in telling {
            let kind = self.items.get(at).map_or(Kind::Note, |item| item.kind);
            let cap = match kind {
                Kind::Error => room / 4,
                Kind::Act => room * 2 / 5,
                Kind::Reply => room * 3 / 5,
                Kind::User | Kind::Note => room,
            };
            let spent = spent.entry(kind).or_default();
            match self.fitting(at, chars(at, scale), left) {
                Some(line) if Some(at) == last_reply || *spent + line.cost <= cap => {
                    *spent += line.cost;
                    left -= line.cost;
                    chosen.push(line);
                }
                _ => waiting.push(at),
            }
        }
        // Then what had to wait, then the rest.
        for at in waiting.into_iter().chain(rest) {
            if let Some(line) = self.fitting(at, chars(at, scale), left) {
                left -= line.cost;
                chosen.push(line);
            }
        }
        self.grow(&mut chosen, left, |at| chars(at, scale));
        chosen
    }

    /// The line at its length, or shortened to a half or a quarter of it, if it fits.
    fn fitting(&self, at: usize, chars: usize, room: u64) -> Option<Line> {
        [chars, chars / 2, chars / 4]
            .into_iter()
            .filter(|length| *length >= chars.min(SHORTEST))
            .filter_map(|length| self.line(at, length))
            .find(|line| line.cost <= room)
    }

    /// Gives what room is left to the lines that were shortened, newest first.
    fn grow(&self, lines: &mut [Line], mut room: u64, chars: impl Fn(usize) -> usize) {
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_by_key(|n| std::cmp::Reverse(lines.get(*n).map_or(0, |line| line.at)));
        for factor in [2, 4, 8] {
            for n in &order {
                let Some(line) = lines.get_mut(*n) else {
                    continue;
                };
                let telling = self.items.get(line.at).is_some_and(|i| i.weight >= TELLING);
                if !telling || !line.text.contains('…') {
                    continue;
                }
                let longer = self.line(line.at, chars(line.at) * factor);
                if let Some(longer) = longer
                    && longer.cost > line.cost
                    && longer.cost - line.cost <= room
                {
                    room -= longer.cost - line.cost;
                    *line = longer;
                }
            }
        }
    }

    /// The most important line, for a target that no whole line fits.
    fn best(&self) -> String {
        let best = (0..self.items.len()).max_by_key(|at| self.score(*at));
        best.and_then(|at| self.line(at, 300))
            .map_or_else(|| "No text.".to_owned(), |line| line.text)
    }

    /// Names that no printed line shows, most used first.
    fn names_line(&self, found: &Gathered, lines: &[Line], room: u64) -> Option<String> {
        let mut names: Vec<(&String, u32, usize)> = found
            .names
            .iter()
            .map(|(name, stat)| (name, stat.count, stat.last))
            .collect();
        names
            .sort_by_key(|(name, count, last)| (std::cmp::Reverse((*count, *last)), name.as_str()));
        let mut line = NAMES.to_owned();
        let start = line.len();
        let mut cost = self.cost(&line);
        // Beyond this many, what is named is noise.
        for (name, _, _) in names.into_iter().take(400) {
            if name.contains(", ")
                || lines.iter().any(|line| line.text.contains(name.as_str()))
                || found.files.keys().any(|path| path.ends_with(name.as_str()))
            {
                continue;
            }
            let piece = match line.len() > start {
                true => format!(", {name}"),
                false => name.clone(),
            };
            cost += self.estimator.text(&piece);
            if cost > room {
                break;
            }
            line.push_str(&piece);
        }
        (line.len() > start).then_some(line)
    }

    /// What was left out.
    fn expand_line(&self, found: &Gathered, shown: &BTreeSet<usize>, room: u64) -> Option<String> {
        let told = found.topics.iter().rev().take(12);
        let mut topics: Vec<String> = told.map(|topic| clip(topic, 80)).collect();
        let mut acts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut kinds: BTreeMap<Kind, u64> = BTreeMap::new();
        for (at, item) in self.items.iter().enumerate() {
            if shown.contains(&at) {
                continue;
            }
            if item.kind == Kind::Act {
                *acts.entry(&item.label).or_default() += 1;
            } else {
                *kinds.entry(item.kind).or_default() += 1;
            }
        }
        for (kind, count) in kinds {
            let what = match kind {
                Kind::User => "user message",
                Kind::Reply => "assistant message",
                Kind::Error => "error",
                Kind::Note | Kind::Act => "note",
            };
            topics.push(format!(
                "{count} more {what}{}",
                if count == 1 { "" } else { "s" }
            ));
        }
        let mut acts: Vec<(&str, u64)> = acts.into_iter().collect();
        acts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        for (name, count) in acts.into_iter().take(6) {
            topics.push(format!(
                "{count} more {name} call{}",
                if count == 1 { "" } else { "s" }
            ));
        }
        if found.calls > 0 {
            topics.push("tool output".to_owned());
        }
        topics.push("exact wording".to_owned());
        let mut line = EXPAND.to_owned();
        for (n, topic) in topics.iter().enumerate() {
            let length = line.len();
            if n > 0 {
                line.push_str(", ");
            }
            line.push_str(topic);
            if self.cost(&line) > room {
                line.truncate(length);
                break;
            }
        }
        (line.len() > EXPAND.len()).then_some(line)
    }

    /// Costs of lines need not add up to the cost of the text: drops what is worth least until
    /// the text fits.
    fn trim(&self, parts: &mut Parts, target: u64) {
        while self.estimator.text(&parts.print()) > target {
            if parts.names.take().is_some() || parts.expand.take().is_some() {
                continue;
            }
            let least = (0..parts.lines.len()).min_by_key(|n| {
                let at = parts.lines.get(*n).map_or(0, |line| line.at);
                let user = self
                    .items
                    .get(at)
                    .is_some_and(|item| item.kind == Kind::User);
                (user, self.score(at))
            });
            match least {
                Some(n) if parts.lines.len() > 1 || parts.files.is_none() => {
                    parts.lines.remove(n);
                }
                _ if parts.files.take().is_some() => {}
                _ if parts.header.take().is_some() => {}
                _ => break,
            }
        }
    }
}

fn print_item(item: &Item, chars: usize) -> String {
    let mut line = format!("- [{}] ", item.range_text());
    line.push_str(&item.label);
    let silent = item.sentences.iter().all(String::is_empty) && item.outcome.is_empty();
    if !item.label.is_empty() && !silent {
        line.push_str(": ");
    }
    if item.kind == Kind::User && item.weight < TYPED {
        line.push_str(&lead(&item.sentences, chars));
    } else if item.outcome.is_empty() {
        line.push_str(&digest(&item.sentences, chars));
    } else {
        let about = digest(&item.sentences, chars / 2);
        let room = chars.saturating_sub(about.chars().count()).max(chars / 2);
        line.push_str(&about);
        if !about.is_empty() {
            line.push_str(ARROW);
        }
        line.push_str(&clip(&item.outcome, room));
    }
    line.truncate(line.trim_end().len());
    line
}

impl Item {
    fn range_text(&self) -> String {
        if self.range.first == self.range.last {
            self.range.first.to_string()
        } else {
            self.range.to_string()
        }
    }
}

fn header(found: &Gathered, request: &SummaryRequest<'_>) -> String {
    let mut line = HEADER.to_owned();
    if let Some(range) = request.range() {
        line.push_str(&range.to_string());
    }
    if let Some((first, last)) = request.times()
        && first.0 != 0
    {
        let (first, last) = (minute(first), minute(last));
        let same_day = first.get(..11) == last.get(..11);
        let last = if same_day {
            last.get(11..).unwrap_or(&last)
        } else {
            &last
        };
        line.push_str(&format!(", {first} to {last}"));
    }
    let errors = found
        .items
        .iter()
        .filter(|item| item.kind == Kind::Error)
        .count() as u64;
    let mut counts = vec![plural(found.messages, "message")];
    for (count, what) in [
        (found.calls, "tool call"),
        (errors, "error"),
        (found.images, "image"),
    ] {
        if count > 0 {
            counts.push(plural(count, what));
        }
    }
    line.push_str(&format!(
        " ({}); [n] is the message to expand.",
        counts.join(", ")
    ));
    line
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The files, changed ones first, newest first; the folder that most share is named once.
fn files_line(
    files: &BTreeMap<String, FileStat>,
    room: u64,
    composer: &Composer<'_>,
) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let base = common_folder(files.keys().map(String::as_str));
    let mut sorted: Vec<(&String, &FileStat)> = files.iter().collect();
    sorted.sort_by_key(|(path, stat)| (std::cmp::Reverse(stat.last), path.as_str()));
    let (changed, read): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|(_, stat)| stat.changed > 0);
    let mut line = FILES.to_owned();
    if base.len() > 12 {
        line.push_str(&format!("(under {base}) "));
    }
    let base = if base.len() > 12 { base } else { "" };
    let start = line.len();
    // Counted piece by piece, so that many files cost little time; the whole is checked later.
    let mut cost = composer.cost(&line);
    for (word, list) in [("changed", changed), ("read", read)] {
        let mut first = true;
        for (path, stat) in list {
            let mut piece = match (first, line.len() > start) {
                (true, true) => format!("; {word} "),
                (true, false) => format!("{word} "),
                (false, _) => ", ".to_owned(),
            };
            piece.push_str(path.strip_prefix(base).unwrap_or(path));
            let times = if stat.changed > 0 {
                stat.changed
            } else {
                stat.read
            };
            if times > 1 {
                piece.push_str(&format!(" ×{times}"));
            }
            let more = composer.estimator.text(&piece);
            if cost.saturating_add(more) > room {
                break;
            }
            cost += more;
            line.push_str(&piece);
            first = false;
        }
    }
    (line.len() > start).then_some(line)
}

/// The longest folder that at least three quarters of the paths share; none where a path is
/// relative, so that a printed path is never taken for another.
fn common_folder<'a>(paths: impl Iterator<Item = &'a str>) -> &'a str {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut total = 0_usize;
    for path in paths {
        if !path.starts_with('/') {
            return "";
        }
        total += 1;
        for (at, _) in path.match_indices('/').skip(1) {
            *counts.entry(path.get(..=at).unwrap_or("")).or_default() += 1;
        }
    }
    if total < 2 {
        return "";
    }
    counts
        .into_iter()
        .filter(|(_, count)| count * 4 >= total * 3)
        .map(|(folder, _)| folder)
        .max_by_key(|folder| folder.len())
        .unwrap_or("")
}
