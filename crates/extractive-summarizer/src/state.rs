//! State of a conversation: goal, rules, conclusions, open tasks and failures. It is a fold over the log.

mod facts;
mod kept;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use memory_model::conventions::AgentConventions;
use memory_model::{LogEntry, Seq};
use token_estimate::TokenEstimator;

use crate::frame::common_folder;
use crate::item::{
    ASKED, COMMAND, Gathered, INSTRUCTIONS, Item, Kind, LAST_WORD, LONG, RULE, TYPED, is_mark,
};
use crate::print::{ARROW, ending, findings};
use crate::shell::Does;
use crate::standing;
use crate::tasks;
use crate::text::{clip, digest, sentences, squeeze};
use sentence_model::is_unspaced;

pub use facts::{Fact, FactKind};
pub use kept::KeptState;

/// Line that explains the positions in brackets to the reader, and one that also explains notes.
const LEGEND: &str = "[n] is the message to expand.";
const LONG_LEGEND: &str =
    "[n] is the message to expand, (to [n]) what is answered, (later: [n]) where it changed.";

/// Minimum length of a user's message that can be the goal, in characters.
const GOAL: usize = 24;
/// Number of letters that a character of a script without spaces counts for.
const WIDE: usize = 3;
/// Maximum number of listed requests. The last ones are listed.
const REQUESTS: usize = 12;
/// Number of characters up to which a request is short. Short ones often steer, and cost little.
const BRIEF: usize = 100;
/// Maximum number of listed answers of the assistant. The last ones are listed.
const CONCLUSIONS: usize = 2;
/// Maximum number of listed failing commands. The last ones are listed.
const FAILING: usize = 4;
/// Minimum weight of a listed failed command. It excludes commands that only look at something, such as searches.
const FAILED: u32 = 30;
/// Number of changed files whose common folder is told. The next constants are the maximums for other files and for searches.
const FILES: usize = 12;
const READ: usize = 5;
const SEARCHES: usize = 4;
/// Priority of the line with the folder of files.
const FOLDER: usize = 12;
/// Priority of rules in instructions that a person wrote down, behind all other lines. Agents show such a file again.
const WRITTEN_DOWN: usize = usize::MAX;
/// Priority of the latest wish that is no rule, behind all rules.
const WISHES: usize = 1_000_000;
/// Length up to which a rule is never cut, in characters. A rule without its end may say something else.
const WHOLE_RULE: usize = 160;
/// Divisor of the tokens of a state without tool calls.
const TALK: u64 = 2;
/// Maximum number of characters of a line in a state of 512 tokens. Other sizes have proportional lines.
const LINE: u64 = 320;
/// Lower and upper limit of the maximum number of characters of a line.
const LINES: (u64, u64) = (80, 400);

/// Section of the state, in the order of printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Goal,
    Rules,
    Wishes,
    Talk,
    Tasks,
    Files,
    Read,
    Searches,
    Failing,
}

impl Section {
    fn heading(self) -> &'static str {
        match self {
            Self::Goal => "First request",
            Self::Rules => "Rules of the user, newest first",
            Self::Wishes => "Other wishes of the user that no summary above has, newest first",
            Self::Talk => "Last requests and answers before the messages below",
            Self::Tasks => "Tasks",
            Self::Files => "Changed files, newest first",
            Self::Read => "Read, newest first",
            Self::Searches => "Searched for, newest first",
            Self::Failing => "Failed and not run again without an error",
        }
    }

    /// Returns the heading for a reader without any other part of the conversation.
    fn heading_alone(self) -> &'static str {
        match self {
            Self::Wishes => "Other wishes of the user, newest first",
            Self::Talk => "Last requests and answers",
            other => other.heading(),
        }
    }
}

/// A line of the state.
struct Line {
    section: Section,
    /// Position by which the section is ordered; the first position in sections without this order.
    place: Seq,
    /// Priority of the line. If not all lines fit, lines with smaller numbers are kept.
    priority: usize,
    text: String,
}

/// State of a conversation after one of its messages: requests, rules, tasks, changed files, failures. It is read from the
/// messages alone, so it is the same for each view of them and for each writer of their summaries.
#[derive(Debug, Clone)]
pub struct ConversationState {
    gathered: Gathered,
}

impl ConversationState {
    /// Reads the state from all messages of a conversation, oldest first. Takes time proportional to the length of their texts.
    pub fn of(log: &[&LogEntry], conventions: &dyn AgentConventions) -> Self {
        KeptState::default().then(log, conventions)
    }

    /// Completes the items of messages: separates users' messages into rules and other sentences.
    fn new(mut gathered: Gathered) -> Self {
        standing::apply(&mut gathered.items);
        Self { gathered }
    }

