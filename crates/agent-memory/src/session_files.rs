//! Sessions in the format of session files: the summary of the last handoff, and the messages after it. The lines of such
//! a file are also what an estimate over stored lines counts.

use memory_model::{EntryKind, Message, SeqRange, Span, SpanBody, Summary, Timestamp};
use message_formats::SessionFile;

use crate::error::Result;
use crate::handing_over::joined;
use crate::session::Session;
use crate::strategy::Strategy;

/// Contents of a session file: a view's summaries, and its messages.
struct Contents {
    created_at: Timestamp,
    summary: Option<String>,
    messages: Vec<Message>,
}

impl Session {
    /// Returns the session as the text of a session file in the format of the agents anna and pi. The file has one JSON
    /// object in each line: a header, the summary of the last handoff, if there is one, and each message after it. The
    /// content comes from the handoff view, even if the session has another strategy.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn session_file(&self) -> Result<String> {
        let handoffs = self.clone().with_strategy(Strategy::Handoff);
        let contents = handoffs.contents().await?;
        let mut lines = self.file(&contents).lines().join("\n");
        lines.push('\n');
        Ok(lines)
    }

    /// Returns the estimate over the stored lines of the session's view, in tokens: their bytes divided by 4. Reads all
    /// messages that the view shows unchanged.
    pub(crate) async fn stored_tokens(&self) -> Result<u64> {
        let contents = self.contents().await?;
        Ok(self.file(&contents).tokens(|line| line.len() as u64) / 4)
    }

    fn file<'a>(&'a self, contents: &'a Contents) -> SessionFile<'a> {
        SessionFile {
            key: self.key(),
            created_at: contents.created_at,
            summary: contents.summary.as_deref(),
            messages: &contents.messages,
        }
    }

    async fn contents(&self) -> Result<Contents> {
        let conversation = self.info().await?.conversation;
        let spans = self.spans().await?;
        let mut messages = Vec::new();
        let shown = |span: &&Span| matches!(span.body, SpanBody::Raw | SpanBody::Trimmed(_));
        for Span { range, .. } in spans.iter().filter(shown) {
            let last = range.last.unwrap_or(conversation.head);
            let mut rest = SeqRange::new(range.first, last);
            while let Some(range) = rest {
                let page = self.entries_in(range).await?;
                let said = page.items.into_iter().map(|entry| entry.message);
                messages.extend(said.filter(|message| message.kind == EntryKind::Message));
                rest = page.next;
            }
        }
        let summaries = self.summaries_in(&spans).await?;
        let texts: Vec<&str> = summaries.iter().map(Summary::text).collect();
        Ok(Contents {
            created_at: conversation.created_at,
            summary: joined(&texts),
            messages,
        })
    }
}
