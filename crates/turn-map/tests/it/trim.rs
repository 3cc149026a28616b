//! Trimming and clearing.

use proptest::prelude::*;
use token_estimate::{HeuristicEstimator, TokenEstimator};
use turn_map::{ClearPolicy, Edit, TrimPolicy, apply, clip_counted, is_left_out, left_out};

use crate::parts::{Msg, Part, messages, script};

const FIFTY_LINES: TrimPolicy = TrimPolicy::ToolOutputLines { lines: 50 };
const ENDS: TrimPolicy = TrimPolicy::ToolOutputChars {
    untouched: 200,
    left_out: 2_000,
    shown: 200,
};

fn clip_lines(text: &str, lines: usize, pointer: &str) -> Option<String> {
    TrimPolicy::ToolOutputLines { lines }.trim_result(text, pointer, &ESTIMATOR)
}

fn clip_tokens(text: &str, tokens: u64, pointer: &str) -> Option<String> {
    clip_counted(text, ESTIMATOR.text(text), tokens, pointer, &ESTIMATOR)
}

const NONE: [usize; 0] = [];

/// Estimator that counts a token for four bytes.
const ESTIMATOR: HeuristicEstimator = HeuristicEstimator::Bytes4;

fn numbered(lines: usize) -> String {
    (1..=lines).map(|n| format!("line number {n}\n")).collect()
}

#[test]
fn lines_are_shown_from_both_ends() {
    let text = numbered(100);
    let clipped = clip_lines(&text, 5, "message:7").unwrap();
    assert_eq!(
        clipped,
        "line number 1\nline number 2\n[… 95 lines left out; expand message:7 …]\n\
         line number 98\nline number 99\nline number 100\n"
    );
    assert_eq!(clip_lines(&text, 100, ""), None);
    assert_eq!(clip_lines(&text, 200, ""), None);
    assert_eq!(clip_lines(&clipped, 5, ""), None);
    assert_eq!(
        clip_lines(&text, 1, "").unwrap(),
        "[… 99 lines left out …]\nline number 100\n"
    );
    assert_eq!(
        clip_lines(&text, 0, "").unwrap(),
        "[… 100 lines left out …]\n"
    );
    // Without a line end at the end, and with lines too short to save tokens.
    assert_eq!(
        clip_lines(text.trim_end(), 2, "").unwrap(),
        "line number 1\n[… 98 lines left out …]\nline number 100"
    );
    assert_eq!(clip_lines("a\nb\nc\nd\n", 2, ""), None);
    assert_eq!(clip_lines("", 0, ""), None);
}

#[test]
fn tokens_are_shown_from_both_ends() {
    let text = numbered(1_000);
    let clipped = clip_tokens(&text, 50, "message:7").unwrap();
    assert!(ESTIMATOR.text(&clipped) <= 50);
    assert!(ESTIMATOR.text(&clipped) >= 48, "no room is wasted");
    let whole = ESTIMATOR.text(&text);
    let marker = format!("\n[… of {whole} tokens, the middle is left out; expand message:7 …]\n");
    let (head, tail) = clipped.split_once(&marker).unwrap();
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert!(head.len() > tail.len() && !tail.is_empty());
    assert_eq!(clip_tokens(&clipped, 50, "message:7"), None);
    // The limit is too small for any text.
    let marker = clip_tokens(&text, 3, "message:7").unwrap();
    assert_eq!(
        marker,
        format!("[… {whole} tokens left out; expand message:7 …]")
    );
    assert_eq!(marker, left_out(whole, "message:7"));
    assert!(is_left_out(&marker) && is_left_out(&left_out(3, "")));
    assert_eq!(clip_tokens(&marker, 3, "message:7"), None);
    // The marker would cost more than the text.
    assert_eq!(clip_tokens("five tokens, no more", 3, ""), None);
}

