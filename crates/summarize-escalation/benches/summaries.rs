//! What summarising costs besides the model: prompts, the gate, extracts, cuts, and a whole climb.
//! `cargo bench -p summarize-escalation`; each bench checks what it made.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::hint::black_box;
use std::time::Duration;

use async_trait::async_trait;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memory_model::{LogEntry, Message, RawJson};
use model_client::{ChatModel, ChatPrompt, Completion, Failure};
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::testing::{self, Scripted};
use summarize_escalation::{
    ExtractiveSummarizer, Ladder, LlmSummarizer, ModelWindow, Source, Summarizer, SummaryRequest,
    Tier, cut_to_tokens, escalate, measure,
};
use token_estimate::{TokenEstimator, default_estimator};

/// Tokens of the source, about: the most that the default policy gives to one summary.
const SOURCE: u64 = 20_000;

/// A session of coding: wishes, calls, results and answers, none of them twice.
fn session() -> Vec<LogEntry> {
    let mut messages = Vec::new();
    for n in 0..110 {
        messages.push(Message::user(format!(
            "Please look at step {n}: the parser drops the last token of line {}. Never change the \
             public API of src/module_{n}.rs!",
            n * 7
        )));
        let arguments = format!("{{\"path\":\"/code/crumb/src/module_{n}.rs\"}}");
        messages.push(Message::tool_call(
            format!("c{n}"),
            "read",
            RawJson::parse(&arguments).unwrap(),
        ));
        let body = format!("    let token_{n} = self.next_token()?; // of line {n}\n").repeat(4);
        messages.push(Message::tool_result(
            format!("c{n}"),
            format!("fn parse_{n}(&mut self) -> Option<Token> {{\n{body}}}\n"),
        ));
        messages.push(Message::assistant(format!(
            "The cause is in `parse_{n}`: it returns at the comment instead of skipping it. I fixed \
             that in src/module_{n}.rs, and all {} tests pass.",
            n + 3
        )));
    }
    testing::log(messages, &default_estimator())
}

fn group<'c>(
    criterion: &'c mut Criterion,
    name: &str,
    bytes: usize,
) -> criterion::BenchmarkGroup<'c, criterion::measurement::WallTime> {
    let mut group = criterion.benchmark_group(format!("summarize-escalation/{name}"));
    group.throughput(Throughput::Bytes(bytes as u64));
    group.sample_size(20);
    group.measurement_time(Duration::from_secs(3));
    group
}

/// Answers with the first words of its prompt, as many as asked for.
#[derive(Debug)]
struct Head;

#[async_trait]
impl ChatModel for Head {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let words = prompt.user.split_whitespace();
        let words = words.filter(|word| !word.contains(['<', '>', '=']));
        let most = usize::try_from(prompt.max_tokens / 6).unwrap();
        Ok(Completion::new(
            words.take(most).collect::<Vec<_>>().join(" "),
        ))
    }
}

fn summaries(criterion: &mut Criterion) {
    let estimator = default_estimator();
    let log = session();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &estimator);
    let tokens = request.source_tokens();
    assert!(tokens.abs_diff(SOURCE) < SOURCE / 4, "{tokens} tokens");
    let request = SummaryRequest {
        target_tokens: tokens / 3,
        ..request
    };
    let bytes = log.iter().map(|entry| entry.text().len()).sum();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();

    let prompts = PromptSet::standard();
    group(criterion, "prompt", bytes).bench_function("standard", |bench| {
        bench.iter(|| {
            let prompt = prompts.render(black_box(&request));
            assert!(prompt.user.contains("module_109.rs") && prompt.max_tokens > tokens / 2);
            prompt
        });
    });

    for share in [3, 10] {
        let request = SummaryRequest {
            target_tokens: tokens / share,
            ..request
        };
        group(criterion, "extract", bytes).bench_function(format!("1 in {share}"), |bench| {
            bench.iter(|| {
                let text = runtime
                    .block_on(ExtractiveSummarizer::new().summarize(black_box(&request)))
                    .unwrap();
                let cost = estimator.text(&text.text);
                assert!(
                    cost <= tokens / share && cost * 2 > tokens / share,
                    "{cost}"
                );
                text
            });
        });
    }

    let extract = runtime
        .block_on(ExtractiveSummarizer::new().summarize(&request))
        .unwrap()
        .text;
    group(criterion, "gate", bytes).bench_function("measure", |bench| {
        bench.iter(|| {
            let scores = measure(black_box(&extract), &request);
            assert!(scores.paths.found > 0 && !scores.other_language && !scores.echo);
            scores
        });
    });

    let long: String = log.iter().map(|entry| entry.text()).collect();
    group(criterion, "cut", long.len()).bench_function("1000 tokens", |bench| {
        bench.iter(|| {
            let cut = cut_to_tokens(black_box(&long), 1_000, &estimator).unwrap();
            assert!((900..=1_000).contains(&estimator.text(&cut)));
            cut
        });
    });

    let ladder = Ladder::default();
    let model = Scripted::head_cut();
    group(criterion, "climb", bytes).bench_function("accepted at once", |bench| {
        bench.iter(|| {
            let outcome = runtime
                .block_on(escalate(&model, &ladder, &request))
                .unwrap();
            assert_eq!((outcome.tier, outcome.model_calls), (Tier::Normal, 1));
            outcome
        });
    });
    let parts = LlmSummarizer::new("head", Head).with_window(ModelWindow::tokens(8_000));
    group(criterion, "climb", bytes).bench_function("window of 8000", |bench| {
        bench.iter(|| {
            let text = runtime.block_on(parts.summarize(&request)).unwrap();
            assert!(text.calls > 2 && estimator.text(&text.text) < tokens / 3);
            text
        });
    });
}

criterion_group!(benches, summaries);
criterion_main!(benches);
