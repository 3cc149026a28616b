//! Checks that the stored data agree with each other: hashes of rows, payloads and families, and the owners of
//! summaries from which others were made.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use memory_model::{ConversationId, Hash, Timestamp, ViewName};
use memory_store::implementors::{
    conversation_hash, family_hash, publication_record_hash, summary_record_hash, views_hash,
};
use memory_store::{ERASED, ErrorKind, Result, Violation, ViolationKind};

use super::SqlStore;
use crate::convert::{to_count, to_hash, to_seq, to_u32};
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns as _;
use crate::{conversation, erasure, message, pack, summary, view};

/// Maximum number of database rows that one request reads.
const PAGE: u64 = 256;
/// Maximum number of payloads in one request. A payload is a long string of messages that is stored once.
const PAYLOADS: u64 = 16;
/// Number of additional attempts to read the rows of conversations, if the rows contain violations.
const AGAIN: usize = 2;

impl<D: Database> SqlStore<D> {
    pub(super) async fn check_rows(&self) -> Result<Vec<Violation>> {
        let mut found = self.database.check().await?;
        let mut reader = self.database.read().await?;
        let on = &mut reader;
        let checked = settled_conversations(on, &mut found).await;
        unless_corrupt(checked, &mut found)?;
        for family in self.families(on).await? {
            for checked in [
                self.check_foreign_links(on, family, &mut found).await,
                check_payloads(on, family, &mut found).await,
                publications(on, family, &mut found).await,
                summaries(on, family, &mut found).await,
            ] {
                unless_corrupt(checked, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Returns all families, or [`Family::ANY`] for a database without a column for the family.
    async fn families(&self, on: &mut impl Executor) -> Result<Vec<Family>> {
        if !D::BY_FAMILY {
            return Ok(vec![Family::ANY]);
        }
        let rows = on.all(&conversation::families()).await?;
        let root = |row| conversation::root(row).map(Family::of);
        rows.iter().map(root).collect()
    }

    /// Checks summaries that were made from another conversation's summaries. Only a fork may do this, with its
    /// ancestors' summaries that cover only shared positions.
    async fn check_foreign_links(
        &self,
        on: &mut impl Executor,
        family: Family,
        found: &mut Vec<Violation>,
    ) -> Result<()> {
        for row in on.all(&summary::foreign_links(family)).await? {
            let parent = row.text(0)?;
            let owner = ConversationId(to_u32("conversation", row.int(1)?)?);
            let source = ConversationId(to_u32("conversation", row.int(2)?)?);
            let last = to_seq(row.int(3)?)?;
            let sees = match self.lineage(on, owner).await {
                Ok(lineage) => lineage.sees(source, last),
                Err(error) if [ErrorKind::Corrupt, ErrorKind::NotFound].contains(&error.kind()) => {
                    false
                }
                Err(error) => return Err(error),
            };
            if !sees {
                found.push(Violation::new(
                    ViolationKind::ForeignLineage,
                    format!("the summary {parent} was made from a summary of another conversation"),
                ));
            }
        }
        Ok(())
    }
}

/// Turns an error of reading damaged rows into a violation.
fn unless_corrupt(checked: Result<()>, found: &mut Vec<Violation>) -> Result<()> {
    match checked {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            let message = format!("rows cannot be read: {error}");
            found.push(Violation::new(ViolationKind::Database, message));
            Ok(())
        }
        checked => checked,
    }
}

/// Compares the hash of each publication's row with the hash computed from the row.
async fn publications(
    on: &mut impl Executor,
    family: Family,
    found: &mut Vec<Violation>,
) -> Result<()> {
    on.each(&view::publication_records(family), |row| {
        let hash = to_hash("publication", &row.bytes(4)?)?;
        if row.bytes(5)? != publication_record_hash(hash, Timestamp(row.int(3)?)).0 {
            let (conversation, view, version) = (row.int(0)?, row.text(1)?, row.int(2)?);
            found.push(Violation::new(
                ViolationKind::HistoryChanged,
                format!(
                    "publication {version} of view {view} of conversation {conversation}: its time was changed"
                ),
            ));
        }
        Ok(ControlFlow::Continue(()))
    })
    .await
}

/// Finds violations in the rows of conversations and families. Reads the rows again before it reports a violation,
/// because another process may write between two SQL statements.
async fn settled_conversations(on: &mut impl Executor, found: &mut Vec<Violation>) -> Result<()> {
    let mut wrong = Vec::new();
    let read = conversations(on, &mut wrong).await;
    for _ in 0..AGAIN {
        if wrong.is_empty() || read.is_err() {
            break;
        }
        let mut again = Vec::new();
        conversations(on, &mut again).await?;
        wrong.retain(|violation| again.contains(violation));
    }
    found.append(&mut wrong);
    read
}

async fn conversations(on: &mut impl Executor, found: &mut Vec<Violation>) -> Result<()> {
    let mut views: BTreeMap<i64, Vec<ViewName>> = BTreeMap::new();
    for row in on.all(&view::names(Family::ANY)).await? {
        let names = views.entry(row.int(0)?).or_default();
        names.push(ViewName::new(row.text(1)?));
    }
    let mut families: BTreeMap<ConversationId, (u64, Hash)> = BTreeMap::new();
    let mut after = 0;
    loop {
        let rows = on
            .all(&conversation::records(Family::ANY, after, PAGE))
            .await?;
        let Some(last) = rows.last() else {
            break;
        };
        after = last.int(0)?;
        for row in rows {
            let names = views.remove(&row.int(0)?).unwrap_or_default();
            let read = conversation::conversation(&row);
            let read = read.and_then(|info| Ok((info, conversation::recorded(&row)?)));
            let (info, (record, recorded_views)) = match read {
                Ok(read) => read,
                Err(error) => {
                    let message = format!("a conversation cannot be read: {error}");
                    found.push(Violation::new(ViolationKind::Database, message));
                    continue;
                }
            };
            let key = &info.key;
            if conversation_hash(&info) != record {
                found.push(Violation::new(
                    ViolationKind::ConversationChanged,
                    format!("{key}: its row was changed: its hash differs"),
                ));
            }
            if views_hash(&names) != recorded_views {
                found.push(Violation::new(
                    ViolationKind::ViewMissing,
                    format!("{key}: a view was removed, added or renamed"),
                ));
            }
            let family = families.entry(info.family).or_insert((0, Hash::ZERO));
            *family = (family.0 + 1, family_hash(family.1, info.id, key));
        }
    }
    let mut recorded = BTreeMap::new();
    for row in on.all(&conversation::families()).await? {
        let tree = conversation::root(&row)?;
        let members = to_count("members of a family", row.int(1)?)?;
        recorded.insert(tree, (members, to_hash("family", &row.bytes(2)?)?));
    }
    let mut trees: Vec<ConversationId> = families.keys().chain(recorded.keys()).copied().collect();
    trees.sort_unstable();
    trees.dedup();
    for tree in trees {
        let (is, was) = (families.get(&tree), recorded.get(&tree));
        if is != was {
            let members = |of: Option<&(u64, Hash)>| of.map_or(0, |(members, _)| *members);
            found.push(Violation::new(
                ViolationKind::FamilyWrong,
                format!(
                    "the family of conversation {tree} has {} sessions and was recorded with {}: a session was \
                     removed, added, or given another key",
                    members(is),
                    members(was)
                ),
            ));
        }
    }
    Ok(())
}

async fn summaries(
    on: &mut impl Executor,
    family: Family,
    found: &mut Vec<Violation>,
) -> Result<()> {
    let erased = on.all(&erasure::erased_keys(family)).await?;
    let erased: Vec<i64> = erased.iter().map(|row| row.int(0)).collect::<Result<_>>()?;
    let erased: BTreeSet<i64> = erased.into_iter().collect();
    let mut after = 0;
    loop {
        let rows = on.all(&summary::records(family, after, PAGE)).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.int(0)?;
        for row in rows {
            let read = summary::summary(&row);
            let read = read.and_then(|read| Ok((read.summary, summary::recorded(&row)?)));
            let (kind, message) = match read {
                Ok((summary, record)) if summary_record_hash(&summary) == record => continue,
                // Of an erased summary only the hash, the range, the depth and the cost are left.
                Ok((summary, _)) if summary.text() == ERASED && erased.contains(&row.int(0)?) => {
                    continue;
                }
                Ok((summary, _)) => (
                    ViolationKind::SummaryChanged,
                    format!("{}: its row was changed: its hash differs", summary.id),
                ),
                Err(error) => (
                    ViolationKind::SummaryChanged,
                    format!("a summary cannot be read: {error}"),
                ),
            };
            found.push(Violation::new(kind, message));
        }
    }
}

/// Compares the hash of each payload with its content. A payload is a long string of messages that is stored once.
async fn check_payloads(
    on: &mut impl Executor,
    family: Family,
    found: &mut Vec<Violation>,
) -> Result<()> {
    let mut after = 0;
    loop {
        let rows = on
            .all(&message::payload_log(family, after, PAYLOADS))
            .await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.int(0)?;
        for row in rows {
            let hash = row.bytes(1)?;
            let data = pack::unpack_payload(row.int(2)?, row.bytes(3)?);
            if !data.is_ok_and(|data| pack::payload_hash(&data).0 == *hash) {
                found.push(Violation::new(
                    ViolationKind::EntryChanged,
                    format!("the payload {} was changed: restore a backup", row.int(0)?),
                ));
            }
        }
    }
}
