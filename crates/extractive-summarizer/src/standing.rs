//! Separation of users' messages into rules and other sentences, and detection of sentences that a later one replaces.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use memory_model::Seq;
use sentence_model::{NumberedRelation, NumberedSentence, RULE_PROBABILITY, rule_probability};

use crate::doubts::{contradicts, mark_contradicted};
use crate::force::{Force, force, refers};
use crate::item::{Forgotten, Item, Kind, PASTED, REPLACED, RULE, TYPED, VALUED, Wanted};
use crate::later::Later;
use crate::replies::{joined, take_out};
use crate::settings::forget_overtaken;
use crate::statement::{Statement, Understood, understood};
use crate::text::{line_sentences, reads_as_code};

/// Maximum number of users' statements (sentences that set a value) that are compared, counted from the last one back.
const COMPARED: usize = 256;
/// Maximum number of sentences that are read of a message.
const SENTENCES: usize = 400;
/// Maximum number of sentences of a message that the next one may answer without naming the thing.
const FEW: usize = 3;
/// Number of letters and digits in the rest of a message with a rule. Below this number, the message is not split.
const BESIDE: usize = 40;
/// Number of messages at the end that are not split. Only replaced sentences are removed from them.
const WHOLE: usize = 5;
/// Maximum length of a message that is not split, in bytes.
const SHORT: usize = 130;
/// Maximum length of a sentence that is printed with the rule that refers to it, in bytes.
const LEAD: usize = 240;
/// Maximum length of an assistant's message that is searched for replaced values, in bytes.
const REPLY: usize = 2_000;

/// A sentence of a user's message.
struct Sentence {
    line: usize,
    text: String,
    force: Force,
    statements: Vec<Statement>,
    numbered: Arc<NumberedSentence>,
    fate: Fate,
    /// Whether it is neither code nor a user's answer with its question.
    is_plain: bool,
    /// Whether the next sentence has the force of a rule, and refers to this sentence.
    leads: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Live,
    /// A later sentence says the same.
    Repeated,
    /// A later sentence replaces this sentence, or replaces it for one of the things that it is about.
    Changed(Later),
}

impl Sentence {
    /// Returns the text of the sentence, with a note if a part of it was replaced.
    fn printed(&self) -> Cow<'_, str> {
        match &self.fate {
            Fate::Changed(later) if later.in_part => Cow::Owned(format!("{}{later}", self.text)),
            _ => Cow::Borrowed(&self.text),
        }
    }
}

/// A user's message, divided into sentences.
struct Told {
    item: usize,
    /// Whether the user's message before is not the one that is told before.
    after_gap: bool,
    seq: Seq,
    sentences: Vec<Sentence>,
}

/// Splits users' messages into rules, other text, and replaced sentences. Returns the sentences that were removed from
/// replies.
pub(crate) fn apply(items: &mut Vec<Item>) -> Vec<Forgotten> {
    let contradicted = mark_contradicted(items);
    let mut told: Vec<Told> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if item.kind == Kind::User && item.later.is_none() && item.weight >= PASTED {
            told.push(read(at, item, Depth::Statements));
        }
    }
    let mut replaced = compare(&mut told);
    replaced.truncate(COMPARED);
    let mut forgotten = forget(items, &replaced);
    forgotten.extend(forget_overtaken(items));
    forgotten.extend(contradicted);
    let newest = told.iter().rev().nth(WHOLE).map_or(0, |told| told.item + 1);
    let mut told = told.into_iter().peekable();
    let mut out = Vec::with_capacity(items.len());
    for (at, item) in items.drain(..).enumerate() {
        match told.next_if(|told| told.item == at) {
            Some(told) => split(item, told.sentences, at >= newest, &mut out),
            None => out.push(item),
        }
    }
    *items = out;
    forgotten
}

/// How much is read of sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Their force.
    Force,
    /// Their force, and the statements and numbers that are compared with those of other sentences.
    Statements,
}

