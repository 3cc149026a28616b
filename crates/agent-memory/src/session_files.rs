//! Sessions in the format of session files: the summary of the last handoff, and the messages after it. The lines of such
//! a file are also what an estimate over stored lines counts.

use agent_conventions::SessionFile;
use memory_model::{Message, Part, Seq, SeqRange, Summary, Timestamp};

use crate::error::Result;
use crate::handing_over::joined;
use crate::session::Session;
use crate::strategy::Strategy;

/// Number of entries among which the folder of an imported session is looked for.
const NAMES_FOLDER: u32 = 16;

/// Contents of a session file: a view's summaries, and its messages.
struct Contents {
    created_at: Timestamp,
    summary: Option<String>,
    /// Cost of the whole log, in tokens.
    tokens: u64,
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
        let folder = self.folder().await?;
        let mut lines = self.file(&contents, &folder).lines().join("\n");
        lines.push('\n');
        Ok(lines)
    }

    /// Returns the estimate over the stored lines of the session's view, in tokens: their bytes divided by 4. Reads all
    /// messages that the view shows unchanged.
    pub(crate) async fn stored_tokens(&self) -> Result<u64> {
        let contents = self.contents().await?;
        Ok(self.file(&contents, "").tokens(|line| line.len() as u64) / 4)
    }

    fn file<'a>(&'a self, contents: &'a Contents, folder: &'a str) -> SessionFile<'a> {
        SessionFile {
            key: self.key(),
            created_at: contents.created_at,
            folder,
            summary: contents.summary.as_deref(),
            tokens_before: contents.tokens,
            messages: &contents.messages,
        }
    }

    /// Returns the folder that the first entries of an imported session name; empty if they name none.
    pub(crate) async fn folder(&self) -> Result<String> {
        let first = SeqRange::new(Seq::FIRST, Seq(NAMES_FOLDER));
        let Some(first) = first else {
            return Ok(String::new());
        };
        let page = self.entries_in(first).await?;
        let named = page.items.iter().find_map(|entry| {
            let raw = entry.message.parts.iter().find_map(|part| match part {
                Part::Unknown { raw } => Some(raw),
                _ => None,
            });
            let facts = raw.or(entry.message.meta.as_ref())?;
            let facts: serde_json::Value = serde_json::from_str(facts.as_str()).ok()?;
            Some(facts.get("cwd")?.as_str()?.to_owned())
        });
        Ok(named.unwrap_or_default())
    }

    async fn contents(&self) -> Result<Contents> {
        let conversation = self.info().await?.conversation;
        let spans = self.spans().await?;
        let summaries = self.summaries_in(&spans).await?;
        let texts: Vec<&str> = summaries.iter().map(Summary::text).collect();
        Ok(Contents {
            created_at: conversation.created_at,
            summary: joined(&texts),
            tokens: conversation.tokens,
            messages: self.shown_messages(&spans).await?,
        })
    }
}