    /// Returns the state as text of at most `max_tokens` tokens: the first request, the user's rules in their latest form, later
    /// requests, the last answers, the task list, changed files, and commands that fail. For a conversation without
    /// tool calls, the text has only the rules and other wishes, and at most half of the tokens. `None` if the state is empty
    /// or no line fits.
    ///
    /// Messages at the positions `shown` are left out, because the reader sees them already. So are wishes up to the position
    /// `summarized`, which the summaries above have.
    pub fn text(
        &self,
        summarized: Seq,
        shown: &[Seq],
        max_tokens: u64,
        estimator: &dyn TokenEstimator,
    ) -> Option<String> {
        let chars = chars(max_tokens);
        let mut lines = self.rules(chars, |seq| !shown.contains(&seq));
        let is_told = |seq| seq > summarized && !shown.contains(&seq);
        lines.extend(self.wishes(chars, is_told));
        // Without tool calls there is no work in progress. Summaries and messages show talk better.
        if self.gathered.calls > 0 {
            work(&self.gathered, shown, chars, &mut lines);
        }
        let divisor = if self.gathered.calls > 0 { 1 } else { TALK };
        let max_tokens = max_tokens / divisor;
        print(lines, Section::heading, max_tokens, estimator)
    }

    /// Returns the state as text of at most `max_tokens` tokens, for a reader without any other part of the
    /// conversation: like [`text`](Self::text), with all wishes of the user. `None` if the state is
    /// empty or no line fits.
    pub fn card(&self, max_tokens: u64, estimator: &dyn TokenEstimator) -> Option<String> {
        let chars = chars(max_tokens);
        let mut lines = self.rules(chars, |_| true);
        lines.extend(self.wishes(chars, |_| true));
        work(&self.gathered, &[], chars, &mut lines);
        print(lines, Section::heading_alone, max_tokens, estimator)
    }

    /// Returns the user's rules in their latest form, as text of at most `max_tokens` tokens. `None` if there are none, or if none
    /// fits.
    pub fn rules_text(&self, max_tokens: u64, estimator: &dyn TokenEstimator) -> Option<String> {
        let rules = self.rules(chars(max_tokens), |_| true);
        print(rules, Section::heading, max_tokens, estimator)
    }

    /// Returns the rules of the messages for which `includes` is true, newest first.
    fn rules(&self, chars: usize, includes: impl Fn(Seq) -> bool) -> Vec<Line> {
        let items = self.gathered.items.iter().rev();
        let items = items.filter(|item| has_rules(item) && includes(item.range.first));
        let (mut lines, mut seen) = (Vec::new(), BTreeSet::new());
        let mut n = 0;
        for item in items {
            let rules = standing::wanted(item).rules.iter();
            // An agent shows instructions again.
            let rules: Vec<&String> = rules.filter(|rule| seen.insert(*rule)).collect();
            let priority = match item.kind {
                Kind::User => 10 + 3 * n,
                _ => WRITTEN_DOWN,
            };
            n += usize::from(!rules.is_empty());
            let rules = rules.into_iter();
            lines.extend(rules.map(|text| told(Section::Rules, priority, item, text, chars)));
        }
        lines
    }

    /// Returns the user's other wishes in the messages for which `includes` is true, newest first. In a conversation with tool
    /// calls, these are the ones beside rules, because other messages are listed as requests.
    fn wishes(&self, chars: usize, includes: impl Fn(Seq) -> bool) -> Vec<Line> {
        let is_talk = self.gathered.calls == 0;
        let items = self.gathered.items.iter().rev().enumerate();
        let items = items.filter(|(_, item)| {
            let lists = item.weight >= RULE && asks(item) && (is_talk || tells_rules(item));
            lists && includes(item.range.first)
        });
        let lines = items.flat_map(|(n, item)| {
            let wishes = standing::wanted(item).wishes.iter();
            wishes.map(move |text| told(Section::Wishes, WISHES + n, item, text, chars))
        });
        lines.collect()
    }
}

/// Returns a line with a rule or a wish of the user.
fn told(section: Section, priority: usize, item: &Item, text: &str, chars: usize) -> Line {
    Line {
        section,
        place: Seq::FIRST,
        priority,
        text: at(item, &clip(text.trim(), chars.max(WHOLE_RULE))),
    }
}

/// Returns the maximum number of characters of a line in a state of `max_tokens` tokens.
fn chars(max_tokens: u64) -> usize {
    (max_tokens * LINE / 512).clamp(LINES.0, LINES.1) as usize
}

