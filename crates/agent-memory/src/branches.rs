//! What a branch did that was left, told in the branch that the conversation went to.

use std::collections::VecDeque;

use async_trait::async_trait;
use compaction_plan::JobSource;
use handoff_compactor::FileLedger;
use memory_model::conventions::AgentConventions;
use memory_model::{
    Accounting as _, EntryKind, LogEntry, Message, RawJson, Seq, SeqRange, SessionKey, SpanBody,
    Summary,
};
use memory_store::{Conversation, EntryOutcome};
use serde::Serialize;
use summarize_escalation::{
    BeforeCall, Failure, FailureKind, Source, SummaryRequest, escalate_with,
};

use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;

/// Largest cost of a branch that is told word for word, in tokens: a summary would be cut to almost nothing.
const SHORT_BRANCH_TOKENS: u64 = 100;

/// What is asked for of the summary of a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchRequest {
    /// Maximum cost of what is summarized, in tokens: the newest messages and summaries of the branch. By default all of
    /// it.
    pub max_source_tokens: Option<u64>,
    /// The user's instructions for the summary.
    pub instructions: Option<String>,
}

/// The summary of a branch that was left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchSummary {
    /// Position of the message that tells it.
    pub seq: Seq,
    /// The branch's own entries, behind the last one that both share.
    pub range: SeqRange,
    /// The message's text.
    pub text: String,
    /// What the branch did to which files.
    pub files: FileLedger,
    /// Whether it was told before; then no model was called.
    pub is_known: bool,
}

/// What a message that tells of a branch keeps in its metadata.
#[derive(Serialize)]
struct Meta<'a> {
    branch: MetaBranch<'a>,
    files: &'a FileLedger,
}

#[derive(Serialize)]
struct MetaBranch<'a> {
    session: &'a SessionKey,
    range: SeqRange,
    provisional: bool,
    /// Number of messages and summaries that were left out because of the limit.
    left_out: usize,
}

/// A message of the branch, or a summary that its view shows.
enum Piece {
    Entry(Box<LogEntry>),
    Summary(Box<Summary>),
}

impl Piece {
    fn tokens(&self) -> u64 {
        match self {
            Self::Entry(entry) => entry.tokens,
            Self::Summary(summary) => summary.tokens,
        }
    }

    fn source(&self) -> Source<'_> {
        match self {
            Self::Entry(entry) => Source::from(&**entry),
            Self::Summary(summary) => Source::from(&**summary),
        }
    }
}

