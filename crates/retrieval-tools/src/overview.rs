//! Numbers of messages and tokens of a conversation, and its latest messages.

use memory_model::{Seq, SeqRange, SessionKey, ViewName, ViewVersion};
use serde::Serialize;

use crate::error::Result;
use crate::expand::{ExpandAnswer, ExpandArgs, Target};
use crate::retrieval::Retrieval;

/// Numbers of messages and tokens in the part of a conversation that a tool set sees.
#[derive(Debug, Serialize)]
pub(crate) struct Overview<'a> {
    session: &'a SessionKey,
    /// Position of the first message that the tool set may read. `None` if it may read none.
    first: Option<Seq>,
    last: Option<Seq>,
    /// Number of log entries that the tool set may read, including notes.
    messages: u64,
    /// Number of tokens of these log entries.
    tokens: u64,
    /// The published views. Empty if the tool set sees only a part of the conversation.
    views: Vec<ViewOverview>,
}

#[derive(Debug, Serialize)]
struct ViewOverview {
    name: ViewName,
    version: ViewVersion,
    spans: u64,
    tokens: u64,
}

impl Retrieval {
    /// Returns the positions and the numbers of messages and tokens in the part that this tool set sees. Includes the
    /// views if the tool set sees the whole conversation.
    pub(crate) async fn overview<'a>(&self, session: &'a SessionKey) -> Result<Overview<'a>> {
        let seen = self.visible().await?;
        let mut overview = Overview {
            session,
            first: seen.map(|seen| seen.first),
            last: seen.map(|seen| seen.last),
            messages: seen.map_or(0, |seen| seen.len()),
            tokens: 0,
            views: Vec::new(),
        };
        if let Some(seen) = seen {
            let at = [seen.first.prev(), seen.last];
            let sums = self.store.running(self.conversation, &at).await?;
            if let [before, after] = sums.as_slice() {
                overview.tokens = after.saturating_sub(*before);
            }
        }
        if self.grant.sees_all() {
            for view in self.store.views(self.conversation).await? {
                let snapshot = self.store.snapshot(self.conversation, &view.name).await?;
                overview.views.push(ViewOverview {
                    tokens: snapshot.tokens(),
                    name: view.name,
                    version: view.version,
                    spans: view.spans,
                });
            }
        }
        Ok(overview)
    }

    /// Returns the latest messages that together have at most `tokens` tokens. `None` if the tool set may read no
    /// message. If the last message alone has more tokens, the answer contains its beginning and a cursor for the rest.
    pub(crate) async fn recent(&self, tokens: u64) -> Result<Option<ExpandAnswer>> {
        let Some(seen) = self.visible().await? else {
            return Ok(None);
        };
        let mut room = tokens;
        loop {
            let range = self.end_of(seen, room).await?;
            let args = ExpandArgs {
                token_cap: tokens,
                ..ExpandArgs::new(Target::Messages(range).to_string())
            };
            let answer = self.expand(args).await?;
            // A message may have more tokens when it is read than in a context.
            if answer.complete || range.first == seen.last {
                return Ok(Some(answer));
            }
            room = room / 3 * 2;
        }
    }

    /// Returns the range of the last messages that have at most `tokens` tokens in a context, at least one message.
    async fn end_of(&self, seen: SeqRange, tokens: u64) -> Result<SeqRange> {
        let sums = self.store.running(self.conversation, &[seen.last]).await?;
        let before = sums
            .first()
            .copied()
            .unwrap_or_default()
            .saturating_sub(tokens);
        let first = match before {
            0 => Some(seen.first),
            before => self
                .store
                .seq_at(self.conversation, before)
                .await?
                .map(Seq::next),
        };
        let first = first.unwrap_or(seen.last).clamp(seen.first, seen.last);
        Ok(SeqRange::new(first, seen.last).unwrap_or(seen))
    }
}