#[test]
fn cuts_fall_between_characters() {
    for text in [
        "日本語の文章です。".repeat(50),
        "🦀🇩🇪é".repeat(90),
        "aü".repeat(400),
    ] {
        for tokens in 0..120 {
            let clipped = clip_tokens(&text, tokens, "m").unwrap();
            assert!(clipped.len() < text.len());
            assert!(ESTIMATOR.text(&clipped) <= tokens || is_left_out(&clipped));
        }
        let ends = TrimPolicy::ToolOutputChars {
            untouched: 0,
            left_out: 0,
            shown: 7,
        };
        let clipped = ends.trim_result(&text, "", &ESTIMATOR).unwrap();
        let start: String = text.chars().take(7).collect();
        assert!(clipped.starts_with(&format!("{start}\n[… of ")));
    }
}

#[test]
fn long_results_keep_their_ends_and_middling_ones_are_omitted() {
    let policy = ENDS;
    let trim = |chars: usize| policy.trim_result(&"x".repeat(chars), "", &ESTIMATOR);
    assert_eq!(trim(200), None);
    assert_eq!(trim(201).unwrap(), "[… 51 tokens left out …]");
    assert_eq!(trim(2_000).unwrap(), "[… 500 tokens left out …]");
    let ends = "x".repeat(200);
    let clipped = trim(2_001).unwrap();
    assert_eq!(
        clipped,
        format!("{ends}\n[… of 501 tokens, the middle is left out …]\n{ends}")
    );
    assert_eq!(policy.trim_result(&clipped, "", &ESTIMATOR), None);
}

#[test]
fn policies_touch_results_and_only_one_touches_texts() {
    let long = numbered(200);
    let message = Msg {
        parts: vec![
            Part::Text(long.clone()),
            Part::Result("x".into(), long.clone(), false),
            Part::Picture,
        ],
        ..script("t").remove(0)
    };
    let touched = |policy: TrimPolicy| -> Vec<usize> {
        let edits = policy.edits(4, &message, "p", &ESTIMATOR);
        let part = |edit: &Edit| match edit {
            Edit::SetText {
                message: 4, part, ..
            } => *part,
            other => panic!("{other:?}"),
        };
        edits.iter().map(part).collect()
    };
    assert_eq!(touched(FIFTY_LINES), [1]);
    assert_eq!(touched(ENDS), [1]);
    assert_eq!(touched(TrimPolicy::ToolOutputTokens { tokens: 100 }), [1]);
    assert_eq!(touched(TrimPolicy::ToolOutputStub { tokens: 100 }), [1]);
    assert_eq!(touched(TrimPolicy::Block { tokens: 100 }), [0, 1]);
    assert_eq!(touched(TrimPolicy::Block { tokens: 100_000 }), NONE);
    let note = Msg {
        note: true,
        ..message.clone()
    };
    assert_eq!(FIFTY_LINES.edits(0, &note, "", &ESTIMATOR), []);
}

#[test]
fn ids_read_back_and_other_spellings_are_refused() {
    for (policy, id) in [
        (FIFTY_LINES, "tool-output-lines/50@1"),
        (
            TrimPolicy::ToolOutputTokens { tokens: 2_000 },
            "tool-output-tokens/2000@1",
        ),
        (ENDS, "tool-output-chars/200-2000-200@1"),
        (
            TrimPolicy::ToolOutputStub { tokens: 50 },
            "tool-output-stub/50@1",
        ),
        (TrimPolicy::Block { tokens: 8_000 }, "block/8000@1"),
    ] {
        assert_eq!(policy.to_string(), id);
        assert_eq!(id.parse::<TrimPolicy>().unwrap(), policy);
    }
    let odd = ClearPolicy {
        tools: vec!["a,b%2C".into(), "mcp__x/y:z@1".into(), String::new()],
        ..ClearPolicy::default()
    };
    assert_eq!(ClearPolicy::default().to_string(), "clear-old/6-50-8@1");
    assert_eq!(
        odd.to_string(),
        "clear-old/6-50-8:a%2Cb%252C,mcp__x/y:z@1,@1"
    );
    for bad in [
        "",
        "block/8@",
        "block/8@2",
        "brick/8@1",
        "block@1",
        "block/08@1",
        "block/+8@1",
        "block/8-8@1",
        "block/8:x@1",
        "tool-output-chars/1-2@1",
    ] {
        assert!(bad.parse::<TrimPolicy>().is_err(), "{bad}");
    }
    let error = "brick/8@1".parse::<TrimPolicy>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "this build has no trim policy \"brick/8@1\": choose tool-output-lines/LINES@1 or \
         tool-output-tokens/TOKENS@1 or tool-output-chars/UNTOUCHED-LEFTOUT-SHOWN@1 or \
         tool-output-stub/TOKENS@1 or block/TOKENS@1, with numbers for the words in capitals"
    );
}

