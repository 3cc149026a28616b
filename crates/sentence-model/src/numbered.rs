//! Sentences about things that a number names, such as `tier 2`, `room 5`, the year 2024 or `#17`.
//!
//! A number in a sentence is a name or a value. It is a name if it belongs to the subject: `tier 2` in `limit tier 2 to
//! 300 requests`, where `300 requests` is the value. Two sentences with different names are about different things, and
//! neither changes the other. A later sentence changes an earlier one if a comparable value differs and there is enough
//! evidence that both tell of one property of one thing: the same name, the same words, a phrase of change, or the old
//! value taken back. Where this cannot be decided, there is no change.
//!
//! The words by which numbers are understood are data, in English, German and Chinese: `words.txt`. Sentences in Japanese
//! and Korean are judged by fitted weights over their form and words: `weights.txt`.

mod clauses;
mod counted;
mod fitted;
mod grams;
mod item;
mod items;
mod lexicon;
mod point;
mod quantities;
mod read;
mod reader;
mod relation;
mod scripts;
mod sentence;
mod spelling;
mod token;
mod weights;

pub use point::is_point_of_number;
pub use relation::NumberedRelation;
pub use sentence::NumberedSentence;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of a sentence, and its values with their dimensions.
    fn read(sentence: &str) -> (Vec<String>, Vec<String>) {
        let clauses = NumberedSentence::read(sentence).clauses;
        let names = clauses.iter().flat_map(|clause| &clause.names);
        let names = names.filter(|name| !name.is_place);
        let names = names.map(|name| format!("{} {}", name.key, name.number));
        let values = clauses.iter().flat_map(|clause| &clause.values);
        let values = values.map(|value| format!("{} {}", value.dimension, value.amount));
        (
            names.collect(),
            values.map(|value| value.trim().to_owned()).collect(),
        )
    }

    #[test]
    fn numbers_of_the_subject_are_names_and_others_are_values() {
        for (sentence, names, values) in [
            (
                "From now on, limit tier 2 to 300 requests.",
                "tier 2",
                "count reque 300",
            ),
            (
                "Always set the timeout of worker-3 to 2 minutes.",
                "worke 3",
                "time 120",
            ),
            ("The port of service 42 is 8042.", "servi 42", "8042"),
            ("The service listens on port 8042.", "", "of port 8042"),
            ("The budget for 2024 is $1,200.", "year 2024", "money 1200"),
            ("PR #17 changes 12 files.", "pr 17", "count fil 12"),
            (
                "The second draft is due at 9:30 pm.",
                "draft 2",
                "clock 21:30",
            ),
            ("Am 3. Mai kommen 12 Gäste.", "", "count peopl 12"),
            ("Der Zug 512 fährt um 9 Uhr 30.", "zug 512", "clock 09:30"),
            ("2024年的预算是80万元。", "year 2024", "money 800000"),
            ("第三次会议在5月8日。", "次 3", "date 05-08"),
            ("会议在5号会议室。", "", "of 会议室 5"),
        ] {
            let (own, amounts) = read(sentence);
            assert_eq!(
                (own.join(", "), amounts.join(", ")),
                (names.to_owned(), values.to_owned()),
                "{sentence}"
            );
        }
    }

    #[test]
    fn a_new_value_of_the_same_thing_is_a_change() {
        let earlier = NumberedSentence::read("Tier 2 is limited to 300 requests.");
        let relation = |later: &str| NumberedSentence::read(later).relation_to(&earlier);
        let later = "Tier 2 is limited to 400 requests.";
        let NumberedRelation::Changed {
            value: Some(value),
            in_part: false,
        } = relation(later)
        else {
            panic!("{:?}", relation(later));
        };
        assert!(later[value].starts_with("400"));
        for same in [
            "Tier 12 is limited to 400 requests.",
            "Tier 2 stays at 300 requests.",
            "Is tier 2 limited to 400 requests?",
            "Tier 2 has 40 customers.",
            "The limit is 400 requests.",
        ] {
            assert_eq!(relation(same), NumberedRelation::Unchanged, "{same}");
        }
        assert!(matches!(
            relation("Make that 400."),
            NumberedRelation::ChangedIfNext { .. }
        ));
        assert_eq!(
            relation("The tests are green."),
            NumberedRelation::Undecided
        );
        let both = NumberedSentence::read("Tier 1 gets 100 calls, tier 2 gets 200 calls.");
        let one = NumberedSentence::read("Tier 2 gets 250 calls.").relation_to(&both);
        assert!(
            matches!(one, NumberedRelation::Changed { in_part: true, .. }),
            "{one:?}"
        );
    }

    #[test]
    fn evidence_adds_up_and_another_property_is_no_change() {
        let relation = |earlier: &str, later: &str| {
            NumberedSentence::read(later).relation_to(&NumberedSentence::read(earlier))
        };
        let changed = |earlier: &str, later: &str| {
            matches!(relation(earlier, later), NumberedRelation::Changed { .. })
        };
        let earlier = "The read timeout of proxy 3 is 30 seconds.";
        // The same thing and two words; the same thing and a phrase of change; a value that is taken back.
        assert!(changed(
            earlier,
            "The read timeout of proxy 3 is 45 seconds."
        ));
        assert!(changed(
            earlier,
            "We raised proxy 3 to a read timeout of 45 seconds."
        ));
        assert!(changed(
            "Read requests wait 30 seconds.",
            "Read requests wait 45, not 30 seconds."
        ));
        for other in [
            "The connect timeout of proxy 3 is 5 seconds.",
            "Proxy 3 pauses for 5 seconds.",
            "The read timeout of proxy 3 is half a minute, so 30 seconds.",
            "Two years ago the read timeout of proxy 3 was 90 seconds.",
            "Proxy 3 is 4 years old now.",
        ] {
            assert!(!changed(earlier, other), "{other}");
        }
        // Without a thing and with one word, it depends on whether it follows directly.
        let next = relation(
            "Bake the bread for 40 minutes.",
            "Better leave the bread in for 55 minutes.",
        );
        assert!(
            matches!(next, NumberedRelation::ChangedIfNext { .. }),
            "{next:?}"
        );
    }

    /// Returns whether the second of two sentences in Japanese or Korean, next to each other, changes the first.
    fn changed_next(earlier: &str, later: &str) -> bool {
        let later_numbers = NumberedSentence::read(later);
        match later_numbers.relation_to(&NumberedSentence::read(earlier)) {
            NumberedRelation::Changed { value, .. } => {
                value.is_none_or(|value| !later[value].is_empty())
            }
            NumberedRelation::ChangedIfNext { value } => !later[value].is_empty(),
            _ => false,
        }
    }

    #[test]
    fn in_japanese_and_korean_a_new_value_of_the_same_thing_is_a_change() {
        for (earlier, later) in [
            (
                "会議は１５時からです。",
                "会議は１６時からに変更になりました。",
            ),
            (
                "定員は12名です。",
                "席を足したので、定員は16名になりました。",
            ),
            (
                "서버 포트는 8080입니다.",
                "서버 포트를 9090으로 바꿨습니다.",
            ),
            (
                "회의실은 3층입니다.",
                "공사 때문에 회의실을 5층으로 옮겼습니다.",
            ),
        ] {
            assert!(changed_next(earlier, later), "{earlier} / {later}");
        }
    }

    #[test]
    fn in_japanese_and_korean_another_thing_is_no_change() {
        for (earlier, later) in [
            (
                "サービス42のポートは8042です。",
                "サービス100のポートは8100です。",
            ),
            (
                "2024年度の予算は80万円です。",
                "2025年度の予算は90万円です。",
            ),
            ("会議は15時からです。", "会議は16時からですか?"),
            (
                "定員は12名です。",
                "もし定員が16名なら、もう一部屋要りますね。",
            ),
            (
                "3번 워커의 제한 시간은 30초입니다.",
                "7번 워커의 제한 시간은 60초입니다.",
            ),
            ("예산은 300만 원입니다.", "작년 예산은 250만 원이었습니다."),
            // The other languages are read in another way.
            ("The limit is 30.", "今後、上限は40に変更します。"),
        ] {
            assert!(!changed_next(earlier, later), "{earlier} / {later}");
        }
    }

    #[test]
    fn in_japanese_and_korean_the_same_value_written_otherwise_is_none() {
        for (earlier, later) in [
            ("予算は1200円です。", "予算は1,200円です。"),
            ("部品の重さは2.0kgです。", "部品の重さは2kgです。"),
            ("예산은 1200원입니다.", "예산은 1,200원입니다."),
        ] {
            assert!(!changed_next(earlier, later), "{earlier} / {later}");
        }
        // Without a new number, other words decide.
        let [earlier, later] =
            ["面談は10時からです。", "10時の面談は中止です。"].map(NumberedSentence::read);
        assert_eq!(later.relation_to(&earlier), NumberedRelation::Undecided);
    }

    #[test]
    fn features_are_bounded_for_any_text() {
        let long = "会議は3時、".repeat(500);
        for text in ["の3", "가 1 2 3", "ガ１２", "第3の", long.as_str()] {
            let features = NumberedSentence::features(text, text);
            let features = features.unwrap_or(vec![(String::new(), f64::NAN)]);
            assert!(
                features.iter().all(|(_, one)| (0.0..=2.0).contains(one)),
                "{text}: {features:?}"
            );
            let names: std::collections::BTreeSet<&String> =
                features.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), features.len(), "{features:?}");
        }
    }

    #[test]
    fn a_full_stop_after_an_ordinal_does_not_end_a_sentence() {
        for (text, expected) in [
            ("am 3. Mai", true),
            ("Im 1. Quartal", true),
            ("Zimmer Nr. 5", true),
            ("It is 12. Then we go.", false),
            ("Seite 3. Danach", false),
        ] {
            let at = text.find('.').unwrap_or(0);
            assert_eq!(is_point_of_number(text, at), expected, "{text}");
        }
    }
}
