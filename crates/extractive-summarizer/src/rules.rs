//! Standing rules of users: which sentences state one, and which of them a later one replaces or withdraws.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::cues::{
    ADDS, ASKS, CHANGES, ENDS, IMPERATIVES, LINKS, REFERS, SAME, SMALL_TALK, STANDING, STOP_WORDS,
    TOPICS, UPDATES, WITHDRAWS,
};
use crate::text::{is_wide, matcher};

/// Maximum length of a sentence that states a rule, in bytes.
const RULE_BYTES: usize = 600;
/// Maximum length of a quoted value, in characters, and number of its words.
const QUOTED: usize = 40;
const QUOTED_WORDS: usize = 3;
/// Maximum number of values of a sentence that are read.
const VALUES: usize = 4;
/// Maximum length of a sentence that tells what is new, in bytes.
const UPDATE: usize = 160;
/// In the place of a value among the words of a sentence.
const VALUE: &str = "\0";
/// Number of words before a value among which `with` links it to its subject.
const LINKED: usize = 4;

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
    value: Option<String>,
    /// Whether the subject has one value: it starts *with*, is, or is set *to* it.
    single: bool,
    changes: bool,
    withdraws: bool,
}

/// A word of a sentence.
struct Word<'a> {
    text: &'a str,
    lower: String,
    clause: usize,
}

/// The words of a sentence, lower-cased, and its values. Values are [`VALUE`] among the words.
struct Words<'a> {
    words: Vec<Word<'a>>,
    values: Vec<String>,
    quoted: bool,
}

fn closing(open: char) -> Option<char> {
    Some(match open {
        '\'' | '"' | '`' => open,
        '“' => '”',
        '‘' => '’',
        '「' => '」',
        '『' => '』',
        '«' => '»',
        _ => return None,
    })
}

/// The text in quotation marks with which `text` begins.
fn quoted(text: &str) -> Option<&str> {
    let open = text.chars().next()?;
    let close = closing(open)?;
    let inside = text.get(open.len_utf8()..)?;
    let end = inside.find(close)?;
    let value = inside.get(..end)?;
    let after = inside.get(end + close.len_utf8()..)?.chars().next();
    let ends = !after.is_some_and(|c| c.is_alphanumeric() && !is_wide(c));
    let words = value.split_whitespace().count();
    let fits = (1..=QUOTED_WORDS).contains(&words) && value.chars().count() <= QUOTED;
    (ends && fits && value.trim() == value).then_some(value)
}

/// Whether a word names a value by its form: with a digit, an underscore or a hump, or in capitals after a word that takes
/// a value.
fn is_value(word: &str, before: &str) -> bool {
    let upper = word.chars().filter(|c| c.is_uppercase()).count();
    let hump = word.len() > 3
        && word
            .as_bytes()
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let capitals = upper > 2 && upper == word.chars().count();
    let named = matches!(
        before,
        "use" | "using" | "all" | "in" | "as" | "to" | "is" | "are"
    );
    word.contains(|c: char| c.is_numeric() || c == '_') || hump || (capitals && named)
}

