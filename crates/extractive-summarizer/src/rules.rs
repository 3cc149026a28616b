//! Standing rules of users: which sentences state one, and which of them a later one replaces or withdraws.

use crate::cues::{
    ADDS, ASKS, CHANGES, ENDS, IMPERATIVES, LINKS, REFERS, SAME, SMALL_TALK, STANDING, STOP_WORDS,
    TOPICS, WITHDRAWS,
};
use crate::text::is_wide;

/// Maximum length of a sentence that states a rule, in bytes.
const RULE_BYTES: usize = 600;
/// Maximum length of a quoted value, in characters, and number of its words.
const QUOTED: usize = 40;
const QUOTED_WORDS: usize = 3;
/// Maximum number of values of a sentence that are read.
const VALUES: usize = 4;
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

/// Whether a word names a value by its form: with a digit, an underscore or a hump, or in capitals.
fn is_value(word: &str) -> bool {
    let upper = word.chars().filter(|c| c.is_uppercase()).count();
    let hump = word
        .as_bytes()
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    word.contains(|c: char| c.is_numeric() || c == '_')
        || hump
        || (upper > 2 && upper == word.chars().count())
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
        if of == 5 && is_value(word) {
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
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let lower: Vec<&str> = self.words.iter().map(|word| word.lower.as_str()).collect();
        lower.windows(phrase.len()).any(|words| words == phrase)
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

/// Whether a text has one of these phrases. Those of scripts without spaces may be anywhere, and others are whole words.
fn any(words: &Words<'_>, sentence: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| match phrase.is_ascii() {
        true => words.has(phrase),
        false => sentence.contains(phrase),
    })
}

/// Whether a sentence is thanks, a greeting or encouragement.
pub(crate) fn is_small_talk(sentence: &str) -> bool {
    force(sentence) == Force::SmallTalk
}

/// How a sentence binds the steps to come.
pub(crate) fn force(sentence: &str) -> Force {
    if sentence.len() > RULE_BYTES {
        return Force::None;
    }
    let words = words(sentence);
    let polite = any(&words, sentence, SMALL_TALK);
    if polite && !words.quoted {
        return Force::SmallTalk;
    }
    let asks = sentence.trim_end().ends_with(['?', '？']);
    let standing = any(&words, sentence, STANDING) || always(&words) || forbids(&words);
    let wish = || {
        let imperative =
            (0..words.words.len()).any(|n| IMPERATIVES.contains(&words.at(n)) && words.begins(n));
        imperative || any(&words, sentence, ASKS)
    };
    match words.quoted || (standing && !words.values.is_empty()) {
        _ if asks && !words.quoted => Force::None,
        true if standing || wish() => Force::Value,
        false if standing => Force::Rule,
        _ => Force::None,
    }
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
                "is" | "are"
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
                    | "not"
            );
        matches!(words.at(n), "always" | "never")
            && !tells
            && !matches!(after, "" | "mind" | "been")
    })
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
    let withdraws = any(&said, sentence, WITHDRAWS);
    let changes = any(&said, sentence, CHANGES);
    let mut found = Vec::new();
    let mut values = said.values.iter();
    let (mut start, mut first) = (0, Vec::new());
    let places = (0..said.words.len()).filter(|n| said.is_value(*n));
    for at in places.take(VALUES) {
        let mut subject = said.topic(at, sentence);
        subject.extend(said.about(start, at, sentence));
        if first.is_empty() {
            if said.refers(start, at)
                && subject.len() < 3
                && let Some(before) = before
            {
                let before_words = words(before);
                let words = before_words
                    .words
                    .iter()
                    .flat_map(|word| stems(word.text, before));
                subject.splice(0..0, words);
            }
            first.clone_from(&subject);
        } else if subject.len() < 3 {
            // `… and end them with`: of the same thing as the part before.
            subject.extend(first.iter().skip(1).cloned());
        }
        start = at + 1;
        found.push(Statement {
            single: is_single(&said, sentence, at),
            subject: without_repeats(subject),
            value: values.next().cloned(),
            changes,
            withdraws,
        });
    }
    if found.is_empty() && withdraws {
        let words = said
            .words
            .iter()
            .flat_map(|word| stems(word.text, sentence));
        found.push(Statement {
            subject: without_repeats(words.collect()),
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

    /// Whether a pronoun stands between two places.
    fn refers(&self, from: usize, to: usize) -> bool {
        (from..to).any(|n| REFERS.contains(&self.at(n)))
    }

    /// Telling words of clauses before that of the value, which say what it is about: `when naming functions,`.
    fn topic(&self, at: usize, sentence: &str) -> Vec<String> {
        let Some(clause) = self.clause(at) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let mut opens = None;
        for (n, word) in self.words.iter().enumerate().take(at) {
            if word.clause == clause {
                break;
            }
            if n == 0 || self.clause(n - 1) != Some(word.clause) {
                let lead = TOPICS.contains(&self.at(n))
                    || (self.at(n) == "and" && TOPICS.contains(&self.at(n + 1)));
                opens = lead.then_some(word.clause);
            }
            if opens == Some(word.clause) {
                out.extend(stems(word.text, sentence));
            }
        }
        out
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
        let inside = |n: &usize| self.clause(*n) == clause && !self.is_value(*n);
        let stem = |n: usize| {
            self.words
                .get(n)
                .map_or_else(Vec::new, |word| stems(word.text, sentence))
        };
        let mut out: Vec<String> = (from..link).filter(inside).flat_map(stem).collect();
        let after =
            (at + 1..self.words.len()).take_while(|n| inside(n) && !ENDS.contains(&self.at(*n)));
        let linked = matches!(self.at(at + 1), "for" | "in" | "of" | "on");
        if out.len() < 2 || linked {
            out.extend(after.flat_map(stem));
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
    !adds_wide && ((!adds && (linked || used)) || particle || marked)
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
                |c: char| !japanese && "的以为用是改在把将请要都从和与或不了我你".contains(c);
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
        other && changed && enough && same_subject(&earlier.subject, &self.subject)
    }

    /// Whether it says the same as an earlier statement.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        self.value.is_some()
            && self.value == earlier.value
            && self.withdraws == earlier.withdraws
            && self.subject.len() > 1
            && same_subject(&earlier.subject, &self.subject)
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
}

/// Whether two subjects are one: all words of the one are in the other, and no further word parts two neighbours, as in
/// `function names` and `function argument names`.
fn same_subject(one: &[String], other: &[String]) -> bool {
    let (small, large) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let place = |word: &String| large.iter().position(|other| other == word);
    if !small.iter().all(|word| place(word).is_some()) {
        return false;
    }
    small.windows(2).all(|pair| match pair {
        [a, b] => match (place(a), place(b)) {
            (Some(from), Some(to)) if from + 1 < to => {
                let between = large.get(from + 1..to).unwrap_or_default();
                between.iter().all(|word| small.contains(word))
            }
            _ => true,
        },
        _ => true,
    })
}
