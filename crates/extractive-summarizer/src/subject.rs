//! Subject of a statement: the words of a sentence that describe a value.

use std::sync::LazyLock;

use crate::rule_cues::{ADDS, EDGES, ENDS, IMPERATIVES, LINKS, PURPOSES, REFERS, TOPICS};
use crate::said_value::Class;
use crate::stems::{NAME, stem, stems};
use crate::words::{Word, Words, is_little};

/// Number of words before a value in which `with` can link the value to its subject.
const LINKED: usize = 4;
/// Verbs after `and` that continue the same subject.
const MODAL: [&str; 4] = ["must", "should", "may", "shall"];

static LIMIT: LazyLock<[String; 1]> = LazyLock::new(|| ["limit".to_owned()]);

impl Words<'_> {
    /// Returns the index from which words can be about a value: after `I want to say that we` and `add a test and`.
    pub(crate) fn begin(&self, from: usize, at: usize) -> usize {
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

    /// Returns pairs of informative words that follow each other directly.
    pub(crate) fn pairs(&self, sentence: &str) -> Vec<(String, String)> {
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

    /// Returns the index after a value and its purpose: `'a' for files and …`.
    pub(crate) fn end(&self, at: usize) -> usize {
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

    /// Returns the informative words at the indices that `wanted` accepts. `start` before another verb is ignored.
    pub(crate) fn telling(&self, sentence: &str, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let places = (0..self.words.len()).filter(|n| wanted(*n));
        places
            .flat_map(|n| self.tells(n, sentence))
            .cloned()
            .collect()
    }

    /// Returns the informative words in the word at an index.
    fn tells(&self, n: usize, sentence: &str) -> &[String] {
        let little = match self.at(n) {
            "start" => self.at(n + 1).ends_with("ing"),
            // In `your code` the word says little, but not in `the access code`.
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

    /// Returns whether a value only names the owner of the value before: `'b'` in `the 'a' of the 'b'`.
    pub(crate) fn qualifies(&self, at: usize) -> bool {
        let before = |n: usize| at.checked_sub(n).map_or("", |n| self.at(n));
        let word = if before(1) == "the" {
            before(2)
        } else {
            before(1)
        };
        matches!(word, "from" | "of" | "in")
    }

    /// Returns whether a value names the subject of the next value in its clause: `'a'` in `the service 'a' runs
    /// version 2`.
    pub(crate) fn names(&self, at: usize) -> bool {
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

    /// Returns whether the sentence rejects a value: `'a'` in `not 'a' but 'b'`.
    pub(crate) fn rejects(&self, at: usize) -> bool {
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

    /// Splits a subject of two things into one subject for each: `start method names and variable names with`.
    pub(crate) fn parts(
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

    /// Returns whether there is a pronoun between two indices.
    pub(crate) fn refers(&self, from: usize, to: usize) -> bool {
        (from..to).any(|n| REFERS.contains(&self.at(n)))
    }

    /// Returns the informative words of the clauses before the value's clause, which name its subject: `when naming
    /// functions,`. The second list has the words for an action on the subject.
    pub(crate) fn topic(&self, at: usize, sentence: &str) -> (Vec<String>, Vec<String>) {
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

    /// Returns whether the word at an index only repeats the subject: `variable` in `the variable name`, after an
    /// earlier clause about a name.
    fn repeats(&self, n: usize, topic: &[String], sentence: &str) -> bool {
        let known = |n: usize| {
            let words = self.tells(n, sentence);
            !words.is_empty() && words.iter().all(|word| topic.contains(word))
        };
        self.before(n, 1) == "the"
            && self.clause(n) == self.clause(n + 1)
            && !known(n)
            && known(n + 1)
    }

    /// Returns whether a clause gives a reason: `for consistency`.
    fn is_purpose(&self, at: usize) -> bool {
        let clause = self.clause(at);
        let mut words = self.words.iter().skip(at);
        let abstracts = |word: &Word<'_>| PURPOSES.iter().any(|end| word.lower.ends_with(end));
        words
            .by_ref()
            .take_while(|word| Some(word.clause) == clause)
            .any(abstracts)
    }

    /// Returns the informative words of a value's clause: the words before the value, and the words after it if they
    /// are few. If `known` is true, an earlier clause names the subject, in the words `told`.
    pub(crate) fn about(
        &self,
        from: usize,
        at: usize,
        known: bool,
        told: &[String],
        sentence: &str,
    ) -> Vec<String> {
        let clause = self.clause(at);
        // Words between `with` and the value describe the value.
        let link = (1..=LINKED).filter_map(|n| at.checked_sub(n));
        let link = link
            .into_iter()
            .find(|n| self.at(*n) == "with")
            .filter(|_| {
                self.value(at)
                    .is_some_and(|value| value.class == Class::Code)
            })
            .unwrap_or(at);
        // In `use 'x' for …`, the words before the value only say how firm the wish is.
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
        let mut out = self.telling(sentence, |n| {
            let again = known && self.repeats(n, told, sentence);
            (from..link).contains(&n) && inside(&n) && !again
        });
        let ends = |n: usize| {
            let target = ["all", "every", "each", "the", "your", "our", "my"];
            let towards = self.at(n) == "to" && target.contains(&self.at(n + 1));
            // A clause after `and must` has the same subject.
            let goes_on = MODAL.contains(&self.at(n + 1));
            // A clause such as `instead of what I said before` names no subject.
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

/// Returns whether the value at an index is the only value of its subject, and not one of several.
pub(crate) fn is_single(said: &Words<'_>, sentence: &str, from: usize, at: usize) -> bool {
    let clause = said.clause(at);
    let before = |n: usize| {
        let n = at.checked_sub(n)?;
        let word = said.words.get(n).filter(|word| Some(word.clause) == clause);
        word.map(|word| word.lower.as_str())
    };
    let article = |word: Option<&str>| matches!(word, Some("a" | "an" | "the"));
    let next = if article(before(1)) { 2 } else { 1 };
    // Classes with only one value, such as the time zone of printed times.
    let sort = said.value(at).is_some_and(|value| {
        matches!(
            value.class,
            Class::LetterCase | Class::Units | Class::TimeZone | Class::Date
        )
    });
    let linked = before(next).is_some_and(|word| LINKS.contains(&word) || stem(word) == NAME)
        || (1..=LINKED).any(|n| matches!(before(n), Some("with" | "mit")))
        || sort;
    // A tool for a purpose is the only one. `the 'x' tool for all` may be one of several.
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
    // `add 'x' to the end of` sets the only value of an end.
    let added = edge(said, at) && (said.has("add") || said.has("append") || said.has("include"));
    !adds && (linked || used || itself || added || particle || marked)
}

/// Returns whether the clause of a value is about the beginning or the end of something.
fn edge(said: &Words<'_>, at: usize) -> bool {
    let clause = said.clause(at);
    (0..said.words.len()).any(|n| EDGES.contains(&said.at(n)) && said.clause(n) == clause)
}

/// Returns whether the value at an index is added to other values. The beginning or end of something has only one
/// value, even if a sentence says `add`.
pub(crate) fn adds(said: &Words<'_>, sentence: &str, from: usize, at: usize) -> bool {
    let clause = said.clause(at);
    let next =
        |n: &usize| *n < at || said.at(*n) != "and" || !IMPERATIVES.contains(&said.at(n + 1));
    let part = (from..said.words.len()).take_while(next);
    let adds = part.filter(|n| said.clause(*n) == clause).any(|n| {
        let word = said.at(n);
        ADDS.iter().any(|stem| word.starts_with(stem)) && !word.starts_with("importan")
    });
    let wide = ["追加", "添加", "추가"];
    (adds && !edge(said, at)) || wide.iter().any(|word| sentence.contains(word))
}
