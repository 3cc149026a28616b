//! Contexts of fully compacted transcripts cover the whole log, for every budget.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use agent_memory::{
    Budget, Context, Memory, Mode, Part, Role, Seq, SeqRange, Session,
    context::{AssemblyPolicy, Form, MessageOrigin},
    model::{LogEntry, Span, SpanBody, Summary, SummaryId},
};
use memory_model::{Accounting, EntryKind};

use crate::contexts::{Block, blocks, check};
use crate::corpus::{corpus, parse, transcripts};
use crate::support::Inspect as _;

const BUDGETS: [u64; 5] = [1_000, 2_000, 4_000, 8_000, 16_000];

/// Cost of the messages that an assembly always reads, in tokens.
const READ: u64 = 20_000;

/// Content of a context: lines of summaries, and whole messages.
#[derive(Default)]
struct Facts {
    lines: BTreeSet<(SummaryId, String)>,
    messages: BTreeSet<(Seq, Seq)>,
}

fn facts(context: &Context) -> Facts {
    let mut facts = Facts::default();
    for message in &context.messages {
        match (&message.source, message.parts.as_slice()) {
            (MessageOrigin::Summary { summary_id, .. }, [Part::Text { text }]) => {
                let of_frame = |line: &&str| {
                    ![
                        "<summary",
                        "</summary",
                        "<content",
                        "</content",
                        "<parents",
                        "</parents",
                    ]
                    .iter()
                    .any(|tag| line.starts_with(tag))
                };
                let lines = text.lines().filter(of_frame);
                // The mark of lines that are left out goes when they come.
                let words = lines.map(|line| line.trim_end_matches(" …").to_owned());
                let lines = words.map(|words| (summary_id.clone(), words));
                facts.lines.extend(lines);
            }
            (MessageOrigin::Message { first, last }, _) => {
                facts.messages.insert((*first, *last));
            }
            _ => {}
        }
    }
    facts
}

/// Returns the cost of a text in a user's message, in tokens.
fn cost(text: String, accounting: &dyn Accounting) -> u64 {
    accounting.parts(Role::User, &[Part::text(text)])
}

/// Returns the cost of a summary's headline (the lines of its highest rank), in tokens.
fn headline(summary: &Summary, accounting: &dyn Accounting) -> u64 {
    let lines: Vec<&str> = summary.text().split('\n').collect();
    let headline: Vec<&str> = match summary.body.ranks() {
        Some(ranks) => {
            let highest = ranks.iter().max().unwrap();
            let lines = lines.iter().zip(ranks).filter(|(_, rank)| *rank == highest);
            lines.map(|(line, _)| *line).collect()
        }
        None => lines.clone(),
    };
    let text = headline.join("\n");
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    let (shown, of) = (headline.len(), lines.len());
    let (id, range) = (&summary.id, summary.range);
    let attributes = format!("id=\"{id}\" messages=\"{range}\" lines=\"{shown} of {of}\"");
    cost(
        format!("<summary {attributes}>\n{text}\n</summary>"),
        accounting,
    )
}

/// A fully compacted session.
struct Compacted {
    session: Session,
    log: Vec<LogEntry>,
    spans: Vec<Span>,
    blocks: Vec<Block>,
    /// Cost of all headlines and of a pointer to each run of messages, in tokens.
    least: u64,
}

impl Compacted {
    async fn new(session: Session) -> Self {
        session.compact(Mode::Full).await.unwrap();
        let log = session.entries().await.unwrap();
        let spans = session.spans().await.unwrap();
        let accounting = session.accounting();
        let ids: Vec<SummaryId> = spans
            .iter()
            .filter_map(|s| s.body.summary().cloned())
            .collect();
        let summaries = session.summaries(&ids).await.unwrap();
        let headlines = summaries
            .iter()
            .flatten()
            .map(|summary| headline(summary, accounting));
        let headlines: u64 = headlines.sum();
        let pointer = "[… 10000 messages left out; expand messages:10000-10000 …]".to_owned();
        let runs = (spans.len() - ids.len()) as u64;
        let least = headlines + runs * cost(pointer, accounting);
        Self {
            blocks: blocks(&log, &spans),
            session,
            log,
            spans,
            least,
        }
    }

