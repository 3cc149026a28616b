//! Packing of entries into rows. A payload, a long string that messages have in common, is stored once.

use std::collections::BTreeMap;

use memory_model::Hash;
use memory_store::implementors::Placed;
use memory_store::{NewEntry, Result};

use super::pages::batched;
use crate::executor::Executor;
use crate::family::Family;
use crate::message::{self, NewRow};
use crate::pack::{self, Facts, Packed};
use crate::row::Columns as _;

/// An entry that is ready to be packed.
pub(super) struct Waiting<'a> {
    pub(super) entry: &'a NewEntry,
    pub(super) placed: Placed,
    pub(super) hash: Hash,
    pub(super) body: Vec<u8>,
}

/// An entry that is packed and ready to be stored.
pub(super) struct Ready<'a> {
    row: NewRow<'a>,
    /// String that was cut out of the body, with its hash, to be stored as a payload.
    cut: Option<(Hash, Vec<u8>)>,
}

impl<'a> Waiting<'a> {
    pub(super) fn pack(self, facts: Option<&Facts>) -> Ready<'a> {
        let meta = self.entry.message.meta.as_ref().map(|meta| meta.as_str());
        // Facts are pieces of metadata, and do not help to compress an entry without metadata.
        let facts = facts.filter(|_| meta.is_some());
        let mut packed: Packed = pack::pack(self.body, meta, facts);
        let cut = packed.cut.take().map(|cut| (pack::payload_hash(&cut), cut));
        let row = NewRow {
            entry: self.entry,
            placed: self.placed,
            hash: self.hash,
            packed,
            payload: None,
        };
        Ready { row, cut }
    }
}

/// Stores the payloads of entries that are not stored yet. Returns the rows of the entries, which refer to the
/// payloads.
pub(super) async fn stored<'a>(
    on: &mut impl Executor,
    family: Family,
    ready: Vec<Ready<'a>>,
) -> Result<Vec<NewRow<'a>>> {
    let mut hashes: Vec<Hash> = ready
        .iter()
        .filter_map(|r| Some(r.cut.as_ref()?.0))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    let mut known: BTreeMap<Hash, i64> = BTreeMap::new();
    for batch in batched(&hashes) {
        for row in on.all(&message::payloads(family, &batch)).await? {
            known.insert(crate::to_hash("payload", &row.bytes(0)?)?, row.int(1)?);
        }
    }
    let mut rows = Vec::with_capacity(ready.len());
    for Ready { mut row, cut } in ready {
        if let Some((hash, cut)) = cut {
            row.payload = match known.get(&hash) {
                Some(id) => Some(*id),
                None => {
                    let (codec, data) = pack::pack_payload(&cut);
                    let insert = message::insert_payload(family, hash, codec, data.into_owned())?;
                    let id = on.first(&insert).await?.map(|row| row.int(0)).transpose()?;
                    known.extend(id.map(|id| (hash, id)));
                    id
                }
            };
        }
        rows.push(row);
    }
    Ok(rows)
}
