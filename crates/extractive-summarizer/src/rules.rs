//! Standing rules of users: which sentences state one, and which of them a later one replaces or withdraws.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;

use crate::cues::{
    ADDS, ASKS, CHANGES, CHANGING, EDGES, ENDS, IMPERATIVES, LINKS, PURPOSES, REFERS, SAME, SINCE,
    SMALL_TALK, STANDING, TOPICS, UNIVERSAL, UPDATES, WITHDRAWS,
};
use crate::text::{is_wide, matcher};
use crate::words::{Class, Value, Word, Words, is_little, words};

/// Maximum length of a sentence that states a rule, in bytes.
const RULE_BYTES: usize = 600;
/// Maximum number of values of a sentence that are read.
const VALUES: usize = 4;
/// Maximum length of a sentence that tells what is new, in bytes.
const UPDATE: usize = 160;
/// Number of words before a value among which `with` links it to its subject.
const LINKED: usize = 4;

/// The stem of words for a name.
const NAME: &str = "nam";
/// Verbs behind `and` that go on about the same subject.
const MODAL: [&str; 4] = ["must", "should", "may", "shall"];

/// How a sentence binds the steps to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Force {
    /// Thanks, greetings, encouragement.
    SmallTalk,
    /// Anything else.
    None,
    /// A rule.
    Rule,
    /// A rule with a value, such as a quoted name.
    Value,
}

/// What a sentence says about which subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Telling words around the first value, in order, without the values.
    subject: Vec<String>,
    /// Number of the first ones that say when it holds.
    topic: usize,
    /// Number of the first ones that come from an earlier clause.
    lead: usize,
    value: Option<Value>,
    /// Whether the subject has one value: it starts *with*, is, or is set *to* it.
    single: bool,
    /// Whether it says that something is other than before.
    changes: bool,
    /// Whether it says that something is so from now on.
    fresh: bool,
    /// Whether it is of all things of its kind.
    universal: bool,
    withdraws: bool,
    /// Whether the value is one of several: it is added.
    adds: bool,
    /// Words of the subject that follow each other directly.
    pairs: Arc<[(String, String)]>,
}

/// Phrases, and what finds a sentence that may have one.
struct Cues {
    phrases: &'static [&'static str],
    matcher: Option<AhoCorasick>,
}

impl Cues {
    fn of(phrases: &'static [&'static str]) -> Self {
        let matcher = matcher(phrases);
        Self { phrases, matcher }
    }
}

static SAID_STANDING: LazyLock<Cues> = LazyLock::new(|| Cues::of(STANDING));
static SAID_ASKS: LazyLock<Cues> = LazyLock::new(|| Cues::of(ASKS));
static SAID_CHANGES: LazyLock<Cues> = LazyLock::new(|| Cues::of(CHANGES));
static SAID_UPDATES: LazyLock<Cues> = LazyLock::new(|| Cues::of(UPDATES));
static SAID_SINCE: LazyLock<Cues> = LazyLock::new(|| Cues::of(SINCE));
static SAID_UNIVERSAL: LazyLock<Cues> = LazyLock::new(|| Cues::of(UNIVERSAL));
static SAID_WITHDRAWS: LazyLock<Cues> = LazyLock::new(|| Cues::of(WITHDRAWS));
static SAID_KINDLY: LazyLock<Cues> = LazyLock::new(|| Cues::of(SMALL_TALK));

static LIMIT: LazyLock<[String; 1]> = LazyLock::new(|| ["limit".to_owned()]);
static SAME_AS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| SAME.iter().copied().collect());

/// Whether a text has one of these phrases. Those of scripts without spaces may be anywhere, and others are whole words.
fn any(words: &Words<'_>, sentence: &str, cues: &Cues) -> bool {
    // Most sentences have none.
    let found = cues
        .matcher
        .as_ref()
        .is_some_and(|matcher| matcher.is_match(sentence));
    found
        && cues
            .phrases
            .iter()
            .any(|phrase| match phrase.contains(is_wide) {
                true => sentence.contains(phrase),
                false => words.has(phrase),
            })
}

/// Whether a sentence is thanks, a greeting or encouragement.
pub(crate) fn is_small_talk(sentence: &str) -> bool {
    let said = SAID_KINDLY.matcher.as_ref();
    said.is_some_and(|said| said.is_match(sentence)) && force(sentence) == Force::SmallTalk
}

/// How a sentence binds the steps to come.
pub(crate) fn force(sentence: &str) -> Force {
    match sentence.len() {
        ..=RULE_BYTES => force_of(&mut words(sentence), sentence),
        _ => Force::None,
    }
}

/// How a sentence binds the steps to come, and what [`statements`] reads in it.
pub(crate) fn understood(sentence: &str, before: Option<&str>) -> (Force, Vec<Statement>) {
    if sentence.len() > RULE_BYTES {
        return (Force::None, Vec::new());
    }
    let mut said = words(sentence);
    let has_value = said.has_value();
    let force = force_of(&mut said, sentence);
    if said.has_value() != has_value {
        // Statements look for a value in a way of their own.
        said = words(sentence);
    }
    (force, statements_of(said, sentence, before))
}