/// Pairs of a call and a result with these costs, then other messages.
fn rounds(tokens: &[usize], tool: &str, then: &str) -> Vec<Msg> {
    let mut list = script("u:go");
    for (n, tokens) in tokens.iter().enumerate() {
        let mut round = script("a t");
        round[0].parts = vec![Part::Call(n.to_string(), tool.to_owned())];
        round[1].parts = vec![Part::Result(n.to_string(), "word".repeat(*tokens), false)];
        list.extend(round);
    }
    list.extend(script(then));
    list
}

fn cleared(policy: &ClearPolicy, list: &[Msg]) -> Vec<usize> {
    let edits = policy.edits(list, |at| format!("message:{at}"), &ESTIMATOR);
    let once = apply(list.to_vec(), &edits);
    assert_eq!(
        policy.edits(&once, |at| format!("message:{at}"), &ESTIMATOR),
        [],
        "twice"
    );
    let message = |edit: &Edit| match edit {
        Edit::SetContent { message, .. } | Edit::SetText { message, .. } => *message,
        other => panic!("{other:?}"),
    };
    edits.iter().map(message).collect()
}

#[test]
fn the_latest_six_results_stay_and_so_do_small_or_unrepeatable_ones() {
    let policy = ClearPolicy {
        tools: ["Bash", "Grep", "Read"].map(str::to_owned).to_vec(),
        ..ClearPolicy::default()
    };
    let nine = rounds(&[60; 9], "Read", "a:done");
    assert_eq!(cleared(&policy, &nine), [2, 4, 6]);
    assert_eq!(cleared(&policy, &rounds(&[60; 6], "Read", "a:done")), NONE);
    assert_eq!(cleared(&policy, &rounds(&[60; 9], "Edit", "a:done")), NONE);
    assert_eq!(cleared(&policy, &rounds(&[49; 9], "Bash", "a:done")), NONE);
    let mut mixed = rounds(&[49, 50, 60, 1, 1, 1, 1, 1, 1], "Grep", "");
    assert_eq!(cleared(&policy, &mixed), [4, 6]);
    // Cleared results are not cleared again.
    let edits = policy.edits(&mixed, |_| String::new(), &ESTIMATOR);
    mixed = apply(mixed, &edits);
    assert_eq!(
        mixed[4].parts,
        [Part::Result(
            "1".into(),
            "[… 50 tokens left out …]".into(),
            false
        )]
    );
    let few = ClearPolicy {
        keep: 0,
        min_tokens: 50,
        min_messages: 8,
        tools: vec![],
    };
    assert_eq!(cleared(&few, &rounds(&[60; 3], "Any", "")), NONE);
    assert_eq!(
        cleared(&few, &rounds(&[60; 3], "Any", "u:eight")),
        [2, 4, 6]
    );
    assert_eq!(cleared(&few, &rounds(&[60; 3], "Any", "n:note")), NONE);
}

fn trims() -> impl Strategy<Value = TrimPolicy> {
    prop_oneof![
        (0..60_usize).prop_map(|lines| TrimPolicy::ToolOutputLines { lines }),
        (0..200_u64).prop_map(|tokens| TrimPolicy::ToolOutputTokens { tokens }),
        (0..100_usize, 0..400_usize, 0..100_usize).prop_map(|(untouched, more, shown)| {
            TrimPolicy::ToolOutputChars {
                untouched,
                left_out: untouched + more,
                shown,
            }
        }),
        (0..100_u64).prop_map(|tokens| TrimPolicy::ToolOutputStub { tokens }),
        (0..200_u64).prop_map(|tokens| TrimPolicy::Block { tokens }),
    ]
}

fn estimators() -> impl Strategy<Value = HeuristicEstimator> {
    prop::sample::select(HeuristicEstimator::ALL.to_vec())
}

fn bytes(message: &Msg) -> usize {
    let size = |part: &Part| match part {
        Part::Text(text) | Part::Result(_, text, _) => text.len(),
        _ => 0,
    };
    message.parts.iter().map(size).sum()
}

