//! A memory as rig's conversation memory.

use agent_memory::store::ConversationPatch;
use agent_memory::{ErrorKind, Memory, RawJson, Session, Window};
use rig_core::completion::message::Message as RigMessage;
use rig_core::id::ConversationId;
use rig_core::memory::{ConversationMemory, MemoryError};
use rig_core::wasm_compat::WasmBoxedFuture;
use serde_json::{Map, Value};

use crate::context::context_to_rig;
use crate::messages::from_rig;

/// Key, in a session's metadata, of how often its conversation was cleared.
const CLEARED: &str = "rig_cleared";

/// rig's conversation memory over the sessions of a [`Memory`].
///
/// - `append` adds messages to the log of the session whose key is the conversation's id, in one
///   transaction, and does what the memory's [`TurnPolicy`](agent_memory::TurnPolicy) says for the end of a turn: by
///   default it prefetches summaries in the background.
/// - `load` returns the context for the next turn within the window's budget: summaries of what is
///   old, and what is new verbatim. No model is called for it by default.
/// - `clear` archives the session. The conversation goes on in a new one, and `load` returns nothing
///   of what was before. The archived log stays: [`Memory::sessions`] lists it where the filter asks for archived
///   ones.
///
/// rig loads once a run. What the run itself adds (the prompt, calls, results) is not in the budget: the window's
/// reserve must have room for it, beside the answer.
#[derive(Debug, Clone)]
pub struct RigMemory {
    memory: Memory,
    window: Window,
}

impl RigMemory {
    /// Creates a conversation memory whose contexts fit into a window.
    ///
    /// Count rig's preamble and tools with [`Window::system_tokens`].
    pub fn new(memory: Memory, window: Window) -> Self {
        Self { memory, window }
    }

    /// Returns the memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the session that a conversation is in now, for searching, forks and figures; `None`
    /// for a conversation without messages.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn session(&self, id: &ConversationId) -> agent_memory::Result<Option<Session>> {
        let Some(first) = self.memory.find_session(id.as_str()).await? else {
            return Ok(None);
        };
        let current = match times_cleared(&metadata(&first).await?) {
            0 => first,
            cleared => match self.memory.find_session(key(id, cleared)).await? {
                Some(current) => current,
                None => return Ok(None),
            },
        };
        let key = current.key().clone();
        let current = self.memory.get_session(key).window(self.window).await?;
        Ok(Some(current))
    }

    async fn load_context(&self, id: &ConversationId) -> agent_memory::Result<Vec<RigMessage>> {
        let Some(session) = self.session(id).await? else {
            return Ok(Vec::new());
        };
        // Compactions that fail are in the reports, and a context is there without them.
        let _report = session.before_turn().await?;
        let prepared = session.context().await?;
        context_to_rig(&session, &prepared.context).await
    }

    async fn append_messages(
        &self,
        id: &ConversationId,
        messages: &[RigMessage],
    ) -> agent_memory::Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        let open = |key: String| self.memory.session(key).window(self.window);
        let first = open(id.as_str().to_owned()).await?;
        let session = match times_cleared(&metadata(&first).await?) {
            0 => first,
            cleared => open(key(id, cleared)).await?,
        };
        // Without ids of their own, all messages are stored.
        let _report = session
            .ingest_batch(messages.iter().map(from_rig).collect())
            .await?;
        let _report = session.after_turn().await?;
        Ok(())
    }

    async fn clear_conversation(&self, id: &ConversationId) -> agent_memory::Result<()> {
        let Some(first) = self.memory.find_session(id.as_str()).await? else {
            return Ok(());
        };
        let mut metadata = metadata(&first).await?;
        let cleared = times_cleared(&metadata);
        let current = match cleared {
            0 => Some(first.clone()),
            cleared => self.memory.find_session(key(id, cleared)).await?,
        };
        // Nothing was said since the conversation was cleared.
        let Some(current) = current else {
            return Ok(());
        };
        metadata.insert(CLEARED.to_owned(), cleared.saturating_add(1).into());
        let meta = RawJson::from_value(&metadata).ok();
        let patch = ConversationPatch {
            meta,
            ..ConversationPatch::default()
        };
        first.update(&patch).await?;
        let patch = ConversationPatch {
            archived: Some(true),
            ..ConversationPatch::default()
        };
        current.update(&patch).await?;
        Ok(())
    }
}

/// Returns the key of the session that a conversation is in after it was cleared.
fn key(id: &ConversationId, cleared: u64) -> String {
    format!("{id}#cleared-{cleared}")
}

async fn metadata(session: &Session) -> agent_memory::Result<Map<String, Value>> {
    let meta = session.info().await?.conversation.meta;
    let meta = meta.and_then(|meta| serde_json::from_str(meta.as_str()).ok());
    Ok(meta.unwrap_or_default())
}

fn times_cleared(metadata: &Map<String, Value>) -> u64 {
    metadata
        .get(CLEARED)
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

fn memory_error(error: agent_memory::Error) -> MemoryError {
    match error.kind() {
        ErrorKind::BudgetTooSmall { .. } => MemoryError::Policy(error.to_string()),
        _ => MemoryError::backend(error),
    }
}

impl ConversationMemory for RigMemory {
    fn load<'a>(
        &'a self,
        conversation_id: &'a ConversationId,
    ) -> WasmBoxedFuture<'a, Result<Vec<RigMessage>, MemoryError>> {
        Box::pin(async move {
            let loaded = self.load_context(conversation_id).await;
            loaded.map_err(memory_error)
        })
    }

    fn append<'a>(
        &'a self,
        conversation_id: &'a ConversationId,
        messages: Vec<RigMessage>,
    ) -> WasmBoxedFuture<'a, Result<(), MemoryError>> {
        Box::pin(async move {
            let appended = self.append_messages(conversation_id, &messages).await;
            appended.map_err(memory_error)
        })
    }

    fn clear<'a>(
        &'a self,
        conversation_id: &'a ConversationId,
    ) -> WasmBoxedFuture<'a, Result<(), MemoryError>> {
        Box::pin(async move {
            let cleared = self.clear_conversation(conversation_id).await;
            cleared.map_err(memory_error)
        })
    }
}