fn read(at: usize, item: &Item, depth: Depth) -> Told {
    let mut sentences: Vec<Sentence> = Vec::new();
    let mut code = false;
    for (line, text) in item.lines.iter().enumerate() {
        let fence = text.trim_start().starts_with("```");
        code ^= fence;
        let parts = match code || fence {
            true => vec![text.clone()],
            false => line_sentences(text),
        };
        for text in parts {
            if sentences.len() > SENTENCES {
                break;
            }
            let is_code = code || fence || reads_as_code(&text);
            let plain = !is_code && !text.contains("(to [");
            let (said, later) = match Later::read(&text) {
                Some((said, later)) => (said, Some(later)),
                None => (text.as_str(), None),
            };
            let fate = later.map_or(Fate::Live, Fate::Changed);
            let before = sentences.last().filter(|before| before.line == line);
            let before = before.map(|before| before.text.as_str());
            let understood = match plain {
                true if depth == Depth::Statements && item.weight > PASTED => {
                    understood(said, before)
                }
                true => Understood {
                    force: force(said),
                    ..Understood::default()
                },
                // An answer quotes a question behind itself: `8081 instead (to [2] Which port?)`.
                false => Understood {
                    numbered: match said.split_once(" (to [") {
                        Some((own, _)) if !is_code && depth == Depth::Statements => {
                            Arc::new(NumberedSentence::read(own))
                        }
                        _ => Arc::default(),
                    },
                    ..Understood::default()
                },
            };
            sentences.push(Sentence {
                line,
                force: understood.force,
                is_plain: plain,
                statements: understood.statements,
                numbered: understood.numbered,
                text: said.to_owned(),
                fate,
                leads: false,
            });
        }
    }
    for n in 1..sentences.len() {
        let refers = sentences
            .get(n)
            .is_some_and(|one| one.force >= Force::Rule && refers(&one.text));
        if let Some(before) = sentences.get_mut(n - 1) {
            let is_brief = before.is_plain && before.text.len() < LEAD;
            before.leads = refers && before.force < Force::Rule && is_brief;
        }
    }
    Told {
        item: at,
        after_gap: item.after_gap,
        seq: item.range.first,
        sentences,
    }
}

/// Minimum probability of a rule without the [`Force`] of one, for which nothing else speaks.
const ALONE: f64 = 0.95;

/// Returns the sentences of a message that ask for something, each with the sentence before it if it refers to that.
pub(crate) fn wanted(item: &Item) -> &Wanted {
    item.wanted.get_or_init(|| {
        let sentences = read(0, item, Depth::Force).sentences;
        let is_rule: Vec<bool> = sentences.iter().map(is_rule).collect();
        let chosen = |includes: &dyn Fn(&Sentence, bool) -> bool| {
            let kinds = sentences.iter().zip(&is_rule);
            let included: Vec<bool> = kinds
                .map(|(one, is_rule)| includes(one, *is_rule))
                .collect();
            let led = included.iter().skip(1).chain([&false]);
            let all = sentences.iter().zip(&included).zip(led);
            let all = all.filter(|((one, is), leads)| **is || (one.leads && **leads));
            all.map(|((one, _), _)| one.printed().into_owned())
                .collect()
        };
        Wanted {
            rules: chosen(&|_, is_rule| is_rule),
            wishes: chosen(&|one, is_rule| !is_rule && one.force >= Force::Rule),
        }
    })
}

/// Returns for each line of a user's text whether it has a sentence that later ones may replace: one with the [`Force`] of a rule,
/// with a rule, or with a statement. A sentence to which such a sentence refers is one, too.
pub(crate) fn lasting_lines(item: &Item) -> Vec<bool> {
    let mut lasts = vec![contradicts(item); item.lines.len()];
    for one in read(0, item, Depth::Statements).sentences {
        let tells = || one.statements.iter().any(Statement::tells);
        let has_numbers = || one.numbered.has_numbers();
        let is_forced = one.leads || one.force >= Force::Rule;
        let may_change = is_forced || is_rule(&one) || tells() || has_numbers();
        if let Some(line) = lasts.get_mut(one.line) {
            *line |= may_change;
        }
    }
    lasts
}

/// Returns whether a sentence is a rule for the work to come. Extracts also keep other sentences with the [`Force`] of a rule.
fn is_rule(sentence: &Sentence) -> bool {
    let least = if sentence.force >= Force::Rule {
        RULE_PROBABILITY
    } else {
        ALONE
    };
    sentence.is_plain && rule_probability(&sentence.text) >= least
}

/// A user's statement (a sentence that sets a value) that a later one replaces.
struct Replaced {
    statement: Statement,
    /// Index of the item (candidate line) with the later statement.
    by: usize,
    /// Value that the later statement sets.
    value: Option<String>,
}

