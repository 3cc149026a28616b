//! Limits on pictures and bytes.

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, ErrorKind, Item, MessageOrigin, Preamble,
    assemble, render_text,
};
use memory_model::{LogEntry, Media, MediaSource, Message, Part, RawJson, ResultContent, Role};
use token_estimate::HeuristicEstimator;

use crate::script::{accounting, log};

/// A picture with 1,000 bytes of Base64.
fn picture(n: usize) -> Part {
    Part::Image(Media {
        media_type: "image/png".to_owned(),
        source: MediaSource::Data(format!("{n:04}").repeat(250)),
    })
}

/// Returns twelve messages with a picture each, every second one in a tool's result.
fn entries() -> Vec<LogEntry> {
    let mut messages = Vec::new();
    for n in 0..6 {
        messages.push(Message::new(
            Role::User,
            vec![Part::text(format!("Picture {n}")), picture(n)],
        ));
        let id = format!("c{n}");
        messages.push(Message::tool_call(
            &id,
            "shot",
            RawJson::parse("{}").unwrap(),
        ));
        let content = ResultContent::Parts(vec![Part::text("taken"), picture(100 + n)]);
        let result = Part::ToolResult {
            call_id: id,
            content,
            is_error: None,
        };
        messages.push(Message::new(Role::Tool, vec![result]));
    }
    log(messages, &accounting(HeuristicEstimator::Bytes4))
}

fn assembled(
    entries: &[LogEntry],
    budget: Budget,
    policy: &AssemblyPolicy,
) -> Result<Context, ErrorKind> {
    let input = AssemblyInput {
        view_tokens: entries.last().map_or(0, |entry| entry.running),
        items: vec![Item::Raw(entries.to_vec())],
        ..AssemblyInput::default()
    };
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let context = assemble(&input, &Preamble::default(), budget, policy, &accounting);
    context.map_err(|error| error.kind())
}

/// Returns the numbers of the pictures that a context shows.
fn shown(context: &Context) -> Vec<usize> {
    let mut shown = Vec::new();
    for part in context.messages.iter().flat_map(|message| &message.parts) {
        let parts = match part {
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            } => parts,
            part => std::slice::from_ref(part),
        };
        for part in parts {
            if let Part::Image(Media {
                source: MediaSource::Data(data),
                ..
            }) = part
            {
                shown.push(data.get(..4).unwrap().parse().unwrap());
            }
        }
    }
    shown
}

/// Returns the size of a context's parts in bytes, computed with another serializer.
fn bytes(context: &Context) -> usize {
    let parts = context.messages.iter().flat_map(|message| &message.parts);
    parts
        .map(|part| serde_json::to_value(part).unwrap().to_string().len())
        .sum()
}

#[test]
fn the_latest_pictures_stay() {
    let entries = entries();
    let once = AssemblyPolicy::once();
    let context = assembled(&entries, Budget::tokens(100_000).with_pictures(3), &once).unwrap();
    assert_eq!(shown(&context), [104, 5, 105]);
    assert_eq!(context.receipt.media_left_out, 9);
    let first = &context.messages[0];
    assert_eq!(
        first.parts[1],
        Part::text("[… image left out; expand message:1 …]")
    );
    let none = assembled(&entries, Budget::tokens(100_000).with_pictures(0), &once).unwrap();
    assert!(shown(&none).is_empty());
    let all = assembled(&entries, Budget::tokens(100_000).with_pictures(12), &once).unwrap();
    assert_eq!((shown(&all).len(), all.receipt.media_left_out), (12, 0));
}

/// In a live session, the beginning of contexts stays the same while pictures are added.
#[test]
fn pictures_go_in_steps() {
    let entries = entries();
    let mut left_out = Vec::new();
    for upto in 1..=entries.len() {
        let budget = Budget::tokens(100_000).with_pictures(4);
        let context = assembled(&entries[..upto], budget, &AssemblyPolicy::default()).unwrap();
        assert!(shown(&context).len() <= 4);
        left_out.push(context.receipt.media_left_out);
    }
    assert_eq!(
        left_out,
        [0, 0, 0, 0, 0, 0, 2, 2, 2, 4, 4, 4, 6, 6, 6, 8, 8, 8]
    );
}

