//! State of a conversation: goal, rules, conclusions, open tasks and failures.

mod facts;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use memory_model::conventions::AgentConventions;
use memory_model::{Seq, SummaryBody};
use token_estimate::TokenEstimator;

use crate::frame::common_folder;
use crate::gather::gather;
use crate::item::{
    ASKED, COMMAND, Gathered, INSTRUCTIONS, Item, Kind, LAST_WORD, REPLACED, RULE, TYPED, is_mark,
};
use crate::later::{BEGIN, Later};
use crate::print::{ARROW, ending, findings};
use crate::shell::Does;
use crate::source::Source;
use crate::standing;
use crate::tasks;
use crate::text::{clip, digest, line_sentences, sentences, squeeze};
use sentence_model::is_unspaced;

pub use facts::{Fact, FactKind};

/// Line that explains the positions in brackets to the reader.
const LEGEND: &str = "[n] is the message to expand.";

/// Minimum length of a user's message that can be the goal, in characters.
const GOAL: usize = 24;
/// Number of letters that a character of a script without spaces counts for.
const WIDE: usize = 3;
/// Maximum number of listed requests. The last ones are listed.
const REQUESTS: usize = 5;
/// Maximum number of listed answers of the assistant. The last ones are listed.
const CONCLUSIONS: usize = 2;
/// Maximum number of listed failing commands. The last ones are listed.
const FAILING: usize = 4;
/// Minimum weight of a listed failed command. It excludes commands that only look at something, such as searches.
const FAILED: u32 = 30;
/// Maximum number of listed changed files. The next constants are the maximums for other files and for searches.
const FILES: usize = 12;
const READ: usize = 5;
const SEARCHES: usize = 4;
/// Priority of rules in instructions that a person wrote down, behind all other lines. Agents show such a file again.
const WRITTEN_DOWN: usize = usize::MAX;
/// Priority of the latest wish that is no rule, behind all rules.
const WISHES: usize = 1_000_000;
/// Length up to which a rule is never cut, in characters. A rule without its end may say something else.
const WHOLE_RULE: usize = 160;
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
            Self::Rules => "Rules of the user that no summary above has, newest first",
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
            Self::Rules => "Rules of the user, newest first",
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

/// Current state of a conversation, read from its summaries and messages: requests, rules, tasks, changed files,
/// failures.
#[derive(Debug)]
pub struct ConversationState {
    gathered: Gathered,
    /// Positions of messages with new rules. A rule is new if it is in a message and not in a summary, or if it
    /// replaces a summary's rule.
    news: BTreeSet<Seq>,
    overtaken: Vec<Overtaken>,
}

