//! Copying of all conversations to another database.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Seq};
use memory_store::{Conversation, ConversationFilter, Error, ErrorKind, Result};
use sea_query::{Expr, ExprTrait as _, Iden, Value};

use super::append::values_for;
use super::{ROWS, SqlStore};
use crate::convert::packed;
use crate::copying::{insert_rows, put_values, rows, values};
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::prepared::Prepared;
use crate::row::{Columns as _, Table, Values as _};
use crate::tables::{
    Conversation as C, ErasedSummary as G, Erasure as E, Facts as F, Family as Fam, Job as J,
    Message as M, MessageVector as X, Payload as P, Publication as Pub, SearchChunk as Chunk,
    SearchSegment as Segment, Span as S, SpanHistory as H, State, Summary as Sum,
    SummaryLink as Link, View as V,
};
use crate::{conversation, directory, message};

/// Number of payloads that one statement reads. A payload is a long string of messages.
const PAYLOADS: usize = 8;
/// Number of families that one request lists.
const PAGE: u64 = 256;

/// Progress of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Number of families that were copied.
    pub families: u64,
    /// Number of families that had been copied before.
    pub known: u64,
    /// Number of conversations in the copied families.
    pub conversations: u64,
    /// Number of entries in the copied families.
    pub entries: u64,
}

impl<D: Database> SqlStore<D> {
    /// Copies all conversations, with all that belongs to them, to another database. A family of conversations is copied
    /// in one transaction, so that an interrupted copy can be run again: it skips the families that are there. `progress`
    /// is called after each family.
    ///
    /// No process may write to either database meanwhile.
    ///
    /// # Errors
    /// `Invalid` if the other database has another conversation with the same number or session key, or one that has
    /// changed since it was copied. The errors of reading and writing.
    pub async fn copy_to<T: Database>(
        &self,
        other: &SqlStore<T>,
        mut progress: impl FnMut(&Copied),
    ) -> Result<Copied> {
        let mut copied = Copied::default();
        let mut after = None;
        loop {
            let mut reader = self.database.read().await?;
            let mut filter = ConversationFilter::default();
            filter.archived = true;
            let listed = reader
                .all(&conversation::list(&filter, after, PAGE))
                .await?;
            drop(reader);
            let Some(last) = listed.last() else {
                return Ok(copied);
            };
            after = Some(conversation::conversation(last)?.id);
            for row in &listed {
                let root = conversation::conversation(row)?;
                if root.id == root.family {
                    self.copy_family(other, &root, &mut copied).await?;
                    progress(&copied);
                }
            }
        }
    }

    async fn copy_family<T: Database>(
        &self,
        other: &SqlStore<T>,
        root: &Conversation,
        copied: &mut Copied,
    ) -> Result<()> {
        let mut reader = self.database.read().await?;
        let from = &mut reader;
        let members = self.members_of(from, root).await?;
        let mut writer = other.database.write().await?;
        let keyed = match T::BY_FAMILY {
            true => Family::of(root.id),
            false => Family::ANY,
        };
        let mut tx = other.database.begin(&mut writer, keyed).await?;
        other.database.lock_directory(&mut tx).await?;
        let on = &mut tx;
        if other.has_family(on, keyed, &members).await? {
            copied.known += 1;
            return Ok(());
        }
        let tables = Tables {
            from: self.family_of(root),
            to: keyed,
        };
        tables.family(from, on, root.id).await?;
        for member in &members {
            tables.conversation(from, on, member).await?;
            if T::BY_FAMILY {
                on.run(&directory::insert(member)?).await?;
            }
        }
        for member in &members {
            copied.entries += tables.log(from, on, member).await?;
            tables.of_conversation(from, on, member.id).await?;
        }
        // Summaries may be made from those of other members.
        for member in &members {
            tables.links(from, on, member.id).await?;
        }
        other.database.commit(tx).await?;
        copied.families += 1;
        copied.conversations += members.len() as u64;
        Ok(())
    }