fn force_of(words: &mut Words<'_>, sentence: &str) -> Force {
    let polite = any(words, sentence, &SAID_KINDLY);
    if polite && !words.quoted {
        return Force::SmallTalk;
    }
    let asks = sentence.trim_end().ends_with(['?', '？']);
    let standing = any(words, sentence, &SAID_STANDING)
        || always(words)
        || forbids(words)
        || makes_sure(words);
    let wish = || {
        let imperative =
            (0..words.words.len()).any(|n| IMPERATIVES.contains(&words.at(n)) && words.begins(n));
        imperative
            || wants(words)
            || any(words, sentence, &SAID_ASKS)
            || any(words, sentence, &SAID_CHANGES)
    };
    let typed = |word: &Word<'_>| {
        let value = word.value.as_ref();
        value.is_some_and(|value| matches!(value.class, Class::LetterCase | Class::TimeZone))
    };
    let typed = words.words.iter().any(typed);
    let valued = words.quoted || typed || (standing && words.has_value());
    let wishes = valued && !standing && wish();
    let told = sentence.len() <= UPDATE && (any(words, sentence, &SAID_UPDATES) || is_new(words));
    let updates = told && {
        words.find_weak(true);
        words.has_value()
    };
    match valued {
        _ if asks && !words.quoted => Force::None,
        true if standing || wishes => Force::Value,
        false if is_labelled(sentence) => Force::Value,
        false if standing || updates => Force::Rule,
        _ => Force::None,
    }
}

/// Whether somebody wants something of others: not `I want to …`, which says what a speaker is about to do.
fn wants(words: &Words<'_>) -> bool {
    (0..words.words.len()).any(|n| {
        let own = words.before(n, 1) == "i" && words.at(n + 1) == "to";
        match words.at(n) {
            "want" => !own,
            "need" => !own && words.at(n + 1) == "to",
            _ => false,
        }
    })
}

/// Whether the words say that something is so now: `now` with a verb, not `now,` or `for now`.
fn is_new(words: &Words<'_>) -> bool {
    if words.at(0) == "new" {
        return true;
    }
    (1..words.words.len()).any(|n| {
        let before = words.before(n, 1);
        let mild = [
            "", "for", "right", "by", "until", "i", "i'm", "and", "but", "from", "just", "so",
        ];
        matches!(words.at(n), "now" | "jetzt")
            && !mild.contains(&before)
            && words.clause(n - 1) == words.clause(n)
    })
}

/// Whether a sentence has a label in capitals, as what somebody wants to be remembered has: `RULE: …`.
fn is_labelled(sentence: &str) -> bool {
    let label = sentence
        .split_once(": ")
        .map_or("", |(label, _)| label.trim_start_matches(['-', '*', ' ']));
    let words = label.split_whitespace().count();
    let capitals = label.chars().all(|c| c.is_uppercase() || c == ' ');
    (1..=3).contains(&words) && label.chars().count() > 3 && capitals
}

/// Whether the words say that something is always or never done; not that somebody is always there.
fn always(words: &Words<'_>) -> bool {
    (0..words.words.len()).any(|n| {
        let before = n.checked_sub(1).map_or("", |n| words.at(n));
        let after = words.at(n + 1);
        let tells = before.ends_with("'s")
            || before.ends_with("'m")
            || before.ends_with("'re")
            || before.ends_with("'ve")
            || matches!(
                before,
                "i'll"
                    | "is"
                    | "are"
                    | "am"
                    | "was"
                    | "were"
                    | "has"
                    | "have"
                    | "had"
                    | "as"
                    | "been"
                    | "almost"
                    | "i"
                    | "he"
                    | "she"
                    | "they"
                    | "it"
                    | "who"
                    | "not"
            )
            || is_told(after);
        matches!(words.at(n), "always" | "never")
            && !tells
            && !matches!(after, "" | "mind" | "been")
    })
}

/// Whether a verb tells what happens or happened: `cheers`, `mentioned`.
fn is_told(verb: &str) -> bool {
    let third = verb.ends_with('s')
        && !["ss", "us", "as", "is"]
            .iter()
            .any(|end| verb.ends_with(end));
    third || verb.ends_with("ed")
}

/// Whether the words ask to make sure of something; not whether speakers tell that they want to do so themselves.
fn makes_sure(words: &Words<'_>) -> bool {
    let own = |n: usize| {
        let back = |many: usize| n.checked_sub(many).map_or("", |n| words.at(n));
        let speaker = |word: &str| word == "i" || word.starts_with("i'");
        let wants = matches!(back(2), "want" | "wanted" | "need" | "like" | "trying");
        let told = (n..words.words.len()).any(|n| matches!(words.at(n), "you" | "your"));
        back(1) == "to" && wants && (speaker(back(3)) || speaker(back(4))) && !told
    };
    (0..words.words.len()).any(|n| words.at(n) == "make" && words.at(n + 1) == "sure" && !own(n))
}

/// Whether a clause forbids something.
fn forbids(words: &Words<'_>) -> bool {
    (0..words.words.len()).any(|n| {
        let not = match words.at(n) {
            "don't" => 1,
            "do" if words.at(n + 1) == "not" => 2,
            "avoid" | "refrain" | "stop" => return words.begins(n),
            _ => return false,
        };
        let mild = ["worry", "forget", "be", "think", "know", "have", "mind"];
        words.begins(n) && !mild.contains(&words.at(n + not))
    })
}

/// Whether a short sentence means something that was said before it.
pub(crate) fn refers(sentence: &str) -> bool {
    let pronoun = |word: &str| {
        let mut pronouns = REFERS.iter().chain([&"this"]);
        pronouns.any(|pronoun| pronoun.eq_ignore_ascii_case(word))
    };
    let mut plain = sentence.split(|c: char| !c.is_alphanumeric());
    plain.any(pronoun) && {
        let words = words(sentence);
        let telling = words.words.iter().map(|word| stems(word, sentence).len());
        telling.sum::<usize>() < 4
    }
}

/// Reads a sentence: a statement for each of its values, or one that withdraws something. `before` is the sentence before
/// it, which its pronouns may mean.
pub(crate) fn statements(sentence: &str, before: Option<&str>) -> Vec<Statement> {
    match sentence.len() {
        ..=RULE_BYTES => statements_of(words(sentence), sentence, before),
        _ => Vec::new(),
    }
}