fn words(sentence: &str) -> Words<'_> {
    let mut found = Words {
        words: Vec::new(),
        values: Vec::new(),
        quoted: false,
    };
    let (mut clause, mut at, mut before) = (0, 0, ' ');
    let kind = |c: char| match c {
        '\u{3040}'..='\u{309f}' => 1,
        '\u{30a0}'..='\u{30ff}' => 2,
        '\u{3400}'..='\u{9fff}' => 3,
        '\u{ac00}'..='\u{d7af}' => 4,
        c if c.is_alphanumeric() || matches!(c, '_' | '@' | '\'' | '’') => 5,
        _ => 0,
    };
    while let Some(rest) = sentence.get(at..)
        && let Some(c) = rest.chars().next()
    {
        if (!before.is_alphanumeric() || is_wide(before))
            && let Some(value) = quoted(rest)
        {
            found.quoted = true;
            found.values.push(value.to_owned());
            found.push(VALUE, clause);
            at += value.len() + 2 * c.len_utf8();
            before = ' ';
            continue;
        }
        before = c;
        let of = kind(c);
        if of == 0 || matches!(c, '\'' | '’') {
            if matches!(
                c,
                ',' | ';' | ':' | '(' | ')' | '—' | '–' | '、' | '，' | '：' | '；'
            ) {
                clause += 1;
            }
            at += c.len_utf8();
            continue;
        }
        let inside =
            |(_, c): &(usize, char)| kind(*c) == of || (of == 5 && matches!(c, '.' | '-' | '/'));
        let length: usize = rest
            .char_indices()
            .take_while(inside)
            .map(|(_, c)| c.len_utf8())
            .sum();
        let word = rest.get(..length).unwrap_or("");
        let word = word.trim_end_matches(['.', '-', '/', '\'', '’']);
        let last = found.words.last().map_or("", |word| word.lower.as_str());
        if of == 5 && is_value(word, last) {
            found.values.push(word.to_owned());
            found.push(VALUE, clause);
        } else {
            found.push(word, clause);
        }
        before = word.chars().next_back().unwrap_or(c);
        at += length;
    }
    found
}

impl<'a> Words<'a> {
    fn push(&mut self, text: &'a str, clause: usize) {
        self.words.push(Word {
            text,
            lower: text.to_lowercase().replace('’', "'"),
            clause,
        });
    }

    fn at(&self, n: usize) -> &str {
        self.words.get(n).map_or("", |word| word.lower.as_str())
    }

    /// Whether the words contain a phrase.
    fn has(&self, phrase: &str) -> bool {
        let begins = |n: usize| {
            phrase
                .split(' ')
                .zip(n..)
                .all(|(word, n)| self.at(n) == word)
        };
        (0..self.words.len()).any(begins)
    }

