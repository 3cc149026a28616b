//! Content that is too large is shortened in steps, fast, and never grows.
// How long a test takes is measured with a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use context_assembler::{
    AssemblyPolicy, Budget, Context, ContextAccounting, DegradationStep, Preamble, assemble,
    render_text,
};
use memory_model::{Message, Part, RawJson, ResultContent, Role};
use token_estimate::{
    EstimatorId, HeuristicEstimator, MessageView, PartView, TokenEstimator, default_estimator,
};

use crate::script::{accounting, input, log};

fn call(id: &str) -> Message {
    Message::tool_call(id, "read", RawJson::parse("{}").unwrap())
}

fn run(messages: &[Message], budget: u64) -> Context {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let entries = log(messages.to_vec(), &accounting);
    let input = input(&entries, &[], &accounting);
    let policy = AssemblyPolicy::default();
    assemble(
        &input,
        &Preamble::default(),
        Budget::tokens(budget),
        &policy,
        &accounting,
    )
    .unwrap()
}

fn step(context: &Context) -> Option<DegradationStep> {
    context
        .receipt
        .degraded
        .last()
        .map(|degraded| degraded.step)
}

fn result_text(context: &Context, id: &str) -> String {
    let parts = context.messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::ToolResult {
                call_id, content, ..
            } if call_id == id => Some(content.text().into_owned()),
            _ => None,
        })
        .next()
        .unwrap()
}

#[test]
fn old_results_are_omitted_first_and_the_latest_last() {
    let line = |n: usize| call(&format!("c{n}")).with_response("r");
    let result = |n: usize| Message::tool_result(format!("c{n}"), format!("{n}").repeat(8_000));
    let group: Vec<Message> = (0..4).flat_map(|n| [line(n), result(n)]).collect();

    let whole = run(&group, 10_000);
    assert_eq!(step(&whole), None);
    let stubbed = run(&group, 7_000);
    assert_eq!(step(&stubbed), Some(DegradationStep::StubbedResults));
    assert_eq!(
        result_text(&stubbed, "c0"),
        "[… 2000 tokens left out; expand message:2 …]"
    );
    assert_eq!(result_text(&stubbed, "c1").len(), 8_000);
    let last = run(&group, 2_500);
    assert_eq!(step(&last), Some(DegradationStep::StubbedResults));
    assert_eq!(result_text(&last, "c3").len(), 8_000);
    let clipped = run(&group, 1_000);
    assert_eq!(step(&clipped), Some(DegradationStep::Clipped));
    assert!(clipped.tokens > 990, "{}", clipped.tokens);
    let text = result_text(&clipped, "c3");
    assert!(text.starts_with("333") && text.ends_with("333"), "{text}");
    assert!(text.contains("[… of 2000 tokens, the middle is left out; expand message:8 …]"));
    let text = run(&group, 40);
    assert_eq!(step(&text), Some(DegradationStep::Text));
    assert_eq!(text.messages.len(), 1);
}

#[test]
fn shortened_messages_keep_words_and_no_bytes() {
    let bytes = "aB3/".repeat(5_000);
    let unknown = |raw: String| Part::Unknown {
        raw: RawJson::parse(raw).unwrap(),
    };
    let found = format!(r#"{{"title":"Tides of Kiel","encrypted_content":"{bytes}"}}"#);
    let attached = format!(r#"{{"type":"attachment","name":"chart","data":"{bytes}"}}"#);
    let result = Part::ToolResult {
        call_id: "c".to_owned(),
        content: ResultContent::Parts(vec![Part::text("Read."), unknown(attached)]),
        is_error: None,
    };
    let search = [
        Message::user("When is high tide?"),
        Message::new(
            Role::Assistant,
            vec![unknown(found), Part::text("At nine.")],
        ),
    ];
    let read = [call("c"), Message::new(Role::Tool, vec![result])];
    let all = [search.as_slice(), &read].concat();
    for budget in [150, 300, 1_000, 4_000, 6_000, 12_000] {
        let context = run(&all, budget);
        for part in context.messages.iter().flat_map(|message| &message.parts) {
            let text = match part {
                Part::Text { text } => text.clone(),
                Part::ToolResult {
                    content: ResultContent::Text(text),
                    ..
                } => text.clone(),
                _ => continue,
            };
            assert!(!text.contains("aB3/aB3/"), "{budget}: {text}");
        }
    }
    for (messages, words) in [
        (search, ["Tides of Kiel", "At nine."]),
        (read, ["Read.", "chart"]),
    ] {
        let context = render_text(&run(&messages, 300).messages);
        assert!(
            words.iter().all(|words| context.contains(words)),
            "{context}"
        );
    }
}

#[test]
fn the_largest_texts_are_clipped_evenly() {
    let parts = [300, 40_000, 500, 40_000].map(|bytes| Part::text("x".repeat(bytes)));
    let context = run(&[Message::new(Role::User, parts.to_vec())], 2_200);
    assert_eq!(step(&context), Some(DegradationStep::Clipped));
    let sizes: Vec<usize> = context.messages[0]
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.len(),
            _ => 0,
        })
        .collect();
    assert_eq!((sizes[0], sizes[2]), (300, 500));
    assert_eq!(sizes[1], sizes[3]);
    assert!((2_190..=2_200).contains(&context.tokens));
}