fn statements_of(mut said: Words<'_>, sentence: &str, before: Option<&str>) -> Vec<Statement> {
    let withdraws = any(&said, sentence, &SAID_WITHDRAWS);
    said.find_weak(!withdraws);
    let said = said;
    if !said.has_value() && !withdraws {
        return Vec::new();
    }
    let changes = any(&said, sentence, &SAID_CHANGES);
    let fresh = changes
        || is_new(&said)
        || any(&said, sentence, &SAID_SINCE)
        || any(&said, sentence, &SAID_UPDATES);
    let universal = fresh || any(&said, sentence, &SAID_UNIVERSAL);
    let pairs: Arc<[(String, String)]> = said.pairs(sentence).into();
    let mut found = Vec::new();
    let (mut start, mut first) = (0, Vec::new());
    let mut carried: Vec<String> = Vec::new();
    let values = (0..said.words.len()).filter(|n| said.is_value(*n));
    let values: Vec<usize> = values.take(VALUES).collect();
    let rejects = values.iter().any(|at| said.rejects(*at));
    let rejects = rejects && values.iter().any(|at| !said.rejects(*at));
    let changes = changes || rejects;
    let fresh = fresh || rejects;
    for at in values {
        if (start > 0 && said.qualifies(at)) || (rejects && said.rejects(at)) {
            continue;
        }
        if said.names(at) {
            carried = said.telling(sentence, |n| {
                (start..at).contains(&n) && said.clause(n) == said.clause(at)
            });
            carried.extend(said.value(at).map(|value| value.text.to_lowercase()));
            start = at + 1;
            continue;
        }
        let (topic, done) = said.topic(at, sentence);
        let mut subject = without_repeats(topic);
        let topic = subject.len();
        subject.extend(done);
        let mut subject = without_repeats(subject);
        let mut lead = subject.len();
        let from = said.begin(start, at);
        if said.is_manner() {
            found.push(Statement {
                subject: vec![stem("answer")],
                value: said.value(at).cloned(),
                changes,
                fresh,
                universal,
                ..Statement::default()
            });
            break;
        }
        subject.append(&mut carried);
        subject.extend(said.about(from, at, topic > 0, sentence));
        let dated = said
            .value(at)
            .is_some_and(|value| value.class == Class::Date);
        if dated && !subject.is_empty() {
            subject.push(stem("date"));
        }
        if first.is_empty() {
            if said.refers(start, at) && subject.len() < 3 {
                let clause = said.clause(at);
                let words: Vec<String> =
                    said.telling(sentence, |n| n < at && said.clause(n) != clause);
                let words = match before {
                    Some(before) if words.len() < 2 => {
                        self::words(before).telling(before, |_| true)
                    }
                    _ => words,
                };
                subject.splice(0..0, words);
            }
            if subject.len() < 3 {
                let clause = said.clause(at);
                let heading = said.telling(sentence, |n| {
                    n < at && said.clause(n) != clause && said.is_heading(n)
                });
                lead += heading.len();
                subject.splice(topic..topic, heading);
            }
            first.clone_from(&subject);
        } else if subject.len() < 2 {
            // `… and end them with`: of the same thing as the part before.
            subject.extend(first.iter().skip(1).cloned());
        } else if subject.len() < 3 {
            // `… and all method names with`: the same is done.
            subject.splice(0..0, first.first().cloned());
        }
        start = said.end(at);
        let statement = Statement {
            single: is_single(&said, sentence, from, at),
            adds: adds(&said, sentence, from, at),
            pairs: Arc::clone(&pairs),
            value: said.value(at).cloned(),
            changes,
            fresh,
            universal,
            withdraws,
            topic,
            lead,
            ..Statement::default()
        };
        for subject in said.parts(subject, from, at, sentence) {
            let subject = without_repeats(subject);
            found.push(Statement {
                subject,
                ..statement.clone()
            });
        }
    }
    if found.is_empty() && withdraws {
        found.push(Statement {
            subject: without_repeats(said.telling(sentence, |_| true)),
            withdraws,
            ..Statement::default()
        });
    }
    found
}

fn without_repeats(mut words: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    words.retain(|word| seen.insert(word.clone()));
    words
}