    /// Whether the word at an index begins a clause, or follows a word that begins one and says little.
    fn begins(&self, n: usize) -> bool {
        let clause = |n: usize| self.words.get(n).map(|word| word.clause);
        let mut n = n;
        while let Some(before) = n.checked_sub(1) {
            if clause(before) != clause(n) {
                return true;
            }
            if !matches!(
                self.at(before),
                "please"
                    | "also"
                    | "and"
                    | "but"
                    | "then"
                    | "so"
                    | "now"
                    | "firstly"
                    | "secondly"
                    | "first"
            ) {
                return false;
            }
            n = before;
        }
        true
    }
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
static SAID_WITHDRAWS: LazyLock<Cues> = LazyLock::new(|| Cues::of(WITHDRAWS));
static SAID_KINDLY: LazyLock<Cues> = LazyLock::new(|| Cues::of(SMALL_TALK));

/// Whether a text has one of these phrases. Those of scripts without spaces may be anywhere, and others are whole words.
fn any(words: &Words<'_>, sentence: &str, cues: &Cues) -> bool {
    // Most sentences have none.
    let found = cues
        .matcher
        .as_ref()
        .is_some_and(|matcher| matcher.is_match(sentence));
    found
        && cues.phrases.iter().any(|phrase| match phrase.is_ascii() {
            true => words.has(phrase),
            false => sentence.contains(phrase),
        })
}

/// Whether a sentence is thanks, a greeting or encouragement.
pub(crate) fn is_small_talk(sentence: &str) -> bool {
    let said = SAID_KINDLY.matcher.as_ref();
    said.is_some_and(|said| said.is_match(sentence)) && force(sentence) == Force::SmallTalk
}

/// How a sentence binds the steps to come.
pub(crate) fn force(sentence: &str) -> Force {
    if sentence.len() > RULE_BYTES {
        return Force::None;
    }
    let words = words(sentence);
    let polite = any(&words, sentence, &SAID_KINDLY);
    if polite && !words.quoted {
        return Force::SmallTalk;
    }
    let asks = sentence.trim_end().ends_with(['?', '？']);
    let standing = any(&words, sentence, &SAID_STANDING)
        || always(&words)
        || forbids(&words)
        || makes_sure(&words);
    let wish = || {
        let imperative =
            (0..words.words.len()).any(|n| IMPERATIVES.contains(&words.at(n)) && words.begins(n));
        imperative || any(&words, sentence, &SAID_ASKS) || any(&words, sentence, &SAID_CHANGES)
    };
    let updates = !words.values.is_empty()
        && sentence.len() <= UPDATE
        && any(&words, sentence, &SAID_UPDATES);
    match words.quoted || (standing && !words.values.is_empty()) {
        _ if asks && !words.quoted => Force::None,
        true if standing || wish() => Force::Value,
        false if is_labelled(sentence) => Force::Value,
        false if standing || updates => Force::Rule,
        _ => Force::None,
    }
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
    let words = words(sentence);
    let telling = words
        .words
        .iter()
        .map(|word| stems(word.text, sentence).len());
    let pronoun = |word: &Word<'_>| REFERS.contains(&word.lower.as_str()) || word.lower == "this";
    words.words.iter().any(pronoun) && telling.sum::<usize>() < 4
}

/// Reads a sentence: a statement for each of its values, or one that withdraws something. `before` is the sentence before
/// it, which its pronouns may mean.
pub(crate) fn statements(sentence: &str, before: Option<&str>) -> Vec<Statement> {
    if sentence.len() > RULE_BYTES {
        return Vec::new();
    }
    let said = words(sentence);
    let withdraws = any(&said, sentence, &SAID_WITHDRAWS);
    let changes = any(&said, sentence, &SAID_CHANGES);
    let mut found = Vec::new();
    let mut values = said.values.iter();
    let (mut start, mut first) = (0, Vec::new());
    let places = (0..said.words.len()).filter(|n| said.is_value(*n));
    for at in places.take(VALUES) {
        let value = values.next();
        if start > 0 && said.qualifies(at) {
            continue;
        }
        let (topic, done) = said.topic(at, sentence);
        let mut subject = without_repeats(topic);
        let topic = subject.len();
        subject.extend(done);
        let mut subject = without_repeats(subject);
        let lead = subject.len();
        subject.extend(said.about(start, at, sentence));
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
            first.clone_from(&subject);
        } else if subject.len() < 2 {
            // `… and end them with`: of the same thing as the part before.
            subject.extend(first.iter().skip(1).cloned());
        } else if subject.len() < 3 {
            // `… and all method names with`: the same is done.
            subject.splice(0..0, first.first().cloned());
        }
        let from = std::mem::replace(&mut start, at + 1);
        let statement = Statement {
            single: is_single(&said, sentence, at),
            value: value.cloned(),
            changes,
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
    fn is_value(&self, n: usize) -> bool {
        self.words.get(n).is_some_and(|word| word.text == VALUE)
    }

    fn clause(&self, n: usize) -> Option<usize> {
        self.words.get(n).map(|word| word.clause)
    }

    /// Telling words at the wanted places. To start doing something is to do it.
    fn telling(&self, sentence: &str, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let starts = |n: usize| self.at(n) == "start" && self.at(n + 1).ends_with("ing");
        let words = self.words.iter().enumerate();
        let words = words.filter(|(n, _)| wanted(*n) && !starts(*n));
        words
            .flat_map(|(_, word)| stems(word.text, sentence))
            .collect()
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
                let lead = TOPICS.contains(&self.at(n))
                    || (self.at(n) == "and" && TOPICS.contains(&self.at(n + 1)));
                opens = lead.then_some(word.clause);
            }
            let doing = self.at(n).ends_with("ing");
            let doing = doing
                && n.checked_sub(1)
                    .is_some_and(|n| TOPICS.contains(&self.at(n)));
            if opens == Some(word.clause) {
                let words = if doing { &mut done } else { &mut out };
                words.extend(stems(word.text, sentence));
            }
        }
        (out, done)
    }

