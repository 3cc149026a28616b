//! 400 calls of an agent with tools, in windows of several sizes. Checks whether a context leaves out content that a
//! summary could cover, and the real costs of contexts.

use std::collections::HashMap;
use std::sync::Arc;

use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Context, Message, Part, RawJson, Role, Seq, Session, Window,
    model::{Span, SpanBody},
    tokens::{ObservedUsage, Usage as ResponseUsage, estimator},
};
use memory_model::Accounting;

use crate::corpus::is_deep;
use crate::laws::random::Random;
use crate::support::Inspect as _;
use crate::support::say;

/// Number of model calls in one conversation.
const CALLS: usize = 400;
/// Number of model calls between two messages of the user.
const CALLS_PER_TURN: usize = 8;
/// Words of about one token each.
const WORDS: [&str; 24] = [
    "the", "module", "parser", "returns", "error", "line", "token", "config", "value", "test",
    "passes", "fails", "because", "cache", "was", "not", "flushed", "before", "request", "retry",
    "builds", "with", "feature", "flag",
];

/// Quality of the model's summaries.
#[derive(Debug, Clone, Copy)]
enum Model {
    Well,
    FailsAThird,
    Dead,
}

impl Model {
    fn scripted(self) -> Scripted {
        match self {
            Model::Well => Scripted::head_cut(),
            Model::Dead => Scripted::fails(),
            Model::FailsAThird => Scripted::new((0..3 * CALLS).map(|n| match n % 3 {
                2 => Answer::fail("503 service unavailable"),
                _ => Answer::HeadCut,
            })),
        }
    }
}

fn text(random: &mut Random, words: u64) -> String {
    let mut text = String::new();
    for n in 0..words {
        text.push_str(random.pick(&WORDS));
        match n % 12 {
            11 => text.push_str(&format!(
                " src/part_{}.rs:{}\n",
                random.below(90),
                random.below(900)
            )),
            _ => text.push(' '),
        }
    }
    text
}

/// Returns a tool's result of 200 to 2,000 words. Every tenth result is half as long again.
fn result(random: &mut Random, n: usize) -> String {
    let words = 200 + random.below(1_600);
    text(random, words + if n % 10 == 9 { words / 2 } else { 0 })
}

/// Counts the tokens of contexts with the tokenizer o200k. Counts of earlier messages are cached.
struct RealCount {
    counted: HashMap<(Role, String), u64>,
    accounting: context_assembler::ContextAccounting,
}

impl RealCount {
    fn new() -> Self {
        let exact = estimator("o200k").expect("token-estimate is built with the feature exact");
        Self {
            counted: HashMap::new(),
            accounting: context_assembler::ContextAccounting::new(exact),
        }
    }

    fn context(&mut self, context: &Context) -> u64 {
        let mut sum = self.accounting.estimator().request_overhead();
        for message in &context.messages {
            let key = (message.role, format!("{:?}", message.parts));
            let accounting = &self.accounting;
            sum += *self
                .counted
                .entry(key)
                .or_insert_with(|| accounting.parts(message.role, &message.parts));
        }
        sum
    }
}

/// Figures of a run of the loop.
#[derive(Debug, Default)]
struct Seen {
    /// Number of contexts that left out or shortened content.
    left_out: usize,
    /// Number of contexts that left out content that a summary could cover.
    summarisable: usize,
    /// Largest exact number of tokens of a context.
    largest: u64,
    /// Number of published summaries.
    published: usize,
}

/// Returns whether a summary could cover content that the context leaves out, by the view's spans and the log. It could
/// cover unchanged messages outside of the last group. It could cover summaries if two of them are neighbours and the
/// remaining content leaves room for them.
fn summarisable(context: &Context, spans: &[Span], newest_group: Seq, newest_tokens: u64) -> bool {
    let dropped = &context.receipt.dropped;
    let is_out = |span: &Span| {
        dropped.iter().any(|d| {
            d.first < newest_group
                && span.range.first <= d.last
                && span.range.last.is_none_or(|last| last >= d.first)
        })
    };
    let raw = spans
        .iter()
        .any(|span| span.body == SpanBody::Raw && is_out(span));
    let neighbours = spans
        .windows(2)
        .any(|pair| pair.iter().all(|s| s.body.summary().is_some()) && pair.iter().any(is_out));
    raw || (neighbours && newest_tokens < context.receipt.limit)
}

/// Returns the first position and the cost of the last call with its results.
async fn newest_group(session: &Session) -> (Seq, u64) {
    let log = session.entries().await.unwrap();
    let start = log
        .iter()
        .rposition(|entry| entry.role == Role::Assistant)
        .unwrap_or(0);
    let start = match log.last() {
        Some(last) if last.role == Role::Tool => start,
        _ => log.len() - 1,
    };
    (
        log[start].seq,
        log[start..].iter().map(|entry| entry.tokens).sum(),
    )
}

