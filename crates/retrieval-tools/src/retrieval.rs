//! The retrieval tools of one conversation.

use std::sync::{Arc, OnceLock};

use memory_model::conventions::{AgentConventions, GenericConventions};
use memory_model::{
    Accounting, ConversationId, SeqRange, SessionKey, Summary, SummaryId, ViewName,
};
use memory_search::{Search, SearchStop, SegmentSearch};
use memory_store::{Conversation, ConversationRef, Store};

use crate::arguments::Arguments as _;
use crate::cursor::{Binding, foreign};
use crate::describe::{DescribeArgs, Description};
use crate::error::{Error, ErrorKind, Result};
use crate::expand::{ExpandArgs, Target};
use crate::grep::GrepArgs;
use crate::identity::IdentityFiles;
use crate::limits::RetrievalLimits;
use crate::narrowing::{Grant, Narrowing};
use crate::notes::{Notes, ToolNames};
use crate::room::Room;
use crate::text::short;

/// Number of log entries, or of summaries, that are read at once.
pub(crate) const BATCH: usize = 64;

/// The retrieval tools of one conversation: they search and read its messages and summaries for a model.
///
/// Whatever its arguments, a call can reach only the conversation for which the tools were created. A fork also reaches
/// the messages that it shares with its parent conversation. [`narrow`](Self::narrow) derives a tool set with fewer
/// permissions. A derived tool set never has more permissions than its original.
#[derive(Debug, Clone)]
pub struct Retrieval {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) search: Arc<dyn Search>,
    pub(crate) conversation: ConversationId,
    pub(crate) accounting: Arc<dyn Accounting>,
    pub(crate) conventions: Arc<dyn AgentConventions>,
    pub(crate) view: Option<ViewName>,
    pub(crate) grant: Grant,
    /// Files that the tool `memory_identity` edits; without them the tool set does not have it.
    pub(crate) identity: Option<IdentityFiles>,
    /// Notes for the tools of these names; without them the tool set does not have those tools.
    pub(crate) notes: Option<(ToolNames, Notes)>,
    /// Condition that ends searches early.
    pub(crate) stop: Option<SearchStop>,
    /// Maximum number of tokens in the text of a reply. `None` without such a limit.
    pub(crate) reply: Option<u64>,
    pub(crate) limits: RetrievalLimits,
    /// The limits of the tool set from which this one was derived.
    ceiling: RetrievalLimits,
    /// The key of the conversation, as soon as it was read from the store. A key never changes.
    key: Arc<OnceLock<SessionKey>>,
}

impl Retrieval {
    /// Creates the tools of `conversation`. They search it with the index of the store, and read unindexed messages
    /// directly. `accounting` counts the tokens of answers.
    pub fn new(
        store: Arc<dyn Store>,
        conversation: ConversationId,
        accounting: Arc<dyn Accounting>,
    ) -> Self {
        Self {
            search: Arc::new(SegmentSearch::new(Arc::clone(&store))),
            store,
            conversation,
            accounting,
            conventions: Arc::new(GenericConventions),
            view: None,
            grant: Grant::default(),
            identity: None,
            notes: None,
            stop: None,
            reply: None,
            limits: RetrievalLimits::default(),
            ceiling: RetrievalLimits::none(),
            key: Arc::default(),
        }
    }

    /// Sets the search that `grep` and `recall` use. It must search the same store.
    pub fn with_search(mut self, search: Arc<dyn Search>) -> Self {
        self.search = search;
        self
    }

    /// Sets the rules by which `files` recognizes the reads, changes and commands among the agent's tool calls. The
    /// default rules use the names of the tools' arguments.
    pub fn with_conventions(mut self, conventions: Arc<dyn AgentConventions>) -> Self {
        self.conventions = conventions;
        self
    }

    /// Adds the tool `memory_identity`, which reads and writes these files and no others. A tool set that
    /// [`narrow`](Self::narrow) derives does not have the tool.
    pub fn with_identity(mut self, files: IdentityFiles) -> Self {
        self.identity = Some(files);
        self
    }

    /// Adds the tools of a vendor, which read the conversation and write these notes. A tool set that
    /// [`narrow`](Self::narrow) derives does not have the tools.
    pub fn with_names(mut self, names: ToolNames, notes: Notes) -> Self {
        self.notes = Some((names, notes));
        self
    }

    /// Sets the view for [`Passage::path`](crate::Passage::path). A view is a named list of the summaries and messages
    /// that a context shows. By default, the tools use the published view with the first name in alphabetical order.
    pub fn with_view(mut self, view: ViewName) -> Self {
        self.view = Some(view);
        self
    }

