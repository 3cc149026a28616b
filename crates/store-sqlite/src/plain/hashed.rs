//! Tables with everything that the hashes of logs, summaries and views are computed from.

use memory_model::{LogEntry, SpanBody, SpanStart, Summary, ViewVersion};
use memory_store::implementors::erased_parts;
use memory_store::{Conversation, Erasures, Error, ErrorKind, Origin, Publication, Result, Store};

use super::{Plain, int};

/// Maximum number of publications in one read from the store.
const PAGE: usize = 256;

impl<S: Store + ?Sized> Plain<'_, S> {
    pub(super) async fn hashed_log(
        &mut self,
        found: &Conversation,
        erasures: &Erasures,
    ) -> Result<()> {
        let (parent, shared) = match found.origin {
            Origin::Fork { parent, at } => (Some(i64::from(parent.0)), Some(i64::from(at.0))),
            _ => (None, None),
        };
        let insert = sqlx::query("insert into logs values (?, ?, ?, ?, ?, ?, ?)")
            .bind(i64::from(found.id.0))
            .bind(parent)
            .bind(shared)
            .bind(i64::from(found.head.0))
            .bind(found.chain.0.as_slice())
            .bind(found.estimator.as_str())
            .bind(int(found.erasures));
        self.run(insert).await?;
        for erasure in &erasures.entries {
            let insert = sqlx::query("insert into erasures values (?, ?, ?, ?, ?)")
                .bind(i64::from(found.id.0))
                .bind(i64::from(erasure.range.first.0))
                .bind(i64::from(erasure.range.last.0))
                .bind(erasure.at.0)
                .bind(erasure.reason.as_str());
            self.run(insert).await?;
        }
        Ok(())
    }

    pub(super) async fn hashed_entry(
        &mut self,
        found: &Conversation,
        entry: &LogEntry,
        erasures: &Erasures,
    ) -> Result<()> {
        let parts = &entry.message.parts;
        let is_erased = erasures.covers(entry.seq) && *parts == erased_parts(entry.tokens);
        let body = serde_json::to_string(parts).map_err(|source| {
            let message = format!("entry {} of {} is no JSON", entry.seq, found.key);
            Error::new(ErrorKind::Corrupt, message).with_source(source)
        })?;
        let turn = entry.message.turn.as_ref();
        let insert = sqlx::query(
            "insert into log_entries values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(i64::from(found.id.0))
        .bind(i64::from(entry.seq.0))
        .bind(entry.kind.as_str())
        .bind(entry.role.as_str())
        .bind(entry.external_id.as_deref())
        .bind(entry.response.as_deref())
        .bind(entry.name.as_deref())
        .bind(turn.map(|turn| turn.loop_id.as_str()))
        .bind(turn.map(|turn| i64::from(turn.turn)))
        .bind(entry.created_at.0)
        .bind(entry.meta.as_ref().map(|meta| meta.as_str()))
        .bind(Some(body).filter(|_| !is_erased))
        .bind(int(entry.tokens))
        .bind(entry.hash.0.as_slice());
        self.run(insert).await
    }

    pub(super) async fn hashed_summary(
        &mut self,
        summary: &Summary,
        is_erased: bool,
    ) -> Result<()> {
        let insert =
            sqlx::query("insert into summary_hashes values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                .bind(summary.id.as_str())
                .bind(i64::from(summary.range.first.0))
                .bind(i64::from(summary.range.last.0))
                .bind(summary.recipe.as_str())
                .bind(summary.rendering.as_str())
                .bind(summary.model.as_deref())
                .bind(summary.body.ranks())
                .bind(summary.messages.as_ref().map(|messages| messages.as_str()))
                .bind(i64::from(is_erased))
                .bind(summary.source_hash.0.as_slice())
                .bind(summary.hash.0.as_slice());
        self.run(insert).await?;
        for (role, links) in [("child", &summary.children), ("source", &summary.sources)] {
            for (ordinal, link) in (0_i64..).zip(links) {
                let insert = sqlx::query("insert into summary_links values (?, ?, ?, ?, ?, ?)")
                    .bind(summary.id.as_str())
                    .bind(role)
                    .bind(ordinal)
                    .bind(i64::from(link.range().first.0))
                    .bind(i64::from(link.range().last.0))
                    .bind(link.summary().map(|id| id.as_str()));
                self.run(insert).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn hashed_views(&mut self, found: &Conversation) -> Result<()> {
        for view in self.store.views(found.id).await? {
            let insert = sqlx::query("insert into views values (?, ?, ?, ?)")
                .bind(i64::from(found.id.0))
                .bind(view.name.as_str())
                .bind(int(view.version.0))
                .bind(view.chain.0.as_slice());
            self.run(insert).await?;
            let mut after = Some(ViewVersion(0));
            while let Some(version) = after {
                let page = self
                    .store
                    .publications(found.id, &view.name, version, PAGE)
                    .await?;
                for publication in &page.items {
                    self.publication(found, view.name.as_str(), publication)
                        .await?;
                }
                after = page.next;
            }
        }
        Ok(())
    }

    async fn publication(
        &mut self,
        found: &Conversation,
        view: &str,
        publication: &Publication,
    ) -> Result<()> {
        let version = int(publication.version.0);
        let insert = sqlx::query("insert into publications values (?, ?, ?, ?, ?, ?)")
            .bind(i64::from(found.id.0))
            .bind(view)
            .bind(version)
            .bind(i64::from(publication.at.first.0))
            .bind(i64::from(publication.at.last.0))
            .bind(publication.hash.0.as_slice());
        self.run(insert).await?;
        for (added, spans) in [(0_i64, &publication.removed), (1, &publication.added)] {
            for SpanStart {
                first,
                body,
                tokens,
            } in spans
            {
                let (kind, summary, policy, depth) = match body {
                    SpanBody::Raw => ("raw", None, None, None),
                    SpanBody::Summary { id, depth } => {
                        ("summary", Some(id.as_str()), None, Some(*depth))
                    }
                    SpanBody::Trimmed(policy) => ("trimmed", None, Some(policy.as_str()), None),
                    SpanBody::Omitted => ("omitted", None, None, None),
                };
                let insert = sqlx::query(
                    "insert into published_spans values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )
                .bind(i64::from(found.id.0))
                .bind(view)
                .bind(version)
                .bind(added)
                .bind(i64::from(first.0))
                .bind(kind)
                .bind(summary)
                .bind(policy)
                .bind(depth.map(i64::from))
                .bind(int(*tokens));
                self.run(insert).await?;
            }
        }
        Ok(())
    }
}
