//! Ledgers: dense lists of the commands that ran and of the calls that failed. A context that shows only some lines of
//! a summary shows these lists before longer lines.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use memory_model::Seq;
use token_estimate::TokenEstimator;

use crate::failure::{self, without_times};
use crate::item::{COMMAND, Item, Kind};
use crate::ran::Ran;
use crate::shell::{self, anywhere, command, is_look};
use crate::text::{clip, squeeze};
use crate::tool_call::is_lasting;

/// Beginning of a line of commands.
pub(crate) const RAN: &str = "Ran: ";
/// Beginning of a line of commands that ran after a `cd`, or of a line that names the `cd` for the lines below.
pub(crate) const RAN_AFTER: &str = "Ran after ";
/// Beginning of a line of commands that ran after the `cd` of a line above.
pub(crate) const RAN_THERE: &str = "Ran there: ";
/// Beginning of the line of a failed call.
pub(crate) const FAILED: &str = "Failed: ";
/// Separator between commands.
const BETWEEN: &str = " · ";
/// Separator between a command and the number of times that it ran.
const TIMES: &str = " ×";

/// Maximum length of a command, in characters.
const COMMAND_CHARS: usize = 60;
/// Maximum cost of a line of several commands, in tokens. Lines are short, because a context that shows a summary
/// shortened keeps only whole lines.
const LINE_TOKENS: u64 = 48;
/// Cost of a line without its commands, in tokens.
const BESIDE_LINE: u64 = 4;
/// Cost that is added to a command's text when its value is computed, in tokens.
const BESIDE_COMMAND: u64 = 3;
/// Maximum length of the line that names an error, and of a second line of the error, in characters.
const ERROR_CHARS: usize = 80;
const REPORT_CHARS: usize = 48;
/// Number of first characters by which the lines of an error are compared.
const SAME_CHARS: usize = 6;
/// Maximum length of the failed call in a line, in characters. The next constant is the maximum number of words of a
/// command.
const CALL_CHARS: usize = 24;
const CALL_WORDS: usize = 3;
/// Value that is added to the lines of a ledger, so that they come before the lines of items.
const LISTS: u64 = 1 << 60;
/// Minimum weight of an error in a ledger. It excludes searches without hits.
pub(crate) const LISTED_ERROR: u32 = 13;

/// A line of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) text: String,
    /// Order among the lines of the ledger. A context that shows a summary shortened keeps the lines with larger values
    /// first.
    pub(crate) worth: u64,
    /// Index of the line that this line continues.
    pub(crate) head: Option<usize>,
}

impl Ran {
    /// Parses a command line; `None` if it is empty.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let (folder, after) = shell::split_cd(line);
        let head = beginning(shell::without_filters(after), COMMAND_CHARS);
        let cd = match &*folder {
            "" | shell::BEFORE => String::new(),
            folder => format!("cd {folder}"),
        };
        (!head.is_empty()).then_some(Self { cd, head, times: 1 })
    }

    /// Parses a command line for the ledger. `None` if the command only looks at something. `None` also if the command
    /// changed something lasting and gives the reason, or is too long, because its item shows it.
    pub(crate) fn listed(line: &str) -> Option<Self> {
        let says_why = |ran: &Self| !ran.is_whole() || ran.head.contains(['"', '\'']);
        let ran = Self::of(line).filter(|_| !is_look(line))?;
        // A fragment of a script is not informative.
        let is_piece = !ran.is_whole() && ran.head.contains(['"', '\'', '$', '<', '{']);
        (!is_piece && (!is_lasting(line) || !says_why(&ran))).then_some(ran)
    }

    /// Returns whether the stored beginning is the whole command.
    fn is_whole(&self) -> bool {
        !self.head.ends_with('…')
    }
}

/// Returns the first `chars` characters of a line. `…` marks the cut, which may be inside a word.
fn beginning(line: &str, chars: usize) -> String {
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line).trim_end()),
        None => line.trim_end().to_owned(),
    }
}