async fn run(window: Window, model: Model, usage: bool, real: &mut RealCount) -> Seen {
    let memory = memory()
        .summarizer(Arc::new(model.scripted()))
        .open()
        .await
        .unwrap();
    let session = memory.session("loop").window(window).await.unwrap();
    let mut random = Random(7);
    let mut seen = Seen::default();
    let mut published = Vec::new();
    for n in 0..CALLS {
        if n % CALLS_PER_TURN == 0 {
            let before = session.before_turn().await.unwrap();
            published.extend(before.compactions.into_iter().flat_map(|c| c.summaries));
            let question = format!("Task {n}: {}", text(&mut random, 40));
            session.ingest(Message::user(question)).await.unwrap();
        }
        let call = session.context().await.unwrap();
        let context = &call.context;
        published.extend(
            call.report
                .compactions
                .iter()
                .flat_map(|c| c.summaries.clone()),
        );
        let cost = real.context(context);
        seen.largest = seen.largest.max(cost);
        if !context.receipt.dropped.is_empty() || !context.receipt.degraded.is_empty() {
            seen.left_out += 1;
            let (newest, tokens) = newest_group(&session).await;
            let spans = session.spans().await.unwrap();
            seen.summarisable += usize::from(summarisable(context, &spans, newest, tokens));
        }
        let id = format!("call-{n}");
        let arguments = RawJson::parse(format!(r#"{{"path":"src/part_{n}.rs"}}"#)).unwrap();
        let parts = vec![
            Part::text(text(&mut random, 30)),
            Part::ToolCall {
                id: id.clone(),
                name: "read_file".to_owned(),
                arguments,
            },
        ];
        say(&session, Message::new(Role::Assistant, parts)).await;
        if usage {
            let input = cost + window.system_tokens;
            let usage = ResponseUsage {
                input,
                output: 60,
                ..ResponseUsage::default()
            };
            let mut observed = ObservedUsage::new("model", usage).with_context(context);
            observed.other_tokens = window.system_tokens;
            assert!(session.observe_usage(&observed).await.unwrap());
        }
        let result = Message::tool_result(&id, result(&mut random, n));
        session.ingest(result).await.unwrap();
        if n % CALLS_PER_TURN == CALLS_PER_TURN - 1 {
            let done = format!("Done: {}", text(&mut random, 40));
            session.ingest(Message::assistant(done)).await.unwrap();
            let after = session.after_turn().await.unwrap();
            published.extend(after.compactions.into_iter().flat_map(|c| c.summaries));
        }
    }
    seen.published = published.len();
    assert!(session.verify().await.unwrap().is_ok());
    seen
}

/// Returns the windows: three in which history was lost in the past, and a small one.
fn windows() -> [(&'static str, Window); 4] {
    [
        ("8k", Window::new(8_192)),
        ("16k", Window::new(16_384)),
        (
            "32k, 2k system",
            Window {
                system_tokens: 2_000,
                ..Window::new(32_768)
            },
        ),
        (
            "128k, 40k system",
            Window {
                system_tokens: 40_000,
                ..Window::new(131_072)
            },
        ),
    ]
}

#[tokio::test]
async fn no_context_of_a_small_window_leaves_out_what_a_summary_could_stand_for() {
    nothing_is_left_out(&windows()[..2]).await;
}

#[tokio::test]
async fn no_context_of_a_large_window_leaves_out_what_a_summary_could_stand_for() {
    nothing_is_left_out(&windows()[2..]).await;
}

async fn nothing_is_left_out(windows: &[(&str, Window)]) {
    let mut real = RealCount::new();
    let mut wrong = Vec::new();
    let models = [
        (Model::Well, false),
        (Model::Dead, false),
        (Model::FailsAThird, false),
        (Model::Well, true),
    ];
    for (n, &(name, window)) in windows.iter().enumerate() {
        // The short form plays each kind of model in one of the two windows.
        let models = match is_deep() {
            true => &models[..],
            false => models.chunks(2).nth(n).unwrap(),
        };
        for &(model, usage) in models {
            let seen = run(window, model, usage, &mut real).await;
            let budget = window.budget().get();
            if seen.summarisable > 0 || seen.left_out > 0 || seen.largest > budget {
                wrong.push(format!("{name}, {model:?}, usage {usage}: {seen:?}"));
            }
            assert!(
                seen.published > 0,
                "{name}, {model:?}: nothing was published"
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
