//! Messages of a large source in a temporary file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memory_model::{EntryKind, Message};

use crate::entry::EntryHead;

/// Number of bytes that are written and read at once.
const BLOCK: usize = 1 << 17;

/// The messages of one source that do not fit into memory. All conversations of the source share the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overflow(Option<Arc<Mutex<Store>>>);

#[derive(Debug)]
struct Store {
    /// Bytes of records that memory keeps.
    kept: usize,
    /// Bytes of further records that memory may keep.
    room: usize,
    folder: PathBuf,
    file: Option<File>,
    /// Length of the file.
    written: u64,
    /// Bytes behind the end of the file.
    pending: Vec<u8>,
    /// Bytes that were read, and their place in the file.
    cache: (u64, Vec<u8>),
    failure: Option<io::Error>,
}

/// Place of a message in the file, and what is known of it without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    at: u64,
    /// End of the external id among the ids of the conversation.
    id: u64,
    len: u32,
    kind: EntryKind,
    by_place: bool,
}

impl Overflow {
    /// Creates an overflow for messages behind the first `kept` bytes of records. The file is created in `folder`.
    pub(crate) fn new(kept: usize, folder: PathBuf) -> Self {
        Self(Some(Arc::new(Mutex::new(Store {
            kept,
            room: kept,
            folder,
            file: None,
            written: 0,
            pending: Vec::new(),
            cache: (0, Vec::new()),
            failure: None,
        }))))
    }

    /// Returns an overflow with the same settings for another source.
    pub(crate) fn renewed(&self) -> Self {
        let Some(store) = self.store() else {
            return Self(None);
        };
        Self::new(store.kept, store.folder.clone())
    }

    fn store(&self) -> Option<MutexGuard<'_, Store>> {
        let store = self.0.as_ref()?;
        Some(store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether memory keeps the message of a record with `len` bytes. After one that it does not keep, it keeps
    /// none.
    pub(crate) fn keeps(&self, len: usize) -> bool {
        let Some(mut store) = self.store() else {
            return true;
        };
        let left = store.room.checked_sub(len.max(1));
        store.room = left.unwrap_or(0);
        left.is_some()
    }

    /// Returns the first failure of writing, with the folder of the file.
    pub(crate) fn failure(&self) -> Option<(PathBuf, io::Error)> {
        let mut store = self.store()?;
        let failure = store.failure.take()?;
        Some((store.folder.clone(), failure))
    }
}

impl Store {
    fn write(&mut self, message: &Message) -> io::Result<(u64, u32)> {
        let start = self.pending.len();
        serde_json::to_writer(&mut self.pending, message)?;
        let len = u32::try_from(self.pending.len() - start).map_err(io::Error::other)?;
        let at = self.written + start as u64;
        if self.pending.len() >= BLOCK {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(tempfile::tempfile_in(&self.folder)?),
            };
            file.seek(SeekFrom::Start(self.written))?;
            file.write_all(&self.pending)?;
            self.written += self.pending.len() as u64;
            self.pending.clear();
        }
        Ok((at, len))
    }

    fn read(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let within = |from: u64, bytes: &[u8]| {
            let start = usize::try_from(at.checked_sub(from)?).ok()?;
            let end = start.checked_add(len)?;
            (end <= bytes.len()).then_some(start..end)
        };
        if let Some(range) = within(self.written, &self.pending) {
            return self.pending.get(range).ok_or_else(gone);
        }
        if within(self.cache.0, &self.cache.1).is_none() {
            let file = self.file.as_mut().ok_or_else(gone)?;
            file.seek(SeekFrom::Start(at))?;
            self.cache.0 = at;
            self.cache.1.clear();
            file.take(len.max(BLOCK) as u64)
                .read_to_end(&mut self.cache.1)?;
        }
        let range = within(self.cache.0, &self.cache.1).ok_or_else(gone)?;
        self.cache.1.get(range).ok_or_else(gone)
    }
}

/// The messages of one conversation that are in the overflow, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overflowed {
    overflow: Overflow,
    places: Vec<Place>,
    /// The external ids, one after the other.
    ids: String,
}

impl PartialEq for Overflowed {
    fn eq(&self, other: &Self) -> bool {
        self.places == other.places && self.ids == other.ids
    }
}

impl Eq for Overflowed {}

impl Overflowed {
    pub(crate) fn new(overflow: Overflow) -> Self {
        Self {
            overflow,
            ..Self::default()
        }
    }

    pub(crate) fn overflow(&self) -> &Overflow {
        &self.overflow
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Writes a message. A failure is kept: see [`Overflow::failure`].
    pub(crate) fn push(&mut self, message: &Message, by_place: bool) {
        let Some(mut store) = self.overflow.store() else {
            return;
        };
        match store.write(message) {
            Ok((at, len)) => {
                drop(store);
                self.ids
                    .push_str(message.external_id.as_deref().unwrap_or_default());
                self.places.push(Place {
                    at,
                    id: self.ids.len() as u64,
                    len,
                    kind: message.kind,
                    by_place,
                });
            }
            Err(error) => {
                store.failure.get_or_insert(error);
            }
        }
    }

    /// Adds a message of another conversation of the same source.
    pub(crate) fn adopt(&mut self, other: &Self, at: usize) {
        if let (Some(place), Some(head)) = (other.places.get(at), other.head(at)) {
            self.overflow = other.overflow.clone();
            self.ids.push_str(head.id.unwrap_or_default());
            self.places.push(Place {
                id: self.ids.len() as u64,
                ..*place
            });
        }
    }

    pub(crate) fn head(&self, at: usize) -> Option<EntryHead<'_>> {
        let place = self.places.get(at)?;
        let before = at.checked_sub(1).and_then(|before| self.places.get(before));
        let start = before.map_or(0, |before| before.id as usize);
        let id = self.ids.get(start..place.id as usize)?;
        Some(EntryHead {
            id: Some(id),
            kind: place.kind,
            by_place: place.by_place,
        })
    }

    /// Reads a message. Returns `None` if there is none at this place.
    pub(crate) fn read(&self, at: usize) -> io::Result<Option<Message>> {
        let (Some(place), Some(mut store)) = (self.places.get(at), self.overflow.store()) else {
            return Ok(None);
        };
        let bytes = store.read(place.at, place.len as usize)?;
        Ok(Some(serde_json::from_slice(bytes)?))
    }
}