/// Returns lines that list each different command once, at a cost of at most `room` tokens. If not all commands fit,
/// the most valuable ones are chosen: see [`value`].
pub(crate) fn ran(ran: &[Ran], room: u64, estimator: &dyn TokenEstimator) -> Vec<Entry> {
    let mut last: BTreeMap<(&str, &str), (usize, u32)> = BTreeMap::new();
    for (at, one) in ran.iter().enumerate() {
        let (newest, times) = last.entry((&one.cd, &one.head)).or_default();
        *newest = at;
        *times += one.times;
    }
    let mut folders: BTreeMap<&str, Vec<Command>> = BTreeMap::new();
    for ((cd, head), (at, times)) in last {
        let text = match times {
            1 => head.to_owned(),
            _ => format!("{head}{TIMES}{times}"),
        };
        let cost = estimator.text(&text) + 1;
        let value = value(head, times, at, ran.len());
        folders.entry(cd).or_default().push(Command {
            at,
            text,
            cost,
            value,
        });
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (cd, mut list) in folders {
        list.sort_by_key(|one| {
            (
                Reverse(one.value / (one.cost + BESIDE_COMMAND)),
                Reverse(one.at),
            )
        });
        let mut rest = list.as_mut_slice();
        while !rest.is_empty() {
            let mut spent = 0;
            let many = rest.iter().take_while(|one| {
                spent += one.cost;
                spent <= LINE_TOKENS.min(room.saturating_sub(BESIDE_LINE))
            });
            let many = many.count().max(1);
            let (part, after) = rest.split_at_mut(many);
            groups.push(Group::of(cd, part));
            rest = after;
        }
    }
    chosen(groups, room, estimator)
}

/// A command in a ledger.
struct Command {
    /// Index of the command's last run.
    at: usize,
    text: String,
    /// Cost of the command and its separator, in tokens.
    cost: u64,
    value: u64,
}

/// Returns the value of a command with its last run at index `at` of `all` runs. Later commands count up to three times
/// as much. Commands that ran several times count half as much again. Commands that only look at something count
/// little.
fn value(head: &str, times: u32, at: usize, all: usize) -> u64 {
    let newness = 2_000 * (at as u64 + 1) / (all as u64).max(1);
    let value = 1_000 + newness;
    let value = if times > 1 { value * 3 / 2 } else { value };
    1_000 * if is_look(head) { value / 8 } else { value }
}

/// Commands that share a line.
struct Group<'a> {
    cd: &'a str,
    newest: usize,
    worth: u64,
    list: String,
}

impl<'a> Group<'a> {
    /// Creates a line of commands, in the order in which they ran.
    fn of(cd: &'a str, commands: &mut [Command]) -> Self {
        commands.sort_by_key(|one| one.at);
        let texts: Vec<&str> = commands.iter().map(|one| one.text.as_str()).collect();
        let value: u64 = commands.iter().map(|one| one.value).sum();
        let cost: u64 = commands.iter().map(|one| one.cost + BESIDE_COMMAND).sum();
        Self {
            cd,
            newest: commands.last().map_or(0, |one| one.at),
            worth: LISTS + value / cost.max(1),
            list: texts.join(BETWEEN),
        }
    }
}

/// Returns the lines of the most valuable groups, in the order of the conversation.
fn chosen(mut groups: Vec<Group<'_>>, room: u64, estimator: &dyn TokenEstimator) -> Vec<Entry> {
    groups.sort_by_key(|group| Reverse(group.worth));
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut spent, mut fitting) = (0, 0);
    for group in &groups {
        let folder = match folders.contains_key(group.cd) || group.cd.is_empty() {
            true => 0,
            false => estimator.text(group.cd) + 5,
        };
        spent += folder + estimator.text(&group.list) + BESIDE_LINE;
        if spent > room {
            break;
        }
        fitting += 1;
        let newest = folders.entry(group.cd).or_default();
        *newest = group.newest.max(*newest);
    }
    groups.truncate(fitting);
    groups.sort_by_key(|group| (folders.get(group.cd).copied(), group.cd, group.newest));
    let mut entries: Vec<Entry> = Vec::new();
    let mut folder: Option<(&str, usize)> = None;
    for (at, group) in groups.iter().enumerate() {
        let entry = |text, head| Entry {
            text,
            worth: group.worth,
            head,
        };
        if group.cd.is_empty() {
            entries.push(entry(format!("{RAN}{}", group.list), None));
            continue;
        }
        let head = folder
            .filter(|(cd, _)| *cd == group.cd)
            .map(|(_, head)| head);
        if let Some(head) = head {
            entries.push(entry(format!("{RAN_THERE}{}", group.list), Some(head)));
            continue;
        }
        let alone = groups.get(at + 1).is_none_or(|next| next.cd != group.cd);
        if alone {
            entries.push(entry(
                format!("{RAN_AFTER}{}: {}", group.cd, group.list),
                None,
            ));
            continue;
        }
        let head = entries.len();
        folder = Some((group.cd, head));
        entries.push(Entry {
            text: format!("{RAN_AFTER}{}:", group.cd),
            worth: 0,
            head: None,
        });
        entries.push(entry(format!("{RAN_THERE}{}", group.list), Some(head)));
    }
    entries
}