    /// Returns whether the database has these conversations already.
    ///
    /// # Errors
    /// `Invalid` if it has others with the same number or key, or some that differ.
    async fn has_family(
        &self,
        on: &mut impl Executor,
        family: Family,
        members: &[Conversation],
    ) -> Result<bool> {
        let mut known = 0;
        for member in members {
            let by_key = memory_store::ConversationRef::Key(member.key.clone());
            let by_number = memory_store::ConversationRef::Id(member.id);
            for which in [by_key, by_number] {
                let Some(found) = self.look_up(on, &which).await? else {
                    continue;
                };
                if found != *member {
                    let text = format!(
                        "the other database has another session {}, or was written to since it was copied: copy to an empty database",
                        found.key
                    );
                    return Err(Error::new(ErrorKind::Invalid, text));
                }
                known += 1;
            }
        }
        let root = members.first().map(|root| root.family.0);
        let is_there = on
            .first(&conversation::family(root.unwrap_or_default()))
            .await?
            .is_some();
        match known == members.len() * 2 && is_there {
            true => Ok(true),
            false if known == 0 && !is_there => Ok(false),
            false => {
                let text = format!(
                    "the other database has a part of the family {family:?}: copy to an empty database"
                );
                Err(Error::new(ErrorKind::Invalid, text))
            }
        }
    }
}

/// The families with which the statements of both databases name rows.
#[derive(Debug, Clone, Copy)]
struct Tables {
    from: Family,
    to: Family,
}

