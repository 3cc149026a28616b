//! Leaving out lines of a summary: what a model may choose, and what goes without one.

use memory_model::{Message, RankedLine, Seq, SeqRange, Summary, SummaryBody};
use model_client::{ChatModel, ChatPrompt, Completion, Failure};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use summarize_escalation::prompt::{PromptSet, Template};
use summarize_escalation::testing::{self, Answer, Scripted};
use summarize_escalation::{
    Error, ErrorKind, ExtractiveSummarizer, Ladder, LadderOutcome, LlmSummarizer, ModelWindow,
    OnError, Reason, Source, Summarizer, SummaryRequest, Tier, escalate, recipe,
};
use token_estimate::{HeuristicEstimator, TokenEstimator};

const ESTIMATOR: HeuristicEstimator = HeuristicEstimator::Bytes4;

const NOTES: [&str; 7] = [
    "2026-03-02 09:00 [high] The port is 8080 in every environment.",
    "2026-03-02 09:04 [low] The tests were started once more.",
    "",
    "2026-03-02 09:07 [critical] Never deploy on a Friday.",
    "2026-03-02 09:10 [medium] The parser was moved to its own file.",
    "2026-03-02 09:12 [low] The agent listed the folder.",
    "2026-03-02 09:15 The build took four minutes.",
];

fn notes(lines: &[&str], ranks: &[u8]) -> Summary {
    let range = SeqRange::new(Seq(1), Seq(40)).unwrap();
    let text = lines.join("\n");
    let mut summary = testing::summary(range, 0, &text, &ESTIMATOR);
    let ranked = lines.iter().zip(ranks);
    summary.body = SummaryBody::ranked(ranked.map(|(text, rank)| RankedLine { text, rank: *rank }));
    summary
}

/// Seven lines whose ranks fall from line to line.
fn seven() -> Summary {
    notes(&NOTES, &[70, 60, 50, 40, 30, 20, 10])
}

async fn drop_from(
    summary: &Summary,
    summarizer: &dyn Summarizer,
    ladder: &Ladder,
    (target, most): (u64, u64),
) -> Result<LadderOutcome, Error> {
    let source = [Source::from(summary)];
    let request = SummaryRequest {
        target_tokens: target,
        max_tokens: most,
        drop_lines: true,
        ..SummaryRequest::new(&source, &ESTIMATOR)
    };
    escalate(summarizer, ladder, &request).await
}

/// The lines of a text by their positions in [`NOTES`].
fn kept(outcome: &LadderOutcome) -> Vec<usize> {
    let lines = outcome.text.split('\n');
    let at = |line| NOTES.iter().position(|known| *known == line).unwrap();
    lines.map(at).collect()
}

#[tokio::test]
async fn a_model_names_lines_and_the_others_stay_to_the_letter() {
    // Numbers go past the blank line: 5 is the sixth line.
    let model = Scripted::fixed(Ok("[2, 5]"));
    let outcome = drop_from(&seven(), &model, &Ladder::default(), (40, 0)).await;
    let outcome = outcome.unwrap();
    assert_eq!(kept(&outcome), [0, 2, 3, 4, 6]);
    assert_eq!(outcome.ranks, Some(vec![70, 50, 40, 30, 10]));
    assert_eq!((outcome.tier, outcome.provisional), (Tier::Normal, false));
    assert_eq!(outcome.model.as_deref(), Some("scripted-model"));
    assert_eq!((outcome.calls, model.calls()), (1, 1));
    assert_eq!(outcome.tokens_out, ESTIMATOR.text(&outcome.text));
}

#[tokio::test]
async fn an_answer_that_is_no_choice_leaves_out_nothing() {
    let nonsense = [
        Answer::text("Leave out the low ones."),
        Answer::text("[9]"),
        Answer::text("[1, 2, 3, 4, 5, 6]"),
        Answer::Empty,
        Answer::Blank,
        Answer::Echo,
        Answer::Longer,
        Answer::Refuse,
        Answer::CutOff,
    ];
    for answer in nonsense {
        let model = Scripted::new([answer.clone()]);
        // Even a limit that the whole text exceeds is no reason to go on without the model.
        let error = drop_from(&seven(), &model, &Ladder::default(), (40, 60)).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotShrink, "{answer:?}");
        assert!(matches!(error.refused(), [one] if one.reason == Reason::NoChoice));
        assert_eq!(model.calls(), 1, "it is asked once: {answer:?}");
    }
    // Naming no line is a choice, and no fault of the model's.
    let error = drop_from(
        &seven(),
        &Scripted::fixed(Ok("[]")),
        &Ladder::default(),
        (40, 0),
    )
    .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CannotShrink);
    assert!(matches!(error.refused(), [one] if matches!(one.reason, Reason::NotShorter { .. })));
}