/// A later sentence with numbers.
struct Numbered {
    /// Indices of the message and the sentence.
    place: (usize, usize),
    item: usize,
    seq: Seq,
    text: String,
    sentence: Arc<NumberedSentence>,
    keys: BTreeSet<String>,
    /// Whether its message has few sentences, and directly follows the one that is told before.
    is_short: bool,
}

impl Numbered {
    fn of(sentence: &Sentence, place: (usize, usize), told: &(usize, Seq, bool)) -> Option<Self> {
        let (item, seq, is_short) = *told;
        sentence.numbered.has_numbers().then(|| Self {
            place,
            item,
            seq,
            text: sentence.text.clone(),
            sentence: Arc::clone(&sentence.numbered),
            keys: sentence.numbered.keys(),
            is_short,
        })
    }
}

/// Later sentences with numbers. The sentences of later messages come first.
#[derive(Default)]
struct LaterNumbered {
    all: Vec<Numbered>,
    /// Indices of the sentences with each key, ascending.
    by_key: HashMap<String, Vec<usize>>,
}

impl LaterNumbered {
    fn extend(&mut self, own: Vec<Numbered>) {
        for one in own {
            for key in &one.keys {
                let with_key = self.by_key.entry(key.clone()).or_default();
                with_key.push(self.all.len());
            }
            self.all.push(one);
        }
    }

    /// Returns the last of the sentences whose numbers change those of a sentence of the message with the index
    /// `message`, with the note about it. `is_short` says whether that message has few sentences.
    fn changing(
        &self,
        sentence: &Sentence,
        message: usize,
        is_short: bool,
    ) -> Option<(&Numbered, Later)> {
        if !sentence.numbered.has_numbers() {
            return None;
        }
        let keys = sentence.numbered.keys();
        let with_keys = keys.iter().filter_map(|key| self.by_key.get(key)).flatten();
        let mut candidates: BTreeSet<usize> = with_keys.copied().collect();
        // The sentences of the next message are the last ones.
        let is_next = |one: &Numbered| one.place.0 == message + 1 && one.is_short && is_short;
        let begin = self.all.iter().rposition(|one| !is_next(one));
        candidates.extend(begin.map_or(0, |before| before + 1)..self.all.len());
        let candidates = candidates.iter().filter_map(|at| self.all.get(*at));
        candidates.into_iter().find_map(|one| {
            let (value, in_part) = match one.sentence.relation_to(&sentence.numbered) {
                NumberedRelation::Changed { value, in_part } => (value, in_part),
                NumberedRelation::ChangedIfNext { value } if is_next(one) => (Some(value), false),
                _ => return None,
            };
            let value = value.and_then(|range| one.text.get(range));
            let later = Later {
                seq: one.seq,
                in_part,
                value: value.map(str::to_owned),
            };
            Some((one, later))
        })
    }
}

