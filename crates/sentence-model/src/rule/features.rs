//! Features of a sentence for the model of rules.

use std::collections::BTreeMap;

use super::clauses::{Clauses, NAME, NUMBER, Token};
use super::cues::{begins, lasting, meanings};
use crate::scripts::is_unspaced;

/// Value of a gram: a run of words or characters. It is less than the value of a form, so that fitted weights of grams are
/// smaller than the weights of forms.
const GRAM: f64 = 0.5;
/// Lengths of runs of characters, and of ends of the sentence, in scripts without spaces.
const RUNS: [usize; 2] = [2, 3];
const ENDS: [usize; 3] = [1, 2, 3];
/// Lengths of a sentence, in words, that are features. Two characters of a script without spaces are a word.
const FEW: usize = 6;
const MANY: [(usize, &str); 2] = [(20, "words>20"), (35, "words>35")];
/// Pronouns and articles that point to one thing.
const POINTING: [&str; 13] = [
    "it", "this", "that", "these", "those", "the", "das", "der", "die", "den", "dem", "dieser",
    "diese",
];

/// Returns the features of a sentence by their names: beginnings of clauses, meanings, lengths, and grams with names that
/// begin with `+`. A feature that is not named is 0.
pub fn rule_features(sentence: &str) -> BTreeMap<String, f64> {
    let parts = Clauses::of(sentence);
    let mut out = BTreeMap::from([("bias".to_owned(), 1.0)]);
    let mut set = |name: &str| {
        out.insert(name.to_owned(), 1.0);
    };
    let letters = parts.text.chars().filter(|c| c.is_alphanumeric()).count();
    let wide = parts.text.chars().filter(|c| is_unspaced(*c)).count();
    let is_wide = wide * 3 > letters;
    if is_wide {
        set("wide");
    }
    for (meaning, count) in meanings(&parts) {
        set(meaning);
        if count > 1 {
            set(&format!("{meaning}2"));
        }
        if is_wide {
            set(&format!("{meaning}~"));
        }
    }
    for (n, clause) in parts.clauses.iter().enumerate() {
        let Some(kind) = beginning(clause) else {
            continue;
        };
        set(&format!("begins-{kind}"));
        if n == 0 {
            set(&format!("first-{kind}"));
        }
    }
    let words: Vec<&str> = parts.words().collect();
    let length = words.len() + wide / 2;
    if length < FEW {
        set("words<6");
    }
    for (many, name) in MANY {
        if length > many {
            set(name);
        }
    }
    let pointing = words.iter().filter(|word| POINTING.contains(word)).count();
    let is_past = |word: &&str| word.len() > 4 && word.ends_with("ed");
    let is_plural = |word: &&str| {
        word.len() > 4 && word.ends_with('s') && !word.ends_with("ss") && !word.contains('\'')
    };
    let ends = parts.text.trim_end();
    for (name, is_so) in [
        ("question", ends.ends_with(['?', '？'])),
        ("listed", parts.is_listed),
        ("named", words.contains(&NAME)),
        ("number", words.contains(&NUMBER)),
        ("pointing", pointing > 0),
        ("pointing2", pointing > 1),
        ("past-form", words.iter().any(is_past)),
        ("plural", words.iter().any(is_plural)),
    ] {
        if is_so {
            set(name);
        }
    }
    grams(&parts, &mut out);
    out
}

/// Returns the kind of a clause by its first word behind fillers and phrases such as `from now on`.
fn beginning(clause: &[Token]) -> Option<&'static str> {
    let words = clause.iter().map(|token| match token {
        Token::Word(word) => word.as_str(),
        Token::Run(_) => "",
    });
    let lasting = lasting(words.clone());
    let mut words = words.skip(lasting);
    let Some(first) = words.find(|word| !begins("filler", word)) else {
        return (lasting > 0).then_some("lasting");
    };
    let next = words.next();
    let is = |list| begins(list, first);
    let acts = next.is_none_or(|next| begins("verb", next));
    Some(match () {
        () if first.is_empty() => "run",
        () if is("ever") && acts => "ever",
        () if is("ever") => "ever-not",
        () if is("dont") || (first == "do" && next == Some("not")) => "dont",
        () if is("verb") => "verb",
        () if is("bare") => "bare",
        () if is("own") => "own",
        () if is("us") => "us",
        () if is("addressed") => "addressed",
        () if is("other") => "other",
        () if is("when") => "when",
        () if is("question") => "question",
        () if first.ends_with("ing") => "ing",
        () if first == NAME => "name",
        () => "word",
    })
}

fn grams(parts: &Clauses, out: &mut BTreeMap<String, f64>) {
    let mut add = |gram: String| {
        out.insert(format!("+{gram}"), GRAM);
    };
    for clause in &parts.clauses {
        let mut before = "^";
        for token in clause {
            match token {
                Token::Word(word) => {
                    add(word.clone());
                    add(format!("{before} {word}"));
                    before = word;
                }
                Token::Run(run) => {
                    let chars: Vec<char> = run.chars().collect();
                    for length in RUNS {
                        chars
                            .windows(length)
                            .for_each(|run| add(run.iter().collect()));
                    }
                    before = "^";
                }
            }
        }
    }
    if let Some(Token::Run(run)) = parts.clauses.last().and_then(|clause| clause.last()) {
        let chars: Vec<char> = run.chars().collect();
        for length in ENDS {
            if let Some(start) = chars.len().checked_sub(length) {
                let end: String = chars.iter().skip(start).collect();
                add(format!("{end}$"));
            }
        }
    }
}
