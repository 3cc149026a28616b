//! Limits on pictures and bytes.

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, ErrorKind, Item, MessageOrigin, Preamble,
    assemble,
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

/// With steps, the beginning of contexts stays the same while pictures are added.
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
