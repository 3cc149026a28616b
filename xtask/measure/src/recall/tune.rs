//! Chooses a policy by the conversations at hand, and says how well that holds on others.

use anyhow::Context as _;
use memory_search::ranking::RankingPolicy;
use serde_json::Value;

use super::cases::Case;
use super::measure::{ByCategory, Figures, merged, pooled, ranked};

/// The values that are tried for each weight.
const GRID: [(&str, &[f64]); 24] = [
    ("k1", &[0.6, 0.9, 1.2]),
    ("b", &[0.2, 0.3, 0.4, 0.5]),
    ("rarity_power", &[0.8, 1.0, 1.2]),
    ("asking_word_weight", &[0.4, 0.6, 0.8, 1.0]),
    ("derived_word_weight", &[0.0, 0.2, 0.3, 0.5, 0.7]),
    ("phrase_share", &[0.0, 0.2, 0.4, 0.6]),
    ("coverage_share", &[0.0, 0.3, 0.5, 0.8]),
    ("question_discount", &[0.0, 0.2, 0.4, 0.6]),
    ("previous_share", &[0.3, 0.5, 0.65, 0.8]),
    ("answer_bonus", &[0.0, 0.3, 0.5, 0.8]),
    ("second_previous_share", &[0.0, 0.1, 0.2]),
    ("next_share", &[0.1, 0.25, 0.35, 0.5]),
    ("self_contained_words", &[50.0, 100.0, 200.0]),
    ("episode_share", &[0.3, 0.5, 0.8, 1.1]),
    ("participant_factor", &[1.5, 2.0, 2.5, 3.0]),
    ("first_participant_factor", &[1.0, 1.3, 1.6]),
    ("asker_factor", &[1.0, 1.5, 2.0]),
    ("first_person_share", &[0.0, 0.1, 0.2]),
    ("time_word_share", &[0.0, 0.1, 0.2, 0.3]),
    ("day_share", &[0.4, 0.7, 1.0]),
    ("month_share", &[0.4, 0.7, 1.0]),
    ("expansion_weight", &[0.0, 0.1, 0.15, 0.2]),
    ("expansion_words", &[10.0, 20.0, 30.0]),
    ("expansion_messages", &[5.0, 10.0, 15.0]),
];

/// Smallest gain for which a value is changed; less is noise.
const GAIN: f64 = 0.002;

/// The conversations of both corpora.
#[derive(Clone, Copy)]
pub(crate) struct Corpora<'a> {
    pub(crate) locomo: &'a [Case],
    pub(crate) beam: &'a [Case],
}

/// What is maximised: recall at 10, recall at 1, MRR and half of the hits by session in LoCoMo; half of
/// recall at 10 and MRR in BEAM.
pub(super) fn aim_of(locomo: &Figures, beam: &Figures) -> f64 {
    let sum = |figures: &Figures| figures.recall(1) + figures.mrr();
    sum(locomo) + locomo.recall(0) + locomo.session_hits(0) / 2.0 + sum(beam) / 2.0
}

impl Corpora<'_> {
    /// What is maximised: see [`aim_of`]. The conversations at `left_out` do not count.
    fn aim(self, policy: &RankingPolicy, left_out: Option<usize>) -> f64 {
        let others = |cases: &[Case]| {
            let cases = cases.iter().enumerate();
            let cases = cases.filter(|(at, _)| Some(*at) != left_out);
            pooled(&merged(cases.map(|(_, case)| ranked(case, policy))))
        };
        let (locomo, beam) = (others(self.locomo), others(self.beam));
        aim_of(&locomo, &beam)
    }

    /// Returns the best policy that is found from `start` on, one weight after the other.
    pub(crate) fn tuned(
        self,
        start: &RankingPolicy,
        left_out: Option<usize>,
    ) -> anyhow::Result<RankingPolicy> {
        let (mut best, mut aim) = (start.clone(), self.aim(start, left_out));
        for (name, values) in GRID {
            for value in values {
                let changed = with(&best, name, *value)?;
                let changed_aim = self.aim(&changed, left_out);
                if changed_aim > aim + GAIN {
                    (best, aim) = (changed, changed_aim);
                }
            }
        }
        Ok(best)
    }

    /// Tunes a policy on all conversations but one of LoCoMo and one of BEAM, and measures those; with
    /// each left out in turn. Returns the figures of LoCoMo and of BEAM.
    pub(crate) fn cross_validated(
        self,
        start: &RankingPolicy,
    ) -> anyhow::Result<(ByCategory, ByCategory)> {
        let folds = self.locomo.len().max(self.beam.len());
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..folds)
                .map(|fold| scope.spawn(move || self.tuned(start, Some(fold))))
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.collect()
        });
        let (mut locomo, mut beam) = (Vec::new(), Vec::new());
        for (fold, outcome) in outcomes.into_iter().enumerate() {
            let policy = outcome.ok().context("a thread that tunes panicked")??;
            locomo.extend(self.locomo.get(fold).map(|case| ranked(case, &policy)));
            beam.extend(self.beam.get(fold).map(|case| ranked(case, &policy)));
        }
        Ok((merged(locomo), merged(beam)))
    }
}

/// A policy with another weight.
fn with(policy: &RankingPolicy, name: &str, value: f64) -> anyhow::Result<RankingPolicy> {
    let mut fields = serde_json::to_value(policy)?;
    fields[name] = match fields[name] {
        Value::Number(ref number) if number.is_u64() => Value::from(value as u64),
        _ => Value::from(value),
    };
    serde_json::from_value(fields).with_context(|| format!("the policy has no weight {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_of_the_grid_is_one_of_the_policy() {
        let policy = RankingPolicy::default();
        for (name, values) in GRID {
            for value in values {
                assert!(with(&policy, name, *value).is_ok(), "{name}");
            }
        }
        assert!(with(&policy, "no_such_weight", 1.0).is_err());
    }
}
