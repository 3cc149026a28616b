//! Compares all readable data of a store with the reference store and with [`Simple`](super::simple::Simple).

use memory_model::{
    ConversationId, Hash, Recipe, Seq, SeqRange, Span, SpanBody, ViewName, ViewVersion,
};
use memory_search::{Query, Search, SegmentSearch};
use memory_store::{ConversationFilter, ERASED, FullStore, LogRead, Order, Store as _};

use super::simple::GONE;
use super::world::{Checked, VIEWS, World, both, same};
use crate::Fixture;
use crate::builders::verify_store;
use crate::chat::Chat;

impl<F: Fixture> World<'_, F> {
    /// Compares all readable data of the two stores.
    pub(super) async fn compare(&self) -> Checked<()> {
        let filter = ConversationFilter::default();
        both!(self, list(&filter, None, 1_000))?.ok();
        for chat in &self.chats {
            let chat = *chat;
            let now = self.expected(chat).info().await;
            let all = SeqRange::new(Seq::FIRST, Seq(now.head.0 + 3)).expect("not empty");
            let newest = LogRead::new(all).newest_first().with_max_rows(7);
            both!(self, read(chat, &newest))?.ok();
            let log = Chat::new(self.store(), chat).entries().await;
            if log != self.expected(chat).entries().await {
                return Err(format!("the logs of {chat} differ"));
            }
            let log: Vec<_> = log
                .iter()
                .map(|e| (e.external_id.clone(), e.text()))
                .collect();
            // An erased short message has no text.
            let said: Vec<_> = self.simple.logs[&chat]
                .iter()
                .zip(&log)
                .map(|((id, said), (_, text))| {
                    let is_gone = said == GONE && ["", ERASED].contains(&text.as_str());
                    (id.clone(), if is_gone { text } else { said }.clone())
                })
                .collect();
            if log != said || said.len() != self.simple.logs[&chat].len() {
                return Err(format!("the log of {chat} is not what was appended"));
            }
            let positions: Vec<Seq> = (0..=now.head.0 + 1).map(Seq).collect();
            both!(self, running(chat, &positions))?.ok();
            for tokens in (0..=now.tokens + 1).step_by(5) {
                both!(self, seq_at(chat, tokens))?.ok();
            }
            let ids: Vec<String> = (0..64).map(|n| format!("id {n}")).collect();
            both!(self, find(chat, &ids))?.ok();
            if let Ok(page) = both!(self, summary_log(chat, None, 1_000))? {
                let half = page.items.get(page.items.len() / 2).map(|s| &s.id);
                both!(self, summary_log(chat, half, 1))?.ok();
                for summary in &page.items {
                    both!(self, parents(chat, &summary.id))?.ok();
                }
                let sources: Vec<(Hash, Recipe)> = page
                    .items
                    .iter()
                    .map(|summary| (summary.source_hash, summary.recipe.clone()))
                    .collect();
                both!(self, summaries_by_source(chat, &sources))?.ok();
            }
            both!(self, views(chat))?.ok();
            let query = Query::new("1 WORD").with_limit(3);
            let store = SegmentSearch::without_index(self.store());
            let store = store.search(chat, &query).await.map_err(|e| e.kind());
            let reference = SegmentSearch::without_index(&self.reference);
            let reference = reference.search(chat, &query).await.map_err(|e| e.kind());
            if store != reference {
                return Err(format!(
                    "search: the store says\n{store:?}\nthe reference says\n{reference:?}"
                ));
            }
            for view in VIEWS {
                self.compare_view(chat, view, all).await?;
            }
        }
        Ok(())
    }

    async fn compare_view(&self, chat: ConversationId, name: &str, all: SeqRange) -> Checked<()> {
        let view = ViewName::from(name);
        both!(self, publications(chat, &view, ViewVersion(0), 1_000))?.ok();
        let Ok(mut snapshot) = both!(self, snapshot(chat, &view))? else {
            return Err(format!("view {name} of {chat} cannot be read"));
        };
        let spans = Chat::new(self.store(), chat).spans(name).await;
        let head = snapshot.head.0 as usize;
        let bodies: Vec<SpanBody> = (1..=snapshot.head.0)
            .map(|seq| {
                let holds = |span: &&Span| {
                    span.range.first.0 <= seq && span.range.last.is_none_or(|last| last.0 >= seq)
                };
                let mut holders = spans.iter().filter(holds);
                let body = holders.next().map(|span| span.body.clone());
                body.filter(|_| holders.next().is_none())
                    .ok_or_else(|| format!("view {name} of {chat}: {seq} is not in one span"))
            })
            .collect::<Checked<_>>()?;
        let expected = self.simple.views.get(&(chat, name.to_owned()));
        let mut expected = expected.cloned().unwrap_or_default();
        expected.resize(head, SpanBody::Raw);
        if bodies != expected {
            return Err(format!(
                "view {name} of {chat} is not what was published: {bodies:?}"
            ));
        }
        for version in 0..=snapshot.version.0 {
            snapshot.version = ViewVersion(version);
            both!(self, spans(&snapshot, all, Order::OldestFirst, 1_000))?.ok();
            both!(self, spans(&snapshot, all, Order::NewestFirst, 2))?.ok();
        }
        Ok(())
    }
}

pub(super) async fn verified<S: FullStore>(store: &S, name: &str) -> Checked<()> {
    let reports = verify_store(store).await;
    match reports.iter().flat_map(|report| &report.violations).next() {
        None => Ok(()),
        Some(violation) => Err(format!("{name} does not verify: {violation}")),
    }
}
