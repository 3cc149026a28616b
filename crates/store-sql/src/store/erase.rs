//! Erasure of words.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{ConversationId, Seq, SeqRange, Summary, SummaryId};
use memory_store::implementors::{
    SummaryScope, conversation_hash, plan_erasure, summaries_to_erase,
};
use memory_store::{
    Conversation, ConversationFilter, Erase, Erased, ErasedRange, Erasure, Erasures, ErrorKind,
    IndexedKind, Result,
};

use super::pages::batched;
use super::{ROWS, SqlStore};
use crate::convert::{packed, to_count};
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::pack::Facts;
use crate::row::Columns as _;
use crate::search::SegmentSelection;
use crate::{conversation, erasure as sql, message, summary, vector};

/// Maximum number of database rows that one request reads.
const PAGE: u64 = 64;

impl<D: Database> SqlStore<D> {
    pub(super) async fn erase_words(&self, id: ConversationId, erase: &Erase) -> Result<Erased> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, id).await?;
        let on = &mut tx;
        let info = self.get(on, id).await?;
        let members = self.members_of(on, &info).await?;
        let mut erased = plan_erasure(&info, &members, erase)?;
        for log in &erased.logs {
            let count = sql::with_words(family, log.conversation, log.range);
            let row = on.first(&count).await?;
            let count = row.map_or(Ok(0), |row| row.int(0))?;
            erased.entries += to_count("erased entries", count)?;
        }
        if !erased.logs.is_empty() {
            let copies = on.all(&sql::copies(family, &erased.logs)).await?;
            erased.copies = copies.iter().map(sql::copy).collect::<Result<_>>()?;
        }
        for seen in &erased.seen_by {
            let row = on
                .first(&sql::count_jobs(family, seen.conversation))
                .await?;
            let count = row.map_or(Ok(0), |row| row.int(0))?;
            erased.drafts += to_count("jobs", count)?;
        }
        let summaries = self.with_words(on, family, &erased.seen_by).await?;
        erased.summaries = summaries.len() as u64;
        if erase.dry_run {
            return Ok(erased);
        }
        for log in &erased.logs {
            self.erase_log(on, family, log, erase).await?;
        }
        for seen in erased.seen_by.iter().filter(|_| !summaries.is_empty()) {
            let all = SegmentSelection::From(seen.conversation, IndexedKind::Summaries, 0);
            self.forget_segments(on, family, all).await?;
        }
        for keys in summaries.chunks(ROWS) {
            on.run(&sql::record_summaries(family, keys, erase.now)?)
                .await?;
            on.run(&sql::blank_summaries(family, keys)).await?;
        }
        for seen in &erased.seen_by {
            on.run(&sql::delete_jobs(family, seen.conversation)).await?;
            on.run(&sql::delete_prepared(family, seen.conversation))
                .await?;
            on.run(&sql::count_erasure(family, seen.conversation))
                .await?;
            // An erased tool call may come before the first own message of a fork, and the fork's index may contain it.
            for kind in [IndexedKind::Messages, IndexedKind::States] {
                let from = SegmentSelection::From(seen.conversation, kind, seen.range.first.0);
                self.forget_segments(on, family, from).await?;
            }
        }
        if erase.range.is_none() {
            let after = Conversation {
                title: None,
                meta: None,
                archived: true,
                updated_at: erase.now,
                ..info
            };
            on.run(&sql::delete_states(family, id)).await?;
            on.run(&sql::blank_conversation(family, id)).await?;
            let record = conversation_hash(&after);
            on.run(&conversation::touch(family, id.0, erase.now, record))
                .await?;
        }
        on.run(&sql::record_wipe(erase.now)?).await?;
        self.database.commit(tx).await?;
        let pending = self.pending_wipes(&mut writer).await?;
        drop(writer);
        self.wipe(pending).await?;
        Ok(erased)
    }

    /// Erases the words of a range of a log, in its rows, its index and its facts.
    async fn erase_log(
        &self,
        on: &mut impl Executor,
        family: Family,
        log: &ErasedRange,
        erase: &Erase,
    ) -> Result<()> {
        let found = sql::payloads_of(family, log.conversation, log.range);
        let found = on.all(&found).await?;
        let payloads: Vec<i64> = found.iter().map(|row| row.int(0)).collect::<Result<_>>()?;
        let from =
            SegmentSelection::From(log.conversation, IndexedKind::Messages, log.range.first.0);
        self.forget_segments(on, family, from).await?;
        on.run(&vector::delete_range(family, log.conversation, log.range))
            .await?;
        on.run(&sql::record(family, log.conversation, log.range, erase)?)
            .await?;
        on.run(&sql::blank_entries(family, log.conversation, log.range))
            .await?;
        for ids in batched(&payloads) {
            on.run(&sql::delete_payloads(family, &ids)).await?;
        }
        self.forget_facts(on, family, log.conversation).await
    }

    /// Removes the erased words from the files, and then deletes the records of the `pending` erasures.
    async fn wipe(&self, pending: Vec<(i64, i64)>) -> Result<()> {
        self.database.wipe().await?;
        let mut writer = self.database.write().await?;
        for (no, at) in pending {
            writer.run(&sql::wiped(no, at)).await?;
        }
        Ok(())
    }

    /// Removes words that an interrupted erasure left in the files. If another program is using the database, the words
    /// stay until the next program opens it for writing.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub(super) async fn finish_wipe(&self) -> Result<()> {
        let mut writer = self.database.write().await?;
        let pending = self.pending_wipes(&mut writer).await?;
        drop(writer);
        if pending.is_empty() {
            return Ok(());
        }
        match self.wipe(pending).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotGone | ErrorKind::Busy) => {
                tracing::warn!(%error, "erased words are still in the files");
                Ok(())
            }
            wiped => wiped,
        }
    }

    /// Returns the number and time of each erasure with words that are not yet removed from the files.
    pub(super) async fn pending_wipes(&self, on: &mut impl Executor) -> Result<Vec<(i64, i64)>> {
        let rows = on.all(&sql::pending_wipes()).await?;
        rows.iter()
            .map(|row| Ok((row.int(0)?, row.int(1)?)))
            .collect()
    }

    pub(super) async fn erased_of(&self, id: ConversationId) -> Result<Erasures> {
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let info = self.get(on, id).await?;
        let family = self.family_of(&info);
        let mut entries = Vec::new();
        for row in on.all(&sql::seen_by(family, id)).await? {
            let (source, erasure) = sql::erasure(&row)?;
            let mut segments = info.segments.iter();
            let shown = segments
                .find(|segment| segment.source == source)
                .and_then(|own| own.up_to(info.head))
                .and_then(|shown| shown.intersect(&erasure.range));
            if let Some(range) = shown {
                entries.push(Erasure::new(range, erasure.at, erasure.reason));
            }
        }
        let mut summaries = BTreeSet::new();
        for row in on.all(&sql::summaries_seen_by(family, id)).await? {
            summaries.insert(SummaryId::new(row.text(0)?));
        }
        Ok(Erasures::new(entries, summaries))
    }

    pub(super) async fn members_of(
        &self,
        on: &mut impl Executor,
        info: &Conversation,
    ) -> Result<Vec<Conversation>> {
        let mut filter = ConversationFilter::default();
        filter.family = Some(info.family);
        filter.archived = true;
        let mut family: Vec<Conversation> = Vec::new();
        loop {
            let after = family.last().map(|last| last.id);
            let rows = on.all(&conversation::list(&filter, after, PAGE)).await?;
            if rows.is_empty() {
                return Ok(family);
            }
            for row in rows {
                family.push(self.found(on, &row).await?);
            }
        }
    }

    /// Returns the row keys of the summaries that were made from erased entries and still have their words.
    async fn with_words(
        &self,
        on: &mut impl Executor,
        family: Family,
        seen_by: &[ErasedRange],
    ) -> Result<Vec<i64>> {
        let mut made: BTreeMap<ConversationId, Vec<Summary>> = BTreeMap::new();
        for seen in seen_by {
            let own = made.entry(seen.conversation).or_default();
            let scope = SummaryScope::own(seen.conversation);
            let mut after = summary::SummaryStart::Nothing;
            loop {
                let rows = on
                    .all(&summary::log(family, scope, &[], after, PAGE))
                    .await?;
                let Some(last) = rows.last() else {
                    break;
                };
                after = summary::SummaryStart::Key(last.int(0)?);
                own.extend(self.with_links(on, family, &rows).await?);
            }
        }
        let mut by_owner: BTreeMap<ConversationId, Vec<SummaryId>> = BTreeMap::new();
        for (owner, id) in summaries_to_erase(seen_by, &made) {
            by_owner.entry(owner).or_default().push(id);
        }
        let mut keys = Vec::new();
        for (owner, ids) in by_owner {
            let ids: Vec<&str> = ids.iter().map(SummaryId::as_str).collect();
            for ids in batched(&ids) {
                let rows = on
                    .all(&sql::summaries_with_words(family, owner, &ids))
                    .await?;
                for row in rows {
                    keys.push(row.int(0)?);
                }
            }
        }
        Ok(keys)
    }

    /// Removes from a conversation's facts (the texts that serve as a dictionary for its entries) the pieces that no
    /// entry contains any more. Compresses the entries again that were compressed with the old text.
    async fn forget_facts(
        &self,
        on: &mut impl Executor,
        family: Family,
        id: ConversationId,
    ) -> Result<()> {
        let Some(old) = self.facts_of(on, family, id).await? else {
            return Ok(());
        };
        let mut missing: BTreeSet<&str> = old.pieces().collect();
        let mut after = Seq::NONE;
        while let Some((last, rows)) = packed_rows(on, family, id, after).await? {
            after = last;
            for row in rows {
                if let Some((_, Some(meta))) = message::unpacked(&row, Some(&old))? {
                    missing.retain(|piece| !meta.contains(piece));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let left = old.pieces().filter(|piece| !missing.contains(piece));
        let left = left.flat_map(|piece| [",\"", piece]).collect();
        let new = Facts::new(left, old.revision() + 1)?;
        let mut after = Seq::NONE;
        while let Some((last, rows)) = packed_rows(on, family, id, after).await? {
            after = last;
            for row in rows {
                if message::needed_facts(&row)?.is_some()
                    && let Some((body, meta)) = message::unpacked(&row, Some(&old))?
                {
                    let packed_anew = crate::pack::pack(body, meta.as_deref(), Some(&new));
                    let seq = u32::try_from(row.int(0)?).unwrap_or_default();
                    on.run(&sql::repack(family, packed(id.0, seq), packed_anew))
                        .await?;
                }
            }
        }
        on.run(&sql::set_facts(family, id, &new)).await?;
        Ok(())
    }
}

/// Reads the next entries of a conversation's own log, in packed form. Also returns the position of the last one.
async fn packed_rows<E: Executor>(
    on: &mut E,
    family: Family,
    id: ConversationId,
    after: Seq,
) -> Result<Option<(Seq, Vec<E::Row>)>> {
    let Some(range) = SeqRange::new(after.next(), Seq(u32::MAX)) else {
        return Ok(None);
    };
    let order = sea_query::Order::Asc;
    let rows = on
        .all(&message::range(family, id.0, range, order, PAGE, i64::MAX))
        .await?;
    match rows.last() {
        Some(last) => {
            let seq = crate::convert::to_seq(last.int(0)?)?;
            Ok(Some((seq, rows)))
        }
        None => Ok(None),
    }
}
