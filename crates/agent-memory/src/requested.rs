//! Reads the running request of a session, the latest messages that the user typed, from its log.

use memory_model::{LogEntry, Seq, SeqRange};
use memory_store::{LogRead, Snapshot, read_entries};

use crate::error::Result;
use crate::requests::{Request, Said};
use crate::session::Session;

/// Maximum number of entries that are read to find a request.
const MOST_READ: usize = 4_096;
/// Number of entries in one read. A cached request is updated if at most this many entries were appended since.
const PAGE: usize = 256;

impl Session {
    /// Returns the running request at a snapshot. Uses the cached request if possible.
    pub(crate) async fn request(&self, snapshot: &Snapshot) -> Result<Request> {
        let (inner, id) = (&self.memory().inner, snapshot.conversation);
        let known = inner.requests.known(id).filter(|known| {
            let behind = snapshot.head.0.checked_sub(known.head.0);
            known.erasures == snapshot.erasures
                && behind.is_some_and(|behind| behind as usize <= PAGE)
        });
        let (mut request, newer) = match known {
            Some(known) => {
                let gap = SeqRange::new(known.head.next(), snapshot.head);
                (known, read_entries(&*inner.store, id, gap).await?)
            }
            None => {
                let request = Request {
                    largest: u64::MAX,
                    ..Request::default()
                };
                (request, self.newest_turns(snapshot).await?)
            }
        };
        if newer.is_empty()
            && request.head == snapshot.head
            && request.erasures == snapshot.erasures
        {
            return Ok(request);
        }
        for entry in &newer {
            request.add(entry.seq, self.said(entry), entry.tokens);
        }
        (request.head, request.erasures) = (snapshot.head, snapshot.erasures);
        inner.requests.remember(id, request.clone());
        Ok(request)
    }

    /// Reads the end of the log, starting with the reply that precedes the last request.
    async fn newest_turns(&self, snapshot: &Snapshot) -> Result<Vec<LogEntry>> {
        let (mut newest_first, mut is_asked) = (Vec::new(), false);
        let mut rest = SeqRange::new(Seq::FIRST, snapshot.head);
        'log: while let Some(range) = rest.filter(|_| newest_first.len() < MOST_READ) {
            let read = LogRead::new(range).newest_first().with_max_rows(PAGE);
            let page = self.memory().inner.store.read(self.id(), &read).await?;
            for entry in page.items {
                let said = self.said(&entry);
                newest_first.push(entry);
                is_asked |= matches!(said, Said::Request(_));
                if is_asked && said == Said::Reply {
                    break 'log;
                }
            }
            rest = page.next;
        }
        newest_first.reverse();
        Ok(newest_first)
    }

    fn said(&self, entry: &LogEntry) -> Said {
        Said::of(&entry.message, &*self.memory().inner.conventions)
    }
}
