use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use memory_model::{LogEntry, Message, RankedLine, Seq, SeqRange, SummaryBody};
use model_client::{ChatModel, ChatPrompt, Completion, Failure};
use summarize_escalation::testing::{self, Answer, Scripted};
use summarize_escalation::{
    CUT_NOTE, Error, ErrorKind, ExtractiveSummarizer, Ladder, LadderOutcome, LlmSummarizer,
    OnEmpty, OnError, Reason, Source, Style, Summarizer, SummarizerResponse, SummaryKind,
    SummaryRequest, Tier, escalate, prompt, recipe,
};
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::request;

/// Ten messages of 120 tokens each by bytes / 4; a third of them is 400.
fn log() -> Vec<LogEntry> {
    let messages = (0..10)
        .map(|n| {
            Message::user(
                format!("{n} {}", "word ".repeat(95))
                    .chars()
                    .take(480)
                    .collect::<String>(),
            )
        })
        .collect();
    let log = testing::log(messages, &HeuristicEstimator::Bytes4);
    assert!(
        log.iter()
            .all(|entry| entry.tokens == 120 || entry.tokens == 119),
        "{log:?}"
    );
    log
}

/// Normal, aggressive, cut; a failure or an empty answer is an error.
fn strict() -> Ladder {
    Ladder {
        tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Cut],
        on_error: OnError::Fail,
        on_empty: OnEmpty::Fail,
        gate: None,
        ..Ladder::default()
    }
}

/// A text of exactly `tokens` tokens by bytes / 4.
fn text_of(tokens: usize) -> String {
    "abcd".repeat(tokens)
}

async fn climb(
    summarizer: &dyn Summarizer,
    ladder: &Ladder,
    target: u64,
) -> Result<LadderOutcome, Error> {
    let log = log();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = request(&source, target);
    escalate(summarizer, ladder, &request).await
}

fn tiers(outcome: &LadderOutcome) -> Vec<Tier> {
    outcome.refused.iter().map(|refusal| refusal.tier).collect()
}

/// One row: what the summarizer answers, and what comes of it under a ladder.
struct Row {
    answers: Vec<Answer>,
    tier: Result<Tier, ErrorKind>,
    provisional: bool,
    calls: u32,
}

fn row(answers: &[Answer], tier: Result<Tier, ErrorKind>, provisional: bool, calls: u32) -> Row {
    Row {
        answers: answers.to_vec(),
        tier,
        provisional,
        calls,
    }
}

async fn check(ladder: &Ladder, rows: Vec<Row>) {
    for Row {
        answers,
        tier,
        provisional,
        calls,
    } in rows
    {
        let scripted = Scripted::new(answers.clone());
        let result = climb(&scripted, ladder, 100).await;
        let found = result.as_ref().map(|o| o.tier).map_err(Error::kind);
        assert_eq!(found, tier, "{answers:?}: {result:?}");
        assert_eq!(scripted.calls(), calls, "{answers:?}");
        if let Ok(outcome) = result {
            assert_eq!(outcome.provisional, provisional, "{answers:?}");
            assert_eq!(
                outcome.tokens_out,
                HeuristicEstimator::Bytes4.text(&outcome.text)
            );
        }
    }
}