    /// Telling words around a value, of its clause: those before it, and those after it where they are few.
    fn about(&self, from: usize, at: usize, sentence: &str) -> Vec<String> {
        let clause = self.clause(at);
        // What comes between `with` and the value tells of the value.
        let link = (1..=LINKED).filter_map(|n| at.checked_sub(n));
        let link = link
            .into_iter()
            .find(|n| self.at(*n) == "with")
            .unwrap_or(at);
        let inside = |n: &usize| self.clause(*n) == clause;
        let mut out = self.telling(sentence, |n| (from..link).contains(&n) && inside(&n));
        let ends = |n: usize| {
            let target = ["all", "every", "each", "the", "your", "our", "my"];
            let towards = self.at(n) == "to" && target.contains(&self.at(n + 1));
            ENDS.contains(&self.at(n)) && !towards
        };
        let after = (at + 1..self.words.len()).take_while(|n| inside(n) && !ends(*n));
        let linked = matches!(self.at(at + 1), "for" | "in" | "of" | "on");
        if out.len() < 2 || linked {
            let after: Vec<usize> = after.collect();
            out.extend(self.telling(sentence, |n| after.contains(&n)));
        }
        out
    }
}

/// Whether the value at an index is the one that its subject has, and not one of several.
fn is_single(said: &Words<'_>, sentence: &str, at: usize) -> bool {
    let clause = said.clause(at);
    let before = |n: usize| {
        let n = at.checked_sub(n)?;
        let word = said.words.get(n).filter(|word| Some(word.clause) == clause);
        word.map(|word| word.lower.as_str())
    };
    let article = |word: Option<&str>| matches!(word, Some("a" | "an" | "the"));
    let next = if article(before(1)) { 2 } else { 1 };
    let linked = before(next).is_some_and(|word| LINKS.contains(&word))
        || (1..=LINKED).any(|n| before(n) == Some("with"));
    // What is used *for* something; `the 'x' tool for all` may be one of several.
    let next_word = match said.clause(at + 1) == clause {
        true => said.at(at + 1),
        false => "",
    };
    let itself = matches!(before(1), Some("use" | "using" | "all"))
        && matches!(next_word, "" | "for" | "as" | "and" | "instead");
    let used = (said.has("use") || said.has("using")) && said.has("for");
    let for_all = ["for all", "for every", "for each", "to all"];
    let adds = (0..said.words.len()).any(|n| {
        ADDS.iter().any(|stem| said.at(n).starts_with(stem))
            && said.words.get(n).map(|word| word.clause) == clause
    });
    let after = said.words.get(at + 1).map_or("", |word| word.text);
    let particle = ["で", "に", "と", "から", "로", "으로"];
    let particle = particle.iter().any(|begin| after.starts_with(begin));
    let marked = before(1).is_some_and(|word| {
        word.ends_with(['は', '以', '用', '为', '為', '是', '成', '到', '은', '는'])
    });
    let used = used && !for_all.iter().any(|phrase| said.has(phrase));
    let adds_wide = ["追加", "添加", "추가"]
        .iter()
        .any(|word| sentence.contains(word));
    !adds_wide && ((!adds && (linked || used || itself)) || particle || marked)
}

