//! Reads the stored branches of a session.

use std::collections::HashMap;

use memory_model::{ConversationId, SeqRange, SessionKey};
use memory_store::{Conversation, ConversationFilter, Origin as StoredOrigin, read_conversations};
use message_formats::SessionLog;

use super::map::{Branch, Map};
use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;

impl Memory {
    /// Reads the stored branches of a session: the root of its forks, and all forks of that root.
    pub(super) async fn map_of(
        &self,
        family: &[&SessionLog],
        key: &SessionKey,
        stored: Conversation,
    ) -> Result<Map> {
        let store = &self.inner.store;
        let mut filter = ConversationFilter::default();
        filter.archived = true;
        filter.family = Some(stored.family);
        let members = read_conversations(&**store, &filter).await?;
        let by_id: HashMap<ConversationId, &Conversation> =
            members.iter().map(|member| (member.id, member)).collect();
        let fork_root = |mut id: ConversationId| {
            while let Some(StoredOrigin::Fork { parent, .. }) =
                by_id.get(&id).map(|member| &member.origin)
            {
                id = *parent;
            }
            id
        };
        let root = fork_root(stored.id);
        let mut map = Map::new(key.clone());
        let mut index_of: HashMap<ConversationId, usize> = HashMap::new();
        for member in members.iter().filter(|member| fork_root(member.id) == root) {
            let parent = match &member.origin {
                StoredOrigin::Fork { parent, at } => {
                    index_of.get(parent).map(|parent| (*parent, *at))
                }
                _ => None,
            };
            let mut branch = Branch {
                parent,
                head: member.head,
                stored: Some((member.id, member.head)),
                ..Branch::root(member.key.clone())
            };
            let shared = branch.shared();
            if parent.is_none() {
                let heads = family.iter().flat_map(|log| log.heads());
                let ids = heads.filter_map(|head| head.id.map(str::to_owned));
                let mut ids: Vec<String> = ids.collect();
                ids.sort_unstable();
                ids.dedup();
                let positions = store.find(member.id, &ids).await?;
                let known = ids.into_iter().zip(positions);
                branch.own = known.filter_map(|(id, seq)| Some((id, seq?))).collect();
            } else {
                let session = Session::bind(self, member.clone())?;
                let mut rest = SeqRange::new(shared.next(), member.head);
                while let Some(range) = rest {
                    let page = session.entries_in(range).await?;
                    for entry in page.items {
                        if let Some(id) = entry.message.external_id {
                            branch.own.insert(id, entry.seq);
                        }
                    }
                    rest = page.next;
                }
            }
            index_of.insert(member.id, map.branches.len());
            map.add(branch);
        }
        map.base = index_of.get(&stored.id).copied().unwrap_or(0);
        Ok(map)
    }
}