impl Words<'_> {
    /// The place from which on words tell of a value: behind `I want to say that we` and `add a test and`.
    fn begin(&self, from: usize, at: usize) -> usize {
        let clause = self.clause(at);
        let inside = (from..at).rev().take_while(|n| self.clause(*n) == clause);
        let cut = inside.into_iter().find(|n| {
            let next = self.at(n + 1);
            match self.at(*n) {
                "that" => matches!(next, "we" | "you" | "i" | "all" | "every" | "each"),
                "and" => IMPERATIVES.contains(&next),
                "wants" | "prefers" => true,
                _ => false,
            }
        });
        cut.map_or(from, |n| n + 1)
    }

    /// Telling words that follow each other directly.
    fn pairs(&self, sentence: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        let mut last: Option<(usize, &String)> = None;
        for n in 0..self.words.len() {
            for word in self.tells(n, sentence) {
                if let Some((before, last)) = last.take()
                    && before + 1 >= n
                    && self.clause(before) == self.clause(n)
                {
                    pairs.push((last.clone(), word.clone()));
                }
                last = Some((n, word));
            }
        }
        pairs
    }

    /// The place behind a value and what is told of it: `'a' for files and …`.
    fn end(&self, at: usize) -> usize {
        let clause = self.clause(at);
        if !matches!(self.at(at + 1), "for" | "in" | "of" | "on") || self.clause(at + 1) != clause {
            return at + 1;
        }
        let mut rest = (at + 1..self.words.len()).take_while(|n| self.clause(*n) == clause);
        let next = rest.find(|n| self.at(*n) == "and" || self.is_value(*n));
        match next {
            Some(next) if self.at(next) == "and" => next,
            _ => at + 1,
        }
    }

    /// Telling words at the wanted places. To start doing something is to do it.
    fn telling(&self, sentence: &str, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let places = (0..self.words.len()).filter(|n| wanted(*n));
        places
            .flat_map(|n| self.tells(n, sentence))
            .cloned()
            .collect()
    }

    /// Telling words of the word at an index.
    fn tells(&self, n: usize, sentence: &str) -> &[String] {
        let little = match self.at(n) {
            "start" => self.at(n + 1).ends_with("ing"),
            // `Your code` is anything, and `the access code` is not.
            "code" => {
                let before = self.before(n, 1);
                let whole = self.clause(n) == self.clause(n + 1)
                    && !self.is_value(n + 1)
                    && !is_little(self.at(n + 1));
                !whole && (before.is_empty() || is_little(before) || before.ends_with("ing"))
            }
            "under" | "below" if self.is_value(n + 1) => return &LIMIT[..],
            _ => false,
        };
        match self.words.get(n) {
            Some(word) if !little => stems(word, sentence),
            _ => &[],
        }
    }

    /// Whether a value only says whose the value before it is: `the 'a' of the 'b'`.
    fn qualifies(&self, at: usize) -> bool {
        let before = |n: usize| at.checked_sub(n).map_or("", |n| self.at(n));
        let word = if before(1) == "the" {
            before(2)
        } else {
            before(1)
        };
        matches!(word, "from" | "of" | "in")
    }

    /// Whether a value names the subject of the next value in its clause: `the service 'a' runs version 2`.
    fn names(&self, at: usize) -> bool {
        let clause = self.clause(at);
        let code = self
            .value(at)
            .is_some_and(|value| value.class == Class::Code);
        let mut rest = (at + 1..self.words.len()).take_while(|n| self.clause(*n) == clause);
        let verb = self.at(at + 1);
        let is_verb = matches!(verb, "is" | "are" | "has" | "was")
            || (verb.ends_with('s')
                && verb.len() > 3
                && !matches!(verb, "this" | "plus" | "names"));
        code && is_verb && rest.any(|n| self.is_value(n))
    }

    /// Whether a sentence says that it is not this value: `not 'a' but 'b'`.
    fn rejects(&self, at: usize) -> bool {
        let before = self.before(at, 1);
        let after = self.words.get(at + 1).map_or("", |word| word.text);
        matches!(before, "not" | "nicht" | "than" | "statt")
            || (before == "of" && self.before(at, 2) == "instead")
            || (before == "longer" && self.before(at, 2) == "no")
            || before.ends_with("不是")
            || ["ではなく", "じゃなく", "아니라"]
                .iter()
                .any(|not| after.starts_with(not))
    }

    /// A subject of two things, `start method names and variable names with`, as one of each.
    fn parts(
        &self,
        subject: Vec<String>,
        from: usize,
        at: usize,
        sentence: &str,
    ) -> Vec<Vec<String>> {
        let clause = self.clause(at);
        let and = (from..at).rfind(|n| self.at(*n) == "and" && self.clause(*n) == clause);
        let Some(and) = and else { return vec![subject] };
        let inside = |n: usize| (from..at).contains(&n) && self.clause(n) == clause;
        let one = self.telling(sentence, |n| n < and && inside(n));
        let mut other = self.telling(sentence, |n| n > and && inside(n));
        if one.len() < 2 || other.len() < 2 {
            return vec![subject];
        }
        other.splice(0..0, one.first().cloned());
        vec![one, other]
    }

    /// Whether a pronoun stands between two places.
    fn refers(&self, from: usize, to: usize) -> bool {
        (from..to).any(|n| REFERS.contains(&self.at(n)))
    }

    /// Telling words of clauses before that of the value, which say what it is about: `when naming functions,`. What is
    /// done with it comes apart.
    fn topic(&self, at: usize, sentence: &str) -> (Vec<String>, Vec<String>) {
        let (mut out, mut done) = (Vec::new(), Vec::new());
        let clause = self.clause(at);
        let mut opens = None;
        for (n, word) in self.words.iter().enumerate().take(at) {
            if Some(word.clause) == clause {
                break;
            }
            if n == 0 || self.clause(n - 1) != Some(word.clause) {
                let lead = |n: usize| {
                    let time =
                        matches!(self.at(n), "any" | "every" | "each") && self.at(n + 1) == "time";
                    time || TOPICS.contains(&self.at(n))
                };
                let opening =
                    lead(n) || (matches!(self.at(n), "and" | "so" | "now") && lead(n + 1));
                let own = matches!(self.at(n + 1), "this" | "our" | "these");
                let why = self.at(n) == "for" && (own || self.is_purpose(n));
                let alone = self.clause(n + 1) != Some(word.clause);
                let adverb = alone && word.lower.ends_with("ly");
                if adverb {
                    done.extend_from_slice(stems(word, sentence));
                }
                opens = (opening && !why).then_some(word.clause);
            }
            let doing = self.at(n).ends_with("ing");
            let doing = doing
                && n.checked_sub(1).is_some_and(|n| {
                    TOPICS.contains(&self.at(n)) || self.at(n) == "you're" || self.at(n) == "are"
                });
            if opens == Some(word.clause) {
                let words = if doing { &mut done } else { &mut out };
                words.extend_from_slice(stems(word, sentence));
            }
        }
        (out, done)
    }

    /// Whether a clause names why something is so: `for consistency`.
    fn is_purpose(&self, at: usize) -> bool {
        let clause = self.clause(at);
        let mut words = self.words.iter().skip(at);
        let abstracts = |word: &Word<'_>| PURPOSES.iter().any(|end| word.lower.ends_with(end));
        words
            .by_ref()
            .take_while(|word| Some(word.clause) == clause)
            .any(abstracts)
    }

    /// Telling words around a value, of its clause: those before it, and those after it where they are few. With `known`, an
    /// earlier clause names the subject.
    fn about(&self, from: usize, at: usize, known: bool, sentence: &str) -> Vec<String> {
        let clause = self.clause(at);
        // What comes between `with` and the value tells of the value.
        let link = (1..=LINKED).filter_map(|n| at.checked_sub(n));
        let link = link
            .into_iter()
            .find(|n| self.at(*n) == "with")
            .filter(|_| {
                self.value(at)
                    .is_some_and(|value| value.class == Class::Code)
            })
            .unwrap_or(at);
        // What is used for something: what comes before says how firmly it is wished.
        let user = (1..4).any(|n| matches!(self.before(at, n), "use" | "using"));
        let case = self
            .value(at)
            .is_some_and(|value| value.class == Class::LetterCase);
        let aim = |n: usize| matches!(self.at(n), "for" | "in");
        let aims = aim(at + 1) || (is_little(self.at(at + 1)) && aim(at + 2));
        let from = match (user || case) && (aims || known) {
            true => link,
            false => from,
        };
        let inside = |n: &usize| self.clause(*n) == clause;
        let mut out = self.telling(sentence, |n| (from..link).contains(&n) && inside(&n));
        let ends = |n: usize| {
            let target = ["all", "every", "each", "the", "your", "our", "my"];
            let towards = self.at(n) == "to" && target.contains(&self.at(n + 1));
            // `and must`: of the same subject.
            let goes_on = MODAL.contains(&self.at(n + 1));
            // `instead of what I said before`
            let instead = (self.at(n), self.at(n + 1)) == ("instead", "of")
                && matches!(self.at(n + 2), "what" | "that" | "this" | "it");
            instead || (ENDS.contains(&self.at(n)) && !towards && !goes_on)
        };
        let after = (at + 1..self.words.len()).take_while(|n| inside(n) && !ends(*n));
        let linked = matches!(self.at(at + 1), "for" | "in" | "of" | "on")
            || (self.at(at + 1) == "and" && MODAL.contains(&self.at(at + 2)));
        if out.len() < 2 || linked {
            let after: Vec<usize> = after.collect();
            out.extend(self.telling(sentence, |n| after.contains(&n)));
        }
        out
    }
}