impl Session {
    /// Summarizes what another branch of this conversation did behind what both share, and appends that as a message of the
    /// user, with the files that it used in its metadata. To be called when the conversation goes on here after it was
    /// continued there. `None` where that branch has nothing of its own. Calling it again for the same messages returns
    /// the message that is there.
    ///
    /// The memory's summarizer and ladder write it. A branch of at most 100 tokens, and one of which nothing shorter can be
    /// made, is told word for word. Where the branch costs more than the limit, its oldest messages are left out.
    ///
    /// # Errors
    /// `Invalid` for a session that shares nothing with this one; `Model` when the summary could not be written; or when
    /// the store fails.
    pub async fn summarize_branch(
        &self,
        left: &Session,
        request: &BranchRequest,
    ) -> Result<Option<BranchSummary>> {
        let (here, there) = (self.info().await?, left.info().await?);
        let shared = shared_until(&here.conversation, &there.conversation);
        if shared == Seq::NONE || self.id() == left.id() {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the session {} is no other branch of {}: they share no message",
                    left.key(),
                    self.key()
                ),
            ));
        }
        let Some(range) = SeqRange::new(shared.next(), there.conversation.head) else {
            return Ok(None);
        };
        let external_id = format!("branch:{}:{range}", left.id());
        if let Some(known) = self.told(&external_id, range).await? {
            return Ok(Some(known));
        }
        let mut erasures = there.conversation.erasures;
        let (text, provisional, files, left_out) = loop {
            let (pieces, files) = left.branch(range).await?;
            let all = pieces.len();
            let pieces = newest_within(pieces, request.max_source_tokens.unwrap_or(u64::MAX));
            if pieces.is_empty() {
                return Ok(None);
            }
            let left_out = all - pieces.len();
            let words = WordsAreThere { left, erasures };
            let written = self.write_branch(&pieces, request, &words).await;
            let now = left.info().await?.conversation.erasures;
            if now == erasures {
                let (text, provisional) = written?;
                break (text, provisional, files, left_out);
            }
            // Words were erased meanwhile: the branch is read again.
            erasures = now;
        };
        let text = format!(
            "The conversation went on in another branch and came back. What that branch did ({}, messages \
             {range}):\n\n{text}",
            left.key()
        );
        let branch = MetaBranch {
            session: left.key(),
            range,
            provisional,
            left_out,
        };
        let meta = RawJson::from_value(&Meta {
            branch,
            files: &files,
        })?;
        let message = Message::user(text.as_str())
            .with_external_id(external_id)
            .with_meta(meta);
        let seq = match self.ingest(message).await? {
            EntryOutcome::Inserted(seq)
            | EntryOutcome::Duplicate(seq)
            | EntryOutcome::Conflict(seq) => seq,
        };
        Ok(Some(BranchSummary {
            seq,
            range,
            text,
            files,
            is_known: false,
        }))
    }

    /// What was told of a branch before.
    async fn told(&self, external_id: &str, range: SeqRange) -> Result<Option<BranchSummary>> {
        #[derive(serde::Deserialize)]
        struct Kept {
            files: FileLedger,
        }
        let ids = [external_id.to_owned()];
        let found = self.memory().inner.store.find(self.id(), &ids).await?;
        let Some(seq) = found.first().copied().flatten() else {
            return Ok(None);
        };
        let entry = self.entries_in(SeqRange::single(seq)).await?;
        let message = entry.items.into_iter().next().map(|entry| entry.message);
        let meta = message.as_ref().and_then(|message| message.meta.as_ref());
        let files = meta.and_then(|meta| serde_json::from_str::<Kept>(meta.as_str()).ok());
        Ok(Some(BranchSummary {
            seq,
            range,
            text: message.map(|message| message.text()).unwrap_or_default(),
            files: files.map(|kept| kept.files).unwrap_or_default(),
            is_known: true,
        }))
    }

    /// The session's own part as its view shows it, oldest first, and what was done to files in it.
    async fn branch(&self, own: SeqRange) -> Result<(VecDeque<Piece>, FileLedger)> {
        let conventions = conventions();
        let (mut pieces, mut files) = (VecDeque::new(), FileLedger::default());
        for span in self.spans().await? {
            let Some(range) = span
                .range
                .up_to(own.last)
                .and_then(|all| all.intersect(&own))
            else {
                continue;
            };
            // A summary that also stands for what both share tells what is known here.
            let id = match &span.body {
                SpanBody::Summary { id, .. } if span.closed_range() == Some(range) => Some(id),
                _ => None,
            };
            let summary = match id {
                Some(id) => self
                    .summaries(std::slice::from_ref(id))
                    .await?
                    .pop()
                    .flatten(),
                None => None,
            };
            let mut rest = Some(range);
            while let Some(range) = rest {
                let page = self.entries_in(range).await?;
                for entry in page.items {
                    files.add(&JobSource::Entry(&entry), &*conventions);
                    if summary.is_none() && entry.kind == EntryKind::Message {
                        pieces.push_back(Piece::Entry(Box::new(entry)));
                    }
                }
                rest = page.next;
            }
            pieces.extend(summary.map(|summary| Piece::Summary(Box::new(summary))));
        }
        Ok((pieces, files))
    }

    /// Writes the summary. Returns its text, and whether no model wrote it.
    async fn write_branch(
        &self,
        pieces: &VecDeque<Piece>,
        request: &BranchRequest,
        words: &WordsAreThere<'_>,
    ) -> Result<(String, bool)> {
        let tokens = pieces.iter().map(Piece::tokens);
        if tokens.fold(0, u64::saturating_add) <= SHORT_BRANCH_TOKENS {
            return Ok((as_said(pieces), true));
        }
        let inner = &self.memory().inner;
        let sources: Vec<Source<'_>> = pieces.iter().map(Piece::source).collect();
        let mut asked = SummaryRequest::new(&sources, self.accounting().estimator());
        asked.instructions = request.instructions.as_deref();
        asked.before_call = Some(words);
        let written = escalate_with(
            &*self.writer().summarizer,
            &inner.extractive,
            &inner.ladder,
            &asked,
        );
        use summarize_escalation::ErrorKind as Kind;
        match written.await {
            Ok(outcome) => Ok((outcome.text, outcome.provisional)),
            Err(error) if matches!(error.kind(), Kind::CannotShrink | Kind::Exhausted) => {
                Ok((as_said(pieces), true))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Holds back calls of a model once words of a branch were erased that its prompts may have.
#[derive(Debug)]
struct WordsAreThere<'a> {
    left: &'a Session,
    erasures: u64,
}

#[async_trait]
impl BeforeCall for WordsAreThere<'_> {
    async fn before_call(&self) -> std::result::Result<(), Failure> {
        let withdrawn = |why: String| Failure::with_text(FailureKind::Withdrawn, why);
        let now = self.left.info().await;
        let now = now.map_err(|error| withdrawn(error.to_string()))?;
        match now.conversation.erasures == self.erasures {
            true => Ok(()),
            false => Err(withdrawn("words of the branch were erased".to_owned())),
        }
    }
}

/// The words of the pieces, as they were said.
fn as_said(pieces: &VecDeque<Piece>) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Entry(entry) => format!("{}: {}", entry.role, entry.text()),
        Piece::Summary(summary) => summary.text().to_owned(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The newest pieces that cost at most `most` tokens together, in order; at least one.
fn newest_within(mut pieces: VecDeque<Piece>, most: u64) -> VecDeque<Piece> {
    let (mut taken, mut used) = (VecDeque::new(), 0_u64);
    while let Some(piece) = pieces.pop_back() {
        let with = used.saturating_add(piece.tokens());
        if with > most {
            if taken.is_empty() {
                taken.push_front(piece);
            }
            break;
        }
        used = with;
        taken.push_front(piece);
    }
    taken
}

/// The last position that two conversations share.
fn shared_until(one: &Conversation, other: &Conversation) -> Seq {
    let mut shared = Seq::NONE;
    for (a, b) in one.segments.iter().zip(&other.segments) {
        if a.source != b.source || a.first != b.first {
            break;
        }
        let (a, b) = (a.last.unwrap_or(one.head), b.last.unwrap_or(other.head));
        shared = a.min(b);
        if a != b {
            break;
        }
    }
    shared
}

fn conventions() -> Box<dyn AgentConventions> {
    #[cfg(feature = "import")]
    return Box::new(message_formats::KnownAgents);
    #[cfg(not(feature = "import"))]
    return Box::new(memory_model::conventions::GenericConventions);
}
