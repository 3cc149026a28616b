//! The sections of one loop's block.

use block_overlay::{
    BlockCompactionStrategy, BlockInput, CompactionBlock, CompactionConfig, DefaultBlockCompaction,
    LoopLayout, LoopRecord, TurnRange, TurnRule,
};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};
use turn_map::{EditableMessage as _, Role};

use crate::world::{
    COUNTER, Msg, NOW, assistant, block_on, call, config, output, result, texts, turns, user,
};

fn block(
    record: &LoopRecord<Msg>,
    config: &CompactionConfig<Msg>,
    newest: bool,
) -> CompactionBlock<Msg> {
    let layout = LoopLayout::new(&record.messages, config.turn_rule);
    let input = BlockInput::new(record, &layout, config, newest, &COUNTER, NOW);
    block_on(DefaultBlockCompaction.compact(&input)).unwrap()
}

fn range(start: u32, end: u32) -> Option<TurnRange> {
    TurnRange::new(start, end)
}

#[test]
fn turns_are_grouped_by_index_and_messages_without_one_are_alone() {
    let record = LoopRecord::new(
        "a",
        vec![
            user("one").in_turn("a", 0),
            assistant("two").in_turn("a", 0),
            assistant("three").in_turn("a", 0),
            user("four").in_turn("b", 1),
            assistant("five").in_turn("a", 1),
        ],
    );
    let layout = LoopLayout::new(&record.messages, TurnRule::Index);
    assert_eq!(layout.turns().count(), 2);
    assert_eq!(
        (layout.turns().range(0), layout.turns().range(1)),
        (0..3, 3..5)
    );
    let legacy = [user("one"), assistant("two"), user("three")];
    assert_eq!(LoopLayout::new(&legacy, TurnRule::Index).turns().count(), 3);
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
    let made = block(&record, &config().with_kept_turns(2, 5), true);
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
    let record = LoopRecord::new(
        "a",
        vec![
            user("Read it."),
            call("x"),
            result("x", &output(200)),
            assistant("Long."),
        ],
    );
    let made = block(&record, &config().with_kept_turns(0, 10), true);
    let recent = made.keep_recent.unwrap();
    let text = recent.messages[2].text();
    assert_eq!(text.lines().count(), 51);
    assert!(
        text.starts_with("line 1 of") && text.ends_with("line 200 of the output\n"),
        "{text}"
    );
    assert!(text.contains("[… 150 lines left out …]"), "{text}");
    for other in [0, 1, 3] {
        assert_eq!(recent.messages[other], record.messages[other]);
    }
}

#[test]
fn calls_and_results_are_in_the_same_section() {
    // Every message is a turn of its own, and the numbers would divide both groups.
    let record = LoopRecord::new(
        "a",
        vec![
            user("one"),
            call("x"),
            result("x", "found"),
            user("two"),
            user("three"),
            call("y"),
            result("y", "found"),
        ],
    );
    let made = block(&record, &config().with_kept_turns(2, 1), true);
    assert_eq!(made.keep_first, range(0, 2));
    assert_eq!(made.keep_compacted.unwrap().range, range(3, 4).unwrap());
    assert_eq!(made.keep_recent.unwrap().range, range(5, 6).unwrap());
}

#[test]
fn lines_stay_within_the_tokens_for_a_summary_and_the_rest_is_counted() {
    let record = turns("a", 40, 3);
    let config = config().with_max_summary_tokens(300);
    let made = block(&record, &config, false).keep_compacted.unwrap();
    assert!(COUNTER.messages(&made.messages) <= 300);
    let omitted = made.omitted.unwrap();
    let shown = made.messages.len() - 1;
    assert_eq!(Some(omitted.turns), range(shown as u32, 39));
    let layout = LoopLayout::new(&record.messages, TurnRule::Index);
    let left = layout.slice(&record.messages, omitted.turns);
    assert_eq!(
        (omitted.messages, omitted.tokens),
        (left.len(), COUNTER.messages(left))
    );
    let last = made.messages.last().unwrap().text();
    assert_eq!(last, format!("[… left out: {omitted} …]"));
}

#[test]
fn no_tokens_for_a_summary_leave_an_omission_alone() {
    let none = config().with_max_summary_tokens(0).with_focus("Files.");
    let made = block(&turns("a", 5, 3), &none, false)
        .keep_compacted
        .unwrap();
    assert_eq!(made.messages, []);
    assert_eq!(Some(made.omitted.unwrap().turns), range(0, 4));
}

#[test]
fn the_focus_comes_first_in_a_summary_and_counts() {
    let focused = config()
        .with_focus("Keep the API contracts.")
        .with_max_summary_tokens(120);
    let made = block(&turns("a", 9, 3), &focused, false)
        .keep_compacted
        .unwrap();
    assert_eq!(made.messages[0].text(), "[Focus] Keep the API contracts.");
    assert!(COUNTER.messages(&made.messages) <= 120);
    let plain = block(&turns("a", 9, 3), &config(), false)
        .keep_compacted
        .unwrap();
    assert!(plain.messages[0].text().starts_with("[Summary] "));
}

#[test]
fn an_answer_of_tools_alone_is_named_by_their_number() {
    let mut both = call("x");
    both.put_parts(
        [call("x"), call("y")]
            .into_iter()
            .flat_map(|m| m.content)
            .collect(),
    );
    let record = LoopRecord::new("a", vec![both, result("x", "1"), result("y", "2")]);
    let made = block(
        &record,
        &config().with_turn_rule(TurnRule::Responses),
        false,
    );
    let lines = texts(&made.keep_compacted.unwrap().messages);
    assert_eq!(lines, ["[Summary] [Assistant used 2 tool(s)]"]);
}

#[test]
fn nothing_costs_nothing() {
    assert_eq!(COUNTER.messages(&[] as &[Msg]), 0);
    assert_eq!(COUNTER.text(""), 0);
    let made = block(&LoopRecord::new("a", Vec::new()), &config(), true);
    assert_eq!(
        (made.keep_first, made.keep_recent, made.keep_compacted),
        (None, None, None)
    );
}