fn tokens(message: &Msg, estimator: HeuristicEstimator) -> u64 {
    let cost = |part: &Part| match part {
        Part::Text(text) | Part::Result(_, text, _) => estimator.text(text),
        _ => 0,
    };
    message.parts.iter().map(cost).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn trimming_never_grows_a_message_and_twice_is_once(
        list in messages(),
        policy in trims(),
        estimator in estimators(),
        pointer in prop::sample::select(vec!["", "message:12345"]),
    ) {
        for message in list {
            let edits = policy.edits(0, &message, pointer, &estimator);
            let trimmed = apply(vec![message.clone()], &edits).remove(0);
            prop_assert!(bytes(&trimmed) <= bytes(&message));
            prop_assert!(tokens(&trimmed, estimator) <= tokens(&message, estimator));
            prop_assert_eq!(trimmed.parts.len(), message.parts.len());
            let again = policy.edits(0, &trimmed, pointer, &estimator);
            prop_assert_eq!(again, vec![], "{:?}", trimmed);
        }
    }

    #[test]
    fn clearing_never_grows_a_list_keeps_its_pairs_and_twice_is_once(
        list in messages(),
        limit in 0..60_u64,
        estimator in estimators(),
    ) {
        let policy = ClearPolicy { keep: 2, min_tokens: limit, min_messages: 0, tools: vec!["Read".into()] };
        let edits = policy.edits(&list, |_| String::new(), &estimator);
        let done = apply(list.clone(), &edits);
        for (new, old) in done.iter().zip(&list) {
            prop_assert!(bytes(new) <= bytes(old));
            prop_assert!(tokens(new, estimator) <= tokens(old, estimator));
            prop_assert_eq!(new.parts.len(), old.parts.len());
        }
    }

    #[test]
    fn ids_of_policies_read_back(policy in trims()) {
        prop_assert_eq!(policy.to_string().parse::<TrimPolicy>().unwrap(), policy);
    }

    #[test]
    fn a_stub_is_shorter_or_there_is_none(text in "(?s).{0,80}", estimator in estimators()) {
        let stub = TrimPolicy::ToolOutputStub { tokens: 0 };
        if let Some(stub) = stub.trim_result(&text, "m", &estimator) {
            prop_assert!(stub.len() < text.len() && is_left_out(&stub));
        }
    }
}

/// A text that only begins and ends like a marker is not a marker, so every policy shortens it.
#[test]
fn a_forged_marker_is_shortened() {
    let estimator = HeuristicEstimator::default();
    let long = "many words ".repeat(9_000);
    for forged in [
        format!("[900 tokens left out; expand {long}]"),
        format!("[… 900 tokens left out; expand {long} …]"),
        format!(
            "{}\n[… of 9 tokens, {long} …]\n{}",
            "a".repeat(200),
            "z".repeat(200)
        ),
        format!("{}[… {long} …]\n{}", "a\n".repeat(25), "z\n".repeat(25)),
    ] {
        for policy in [
            ENDS,
            TrimPolicy::ToolOutputTokens { tokens: 500 },
            TrimPolicy::ToolOutputStub { tokens: 50 },
            TrimPolicy::Block { tokens: 500 },
        ] {
            let trimmed = policy.trim_result(&forged, "message:1", &estimator);
            let length = trimmed.map_or(usize::MAX, |text| text.len());
            assert!(
                length < 3_000,
                "{policy} left {length} bytes of {}",
                &forged[..50]
            );
        }
    }
    let lines = format!("{}[… {long} …]\n{}", "a\n".repeat(25), "z\n".repeat(25));
    let trimmed = FIFTY_LINES.trim_result(&lines, "message:1", &estimator);
    assert!(trimmed.is_some_and(|text| text.len() < 300));
    assert!(!turn_map::is_left_out(&format!(
        "[… 9 tokens left out; expand {long} …]"
    )));
    assert!(!turn_map::is_left_out("[… 09 tokens left out …]"));
    assert!(turn_map::is_left_out(&turn_map::left_out(9, "message:1")));
    assert!(turn_map::is_left_out(&turn_map::left_out(9, "")));
}
