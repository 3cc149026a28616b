//! Checksums of index segments, which detect damage.
//!
//! The format name in a segment's row is followed by its seal: checksums of its content, of the keys of its chunks, and
//! of its row. Each chunk ends with a checksum of the seal, the chunk's key and the chunk's bytes. A chunk of another
//! segment or with another key is therefore detected.

use std::fmt;

use crc32fast::Hasher;
use memory_model::ConversationId;
use memory_store::{Chunk, IndexSegment, IndexedKind};

/// Length of the checksum at the end of a chunk, in bytes.
const CHECK_BYTES: usize = 4;

/// Separator between the name of the format and the seal.
const SIGN: &str = " #";

/// The checksums of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Seal {
    /// Checksum of the keys and the bytes of its chunks.
    content: u32,
    /// Checksum of the keys of its chunks.
    keys: u32,
    /// Checksum of its row and the other two checksums.
    row: u32,
}

/// Returns the checksum of a segment's row and the other two checksums. The row's id and seal are left out.
fn check_row(conversation: ConversationId, row: &IndexSegment, content: u32, keys: u32) -> u32 {
    let mut hasher = Hasher::new();
    for number in [
        conversation.0,
        row.first,
        row.last,
        row.documents,
        content,
        keys,
    ] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(row.kind.as_str().as_bytes());
    hasher.update(format_of(row).as_bytes());
    hasher.finalize()
}

/// Returns the name of a segment's format, without the seal.
fn format_of(row: &IndexSegment) -> &str {
    row.format.split(SIGN).next().unwrap_or_default()
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content, keys, row } = self;
        write!(f, "{content:08x}{keys:08x}{row:08x}")
    }
}

impl Seal {
    /// Adds checksums to the chunks of a segment, and the seal to its format.
    pub(super) fn put_on(
        conversation: ConversationId,
        row: &mut IndexSegment,
        chunks: &mut [Chunk],
    ) {
        let mut content = Hasher::new();
        for chunk in chunks.iter() {
            update(&mut content, &chunk.key);
            update(&mut content, &chunk.data);
        }
        let (content, keys) = (
            content.finalize(),
            check_keys(chunks.iter().map(|one| &*one.key)),
        );
        let seal = Self {
            content,
            keys,
            row: check_row(conversation, row, content, keys),
        };
        for chunk in chunks {
            let check = seal.check_chunk(&chunk.key, &chunk.data);
            chunk.data.extend_from_slice(&check.to_le_bytes());
        }
        row.format = format!("{}{SIGN}{seal}", row.format);
    }

    /// Returns the seal of a segment. `None` if the segment has no seal.
    pub(super) fn of(segment: &IndexSegment) -> Option<Self> {
        let (_, seal) = segment.format.split_once(SIGN)?;
        let number = |at: usize| u32::from_str_radix(seal.get(at..at + 8)?, 16).ok();
        let is_whole = seal.len() == 24;
        is_whole.then_some(Self {
            content: number(0)?,
            keys: number(8)?,
            row: number(16)?,
        })
    }

    /// Returns whether the checksum of these keys is correct, so that no chunk is missing.
    pub(super) fn has_keys(self, keys: &[Vec<u8>]) -> bool {
        check_keys(keys.iter().map(|key| &**key)) == self.keys
    }

    /// Returns the bytes of a chunk without their checksum. `None` if the checksum is wrong.
    pub(super) fn opened(self, key: &[u8], mut data: Vec<u8>) -> Option<Vec<u8>> {
        let (bytes, check) = data.split_last_chunk::<CHECK_BYTES>()?;
        if u32::from_le_bytes(*check) != self.check_chunk(key, bytes) {
            return None;
        }
        data.truncate(data.len() - CHECK_BYTES);
        Some(data)
    }

    fn check_chunk(self, key: &[u8], data: &[u8]) -> u32 {
        let mut hasher = Hasher::new();
        hasher.update(&self.row.to_le_bytes());
        update(&mut hasher, key);
        hasher.update(data);
        hasher.finalize()
    }
}

fn check_keys<'k>(keys: impl Iterator<Item = &'k [u8]>) -> u32 {
    let mut hasher = Hasher::new();
    keys.for_each(|key| update(&mut hasher, key));
    hasher.finalize()
}

/// Adds the length of some bytes, and then the bytes, to a checksum.
fn update(hasher: &mut Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// The undamaged segments of one kind.
#[derive(Debug, Default)]
pub(super) struct Sound<'s> {
    /// The trusted segments with undamaged rows, from the first one up to the first gap.
    pub(super) segments: Vec<&'s IndexSegment>,
    /// Whether a damaged segment follows. `false` if the next segment only has another format.
    pub(super) is_cut: bool,
}

