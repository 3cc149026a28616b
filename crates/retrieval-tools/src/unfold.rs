//! Expands summaries, and reads messages by their positions.

use memory_model::{Child, EntryKind, Seq, SeqRange, SummaryId};
use memory_store::LogRead;

use crate::arguments::Arguments as _;
use crate::cursor::foreign;
use crate::error::{Error, ErrorKind, Result};
use crate::expand::{
    DEFAULT_TOKEN_CAP, ExpandAnswer, ExpandArgs, ExpandCursor, ExpandedChild, Target,
};
use crate::page::Page;
use crate::retrieval::{BATCH, Retrieval};

/// The longest text around the items of an answer.
const FRAME: &str = "messages:1000000-1000000 covers messages:1000000-1000000; here 1000 items, 100000 tokens, \
    1000000 notes left out.\n\nThere is more: repeat the call with cursor \"x1000000+10000000/10000000@01234567\".\nTo \
    skip the rest of the clipped one, use cursor \"x1000000+10000000/10000000@01234567\" instead.\n";

/// Maximum number of pointers in an answer of `expand`.
const MAX_POINTERS: usize = 64;

/// Number of tokens in the maximum of an answer for each pointer. A pointer has about six tokens, so that all pointers
/// take at most about a tenth of the maximum.
const POINTER_TOKENS: u64 = 64;

/// Maximum number of sections in which the tokens of a long range are measured. The ranges of pointers end at the ends
/// of these sections.
const SAMPLES: u64 = 512;

impl Retrieval {
    /// Returns the children of a summary (messages and summaries), or the messages at some positions, up to a maximum
    /// number of tokens.
    ///
    /// # Errors
    /// `Invalid` for an empty or malformed `summary_id`, and for a cursor of another call. `NotFound` if the
    /// conversation has no such summary or message. `Corrupt` if messages are missing from the log, or children of a
    /// summary from the store. Also the errors of the store.
    pub async fn expand(&self, args: impl Into<ExpandArgs> + Send) -> Result<ExpandAnswer> {
        let args = args.into();
        let target: Target = args.summary_id.parse()?;
        let cap = match args.token_cap {
            0 => DEFAULT_TOKEN_CAP,
            cap => cap,
        };
        let most = self.limits().expand_tokens.max(1).min(cap);
        let spending = self.grant.begin(ExpandArgs::NAME, most)?;
        let question = target.question();
        let cursor = args.cursor.as_deref();
        let cursor = self.position(&question, cursor, ExpandCursor::read).await?;
        let (target, range, children) = self.resolve(target).await?;
        let start = cursor.unwrap_or(ExpandCursor::at(range.first));
        // An answer can begin at any message, or at the first message of a child summary.
        let begin = children.iter().position(|child| match child {
            Child::Messages { range } => range.contains(start.seq),
            Child::Summary { range, .. } => range.first == start.seq,
        });
        let children = begin.and_then(|begin| children.get(begin..));
        let children = children.ok_or_else(|| foreign(&start.to_string()))?;
        let answer = ExpandAnswer {
            summary_id: target.to_string(),
            first: range.first,
            last: range.last,
            tokens: 0,
            complete: true,
            cursor: None,
            behind_clipped: None,
            pointers: Vec::new(),
            notes: 0,
            children: Vec::new(),
        };
        let mut room = self.room(u64::MAX);
        room.spend(FRAME);
        // The pointers take about a tenth.
        let room = room.without(10);
        let mut page = Page {
            accounting: &*self.accounting,
            room,
            cap: spending.taken,
            start,
            answer,
        };
        let rest = self.fill(&mut page, children, start.seq).await?;
        let Page {
            mut answer, cap, ..
        } = page;
        if let Some(at) = rest {
            let binding = self.binding(&question).await?;
            let last = match answer.children.last() {
                Some(ExpandedChild::Message(message)) => message.seq,
                Some(ExpandedChild::Summary(summary)) => summary.last,
                None => range.last,
            };
            answer.complete = false;
            answer.cursor = Some(binding.cursor(&at));
            if at.offset > 0 && last < range.last {
                answer.behind_clipped = Some(binding.cursor(&ExpandCursor::at(last.next())));
            }
            if let Some(rest) = SeqRange::new(at.seq, range.last)
                && all_messages(children, rest)
            {
                answer.pointers = self.pointers(rest, cap).await?;
            }
        }
        spending.end(answer.tokens);
        Ok(answer)
    }

