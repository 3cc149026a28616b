//! Summaries of observations, whose least relevant lines are left out once all of them cost too much together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_memory::dropping::{DROP, DropPolicy};
use agent_memory::retrieval::ExpandedChild;
use agent_memory::testing::memory;
use agent_memory::{
    Action, Budget, Builder, DagPolicy, FreshTail, Ladder, Message, Mode, Part, RedoPolicy,
    RunnerPolicy, Session, StopReason, Summarizer, SummarizerResponse, Summary, SummaryRequest,
    Trigger, TurnPolicy, Window,
};
use memory_model::Child;
use summarize_escalation::{Error, Source};

use crate::support::{both, said, talk};

const MARKS: [&str; 4] = ["low", "medium", "high", "critical"];

/// Writes an observation for each message, and leaves out those that its answer names.
#[derive(Debug, Default)]
struct Observer {
    answer: AtomicU64,
    /// How often it was asked which lines to leave out.
    choices: AtomicU64,
}

/// Answers to the question which lines to leave out.
const THE_LOW_ONES: u64 = 0;
const NONSENSE: u64 = 1;
const NONE: u64 = 2;
const FAILS: u64 = 3;

#[async_trait::async_trait]
impl Summarizer for Observer {
    fn id(&self) -> &str {
        "observer@1"
    }

    fn model(&self) -> Option<&str> {
        Some("observer")
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        if !request.drop_lines {
            let note = |piece: &Source<'_>| {
                let at = piece.range().first.0;
                let mark = MARKS[at as usize % 4];
                format!("2026-03-02 09:00 [{mark}] Step {at} was done.")
            };
            let notes: Vec<String> = request.source.iter().map(note).collect();
            return Ok(SummarizerResponse::new(notes.join("\n")));
        }
        self.choices.fetch_add(1, Ordering::SeqCst);
        let [Source::Summary(summary)] = request.source else {
            panic!("{request:?}")
        };
        let lines = summary.text.split('\n').zip(1..);
        let low = lines.filter(|(line, _)| line.contains("[low]"));
        let low: Vec<u32> = low.map(|(_, number)| number).collect();
        Ok(SummarizerResponse::new(
            match self.answer.load(Ordering::SeqCst) {
                THE_LOW_ONES => format!("{low:?}"),
                NONSENSE => "The low ones can go.".to_owned(),
                NONE => "[]".to_owned(),
                _ => return Err(Error::provider("observer@1", "503 service unavailable")),
            },
        ))
    }
}

fn policy(most: u64, target: u64) -> DropPolicy {
    DropPolicy {
        max_tokens: most,
        target_tokens: target,
    }
}

/// The `n`th message of a conversation, about 120 tokens long.
fn work(n: usize) -> Message {
    let mut message = said(n);
    for part in &mut message.parts {
        if let Part::Text { text } = part {
            *text = text.repeat(4);
        }
    }
    message
}

/// Stores the messages of a conversation from the `first` on.
async fn works(session: &Session, first: usize, count: usize) {
    let messages: Vec<Message> = (first..first + count).map(work).collect();
    let _ = session.ingest_batch(messages).await.unwrap();
}

/// Leaves over 4,000 tokens of messages; summaries are not condensed.
fn builder(drop: Option<DropPolicy>) -> Builder {
    let tail = FreshTail {
        messages: 4,
        max_tokens: None,
        max_part: None,
    };
    let dag = DagPolicy {
        fresh_tail: tail,
        max_source_tokens: Some(4_000),
        condensed_min: 1_000,
        condensed_max: None,
        ..DagPolicy::default()
    };
    let builder = memory().dag(dag).ladder(Ladder {
        gate: None,
        ..Ladder::default()
    });
    match drop {
        Some(policy) => builder.drop_observations(policy),
        None => builder,
    }
}

fn observing(observer: &Arc<Observer>, drop: Option<DropPolicy>) -> Builder {
    builder(drop).summarizer(Arc::clone(observer) as Arc<dyn Summarizer>)
}

/// The summaries that the view shows.
async fn shown(session: &Session) -> Vec<Summary> {
    let spans = session.spans().await.unwrap();
    let ids = spans.iter().filter_map(|span| span.body.summary().cloned());
    let ids: Vec<_> = ids.collect();
    let found = session.summaries(&ids).await.unwrap();
    found.into_iter().flatten().collect()
}

