//! Comparison of statements (sentences of users that set a value): whether one replaces, repeats or narrows another.

use sentence_model::NumberedRelation;

use crate::said_value::{Class, Value};
use crate::statement::{Statement, statements};

impl Statement {
    /// Returns whether this statement (a sentence that sets a value) replaces or withdraws an earlier one.
    pub(crate) fn replaces(&self, earlier: &Self) -> bool {
        match self.numbered.relation_to(&earlier.numbered) {
            NumberedRelation::Changed { .. } => return true,
            NumberedRelation::Unchanged => return false,
            _ => {}
        }
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
        let swaps = self.swaps(earlier, value, other);
        if swaps || !(self.changes || anew || one || (both && named)) {
            return swaps && !self.narrows(earlier);
        }
        let shared = self.shares(earlier);
        let more = self.subject.len() - shared;
        // Different people or places may have the same description, unless all words are equal.
        let alike = shared > 2 && more == 0 && shared == earlier.subject.len();
        if !(self.changes || anew || one || alike) {
            return false;
        }
        let all = self.changes || self.fresh || more == 0 || shared == earlier.subject.len();
        let only = shared == 1 && self.subject.len() == 1 && earlier.subject.len() == 1;
        let kin = shared > 0 && (is_sole(value, other) || value.is_beside(other));
        let shared = shared + usize::from(kin);
        let enough = shared > 2 || (shared > 1 && all) || (only && (self.changes || anew));
        enough && !self.narrows(earlier) && self.same_subject(earlier, self.universal)
    }

    /// Returns whether this statement replaces a universal statement only for some cases, which it names at its start.
    pub(crate) fn replaces_part(&self, earlier: &Self) -> bool {
        let (Some(value), Some(other)) = (&self.value, &earlier.value) else {
            return false;
        };
        let rest = self.subject.get(self.topic..).unwrap_or_default();
        let topic = self.subject.get(..self.topic).unwrap_or_default();
        let known = |word: &String| earlier.subject.contains(word);
        let own = rest.len() + usize::from(is_sole(value, other));
        let relation = self.numbered.relation_to(&earlier.numbered);
        earlier.universal
            && relation != NumberedRelation::Unchanged
            && self.single
            && earlier.single
            && value.class == other.class
            && !value.is(other)
            && !topic.is_empty()
            && !topic.iter().any(known)
            && own > 1
            && !rest.is_empty()
            && rest.iter().all(known)
    }

    /// Returns whether one value replaces the other, judged by a word of change and the form of both values: two codes,
    /// or two paths in one folder.
    fn swaps(&self, earlier: &Self, value: &Value, other: &Value) -> bool {
        let has = |word: &str| earlier.subject.iter().any(|one| one == word);
        // For example `rebased`, if the earlier statement says `based`.
        let again = |word: &String| {
            word.strip_prefix("re")
                .is_some_and(|bare| bare.len() > 2 && has(bare))
        };
        let beside = value.is_beside(other);
        let again = beside && self.subject.iter().any(again);
        let changes = self.changes && self.shares(earlier) > 1;
        (again || (changes && (beside || value.is_formed_like(other)))) && !self.contrasts(earlier)
    }

    /// Returns whether the subjects contrast: each has a word that the other lacks, next to a word that both have, as
    /// in `the staging key` and `the production key`.
    fn contrasts(&self, other: &Self) -> bool {
        let apart = |own: &String, others: &String| {
            !other.subject.contains(own) && !self.subject.contains(others)
        };
        self.pairs.iter().any(|(part, whole)| {
            let mut others = other.pairs.iter();
            others.any(|(a, b)| (b == whole && apart(part, a)) || (a == part && apart(whole, b)))
        })
    }

    /// Returns whether a word that both have belongs to another noun here: `function arguments`, but `function names`
    /// in the other.
    fn has_other_head(&self, other: &Self) -> bool {
        self.pairs.iter().any(|(part, whole)| {
            let own = self.subject.contains(whole) && !other.subject.contains(whole);
            let others = || other.pairs.iter().filter(|(same, _)| same == part);
            let known = other.subject.contains(part);
            // A longer compound that both have is the same thing.
            let mut longer = self.pairs.iter().filter(|(_, same)| same == part);
            own && known
                && !longer.any(|pair| other.pairs.contains(pair))
                && others().next().is_some()
                && !others().any(|pair| self.pairs.contains(pair))
        })
    }