/// The telling words of one word of a sentence, without their endings.
fn stems(word: &str, sentence: &str) -> Vec<String> {
    let Some(first) = word.chars().next().filter(|_| word != VALUE) else {
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
                .filter(|part| !CHANGES.contains(part))
                .map(str::to_owned)
                .collect()
        }
        '\u{ac00}'..='\u{d7af}' => {
            let bare = word.trim_end_matches([
                '은', '는', '이', '가', '을', '를', '에', '의', '로', '과', '와', '도',
            ]);
            let bare = if bare.is_empty() { word } else { bare };
            vec![bare.chars().take(2).collect()]
        }
        _ => {
            let lower = word.to_lowercase().replace('’', "'");
            let little = lower.contains('\'') || STOP_WORDS.contains(&lower.as_str());
            match little || lower.chars().count() < 2 {
                true => Vec::new(),
                false => vec![stem(&lower)],
            }
        }
    }
}

/// An English word without its ending: `names` and `naming` are one.
fn stem(word: &str) -> String {
    let ends = ["ing", "ed", "es", "s", "e"];
    let end = ends.iter().find_map(|end| word.strip_suffix(end));
    let bare = end.filter(|bare| bare.chars().count() > 2).unwrap_or(word);
    let mut chars = bare.chars().rev();
    let doubled = bare.len() < word.len() && chars.next() == chars.next() && bare.len() > 3;
    let bare = if doubled {
        bare.get(..bare.len() - 1).unwrap_or(bare)
    } else {
        bare
    };
    let same = SAME.iter().find(|(word, _)| *word == bare);
    same.map_or(bare, |(_, same)| same).to_owned()
}

impl Statement {
    /// Whether it replaces or withdraws an earlier statement.
    pub(crate) fn replaces(&self, earlier: &Self) -> bool {
        let shared = earlier.subject.iter();
        let shared = shared.filter(|word| self.subject.contains(word)).count();
        let more = self.subject.len() - shared;
        let same = self.value.is_some() && self.value == earlier.value;
        if self.withdraws && (same || self.value.is_none()) {
            let about = (shared > 1 && more < 2) || (same && shared > 0);
            return about && !earlier.withdraws;
        }
        let other = self.value.is_some() && earlier.value.is_some() && !same;
        let changed = self.changes || (self.single && earlier.single);
        let all = self.changes || more == 0 || shared == earlier.subject.len();
        let enough = shared > 2 || (shared > 1 && all);
        other && changed && enough && self.same_subject(earlier)
    }

    /// Whether it may replace another.
    pub(crate) fn tells(&self) -> bool {
        self.subject.len() > 1 && (self.single || self.changes || self.withdraws)
    }

    /// Whether it says the same as an earlier statement.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        self.value.is_some()
            && self.value == earlier.value
            && self.withdraws == earlier.withdraws
            && self.subject.len() > 1
            && self.same_subject(earlier)
    }

    /// Whether a text names its value together with words of its subject.
    pub(crate) fn is_named_in(&self, text: &str) -> bool {
        if !self
            .value
            .as_ref()
            .is_some_and(|value| text.contains(value.as_str()))
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
            .any(|other| other.value == self.value && shared(other) > 1)
    }

    /// Whether two subjects are one: all words of the one are in the other, none of the others says when it holds, and none
    /// parts two neighbours, as in `function names` and `function argument names`.
    fn same_subject(&self, other: &Self) -> bool {
        let (small, large) = match self.subject.len() <= other.subject.len() {
            true => (self, other),
            false => (other, self),
        };
        let place = |word: &String| large.subject.iter().position(|other| other == word);
        let (small, topic) = (&small.subject, large.subject.iter().take(large.topic));
        let mut topic = topic.into_iter().peekable();
        let elsewhere = topic.peek().is_some() && !topic.any(|word| small.contains(word));
        if elsewhere || !small.iter().all(|word| place(word).is_some()) {
            return false;
        }
        small.windows(2).all(|pair| match pair {
            [a, b] => match (place(a), place(b)) {
                // In another clause the order says nothing.
                (Some(from), Some(to)) if from < large.lead && to >= large.lead => true,
                (Some(from), Some(to)) if from + 1 < to => {
                    let between = large.subject.get(from + 1..to).unwrap_or_default();
                    between.iter().all(|word| small.contains(word))
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
}