impl ConversationState {
    /// Reads the state from messages and summaries, oldest first. Takes time proportional to the length of their texts.
    pub fn of(pieces: &[Source<'_>], conventions: &dyn AgentConventions) -> Self {
        let gathered = gather(pieces, conventions);
        Self {
            news: news(pieces, &gathered),
            overtaken: overtaken(pieces, &gathered),
            gathered,
        }
    }

    /// Returns the state as text of at most `max_tokens` tokens: the first request, new rules of the user, later
    /// requests, the last answers, the task list, changed files, and commands that fail. For a conversation without
    /// tool calls, the text has only the new rules and other wishes. `None` if the state is empty or no line fits.
    ///
    /// Messages at the positions `shown` are left out, because the reader sees them already.
    pub fn text(
        &self,
        shown: &[Seq],
        max_tokens: u64,
        estimator: &dyn TokenEstimator,
    ) -> Option<String> {
        let chars = chars(max_tokens);
        let is_told = |seq| self.is_new(seq) && !shown.contains(&seq);
        let mut lines = self.rules(chars, is_told);
        lines.extend(self.wishes(chars, is_told));
        // Without tool calls there is no work in progress. Summaries and messages show talk better.
        if self.gathered.calls > 0 {
            work(&self.gathered, shown, chars, &mut lines);
        }
        print(lines, Section::heading, max_tokens, estimator)
    }

    /// Returns the state as text of at most `max_tokens` tokens, for a reader without any other part of the
    /// conversation: like [`text`](Self::text), with all rules of the user in their latest form. `None` if the state is
    /// empty or no line fits.
    pub fn card(&self, max_tokens: u64, estimator: &dyn TokenEstimator) -> Option<String> {
        let chars = chars(max_tokens);
        let mut lines = self.rules(chars, |_| true);
        lines.extend(self.wishes(chars, |_| true));
        work(&self.gathered, &[], chars, &mut lines);
        print(lines, Section::heading_alone, max_tokens, estimator)
    }

    /// Returns the user's rules that are not in earlier summaries, as text of at most `max_tokens` tokens. `None` if
    /// there are none, or if none fits.
    pub fn new_rules(&self, max_tokens: u64, estimator: &dyn TokenEstimator) -> Option<String> {
        let rules = self.rules(chars(max_tokens), |seq| self.is_new(seq));
        print(rules, Section::heading, max_tokens, estimator)
    }

    /// Returns the sentences in earlier pieces that later pieces replace.
    pub fn overtaken(&self) -> &[Overtaken] {
        &self.overtaken
    }

    fn is_new(&self, seq: Seq) -> bool {
        self.news.contains(&seq)
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
    let mut headed: BTreeSet<Section> = BTreeSet::new();
    let mut left = max_tokens.saturating_sub(estimator.text(LEGEND) + 1);
    lines.retain(|line| {
        let of_heading = match headed.contains(&line.section) {
            true => 0,
            false => estimator.text(heading(line.section)) + 2,
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
    lines.sort_by_key(|line| (line.section, line.place));
    let mut out = format!("{LEGEND}\n");
    let mut last = None;
    for line in lines {
        if last.replace(line.section) != Some(line.section) {
            out.push_str(&format!("{}:\n", heading(line.section)));
        }
        out.push_str(&line.text);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    Some(out)
}

/// A sentence in a message or a summary that a later message replaces or contradicts. The sentence is from the user or
/// from the assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overtaken {
    /// Position of the message that contains the sentence.
    pub seq: Seq,
    /// Text of the sentence that is replaced.
    pub sentence: String,
    /// Position of the later message that replaces the sentence.
    pub later: Seq,
    /// Whether the later message replaces only a part of the sentence: it changes one of several things that the
    /// sentence is about.
    pub in_part: bool,
    /// Value that the later message sets instead, or quoted words of the later message; `None` if there are neither.
    pub value: Option<String>,
}

impl Overtaken {
    /// Returns a note to put after the sentence that refers to the later message, such as `(later: [88]: 'x')`.
    pub fn note(&self) -> String {
        let later = Later {
            seq: self.later,
            in_part: self.in_part,
            value: self.value.clone(),
        };
        later.to_string().trim_start().to_owned()
    }

    /// Returns the text of a summary with the [note](Self::note) added after the sentence. `None` if the text does not
    /// contain the sentence, or has a note after it.
    pub fn mark(&self, body: &SummaryBody) -> Option<SummaryBody> {
        let text = body.text();
        let line = text.find(&format!("[{}] ", self.seq))?;
        let at = line + text.get(line..)?.find(&self.sentence)? + self.sentence.len();
        let (before, after) = text.split_at_checked(at)?;
        if after.starts_with(BEGIN) {
            return None;
        }
        let marked = format!("{before} {}{after}", self.note());
        SummaryBody::from_parts(marked, body.ranks().map(<[u8]>::to_vec)).ok()
    }
}

fn overtaken(pieces: &[Source<'_>], gathered: &Gathered) -> Vec<Overtaken> {
    let users = gathered.items.iter().filter(|item| item.kind == Kind::User);
    let sentences = users.flat_map(|item| {
        let whole = item.later.filter(|_| item.weight == REPLACED);
        let whole = whole.map(|seq| {
            let later = Later {
                seq,
                in_part: false,
                value: item.instead.clone(),
            };
            (item.lines.join(" "), later)
        });
        let all = item.lines.iter().flat_map(|line| line_sentences(line));
        let parts = all.filter_map(|sentence| {
            let (said, later) = Later::read(&sentence)?;
            Some((said.to_owned(), later))
        });
        whole
            .into_iter()
            .chain(parts)
            .map(|told| (item.range, told))
    });
    let forgotten = gathered.forgotten.iter();
    let forgotten = forgotten.map(|one| (one.range, (one.sentence.clone(), one.later.clone())));
    let overtaken = sentences
        .chain(forgotten)
        .filter_map(|(own, (sentence, later))| {
            let piece = pieces.iter().find(|piece| piece.range().covers(&own))?;
            let is_outside = piece.range().last < later.seq;
            is_outside.then_some(Overtaken {
                seq: own.last,
                sentence,
                later: later.seq,
                in_part: later.in_part,
                value: later.value,
            })
        });
    overtaken.collect()
}

fn news(pieces: &[Source<'_>], gathered: &Gathered) -> BTreeSet<Seq> {
    // Pieces are in the order of the log.
    let place = |seq: Seq| {
        let at = pieces.partition_point(|piece| piece.range().last < seq);
        (at < pieces.len()).then_some(at)
    };
    let is_message = |at: usize| matches!(pieces.get(at), Some(Source::Message(_)));
    let replacing = gathered.items.iter().filter_map(|item| {
        let later = item.later.filter(|_| item.kind == Kind::User)?;
        (place(item.range.first) != place(later)).then_some(later)
    });
    let told = gathered.items.iter().filter(|item| has_rules(item));
    let in_messages = told.filter(|item| place(item.range.first).is_some_and(is_message));
    replacing
        .chain(in_messages.map(|item| item.range.first))
        .collect()
}

/// Returns whether an item (a candidate line) is a text that a user typed and that no later message replaced.
fn asks(item: &Item) -> bool {
    let typed = item.kind == Kind::User && item.weight >= TYPED && item.label != ASKED;
    typed && item.later.is_none() && !is_mark(item)
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
    // The text that a program adds for a user's command is a request, too.
    let template = |item: &Item| {
        let is_injected = item.kind == Kind::Injected && item.label != INSTRUCTIONS;
        let begin = item.lines.first().filter(|_| is_injected);
        begin.is_some_and(|line| line.starts_with("# "))
    };
    let goal = items.iter().find(|item| {
        let length = |c: char| if is_unspaced(c) { WIDE } else { 1 };
        let letters = item.lines.iter().flat_map(|line| line.chars());
        let long = || letters.map(length).sum::<usize>() >= GOAL;
        template(item) || (asks(item) && long())
    });
    let goal = goal.filter(|item| !is_shown(item));
    if let Some(item) = goal {
        add(Section::Goal, 5, at(item, &words(item, chars)));
    }
    let requests = items.iter().filter(|item| {
        asks(item)
            && !tells_rules(item)
            && !is_shown(item)
            && goal.is_none_or(|goal| goal.range != item.range)
    });
    let requests = requests.rev().take(REQUESTS).enumerate();
    let mut talked: Vec<Line> = requests
        .map(|(n, item)| talk(item, 14 + 6 * n, "User", &words(item, chars / 2)))
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
        add(first, 13, format!("below {folder}:"));
    }
    for (n, (path, file)) in changed.into_iter().take(FILES).enumerate() {
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
        add(Section::Searches, 16, searches.join(" · "));
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
