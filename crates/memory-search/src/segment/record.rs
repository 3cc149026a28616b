//! Encodes records of messages and summaries as bytes.

use memory_model::{Role, Seq, SeqRange, SummaryId, Timestamp};

use super::bytes::{Reader, damaged, put, put_bytes};
use super::{Chunk, RECORDS};
use crate::error::Result;
use crate::ranking::{Record, SummaryRecord};

/// Maximum number of records in a chunk.
const CHUNK_RECORDS: usize = 256;

/// The roles. The index of a role is its encoding as a byte.
const ROLES: [Option<Role>; 5] = [
    None,
    Some(Role::System),
    Some(Role::User),
    Some(Role::Assistant),
    Some(Role::Tool),
];

fn put_record(record: &Record, out: &mut Vec<u8>) {
    put(out, u64::from(record.seq.0));
    let role = ROLES.iter().position(|role| *role == record.role);
    out.push(role.unwrap_or(ROLES.len()) as u8);
    let flags = u8::from(record.asks)
        | u8::from(record.first_person) << 1
        | u8::from(record.names_time) << 2
        | u8::from(record.name.is_some()) << 3
        | u8::from(record.summary.is_some()) << 4
        | u8::from(record.question_share != 0.0) << 5
        | u8::from(record.is_echo) << 6;
    out.push(flags);
    out.extend_from_slice(&record.created_at.0.to_le_bytes());
    put(out, u64::from(record.length));
    if record.question_share != 0.0 {
        out.extend_from_slice(&record.question_share.to_le_bytes());
    }
    if let Some(name) = &record.name {
        put_bytes(out, name.as_bytes());
    }
    if let Some(summary) = &record.summary {
        put_bytes(out, summary.id.as_str().as_bytes());
        put(out, u64::from(summary.range.first.0));
        put(out, u64::from(summary.range.last.0));
        out.extend_from_slice(&summary.times.0.0.to_le_bytes());
        out.extend_from_slice(&summary.times.1.0.to_le_bytes());
    }
}

fn read_record(reader: &mut Reader<'_>) -> Result<Record> {
    let seq = Seq(reader.small()?);
    let role = ROLES.get(usize::from(reader.byte()?));
    let role = *role.ok_or_else(damaged)?;
    let flags = reader.byte()?;
    let created_at = Timestamp(i64::from_le_bytes(reader.array()?));
    let length = reader.small()?;
    let question_share = match flags & 1 << 5 {
        0 => 0.0,
        _ => f64::from_le_bytes(reader.array()?),
    };
    let name = match flags & 1 << 3 {
        0 => None,
        _ => Some(reader.text()?.to_owned()),
    };
    let summary = match flags & 1 << 4 {
        0 => None,
        _ => Some(SummaryRecord {
            id: SummaryId::new(reader.text()?),
            range: SeqRange::new(Seq(reader.small()?), Seq(reader.small()?)).ok_or_else(damaged)?,
            times: (
                Timestamp(i64::from_le_bytes(reader.array()?)),
                Timestamp(i64::from_le_bytes(reader.array()?)),
            ),
        }),
    };
    Ok(Record {
        seq,
        role,
        name,
        created_at,
        length,
        question_share,
        asks: flags & 1 != 0,
        first_person: flags & 1 << 1 != 0,
        names_time: flags & 1 << 2 != 0,
        is_echo: flags & 1 << 6 != 0,
        summary,
    })
}

/// Writes records into chunks.
pub(super) fn write<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (at, record) in records.into_iter().enumerate() {
        if at.is_multiple_of(CHUNK_RECORDS) {
            let mut key = vec![RECORDS];
            let number = u32::try_from(at).unwrap_or(u32::MAX);
            key.extend_from_slice(&number.to_be_bytes());
            chunks.push(Chunk {
                key,
                data: Vec::new(),
            });
        }
        if let Some(chunk) = chunks.last_mut() {
            put_record(record, &mut chunk.data);
        }
    }
    chunks
}

/// Returns the id of the summary in the last record of a chunk. `None` if this record belongs to a message.
///
/// # Errors
/// The errors of [`records`].
pub(crate) fn last_summary(chunk: &[u8]) -> Result<Option<SummaryId>> {
    let last = records(chunk)?.pop();
    Ok(last
        .and_then(|record| record.summary)
        .map(|summary| summary.id))
}

/// Returns the records in a chunk.
///
/// # Errors
/// `Corrupt` for bytes that are not valid records.
pub(crate) fn records(chunk: &[u8]) -> Result<Vec<Record>> {
    let mut reader = Reader::new(chunk);
    let mut records = Vec::new();
    while !reader.is_empty() {
        records.push(read_record(&mut reader)?);
    }
    Ok(records)
}
