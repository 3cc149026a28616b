//! The parts of the ranking, each of which can be left out.

use memory_search::ranking::RankingPolicy;

/// A part's name, and what leaves it out.
type Part = (&'static str, fn(&mut RankingPolicy));

pub(super) const PARTS: [Part; 18] = [
    ("stop words left out", |p| p.omit_stop_words = false),
    ("names left out", |p| p.omit_names = false),
    ("stems", |p| p.language = None),
    ("usual forms", |p| p.usual_forms = false),
    ("derived words", |p| p.derived_word_weight = 0.0),
    ("asking words weighted down", |p| p.asking_word_weight = 1.0),
    ("phrases", |p| p.phrase_share = 0.0),
    ("coverage", |p| p.coverage_share = 0.0),
    ("neighbours", |p| {
        p.previous_share = 0.0;
        p.second_previous_share = 0.0;
        p.next_share = 0.0;
    }),
    ("answers behind questions", |p| p.answer_bonus = 0.0),
    ("questions weighted down", |p| p.question_discount = 0.0),
    ("long messages stand alone", |p| {
        p.self_contained_words = u32::MAX;
    }),
    ("episodes", |p| p.episode_share = 0.0),
    ("participants", |p| {
        p.participant_factor = 1.0;
        p.first_participant_factor = 1.0;
        p.asker_factor = 1.0;
    }),
    ("first person", |p| p.first_person_share = 0.0),
    ("dates and time words", |p| {
        p.day_share = 0.0;
        p.month_share = 0.0;
        p.time_word_share = 0.0;
    }),
    ("recency", |p| p.recency_share = 0.0),
    ("expansion", |p| p.expansion_weight = 0.0),
];

/// The default policy without a part.
pub(super) fn without(part: Part) -> RankingPolicy {
    let mut policy = RankingPolicy::default();
    part.1(&mut policy);
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_in_the_default() {
        for part in PARTS {
            assert_ne!(without(part), RankingPolicy::default(), "{}", part.0);
        }
    }
}
