//! The user's request is in every context, and a context that is used once uses its room.

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, Item, MessageOrigin, Preamble, assemble,
    render_text,
};
use memory_model::{LogEntry, Message, RawJson, Seq};
use token_estimate::HeuristicEstimator;

use crate::laws::{assembled, in_steps};
use crate::script::{Shown, accounting, input, log};

/// Position of the request.
const REQUEST: Seq = Seq(101);

/// Returns fifty turns about another subject, a request, and as many calls with results of some hundred tokens.
fn entries(request: &str) -> Vec<LogEntry> {
    let mut messages = Vec::new();
    for n in 0..50 {
        messages.push(Message::user(
            format!("What does module {n} do? ").repeat(4),
        ));
        messages.push(Message::assistant(format!("Module {n} parses. ").repeat(9)));
    }
    messages.push(Message::user(request));
    for n in 0..50 {
        let id = format!("call-{n}");
        let arguments = RawJson::parse("{}").unwrap();
        messages.push(Message::tool_call(&id, "read", arguments));
        messages.push(Message::tool_result(
            &id,
            format!("line {n} of a file\n").repeat(30),
        ));
    }
    log(messages, &accounting(HeuristicEstimator::Bytes4))
}

/// Returns a view with summaries of 25 messages each over all entries except the last `raw` ones.
fn view(entries: &[LogEntry], raw: usize) -> AssemblyInput {
    let lines = Shown::Lines {
        lines: 30,
        ranked: true,
    };
    let stretches = vec![(25, lines); (entries.len() - raw) / 25];
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let mut view = input(entries, &stretches, &accounting);
    view.requested = vec![REQUEST];
    let request = entries.iter().find(|entry| entry.seq == REQUEST).unwrap();
    let hides =
        |item: &Item| matches!(item, Item::Summary(summary) if summary.range.contains(REQUEST));
    if let Some(at) = view.items.iter().position(hides) {
        view.items
            .insert(at + 1, Item::Quoted(vec![request.clone()]));
    }
    view
}

fn is_shown(context: &Context, text: &str) -> bool {
    render_text(&context.messages).contains(text)
}

#[test]
fn a_request_is_verbatim_in_every_context() {
    let request = "Rename the parser, but never touch the generated files below gen/, and tell me which tests you ran.";
    let entries = entries(request);
    for raw in [8, 60, 180] {
        let view = view(&entries, raw);
        for policy in [AssemblyPolicy::once(), in_steps(1), in_steps(4)] {
            for budget in (1_000..9_000).step_by(250) {
                let context = assembled(&view, budget, &policy);
                assert!(
                    is_shown(&context, request),
                    "{raw} {policy:?} {budget}: {}",
                    render_text(&context.messages)
                );
            }
        }
    }
}

#[test]
fn a_context_names_a_dropped_request_a_degraded_tail_and_a_shared_prefix() {
    let request = "Rename the parser, and nothing else. ".repeat(10);
    let entries = entries(&request);
    let view = view(&entries, 60);
    let policy = in_steps(4);
    let wide = assembled(&view, 8_000, &policy);
    assert_eq!(wide.dropped_request(), None);
    assert_eq!(wide.degraded_tail(), None);
    assert_eq!(wide.shared_prefix(&wide), wide.messages.len());
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let of = |budget| {
        let budget = Budget::tokens(budget);
        assemble(&view, &Preamble::default(), budget, &policy, &accounting).ok()
    };
    let mut narrow = (1..90).rev().filter_map(of);
    let narrow = narrow.find(|context| context.dropped_request() == Some(REQUEST));
    let narrow = narrow.expect("a budget too small for a request");
    assert!(!is_shown(&narrow, "Rename the parser"));
    assert_eq!(narrow.degraded_tail().unwrap().last, Seq(201));
    assert!(narrow.shared_prefix(&wide) < narrow.messages.len());
}

#[test]
fn a_long_request_is_shown_from_both_ends_in_a_quarter_of_the_room() {
    let request = format!(
        "First sentence. {}Last sentence.",
        "Something in between. ".repeat(1_000)
    );
    let view = view(&entries(&request), 60);
    for policy in [AssemblyPolicy::once(), in_steps(4)] {
        let context = assembled(&view, 4_000, &policy);
        let mut messages = context.messages.iter();
        let origin = MessageOrigin::Quoted {
            first: REQUEST,
            last: REQUEST,
        };
        let shown = messages.find(|message| message.source == origin);
        let tokens = shown.unwrap().tokens;
        assert!((900..=1_000).contains(&tokens), "{tokens}");
        for text in ["First sentence.", "expand message:101", "Last sentence."] {
            assert!(is_shown(&context, text), "{text}");
        }
    }
}

#[test]
fn quoted_messages_are_omitted_first_and_without_a_remark() {
    let entries = entries("Go on.");
    let mut view = view(&entries, 50);
    view.requested.clear();
    let raw = view.items.pop().unwrap();
    let Some(Item::Summary(summary)) = view.items.last() else {
        panic!("{:?}", view.items);
    };
    let quoted: Vec<LogEntry> = entries
        .iter()
        .filter(|entry| summary.range.contains(entry.seq))
        .cloned()
        .collect();
    let first = quoted[0].seq;
    view.items.extend([Item::Quoted(quoted), raw]);
    let shows = |context: &Context| {
        let quotes = |source: &MessageOrigin| match source {
            MessageOrigin::Quoted { first: from, last } => *from <= first && first <= *last,
            _ => false,
        };
        context
            .messages
            .iter()
            .any(|message| quotes(&message.source))
    };
    let all = assembled(&view, 40_000, &AssemblyPolicy::once());
    assert!(shows(&all), "there is room for everything");
    let some = assembled(&view, 3_000, &AssemblyPolicy::once());
    assert!(!shows(&some));
    let receipt = &some.receipt;
    let told = |range: (Seq, Seq)| range.0 <= first && first <= range.1;
    assert!(
        !receipt
            .dropped
            .iter()
            .any(|one| told((one.first, one.last)))
    );
    assert!(
        !receipt
            .degraded
            .iter()
            .any(|one| told((one.first, one.last)))
    );
}

#[test]
fn a_single_context_uses_its_room() {
    for raw in [60, 180] {
        let view = view(&entries("Go on."), raw);
        for budget in (2_000..8_000).step_by(500) {
            let context = assembled(&view, budget, &AssemblyPolicy::once());
            let receipt = &context.receipt;
            let room = receipt.limit - receipt.request_tokens;
            assert!(
                context.tokens * 100 >= room * 94,
                "{raw}: {} of {room}",
                context.tokens
            );
        }
    }
}