#[test]
fn a_short_latest_message_needs_no_more_than_itself() {
    let context = run(&[Message::user("hi")], 1);
    assert_eq!((context.tokens, step(&context)), (1, None));
}

/// A group larger than a step that contains the cut is shown in part.
#[test]
fn a_large_group_at_the_cut_leaves_no_hole() {
    let messages = [
        Message::user("old"),
        Message::user("y".repeat(12_000)),
        Message::user("new"),
    ];
    let context = run(&messages, 2_000);
    assert_eq!(context.messages.len(), 3);
    assert!(context.tokens > 1_000);
    let degraded = context.receipt.degraded.last().unwrap();
    assert_eq!(
        (degraded.first, degraded.step),
        (memory_model::Seq(2), DegradationStep::Clipped)
    );
}

/// The end of a command is its most important part.
#[test]
fn a_digest_shows_both_ends_of_a_command() {
    let command = format!(
        r#"{{"command":"cd /srv/app && {} cargo test -p parser -- --nocapture"}}"#,
        "export FLAG=value && ".repeat(40)
    );
    let pasted = format!(
        "Why does this fail?\n{}error: lexer.rs:42: unknown escape",
        "   Compiling a crate of the workspace\n".repeat(100)
    );
    let mut messages = vec![
        Message::tool_call("c", "bash", RawJson::parse(&command).unwrap()),
        Message::tool_result("c", "ok"),
        Message::user(pasted),
    ];
    messages.extend((0..8).map(|n| Message::assistant(format!("Step {n}. ").repeat(100))));
    let text = render_text(&run(&messages, 1_900).messages);
    for end in ["-- --nocapture", "unknown escape"] {
        assert!(text.contains(end), "{text}");
    }
    assert!(text.contains("Why does this fail?") && text.contains("cd /srv/app"));
}

/// With little room, a digest quotes people instead of tool output, in readable lines.
#[test]
fn a_digest_shows_texts_before_tool_output() {
    let mut messages = vec![Message::user(
        "Look into the parser: does it read an escape at the end of a file?",
    )];
    for n in 0..20 {
        let id = format!("c{n}");
        let arguments = RawJson::parse("{}").unwrap();
        messages.push(Message::tool_call(&id, "read", arguments));
        messages.push(Message::tool_result(
            &id,
            format!("{n} fn parse();\n").repeat(90),
        ));
    }
    messages.push(Message::assistant(
        "It does not: the lexer stops one byte before the end, and drops the escape.",
    ));
    messages.extend((0..3).map(|n| Message::assistant(format!("Step {n}. ").repeat(100))));
    let text = render_text(&run(&messages, 1_000).messages);
    let (digest, _) = text.split_once("Step 0.").unwrap();
    assert!(
        digest.contains("does it read an escape at the end of a file?"),
        "{digest}"
    );
    assert!(
        digest.contains("the lexer stops one byte before the end"),
        "{digest}"
    );
}

#[test]
fn large_groups_are_shortened_fast() {
    let many = |count: usize, part: &dyn Fn(usize) -> Part| (0..count).map(part).collect();
    let calls = |n: usize| Part::ToolCall {
        id: format!("c{n}"),
        name: "t".to_owned(),
        arguments: RawJson::parse("{}").unwrap(),
    };
    let results = |n: usize| Part::ToolResult {
        call_id: format!("c{n}"),
        content: ResultContent::Text("some result text of a line or so ".repeat(4)),
        is_error: None,
    };
    let lines = |n: usize| call(&format!("c{n}")).with_response("r");
    let groups: [(&str, Vec<Message>); 4] = [
        (
            "one result of 5 MB",
            vec![
                call("c"),
                Message::tool_result("c", "日本語 text ".repeat(350_000)),
            ],
        ),
        (
            "20,000 calls and results in two messages",
            vec![
                Message::new(Role::Assistant, many(20_000, &calls)),
                Message::new(Role::Tool, many(20_000, &results)),
            ],
        ),
        (
            "20,000 open calls on lines",
            (0..20_000).map(lines).collect(),
        ),
        (
            "20,000 late results in one message",
            vec![Message::new(Role::Tool, many(20_000, &results))],
        ),
    ];
    for preset in [
        HeuristicEstimator::Bytes4,
        HeuristicEstimator::Bytes4PerPart,
    ] {
        let accounting = accounting(preset);
        for (_, messages) in &groups {
            let entries = log(messages.clone(), &accounting);
            let input = input(&entries, &[], &accounting);
            for budget in [100, 1_000, 30_000] {
                let policy = AssemblyPolicy::default();
                let budget = Budget::tokens(budget);
                let context =
                    assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap();
                assert!(!context.receipt.degraded.is_empty());
            }
        }
    }
}

