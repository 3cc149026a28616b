//! No single message takes the room of all others.

use context_assembler::{AssemblyInput, AssemblyPolicy, Context, render_text};
use memory_model::{Message, Part, RawJson, ResultContent, Role};
use token_estimate::HeuristicEstimator;

use crate::laws::{assembled, in_steps};
use crate::script::{Shown, accounting, input, log};

const BUDGET: u64 = 8_000;

/// Returns a view of a hundred turns, the first half summarized, followed by `newest`.
fn view(newest: Vec<Message>) -> AssemblyInput {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let turn = |n| {
        [
            Message::user(format!("What does module {n} do? ").repeat(8)),
            Message::assistant(format!("Module {n} parses. ").repeat(18)),
        ]
    };
    let mut messages: Vec<Message> = (0..100).flat_map(turn).collect();
    messages.extend(newest);
    let lines = Shown::Lines {
        lines: 30,
        ranked: true,
    };
    input(&log(messages, &accounting), &[(100, lines)], &accounting)
}

/// Returns a call and a result of about `tokens` tokens.
fn read(id: &str, tokens: usize) -> [Message; 2] {
    let lines = (0..tokens / 5).map(|n| format!("line {n:>6} of it\n"));
    let text = format!("FIRST of {id}\n{}LAST of {id}", lines.collect::<String>());
    let call = Message::tool_call(id, "read", RawJson::parse("{}").unwrap());
    [call, Message::tool_result(id, text)]
}

/// Returns the cost of the messages that show this text, in tokens.
fn tokens_of(context: &Context, text: &str) -> u64 {
    let shows = |message: &&context_assembler::ContextMessage| {
        render_text(std::slice::from_ref(*message)).contains(text)
    };
    let of_text = context.messages.iter().filter(shows);
    of_text.map(|message| message.tokens).sum()
}

#[test]
fn the_latest_result_leaves_half_of_the_room_to_others() {
    let view = view(read("big", 60_000).to_vec());
    for policy in [AssemblyPolicy::once(), in_steps(4)] {
        let context = assembled(&view, BUDGET, &policy);
        let text = render_text(&context.messages);
        let tokens = tokens_of(&context, "FIRST of big");
        assert!((3_500..=4_000).contains(&tokens), "{policy:?}: {tokens}");
        assert_eq!(tokens, tokens_of(&context, "LAST of big"));
        assert!(text.contains("the middle is left out; expand message:202"));
        assert!(text.contains("Module 99 parses."), "{policy:?}");
        assert!(context.tokens > 7_000, "{policy:?}: {}", context.tokens);
    }
}

#[test]
fn a_large_piece_gets_the_remaining_room() {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let entries = log(read("big", 60_000).to_vec(), &accounting);
    let alone = input(&entries, &[], &accounting);
    let two = [read("one", 60_000), read("two", 60_000)].concat();
    let two = input(&log(two, &accounting), &[], &accounting);
    let context = assembled(&alone, BUDGET, &AssemblyPolicy::once());
    assert!(context.tokens > 7_900, "{}", context.tokens);
    let context = assembled(&two, BUDGET, &AssemblyPolicy::once());
    assert!(context.tokens > 7_900, "{}", context.tokens);
    let shares = ["FIRST of one", "FIRST of two"].map(|text| tokens_of(&context, text));
    assert!(shares.iter().all(|tokens| *tokens > 3_900), "{shares:?}");
}

#[test]
fn an_older_large_piece_leaves_room_to_earlier_messages() {
    let newest = [
        read("big", 60_000).to_vec(),
        vec![Message::assistant("It is all there.")],
    ];
    let view = view(newest.concat());
    for (policy, most) in [(AssemblyPolicy::once(), 2_000), (in_steps(4), 2_000)] {
        let context = assembled(&view, BUDGET, &policy);
        let tokens = tokens_of(&context, "FIRST of big");
        assert!(
            (most * 3 / 4..=most).contains(&tokens),
            "{policy:?}: {tokens}"
        );
        let text = render_text(&context.messages);
        assert!(text.contains("Module 99 parses.") && text.contains("LAST of big"));
    }
}

/// Results before the latest one of a group are replaced one by one. The last of them that is shortened shows both ends
/// in the remaining room.
#[test]
fn a_large_result_with_a_small_one_is_shown_from_both_ends() {
    let call = |id: &str| Part::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: RawJson::parse("{}").unwrap(),
    };
    let calls = Message::new(Role::Assistant, vec![call("big"), call("small")]);
    let small = Message::tool_result("small", "ok");
    let [_, big] = read("big", 60_000);
    let context = assembled(&view(vec![calls, big, small]), BUDGET, &in_steps(4));
    let tokens = tokens_of(&context, "FIRST of big");
    assert!((3_500..=4_000).contains(&tokens), "{tokens}");
    assert_eq!(tokens, tokens_of(&context, "LAST of big"));
    let is_whole = |part: &Part| match part {
        Part::ToolResult { content, .. } => *content == ResultContent::Text("ok".to_owned()),
        _ => false,
    };
    let mut parts = context.messages.iter().flat_map(|message| &message.parts);
    assert!(parts.any(is_whole));
}