    /// Returns pointers to ranges of messages with about equal numbers of tokens, which together cover `rest`. Empty if
    /// one more answer is likely to contain the whole rest, or if there is no room for two pointers. Makes one request
    /// to the store.
    async fn pointers(&self, rest: SeqRange, cap: u64) -> Result<Vec<String>> {
        let most = usize::try_from(cap / POINTER_TOKENS).unwrap_or(usize::MAX);
        let most = most.min(MAX_POINTERS);
        let before = rest.first.prev();
        let samples = rest.len().min(SAMPLES);
        let at: Vec<Seq> = (0..=samples)
            .filter_map(|n| u32::try_from(rest.len() * n / samples).ok())
            .map(|ahead| Seq(before.0.saturating_add(ahead)))
            .collect();
        let running = self.store.running(self.conversation, &at).await?;
        let sums: Vec<(Seq, u64)> = at.into_iter().zip(running).collect();
        // This is less than the maximum, because a message may have more tokens when it is read than in a context.
        let mut limit = (cap / 3 * 2).max(1);
        let mut pieces = cut_evenly(&sums, limit);
        while pieces.len() > most {
            // There is no room for two pointers, and a single one would point to the whole rest.
            if most < 2 {
                return Ok(Vec::new());
            }
            limit = limit.saturating_add((limit / 4).max(1));
            pieces = cut_evenly(&sums, limit);
        }
        Ok(match pieces.len() {
            0 | 1 => Vec::new(),
            _ => pieces
                .into_iter()
                .map(|range| Target::Messages(range).to_string())
                .collect(),
        })
    }

    /// Returns the range of positions and the children of a target.
    async fn resolve(&self, target: Target) -> Result<(Target, SeqRange, Vec<Child>)> {
        match target {
            Target::Summary(id) => {
                let summary = self.summary(&id).await?;
                Ok((Target::Summary(id), summary.range, summary.children))
            }
            Target::Messages(asked) => {
                let range = self.part_of(asked).await?;
                let children = vec![Child::Messages { range }];
                Ok((Target::Messages(range), range, children))
            }
        }
    }

    /// Adds children to a page until it is full. Returns the position of the rest, or `None` if all children were
    /// added.
    async fn fill(
        &self,
        page: &mut Page<'_>,
        children: &[Child],
        start: Seq,
    ) -> Result<Option<ExpandCursor>> {
        let mut loaded = Vec::new().into_iter();
        for (index, child) in children.iter().enumerate() {
            match child {
                Child::Messages { range } => {
                    let rest = SeqRange::new(range.first.max(start), range.last);
                    let stop = self.fill_messages(page, rest).await?;
                    if stop.is_some() {
                        return Ok(stop);
                    }
                }
                Child::Summary { id, .. } => {
                    let summary = match loaded.next() {
                        Some(summary) => summary,
                        None => {
                            let ahead = children.get(index..).unwrap_or_default();
                            let ids: Vec<SummaryId> = ahead
                                .iter()
                                .filter_map(|child| child.summary().cloned())
                                .take(BATCH)
                                .collect();
                            let found = self.store.summaries(self.conversation, &ids).await?;
                            loaded = found.into_iter();
                            loaded.next().flatten()
                        }
                    };
                    let summary = summary.ok_or_else(|| {
                        Error::new(
                            ErrorKind::Corrupt,
                            format!("the summary {id} is missing: verify the store"),
                        )
                    })?;
                    let stop = page.summary(&summary)?;
                    if stop.is_some() {
                        return Ok(stop);
                    }
                }
            }
        }
        Ok(None)
    }

    async fn fill_messages(
        &self,
        page: &mut Page<'_>,
        mut rest: Option<SeqRange>,
    ) -> Result<Option<ExpandCursor>> {
        // Reads not much more than can be used: a token is rarely more than 16 bytes of stored text.
        let max_bytes = page.cap.saturating_mul(16).clamp(64 << 10, 8 << 20);
        while let Some(range) = rest {
            let mut read = LogRead::new(range).with_max_rows(BATCH);
            read.max_bytes = max_bytes;
            let mut next = range.first;
            let got = self.store.read(self.conversation, &read).await?;
            for entry in got.items {
                if entry.seq != next {
                    break;
                }
                next = next.next();
                if entry.kind == EntryKind::Note {
                    if page.start.offset > 0 {
                        let position = ExpandCursor {
                            seq: entry.seq,
                            ..page.start
                        };
                        return Err(foreign(&position.to_string()));
                    }
                    page.answer.notes += 1;
                    continue;
                }
                let stop = page.message(&entry)?;
                if stop.is_some() {
                    return Ok(stop);
                }
            }
            if next == range.first {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!("the log has no message {next}: verify the store"),
                ));
            }
            rest = SeqRange::new(next, range.last);
        }
        Ok(None)
    }
}

/// Returns whether all children that cover a range are messages.
fn all_messages(children: &[Child], range: SeqRange) -> bool {
    let mut shown = children
        .iter()
        .filter(|child| child.range().last >= range.first);
    shown.all(|child| child.summary().is_none())
}

/// Divides a range into ranges that each have at most `limit` tokens, or are as short as `sums` permits. `sums` are
/// cumulative numbers of tokens at rising positions. The first position is before the range.
fn cut_evenly(sums: &[(Seq, u64)], limit: u64) -> Vec<SeqRange> {
    let mut ranges = Vec::new();
    let Some(&(before, spent)) = sums.first() else {
        return ranges;
    };
    let (mut from, mut end) = ((before, spent), (before, spent));
    for &(seq, sum) in sums.iter().skip(1) {
        if sum.saturating_sub(from.1) > limit && from.0 < end.0 {
            ranges.extend(SeqRange::new(from.0.next(), end.0));
            from = end;
        }
        end = (seq, sum);
    }
    ranges.extend(SeqRange::new(from.0.next(), end.0));
    ranges
}