/// Whether the value at an index is the one that its subject has, and not one of several.
fn is_single(said: &Words<'_>, sentence: &str, from: usize, at: usize) -> bool {
    let clause = said.clause(at);
    let before = |n: usize| {
        let n = at.checked_sub(n)?;
        let word = said.words.get(n).filter(|word| Some(word.clause) == clause);
        word.map(|word| word.lower.as_str())
    };
    let article = |word: Option<&str>| matches!(word, Some("a" | "an" | "the"));
    let next = if article(before(1)) { 2 } else { 1 };
    // Of which there is one, such as the time zone in which times are told.
    let sort = said.value(at).is_some_and(|value| {
        matches!(
            value.class,
            Class::LetterCase | Class::TimeZone | Class::Date
        )
    });
    let linked = before(next).is_some_and(|word| LINKS.contains(&word) || stem(word) == NAME)
        || (1..=LINKED).any(|n| matches!(before(n), Some("with" | "mit")))
        || sort;
    // What is used *for* something; `the 'x' tool for all` may be one of several.
    let next_word = match said.clause(at + 1) == clause {
        true => said.at(at + 1),
        false => "",
    };
    let itself = matches!(before(1), Some("use" | "using" | "all"))
        && matches!(next_word, "" | "for" | "as" | "and" | "instead");
    let used = (said.has("use") || said.has("using")) && said.has("for");
    let for_all = ["for all", "for every", "for each", "to all"];
    let adds = adds(said, sentence, from, at);
    let after = said.words.get(at + 1).map_or("", |word| word.text);
    let particle = ["で", "に", "と", "から", "로", "으로"];
    let particle = particle.iter().any(|begin| after.starts_with(begin));
    let marked = before(1).is_some_and(|word| {
        word.ends_with(['は', '以', '用', '为', '為', '是', '成', '到', '은', '는'])
    });
    let used = used && !for_all.iter().any(|phrase| said.has(phrase));
    // `add 'x' to the end of`
    let added = edge(said, at) && (said.has("add") || said.has("append") || said.has("include"));
    !adds && (linked || used || itself || added || particle || marked)
}

/// Whether the clause of a value tells of the beginning or the end of something.
fn edge(said: &Words<'_>, at: usize) -> bool {
    let clause = said.clause(at);
    (0..said.words.len()).any(|n| EDGES.contains(&said.at(n)) && said.clause(n) == clause)
}

/// Whether the value at an index comes to others. What is added to an end is the end.
fn adds(said: &Words<'_>, sentence: &str, from: usize, at: usize) -> bool {
    let clause = said.clause(at);
    let next =
        |n: &usize| *n < at || said.at(*n) != "and" || !IMPERATIVES.contains(&said.at(n + 1));
    let part = (from..said.words.len()).take_while(next);
    let adds = part.filter(|n| said.clause(*n) == clause).any(|n| {
        let word = said.at(n);
        ADDS.iter().any(|stem| word.starts_with(stem)) && !word.starts_with("important")
    });
    let wide = ["追加", "添加", "추가"];
    (adds && !edge(said, at)) || wide.iter().any(|word| sentence.contains(word))
}

/// The telling words of one word of a sentence, without their endings.
fn stems<'w>(word: &'w Word<'_>, sentence: &str) -> &'w [String] {
    word.stems
        .get_or_init(|| stemmed(word.text, &word.lower, sentence))
}