/// Prints lines under the headings of their sections. If not all fit, lines with smaller priority numbers are kept.
fn print(
    mut lines: Vec<Line>,
    heading: fn(Section) -> &'static str,
    max_tokens: u64,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    lines.sort_by_key(|line| line.priority);
    let is_file = |line: &&Line| line.section == Section::Files && line.priority != FOLDER;
    let files = lines.iter().filter(is_file).count();
    let heading = |section: Section, files: &str| match section {
        Section::Files => format!("{}{files}", heading(section)),
        _ => heading(section).to_owned(),
    };
    let some = |shown: usize| format!(", {shown} of {files}");
    let mut headed: BTreeSet<Section> = BTreeSet::new();
    let is_talk = |line: &Line| line.section == Section::Talk;
    let legend = if lines.iter().any(is_talk) {
        LONG_LEGEND
    } else {
        LEGEND
    };
    let mut left = max_tokens.saturating_sub(estimator.text(legend) + 1);
    lines.retain(|line| {
        let of_heading = match headed.contains(&line.section) {
            true => 0,
            false => estimator.text(&heading(line.section, &some(files))) + 2,
        };
        let cost = of_heading + estimator.text(&line.text) + 1;
        let fits = cost <= left;
        if fits {
            left -= cost;
            headed.insert(line.section);
        }
        fits
    });
    if lines.is_empty() {
        return None;
    }
    let shown = lines.iter().filter(is_file).count();
    let files = if shown < files {
        some(shown)
    } else {
        String::new()
    };
    lines.sort_by_key(|line| (line.section, line.place));
    let mut out = format!("{legend}\n");
    let mut last = None;
    for line in lines {
        if last.replace(line.section) != Some(line.section) {
            out.push_str(&format!("{}:\n", heading(line.section, &files)));
        }
        out.push_str(&line.text);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    Some(out)
}

/// Returns whether an item (a candidate line) is a text that a user typed and that no later message replaced.
fn asks(item: &Item) -> bool {
    let typed = item.kind == Kind::User && item.weight >= TYPED && item.label != ASKED;
    typed && item.later.is_none() && !is_mark(item)
}

/// Returns whether an item (a candidate line) can be the first request. The text that a program adds for a user's command can,
/// too.
fn is_goal(item: &Item) -> bool {
    let length = |c: char| if is_unspaced(c) { WIDE } else { 1 };
    let letters = item.lines.iter().flat_map(|line| line.chars());
    let is_long = || letters.map(length).sum::<usize>() >= GOAL;
    is_template(item) || (is_request(item) && is_long())
}

/// Returns whether an item (a candidate line) is a user's request: typed words, or a long text with a request about it.
fn is_request(item: &Item) -> bool {
    asks(item) || (item.is_pasted() && item.later.is_none())
}

/// Returns whether an item (a candidate line) is the text that a program adds for a user's command.
fn is_template(item: &Item) -> bool {
    let is_injected = item.kind == Kind::Injected && item.label != INSTRUCTIONS;
    let begin = item.lines.first().filter(|_| is_injected);
    begin.is_some_and(|line| line.starts_with("# "))
}

/// Returns whether an item (a candidate line) may have rules: typed words, or instructions that a person wrote down.
fn has_rules(item: &Item) -> bool {
    asks(item) || item.label == INSTRUCTIONS
}

/// Returns whether an item (a candidate line) is listed with the rules, and not with the requests.
fn tells_rules(item: &Item) -> bool {
    item.weight >= RULE && !standing::wanted(item).rules.is_empty()
}

/// Adds the lines about work in progress.
fn work(gathered: &Gathered, shown: &[Seq], chars: usize, lines: &mut Vec<Line>) {
    let mut add = |section, priority, text| {
        lines.push(Line {
            section,
            place: Seq::FIRST,
            priority,
            text,
        });
    };
    let talk = |item: &Item, priority, who: &str, text: &str| Line {
        section: Section::Talk,
        place: item.range.last,
        priority,
        text: at(item, &format!("{who}: {text}")),
    };
    let items = gathered.items.iter();
    let items: Vec<&Item> = items.filter(|item| item.weight > 0).collect();
    let is_shown = |item: &Item| shown.contains(&item.range.first);
    let goal = items.iter().find(|item| is_goal(item));
    let goal = goal.filter(|item| !is_shown(item));
    if let Some(item) = goal {
        add(Section::Goal, 5, at(item, &words(item, chars)));
    }
    let requests = items.iter().filter(|item| {
        is_request(item)
            && !tells_rules(item)
            && !is_shown(item)
            && goal.is_none_or(|goal| goal.range != item.range)
    });
    let requests = requests.rev().take(REQUESTS).enumerate();
    let mut talked: Vec<Line> = requests
        .map(|(n, item)| {
            let text = words(item, chars / 2);
            let step = if text.chars().count() <= BRIEF { 2 } else { 6 };
            let long = if item.is_pasted() { LONG } else { "" };
            talk(item, 14 + step * n, &format!("User{long}"), &text)
        })
        .collect();
    let answers = items
        .iter()
        .filter(|item| item.kind == Kind::Reply && item.weight >= LAST_WORD && !is_shown(item));
    talked.extend(
        answers
            .rev()
            .take(CONCLUSIONS)
            .enumerate()
            .map(|(n, item)| {
                let text = digest(&findings(item, true), chars, true);
                talk(item, 8 + 12 * n, "Assistant", &text)
            }),
    );
    if let Some((item, text)) = tasks(&items) {
        add(Section::Tasks, 9, clip(&at(item, text), 2 * chars));
    }
    let mut files: Vec<_> = gathered.files.iter().collect();
    files.sort_by_key(|(path, file)| (Reverse(file.last), *path));
    let (changed, mut read): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|(_, file)| file.changed > 0);
    read.truncate(READ);
    let paths = changed.iter().take(FILES).chain(&read);
    let folder = common_folder(paths.map(|(path, _)| path.as_str()));
    let below = |path: &'_ str| path.strip_prefix(folder).unwrap_or(path).to_owned();
    if !folder.is_empty() {
        let first = match changed.is_empty() {
            true => Section::Read,
            false => Section::Files,
        };
        add(first, FOLDER, format!("below {folder}:"));
    }
    for (n, (path, file)) in changed.into_iter().enumerate() {
        let times = match file.changed {
            1 => String::new(),
            times => format!(" ×{times}"),
        };
        add(
            Section::Files,
            13 + 2 * n,
            format!("{}{times}", below(path)),
        );
    }
    if !read.is_empty() {
        let read: Vec<String> = read.into_iter().map(|(path, _)| below(path)).collect();
        add(Section::Read, 17, read.join(", "));
    }
    let mut seen = BTreeSet::new();
    let searches = gathered.searches.iter().rev();
    let searches = searches.filter(|pattern| seen.insert(pattern.as_str()));
    let searches: Vec<String> = searches
        .take(SEARCHES)
        .map(|pattern| clip(pattern, chars / 4))
        .collect();
    if !searches.is_empty() {
        add(Section::Searches, 24, searches.join(" · "));
    }
    let failing = failing(&items).into_iter();
    for (n, item) in failing.take(FAILING).enumerate() {
        let about = clip(&squeeze(&item.lines.join(" ")), chars / 2);
        let says = ending(item, chars / 2);
        let text = format!("{about}{ARROW}{says}");
        add(Section::Failing, 7 + 5 * n, at(item, &text));
    }
    lines.append(&mut talked);
}