impl Tables {
    /// Copies the rows of a table that meet a condition, some at a time, in the order of the given columns, which are a
    /// key of these rows. Without columns, at most one row meets the condition. `change` may replace values.
    async fn rows<T: Table + Iden + PartialEq>(
        self,
        from: &mut impl Executor,
        on: &mut impl Executor,
        (table, tree): (T, Option<T>),
        condition: Expr,
        order: &[T],
        change: impl Fn(&mut Vec<Value>),
    ) -> Result<()> {
        let mut after: Option<Expr> = None;
        loop {
            let wanted = match after.take() {
                Some(after) => condition.clone().and(after),
                None => condition.clone(),
            };
            let mut read = rows(table, (self.from, tree), wanted, order);
            read.limit(ROWS as u64);
            let mut found = Vec::new();
            for row in from.all(&read).await? {
                found.push(values::<T>(&row)?);
            }
            let Some(last) = found.last() else {
                return Ok(());
            };
            if found.len() == ROWS && !order.is_empty() {
                let key = order.iter().filter_map(|column| last.get(at(*column)));
                let key = Expr::tuple(key.cloned().map(Expr::val));
                let columns = order.iter().map(|column| Expr::col(*column));
                after = Some(Expr::tuple(columns).gt(key));
            }
            found.iter_mut().for_each(&change);
            on.run(&insert_rows(table, (self.to, tree), &found)?)
                .await?;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn family(
        self,
        from: &mut impl Executor,
        on: &mut impl Executor,
        root: ConversationId,
    ) -> Result<()> {
        let condition = Expr::col(Fam::Tree).eq(i64::from(root.0));
        self.rows(from, on, (Fam::Table, None), condition, &[], |_| ())
            .await
    }

    /// Copies the row of a conversation, with an empty log, which the schema lets grow.
    async fn conversation(
        self,
        from: &mut impl Executor,
        on: &mut impl Executor,
        member: &Conversation,
    ) -> Result<()> {
        let before = member.own_first().prev();
        let tokens = match before == member.head {
            true => member.tokens,
            false => {
                let first = packed(member.id.0, member.own_first().0);
                let read = rows(
                    M::Table,
                    (self.from, Some(M::Tree)),
                    Expr::col(M::Id).eq(first),
                    &[],
                );
                let row = from.first(&read).await?;
                let row = row.ok_or_else(|| {
                    let text = format!(
                        "{}: its first message is missing: check the database",
                        member.key
                    );
                    Error::new(ErrorKind::Corrupt, text)
                })?;
                let (running, own) = (row.int(at(M::Running))?, row.int(at(M::Tokens))?);
                u64::try_from(running - own).unwrap_or_default()
            }
        };
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        let condition = Expr::col(C::No)
            .eq(i64::from(member.id.0))
            .and(Expr::col(C::Tree).eq(i64::from(member.family.0)));
        let change = |row: &mut Vec<Value>| {
            for (column, value) in [(C::Head, i64::from(before.0)), (C::Tokens, tokens)] {
                if let Some(place) = row.get_mut(at(column)) {
                    *place = value.into();
                }
            }
        };
        self.rows(from, on, (C::Table, None), condition, &[], change)
            .await
    }

    /// Copies a conversation's own log. Returns the number of entries.
    async fn log(
        self,
        from: &mut impl Executor,
        on: &mut impl Executor,
        member: &Conversation,
    ) -> Result<u64> {
        let of = Expr::col(F::Conversation).eq(i64::from(member.id.0));
        self.rows(from, on, (F::Table, Some(F::Tree)), of, &[], |_| ())
            .await?;
        let (mut next, mut entries) = (member.own_first(), 0);
        while next <= member.head && next != Seq::NONE {
            let range = Expr::col(M::Id)
                .between(packed(member.id.0, next.0), packed(member.id.0, u32::MAX));
            let mut read = rows(M::Table, (self.from, Some(M::Tree)), range, &[M::Id]);
            read.limit(ROWS as u64);
            let found = from.all(&read).await?;
            let Some(last) = found.last() else {
                break;
            };
            next = crate::to_seq(last.int(at(M::Seq))?)?.next();
            entries += found.len() as u64;
            let mut payloads = Vec::new();
            for row in &found {
                payloads.extend(row.opt_int(at(M::Payload))?);
            }
            let payloads = self.payloads(from, on, payloads).await?;
            let change = |column: M, value: Option<i64>| match (column, value) {
                (M::Payload, Some(old)) => payloads.get(&old).copied(),
                (_, value) => value,
            };
            for part in message::batches(found.len()) {
                let part = found.get(part).unwrap_or_default();
                let mut values = values_for(on);
                for row in part {
                    if let Some(number) = self.to.number() {
                        values.put_int(number)?;
                    }
                    put_values::<M>(&mut values, row, change)?;
                }
                on.run_prepared(Prepared::insert(self.to, part.len())?, values)
                    .await?;
            }
        }
        Ok(entries)
    }

    /// Copies payloads. Returns their new ids by the old ones.
    async fn payloads(
        self,
        from: &mut impl Executor,
        on: &mut impl Executor,
        mut old: Vec<i64>,
    ) -> Result<BTreeMap<i64, i64>> {
        old.sort_unstable();
        old.dedup();
        let mut copied = BTreeMap::new();
        for ids in old.chunks(PAYLOADS) {
            let condition = Expr::col(P::Id).is_in(ids.iter().copied());
            let read = rows(P::Table, (self.from, Some(P::Tree)), condition, &[P::Id]);
            for row in from.all(&read).await? {
                let hash = crate::to_hash("payload", &row.bytes(at(P::Hash))?)?;
                let known = on.first(&message::payloads(self.to, &[hash])).await?;
                let new = match known {
                    Some(known) => known.int(1)?,
                    None => {
                        let (codec, data) = (row.int(at(P::Codec))?, row.bytes(at(P::Data))?);
                        let insert = message::insert_payload(self.to, hash, codec, data)?;
                        let made = on.first(&insert).await?;
                        made.map_or(Ok(0), |row| row.int(0))?
                    }
                };
                copied.insert(row.int(at(P::Id))?, new);
            }
        }
        Ok(copied)
    }

    /// Copies all other rows of a conversation, except the links of its summaries.
    async fn of_conversation(
        self,
        from: &mut impl Executor,
        on: &mut impl Executor,
        id: ConversationId,
    ) -> Result<()> {
        let no = i64::from(id.0);
        let same = |_: &mut Vec<Value>| ();
        macro_rules! copy {
            ($($table:ident by $($order:ident),*;)*) => {
                $({
                    let own = Expr::col($table::Conversation).eq(no);
                    let table = ($table::Table, Some($table::Tree));
                    self.rows(from, on, table, own, &[$($table::$order),*], same).await?;
                })*
            };
        }
        copy! {
            E by First, Last, At;
            V by Name;
            S by View, First;
            H by View, RemovedIn, First;
            Pub by View, Version;
            Sum by Id;
            J by Key;
            State by Key;
            Segment by Id;
            X by Embedder, Seq;
        }
        let keys = packed(id.0, 0)..=packed(id.0, u32::MAX);
        let segments = Expr::col(Chunk::Segment).between(*keys.start(), *keys.end());
        let table = (Chunk::Table, Some(Chunk::Tree));
        let order = [Chunk::Segment, Chunk::Key];
        self.rows(from, on, table, segments, &order, same).await?;
        let erased = Expr::col(G::Summary).between(*keys.start(), *keys.end());
        let table = (G::Table, Some(G::Tree));
        self.rows(from, on, table, erased, &[G::Summary], same)
            .await
    }

    async fn links(
        self,
        from: &mut impl Executor,
        on: &mut impl Executor,
        id: ConversationId,
    ) -> Result<()> {
        let own = Expr::col(Link::Parent).between(packed(id.0, 0), packed(id.0, u32::MAX));
        let table = (Link::Table, Some(Link::Tree));
        let order = [Link::Parent, Link::Role, Link::Ordinal];
        self.rows(from, on, table, own, &order, |_| ()).await
    }
}

/// Returns the index of a column in the rows of its table.
fn at<T: Table + PartialEq>(column: T) -> usize {
    let place = T::COLUMNS.iter().position(|(one, _)| *one == column);
    place.unwrap_or(usize::MAX)
}