fn stemmed(word: &str, lower: &str, sentence: &str) -> Vec<String> {
    let Some(first) = word.chars().next().filter(|_| word != crate::words::VALUE) else {
        return Vec::new();
    };
    match first {
        // Endings and particles.
        '\u{3040}'..='\u{309f}' => Vec::new(),
        '\u{30a0}'..='\u{30ff}' => vec![word.to_owned()],
        '\u{3400}'..='\u{9fff}' => {
            let japanese = sentence.contains(|c| matches!(c, '\u{3040}'..='\u{30ff}'));
            let little =
                |c: char| !japanese && "的以为用是改成换在把将请要都从和与或不了我你".contains(c);
            let parts = word.split(little).filter(|part| !part.is_empty());
            parts
                .filter(|part| !CHANGES.contains(part) && !SINCE.contains(part))
                .map(str::to_owned)
                .collect()
        }
        '\u{ac00}'..='\u{d7af}' if CHANGES.contains(&word) || SINCE.contains(&word) => Vec::new(),
        '\u{ac00}'..='\u{d7af}' => {
            let bare = word.trim_end_matches([
                '은', '는', '이', '가', '을', '를', '에', '의', '로', '과', '와', '도',
            ]);
            let bare = if bare.is_empty() { word } else { bare };
            vec![bare.chars().take(2).collect()]
        }
        _ => {
            let whose = lower.strip_suffix("'s").unwrap_or(lower);
            if SAME_AS.contains_key(whose) {
                return vec![stem(whose)];
            }
            let telling = whose.split('-').filter(|part| {
                let little = part.contains('\'') || is_little(part) || CHANGING.contains(part);
                !little && part.chars().count() > 1
            });
            telling.map(stem).collect()
        }
    }
}

/// An English word without its ending: `names` and `naming` are one.
fn stem(word: &str) -> String {
    let same = |word: &str| SAME_AS.get(word).map(|same| (*same).to_owned());
    if let Some(same) = same(word) {
        return same;
    }
    let ends = ["ing", "ed", "es", "s", "e", "ly", "y"];
    let end = ends.iter().find_map(|end| word.strip_suffix(end));
    let bare = end.filter(|bare| bare.chars().count() > 2).unwrap_or(word);
    let bare = match bare.strip_suffix("ation") {
        Some(verb) if verb.len() > 2 => bare.get(..verb.len() + 2).unwrap_or(bare),
        _ => bare,
    };
    let mut chars = bare.chars().rev();
    let doubled = bare.len() < word.len() && chars.next() == chars.next() && bare.len() > 3;
    let bare = if doubled {
        bare.get(..bare.len() - 1).unwrap_or(bare)
    } else {
        bare
    };
    same(bare).unwrap_or_else(|| bare.to_owned())
}

impl Statement {
    /// Whether it replaces or withdraws an earlier statement.
    pub(crate) fn replaces(&self, earlier: &Self) -> bool {
        let same = self.has_value_of(earlier);
        if self.withdraws && (same || self.value.is_none()) {
            let shared = self.shares(earlier);
            let more = self.subject.len() - shared;
            let about = (shared > 1 && more < 2) || (same && shared > 0);
            return about && !earlier.withdraws;
        }
        let (Some(value), Some(other)) = (&self.value, &earlier.value) else {
            return false;
        };
        if same || !value.is_like(other) {
            return false;
        }
        let weak = value.is_weak() || other.is_weak();
        let typed = value.class == other.class && value.class != Class::Code;
        let adds = self.adds || earlier.adds;
        let anew = self.fresh && !adds && (weak || typed || earlier.single);
        let named = value.class == Class::Name && other.class == Class::Name;
        let both = self.single && earlier.single;
        let one = both && !weak;
        if !(self.changes || anew || one || (both && named)) {
            return false;
        }
        let shared = self.shares(earlier);
        let more = self.subject.len() - shared;
        // Who or where something is may be told of several, unless it is told in the same words.
        let alike = shared > 2 && more == 0 && shared == earlier.subject.len();
        if !(self.changes || anew || one || alike) {
            return false;
        }
        let all = self.changes || self.fresh || more == 0 || shared == earlier.subject.len();
        let only = shared == 1 && self.subject.len() == 1 && earlier.subject.len() == 1;
        let zones = value.class == Class::TimeZone && other.class == Class::TimeZone;
        let kin = shared > 0 && (zones || value.is_beside(other));
        let shared = shared + usize::from(kin);
        let enough = shared > 2 || (shared > 1 && all) || (only && (self.changes || anew));
        enough && !self.narrows(earlier) && self.same_subject(earlier, self.universal)
    }

    /// Number of words that both subjects have.
    fn shares(&self, other: &Self) -> usize {
        let words = other.subject.iter();
        words.filter(|word| self.subject.contains(word)).count()
    }

    /// Whether it may replace another.
    pub(crate) fn tells(&self) -> bool {
        let weak = self.value.as_ref().is_some_and(Value::is_weak);
        let changes = self.changes || self.fresh;
        (changes && !self.subject.is_empty())
            || (self.subject.len() > 1 && ((self.single && !weak) || self.withdraws))
    }