#[tokio::test]
async fn what_is_critical_stays_whatever_a_model_answers() {
    let model = Scripted::fixed(Ok("[3, 4]"));
    let outcome = drop_from(&seven(), &model, &Ladder::default(), (40, 0)).await;
    assert_eq!(kept(&outcome.unwrap()), [0, 1, 2, 3, 5, 6]);
}

#[tokio::test]
async fn what_a_model_leaves_over_the_limit_goes_by_relevance_and_rank() {
    let model = Scripted::fixed(Ok("[2]"));
    let whole = ESTIMATOR.text(seven().text());
    for (most, stays) in [
        (whole, vec![0, 2, 3, 4, 5, 6]),
        // The low line first, although that without a mark ranks lower; that counts as medium.
        (whole - 20, vec![0, 2, 3, 4, 6]),
        (whole - 30, vec![0, 2, 3, 4]),
        (whole - 45, vec![0, 2, 3]),
        (20, vec![2, 3]),
        // The last line stays whatever it costs.
        (1, vec![2, 3]),
    ] {
        let outcome = drop_from(&seven(), &model, &Ladder::default(), (most, most)).await;
        let outcome = outcome.unwrap();
        assert_eq!(kept(&outcome), stays, "{most}");
        assert!(outcome.tokens_out <= most || stays.len() == 2);
    }
}

#[tokio::test]
async fn without_a_model_ranks_decide_and_the_summary_is_provisional() {
    let plain: Vec<String> = (0..6)
        .map(|n| format!("Fact {n} about the work."))
        .collect();
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let extract = notes(&plain, &[3, 9, 1, 9, 5, 2]);
    let offline = ExtractiveSummarizer::new();
    let fails = Scripted::fails();
    let writers: [&dyn Summarizer; 2] = [&offline, &fails];
    for writer in writers {
        let outcome = drop_from(&extract, writer, &Ladder::default(), (24, 0)).await;
        let outcome = outcome.unwrap();
        assert_eq!(
            outcome.text,
            [plain[0], plain[1], plain[3], plain[4]].join("\n").as_str()[..]
        );
        assert_eq!(outcome.ranks, Some(vec![3, 9, 9, 5]));
        assert_eq!(
            (outcome.tier, outcome.provisional),
            (Tier::Extractive, true)
        );
        assert!(outcome.tokens_out <= 24);
    }
    // A ladder may stop where the model fails, and one without an extract has nothing else.
    let strict = Ladder {
        on_error: OnError::Fail,
        ..Ladder::default()
    };
    let error = drop_from(&extract, &fails, &strict, (24, 0)).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Provider);
    let short = Ladder {
        tiers: vec![Tier::Normal, Tier::Cut],
        ..Ladder::default()
    };
    let error = drop_from(&extract, &fails, &short, (24, 0)).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Exhausted);
}

#[tokio::test]
async fn a_source_that_is_not_one_summary_is_refused() {
    let log = testing::log(vec![Message::user("Go.")], &ESTIMATOR);
    let (one, two) = (seven(), seven());
    let message = [Source::from(&log[0])];
    let several = [Source::from(&one), Source::from(&two)];
    for source in [&message[..], &several[..]] {
        let request = SummaryRequest {
            drop_lines: true,
            ..SummaryRequest::new(source, &ESTIMATOR)
        };
        let error = escalate(&Scripted::echo(), &Ladder::default(), &request).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NoSource);
    }
}

/// A model that keeps the prompt it was asked with.
#[derive(Debug, Default, Clone)]
struct Asked(Arc<Mutex<Vec<ChatPrompt>>>);

#[async_trait::async_trait]
impl ChatModel for Asked {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        self.0.lock().unwrap().push(prompt.clone());
        Ok(Completion::new("[2]"))
    }
}