    /// Sets the limits for the answers of all calls. In a narrowed tool set, a limit above the limit of the original
    /// has no effect.
    pub fn with_limits(mut self, limits: RetrievalLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets a condition that ends searches early, such as a deadline. A search that ends early returns an incomplete
    /// answer with a cursor.
    pub fn with_stop(mut self, stop: SearchStop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the key of the conversation. Cursors are valid only for the conversation with this key. Without this call,
    /// the tools read the key from the store when they need the first cursor.
    pub fn with_session_key(mut self, key: SessionKey) -> Self {
        self.key = Arc::new(OnceLock::from(key));
        self
    }

    /// Returns the id of the conversation that the tools read.
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Returns the limits in effect. In a narrowed tool set, no limit is higher than the limit of the original tool
    /// set.
    pub fn limits(&self) -> RetrievalLimits {
        self.limits.within(&self.ceiling)
    }

    /// Returns a tool set with fewer permissions than this one, as described by `by`.
    ///
    /// # Errors
    /// `Invalid` if this tool set is itself narrowed to a range without any message of `by.within`. `NotFound` if
    /// `by.within` is a summary that this tool set does not see. Also the errors of the store.
    pub async fn narrow(&self, by: &Narrowing) -> Result<Self> {
        let range = match &by.within {
            None => None,
            Some(Target::Messages(range)) => Some(*range),
            Some(Target::Summary(id)) => Some(self.summary(id).await?.range),
        };
        let mut narrowed = self.clone();
        narrowed.grant = self.grant.narrowed(by, range)?;
        narrowed.identity = None;
        narrowed.notes = None;
        narrowed.ceiling = self.limits();
        Ok(narrowed)
    }

    /// Returns the room of an answer with at most `text` tokens of text.
    pub(crate) fn room(&self, text: u64) -> Room<'_> {
        Room {
            accounting: &*self.accounting,
            text: self.reply.map_or(text, |reply| text.min(reply)),
        }
    }

    /// Returns the binding for the cursors of a question. It ties them to the conversation and the question.
    pub(crate) async fn binding(&self, question: &str) -> Result<Binding> {
        if let Some(key) = self.key.get() {
            return Ok(Binding::new(key, question));
        }
        let key = self.info().await?.key;
        Ok(Binding::new(self.key.get_or_init(|| key), question))
    }

    /// Returns the position at which a cursor continues a question. `None` without a cursor.
    pub(crate) async fn position<T>(
        &self,
        question: &str,
        cursor: Option<&str>,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(cursor) = cursor else {
            return Ok(None);
        };
        let binding = self.binding(question).await?;
        let position = read(binding.position(cursor)?);
        position.map(Some).ok_or_else(|| foreign(cursor))
    }

    /// Returns the text of a summary, with its token counts, its parent and child summaries, and the record of how it
    /// was made. Long answers are shortened to [`RetrievalLimits::describe_tokens`].
    ///
    /// # Errors
    /// `Invalid` if the id is empty or names messages. `NotFound` if the conversation has no summary with this id. Also
    /// the errors of the store.
    pub async fn describe(&self, id: &SummaryId) -> Result<Description> {
        if id.as_str().trim().is_empty() {
            return Err(Error::invalid(
                "summary_id is required: give a summary's id such as \"sum_0123456789abcdef\"",
            ));
        }
        let id = match id.as_str().parse()? {
            Target::Summary(id) => id,
            Target::Messages(_) => {
                return Err(Error::invalid(format!(
                    "{} names messages, not a summary: read them with {}",
                    short(id.as_str()),
                    ExpandArgs::NAME
                )));
            }
        };
        let spending = self
            .grant
            .begin(DescribeArgs::NAME, self.limits().describe_tokens)?;
        let summary = self.summary(&id).await?;
        let mut parents = self.store.parents(self.conversation, &id).await?;
        if !self.grant.sees_all() {
            let seen = self.seen(&parents).await?;
            parents.retain(|parent| seen.contains(parent));
        }
        let description = Description::new(summary, parents);
        let description = description.within(&self.room(spending.taken));
        spending.end(self.accounting.text(&description.to_text()));
        Ok(description)
    }

    /// Returns the given summaries without the ones that this tool set does not see.
    pub(crate) async fn seen(&self, ids: &[SummaryId]) -> Result<Vec<SummaryId>> {
        let mut seen = Vec::new();
        for ids in ids.chunks(BATCH) {
            let found = self.store.summaries(self.conversation, ids).await?;
            let found = found.into_iter().flatten();
            let found = found.filter(|one| self.grant.sees_summary(&one.range, one.depth));
            seen.extend(found.map(|one| one.id));
        }
        Ok(seen)
    }

    pub(crate) async fn summary(&self, id: &SummaryId) -> Result<Summary> {
        let found = self
            .store
            .summaries(self.conversation, std::slice::from_ref(id))
            .await?;
        let found = found.into_iter().next().flatten();
        let found = found.filter(|one| self.grant.sees_summary(&one.range, one.depth));
        found.ok_or_else(|| no_summary("this conversation has", id))
    }

    pub(crate) async fn info(&self) -> Result<Conversation> {
        let found = self
            .store
            .conversation(&ConversationRef::Id(self.conversation))
            .await?;
        found.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("there is no conversation {}", self.conversation),
            )
        })
    }

    /// Returns the range of messages that this tool set sees. `None` if it sees no message.
    pub(crate) async fn visible(&self) -> Result<Option<SeqRange>> {
        let all = self.info().await?.range();
        Ok(all.and_then(|all| self.grant.visible(all)))
    }

    /// Returns the part of a range of messages that this tool set sees.
    ///
    /// # Errors
    /// `NotFound` if this part is empty.
    pub(crate) async fn part_of(&self, asked: SeqRange) -> Result<SeqRange> {
        let seen = self.visible().await?;
        let range = seen.and_then(|seen| seen.intersect(&asked));
        range.ok_or_else(|| {
            let there = match seen {
                None => "it has none".to_owned(),
                Some(seen) => format!("it has messages:{}-{}", seen.first, seen.last),
            };
            Error::new(
                ErrorKind::NotFound,
                format!(
                    "this conversation has no {}: {there}",
                    Target::Messages(asked)
                ),
            )
        })
    }
}

/// Returns the error for a summary that `who`, such as `this conversation has`, does not have. A number alone is a position of a message.
pub(crate) fn no_summary(who: &str, id: &SummaryId) -> Error {
    let name = short(id.as_str());
    let number = id.as_str().trim().parse::<u32>();
    let advice = match number {
        Ok(number) => format!("message:{number} names a message"),
        Err(_) => format!(
            "take an id from its context, from {} or from {}",
            GrepArgs::NAME,
            DescribeArgs::NAME
        ),
    };
    let message = format!("{who} no summary {name}: {advice}");
    Error::new(ErrorKind::NotFound, message)
}