    /// Returns whether an assembly reads all messages that no summary covers.
    fn read_whole(&self) -> bool {
        let raw = self
            .spans
            .iter()
            .filter(|span| matches!(span.body, SpanBody::Raw));
        raw.map(|span| span.tokens).sum::<u64>() <= READ
    }

    /// Returns whether the headlines fit in addition to the last group. The last group is shortened if the headlines
    /// leave less than half of the room for it.
    fn headlines_fit(&self, context: &Context) -> bool {
        let receipt = &context.receipt;
        let fixed = receipt.request_tokens + receipt.identity_tokens + receipt.system_tokens;
        let room = receipt.limit.saturating_sub(fixed);
        let newest = self.blocks.iter().rfind(|block| block.shows);
        let newest = newest.map_or(0, |block| block.tokens);
        // Rendering adds stubs to a group.
        self.least + newest + newest / 8 + 64 <= room || self.least <= room / 2
    }

    /// Returns the messages that a context does not cover.
    fn missing(&self, context: &Context) -> Vec<Seq> {
        let ranges = context
            .messages
            .iter()
            .filter_map(|message| message.source.range());
        let ranges: Vec<SeqRange> = ranges.collect();
        let messages = self
            .log
            .iter()
            .filter(|entry| entry.kind == EntryKind::Message);
        let missing =
            messages.filter(|entry| !ranges.iter().any(|range| range.contains(entry.seq)));
        missing.map(|entry| entry.seq).collect()
    }
}

#[tokio::test]
async fn contexts_of_compacted_transcripts_cover_the_whole_log() {
    let Some(corpus) = corpus() else { return };
    let mut failures = Vec::new();
    let mut tally = [(0, 0); BUDGETS.len()];
    for path in transcripts(&corpus) {
        let memory = Memory::in_memory().await.unwrap();
        let transcript = parse(&std::fs::read(&path).unwrap());
        for imported in memory.import(&transcript).await.unwrap().sessions {
            let session = memory.get_session(imported.session).await.unwrap();
            let compacted = Compacted::new(session).await;
            for (budget, tally) in BUDGETS.into_iter().zip(&mut tally) {
                let context = compacted
                    .session
                    .assemble(Budget::tokens(budget))
                    .await
                    .unwrap();
                let key = compacted.session.key();
                let accounting = compacted.session.accounting();
                if let Err(error) = check(&context, budget, &compacted.blocks, accounting) {
                    failures.push(format!("{key} at {budget}: {error}"));
                }
                let missing = compacted.missing(&context);
                let fits = compacted.read_whole() && compacted.headlines_fit(&context);
                if fits && !(missing.is_empty() && context.receipt.dropped.is_empty()) {
                    let receipt = &context.receipt;
                    failures.push(format!(
                        "{key} at {budget}: {missing:?} are missing: {receipt:?}"
                    ));
                }
                tally.0 += 1;
                tally.1 += usize::from(fits);
            }
            failures.extend(shrinking(&compacted).await);
        }
    }
    for (budget, (contexts, fits)) in BUDGETS.into_iter().zip(tally) {
        assert!(
            fits * 2 > contexts || budget < 2_000,
            "{fits} of {contexts} at {budget}"
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns descriptions of content that a larger budget shows less of, in contexts with steps of one token.
async fn shrinking(compacted: &Compacted) -> Vec<String> {
    let policy = AssemblyPolicy {
        form: Form::Live {
            steps: NonZeroU64::MAX,
        },
        ..AssemblyPolicy::default()
    };
    let mut failures = Vec::new();
    let mut before = Facts::default();
    for budget in BUDGETS {
        let budget = Budget::tokens(budget);
        let context = compacted
            .session
            .assemble(agent_memory::context::AssembleRequest::new(
                budget,
                policy.clone(),
            ))
            .await
            .unwrap();
        let now = facts(&context);
        let lines = before.lines.difference(&now.lines).next();
        let messages = before.messages.difference(&now.messages).next();
        let degraded = |first: Seq| context.receipt.degraded.iter().any(|d| d.first == first);
        if lines.is_some() || messages.is_some_and(|(first, _)| !degraded(*first)) {
            let (key, budget) = (compacted.session.key(), budget.get());
            failures.push(format!(
                "{key} at {budget}: {lines:?} {messages:?} are gone"
            ));
        }
        before = now;
    }
    failures
}