#[tokio::test]
async fn the_default_ladder_row_by_row() {
    use Answer::{Blank, Echo, Empty, Longer};
    let ok = Answer::text(text_of(100));
    let long = Answer::text(text_of(151));
    let fail = Answer::fail("503");
    check(
        &Ladder::default(),
        vec![
            row(std::slice::from_ref(&ok), Ok(Tier::Normal), false, 1),
            row(&[Answer::text(text_of(150))], Ok(Tier::Normal), false, 1),
            row(&[long.clone(), ok.clone()], Ok(Tier::Aggressive), false, 2),
            row(&[long.clone(), long.clone()], Ok(Tier::Extractive), true, 2),
            row(&[Empty, ok.clone()], Ok(Tier::Aggressive), false, 2),
            row(&[Blank, Empty], Ok(Tier::Extractive), true, 2),
            row(&[Longer], Ok(Tier::Extractive), true, 2),
            row(&[Echo], Ok(Tier::Extractive), true, 2),
            // A provider that failed is not asked again.
            row(&[fail.clone(), ok.clone()], Ok(Tier::Extractive), true, 1),
            row(&[long, fail], Ok(Tier::Extractive), true, 2),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_strict_ladder_row_by_row() {
    use Answer::{Blank, Echo, Empty, Longer};
    let ok = Answer::text(text_of(100));
    let long = Answer::text(text_of(151));
    let fail = Answer::fail("503");
    check(
        &strict(),
        vec![
            row(&[Answer::text(text_of(150))], Ok(Tier::Normal), false, 1),
            row(&[long.clone(), ok.clone()], Ok(Tier::Aggressive), false, 2),
            row(&[long.clone(), long.clone()], Ok(Tier::Cut), true, 2),
            row(&[Empty, ok.clone()], Err(ErrorKind::Empty), false, 1),
            row(&[Blank], Err(ErrorKind::Empty), false, 1),
            row(&[Longer], Ok(Tier::Cut), true, 2),
            row(&[Echo], Ok(Tier::Cut), true, 2),
            row(&[fail.clone(), ok], Err(ErrorKind::Provider), false, 1),
            row(&[long, fail], Err(ErrorKind::Provider), false, 2),
        ],
    )
    .await;
}

#[tokio::test]
async fn styles_follow_the_tiers() {
    let scripted = Scripted::longer();
    let outcome = climb(&scripted, &strict(), 100).await.unwrap();
    assert_eq!(outcome.tier, Tier::Cut);
    assert_eq!(scripted.styles(), [Style::Normal, Style::Aggressive]);
}

#[tokio::test]
async fn the_aggressive_answer_is_cut_at_a_line() {
    let aggressive = format!("{}\n{}", "a".repeat(360), "b".repeat(400));
    let scripted = Scripted::new([Answer::text(text_of(200)), Answer::text(aggressive)]);
    let outcome = climb(&scripted, &strict(), 100).await.unwrap();
    assert_eq!(outcome.text, format!("{}\n{CUT_NOTE}", "a".repeat(360)));
    assert_eq!(tiers(&outcome), [Tier::Normal, Tier::Aggressive]);
}

#[tokio::test]
async fn the_boundary_is_exact() {
    for (target, accepted) in [(100_u64, 150_usize), (101, 151), (33, 49), (10, 15)] {
        for (tokens, tier) in [(accepted, Tier::Normal), (accepted + 1, Tier::Cut)] {
            let scripted = Scripted::fixed(Ok(&text_of(tokens)));
            let outcome = climb(&scripted, &strict(), target).await.unwrap();
            assert_eq!(outcome.tier, tier, "{target} {tokens}");
            if tier == Tier::Cut {
                let limit = accepted as u64;
                let tokens = tokens as u64;
                assert_eq!(outcome.refused[0].reason, Reason::TooLong { tokens, limit });
            }
        }
    }
}

#[tokio::test]
async fn targets_come_from_the_ladder() {
    let scripted = Scripted::head_cut();
    let outcome = climb(&scripted, &strict(), 0).await.unwrap();
    assert_eq!(outcome.target_tokens, outcome.tokens_in / 3);
    assert_eq!(outcome.tier, Tier::Normal);
    let range = SeqRange::new(Seq(1), Seq(9)).unwrap();
    let summary = testing::summary(range, 0, &text_of(500), &HeuristicEstimator::Bytes4);
    let source = [Source::from(&summary), Source::from(&summary)];
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    assert_eq!(
        (request.kind(), request.depth()),
        (SummaryKind::Condensed, 1)
    );
    let outcome = escalate(&scripted, &strict(), &request).await.unwrap();
    assert_eq!(outcome.target_tokens, 500);
}

#[tokio::test]
async fn a_rendered_summary_is_shorter_than_its_source() {
    let log = testing::log(
        vec![Message::user(text_of(40))],
        &HeuristicEstimator::Bytes4,
    );
    let source = [Source::from(&log[0])];
    let request = SummaryRequest {
        target_tokens: 30,
        overhead_tokens: 8,
        ..SummaryRequest::new(&source, &HeuristicEstimator::Bytes4)
    };
    let ended = |tokens| format!("{}.", text_of(tokens).split_at(tokens * 4 - 1).0);
    let scripted = Scripted::new([Answer::text(ended(32)), Answer::text(ended(31))]);
    let outcome = escalate(&scripted, &Ladder::default(), &request)
        .await
        .unwrap();
    assert_eq!(outcome.tier, Tier::Aggressive);
    assert_eq!(
        outcome.refused[0].reason,
        Reason::NotShorter {
            tokens: 40,
            source_tokens: 40
        }
    );
    // Nothing shorter than nothing.
    let scripted = Scripted::head_cut();
    let error = escalate(
        &scripted,
        &Ladder::default(),
        &SummaryRequest {
            overhead_tokens: 40,
            ..request
        },
    )
    .await
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotShrink);
    assert_eq!(scripted.calls(), 0);
    assert!(
        error.to_string().contains("messages 1-1 cost 40 tokens"),
        "{error}"
    );
}

#[tokio::test]
async fn an_offline_summarizer_is_the_extractive_tier() {
    let outcome = climb(&ExtractiveSummarizer::new(), &Ladder::default(), 100)
        .await
        .unwrap();
    assert_eq!((outcome.tier, outcome.calls), (Tier::Extractive, 1));
    assert_eq!(outcome.model, None);
    assert!(outcome.provisional && outcome.refused.is_empty());
    let outcome = climb(&ExtractiveSummarizer::new(), &strict(), 100)
        .await
        .unwrap();
    assert_eq!(outcome.tier, Tier::Normal);
    assert!(outcome.provisional);
}

/// The ranks are those of the summarizer, and there are none where nobody ranked the text or it was cut.
#[tokio::test]
async fn an_extract_keeps_its_ranks_and_other_texts_have_none() {
    let (log, estimator) = (log(), HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let extract = ExtractiveSummarizer::new();
    let outcome = climb(&extract, &Ladder::default(), 300).await.unwrap();
    let body = extract.extract_ranked(&source, 300, &estimator);
    assert!(body.ranks().is_some());
    assert_eq!(outcome.ranks.as_deref(), body.ranks());
    assert_eq!(outcome.body(), body);
    let ok = Scripted::new([Answer::text(text_of(100))]);
    let outcome = climb(&ok, &Ladder::default(), 100).await.unwrap();
    assert_eq!((outcome.tier, outcome.ranks), (Tier::Normal, None));
    let too_long = Ladder {
        tiers: vec![Tier::Extractive, Tier::Cut],
        ..Ladder::default()
    };
    let cut = climb(&LongExtract, &too_long, 100).await.unwrap();
    assert_eq!((cut.tier, cut.ranks), (Tier::Cut, None));
}

/// Writes ranked lines that are always too long.
#[derive(Debug)]
struct LongExtract;

#[async_trait::async_trait]
impl Summarizer for LongExtract {
    fn id(&self) -> &str {
        "long-extract@1"
    }

    fn provisional(&self) -> bool {
        true
    }

    async fn summarize(&self, _: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let line = "word ".repeat(200);
        let line = |rank| RankedLine { text: &line, rank };
        Ok(SummarizerResponse::ranked(&SummaryBody::ranked([
            line(1),
            line(2),
        ])))
    }
}

#[tokio::test]
async fn without_an_extractive_tier_the_source_is_cut() {
    let ladder = Ladder {
        tiers: vec![Tier::Normal, Tier::Cut],
        ..Ladder::default()
    };
    let outcome = climb(&Scripted::fails(), &ladder, 100).await.unwrap();
    assert_eq!(outcome.tier, Tier::Cut);
    assert!(outcome.provisional && outcome.tokens_out <= 100);
    assert!(outcome.text.starts_with("[user] 0 word"));
    assert!(
        outcome
            .recipe
            .as_str()
            .starts_with("summarizer=source-cut@1 ")
    );
    let reason = outcome.refused[0].to_string();
    assert!(
        reason.contains("fails@1") && reason.contains("503"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_ladder_may_stop() {
    let strict = Ladder {
        on_error: OnError::Fail,
        on_empty: OnEmpty::Fail,
        ..Ladder::default()
    };
    for (scripted, kind) in [
        (Scripted::fails(), ErrorKind::Provider),
        (Scripted::empty(), ErrorKind::Empty),
    ] {
        assert_eq!(
            climb(&scripted, &strict, 100).await.unwrap_err().kind(),
            kind
        );
    }
    let short = Ladder {
        tiers: vec![Tier::Normal, Tier::Aggressive],
        ..Ladder::default()
    };
    let error = climb(&Scripted::longer(), &short, 100).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted);
    assert!(error.to_string().contains("aggressive: "), "{error}");
    let again = Ladder {
        on_error: OnError::NextTier,
        ..short
    };
    let scripted = Scripted::new([Answer::fail("429"), Answer::text("fine")]);
    assert_eq!(
        climb(&scripted, &again, 100).await.unwrap().tier,
        Tier::Aggressive
    );
    let none = Ladder {
        tiers: vec![],
        ..Ladder::default()
    };
    assert_eq!(
        climb(&scripted, &none, 1).await.unwrap_err().kind(),
        ErrorKind::InvalidLadder
    );
    let request = SummaryRequest::new(&[], &HeuristicEstimator::Bytes4);
    let error = escalate(&scripted, &Ladder::default(), &request)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSource);
}

#[test]
fn a_summarizer_that_hangs_can_be_dropped() {
    let hangs = Scripted::hangs();
    let log = log();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    let ladder = Ladder::default();
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut future = pin!(escalate(&hangs, &ladder, &request));
        for _ in 0..3 {
            assert!(matches!(future.as_mut().poll(&mut context), Poll::Pending));
        }
    }
    assert_eq!(hangs.calls(), 1);
}

#[tokio::test]
async fn a_recipe_matches_only_the_summarizers_own_text() {
    let log = log();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    let ladder = Ladder::default();
    let foretold = recipe("scripted@1", &ladder, &request);
    assert_eq!(
        foretold.as_str(),
        "summarizer=scripted@1 ladder=default@2 kind=leaf target=1/3>=10 estimator=anna@2"
    );
    let target = request.source_tokens() / 3;
    assert_eq!(
        recipe(
            "scripted@1",
            &ladder,
            &SummaryRequest {
                target_tokens: target,
                ..request
            }
        ),
        foretold
    );
    for other in [
        recipe("other@1", &ladder, &request),
        recipe("scripted@1", &strict(), &request),
        recipe(
            "scripted@1",
            &ladder,
            &SummaryRequest {
                target_tokens: 7,
                ..request
            },
        ),
        recipe(
            "scripted@1",
            &ladder,
            &SummaryRequest {
                instructions: Some("mind the API"),
                ..request
            },
        ),
        recipe(
            "scripted@1",
            &ladder,
            &SummaryRequest {
                previous: Some("before"),
                ..request
            },
        ),
        recipe(
            "scripted@1",
            &ladder,
            &SummaryRequest {
                overhead_tokens: 9,
                ..request
            },
        ),
    ] {
        assert_ne!(other, foretold);
    }
    let good = Scripted::new([Answer::text("short")]);
    assert_eq!(
        escalate(&good, &ladder, &request).await.unwrap().recipe,
        foretold
    );
    let bad = Scripted::new([Answer::fail("500")]);
    let outcome = escalate(&bad, &ladder, &request).await.unwrap();
    assert_eq!(
        outcome.recipe,
        recipe(ExtractiveSummarizer::new().id(), &ladder, &request)
    );
}

#[derive(Debug)]
struct Reverses;

#[async_trait::async_trait]
impl ChatModel for Reverses {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        assert!(prompt.user.contains("<conversation_segment"));
        Ok(Completion::new("a summary"))
    }
}

#[tokio::test]
async fn a_model_is_asked_with_the_prompts() {
    let llm = LlmSummarizer::new("small-1", std::sync::Arc::new(Reverses));
    let outcome = climb(&llm, &Ladder::default(), 100).await.unwrap();
    assert_eq!(outcome.text, "a summary");
    assert_eq!(outcome.model.as_deref(), Some("small-1"));
    assert_eq!(
        outcome.summarizer,
        format!("small-1/{}", prompt::PROMPT_VERSION)
    );
    assert!(!outcome.provisional);
}

/// A model that writes notes before its summary.
#[derive(Debug)]
struct Tags;

#[async_trait::async_trait]
impl ChatModel for Tags {
    async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
        let text = "<analysis>First the modules.</analysis>\n<summary>They were renamed.</summary>";
        Ok(Completion::new(text))
    }
}

#[tokio::test]
async fn notes_are_no_part_of_the_summary_where_the_prompts_ask_for_them() {
    for (prompts, text) in [
        (prompt::PromptSet::numbered_sections(), "They were renamed."),
        (
            prompt::PromptSet::handoff_sections(),
            "<analysis>First the modules.</analysis>\n<summary>They were renamed.</summary>",
        ),
    ] {
        let llm = LlmSummarizer::new("m", std::sync::Arc::new(Tags)).with_prompts(prompts);
        let ladder = Ladder {
            gate: None,
            ..Ladder::default()
        };
        let outcome = climb(&llm, &ladder, 100).await.unwrap();
        assert_eq!(outcome.text, text);
    }
}
