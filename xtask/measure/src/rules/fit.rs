//! `cargo xtask fit-rules --data DIR [--check | --dry-run] [--each]`: fits the weights by which sentences of users are told to
//! be rules. `--each` also fits them without an eighth of the messages at a time, and prints how well these are judged.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Context as _;
use sentence_model::{RULE_PROBABILITY, rule_features};

use super::sentences::{self, Corpus, SET_APART};
use crate::flags::Flags;
use crate::logistic::{self, Example, Shape};

const WEIGHTS: &str = "crates/sentence-model/src/rule/weights.txt";
pub(super) const COMMAND: &str = "cargo xtask fit-rules";
/// Messages that authors invented, with a judgement of each sentence.
const INVENTED: &str = include_str!("invented.tsv");
/// Texts of users in the corpus, with the places of the rules in each.
const TYPED: &str = include_str!("typed.tsv");
/// How often a sentence of the corpus counts. They are many, and hardly one is a rule.
const OF_CORPUS: f64 = 0.6;
/// The best values, of a few, on messages that were left out.
const SHAPE: Shape = Shape {
    grams: 4_000,
    fewest: 3.0,
    products: 60,
    often: (0.03, 0.01),
    penalty: (0.33, 4.0),
    passes: 30,
};
const FOLDS: usize = 8;

pub(super) fn run(flags: &Flags) -> anyhow::Result<()> {
    let mut corpus = Corpus::new(&flags.data);
    let measured = sentences::sentences(&flags.data)?;
    let measured: BTreeSet<&str> = measured.iter().map(|one| one.text.as_str()).collect();
    let mut examples: Vec<Example<'_>> = invented()?
        .into_iter()
        .map(|(message, is_rule, sentence)| example(message, 1.0, is_rule, sentence))
        .collect();
    for line in TYPED.lines().filter(|line| !line.starts_with('#')) {
        examples.extend(typed(line, &mut corpus, &measured)?);
    }
    let examples: Vec<&Example<'_>> = examples.iter().collect();
    let messages: BTreeSet<&str> = examples.iter().map(|one| one.group).collect();
    println!(
        "{} sentences of {} messages",
        examples.len(),
        messages.len()
    );
    if flags.each {
        let judged = logistic::cross(&examples, FOLDS, &SHAPE);
        for (what, is_of_corpus) in [("invented", false), ("of the corpus", true)] {
            // The group of a sentence of the corpus is its file.
            let own = judged
                .iter()
                .filter(|(one, _)| one.group.contains('/') == is_of_corpus);
            let told = own.clone().filter(|(_, p)| *p >= RULE_PROBABILITY);
            println!(
                "{what}: {} sentences, {} rules; told {}, of them rules {}",
                own.clone().count(),
                own.filter(|(one, _)| one.is_so).count(),
                told.clone().count(),
                told.filter(|(one, _)| one.is_so).count()
            );
        }
    }
    let mut text = String::from(
        "# Weights of a logistic model, fitted by `cargo xtask fit-rules` to the sentences in xtask/measure/src/rules/invented.tsv and to\n\
         # those in the places of typed.tsv there: a feature, a product of two features, or a gram, with its weight.\n",
    );
    for (name, weight) in logistic::fit(&examples, &SHAPE) {
        let _ = writeln!(text, "{name}\t{weight:.2}");
    }
    flags.mode.apply(WEIGHTS, &text, COMMAND)
}

fn example<'t>(group: &'t str, count: f64, is_rule: bool, sentence: &str) -> Example<'t> {
    Example {
        group,
        count,
        is_so: is_rule,
        chooses: true,
        features: rule_features(sentence),
    }
}

/// Returns the invented sentences, each with the name of its message and whether it is a rule.
fn invented() -> anyhow::Result<Vec<(&'static str, bool, &'static str)>> {
    let lines = INVENTED.lines().filter(|line| !line.starts_with('#'));
    let sentence = |line: &'static str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [message, label, sentence] = columns[..] else {
            anyhow::bail!("not three columns: {line}");
        };
        Ok((message, label == "rule", sentence))
    };
    lines.map(sentence).collect()
}

/// Returns the sentences of a text of the corpus that are not among those that are measured.
fn typed(
    line: &'static str,
    corpus: &mut Corpus<'_>,
    measured: &BTreeSet<&str>,
) -> anyhow::Result<Vec<Example<'static>>> {
    let columns: Vec<&'static str> = line.split('\t').collect();
    let [source, at, pointer, rules, unclear] = columns[..] else {
        anyhow::bail!("not five columns: {line}");
    };
    anyhow::ensure!(!SET_APART.contains(&source), "{source} is set apart");
    let text = corpus.text(source, at, pointer)?;
    let ranges = |list: &str| -> anyhow::Result<Vec<(usize, usize)>> {
        let ranges = list.split(',').filter(|range| *range != "-");
        let range = |range: &str| {
            let (first, end) = range.split_once(':').context("a range is FIRST:END")?;
            Ok((first.parse()?, end.parse()?))
        };
        ranges.map(range).collect()
    };
    let (rules, unclear) = (ranges(rules)?, ranges(unclear)?);
    let is_measured = |sentence: &str| measured.iter().any(|one| sentence.contains(one));
    let mut out = Vec::new();
    let mut from = 0;
    for sentence in text.lines().flat_map(sentence_model::sentences) {
        let begin = text.get(from..).and_then(|rest| rest.find(sentence));
        let begin = from + begin.context("a sentence is in its text")?;
        from = begin + sentence.len();
        let first = text.get(..begin).unwrap_or_default().chars().count();
        let end = first + sentence.chars().count();
        let is_in = |ranges: &[(usize, usize)]| ranges.iter().any(|(a, b)| *a < end && first < *b);
        if sentence.chars().count() > 3 && !is_in(&unclear) && !is_measured(sentence) {
            out.push(example(source, OF_CORPUS, is_in(&rules), sentence));
        }
    }
    Ok(out)
}