/// Finds the sentences that later ones repeat or replace, from the last sentence back. Returns the replaced statements.
fn compare(told: &mut [Told]) -> Vec<Replaced> {
    struct Stated {
        /// Indices of the message and the sentence.
        place: (usize, usize),
        item: usize,
        seq: Seq,
        statement: Statement,
        /// Bits for the words of its subject, as [`Statement::subject_bits`] returns them.
        bits: u64,
        force: Force,
    }
    let mut later: Vec<Stated> = Vec::new();
    let mut numbered = LaterNumbered::default();
    let mut rules: BTreeSet<String> = BTreeSet::new();
    let mut said: BTreeSet<String> = BTreeSet::new();
    let mut replaced = Vec::new();
    let mut replacing = Vec::new();
    for (message, told) in told.iter_mut().enumerate().rev() {
        let mut own = Vec::new();
        let mut own_numbers = Vec::new();
        let is_short = told.sentences.len() <= FEW;
        let of = (told.item, told.seq, is_short && !told.after_gap);
        for (place, sentence) in told.sentences.iter_mut().enumerate().rev() {
            let (mut repeated, mut unread) = (0, 0);
            let mut changed: Option<Later> = None;
            let all = sentence.statements.len();
            let mut live = Vec::new();
            let renumbered = numbered.changing(sentence, message, is_short);
            let is_whole = renumbered.as_ref().is_some_and(|(_, later)| !later.in_part);
            if let Some((by, later)) = renumbered {
                replacing.push(by.place);
                replaced.extend(sentence.statements.iter().map(|statement| Replaced {
                    by: by.item,
                    value: later.value.clone(),
                    statement: statement.clone(),
                }));
                changed = Some(later);
            }
            let is_part = changed.is_some() && !is_whole;
            let statements = match changed {
                Some(_) => &[],
                None => sentence.statements.as_slice(),
            };
            if !is_whole
                && numbered.all.len() < COMPARED
                && let Some(one) = Numbered::of(sentence, (message, place), &of)
            {
                own_numbers.push(one);
            }
            for statement in statements {
                let bits = statement.subject_bits();
                let near = || later.iter().filter(|later| later.bits & bits != 0);
                // Finds the last statement about the same subject.
                let about = near().find_map(|later| match () {
                    () if later.statement.replaces(statement) => Some((later, true)),
                    // Only a rule can repeat a rule, because other sentences are printed last and may be left out.
                    () if later.force >= sentence.force.min(Force::Rule)
                        && later.statement.repeats(statement) =>
                    {
                        Some((later, false))
                    }
                    () => None,
                });
                let narrower = || near().find(|later| later.statement.replaces_part(statement));
                let by = match about {
                    Some((by, true)) => Some(by),
                    Some((_, false)) => None,
                    None => narrower(),
                };
                if let Some(by) = by {
                    replacing.push(by.place);
                    if changed.as_ref().is_none_or(|changed| changed.seq < by.seq) {
                        changed = Some(Later {
                            seq: by.seq,
                            in_part: true,
                            value: by.statement.value.as_ref().map(|value| value.text.clone()),
                        });
                    }
                }
                match about {
                    Some((by, true)) => replaced.push(Replaced {
                        by: by.item,
                        value: by.statement.value.as_ref().map(|value| value.text.clone()),
                        statement: statement.clone(),
                    }),
                    Some((_, false)) => repeated += 1,
                    None if sentence.force >= Force::Rule || statement.tells() => {
                        live.push(Stated {
                            place: (message, place),
                            item: told.item,
                            seq: told.seq,
                            statement: statement.clone(),
                            bits,
                            force: sentence.force,
                        });
                    }
                    None => unread += 1,
                }
            }
            sentence.fate = match changed {
                Some(changed) => Fate::Changed(Later {
                    in_part: !live.is_empty() || unread > 0 || is_part,
                    ..changed
                }),
                None if all > 0 && repeated == all && sentence.force >= Force::Rule => {
                    Fate::Repeated
                }
                // Sentences that later sentences repeat word for word.
                None if sentence.force >= Force::Rule
                    && !rules
                        .insert(sentence.text.trim_start_matches(['…', ' ']).to_lowercase()) =>
                {
                    Fate::Repeated
                }
                None => sentence.fate.clone(),
            };
            if later.len() < COMPARED {
                own.append(&mut live);
            }
        }
        later.append(&mut own);
        numbered.extend(own_numbers);
        forget_rest(&mut told.sentences, &mut said);
    }
    for (message, place) in replacing {
        let sentence = told
            .get_mut(message)
            .and_then(|told| told.sentences.get_mut(place));
        if let Some(sentence) = sentence {
            sentence.force = sentence.force.max(Force::Rule);
        }
    }
    replaced
}

/// Removes the other sentences of a message with a replaced sentence if later messages repeat them. `said` contains the
/// sentences of later messages.
fn forget_rest(sentences: &mut [Sentence], said: &mut BTreeSet<String>) {
    let text = |one: &Sentence| one.text.trim_start_matches(['…', ' ']).to_lowercase();
    let is_rest = |one: &Sentence| {
        matches!(&one.fate, Fate::Changed(later) if !later.in_part) || one.text.starts_with('…')
    };
    if sentences.iter().any(is_rest) {
        for one in sentences.iter_mut().filter(|one| one.fate == Fate::Live) {
            if said.contains(&text(one)) {
                one.fate = Fate::Repeated;
            }
        }
    }
    said.extend(sentences.iter().map(text));
}

/// Removes the sentences of short replies that name a value that a user replaced later. Returns these sentences.
fn forget(items: &mut [Item], replaced: &[Replaced]) -> Vec<Forgotten> {
    let mut forgotten = Vec::new();
    let laters = replaced.iter().map(|one| {
        let seq = items
            .get(one.by)
            .map_or(Seq::FIRST, |item| item.range.first);
        let later = Later {
            seq,
            in_part: false,
            value: one.value.clone(),
        };
        (one.by, later, &one.statement)
    });
    let replaced: Vec<(usize, Later, &Statement)> = laters.collect();
    if replaced.is_empty() {
        return forgotten;
    }
    for (at, item) in items.iter_mut().enumerate() {
        if item.kind != Kind::Reply || item.bytes() > REPLY {
            continue;
        }
        take_out(item, &mut forgotten, |sentence| {
            let mut later = replaced.iter().filter(|(by, ..)| *by > at);
            let found = later.find(|(.., statement)| statement.is_named_in(sentence));
            found.map(|(_, later, _)| later.clone())
        });
    }
    forgotten
}

