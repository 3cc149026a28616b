//! Figures of a conversation, and its latest messages.

use memory_model::{Seq, SeqRange, SessionKey, ViewName, ViewVersion};
use serde::Serialize;

use crate::error::Result;
use crate::expand::{ExpandAnswer, ExpandArgs, Target};
use crate::retrieval::Retrieval;

/// Figures of the part of a session that a tool set sees.
#[derive(Debug, Serialize)]
pub(crate) struct Overview<'a> {
    session: &'a SessionKey,
    /// First visible message; `None` if there is none.
    first: Option<Seq>,
    last: Option<Seq>,
    /// Number of log entries from the first to the last, notes included.
    messages: u64,
    /// Their cost, in tokens.
    tokens: u64,
    /// The published views; none for a tool set that does not see everything.
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
    /// Returns figures of the part that this tool set sees.
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

    /// Returns the latest messages that together cost at most `tokens`; `None` if there are none. The rest of a latest
    /// message that costs more is available by the answer's cursor.
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
            // Reading a message may cost more than its form in a context.
            if answer.complete || range.first == seen.last {
                return Ok(Some(answer));
            }
            room = room / 3 * 2;
        }
    }

    /// Returns the range of the last messages that cost at most `tokens` in a context, at least one.
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
