use std::sync::Arc;

use memory_model::conventions::{AgentConventions, Rejection, ToolOutcome, ToolUse};
use memory_model::{Message, Part, RawJson, Role, Seq};
use retrieval_tools::{FilesArgs, RetrievalLimits, UseKind, UseOutcome};
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::world::{Set, World, at, range, used};

fn call(id: &str, tool: &str, arguments: &str) -> Message {
    Message::tool_call(id, tool, RawJson::parse(arguments).unwrap())
}

/// The messages of an agent that reads, edits and runs. One call fails, one has no result, and one result comes late.
async fn work() -> World {
    let world = World::new().await;
    let edit = r#"{"path":"src/main.rs","old_string":"a","new_string":"b"}"#;
    let said = vec![
        Message::user("Please fix main.rs."),
        call("c1", "read_file", r#"{"path":"src/main.rs"}"#),
        Message::tool_result("c1", "fn main() {}"),
        call("c2", "edit_file", edit),
        Message::failed_result("c2", "no match"),
        call("c3", "edit_file", edit),
        Message::tool_result("c3", "ok"),
        call("c4", "bash", r#"{"command":"cargo test --workspace"}"#),
        Message::tool_result("c4", "all passed"),
        call("c5", "bash", r#"{"command":"sed -i s/x/y/ ./src/main.rs"}"#),
        // A repeated id belongs to the nearest call.
        call("c1", "read_file", r#"{"path":"README.md"}"#),
        Message::tool_result("c1", "# Readme"),
        Message::assistant("Done; main.rs is fixed."),
    ];
    let said = said.into_iter().enumerate();
    let said = said.map(|(n, message)| message.with_created_at(at(n as i64)));
    world.say(said.collect()).await;
    world
}

fn seqs(answer: &retrieval_tools::FilesAnswer) -> Vec<u32> {
    answer.uses.iter().map(|one| one.seq.0).collect()
}

#[tokio::test]
async fn who_changed_this_file_and_how_was_that_run() {
    let world = work().await;
    // The answer is the same before and after compaction.
    world.leaf(range(1, 9), "A fix.").await;
    let tools = world.tools();
    let of = async |args: FilesArgs| tools.files(args).await.unwrap();
    let at_path = |path: &str| FilesArgs::default().set(|it| it.path = Some(path.into()));
    let main = of(at_path("main.rs")).await;
    assert_eq!(seqs(&main), [10, 6, 4, 2], "the last first");
    let outcomes: Vec<UseOutcome> = main.uses.iter().map(|one| one.outcome).collect();
    use UseOutcome::{Done, Failed, Unanswered};
    assert_eq!(outcomes, [Unanswered, Done, Failed, Done]);
    assert_eq!(main.uses[3].result_seq, Some(Seq(3)));
    let changed = at_path("src/main.rs").set(|it| it.action = Some(UseKind::Changed));
    let run = of(FilesArgs::default().set(|it| it.command = Some("CARGO test".into()))).await;
    assert_eq!(
        run.uses[0].command.as_deref(),
        Some("cargo test --workspace")
    );
    assert_eq!(seqs(&run), [8]);
    for (args, found) in [
        (changed, &[6, 4][..]),
        (at_path("README.md"), &[11]),
        (at_path("src/"), &[10, 6, 4, 2]),
        (FilesArgs::default(), &[11, 10, 8, 6, 4, 2]),
    ] {
        assert_eq!(seqs(&of(args.clone()).await), found, "{args:?}");
    }
    let none = of(at_path("domain.rs")).await;
    assert_eq!(none.to_text(), "No uses found.\n");
    insta::assert_snapshot!("files_text", main.to_text());
    insta::assert_json_snapshot!("files_json", main);
}

#[tokio::test]
async fn pages_hold_every_use_once_with_its_outcome() {
    let world = World::new().await;
    let mut said = Vec::new();
    for n in 0..30 {
        // Three calls in a message. Their results come later, the last one much later.
        let part = |k: u32| Part::ToolCall {
            id: format!("{n}-{k}"),
            name: "bash".to_owned(),
            arguments: RawJson::parse(format!(r#"{{"command":"make {n} {k}"}}"#)).unwrap(),
        };
        said.push(Message::new(
            Role::Assistant,
            vec![part(0), part(1), part(2)],
        ));
        for k in 0..3 {
            let id = format!("{n}-{k}");
            said.push(match k {
                1 => Message::failed_result(id, "no"),
                _ => Message::tool_result(id, "yes"),
            });
        }
    }
    world.say(said).await;
    let tools = world.tools();
    let at_most = |limit: usize| FilesArgs::default().set(|it| it.limit = limit);
    let whole = tools.files(at_most(100)).await.unwrap();
    assert_eq!((whole.uses.len(), whole.complete), (90, true));
    for (limit, most) in [(1, 8_000), (4, 8_000), (100, 200), (7, 90)] {
        let limits = RetrievalLimits::default().set(|it| it.answer_tokens = most);
        let tools = tools.clone().with_limits(limits);
        let answers = used(&tools, at_most(limit)).await;
        for answer in &answers {
            let cost = HeuristicEstimator::Bytes4.text(&answer.to_text());
            assert!(
                cost <= most && answer.uses.len() <= limit,
                "{cost} of {most}"
            );
        }
        let all: Vec<_> = answers.into_iter().flat_map(|answer| answer.uses).collect();
        assert_eq!(all, whole.uses, "{limit} {most}");
    }
    let cursor = tools.files(at_most(1)).await.unwrap().cursor;
    assert!(cursor.is_some());
    let other = at_most(1).set(|it| (it.path, it.cursor) = (Some("x".into()), cursor));
    assert!(tools.files(other).await.is_err());
}

/// Conventions of an agent with results that report a refusal of the user in words.
#[derive(Debug)]
struct Refusing;

impl AgentConventions for Refusing {
    fn id(&self) -> &str {
        "refusing@1"
    }

    fn tool_result<'a>(
        &self,
        _: Option<&ToolUse>,
        text: &'a str,
        is_error: bool,
    ) -> ToolOutcome<'a> {
        let reason = text.strip_prefix("refused: ");
        ToolOutcome {
            text: text.into(),
            is_error,
            is_interrupted: false,
            rejection: reason.map(|reason| Rejection {
                notice: "refused: ",
                reason,
            }),
        }
    }
}

#[tokio::test]
async fn conventions_give_the_outcome_of_a_result() {
    let world = World::new().await;
    let said = vec![
        call("c1", "bash", r#"{"command":"rm -rf /"}"#),
        Message::tool_result("c1", "refused: never"),
    ];
    world.say(said).await;
    let outcome = async |tools: retrieval_tools::Retrieval| {
        tools.files(FilesArgs::default()).await.unwrap().uses[0].outcome
    };
    assert_eq!(outcome(world.tools()).await, UseOutcome::Done);
    let tools = world.tools().with_conventions(Arc::new(Refusing));
    assert_eq!(outcome(tools).await, UseOutcome::Refused);
}

#[tokio::test]
async fn a_huge_command_is_clipped() {
    let world = World::new().await;
    let command = format!(r#"{{"command":"echo {}"}}"#, "緑".repeat(90_000));
    world.say(vec![call("c1", "bash", &command)]).await;
    for most in [80, 500, 8_000] {
        let limits = RetrievalLimits::default().set(|it| it.answer_tokens = most);
        let tools = world.tools().with_limits(limits);
        let answer = tools.files(FilesArgs::default()).await.unwrap();
        let cost = HeuristicEstimator::Bytes4.text(&answer.to_text());
        assert!(cost <= most, "{cost} of {most}");
        assert!(answer.uses[0].command.as_ref().unwrap().ends_with('…'));
    }
}