/// Adds a user's message as several items (candidate lines): its text, its rules, and its replaced sentences. If
/// `newest` is true, the message stays whole.
fn split(item: Item, sentences: Vec<Sentence>, newest: bool, out: &mut Vec<Item>) {
    let kept = |one: &Sentence| match &one.fate {
        Fate::Live => true,
        Fate::Repeated => false,
        Fate::Changed(later) => later.in_part,
    };
    let has_force = |one: &Sentence| one.force >= Force::Rule && kept(one);
    let rest = |one: &Sentence| one.force < Force::Rule && kept(one) && !one.leads;
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let beside: usize = sentences
        .iter()
        .filter(|one| rest(one))
        .map(|one| letters(&one.text))
        .sum();
    let live = sentences.iter().all(|one| one.fate == Fate::Live);
    let rules = sentences.iter().any(has_force);
    let weight = |valued: bool| match item.weight < TYPED {
        true => item.weight + 1,
        false if valued => VALUED,
        false => RULE,
    };
    if live && (newest || !rules || beside < BESIDE || item.bytes() <= SHORT) {
        let valued = sentences.iter().any(|one| one.force == Force::Value);
        let weight = if rules { weight(valued) } else { item.weight };
        out.push(Item { weight, ..item });
        return;
    }
    let part = |lines: Vec<String>, weight| {
        Item::new(item.range, Kind::User, &item.label, weight).with_lines(lines)
    };
    let mut lines: Vec<String> = Vec::new();
    for (n, line) in item.lines.iter().enumerate() {
        let of_line = || sentences.iter().filter(|one| one.line == n);
        match of_line().all(rest) {
            true if of_line().all(|one| one.fate == Fate::Live) => lines.push(line.clone()),
            _ if of_line().any(rest) => {
                lines.push(joined(of_line().map(|one| (one.printed(), rest(one)))));
            }
            _ => {}
        }
    }
    if lines
        .iter()
        .any(|line| line.chars().any(char::is_alphanumeric))
    {
        out.push(part(lines, item.weight));
    }
    for force in [Force::Value, Force::Rule] {
        let mut lines = Vec::new();
        for (n, one) in sentences.iter().enumerate() {
            if !has_force(one) || one.force != force {
                continue;
            }
            let lead = n.checked_sub(1).and_then(|n| sentences.get(n));
            lines.push(match lead.filter(|lead| lead.leads) {
                Some(lead) => format!("{} {}", lead.text, one.printed()),
                None => one.printed().into_owned(),
            });
        }
        if !lines.is_empty() {
            out.push(part(lines, weight(force == Force::Value)));
        }
    }
    for one in &sentences {
        if let Fate::Changed(later) = &one.fate
            && !later.in_part
        {
            let mut item = part(vec![one.text.clone()], REPLACED);
            item.later = Some(later.seq);
            item.instead.clone_from(&later.value);
            out.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use memory_model::SeqRange;

    use super::*;

    fn applied(texts: &[&str]) -> Vec<(u32, u32, String)> {
        let items = texts.iter().zip(1..).map(|(text, seq)| {
            let (kind, text) = match text.strip_prefix("A: ") {
                Some(text) => (Kind::Reply, text),
                None => (Kind::User, *text),
            };
            let range = SeqRange::single(Seq(seq));
            Item::new(range, kind, "x", TYPED).with_lines(text.lines().map(str::to_owned).collect())
        });
        let mut items: Vec<Item> = items.collect();
        apply(&mut items);
        let told = items.iter().map(|item| {
            let later = item
                .later
                .map_or_else(String::new, |seq| format!(" -> {seq}"));
            (
                item.range.first.0,
                item.weight,
                format!("{}{later}", item.lines.join("|")),
            )
        });
        told.collect()
    }

    #[test]
    fn the_rest_of_a_replaced_rule_is_not_told_again() {
        let texts = [
            "… Never exceed it without explicit approval.",
            "a",
            "The budget cap is $803. Never exceed it without explicit approval.",
        ];
        let told = applied(&texts);
        let of_first = told.iter().filter(|(seq, ..)| *seq == 1);
        assert_eq!(of_first.count(), 0, "{told:?}");
    }

    #[test]
    fn a_rule_has_a_line_of_its_own() {
        let said = "It was good to see you all at the meeting that we had on Monday. From now on, sign mails with 'crumb'. \
                    As for lists, there is one thing. End them with '--'.";
        let last = format!("{} Never skip a test.", "It rains. ".repeat(20));
        let texts = [
            said,
            "Always run the linter.",
            "Go on.",
            &last,
            "a",
            "b",
            "c",
        ];
        let told = applied(&texts);
        assert_eq!(
            told.get(..4).unwrap(),
            [
                (1, TYPED, "It was good to see you all at the meeting that we had on Monday. …".to_owned()),
                (
                    1,
                    VALUED,
                    "From now on, sign mails with 'crumb'.|As for lists, there is one thing. End them with '--'."
                        .to_owned()
                ),
                (2, RULE, "Always run the linter.".to_owned()),
                (3, TYPED, "Go on.".to_owned()),
            ]
        );
        // One of the newest messages stays whole.
        assert_eq!(told[4].2, last);
        let again = applied(&["As for lists, there is one thing. End them with '--'."]);
        assert_eq!(
            again[0].2,
            "As for lists, there is one thing. End them with '--'."
        );
    }

    #[test]
    fn what_is_replaced_is_marked_and_its_echo_is_left_out() {
        let said = [
            "Start table names with 't_'. Keep it short.",
            "A: Understood. I start all table names with 't_'. The build is green.",
            "Start table names with 'tbl_' and column names with 'c_'.",
            "Column names start with 'col_' instead.",
        ];
        assert_eq!(
            applied(&said),
            [
                (1, TYPED, "… Keep it short.".to_owned()),
                (1, REPLACED, "Start table names with 't_'. -> 3".to_owned()),
                (2, TYPED, "Understood. … The build is green.".to_owned()),
                (
                    3,
                    VALUED,
                    "Start table names with 'tbl_' and column names with 'c_'. (later: [4] in part: col_)".to_owned()
                ),
                (4, VALUED, "Column names start with 'col_' instead.".to_owned()),
            ]
        );
    }

    #[test]
    fn a_note_of_an_earlier_extract_is_kept() {
        let said =
            "Start table names with 'tbl_' and column names with 'c_'. (later: [9] in part: col_)";
        assert_eq!(applied(&[said]), [(1, VALUED, said.to_owned())]);
    }

    #[test]
    fn a_rule_of_some_cases_replaces_a_general_one_in_part() {
        let said = [
            "Show all times in UTC.",
            "For the invoices, show times in Eastern time.",
        ];
        assert_eq!(
            applied(&said),
            [
                (
                    1,
                    VALUED,
                    "Show all times in UTC. (later: [2] in part: Eastern time)".to_owned()
                ),
                (2, VALUED, said[1].to_owned()),
            ]
        );
        let said = ["The tables show times in UTC.", said[1]];
        assert_eq!(applied(&said)[0].2, said[0]);
    }

    #[test]
    fn code_states_no_rule() {
        let told = applied(&["See this:\n```\n# always use 'x'\n```\nWhat is it?"]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].1, TYPED);
        // As an extract tells it, without fences.
        let told =
            applied(&["It fails:\nimport { a } from 'b';\nconst c = use('d');\n<e f=\"g\">"]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].1, TYPED);
    }

    #[test]
    fn what_replaces_is_a_rule_and_what_is_said_again_is_told_once() {
        let said = [
            "Show all times in UTC.",
            "Never skip a test.",
            "Never skip a test.",
            "The clock on the wall is right. All times are in Eastern time now.",
            "a",
            "b",
            "c",
            "d",
            "e",
            "f",
        ];
        let told = applied(&said);
        let rules: Vec<(u32, &str)> = told
            .iter()
            .filter(|(_, weight, _)| *weight >= RULE || *weight == REPLACED)
            .map(|(seq, _, text)| (*seq, text.as_str()))
            .collect();
        assert_eq!(
            rules,
            [
                (1, "Show all times in UTC. -> 4"),
                (3, "Never skip a test."),
                (
                    4,
                    "The clock on the wall is right. All times are in Eastern time now."
                ),
            ]
        );
    }
}
