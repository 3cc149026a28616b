//! Real transcripts with a model that fails in 60 of 100 calls, in ten ways. Nothing is lost. When the model works
//! again, every summary becomes the summary of a model that never failed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use agent_memory::replay::Replay;
use agent_memory::testing::{Scripted, memory};
use agent_memory::{
    DagPolicy, Memory, Message, Mode, Session, Summarizer, Window,
    compaction::{RedoPolicy, RedoStop},
    model::{Summary, SummaryId},
    models::GuardPolicy,
    summaries::{ExtractiveSummarizer, SummarizerResponse, SummaryRequest},
};
use memory_model::Accounting as _;
use message_formats::{KnownAgents, Transcript};
use summarize_escalation::testing::{Answer, FakeTimer, misbehaviours};
use summarize_escalation::{Error, Source};

use crate::corpus::{corpus, is_deep, parse, transcripts};
use crate::redo::{assert_sound_by, provisional, reached};
use crate::support::{Inspect as _, lenient};

/// Number of failing calls out of a hundred.
const FAILING: u64 = 60;
/// Maximum number of calls for one summary: two tiers ask the model, with at most three attempts each.
const CALLS_A_SUMMARY: u64 = 6;
/// Maximum number of summaries that are prefetched and never published: the summaries of one prefetch.
const AHEAD: u64 = 8;
/// Number of addresses, paths and identifiers that the model's summaries repeat.
const ADDRESSES: usize = 2;
const PATHS: usize = 4;
const IDENTIFIERS: usize = 4;
/// Number of bytes of an extract for each sentence of the model, in languages other than English.
const QUOTED: usize = 1_000;
const WINDOW: u64 = 32_000;

/// A model that writes good extracts, and fails in random calls until it is healed.
#[derive(Debug, Clone)]
struct Unreliable {
    bad: Vec<Scripted>,
    healthy: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    seed: u64,
}

impl Unreliable {
    fn new(seed: u64) -> Self {
        Self {
            // A text in another language passes the gate where the conversation's own is not clear.
            bad: misbehaviours()
                .into_iter()
                .filter(|answer| *answer != Answer::WrongLanguage)
                .map(|answer| Scripted::new([answer]))
                .collect(),
            healthy: Arc::default(),
            calls: Arc::default(),
            seed,
        }
    }

    fn healthy() -> Self {
        let made = Self::new(0);
        made.healthy.store(true, Ordering::SeqCst);
        made
    }

