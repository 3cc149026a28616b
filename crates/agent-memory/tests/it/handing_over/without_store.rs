//! Handoffs of a list of messages, for programs that keep their own log.

use agent_memory::compaction::{Preparation, compact, prepare};
use agent_memory::context::ContextAccounting;
use agent_memory::model::{GenericConventions, LogEntry, Purpose};
use agent_memory::tokens::default_estimator;

use super::*;
use crate::support::Inspect as _;

/// A summarizer that records what it is asked for, and waits until `together` calls are under way.
#[derive(Debug)]
struct Asked {
    history: Scripted,
    prefix: Scripted,
    together: tokio::sync::Barrier,
    requests: Mutex<Vec<String>>,
}

impl Asked {
    fn new(together: usize, answers: [Answer; 2]) -> Self {
        let [history, prefix] = answers.map(|answer| Scripted::new([answer]));
        Self {
            history,
            prefix,
            together: tokio::sync::Barrier::new(together),
            requests: Mutex::default(),
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Summarizer for Asked {
    fn id(&self) -> &str {
        self.history.id()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, agent_memory::summaries::Error> {
        let prompt = agent_memory::summaries::PromptSet::checkpoint().render(request);
        let (target, most) = (request.target_tokens, request.max_tokens);
        self.requests.lock().unwrap().push(format!(
            "{:?} {target} {most} {} {:?} {prompt:?}",
            request.purpose, request.overhead_tokens, request.instructions
        ));
        self.together.wait().await;
        match request.purpose {
            Purpose::TurnPrefix => self.prefix.summarize(request).await,
            _ => self.history.summarize(request).await,
        }
    }
}

fn splitting() -> HandoffPolicy {
    HandoffPolicy {
        split_turns: true,
        ..keeping(2)
    }
}

fn prepared(
    log: &[LogEntry],
    previous: Option<&agent_memory::model::Summary>,
) -> Option<Preparation> {
    prepare(log, previous, &splitting(), &GenericConventions)
}

/// A turn with the files that it reads and writes, which a handoff splits.
fn long_turn(from: usize) -> Vec<Message> {
    let path = |name: &str| format!(r#"{{"file_path":"/srv/crumb/{name}","content":"x"}}"#);
    let mut turn = vec![said(from)];
    for n in from + 1..from + 5 {
        turn.push(call(&format!("w{n}"), "write_file", &path("lib.rs")));
        turn.push(Message::tool_result(format!("w{n}"), said(n).text()));
    }
    turn.push(Message::assistant(said(from + 5).text()));
    turn.push(Message::assistant("Is there more?"));
    turn
}

#[tokio::test]
async fn summaries_are_written_without_a_store_as_the_engine_writes_them() {
    let answers = || {
        [
            Answer::text("Earlier steps."),
            Answer::text("The turn so far."),
        ]
    };
    let in_store = Arc::new(Asked::new(2, answers()));
    let builder = memory().summarizer(in_store.clone()).handoff(splitting());
    let session = open(builder).await;
    talk(&session, 8).await;
    let _ = session.ingest_batch(long_turn(9)).await.unwrap();
    let log = session.entries().await.unwrap();
    let accounting = ContextAccounting::new(default_estimator());

    let alone = Asked::new(2, answers());
    let plan = prepared(&log, None).unwrap();
    assert_eq!(plan.history_entries, log[..8]);
    assert_eq!(plan.turn_prefix_entries[0], log[8]);
    assert_eq!((plan.previous.as_ref(), &plan.policy), (None, &splitting()));
    let ladder = Ladder::default();
    let focus = Some("Keep the paths.");
    // Both calls are under way at the same time: the barrier opens for two.
    let result = compact(&plan, focus, &alone, &ladder, &accounting)
        .await
        .unwrap();
    assert_eq!(
        result.summary,
        "Earlier steps.\n\n---\n\n**Turn Context (split turn):**\n\nThe turn so far.".to_owned()
            + &plan.files.footer()
    );
    assert_eq!(result.tokens_before, Some(plan.tokens_before));
    let request = HandOver {
        instructions: focus.map(str::to_owned),
        ..HandOver::default()
    };
    let HandOverOutcome::Done(handoff) = session.hand_over(&request).await.unwrap() else {
        panic!("nothing was done");
    };
    assert_eq!(result.kept_from, handoff.kept_from.into());
    assert_eq!(alone.requests(), in_store.requests());

    // The next one goes on from the summary before, in the store and without it.
    let spans = session.spans().await.unwrap();
    let id = spans[0].body.summary().unwrap().clone();
    let before = session.summaries(&[id]).await.unwrap().remove(0).unwrap();
    let plan = prepared(&log, Some(&before)).unwrap();
    assert_eq!(
        (plan.history, plan.previous.as_ref()),
        (None, Some(&before))
    );
    let alone = Asked::new(1, answers());
    let result = compact(&plan, None, &alone, &ladder, &accounting)
        .await
        .unwrap();
    assert!(
        result.summary.starts_with("Earlier steps.\n\n---"),
        "{result:?}"
    );
}

#[tokio::test]
async fn files_are_in_the_summary_and_in_its_details_and_the_result_can_be_appended() {
    let session = open(memory().handoff(splitting())).await;
    let mut log = vec![said(1)];
    for (n, tool, name) in [(1, "Read", "notes.md"), (2, "Write", "lib.rs")] {
        let path = format!(r#"{{"file_path":"/srv/{name}","content":"x"}}"#);
        log.push(call(&format!("c{n}"), tool, &path));
        log.push(Message::tool_result(format!("c{n}"), said(n).text()));
    }
    log.extend((2..9).map(said));
    let log = (1..)
        .zip(log)
        .map(|(n, m)| m.with_external_id(format!("e{n}")));
    let _ = session.ingest_batch(log.collect()).await.unwrap();
    let log = session.entries().await.unwrap();
    let known = agent_memory::transcripts::KnownAgents;
    let plan = prepare(&log, None, &keeping(4), &known).unwrap();
    let model = Scripted::fixed(Ok("Done so far."));
    let accounting = ContextAccounting::new(default_estimator());
    let ladder = Ladder::default();
    let result = compact(&plan, None, &model, &ladder, &accounting)
        .await
        .unwrap();
    let footer = "\n\n<read-files>\n/srv/notes.md\n</read-files>\n\n<modified-files>\n/srv/lib.rs\n</modified-files>";
    assert_eq!(result.summary, format!("Done so far.{footer}"));
    let details = result.details.as_ref().unwrap().as_str();
    assert!(
        details.contains(r#""read_files":["/srv/notes.md"]"#),
        "{details}"
    );
    assert!(
        details.contains(r#""modified_files":["/srv/lib.rs"]"#),
        "{details}"
    );
    let handoff = session.append_compaction(&result).await.unwrap();
    assert_eq!(handoff.kept_from_id, plan.kept_from_id);
    assert_eq!(handoff.tokens_before, plan.tokens_before);
    let (summary, _) = shown(&session).await;
    assert_eq!(summary.matches("<read-files>").count(), 1, "{summary}");
}

#[tokio::test]
async fn without_a_store_too_both_summaries_are_written_or_neither() {
    let session = open(memory()).await;
    talk(&session, 8).await;
    let _ = session.ingest_batch(long_turn(9)).await.unwrap();
    let log = session.entries().await.unwrap();
    let plan = prepared(&log, None).unwrap();
    let accounting = ContextAccounting::new(default_estimator());
    let ladder = Ladder {
        tiers: vec![Tier::Normal],
        on_error: OnError::Fail,
        ..Ladder::default()
    };
    for (answers, label) in [
        (
            [Answer::text("Earlier steps."), Answer::fail("503")],
            "Turn prefix summarization failed: ",
        ),
        (
            [Answer::fail("503"), Answer::text("The turn so far.")],
            "Summarization failed: ",
        ),
    ] {
        let model = Asked::new(2, answers);
        let error = compact(&plan, None, &model, &ladder, &accounting).await;
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(label), "{error}");
        assert!(error.contains("503"), "{error}");
    }
}

#[tokio::test]
async fn the_files_of_each_round_without_a_store_are_listed_once() {
    let file = |id: &str, tool: &str, name: &str| {
        let path = format!(r#"{{"file_path":"/srv/{name}","content":"x"}}"#);
        [
            call(id, tool, &path),
            Message::tool_result(id, said(2).text()),
        ]
    };
    let mut messages = vec![said(1)];
    messages.extend(file("c1", "Read", "notes.md"));
    messages.extend(file("c2", "Write", "lib.rs"));
    messages.extend([said(4), said(5), said(6)]);
    let session = open(memory()).await;
    let _ = session.ingest_batch(messages).await.unwrap();
    let known = agent_memory::transcripts::KnownAgents;
    let accounting = ContextAccounting::new(default_estimator());
    let ladder = Ladder::default();
    let round = async |previous: Option<&agent_memory::model::Summary>, answer: &'static str| {
        let log = session.entries().await.unwrap();
        let plan = prepare(&log, previous, &splitting(), &known).unwrap();
        let model = Scripted::fixed(Ok(answer));
        let result = compact(&plan, None, &model, &ladder, &accounting).await;
        (plan, result.unwrap())
    };
    let (plan, first) = round(None, "Earlier steps.").await;
    assert_eq!((plan.turn_prefix, plan.kept_from), (None, Seq(7)));
    // The caller keeps the result as the summary of the next round.
    let range = plan.history.unwrap();
    let mut summary = agent_memory::model::Summary::new(
        range,
        0,
        vec![agent_memory::model::Child::Messages { range }],
        agent_memory::model::Hash::ZERO,
        memory_model::Recipe::new("a program's own"),
        first.summary.as_str(),
    );
    summary.meta = first.details;
    let mut turn = Vec::new();
    turn.extend(file("c3", "Edit", "notes.md"));
    turn.extend(file("c4", "Read", "todo.md"));
    turn.extend((8..12).map(|n| Message::assistant(said(n).text())));
    let _ = session.ingest_batch(turn).await.unwrap();
    let (plan, second) = round(Some(&summary), "The turn so far.").await;
    assert_eq!((plan.history, plan.is_split_turn()), (None, true));
    assert_eq!(
        second.summary,
        "Earlier steps.\n\n---\n\n**Turn Context (split turn):**\n\nThe turn so far.\n\n<read-files>\n/srv/todo.md\n\
         </read-files>\n\n<modified-files>\n/srv/lib.rs\n/srv/notes.md\n</modified-files>"
    );
}

#[tokio::test]
async fn a_split_turn_with_nothing_before_it_costs_one_call() {
    let answers = || {
        [
            Answer::text("Never asked for."),
            Answer::text("The turn so far."),
        ]
    };
    let accounting = ContextAccounting::new(default_estimator());
    let ladder = Ladder::default();
    let session = open(writing("Earlier steps.").handoff(keeping(11))).await;
    let _ = session.ingest_batch(long_turn(1)).await.unwrap();
    let log = session.entries().await.unwrap();
    let plan = prepared(&log, None).unwrap();
    assert_eq!((plan.history, plan.previous.as_ref()), (None, None));
    let alone = Asked::new(1, answers());
    let result = compact(&plan, None, &alone, &ladder, &accounting);
    let text = result.await.unwrap().summary;
    assert_eq!(text, format!("The turn so far.{}", plan.files.footer()));
    assert_eq!(alone.requests().len(), 1);

    // A summary before it stays as it is.
    let session = open(writing("Earlier steps.").handoff(keeping(11))).await;
    talk(&session, 8).await;
    let _ = session.ingest_batch(long_turn(9)).await.unwrap();
    let handoff = done(&session).await;
    let before = session.summaries(&handoff.summaries).await.unwrap();
    let before = before[0].as_ref();
    let log = session.entries().await.unwrap();
    let plan = prepared(&log, before).unwrap();
    assert_eq!((plan.history, plan.previous.as_ref()), (None, before));
    let alone = Asked::new(1, answers());
    let result = compact(&plan, None, &alone, &ladder, &accounting);
    let text = result.await.unwrap().summary;
    let expected = "Earlier steps.\n\n---\n\n**Turn Context (split turn):**\n\nThe turn so far.";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(alone.requests().len(), 1);
}