    /// Returns a set of bits for the words of the subject. If two statements have no common bit, neither replaces nor
    /// repeats the other. All bits are set for a subject without words, and for one that may be compared by a part of a
    /// word, such as `rebased`.
    pub(crate) fn subject_bits(&self) -> u64 {
        if self.subject.is_empty() || self.subject.iter().any(|word| word.starts_with("re")) {
            return u64::MAX;
        }
        let bit = |word: &String| {
            let sum = word.bytes().fold(0_u32, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(u32::from(byte))
            });
            1_u64 << (sum % 64)
        };
        self.subject.iter().map(bit).fold(0, |all, bit| all | bit)
    }

    /// Returns the number of words that both subjects have.
    fn shares(&self, other: &Self) -> usize {
        let words = other.subject.iter();
        words.filter(|word| self.subject.contains(word)).count()
    }

    /// Returns whether the statement (a sentence that sets a value) has enough words to replace another one.
    pub(crate) fn tells(&self) -> bool {
        let weak = self.value.as_ref().is_some_and(Value::is_weak);
        let changes = self.changes || self.fresh;
        (changes && !self.subject.is_empty())
            || (self.subject.len() > 1 && ((self.single && !weak) || self.withdraws))
    }

    /// Returns whether this statement (a sentence that sets a value) repeats an earlier one without weakening it.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        self.has_value_of(earlier)
            && self.withdraws == earlier.withdraws
            && (self.single || !earlier.single)
            && self.subject.len() > 1
            && self.numbered.has_names_of(&earlier.numbered)
            && self.same_subject(earlier, false)
    }

    fn has_value_of(&self, other: &Self) -> bool {
        let values = self.value.as_ref().zip(other.value.as_ref());
        values.is_some_and(|(value, other)| value.is(other))
    }

    /// Returns whether this statement is about a part of an earlier statement's subject: `the backup region` after `the
    /// region`.
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

    /// Returns whether a text has the statement's value together with words of its subject.
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
            .filter(|other| other.numbered.has_names_of(&self.numbered))
            .any(|other| other.has_value_of(self) && shared(other) > 1)
    }

    /// Returns whether two subjects are the same. One has all words of the other, and its further words give no
    /// condition and separate no two neighbours, as in `function names` and `function argument names`. If `anywhere` is
    /// true and the subject of `self` is the shorter one, the longer one may give a condition.
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
        if elsewhere
            || self.has_other_head(other)
            || other.has_other_head(self)
            || !small.iter().all(|word| place(word).is_some())
        {
            return false;
        }
        small.windows(2).all(|pair| match pair {
            [a, b] => match (place(a), place(b)) {
                // Between two clauses, the order of the words does not matter.
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

/// Returns whether both values are of a class in which only one value can apply.
fn is_sole(value: &Value, other: &Value) -> bool {
    matches!(value.class, Class::TimeZone | Class::Units) && value.class == other.class
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "Please rename the function parse_1 in module 1.",
                "Please rename the function parse_2 in module 2.",
            ),
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
            // Names, and other words that are values only by their place.
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
                "End all table column names with '_c'.",
                "I prefer table column names to end with '_col'.",
            ),
            (
                "Also, when naming the tables themselves, I want you to start the names with 't_'.",
                "Going forward, I'd like you to start table names with 'tab_'.",
            ),
            // The subject by another word, and the form of codes and paths.
            (
                "End all names of table columns with '_c'.",
                "When naming table columns, end the field name with '_col'.",
            ),
            (
                "The gate alarm code is qrs-41 and nobody may write it down.",
                "Alarm code change: never say tuv-52, the former code no longer opens the door.",
            ),
            (
                "Branch work/kite-1 is based on last week's release.",
                "I rebased it on work/heron-2.",
            ),
            (
                "The team wants long replies.",
                "I would rather get short replies with metric units.",
            ),
            (
                "Use imperial units in the summaries.",
                "Please stick to metric units in the summaries.",
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
            (
                "The staging API key is qrs-41.",
                "The production API key was replaced: it is tuv-52.",
            ),
            (
                "The API key check reads qrs-41.",
                "The API key store was replaced: it reads tuv-52.",
            ),
            (
                "End all table names with '_t'.",
                "When naming table columns, make sure to end the names with '_c'.",
            ),
            (
                "When naming table columns, make sure to end the names with '_c'.",
                "From now on, end all table names with '_t'.",
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
    fn a_short_name_is_the_long_one_of_the_sentence_before() {
        let one = |text: &str, before: &str| statements(text, Some(before)).remove(0);
        let short = one(
            "All column names end with '_c'.",
            "There is a rule for table column names.",
        );
        let long = one("For table column names, end them with '_col'.", "It rains.");
        assert!(long.replaces(&short));
        let other = one(
            "All column names end with '_c'.",
            "There is a rule for names.",
        );
        assert!(!long.replaces(&other));
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