    /// Returns the random number of a call, by the mixing function of splitmix64.
    fn roll(&self, call: u64) -> u64 {
        let mut z = (self.seed.wrapping_add(call)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[async_trait::async_trait]
impl Summarizer for Unreliable {
    fn id(&self) -> &str {
        "extracts-by-a-model@1"
    }

    fn model(&self) -> Option<&str> {
        Some("extracts")
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let roll = self.roll(self.calls.fetch_add(1, Ordering::SeqCst));
        if self.healthy.load(Ordering::SeqCst) || roll % 100 >= FAILING {
            return good(request).await;
        }
        let bad = (roll / 100) as usize % self.bad.len();
        self.bad[bad].summarize(request).await
    }
}

/// Returns a good summary: an extract with sentences in the language of the conversation. It repeats some of the
/// addresses, paths and identifiers of its source.
async fn good(request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
    let extracts = ExtractiveSummarizer::new().with_conventions(Arc::new(KnownAgents));
    let mut extract = extracts.summarize(request).await?;
    let text = &mut extract.text;
    let has = |from: char, to: char| text.chars().any(|c| (from..=to).contains(&c));
    let own = if has('\u{3040}', '\u{30ff}') {
        "会話のここまでの経過を、後で読む人のためにまとめたものです。\n"
    } else if has('\u{ac00}', '\u{d7af}') {
        "나중에 읽을 사람을 위해 지금까지의 대화를 정리한 내용입니다.\n"
    } else {
        ""
    };
    text.insert_str(0, &own.repeat(1 + text.len() / QUOTED));
    let is_address = |word: &str| word.starts_with("https://");
    let is_path = |word: &str| word.starts_with('/') && word.len() > 8;
    name(text, words(request, false, is_address), ADDRESSES);
    name(text, words(request, true, is_path), PATHS);
    name(text, words(request, false, is_identifier), IDENTIFIERS);
    Ok(extract)
}

/// Returns whether a word is an identifier with an underscore.
fn is_identifier(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.len() > 3 && word.chars().all(is_name) && word.trim_matches('_').contains('_')
}

/// Adds words to a text until the text contains `most` of them.
fn name(text: &mut String, words: Vec<String>, most: usize) {
    let mut held = words.iter().filter(|word| text.contains(*word)).count();
    for word in words {
        if held < most && !text.contains(&word) {
            text.push_str(&format!("\n{word}"));
            held += 1;
        }
    }
}

/// Returns the different words of one kind in a source's messages or summaries, in order.
fn words(
    request: &SummaryRequest<'_>,
    of_messages: bool,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || "()<>[]{}`\"',;|".contains(c);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut add = |text: &str| {
        for word in text.split(ends).filter(|word| is_wanted(word)) {
            if seen.insert(word.to_owned()) {
                found.push(word.to_owned());
            }
        }
    };
    for piece in request.source {
        match piece {
            Source::Summary(summary) if !of_messages => add(summary.text),
            Source::Message(entry) if of_messages => entry.visit_texts(&mut |text| add(&text)),
            _ => {}
        }
    }
    found
}

/// Opens a memory in RAM with a fake timer, so that the test controls all waits.
async fn open(model: &Unreliable, policy: DagPolicy, timer: &Arc<FakeTimer>) -> Memory {
    let guards = GuardPolicy {
        breaker: None,
        ..GuardPolicy::default()
    };
    memory()
        .dag(policy)
        .summarizer(Arc::new(model.clone()))
        .ladder(lenient())
        .guards(agent_memory::models::Guards::new(guards, timer.clone()))
        .open()
        .await
        .unwrap()
}

fn files() -> Vec<(String, Transcript)> {
    let Some(corpus) = corpus() else {
        return Vec::new();
    };
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, parse(&std::fs::read(path).unwrap()))
    };
    transcripts(&corpus).iter().map(|path| read(path)).collect()
}

async fn redo(session: &Session) {
    let redone = session.redo(RedoPolicy::default()).await.unwrap();
    assert_eq!(redone.stop_reason, RedoStop::Done, "{:?}", redone.failures);
    assert_eq!(redone.left, 0);
    assert_eq!(provisional(session).await, 0);
}

#[test]
fn nothing_is_lost_and_redo_makes_it_good() {
    for (name, transcript) in files() {
        let timer = Arc::new(FakeTimer::new());
        let work = async {
            let model = Unreliable::new(0x5eed);
            let memory = open(&model, DagPolicy::for_window(WINDOW), &timer).await;
            for log in &transcript.sessions {
                model.healthy.store(false, Ordering::SeqCst);
                let before = model.calls.load(Ordering::SeqCst);
                let session = memory.open_log(log).await.unwrap();
                let session = session.in_window(Window::new(WINDOW)).await;
                let replay = Replay::new(&session);
                let replayed = replay.run(&log.messages).await.unwrap();
                assert!(replayed.broken.is_empty(), "{name}: {:?}", replayed.broken);
                let calls = model.calls.load(Ordering::SeqCst) - before;
                let made = replayed.published.total();
                assert!(
                    calls <= CALLS_A_SUMMARY * (made + AHEAD),
                    "{name}: {calls} calls for {made} summaries"
                );
                model.healthy.store(true, Ordering::SeqCst);
                redo(&session).await;
                assert_sound_by(&session, &model, &lenient()).await;
                assert!(session.verify().await.unwrap().is_ok());
            }
        };
        timer.drive(work).expect("only time is waited for");
    }
}

/// Appends messages, and compacts whenever messages of `every` tokens were appended, regardless of the view's cost.
async fn by_raw_tokens(session: &Session, messages: &[Message], every: u64) {
    let mut since = 0;
    for message in messages {
        since += session.accounting().message(message);
        session.ingest(message.clone()).await.unwrap();
        if since >= every {
            since = 0;
            session.compact(Mode::Incremental).await.unwrap();
        }
    }
}

fn shape(nodes: &BTreeMap<SummaryId, Summary>) -> Vec<(String, u32, String)> {
    let mut shape: Vec<_> = nodes
        .values()
        .map(|node| (node.range.to_string(), node.depth, node.text().to_owned()))
        .collect();
    shape.sort();
    shape
}

/// Returns a policy that makes leaves by raw tokens and condensed summaries by number, regardless of the summaries'
/// cost.
fn by_messages() -> DagPolicy {
    DagPolicy {
        max_source_tokens: Some(4_000),
        condensed_min: 4,
        condensed_max: Some(4),
        ..crate::documents::dag()
    }
}

#[test]
fn after_redo_the_tree_is_that_of_a_model_that_never_failed() {
    let (mut nodes, mut different, mut refused) = (0, 0, 0);
    let files = files();
    if files.is_empty() {
        return;
    }
    for (name, transcript) in files {
        let timer = Arc::new(FakeTimer::new());
        let work = async {
            let (mut count, mut others, mut left) = (0, 0, 0);
            let model = Unreliable::new(7);
            let failing = open(&model, by_messages(), &timer).await;
            let sound = open(&Unreliable::healthy(), by_messages(), &timer).await;
            for log in &transcript.sessions {
                let key = log.key.as_str();
                let (a, b) = (failing.session(key).await, sound.session(key).await);
                let (a, b) = (a.unwrap(), b.unwrap());
                model.healthy.store(false, Ordering::SeqCst);
                by_raw_tokens(&a, &log.messages, 8_000).await;
                model.healthy.store(true, Ordering::SeqCst);
                let many = RedoPolicy {
                    max_failures: 100,
                    ..RedoPolicy::default()
                };
                let redone = a.redo(many).await.unwrap();
                assert_eq!(redone.failures, [], "{name}");
                left += redone.left as usize;
                by_raw_tokens(&b, &log.messages, 8_000).await;
                let (a, b) = (reached(&a).await, reached(&b).await);
                let (a, expected) = (shape(&a), shape(&b));
                let tree = |nodes: &[(String, u32, String)]| -> Vec<(String, u32)> {
                    nodes.iter().map(|n| (n.0.clone(), n.1)).collect()
                };
                assert_eq!(tree(&a), tree(&expected), "{name}");
                others += a.iter().zip(&expected).filter(|(a, b)| a.2 != b.2).count();
                count += b.len();
            }
            (count, others, left)
        };
        let (count, others, left) = timer.drive(work).expect("only time is waited for");
        nodes += count;
        different += others;
        refused += left;
    }
    let least = if is_deep() { 300 } else { 100 };
    assert!(nodes >= least, "{nodes}");
    // What this gate takes of a failing model is what a sound one writes, and of a sound one
    // it takes all.
    assert_eq!((different, refused), (0, 0));
}
