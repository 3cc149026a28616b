//! What of the messages that answer questions is found again in conversations that were compacted.

use std::collections::BTreeMap;

use agent_memory::compaction::CutPolicy;
use agent_memory::retrieval::{GrepHit, HitKind};
use agent_memory::{
    Budget, HandoffPolicy, Message, Mode, Retrieval, Seq, SeqRange, Session,
    retrieval::{ExpandArgs, GrepArgs, RecallArgs, RetrievalLimits},
    search::{SearchMode, SearchScope},
};
use anyhow::{Context as _, ensure};
use token_estimate::TokenEstimator as _;

use super::cases::{Case, Turn};
use super::reached::Words;
use crate::density::ours::{TOKENS, memory};
use crate::retention::cuts;
use crate::retention::transcripts::plain;

/// What a conversation is compacted to: its tokens divided by this.
pub(super) const RATIO: u64 = 10;

/// Most tokens that are read for a question.
pub(super) const READ: u64 = 4_000;

/// Most calls of tools for a question.
pub(super) const CALLS: usize = 3;

/// Number of messages that are read before and behind a found one.
pub(super) const NEIGHBOURS: u32 = 2;

/// What is read for a question, in the order of the rows.
pub(super) const TEXTS: [&str; 6] = [
    "grep, then two expands",
    "one recall",
    "the ranking's messages",
    "context after compaction",
    "newest 4,000 tokens",
    "oldest 4,000 tokens",
];

/// Sums over questions.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) questions: usize,
    tokens: u64,
    reached: f64,
    whole: f64,
}

impl Found {
    fn merge(&mut self, other: &Self) {
        self.questions += other.questions;
        self.tokens += other.tokens;
        self.reached += other.reached;
        self.whole += other.whole;
    }

    /// Mean tokens that were read.
    pub(super) fn tokens(&self) -> f64 {
        self.tokens as f64 / self.questions.max(1) as f64
    }

    /// Mean part of the answering messages that were reached.
    pub(super) fn reached(&self) -> f64 {
        self.reached / self.questions.max(1) as f64
    }

    /// Mean part of them that was there whole.
    pub(super) fn whole(&self) -> f64 {
        self.whole / self.questions.max(1) as f64
    }
}

/// What is found in some conversations.
#[derive(Default)]
pub(super) struct Compacted {
    /// Cost of the messages, in tokens.
    pub(super) log_tokens: u64,
    /// Cost of the compacted views, in tokens.
    pub(super) view_tokens: u64,
    /// By category: what each of [`TEXTS`] has.
    pub(super) found: BTreeMap<String, [Found; TEXTS.len()]>,
}

impl Compacted {
    /// Compacts all conversations and asks all their questions.
    ///
    /// # Errors
    /// When a conversation is not taken, a tool fails, or a view costs more than it may.
    pub(super) fn of(cases: &[Case]) -> anyhow::Result<Self> {
        let each: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = cases
                .iter()
                .map(|case| scope.spawn(|| Self::of_case(case)))
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut sum = Self::default();
        for one in each {
            let one = one
                .ok()
                .context("a thread that asks questions panicked")??;
            sum.log_tokens += one.log_tokens;
            sum.view_tokens += one.view_tokens;
            for (category, found) in one.found {
                let sums = sum.found.entry(category).or_default();
                let pairs = sums.iter_mut().zip(&found);
                pairs.for_each(|(sum, found)| sum.merge(found));
            }
        }
        Ok(sum)
    }

    /// The sum over all categories.
    pub(super) fn pooled(&self) -> [Found; TEXTS.len()] {
        let mut sum = <[Found; TEXTS.len()]>::default();
        for found in self.found.values() {
            let pairs = sum.iter_mut().zip(found);
            pairs.for_each(|(sum, found)| sum.merge(found));
        }
        sum
    }

    fn of_case(case: &Case) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.context("start a runtime")?.block_on(async {
            let messages: Vec<Message> = case.turns.iter().map(message_of).collect();
            let lines = plain(&messages);
            let session = compacted(messages.clone(), &lines).await?;
            let snapshot = session.current_view().await?.snapshot().clone();
            let view = snapshot.log_tokens as i64 - snapshot.saved;
            let mut out = Self {
                log_tokens: snapshot.log_tokens,
                view_tokens: u64::try_from(view)?,
                ..Self::default()
            };
            ensure!(
                out.view_tokens * RATIO <= out.log_tokens,
                "a view costs {view} of {} tokens: more than 1/{RATIO}",
                out.log_tokens
            );
            let context = session.assemble(Budget::tokens(READ)).await?;
            let fixed = [
                plain(&context.to_messages()),
                cuts::tail(&lines, READ, &TOKENS),
                cuts::head(&lines, READ, &TOKENS),
            ];
            let fixed = fixed.map(|text| Answer::of(&text));
            let turns: Vec<Words> = case.turns.iter().map(|t| Words::of(&t.text)).collect();
            for question in &case.questions {
                let called = called(&session, &question.text, snapshot.head).await?;
                let recalled = recalled(&session, &question.text).await?;
                let listed = listed(&session, &question.text, &messages).await?;
                let asked = [called, recalled, listed].map(|text| Answer::of(&cut(&text)));
                let gold: Vec<&Words> = question.gold.iter().map(|at| &turns[*at]).collect();
                let sums = out.found.entry(question.category.clone()).or_default();
                for (sum, answer) in sums.iter_mut().zip(asked.iter().chain(&fixed)) {
                    sum.merge(&answer.found(&gold));
                }
            }
            Ok(out)
        })
    }
}