/// Parses the commands in a line of a ledger; `None` if the line is not one of commands. `cd` is the `cd` of the line
/// above, and is updated.
pub(crate) fn read_ran(line: &str, cd: &mut String) -> Option<Vec<Ran>> {
    let list = if let Some(list) = line.strip_prefix(RAN) {
        cd.clear();
        list
    } else if let Some(list) = line.strip_prefix(RAN_THERE) {
        list
    } else {
        let rest = line.strip_prefix(RAN_AFTER)?;
        let (folder, list) = rest
            .split_once(": ")
            .or(rest.strip_suffix(':').map(|f| (f, "")))?;
        folder.clone_into(cd);
        list
    };
    let commands = list.split(BETWEEN).filter(|text| !text.is_empty());
    let commands = commands.map(|text| {
        let counted = text.rsplit_once(TIMES);
        let counted = counted.and_then(|(head, times)| Some((head, times.parse().ok()?)));
        let (head, times) = counted.unwrap_or((text, 1));
        Ran {
            cd: cd.clone(),
            head: head.to_owned(),
            times,
        }
    });
    Some(commands.collect())
}

/// Returns the commands that the lines of a ledger contain whole.
pub(crate) fn whole_commands(entries: &[Entry]) -> impl Iterator<Item = String> {
    let mut cd = String::new();
    let ran = entries.iter();
    let ran = ran.filter_map(move |entry| read_ran(&entry.text, &mut cd));
    let whole = |ran: &Ran| ran.cd.is_empty() && ran.is_whole();
    ran.flatten().filter(whole).map(|ran| ran.head)
}

/// Returns the beginnings of the commands in the lines of a ledger.
pub(crate) fn commands(entries: &[Entry]) -> BTreeSet<String> {
    let mut cd = String::new();
    let ran = entries.iter();
    let ran = ran.filter_map(|entry| read_ran(&entry.text, &mut cd));
    ran.flatten().map(|ran| ran.head).collect()
}

/// A failed call in a ledger.
struct Failure {
    seq: Seq,
    call: String,
    says: String,
    times: u32,
}