    /// Whether it says the same as an earlier statement, and as firmly.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        self.has_value_of(earlier)
            && self.withdraws == earlier.withdraws
            && (self.single || !earlier.single)
            && self.subject.len() > 1
            && self.same_subject(earlier, false)
    }

    fn has_value_of(&self, other: &Self) -> bool {
        let values = self.value.as_ref().zip(other.value.as_ref());
        values.is_some_and(|(value, other)| value.is(other))
    }

    /// Whether it is of a part of an earlier statement's subject: `the backup region` after `the region`.
    fn narrows(&self, earlier: &Self) -> bool {
        let known = |word: &String| earlier.subject.contains(word);
        let mut pairs = self.pairs.iter();
        pairs.any(|(part, whole)| {
            known(whole)
                && !known(part)
                && self.subject.contains(part)
                && self.subject.contains(whole)
        })
    }

    /// Whether a text names its value together with words of its subject.
    pub(crate) fn is_named_in(&self, text: &str) -> bool {
        if !self
            .value
            .as_ref()
            .is_some_and(|value| text.contains(value.text.as_str()))
        {
            return false;
        }
        let shared = |other: &Self| {
            let words = self.subject.iter();
            words.filter(|word| other.subject.contains(word)).count()
        };
        let others = statements(text, None);
        others
            .iter()
            .any(|other| other.has_value_of(self) && shared(other) > 1)
    }

    /// Whether two subjects are one: all words of the one are in the other, none of the others says when it holds, and none
    /// parts two neighbours, as in `function names` and `function argument names`. With `anywhere`, the shorter one holds
    /// whatever the longer one says of when it holds.
    fn same_subject(&self, other: &Self, anywhere: bool) -> bool {
        let (small, large) = match self.subject.len() <= other.subject.len() {
            true => (self, other),
            false => (other, self),
        };
        let place = |word: &String| large.subject.iter().position(|other| other == word);
        let pairs = &large.pairs;
        let (small, topic) = (&small.subject, large.subject.iter().take(large.topic));
        let mut topic = topic.into_iter().peekable();
        let elsewhere = topic.peek().is_some()
            && !(anywhere && std::ptr::eq(small, &self.subject))
            && !topic.any(|word| small.contains(word));
        if elsewhere || !small.iter().all(|word| place(word).is_some()) {
            return false;
        }
        small.windows(2).all(|pair| match pair {
            [a, b] => match (place(a), place(b)) {
                // In another clause the order says nothing.
                (Some(from), Some(to)) if from < large.lead && to >= large.lead => true,
                (Some(from), Some(to)) if from + 1 < to => {
                    let between = large.subject.get(from + 1..to).unwrap_or_default();
                    let parts =
                        |word: &String| pairs.iter().any(|(part, of)| part == word && of == b);
                    between
                        .iter()
                        .all(|word| small.contains(word) || !parts(word))
                }
                _ => true,
            },
            _ => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_from_wishes_and_small_talk() {
        for rule in [
            "From now on, write the changelog in German.",
            "Please never push to main.",
            "Don't touch the generated files.",
            "We no longer support Node.",
            "- Always run the linter.",
            "Make sure that the tests pass.",
            "I want you to make sure that the tests pass.",
            "I want to make sure that you run the tests.",
            "RULE: the budget ends in May.",
            "今後はコメントを英語で書いてください。",
            "앞으로 커밋은 작게 나눠 주세요.",
            "从现在开始用中文回答。",
        ] {
            assert!(force(rule) >= Force::Rule, "{rule}");
        }
        for rule in [
            "Name the crates with the prefix 'crumb-'.",
            "Could you please call it `reader`?",
            "Always indent by 3 spaces.",
            "変数名は「x_」で始めてください。",
        ] {
            assert_eq!(force(rule), Force::Value, "{rule}");
        }
        for other in [
            "Don't hesitate to reach out.",
            "It's been a pleasure, as always.",
            "I've always liked the 1990s.",
            "I'll never forget that summer.",
            "The cat always sleeps on the chair, and she never bites.",
            "You always mentioned it.",
            "I want to make sure the page loads fast.",
            "I'm also trying to make sure that nobody waits.",
            "I don't know which of them it is.",
            "Should we always do that?",
            "Fix the build.",
            "It's the dog's 'favourite' toy.",
            "ありがとうございます。",
        ] {
            assert!(force(other) < Force::Rule, "{other}");
        }
        assert!(is_small_talk("Good to hear, thanks!") && !is_small_talk("Fix it."));
    }

    fn replaces(earlier: &str, later: &str) -> bool {
        let (earlier, later) = (statements(earlier, None), statements(later, None));
        later
            .iter()
            .any(|later| earlier.iter().any(|earlier| later.replaces(earlier)))
    }

    #[test]
    fn a_later_value_of_the_same_subject_replaces_an_earlier_one() {
        for (earlier, later) in [
            (
                "Start table names with 't_'.",
                "From now on, begin table names with 'tbl_'.",
            ),
            (
                "End the names of jobs with '_job'.",
                "For names of jobs, I'd like you to end them with 'Job'.",
            ),
            (
                "The staging server listens on port 8080.",
                "Correction: the staging server listens on port 9090.",
            ),
            (
                "Use `tabs` for indentation.",
                "Don't use `tabs` for indentation any more.",
            ),
            (
                "Use snake_case for table names.",
                "When naming tables, always use CamelCase.",
            ),
            (
                "When filling tables, start the table names with 't_'.",
                "Start table names with 'tbl_'.",
            ),
            (
                "Start table names with 't_' and end them with '_v'.",
                "End table names with '_w'.",
            ),
            (
                "変数名は「x_」で始めてください。",
                "今後、変数名は「y_」で始めてください。",
            ),
            (
                "변수 이름은 'x_'로 시작하세요.",
                "변수 이름은 'y_'로 시작해 주세요.",
            ),
            ("变量名用'x_'开头。", "变量名改成用'y_'开头。"),
        ] {
            assert!(replaces(earlier, later), "{earlier} / {later}");
        }
    }

    #[test]
    fn another_subject_and_one_of_several_replace_nothing() {
        for (earlier, later) in [
            (
                "Start table names with 't_'.",
                "Start column names with 'c_'.",
            ),
            ("Start table names with 't_'.", "End table names with '_t'."),
            (
                "End table names with '_t'.",
                "End table column names with '_c'.",
            ),
            (
                "Start table names with 't_'.",
                "When naming columns, start the names with 'c_'.",
            ),
            (
                "Add the 'audit' trait to all tables.",
                "Add the 'owner' trait to all tables.",
            ),
            ("Import the 'json' module.", "Import the 'csv' module."),
            (
                "Rule 3: never change module number 3 alone.",
                "Rule 4: never change module number 4 alone.",
            ),
            ("The test of parse_a fails.", "The test of parse_b fails."),
            (
                "関数名は「f_」で始めてください。",
                "変数名は「v_」で始めてください。",
            ),
        ] {
            assert!(!replaces(earlier, later), "{earlier} / {later}");
        }
    }

    #[test]
    fn what_says_the_same_in_other_words_repeats_it() {
        let one = |text: &str| statements(text, None).remove(0);
        let (first, again) = (
            "Start table names with 't_'.",
            "Remember: table names start with 't_'.",
        );
        assert!(one(again).repeats(&one(first)) && !one(again).replaces(&one(first)));
        assert!(one(first).is_named_in("Yes, I will start table names with 't_'."));
        assert!(!one(first).is_named_in("The variable 't_' is unused."));
    }

    #[test]
    fn what_is_so_now_replaces_what_was_so() {
        for (earlier, later) in [
            // Numbers, amounts, dates.
            (
                "The mail relay listens on port 2525.",
                "Sorry, the mail relay listens on port 2526, not 2525.",
            ),
            (
                "The lease lasts 30 minutes.",
                "The lease now lasts forty-five minutes.",
            ),
            (
                "Workshop costs must stay under €900.",
                "New limit for workshop costs: keep them below six hundred euros.",
            ),
            (
                "The freeze is planned for 2031-03-04.",
                "The freeze date moved to April 11.",
            ),
            ("The retro is on Monday.", "The retro has moved to Tuesday."),
            (
                "The service `orders` runs version 1.4.2.",
                "The service `orders` runs version 1.5.0 now.",
            ),
            // Names, and other words that their place alone tells.
            (
                "The default branch is master.",
                "The default branch is now main.",
            ),
            (
                "The on-call engineer this week is Dana Fox.",
                "Lee Chan is now the on-call engineer this week.",
            ),
            (
                "Show all times in UTC.",
                "From now on, show all times in Eastern time.",
            ),
            (
                "Write the changelog in German.",
                "From now on, write the changelog in French.",
            ),
            (
                "Use tabs for indentation.",
                "Use spaces for indentation instead.",
            ),
            (
                "Keep your answers short.",
                "I would rather get detailed replies.",
            ),
            // Names of things, by other words.
            (
                "The tool is called KITE-12.",
                "We are calling the tool HERON-34 now.",
            ),
            (
                "Work goes on in branch topic/kite-1.",
                "We switched work to branch topic/heron-2; tests come next.",
            ),
            (
                "Never reveal the door code 4411-a.",
                "Never reveal the new door code 5522-b; the old one is void.",
            ),
            (
                "For job names, I'd like you to start using the prefix 'j_' instead of what I told you before.",
                "From now on, when you're naming jobs, start the names with 'k_'.",
            ),
            // Letter cases, and how firmly a rule is wished.
            (
                "Use snake_case for job names.",
                "I'd like to stress the use of all uppercase for job names.",
            ),
            (
                "In Lua, we always use snake_case for job names.",
                "From now on, use CamelCase for job names.",
            ),
            (
                "As for the current rules, begin job names with 'j_'.",
                "Begin job names with 'job_'.",
            ),
            (
                "Whenever you're naming jobs, count them and start the name with 'j_'.",
                "From now on, start job names with 'k_'.",
            ),
            (
                "The launch in Lima starts on June 3.",
                "The launch in Lima is cancelled.",
            ),
            (
                "Der Testserver läuft auf Port 8080.",
                "Korrektur: Der Testserver läuft auf Port 9090.",
            ),
            (
                "Schreibe alle Berichte auf Deutsch.",
                "Ab sofort schreibst du alle Berichte auf Englisch.",
            ),
            (
                "試験のポートは8080です。",
                "試験のポートは8080ではなく9090です。",
            ),
            (
                "報告は日本語で書いてください。",
                "今後は報告を英語で書いてください。",
            ),
            (
                "시험 서버의 포트는 8080입니다.",
                "정정: 시험 서버의 포트는 9090입니다.",
            ),
        ] {
            assert!(replaces(earlier, later), "{earlier} / {later}");
        }
    }

    #[test]
    fn what_is_so_of_something_else_replaces_nothing() {
        for (earlier, later) in [
            (
                "The staging relay listens on port 25.",
                "The production relay listens on port 26 now.",
            ),
            (
                "The store region is eu-3.",
                "The backup store region is now us-4.",
            ),
            (
                "The timeout for reads is 30 seconds.",
                "The timeout for writes is now 60 seconds.",
            ),
            (
                "The service `orders` runs version 1.4.2.",
                "The service `bills` runs version 2.0.1 now.",
            ),
            (
                "The meeting with Rhea is on Monday.",
                "The meeting with Juno is now on Tuesday.",
            ),
            (
                "Dana Fox is the release approver.",
                "Lee Chan is now the design reviewer.",
            ),
            (
                "Write the changelog in German.",
                "From now on, write the tests in French.",
            ),
            ("The login page is slow.", "The login page is ugly."),
            (
                "The launch in Lima starts on June 3.",
                "The launch in Oslo is cancelled.",
            ),
            (
                "We cache sessions in Redis.",
                "We now keep jobs in Postgres.",
            ),
            (
                "When naming jobs, start the name with 'j_'.",
                "When naming jobs, end the name with '_j'.",
            ),
            (
                "Schreibe alle Berichte auf Deutsch.",
                "Ab sofort schreibst du alle Kommentare auf Englisch.",
            ),
            (
                "報告は日本語で書いてください。",
                "今後は試験を英語で書いてください。",
            ),
            (
                "본점 서버의 포트는 443입니다.",
                "정정: 시험 서버의 포트는 9090입니다.",
            ),
        ] {
            assert!(!replaces(earlier, later), "{earlier} / {later}");
        }
    }

    #[test]
    fn a_weaker_sentence_does_not_repeat_a_firm_one() {
        let one = |text: &str| statements(text, None).remove(0);
        let firm = one("End all job names with '_j'.");
        assert!(one("End job names with '_j', please.").repeats(&firm));
        assert!(one("Add '_j' to the end of each job name.").repeats(&firm));
        assert!(!one("A '_j' in job names, at their end.").repeats(&firm));
    }
}
