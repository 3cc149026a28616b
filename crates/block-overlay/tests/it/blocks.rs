//! The sections of one loop's block.

use block_overlay::{
    BlockCompactionStrategy, CompactionBlock, CompactionConfig, DefaultBlockCompaction, LoopRecord,
    TurnMap, TurnRange,
};
use memory_model::Message;
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};
use turn_map::Role;

use crate::world::{
    COUNTER, NOW, assistant, block_on, call, config, kept, output, record, result, summary_tokens,
    text, texts, turns, user,
};

fn block(record: &LoopRecord, config: &CompactionConfig, newest: bool) -> CompactionBlock {
    block_on(DefaultBlockCompaction.compact(record, config, newest)).unwrap()
}

fn range(start: usize, end: usize) -> Option<TurnRange> {
    TurnRange::from_indices(start..end + 1)
}

#[test]
fn turns_are_grouped_by_index_and_messages_without_one_are_alone() {
    let record = record(
        "a",
        vec![
            user("one").with_turn("a", 0),
            assistant("two").with_turn("a", 0),
            assistant("three").with_turn("a", 0),
            user("four").with_turn("b", 1),
            assistant("five").with_turn("a", 1),
        ],
    );
    let turns = TurnMap::from_messages(&record.messages);
    assert_eq!(turns.turn_count(), 2);
    let ranges = [0, 1, 2].map(|turn| turns.turn_msg_range(turn));
    assert_eq!(ranges, [Some(0..3), Some(3..5), None]);
    let last = turns.messages_for_range(range(1, 1).unwrap(), &record.messages);
    assert_eq!(last, &record.messages[3..]);
    let legacy = [user("one"), assistant("two"), user("three")];
    assert_eq!(TurnMap::from_messages(&legacy).turn_count(), 3);
    // Between messages of one turn, a message without an index is alone and ends the turn.
    let mixed = [
        user("one").with_turn("a", 0),
        user("two"),
        assistant("three").with_turn("a", 0),
    ];
    let turns = TurnMap::from_messages(&mixed);
    assert_eq!(
        [0, 1, 2, 3].map(|turn| turns.turn_msg_range(turn)),
        [Some(0..1), Some(1..2), Some(2..3), None]
    );
    // Ranges are inclusive, and turns that do not exist have no messages.
    let of = |start, end| turns.messages_for_range(range(start, end).unwrap(), &mixed);
    assert_eq!(
        [of(0, 1), of(1, 2), of(2, 9), of(5, 9)],
        [&mixed[..2], &mixed[1..], &mixed[2..], &[]]
    );
}

#[test]
fn ten_turns_are_kept_and_none_is_compacted() {
    let made = block(&turns("a", 10, 3), &config(), true);
    assert_eq!(made.keep_first, range(0, 1));
    assert_eq!(made.keep_recent.unwrap().range, range(2, 9).unwrap());
    assert_eq!(made.keep_compacted, None);
}

#[test]
fn twenty_turns_have_three_sections() {
    let record = turns("a", 20, 80);
    let made = block(&record, &kept(2, 5), true);
    assert_eq!(made.keep_first, range(0, 1));
    let (middle, recent) = (made.keep_compacted.unwrap(), made.keep_recent.unwrap());
    assert_eq!(
        (middle.range, recent.range),
        (range(2, 14).unwrap(), range(15, 19).unwrap())
    );
    assert_eq!(middle.messages.len(), 13);
    assert!(
        middle
            .messages
            .iter()
            .all(|message| message.role == Role::User)
    );
    assert!(
        texts(&middle.messages)
            .iter()
            .all(|text| text.starts_with("[Summary] "))
    );
    assert_eq!(
        (made.created_at, made.covered_messages),
        (NOW, Some(record.messages.len()))
    );
}

#[test]
fn an_older_loop_is_only_compacted() {
    let made = block(&turns("a", 20, 3), &config(), false);
    assert_eq!((made.keep_first, made.keep_recent), (None, None));
    assert_eq!(made.keep_compacted.unwrap().range, range(0, 19).unwrap());
}

#[test]
fn recent_tool_output_is_cut_to_its_ends_and_all_else_is_as_it_was() {
    let record = record(
        "a",
        vec![
            user("Read it."),
            call("x"),
            result("x", &output(200)),
            assistant("Long."),
        ],
    );
    let seven = CompactionConfig {
        tool_output_max_lines: 7,
        ..kept(0, 10)
    };
    for (config, lines, left_out) in [(kept(0, 10), 50, 150), (seven, 7, 193)] {
        let recent = block(&record, &config, true).keep_recent.unwrap();
        let text = text(&recent.messages[2]);
        assert_eq!(text.lines().count(), lines + 1);
        assert!(
            text.starts_with("line 1 of") && text.ends_with("line 200 of the output\n"),
            "{text}"
        );
        let mark = format!("[… {left_out} lines left out …]");
        assert!(text.contains(&mark), "{text}");
        for other in [0, 1, 3] {
            assert_eq!(recent.messages[other], record.messages[other]);
        }
    }
}

#[test]
fn lines_stay_within_the_tokens_for_a_summary_and_the_rest_is_counted() {
    let record = turns("a", 40, 3);
    let config = summary_tokens(300);
    let made = block(&record, &config, false).keep_compacted.unwrap();
    assert!(COUNTER.messages(&made.messages) <= 300);
    let omitted = made.omitted.unwrap();
    let shown = made.messages.len() - 1;
    assert_eq!(Some(omitted.turns), range(shown, 39));
    let layout = TurnMap::from_messages(&record.messages);
    let left = layout.messages_for_range(omitted.turns, &record.messages);
    assert_eq!(
        (omitted.messages, omitted.tokens),
        (left.len(), COUNTER.messages(left))
    );
    let last = text(made.messages.last().unwrap());
    assert_eq!(last, format!("[… left out: {omitted} …]"));
}

#[test]
fn no_tokens_for_a_summary_leave_an_omission_alone() {
    let made = block(&turns("a", 5, 3), &summary_tokens(0), false)
        .keep_compacted
        .unwrap();
    assert_eq!(made.messages, []);
    assert_eq!(Some(made.omitted.unwrap().turns), range(0, 4));
}

#[test]
fn an_answer_of_tools_alone_is_named_by_their_number() {
    let mut both = call("x");
    both.parts.extend(call("y").parts);
    let record = record("a", vec![both, result("x", "1"), result("y", "2")]);
    let made = block(&record, &config(), false);
    let lines = texts(&made.keep_compacted.unwrap().messages);
    assert_eq!(lines, ["[Summary] [Assistant used 2 tool(s)]"]);
}

#[test]
fn nothing_costs_nothing() {
    assert_eq!(COUNTER.messages(&[] as &[Message]), 0);
    assert_eq!(COUNTER.text(""), 0);
    let made = block(&record("a", Vec::new()), &config(), true);
    assert_eq!(
        (made.keep_first, made.keep_recent, made.keep_compacted),
        (None, None, None)
    );
}