/// Returns lines that list failed calls with their errors, at a cost of at most `room` tokens. Calls that later
/// succeeded are left out. Errors that differ only in times share a line. Later errors have priority.
pub(crate) fn failed(items: &[Item], room: u64, estimator: &dyn TokenEstimator) -> Vec<Entry> {
    let mut failures: Vec<Failure> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for item in items {
        let listed = item.kind == Kind::Error && item.weight >= LISTED_ERROR;
        // An error that was later resolved is shown by its item.
        let Some(says) = says(item).filter(|_| listed && item.later.is_none()) else {
            continue;
        };
        let seq = item.range.first;
        let place = places.entry(without_times(&says));
        let place = *place.or_insert(failures.len());
        match failures.get_mut(place) {
            Some(failure) => {
                failure.times += 1;
                (failure.seq, failure.call, failure.says) = (seq, call(item), says);
            }
            None => failures.push(Failure {
                seq,
                call: call(item),
                says,
                times: 1,
            }),
        }
    }
    failures.sort_by_key(|failure| Reverse(failure.seq));
    let mut spent = 0;
    let mut entries: Vec<(Seq, Entry)> = Vec::new();
    for failure in failures {
        let text = failure.line();
        spent += estimator.text(&text) + 1;
        if spent > room {
            break;
        }
        let entry = Entry {
            text,
            worth: u64::MAX - entries.len() as u64,
            head: None,
        };
        entries.push((failure.seq, entry));
    }
    entries.sort_by_key(|(seq, _)| *seq);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

impl Failure {
    fn line(&self) -> String {
        let mut line = format!("{FAILED}[{}] {}: {}", self.seq, self.call, self.says);
        if self.times > 1 {
            line.push_str(&format!("{TIMES}{}", self.times));
        }
        line
    }
}

/// Returns the call of an error in a few words.
fn call(item: &Item) -> String {
    let line = item.lines.first().map_or("", String::as_str);
    match line
        .strip_prefix(COMMAND)
        .and_then(|line| line.strip_prefix(' '))
    {
        Some(line) => {
            let line = line.strip_prefix("… ").unwrap_or(line);
            let line = anywhere(command(line));
            first_words(&line).unwrap_or_else(|| clip(&line, CALL_CHARS))
        }
        None => match line.split_once(": ") {
            Some((name, path)) if !path.contains(' ') => format!("{name}: {}", end(path)),
            _ => clip(line, CALL_CHARS),
        },
    }
}

/// Returns a path, or only its end if it is long.
fn end(path: &str) -> String {
    let cut = path
        .rmatch_indices('/')
        .nth(1)
        .filter(|_| path.len() > CALL_CHARS);
    cut.map_or(path.to_owned(), |(at, _)| {
        format!("…{}", path.get(at..).unwrap_or(path))
    })
}

/// Returns the program and the subcommands at the start of a command line; `None` if it does not begin with a short
/// plain word.
fn first_words(line: &str) -> Option<String> {
    let plain = |word: &&str| {
        let inside =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | '/');
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/'))
            && word.chars().all(inside)
    };
    let mut text = String::new();
    for word in line.split(' ').take_while(plain).take(CALL_WORDS) {
        if !text.is_empty() {
            if text.len() + 1 + word.len() > CALL_CHARS {
                break;
            }
            text.push(' ');
        }
        text.push_str(word);
    }
    (!text.is_empty() && text.len() <= CALL_CHARS).then_some(text)
}

/// Returns the line that names the error best, followed by the next line that names it.
fn says(item: &Item) -> Option<String> {
    let plain = item.outcome.iter().map(|line| squeeze(untagged(line)));
    let lines: Vec<(u8, String)> = plain.map(|line| (failure::tells(&line), line)).collect();
    let told = lines
        .iter()
        .map(|(tells, _)| *tells)
        .max()
        .filter(|tells| *tells > 0)?;
    let first = lines.iter().position(|(tells, _)| *tells == told)?;
    let mut says = beginning(&lines.get(first)?.1, ERROR_CHARS);
    // A line that begins like the first line repeats it.
    let begin = |line: &str| line.chars().take(SAME_CHARS).collect::<String>();
    let other = |line: &str| begin(line) != begin(&says);
    let mut more = lines.iter().skip(first + 1);
    let more = more.find(|(tells, line)| *tells > 2 && other(line));
    if let Some((_, more)) = more.filter(|_| told > 2) {
        says.push_str(" | ");
        says.push_str(&beginning(more, REPORT_CHARS));
    }
    Some(says)
}

/// Returns a line without the tags that a program adds around its messages.
fn untagged(line: &str) -> &str {
    let mut line = line.trim();
    for open in ["<", "&lt;"] {
        let name = line
            .strip_prefix(open)
            .and_then(|rest| rest.split_once('>'));
        if let Some((_, rest)) = name.filter(|(name, _)| is_tag(name)) {
            let end = rest.rfind(&format!("{open}/")).unwrap_or(rest.len());
            line = rest.get(..end).unwrap_or(rest);
        }
    }
    line
}

fn is_tag(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
    !name.is_empty() && name.chars().all(word)
}

/// Parses a line of a failed call into its position, call and error text; `None` for any other line.
pub(crate) fn read_failed(line: &str) -> Option<(Seq, &str, &str)> {
    let rest = line.strip_prefix(FAILED)?.strip_prefix('[')?;
    let (seq, rest) = rest.split_once("] ")?;
    let (call, says) = rest.split_once(": ")?;
    Some((Seq(seq.parse().ok()?), call, says))
}
