//! The ranking with a table of vectors of words beside it.

use std::path::Path;

use memory_search::embedding::{StaticTable, Vector, cosines};
use memory_search::ranking::{Corpus, FusionPolicy, RankingPolicy};

use super::cases::Case;
use super::held_out;
use super::measure::{ByCategory, corpus_of, document_of, merged, pooled, with_answers};
use super::tune::aim_of;

/// The file that holds the figures: a table is no part of the repository.
pub(super) const PATH: &str = "xtask/src/recall/static_table.tsv";

/// The values that are tried: all of them with each other.
const MESSAGE_SHARES: [f64; 7] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8];
const EPISODE_SHARES: [f64; 4] = [0.0, 0.1, 0.2, 0.3];

/// A conversation's scores by words and cosines, for each question.
struct Prepared<'c> {
    case: &'c Case,
    corpus: Corpus,
    asked: Vec<(Scores, Scores)>,
}

type Scores = Vec<Option<f64>>;

/// Measures the ranking with a table, and with weights that were tuned on other conversations. Returns
/// the lines of the file.
///
/// # Errors
/// When the table cannot be read.
pub(super) fn measured(table: &Path, locomo: &[Case], beam: &[Case]) -> anyhow::Result<String> {
    let table = StaticTable::open(table)?;
    let prepare = |cases| -> Vec<Prepared<'_>> {
        let cases: std::slice::Iter<'_, Case> = cases;
        cases.map(|case| prepared(case, &table)).collect()
    };
    let (locomo, beam) = (prepare(locomo.iter()), prepare(beam.iter()));
    let default = FusionPolicy::default();
    let mut out = held_out::lines(&[
        ("locomo", &figures(&locomo, &default, None)),
        ("beam", &figures(&beam, &default, None)),
    ]);
    let (mut tuned_locomo, mut tuned_beam) = (Vec::new(), Vec::new());
    for fold in 0..locomo.len().max(beam.len()) {
        let policy = tuned(&locomo, &beam, Some(fold));
        tuned_locomo.extend(locomo.get(fold).map(|one| of_case(one, &policy)));
        tuned_beam.extend(beam.get(fold).map(|one| of_case(one, &policy)));
    }
    out.push_str(&held_out::lines(&[
        ("locomo-tuned", &merged(tuned_locomo)),
        ("beam-tuned", &merged(tuned_beam)),
    ]));
    let best = tuned(&locomo, &beam, None);
    println!("the best weights on all conversations: {best:?}");
    Ok(out)
}

fn prepared<'c>(case: &'c Case, table: &StaticTable) -> Prepared<'c> {
    let corpus = corpus_of(case, &RankingPolicy::default());
    let vector = |turn| Vector::from_slice(&table.vector_of(&document_of(turn).text_to_embed()));
    let vectors: Vec<Option<Vector>> = case.turns.iter().map(vector).collect();
    let remove_mean = FusionPolicy::default().remove_mean;
    let asked = case.questions.iter().map(|question| {
        let asked = table.vector_of(&corpus.question_to_embed(&question.text));
        let cosines = cosines(&asked, &vectors, remove_mean);
        (corpus.scores(&question.text), cosines)
    });
    Prepared {
        asked: asked.collect(),
        case,
        corpus,
    }
}

fn of_case(prepared: &Prepared<'_>, policy: &FusionPolicy) -> ByCategory {
    let answer = |(scores, cosines): &(Vec<Option<f64>>, Vec<Option<f64>>)| {
        let mut scores = scores.clone();
        prepared.corpus.fuse(&mut scores, cosines, policy);
        let mut found: Vec<(usize, f64)> = scores
            .into_iter()
            .enumerate()
            .filter_map(|(at, score)| Some((at, score?)))
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.into_iter().map(|(at, _)| at).collect()
    };
    with_answers(prepared.case, prepared.asked.iter().map(answer))
}

fn figures(cases: &[Prepared<'_>], policy: &FusionPolicy, left_out: Option<usize>) -> ByCategory {
    let cases = cases.iter().enumerate();
    let cases = cases.filter(|(at, _)| Some(*at) != left_out);
    merged(cases.map(|(_, case)| of_case(case, policy)))
}

/// The weights that do best on all conversations but those at `left_out`; of equal ones the smaller.
fn tuned(locomo: &[Prepared<'_>], beam: &[Prepared<'_>], left_out: Option<usize>) -> FusionPolicy {
    let (mut best, mut most) = (FusionPolicy::off(), f64::NEG_INFINITY);
    for message_share in MESSAGE_SHARES {
        for episode_share in EPISODE_SHARES {
            let mut policy = FusionPolicy::default();
            policy.message_share = message_share;
            policy.episode_share = episode_share;
            let locomo = pooled(&figures(locomo, &policy, left_out));
            let aim = aim_of(&locomo, &pooled(&figures(beam, &policy, left_out)));
            if aim > most {
                (best, most) = (policy, aim);
            }
        }
    }
    best
}