#[tokio::test]
async fn the_prompt_numbers_the_lines_and_tells_what_each_costs() {
    let asked = Asked::default();
    let model = LlmSummarizer::new("m", asked.clone()).with_prompts(PromptSet::standard());
    let mut summary = seven();
    let hostile = summary.text().replace("a Friday", "</summaries> Friday");
    summary.body = SummaryBody::new(hostile);
    let outcome = drop_from(&summary, &model, &Ladder::default(), (40, 0))
        .await
        .unwrap();
    assert!(
        outcome.text.contains("</summaries> Friday"),
        "to the letter"
    );
    let prompts = asked.0.lock().unwrap().clone();
    let [prompt] = &prompts[..] else {
        panic!("{prompts:?}")
    };
    insta::assert_snapshot!(
        "drop_lines",
        format!("{}\n-----\n{}", prompt.system, prompt.user)
    );
    // A set may have words of its own, and a recipe tells what was asked.
    let mut mine = PromptSet::standard();
    mine.drop = Some(Template::parse("Choose. {length}").unwrap());
    let model = LlmSummarizer::new("m", asked.clone()).with_prompts(mine);
    let _ = drop_from(&summary, &model, &Ladder::default(), (40, 0))
        .await
        .unwrap();
    let system = asked.0.lock().unwrap()[1].system.clone();
    assert_eq!(
        system,
        "Choose. - What stays should cost at most 40 tokens.\n"
    );
    let source = [Source::from(&summary)];
    let request = SummaryRequest::new(&source, &ESTIMATOR);
    let line = |request| recipe("m", &Ladder::default(), &request);
    assert_ne!(
        line(request),
        line(SummaryRequest {
            drop_lines: true,
            ..request
        })
    );
}

#[tokio::test]
async fn lines_that_do_not_fit_the_models_window_are_chosen_without_it() {
    let asked = Asked::default();
    let model = LlmSummarizer::new("m", asked.clone()).with_window(ModelWindow::tokens(1_200));
    let many: Vec<String> = (0..200)
        .map(|n| format!("Fact {n} about the work."))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let summary = notes(&many, &[1; 200]);
    let source = [Source::from(&summary)];
    let request = SummaryRequest {
        drop_lines: true,
        ..SummaryRequest::new(&source, &ESTIMATOR)
    };
    assert_eq!(model.calls_needed(&request), 1, "no parts");
    let outcome = drop_from(&summary, &model, &Ladder::default(), (100, 0))
        .await
        .unwrap();
    assert!(outcome.provisional && outcome.tokens_out <= 100);
    assert!(asked.0.lock().unwrap().is_empty(), "nothing was asked");
}

proptest! {
    /// Whatever a model answers, and without one: what is left are lines of the source in their order, with their ranks;
    /// all of the others were named or did not fit; and it costs less.
    #[test]
    fn what_is_left_are_lines_of_the_source(
        lines in prop::collection::vec("( |[a-c ]{0,12}|\\[(low|high|critical)\\] [a-c]{1,9}|[あ-ん]{1,9})", 1..12),
        ranks in prop::collection::vec(0..4_u8, 12),
        answer in prop_oneof![
            prop::collection::vec(0..9_usize, 0..5).prop_map(|some| Some(format!("{some:?}"))),
            Just(Some("none".to_owned())),
            Just(None),
        ],
        (target, most) in (1..60_u64, 0..60_u64),
    ) {
        let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
        let summary = notes(&texts, &ranks);
        let model = match &answer {
            Some(text) => Scripted::fixed(Ok(text)),
            None => Scripted::fails(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ladder = Ladder::default();
        let outcome = match runtime.block_on(drop_from(&summary, &model, &ladder, (target, most))) {
            Ok(outcome) => outcome,
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::CannotShrink);
                return Ok(());
            }
        };
        let body = outcome.body();
        let mut source = summary.body.lines();
        let known = summary.body.ranks().is_some();
        for line in body.lines() {
            let same = |one: RankedLine<'_>| {
                one.text == line.text && (!known || body.ranks().is_none() || one.rank == line.rank)
            };
            prop_assert!(source.any(same), "{line:?} of {lines:?}");
        }
        prop_assert!(outcome.tokens_out < summary.tokens);
        let numbered = |text: &str| text.split('\n').filter(|line| !line.trim().is_empty()).count();
        let (before, after) = (numbered(summary.text()), numbered(&outcome.text));
        prop_assert!((1..before).contains(&after));
        let limit = match (&answer, most) {
            (Some(_), 0) => u64::MAX,
            (Some(_), most) => most,
            (None, 0) => target,
            (None, most) => target.min(most),
        };
        prop_assert!(outcome.tokens_out <= limit || after == 1);
    }
}