impl<'s> Sound<'s> {
    /// Returns the segments of a kind from `begin` on, up to the first that is damaged or not trusted.
    pub(super) fn of(
        segments: &'s [IndexSegment],
        (conversation, kind, begin): (ConversationId, IndexedKind, u32),
        format: &str,
        is_trusted: &dyn Fn(&IndexSegment) -> bool,
    ) -> Self {
        let mut sound = Self::default();
        let mut next = Some(begin);
        for segment in segments.iter().filter(|one| one.kind == kind) {
            let is_ours = format_of(segment) == format;
            let seal = Seal::of(segment).filter(|seal| {
                check_row(conversation, segment, seal.content, seal.keys) == seal.row
            });
            if !is_ours || seal.is_none() || next != Some(segment.first) || !is_trusted(segment) {
                sound.is_cut = is_ours;
                break;
            }
            sound.segments.push(segment);
            next = segment.last.checked_add(1);
        }
        sound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(key: &str, data: &str) -> Chunk {
        Chunk {
            key: key.into(),
            data: data.into(),
        }
    }

    fn sealed(first: u32, last: u32, chunks: &mut [Chunk]) -> IndexSegment {
        let mut segment = IndexSegment {
            id: u64::from(first),
            kind: IndexedKind::Messages,
            first,
            last,
            documents: last - first + 1,
            format: "words".to_owned(),
        };
        Seal::put_on(ConversationId(7), &mut segment, chunks);
        segment
    }

    fn sound(segments: &[IndexSegment]) -> (usize, bool) {
        let of = (ConversationId(7), IndexedKind::Messages, 1);
        let sound = Sound::of(segments, of, "words", &|one| one.id != 99);
        (sound.segments.len(), sound.is_cut)
    }

    #[test]
    fn each_change_of_a_chunk_is_noticed() {
        let chunks = [
            chunk("d", "records"),
            chunk("g", "runs"),
            chunk("w", "words"),
        ];
        let (mut one, mut other) = (chunks.clone(), chunks.clone());
        let (segment, neighbour) = (sealed(1, 16, &mut one), sealed(17, 32, &mut other));
        let (seal, others) = (Seal::of(&segment).unwrap(), Seal::of(&neighbour).unwrap());
        let keys: Vec<Vec<u8>> = one.iter().map(|chunk| chunk.key.clone()).collect();
        assert!(seal.has_keys(&keys) && !seal.has_keys(&keys[1..]));
        assert!(!seal.has_keys(&[keys[0].clone(), keys[2].clone()]));
        for (chunk, plain) in one.iter().zip(&chunks) {
            assert_eq!(
                seal.opened(&chunk.key, chunk.data.clone()),
                Some(plain.data.clone())
            );
            assert_eq!(others.opened(&chunk.key, chunk.data.clone()), None);
            assert_eq!(seal.opened(b"h", chunk.data.clone()), None);
            for at in 0..chunk.data.len() {
                assert_eq!(seal.opened(&chunk.key, chunk.data[..at].to_vec()), None);
                for bit in 0..8 {
                    let mut changed = chunk.data.clone();
                    changed[at] ^= 1 << bit;
                    assert_eq!(seal.opened(&chunk.key, changed), None);
                }
            }
        }
    }

    #[test]
    fn each_change_of_a_row_is_noticed() {
        let mut chunks = [chunk("d", "records")];
        let segments: Vec<IndexSegment> = [(1, 16), (17, 32), (33, 40)]
            .map(|(first, last)| sealed(first, last, &mut chunks))
            .into();
        assert_eq!(sound(&segments), (3, false));
        assert_eq!(sound(&segments[1..]), (0, true));
        assert_eq!(
            sound(&[segments[0].clone(), segments[2].clone()]),
            (1, true)
        );
        let changes: [fn(&mut IndexSegment); 7] = [
            |one| one.first -= 1,
            |one| one.last += 1,
            |one| one.last = u32::MAX,
            |one| one.documents += 1,
            |one| one.documents = 0,
            |one| one.id = 99,
            |one| one.format.truncate(20),
        ];
        for change in changes {
            let mut changed = segments.clone();
            change(&mut changed[1]);
            assert_eq!(sound(&changed), (1, true), "{:?}", changed[1]);
        }
        let mut changed = segments.clone();
        changed[1].kind = IndexedKind::Summaries;
        assert_eq!(sound(&changed), (1, true));
        let of = (ConversationId(7), IndexedKind::Summaries, 17);
        assert!(Sound::of(&changed, of, "words", &|_| true).is_cut);
        changed[1] = segments[1].clone();
        changed[1].format = "words-1 english".to_owned();
        assert_eq!(sound(&changed), (1, false));
        let of = (ConversationId(8), IndexedKind::Messages, 1);
        assert!(Sound::of(&segments, of, "words", &|_| true).is_cut);
    }
}