fn tokens(summaries: &[Summary]) -> u64 {
    summaries.iter().map(|summary| summary.tokens).sum()
}

/// The summary that another was made from by leaving out lines; holds every line of it against that one's.
async fn before(session: &Session, summary: &Summary) -> Summary {
    let [Child::Summary { id, range }] = &summary.sources[..] else {
        panic!("{summary:?}")
    };
    assert_eq!(*range, summary.range);
    let old = session.summaries(std::slice::from_ref(id)).await.unwrap();
    let old = old[0].clone().expect("nothing is lost");
    assert_eq!(summary.children, old.children);
    assert_eq!(summary.depth, old.depth);
    let mut lines = old.text().split('\n');
    for line in summary.text().split('\n') {
        assert!(
            lines.any(|one| one == line),
            "{line} is not in order in {old:?}"
        );
    }
    old
}

/// Holds that a summary is unfolded to each of its messages.
async fn unfolds(session: &Session, summary: &Summary) {
    let answer = session
        .retrieval()
        .expand(summary.id.as_str())
        .await
        .unwrap();
    let seqs = answer.children.iter().map(|child| match child {
        ExpandedChild::Message(message) => message.seq,
        other => panic!("{other:?}"),
    });
    let seqs: Vec<_> = seqs.collect();
    let all: Vec<_> = session.entries_in(summary.range).await.unwrap().items;
    assert_eq!(seqs, all.iter().map(|entry| entry.seq).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_model_drops_single_observations_so_that_all_together_stay_within_a_limit() {
    let observer = Arc::new(Observer::default());
    for place in both(|| observing(&observer, Some(policy(7_000, 5_000)))).await {
        let session = place.memory.session("s").await.unwrap();
        let (mut dropped, mut whole) = (0, 0);
        for turn in 0..36 {
            works(&session, turn * 10 + 1, 10).await;
            let outcome = session.compact(Mode::Full).await.unwrap();
            assert_eq!(outcome.failure, None);
            dropped += outcome.published.get(DROP.as_str());
            let tokens = tokens(&shown(&session).await);
            assert!(tokens <= 7_000, "turn {turn}: {tokens}");
            whole += u64::from(dropped == 0);
        }
        assert!(
            whole > 10 && dropped > 5,
            "{}: {whole} {dropped}",
            place.name
        );
        let mut gone = 0;
        for summary in shown(&session).await {
            if summary.recipe.as_str().contains("drop-lines@1") {
                assert!(!summary.provisional);
                assert_eq!(summary.tier, "normal");
                let old = before(&session, &summary).await;
                let critical = |text: &str| text.matches("[critical]").count();
                assert!(!summary.text().contains("[low]"), "{}", summary.text());
                assert_eq!(critical(summary.text()), critical(old.text()));
                let meta = summary.meta.as_ref().unwrap().as_str();
                assert!(meta.contains("\"dropped_lines\":"), "{meta}");
                gone += 1;
            }
            unfolds(&session, &summary).await;
        }
        assert!(gone > 5, "{gone}");
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_model_that_answers_nonsense_drops_nothing_and_is_not_asked_twice() {
    for (answer, is_fault) in [(NONSENSE, true), (NONE, false)] {
        let observer = Arc::new(Observer::default());
        observer.answer.store(answer, Ordering::SeqCst);
        // The limit leaves room for what is there where a model names no line of it.
        let most = if is_fault { 300 } else { 2_500 };
        for place in both(|| observing(&observer, Some(policy(most, 200)))).await {
            observer.choices.store(0, Ordering::SeqCst);
            let session = place.memory.session("s").await.unwrap();
            works(&session, 1, 140).await;
            let outcome = session.compact(Mode::Full).await.unwrap();
            assert!(outcome.published.get("leaf") >= 3, "{outcome:?}");
            let causes = &outcome.model.causes;
            let told = causes.iter().any(|one| one.cause.kind == "no_choice");
            let summaries = shown(&session).await;
            for summary in &summaries {
                let lines = summary.text().split('\n').count();
                assert!(is_fault || tokens(&summaries) <= most);
                assert!(!is_fault || lines == summary.range.len() as usize);
                assert!(!summary.provisional);
            }
            if !is_fault {
                continue;
            }
            assert!(told);
            assert_eq!(outcome.published.get(DROP.as_str()), 0, "{}", place.name);
            assert!(tokens(&summaries) > most);
            let asked = observer.choices.load(Ordering::SeqCst);
            assert_eq!(asked, summaries.len() as u64);
            // The same state is not tried again.
            let again = session.compact(Mode::Full).await.unwrap();
            assert_eq!(again.stop_reason, StopReason::Exhausted);
            assert_eq!(observer.choices.load(Ordering::SeqCst), asked);
        }
    }
}

#[tokio::test]
async fn without_a_model_ranks_decide() {
    let drop = policy(3_000, 2_000);
    for place in both(|| builder(None)).await {
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 600).await;
        let _ = session.compact(Mode::Full).await.unwrap();
        let whole = shown(&session).await;
        assert!(tokens(&whole) > 3_000, "{}", tokens(&whole));
        let place = place.reopen(builder(Some(drop))).await;
        let session = place.memory.session("s").await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert_eq!(outcome.published.get(DROP.as_str()), whole.len() as u64);
        let summaries = shown(&session).await;
        assert!(tokens(&summaries) <= 3_000, "{}", tokens(&summaries));
        for summary in &summaries {
            assert!(summary.provisional && summary.model.is_none());
            let old = before(&session, summary).await;
            let mut stay = summary.text().split('\n').peekable();
            let (mut kept, mut gone) = (Vec::new(), Vec::new());
            for line in old.body.lines() {
                match stay.next_if_eq(&line.text) {
                    Some(_) => kept.push(line.rank),
                    None => gone.push(line.rank),
                }
            }
            assert!(!gone.is_empty() && stay.next().is_none());
            assert!(gone.iter().max() <= kept.iter().min(), "{gone:?} {kept:?}");
            unfolds(&session, summary).await;
        }
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_choice_that_was_made_without_the_model_is_made_again_with_it() {
    let observer = Arc::new(Observer::default());
    for place in both(|| observing(&observer, Some(policy(2_000, 1_600)))).await {
        observer.answer.store(FAILS, Ordering::SeqCst);
        let session = place.memory.session("s").await.unwrap();
        works(&session, 1, 140).await;
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(outcome.published.get(DROP.as_str()) > 0, "{outcome:?}");
        let made = shown(&session).await;
        assert!(made.iter().any(|summary| summary.provisional));
        observer.answer.store(THE_LOW_ONES, Ordering::SeqCst);
        let report = session.redo(&RedoPolicy::default()).await.unwrap();
        assert_eq!((report.left, report.failures.len()), (0, 0), "{report:?}");
        let again = shown(&session).await;
        assert!(
            tokens(&again) <= 2_000,
            "{} after {}",
            tokens(&again),
            tokens(&made)
        );
        for summary in &again {
            assert!(!summary.provisional);
            before(&session, summary).await;
            assert!(!summary.text().contains("[low]"));
        }
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn observations_are_dropped_ahead_and_a_turn_never_waits_for_it() {
    let observer = Arc::new(Observer::default());
    let builder = observing(&observer, Some(policy(3_000, 2_000)))
        .runner(RunnerPolicy {
            prefetch_min_tokens: 2_000,
            ..RunnerPolicy::default()
        })
        .turns(TurnPolicy {
            soft: Trigger::Absolute { tokens: 0 },
            hard: Trigger::Reserve { tokens: 8_192 },
            after_turn: Action::Prefetch,
            ..TurnPolicy::manual()
        });
    let session = builder.open().await.unwrap().session("s").await.unwrap();
    let window = Window::new(24_000);
    let mut dropped = 0;
    for turn in 0..80 {
        works(&session, turn * 10 + 1, 10).await;
        let report = session.after_turn(&window).await.unwrap();
        assert_eq!(report.failure, None);
        for outcome in &report.compactions {
            assert_eq!(outcome.calls, 0, "what was chosen is there already");
            dropped += outcome.published.get(DROP.as_str());
        }
    }
    assert!(dropped > 0);
    assert!(session.verify().await.unwrap().is_ok());
    let context = session.assemble(Budget::tokens(20_000)).await.unwrap();
    assert!(context.tokens <= 20_000);
}
