//! What a conversation holds, and its end.

use memory_model::{Seq, SeqRange, SessionKey, ViewName, ViewVersion};
use serde::Serialize;

use crate::error::Result;
use crate::expand::{ExpandAnswer, ExpandArgs, Target};
use crate::retrieval::Retrieval;

/// Figures of what a tool set sees of a session.
#[derive(Debug, Serialize)]
pub(crate) struct Overview<'a> {
    session: &'a SessionKey,
    /// First message that can be seen; `None` when there is none.
    first: Option<Seq>,
    last: Option<Seq>,
    /// Number of log entries from the first to the last, notes included.
    messages: u64,
    /// Cost of these, in tokens.
    tokens: u64,
    /// The views that were published; none for a tool set that does not see everything.
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
    /// Returns figures of what this tool set sees.
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

    /// Returns the newest messages that together cost at most `tokens`; `None` when there are none. What the
    /// newest costs beyond that is behind the answer's cursor.
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
            // What is read may cost more than what a context shows of it.
            if answer.complete || range.first == seen.last {
                return Ok(Some(answer));
            }
            room = room / 3 * 2;
        }
    }

    /// The last messages of a range that cost at most `tokens` in a context, at least one.
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
