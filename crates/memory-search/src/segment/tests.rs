//! Tests of lists of places in both encodings, and of merged segments.

use memory_model::{LogEntry, Message, RawJson, Seq};

use super::postings::{Entry, PostingList, groups, retain_groups};
use super::{SegmentBuilder, merge, records};
use crate::calls::CallNames;
use crate::calls::tests::entry;

/// Returns places below `all`, each with a probability of `share` / 256.
fn places(rng: &mut fastrand::Rng, all: u32, share: u8) -> Vec<u32> {
    (0..all).filter(|_| rng.u8(..) < share).collect()
}

fn list(places: &[u32]) -> PostingList {
    let mut list = PostingList::default();
    places.iter().for_each(|place| list.push_place(*place));
    list
}

/// Calls `look` with a list in its stored form.
fn stored<T>(list: &PostingList, look: impl FnOnce(&Entry<'_>) -> T) -> T {
    let bytes = list.bare();
    look(&Entry {
        count: list.count,
        last: list.last,
        bytes: &bytes,
    })
}

#[test]
fn places_come_back_from_both_forms_and_through_a_merge() {
    let rng = &mut fastrand::Rng::with_seed(3);
    let (mut bitmaps, mut gaps) = (0, 0);
    for _ in 0..400 {
        let all = [16, 64, 1_600][rng.usize(..3)];
        let shares = [0, 1, 20, 40, 130, 255];
        let parts: Vec<Vec<u32>> = (0..1 + rng.usize(..4))
            .map(|_| {
                let share = shares[rng.usize(..6)];
                places(rng, all, share)
            })
            .collect();
        let (mut merged, mut expected) = (PostingList::default(), Vec::new());
        for (part, offset) in parts.iter().zip((0..).step_by(all as usize)) {
            stored(&list(part), |entry| merged.append(entry, offset)).unwrap();
            expected.extend(part.iter().map(|place| place + offset));
        }
        assert_eq!(merged.bare(), list(&expected).bare());
        let asked = places(rng, 4 * all, 100);
        stored(&merged, |entry| {
            assert_eq!(groups(entry).unwrap(), expected);
            let mut kept = asked.clone();
            retain_groups(entry, &mut kept).unwrap();
            let both = asked.iter().filter(|place| expected.contains(place));
            assert_eq!(kept, both.copied().collect::<Vec<u32>>());
            match entry.bytes.len() < expected.len() {
                true => bitmaps += 1,
                false => gaps += 1,
            }
        });
    }
    assert!(bitmaps > 50 && gaps > 50, "{bitmaps} {gaps}");
}

#[test]
fn a_bitmap_with_more_places_than_bits_is_damaged() {
    let entry = Entry {
        count: u32::MAX,
        last: 15,
        bytes: &[255, 255],
    };
    assert!(groups(&entry).is_err());
    assert!(retain_groups(&entry, &mut vec![1]).is_err());
    assert!(PostingList::default().append(&entry, 0).is_err());
}

/// Letters of several scripts, some followed by combining marks.
const SCRIPTS: [&str; 6] = [
    "aabcdeeinorstAEIſİéß'",
    "абвгдеийРСТ",
    "数据库搜索的是",
    "かがきばカガッー",
    "กขคะาิเ",
    "aBé9жΣבשकก数あ한🎉_'",
];

#[test]
fn merged_segments_are_those_that_are_built_at_once() {
    let rng = &mut fastrand::Rng::with_seed(5);
    for letters in SCRIPTS {
        let letters: Vec<char> = letters.chars().collect();
        let mut text = || -> String {
            let chars = 0..rng.usize(1..60);
            let char = |_| match rng.u8(..5) {
                0 => ' ',
                _ => letters[rng.usize(..letters.len())],
            };
            chars.map(char).collect()
        };
        let message = |at: usize| match at % 7 {
            3 => Message::tool_call(
                format!("{}", at / 21),
                ["read_file", "memory_grep"][at % 2],
                RawJson::parse("{}").unwrap(),
            ),
            5 => Message::tool_result(format!("{}", at / 21), text()),
            _ => Message::user(text()),
        };
        let entries: Vec<LogEntry> = (1..)
            .zip((0..200).map(message))
            .map(|(seq, message)| entry(seq, message))
            .collect();
        let mut calls = CallNames::new();
        entries.iter().for_each(|entry| calls.add(entry));
        let build = |entries: &[LogEntry]| {
            let mut builder = SegmentBuilder::new();
            entries
                .iter()
                .for_each(|entry| builder.add_message(entry, &calls));
            builder.finish()
        };
        let (a, rest) = entries.split_at(64);
        let (b, c) = rest.split_at(16);
        let merged = merge(&[build(a), build(b), build(c)]).unwrap();
        assert_eq!(merged, build(&entries));
        let first = records(&merged.chunks[0].data).unwrap();
        assert_eq!((first.len(), first[0].seq), (200, Seq(1)));
        for chunk in &merged.chunks[1..] {
            assert!(chunk.data.len() < 16_000, "{}", chunk.data.len());
        }
    }
}