#[test]
fn bytes_are_never_exceeded_and_pictures_go_before_text() {
    let entries = entries();
    let once = AssemblyPolicy::once();
    let whole = assembled(&entries, Budget::tokens(100_000), &once).unwrap();
    let all = bytes(&whole);
    assert!(all > 12_000);
    for most in [all, all - 1, 9_000, 5_000, 2_500, 1_200, 700] {
        let budget = Budget::tokens(100_000).with_bytes(most as u64);
        let context = assembled(&entries, budget, &once).unwrap();
        assert!(bytes(&context) <= most, "{most}");
        // As many pictures as fit, with one remark for each omitted picture.
        assert!(
            (shown(&context).len() + 1) * 1_070 + 1_500 >= most.min(all),
            "{most}"
        );
        if most >= 2_500 {
            let texts = context
                .messages
                .iter()
                .filter(|one| matches!(one.source, MessageOrigin::Message { .. }));
            assert_eq!(texts.count(), entries.len(), "{most}");
        }
    }
    let error = assembled(&entries, Budget::tokens(100_000).with_bytes(20), &once).unwrap_err();
    assert!(matches!(error, ErrorKind::TooFewBytes { needed } if needed > 20));
    let tail = AssemblyPolicy {
        whole_tail: Some(4),
        ..once
    };
    let budget = Budget::tokens(100_000).with_bytes(200);
    let error = assembled(&entries, budget, &tail).unwrap_err();
    assert!(matches!(error, ErrorKind::TooFewBytes { needed } if needed > 200));
}

/// Returns a conversation in which the fifth message is a request with three pictures, which is being worked on.
fn working_on_pictures() -> Vec<LogEntry> {
    let mut messages = Vec::new();
    for n in 0..2 {
        messages.push(Message::new(
            Role::User,
            vec![Part::text("An old one."), picture(n)],
        ));
        messages.push(Message::assistant("Seen. ".repeat(400)));
    }
    let mut parts = vec![Part::text("Compare these. ".repeat(400))];
    parts.extend((10..13).map(picture));
    messages.push(Message::new(Role::User, parts));
    for n in 0..20 {
        let id = format!("c{n}");
        let arguments = RawJson::parse("{}").unwrap();
        messages.push(Message::tool_call(&id, "look", arguments));
        messages.push(Message::tool_result(&id, "lines of a tool ".repeat(100)));
    }
    log(messages, &accounting(HeuristicEstimator::Bytes4))
}

fn worked_on(budget: Budget) -> Context {
    let entries = working_on_pictures();
    let input = AssemblyInput {
        view_tokens: entries.last().map_or(0, |entry| entry.running),
        requested: vec![entries[4].seq],
        items: vec![Item::Raw(entries)],
        ..AssemblyInput::default()
    };
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let once = AssemblyPolicy::once();
    let context = assemble(&input, &Preamble::default(), budget, &once, &accounting).unwrap();
    assert!(context.tokens <= budget.get());
    context
}

#[test]
fn the_pictures_of_the_request_stay_with_it() {
    for budget in [6_500, 8_000, 12_000] {
        let context = worked_on(Budget::tokens(budget));
        assert_eq!(shown(&context), [10, 11, 12], "{budget}");
        assert_eq!(context.dropped_request(), None, "{budget}");
    }
    // Without room for all, the oldest of them go, and each leaves a remark.
    let context = worked_on(Budget::tokens(4_500));
    assert_eq!(shown(&context), [11, 12]);
    let text = render_text(&context.messages);
    assert!(text.contains("image left out; expand message:5"), "{text}");
    assert!(shown(&worked_on(Budget::tokens(2_000))).is_empty());
}

#[test]
fn limits_on_pictures_and_bytes_leave_out_others_before_those_of_the_request() {
    for (limits, expected) in [
        (
            Budget::tokens(100_000).with_pictures(4),
            vec![1, 10, 11, 12],
        ),
        (Budget::tokens(100_000).with_pictures(3), vec![10, 11, 12]),
        (Budget::tokens(100_000).with_pictures(2), vec![11, 12]),
    ] {
        assert_eq!(shown(&worked_on(limits)), expected);
    }
    let whole = bytes(&worked_on(Budget::tokens(100_000))) as u64;
    let context = worked_on(Budget::tokens(100_000).with_bytes(whole - 1_900));
    assert_eq!(shown(&context), [10, 11, 12]);
}

#[test]
fn long_pictures_in_texts_are_shown_as_notes_and_cost_as_images() {
    let data = format!("iVBORw0KGgo{}", "aB3/".repeat(2_000));
    let json = format!(r#"[{{"type":"image","data":"{data}","mimeType":"image/png"}}]"#);
    let call = Message::tool_call("c", "shot", RawJson::parse("{}").unwrap());
    let messages = vec![
        Message::user("Take one."),
        call,
        Message::tool_result("c", json),
    ];
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let entries = log(messages, &accounting);
    assert!(entries[2].tokens < 1_700, "{}", entries[2].tokens);
    let context = assembled(&entries, Budget::tokens(2_000), &AssemblyPolicy::once()).unwrap();
    let text = render_text(&context.messages);
    assert!(
        text.contains(r#"[{"type":"image","data":"[about 6006 bytes]","mimeType":"image/png"}]"#),
        "{text}"
    );
    assert!(matches!(
        context.messages[2].source,
        MessageOrigin::Trimmed { .. }
    ));
}