/// Returns a line that begins with the position of the message of an item, such as `[12]`.
fn at(item: &Item, text: &str) -> String {
    format!("[{}] {text}", item.range.last)
}

/// Returns a message, shortened to `chars` characters.
fn words(item: &Item, chars: usize) -> String {
    digest(&sentences(&item.lines.join("\n")), chars, true)
}

/// Returns the last state of the task list; `None` if no task is open or in progress.
fn tasks<'a>(items: &[&'a Item]) -> Option<(&'a Item, &'a str)> {
    let acts = items
        .iter()
        .rev()
        .filter(|item| item.kind == Kind::Act && !item.runs());
    let mut lists = acts.filter_map(|item| Some((*item, item.lines.first()?.as_str())));
    let list = lists.find(|(_, text)| tasks::is_list(text));
    list.filter(|(_, text)| tasks::is_open(text))
}

/// Returns the commands that failed after the last request but one and did not succeed later, last one first. Earlier
/// failures were resolved, or are no longer relevant.
fn failing<'a>(items: &[&'a Item]) -> Vec<&'a Item> {
    let asked = items.iter().filter(|item| asks(item)).rev().nth(1);
    let since = asked.map_or(Seq::FIRST, |item| item.range.first);
    let mut failing: Vec<(Does, &Item)> = Vec::new();
    for item in items.iter().rev() {
        let line = item
            .lines
            .first()
            .and_then(|line| line.strip_prefix(COMMAND));
        let Some(line) = line.filter(|_| item.kind == Kind::Error) else {
            continue;
        };
        if item.weight >= FAILED && item.later.is_none() {
            // A later run of the same command shows the current state.
            let does = Does::of(line.trim_start());
            if !failing.iter().any(|(newer, _)| newer.makes_good(&does)) {
                failing.push((does, item));
            }
        }
    }
    let failing = failing.into_iter().map(|(_, item)| item);
    failing
        .take_while(|item| item.range.first > since)
        .collect()
}
