//! Reading logs.

use std::ops::ControlFlow;

use memory_model::{ConversationId, LogEntry, SeqRange};
use memory_store::{LogRead, Order, Page, Result, rest_of};

use super::SqlStore;
use crate::executor::{Database, Executor};
use crate::message;

/// Rows with more packed bytes are read one by one, so that what is read ahead stays small.
const LARGEST: i64 = 32 << 10;

impl<D: Database> SqlStore<D> {
    pub(super) async fn read_log(
        &self,
        id: ConversationId,
        read: &LogRead,
    ) -> Result<Page<LogEntry>> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let info = self.get(on, id).await?;
        let Some(range) = SeqRange::new(read.range.first, read.range.last.min(info.head)) else {
            return Ok(Page::complete(Vec::new()));
        };
        let mut segments = info.segments;
        let order = match read.order {
            Order::OldestFirst => sea_query::Order::Asc,
            Order::NewestFirst => {
                segments.reverse();
                sea_query::Order::Desc
            }
        };
        let max_rows = read.max_rows.max(1);
        let mut items: Vec<LogEntry> = Vec::new();
        let mut bytes = 0u64;
        let mut flow = ControlFlow::Continue(());
        for segment in segments {
            let own = SeqRange::new(segment.first, segment.last.unwrap_or(info.head));
            let Some(part) = own.and_then(|own| range.intersect(&own)) else {
                continue;
            };
            let limit = u64::try_from(max_rows - items.len())
                .unwrap_or(u64::MAX)
                .min(1 << 32);
            let statement = message::range(segment.source.0, part, order.clone(), limit, LARGEST);
            let (rows_before, bytes_before) = (items.len(), bytes);
            let mut facts = self.remembered_facts(segment.source);
            let mut looked = false;
            // The bytes of each row, and which rows came without them.
            let (mut sizes, mut large) = (Vec::new(), Vec::new());
            loop {
                let mut lacking = false;
                flow = on
                    .each(&statement, |row| {
                        lacking = facts.is_none() && !looked && message::needs_facts(row)?;
                        if lacking {
                            return Ok(ControlFlow::Break(()));
                        }
                        let (entry, size) = message::entry(row, facts.as_ref())?;
                        let packed = message::size(row)?;
                        let size = if packed > LARGEST {
                            large.push(items.len());
                            // Not more than what it will be.
                            u64::try_from(packed).unwrap_or(0)
                        } else {
                            size
                        };
                        sizes.push(size);
                        bytes = bytes.saturating_add(size);
                        items.push(entry);
                        Ok(match items.len() >= max_rows || bytes >= read.max_bytes {
                            true => ControlFlow::Break(()),
                            false => ControlFlow::Continue(()),
                        })
                    })
                    .await?;
                if !lacking {
                    break;
                }
                // Once for a conversation: from then on they are remembered.
                items.truncate(rows_before);
                (bytes, sizes, large) = (bytes_before, Vec::new(), Vec::new());
                facts = self.facts_of(on, segment.source).await?;
                looked = true;
            }
            if !large.is_empty() {
                bytes = bytes_before;
                for (at, size) in (rows_before..).zip(sizes) {
                    let Some(item) = items.get_mut(at) else { break };
                    let mut size = size;
                    if large.binary_search(&at).is_ok() {
                        let one = SeqRange::single(item.seq);
                        let whole =
                            message::range(segment.source.0, one, order.clone(), 1, i64::MAX);
                        if let Some(row) = on.first(&whole).await? {
                            (*item, size) = message::entry(&row, facts.as_ref())?;
                        }
                    }
                    bytes = bytes.saturating_add(size);
                    if bytes >= read.max_bytes {
                        items.truncate(at + 1);
                        flow = ControlFlow::Break(());
                        break;
                    }
                }
            }
            if flow.is_break() {
                break;
            }
        }
        let next = match (flow, items.last()) {
            (ControlFlow::Break(()), Some(last)) => rest_of(range, read.order, last.seq),
            _ => None,
        };
        Ok(Page { items, next })
    }
}
