//! Sessions in the format of session files: the summary of the last handoff, and the messages after it.

use memory_model::{EntryKind, Message, Seq, SeqRange, Summary, Timestamp};
use message_formats::SessionFile;

use crate::error::Result;
use crate::handing_over::TURN_CONTEXT;
use crate::session::Session;
use crate::strategy::Strategy;

/// Contents of a session file.
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
        let contents = self.contents().await?;
        let mut lines = self.file(&contents).lines().join("\n");
        lines.push('\n');
        Ok(lines)
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
        let handoffs = self.clone().with_strategy(Strategy::Handoff);
        let spans = handoffs.spans().await?;
        let summaries = self.summaries_in(&spans).await?;
        let texts: Vec<&str> = summaries.iter().map(Summary::text).collect();
        let last = summaries
            .last()
            .map_or(Seq::NONE, |summary| summary.range.last);
        let mut messages = Vec::new();
        let mut rest = SeqRange::new(last.next(), conversation.head);
        while let Some(range) = rest {
            let page = self.entries_in(range).await?;
            let said = page.items.into_iter().map(|entry| entry.message);
            messages.extend(said.filter(|message| message.kind == EntryKind::Message));
            rest = page.next;
        }
        Ok(Contents {
            created_at: conversation.created_at,
            summary: (!texts.is_empty()).then(|| texts.join(TURN_CONTEXT)),
            messages,
        })
    }
}
