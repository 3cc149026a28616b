//! Whole contexts as text.

use context_assembler::{AssemblyPolicy, Budget, Preamble, assemble, render_text};
use memory_model::{Media, MediaSource, Message, Part, RawJson, Role};
use token_estimate::HeuristicEstimator;

use crate::script::{Shown, accounting, input, log};

/// Returns a conversation with all special cases.
fn conversation() -> Vec<Message> {
    let call = |id: &str, path: &str| {
        let arguments = RawJson::parse(format!(r#"{{"path":"{path}"}}"#)).unwrap();
        Message::tool_call(id, "read", arguments)
    };
    let image = Part::Image(Media {
        media_type: "image/png".to_owned(),
        source: MediaSource::Data("A".repeat(40)),
    });
    vec![
        Message::user("Where is the port set?").with_name("ada"),
        Message::assistant("I shall look in both files.").with_response("r1"),
        call("c1", "a.toml").with_response("r1"),
        Message::tool_result("c1", "port = 80\nhost = \"x\""),
        call("c2", "b.toml").with_response("r1"),
        Message::note(Role::System, vec![Part::text("model changed")]),
        Message::user("Be quick."),
        Message::assistant("In a.toml, line 1."),
        Message::tool_result("c2", "not found"),
        Message::new(Role::User, vec![Part::text("And here?"), image]),
        call("c3", "c.toml"),
    ]
}

fn shown(messages: Vec<Message>, stretches: &[(usize, Shown)], budget: u64) -> String {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let entries = log(messages, &accounting);
    let input = input(&entries, stretches, &accounting);
    let policy = AssemblyPolicy::default();
    let identity = Some("You help with configuration.");
    let context = assemble(
        &input,
        &Preamble {
            identity,
            ..Default::default()
        },
        Budget::tokens(budget),
        &policy,
        &accounting,
    )
    .unwrap();
    let mut text = render_text(&context.messages);
    text += &format!("{} of {} tokens\n", context.tokens, context.budget);
    for dropped in &context.receipt.dropped {
        text += &format!(
            "dropped {}-{}: {}\n",
            dropped.first, dropped.last, dropped.tokens
        );
    }
    for d in &context.receipt.degraded {
        let (from, to) = (d.from_tokens, d.to_tokens);
        text += &format!("{:?} {}-{}: {from} to {to}\n", d.step, d.first, d.last);
    }
    text += &format!("stubbed {:?}\n", context.receipt.stubbed_calls);
    text
}

#[test]
fn joined_lines_stubs_and_a_late_result() {
    insta::assert_snapshot!(shown(conversation(), &[], 2_000));
}

#[test]
fn a_summary_an_omission_and_later_messages() {
    let stretches = [
        (
            1,
            Shown::Summary {
                bytes: 40,
                depth: 0,
            },
        ),
        (2, Shown::Omitted),
    ];
    insta::assert_snapshot!(shown(conversation(), &stretches, 2_000));
}

#[test]
fn the_oldest_are_dropped() {
    insta::assert_snapshot!(shown(conversation()[..9].to_vec(), &[], 60));
}

/// The latest group, with less and less room.
#[test]
fn the_steps_of_degradation() {
    let line = |n: usize| {
        let arguments = RawJson::parse(r#"{"path":"src/main.rs"}"#).unwrap();
        Message::tool_call(format!("c{n}"), "read", arguments).with_response("r")
    };
    let result = |n: usize| {
        let text = (0..20).map(|line| format!("line {line} of result {n}\n"));
        Message::tool_result(format!("c{n}"), text.collect::<String>())
    };
    let messages: Vec<Message> = (0..3).flat_map(|n| [line(n), result(n)]).collect();
    let mut text = String::new();
    for budget in [400, 320, 120, 70, 25] {
        text += &format!("== {budget}\n{}", shown(messages.clone(), &[], budget));
    }
    insta::assert_snapshot!(text);
}