/// A text that was read.
struct Answer {
    tokens: u64,
    words: Words,
}

impl Answer {
    fn of(text: &str) -> Self {
        Self {
            tokens: TOKENS.text(text),
            words: Words::of(text),
        }
    }

    fn found(&self, gold: &[&Words]) -> Found {
        let part = |has: &dyn Fn(&Words) -> bool| {
            gold.iter().filter(|message| has(message)).count() as f64 / gold.len() as f64
        };
        Found {
            questions: 1,
            tokens: self.tokens,
            reached: part(&|message| self.words.reach(message)),
            whole: part(&|message| self.words.has_whole(message)),
        }
    }
}

fn cut(text: &str) -> String {
    match TOKENS.text(text) {
        tokens if tokens <= READ => text.to_owned(),
        _ => cuts::head(text, READ, &TOKENS),
    }
}

pub(super) fn message_of(turn: &Turn) -> Message {
    let mut message = Message::user(turn.text.as_str()).with_created_at(turn.time);
    message.role = turn.role;
    message.name.clone_from(&turn.name);
    message
}

/// One session of all messages, in a view of a summary and the newest messages: an eighth of what it may cost is left to these.
async fn compacted(messages: Vec<Message>, lines: &str) -> anyhow::Result<Session> {
    let budget = TOKENS.text(lines) / RATIO;
    let keep = CutPolicy::RecentTokens { tokens: budget / 8 };
    let policy = HandoffPolicy {
        keep,
        summary_tokens: budget - budget / 8,
        prefix_tokens: budget / 2,
        split_turns: false,
        min_tokens: 0,
        max_source_tokens: None,
        ..HandoffPolicy::default()
    };
    let builder = memory().handoff(policy);
    let memory = builder
        .estimator(std::sync::Arc::new(TOKENS))
        .open()
        .await?;
    let session = memory.session("asked").await?;
    let stored = session.ingest_batch(messages).await?;
    ensure!(stored.conflicts() == 0, "a message was refused");
    session.compact(Mode::Full).await?;
    session.index().update().await?;
    Ok(session)
}

/// The answer of one `memory_recall`.
async fn recalled(session: &Session, question: &str) -> anyhow::Result<String> {
    let args = RecallArgs {
        budget: READ,
        ..RecallArgs::query(question)
    };
    Ok(session.retrieval().recall(args).await?.to_text())
}

/// The best messages of the ranking, whole, and nothing else; more than are read.
async fn listed(session: &Session, question: &str, log: &[Message]) -> anyhow::Result<String> {
    let args = GrepArgs {
        mode: SearchMode::Prose,
        scope: SearchScope::Messages,
        limit: 1_000,
        ..GrepArgs::new(question)
    };
    let tools = session.retrieval().with_limits(RetrievalLimits::none());
    let found = tools.grep(args).await?;
    let places = found.hits.iter().filter_map(|hit| hit.seq);
    let messages: Vec<Message> = places
        .filter_map(|seq| {
            log.get(usize::try_from(seq.0).ok()?.checked_sub(1)?)
                .cloned()
        })
        .collect();
    Ok(plain(&messages))
}

/// The answers of `memory_grep` and of `memory_expand` for its best hits, one after the other.
async fn called(session: &Session, question: &str, head: Seq) -> anyhow::Result<String> {
    let limits = RetrievalLimits {
        answer_tokens: READ / 2,
        expand_tokens: READ / 4,
        ..RetrievalLimits::default()
    };
    let tools: Retrieval = session.retrieval().with_limits(limits);
    let args = GrepArgs {
        corrections: true,
        mode: SearchMode::Prose,
        ..GrepArgs::new(question)
    };
    let found = tools.grep(args).await?;
    let mut text = found.to_text();
    for target in targets(&found.hits, head) {
        let answer = tools.expand(ExpandArgs::new(target)).await?;
        text.push_str(&answer.to_text());
    }
    Ok(text)
}

/// What is read of the hits: the best message, and the best one that this does not show; a summary only where there are no
/// messages. A message that the hit shows whole is read with its neighbours, another one by itself.
fn targets(hits: &[GrepHit], head: Seq) -> Vec<String> {
    let mut ranges: Vec<SeqRange> = Vec::new();
    let (messages, summaries): (Vec<&GrepHit>, Vec<&GrepHit>) =
        hits.iter().partition(|hit| hit.kind == HitKind::Message);
    for hit in messages {
        let Some(seq) = hit.seq else { continue };
        let shown = |range: &SeqRange| range.first <= seq && seq <= range.last;
        if ranges.len() == CALLS - 1 || ranges.iter().any(shown) {
            continue;
        }
        let near = match hit.snippet.contains('…') {
            true => 0,
            false => NEIGHBOURS,
        };
        let first = Seq(seq.0.saturating_sub(near).max(1));
        ranges.extend(SeqRange::new(first, Seq((seq.0 + near).min(head.0))));
    }
    let pointer = |range: &SeqRange| format!("messages:{}-{}", range.first, range.last);
    let mut targets: Vec<String> = ranges.iter().map(pointer).collect();
    targets.extend(summaries.iter().map(|hit| hit.pointer()));
    targets.truncate(CALLS - 1);
    targets
}