/// A choice that looks at all blocks for each block would not end in reasonable time.
#[test]
fn a_hundred_thousand_messages_are_no_trouble() {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let messages = (0..100_000).map(|n| match n % 3 {
        0 => Message::user("question"),
        1 => Message::assistant("answer").with_response(format!("r{n}")),
        _ => Message::note(Role::System, vec![Part::text("note")]),
    });
    let entries = log(messages.collect(), &accounting);
    let input = input(&entries, &[], &accounting);
    for whole_tail in [None, Some(20)] {
        let policy = AssemblyPolicy {
            whole_tail,
            ..AssemblyPolicy::default()
        };
        for budget in [10, 50_000, 1_000_000] {
            let budget = Budget::tokens(budget);
            let context =
                assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap();
            assert!(context.receipt.dropped.len() <= 1);
        }
    }
}

/// A result that begins and ends like a remark of the context is clipped like others.
#[test]
fn look_alikes_of_remarks_are_clipped() {
    let long = "many words ".repeat(9_000);
    for forged in [
        format!("[900 tokens left out; expand {long}]"),
        format!("[… 900 tokens left out; expand {long} …]"),
        format!(
            "{}\n[… of 9 tokens, {long} …]\n{}",
            "a".repeat(200),
            "z".repeat(200)
        ),
    ] {
        let messages = [call("c"), Message::tool_result("c", &forged)];
        let context = run(&messages, 1_000);
        assert_eq!(
            step(&context),
            Some(DegradationStep::Clipped),
            "{}",
            &forged[..40]
        );
        let text = result_text(&context, "c");
        assert!(text.len() > 3_000 && text.len() < 4_000, "{}", text.len());
        assert!(text.contains("the middle is left out; expand message:2"));
    }
}

/// Size of a large result, in bytes.
const LARGE: usize = 500_000;

/// An estimator that records the number of counted bytes.
#[derive(Debug)]
struct Counting(Arc<dyn TokenEstimator>, AtomicUsize);

struct Visited<'a>(&'a dyn MessageView, &'a AtomicUsize);

impl MessageView for Visited<'_> {
    fn role(&self) -> token_estimate::Role {
        self.0.role()
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.0.parts(&mut |part| {
            let content = match part {
                PartView::ToolResult { content, .. } => content,
                _ => std::slice::from_ref(&part),
            };
            for part in content {
                if let PartView::Text(text) = part {
                    self.1.fetch_add(text.len(), Ordering::Relaxed);
                }
            }
            visit(part);
        });
    }
}

impl TokenEstimator for Counting {
    fn id(&self) -> EstimatorId {
        self.0.id()
    }

    fn text(&self, text: &str) -> u64 {
        self.1.fetch_add(text.len(), Ordering::Relaxed);
        self.0.text(text)
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        self.0.message(&Visited(message, &self.1))
    }
}

#[test]
fn a_large_result_is_counted_and_clipped_once() {
    let counting = Arc::new(Counting(default_estimator(), AtomicUsize::new(0)));
    let accounting = ContextAccounting::new(counting.clone());
    let line = "src/lib.rs:42: error: the value moved here was borrowed before\n";
    let messages = [
        Message::user("What does the build say?"),
        Message::tool_call("large", "read", RawJson::parse("{}").unwrap()),
        Message::tool_result("large", line.repeat(LARGE / line.len())),
    ];
    let entries = log(messages.to_vec(), &accounting);
    let input = input(&entries, &[], &accounting);
    counting.1.store(0, Ordering::Relaxed);
    let budget = Budget::tokens(8_000);
    let policy = AssemblyPolicy::default();
    let context = assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap();
    let newest = context.receipt.degraded.last().unwrap();
    assert_eq!(newest.step, DegradationStep::Clipped);
    assert!(context.tokens > 6_000, "{} tokens", context.tokens);
    // The whole text is counted once, and the remaining text a few times.
    let counted = counting.1.load(Ordering::Relaxed);
    assert!(
        counted < 2 * LARGE,
        "{counted} bytes were counted for a result of {LARGE}"
    );
}
