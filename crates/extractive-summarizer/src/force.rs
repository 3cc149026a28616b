//! Force of a user's sentence: whether it sets a rule for later steps.

use crate::cue_lists::{Cue, Cues};
use crate::phrases::any;
use crate::rule_cues::{IMPERATIVES, REFERS};
use crate::said_value::Class;
use crate::stems::stems;
use crate::words::{Word, Words, words};

/// Maximum length of a sentence that can state a rule, in bytes.
pub(crate) const RULE_BYTES: usize = 600;
/// Maximum length of a sentence that can announce news, in bytes.
const UPDATE: usize = 160;

/// First words of an imperative about how something is shown.
const MANNERS: [&str; 7] = [
    "show", "display", "print", "report", "express", "tell", "convert",
];

/// Force of a sentence: whether it sets a rule for later steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Force {
    /// Small talk: thanks, greetings, encouragement. It has no content for later steps.
    SmallTalk,
    /// A sentence that sets no rule.
    #[default]
    None,
    /// A rule for later steps.
    Rule,
    /// A rule that sets a value, such as a quoted name.
    Value,
}

/// Returns whether a sentence is thanks, a greeting or encouragement.
pub(crate) fn is_small_talk(sentence: &str) -> bool {
    Cues::of(sentence).has(Cue::Kindly) && force(sentence) == Force::SmallTalk
}

/// Returns the force of a sentence: whether it sets a rule for later steps.
pub(crate) fn force(sentence: &str) -> Force {
    match sentence.len() {
        ..=RULE_BYTES => force_of(&mut words(sentence), sentence),
        _ => Force::None,
    }
}

fn stands(words: &Words<'_>, sentence: &str) -> bool {
    any(words, sentence, Cue::Standing) || always(words) || forbids(words) || makes_sure(words)
}

pub(crate) fn force_of(words: &mut Words<'_>, sentence: &str) -> Force {
    let polite = any(words, sentence, Cue::Kindly);
    if polite && !words.quoted {
        return Force::SmallTalk;
    }
    let asks = sentence.trim_end().ends_with(['?', '？']);
    let standing = stands(words, sentence);
    let wish = || {
        let imperative =
            (0..words.words.len()).any(|n| IMPERATIVES.contains(&words.at(n)) && words.begins(n));
        imperative
            || wants(words)
            || stresses(words)
            || any(words, sentence, Cue::Asks)
            || any(words, sentence, Cue::Changes)
    };
    let typed = |word: &Word<'_>| {
        let value = word.value.as_ref();
        value.is_some_and(|value| {
            matches!(
                value.class,
                Class::LetterCase | Class::Units | Class::TimeZone
            )
        })
    };
    let typed = words.words.iter().any(typed);
    let valued = words.quoted || typed || (standing && words.has_value());
    let told_how =
        || (0..words.words.len()).any(|n| MANNERS.contains(&words.at(n)) && words.begins(n));
    let wishes = valued && !standing && (wish() || (typed && told_how()));
    let told = sentence.len() <= UPDATE
        && (any(words, sentence, Cue::Updates) || is_new(words) || moves(words));
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

/// Returns whether the words ask others for something. `I want to …` does not, because the speaker announces an own
/// step.
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

/// Returns whether the words stress that others should do something: `I'd like to emphasize the use of`.
fn stresses(words: &Words<'_>) -> bool {
    let verbs = [
        "emphasize",
        "emphasise",
        "stress",
        "underline",
        "remind",
        "insist",
    ];
    (0..words.words.len())
        .any(|n| verbs.contains(&words.at(n)) && matches!(words.before(n, 1), "to" | "i" | "must"))
}

/// Returns whether the words say that something has changed: `now` with a verb, but not `now,` or `for now`.
pub(crate) fn is_new(words: &Words<'_>) -> bool {
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

/// Returns whether the words say that something was moved to another base: `rebased onto work/b`.
fn moves(words: &Words<'_>) -> bool {
    let begins = |n: usize| (0..n).any(|n| words.at(n).ends_with("ed"));
    (1..words.words.len()).any(|n| words.at(n) == "onto" && words.is_value(n + 1) && begins(n))
}

/// Returns whether a sentence begins with a label in capitals, such as `RULE: …`.
fn is_labelled(sentence: &str) -> bool {
    let label = sentence
        .split_once(": ")
        .map_or("", |(label, _)| label.trim_start_matches(['-', '*', ' ']));
    let words = label.split_whitespace().count();
    let capitals = label.chars().all(|c| c.is_uppercase() || c == ' ');
    (1..=3).contains(&words) && label.chars().count() > 3 && capitals
}

/// Returns whether the words say that something is always or never done. `Someone is always there` does not count.
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

/// Returns whether a verb reports a past event: `cheers`, `mentioned`.
fn is_told(verb: &str) -> bool {
    let third = verb.ends_with('s')
        && !["ss", "us", "as", "is"]
            .iter()
            .any(|end| verb.ends_with(end));
    third || verb.ends_with("ed")
}

/// Returns whether the words ask others to make sure of something. Speakers who want to do so themselves do not count.
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

/// Returns whether a clause forbids something.
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

/// Returns whether a sentence is only clear together with an earlier sentence: it has a pronoun such as `it` or `this`,
/// and fewer than four informative words.
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
            "I rebased it onto work/heron-2.",
            "今後はコメントを英語で書いてください。",
            "앞으로 커밋은 작게 나눠 주세요.",
            "从现在开始用中文回答。",
        ] {
            assert!(force(rule) >= Force::Rule, "{rule}");
        }
        for rule in [
            "Name the crates with the prefix 'crumb-'.",
            "I want to stress the importance of CamelCase for crates.",
            "Could you please call it `reader`?",
            "Always indent by 3 spaces.",
            "In the tables, show times in Eastern time.",
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
}
