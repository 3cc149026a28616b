//! What a conversation holds, and its end.

use memory_model::{Seq, SeqRange, ViewName, ViewVersion};
use serde::Serialize;

use crate::error::Result;
use crate::expand::{ExpandAnswer, ExpandArgs, Target};
use crate::retrieval::Retrieval;

/// Figures of what a tool set sees of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// First message that can be seen; `None` when there is none.
    pub first: Option<Seq>,
    /// Last message that can be seen.
    pub last: Option<Seq>,
    /// Number of log entries from the first to the last, notes included.
    pub messages: u64,
    /// Cost of these, in tokens.
    pub tokens: u64,
    /// The views that were published; none for a tool set that does not see everything.
    pub views: Vec<ViewOverview>,
}

/// Figures of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ViewOverview {
    /// The view's name.
    pub name: ViewName,
    /// Number of its publications.
    pub version: ViewVersion,
    /// Number of its spans.
    pub spans: u64,
    /// Cost of what it shows, in tokens.
    pub tokens: u64,
}

impl Retrieval {
    /// Returns figures of what this tool set sees.
    ///
    /// # Errors
    /// Whatever the store gives.
    pub async fn overview(&self) -> Result<Overview> {
        let seen = self.visible().await?;
        let mut overview = Overview {
            first: seen.map(|seen| seen.first),
            last: seen.map(|seen| seen.last),
            messages: seen.map_or(0, |seen| seen.len()),
            tokens: match seen {
                Some(seen) => self.cost(seen).await?,
                None => 0,
            },
            views: Vec::new(),
        };
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
    ///
    /// # Errors
    /// As [`Retrieval::expand`].
    pub async fn recent(&self, tokens: u64) -> Result<Option<ExpandAnswer>> {
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

    async fn cost(&self, range: SeqRange) -> Result<u64> {
        let at = [range.first.prev(), range.last];
        let sums = self.store.running(self.conversation, &at).await?;
        Ok(match sums.as_slice() {
            [before, after] => after.saturating_sub(*before),
            _ => 0,
        })
    }
}
