//! What the user asked for last: the messages that every context shows before anything else.

use memory_model::conventions::AgentConventions;
use memory_model::{EntryKind, LogEntry, Part, Role, Seq, SeqRange};
use memory_store::{LogRead, Snapshot};

use crate::error::Result;
use crate::requests::Known;
use crate::session::Session;

/// Maximum number of entries that are read to find a request.
const MOST_READ: usize = 4_096;
/// Maximum number of entries that are read behind a found request for earlier ones of the same turn.
const MOST_BEHIND: usize = 256;
/// Entries of a page.
const PAGE: usize = 64;
/// Maximum number of requests.
const MOST: usize = 4;
/// Number of characters below which a request is an answer, which says nothing without the question.
const ANSWER: usize = 60;

/// What the user asked for last.
#[derive(Debug)]
pub(crate) struct Request {
    /// Positions of its messages, rising.
    pub(crate) messages: Vec<Seq>,
    /// Whether the assistant's turn ended after it.
    pub(crate) is_done: bool,
}

impl Session {
    /// Returns what the user typed since the last turn that was completed before it: at most four messages. A short one comes
    /// with the assistant's message that it answers.
    pub(crate) async fn request(&self, snapshot: &Snapshot) -> Result<Request> {
        let inner = &self.memory().inner;
        let known = inner.requests.known(snapshot.conversation);
        let known = known
            .filter(|known| known.erasures == snapshot.erasures && known.head <= snapshot.head);
        let mut search = Search::new(&*inner.conventions);
        let looked = known.as_ref().map_or(Seq::NONE, |known| known.head);
        self.search(&mut search, SeqRange::new(looked.next(), snapshot.head))
            .await?;
        match known {
            _ if search.is_done => {}
            None => {
                self.search(&mut search, SeqRange::new(Seq::FIRST, looked))
                    .await?
            }
            Some(known) => search.go_on(known),
        }
        let mut requests = search.found;
        requests.reverse();
        let known = Known {
            head: snapshot.head,
            erasures: snapshot.erasures,
            requests: requests.clone(),
            ended: search.ended,
        };
        inner.requests.remember(snapshot.conversation, known);
        Ok(Request {
            messages: requests,
            is_done: search.ended.is_some(),
        })
    }

    /// Goes through a range, newest first, until the search is done.
    async fn search(&self, search: &mut Search<'_>, range: Option<SeqRange>) -> Result<()> {
        let mut rest = range;
        while let Some(range) = rest.filter(|_| !search.is_done) {
            let read = LogRead::new(range).newest_first().with_max_rows(PAGE);
            let page = self.memory().inner.store.read(self.id(), &read).await?;
            for entry in &page.items {
                if search.take(entry) {
                    break;
                }
            }
            rest = page.next;
        }
        Ok(())
    }
}

/// Goes through a log, newest first.
struct Search<'a> {
    conventions: &'a dyn AgentConventions,
    /// Newest first.
    found: Vec<Seq>,
    /// Number of characters of what was found.
    chars: usize,
    read: usize,
    behind: usize,
    /// The newest message that ended a turn after what was found.
    ended: Option<Seq>,
    is_done: bool,
}

impl<'a> Search<'a> {
    fn new(conventions: &'a dyn AgentConventions) -> Self {
        Self {
            conventions,
            found: Vec::new(),
            chars: 0,
            read: 0,
            behind: 0,
            ended: None,
            is_done: false,
        }
    }

    /// Takes the next older entry. Returns whether nothing else is looked for.
    fn take(&mut self, entry: &LogEntry) -> bool {
        self.read += 1;
        self.behind += usize::from(!self.found.is_empty());
        if entry.kind == EntryKind::Message {
            match entry.role {
                Role::User => {
                    if let Some(chars) = typed(self.conventions, entry) {
                        self.found.push(entry.seq);
                        self.chars += chars;
                    }
                }
                Role::Assistant if ends_turn(entry) => match self.found.is_empty() {
                    true => self.ended = self.ended.or(Some(entry.seq)),
                    false => self.end(entry.seq),
                },
                _ => {}
            }
        }
        self.is_done |=
            self.found.len() >= MOST || self.read >= MOST_READ || self.behind >= MOST_BEHIND;
        self.is_done
    }

    /// Ends at the turn before, whose last message what was found may answer.
    fn end(&mut self, reply: Seq) {
        if self.chars < ANSWER {
            self.found.push(reply);
        }
        self.is_done = true;
    }

    /// Goes on with what is known of the log before.
    fn go_on(&mut self, known: Known) {
        match known.ended {
            Some(reply) if !self.found.is_empty() => self.end(reply),
            ended => {
                let older = known.requests.into_iter().rev();
                self.found
                    .extend(older.take(MOST.saturating_sub(self.found.len())));
                self.ended = self.ended.or(ended);
            }
        }
    }
}

/// Number of characters that a person typed in a user's message; `None` where nobody asks for anything in it.
fn typed(conventions: &dyn AgentConventions, entry: &LogEntry) -> Option<usize> {
    let texts = entry.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let said = texts.collect::<Vec<_>>().join("\n");
    let text = conventions.user_text(&said, entry.meta.as_ref());
    let typed = text.typed.trim();
    let is_mark = !typed.contains('\n')
        && (typed.starts_with('[') && typed.ends_with(']')
            || typed.starts_with('/') && !typed.contains(' '));
    let asks = !text.is_document && !is_mark && typed.chars().any(char::is_alphanumeric);
    asks.then(|| typed.chars().count())
}

/// Whether an assistant's message ends a turn: it says something and calls nothing.
fn ends_turn(entry: &LogEntry) -> bool {
    let calls = |part: &Part| matches!(part, Part::ToolCall { .. });
    let says = |part: &Part| matches!(part, Part::Text { text } if !text.trim().is_empty());
    entry.parts.iter().any(says) && !entry.parts.iter().any(calls)
}
