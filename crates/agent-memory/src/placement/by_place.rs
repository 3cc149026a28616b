//! Recognition of records without an id.
//!
//! A record with a time is known if the session has an entry with the same values and time.
//!
//! Only its place in a source tells a record without a time from an equal one: a "yes" may be told again, or said again.
//! So a source is compared with the session, message by message:
//!
//! 1. If both begin with the same messages, up to the end of the shorter of the two, these messages are known.
//! 2. Otherwise, if this source or a beginning of it was imported before, the messages of that import are known.
//! 3. Otherwise all messages of the source are new.
//!
//! Stored ids tell what was imported before. Records are numbered by their place in their source, and their ids name that
//! source by a hash over all of its messages: see [`MadeId::source`]. A source that grows has the hashes of all its
//! beginnings, so its records are found wherever they are in the log, and an import that was interrupted goes on. Only
//! the records of the source with which a session begins keep the ids that they have in it. The hash of that source is a
//! small value of the session, which is stored before the records.
//!
//! Two messages are the same if their lines are, or if their values are: see
//! [`Message::has_same_values`](memory_model::Message::has_same_values). Notes are not compared. Their ids are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use memory_model::{EntryKind, LogEntry, RawJson, Seq, SeqRange, Timestamp};
use memory_store::ERASED;
use message_formats::{MadeId, SessionLog, is_made_id, short_hash};

use crate::error::Result;
use crate::error::unreadable;
use crate::session::Session;

/// Key of a small stored value: the hash over the source with which the session begins.
const FIRST_SOURCE: &str = "first-source";

/// Records of a source without an id, as a session has them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByPlace {
    /// Positions of the entries that equal messages without a time, by the index of the record. These records are not
    /// stored again.
    pub(crate) known: BTreeMap<usize, Seq>,
    /// Positions of the entries that equal records with a time and are written in another way.
    pub(crate) rewritten: BTreeMap<usize, Seq>,
    /// Indices of notes that are not stored again.
    pub(crate) known_notes: BTreeSet<usize>,
    /// External ids of other records, by their index, where they differ from the ids in the source.
    ids: BTreeMap<usize, String>,
    /// Hash over the source if the session begins with it.
    begins_with: Option<String>,
}

impl ByPlace {
    /// Returns the records of the source with which a session begins.
    pub(crate) fn of_first(log: &SessionLog) -> Self {
        let has_by_place = messages_of(log).iter().any(|at| is_by_place(log, *at));
        Self {
            begins_with: hashes(log, &messages_of(log))
                .pop()
                .filter(|_| has_by_place),
            ..Self::default()
        }
    }

    /// Returns the external id under which a record is stored.
    pub(crate) fn id<'a>(&'a self, log: &'a SessionLog, at: usize) -> Option<&'a str> {
        let renamed = self.ids.get(&at).map(String::as_str);
        renamed.or_else(|| log.head(at)?.id)
    }

    /// Returns whether the session has a record, by its index.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.known.contains_key(&at)
            || self.rewritten.contains_key(&at)
            || self.known_notes.contains(&at)
    }
}

/// A course of entries that is compared with the messages of a source.
#[derive(Debug, Default)]
struct Course {
    /// Positions of the entries, as far as they equal the first messages.
    same: Vec<Seq>,
    differs: bool,
}

impl Course {
    /// Compares the next entry with the next message of a source. One that differs ends the course if it is its own.
    /// Returns whether they are the same.
    fn compare(
        &mut self,
        log: &SessionLog,
        messages: &[usize],
        entry: &LogEntry,
        is_own: bool,
    ) -> Result<bool> {
        // A source may be shorter than the course.
        let Some(at) = messages.get(self.same.len()).filter(|_| !self.differs) else {
            return Ok(false);
        };
        let is_same = is_same(log, *at, entry)?;
        match is_same {
            true => self.same.push(entry.seq),
            false => self.differs = is_own,
        }
        Ok(is_same)
    }
}

/// Comparison of a source with a session.
struct Comparison<'a> {
    log: &'a SessionLog,
    /// Indices of the messages.
    messages: Vec<usize>,
    /// Hashes over all beginnings of the source.
    beginnings: HashSet<String>,
    /// Hash over all messages of the source.
    source: String,
    /// All entries of the session.
    whole: Course,
    /// Whether the entries of `whole` have the ids of the source.
    has_same_ids: bool,
    /// The entries that came with the source with which the session begins.
    first: Course,
    /// The same without the entries with an id or a time that came from elsewhere.
    first_alone: Course,
    /// Hash over the entries without an id and a time that may have come with the first source.
    alone: String,
    /// Hash over the source with which the session begins.
    first_source: Option<&'a str>,
    /// Whether that source has only records without an id and a time: `alone` was its hash.
    is_alone: bool,
    /// Whether the session begins with a beginning of this source; `None` if that is not known.
    is_first: Option<bool>,
    /// Whether the last entry belongs to `first`. An import appends its entries without a gap.
    is_in_first: bool,
    /// Indices of the records with a time that are not found yet, by the time.
    timed: HashMap<Timestamp, Vec<usize>>,
    rewritten: BTreeMap<usize, Seq>,
    /// External ids of the entries in `rewritten`.
    ids: BTreeMap<usize, String>,
    /// Records that came with a beginning of this source.
    told: ByPlace,
    /// Entries that came with other sources, by the hash of the source, if they may have the same values.
    others: BTreeMap<String, Option<Told>>,
}

/// Positions and hashes of entries without an id and a time, by the index of the record that has their values.
type Told = BTreeMap<usize, (Seq, String)>;

impl<'a> Comparison<'a> {
    fn new(log: &'a SessionLog, first: Option<&'a str>) -> Result<Self> {
        let messages = messages_of(log);
        let hashes = hashes(log, &messages);
        let source = hashes.last().cloned().unwrap_or_default();
        let beginnings: HashSet<String> = hashes.into_iter().collect();
        let is_first = first.map(|first| beginnings.contains(first));
        let mut compared = Self {
            log,
            messages,
            beginnings,
            source,
            whole: Course::default(),
            has_same_ids: true,
            first: Course::default(),
            first_alone: Course::default(),
            alone: String::new(),
            first_source: first,
            is_alone: false,
            is_first,
            is_in_first: true,
            timed: HashMap::new(),
            rewritten: BTreeMap::new(),
            ids: BTreeMap::new(),
            told: ByPlace::default(),
            others: BTreeMap::new(),
        };
        for at in (0..log.len()).filter(|at| is_timed(log, *at)) {
            let read = log.entry(at).map_err(|error| unreadable(log, &error))?;
            if let Some(time) = read.and_then(|message| message.created_at.known()) {
                compared.timed.entry(time).or_default().push(at);
            }
        }
        Ok(compared)
    }

    /// Returns whether the comparison needs no further entry.
    fn is_done(&self) -> bool {
        !self.whole.differs && self.whole.same.len() == self.messages.len() && self.timed.is_empty()
    }

    /// Compares an entry with the records of the same time.
    fn take_timed(&mut self, entry: &LogEntry) -> Result<()> {
        let Some(places) = self.timed.get_mut(&entry.created_at) else {
            return Ok(());
        };
        for (nth, at) in places.iter().enumerate() {
            if is_same(self.log, *at, entry)? {
                let id = self.log.head(*at).and_then(|head| head.id);
                if id != entry.external_id.as_deref() {
                    self.rewritten.insert(*at, entry.seq);
                    self.ids
                        .extend(entry.external_id.clone().map(|id| (*at, id)));
                }
                places.remove(nth);
                break;
            }
        }
        if places.is_empty() {
            self.timed.remove(&entry.created_at);
        }
        Ok(())
    }

    /// Compares the next entry of the session.
    fn take(&mut self, entry: &LogEntry) -> Result<()> {
        self.take_timed(entry)?;
        let id = entry.external_id.as_deref();
        let made = id.and_then(MadeId::parse);
        let made = made.filter(|_| !entry.created_at.is_known());
        if let Some(made) = &made
            && let Some(source) = made.source
            && self.beginnings.contains(source)
        {
            self.tell(made, entry);
        }
        if entry.kind != EntryKind::Message {
            return Ok(());
        }
        if let Some(at) = self.messages.get(self.whole.same.len())
            && !self.whole.differs
        {
            match is_same(self.log, *at, entry)? {
                true => {
                    self.has_same_ids &= self.log.head(*at).and_then(|head| head.id) == id;
                    self.whole.same.push(entry.seq);
                }
                false => self.whole.differs = true,
            }
        }
        match (id, &made) {
            (None, _) => self.is_in_first = false,
            (
                _,
                Some(
                    made @ MadeId {
                        source: Some(source),
                        ..
                    },
                ),
            ) => {
                self.is_in_first = false;
                self.compare_other(source, made, entry)?;
            }
            _ => self.compare_first(entry, made.map(|made| made.hash))?,
        }
        Ok(())
    }

    /// Takes an entry that came with a beginning of this source.
    fn tell(&mut self, made: &MadeId<'_>, entry: &LogEntry) {
        if entry.kind == EntryKind::Message {
            let at = (made.number as usize).checked_sub(1);
            if let Some(at) = at.and_then(|at| self.messages.get(at)) {
                self.told.known.insert(*at, entry.seq);
            }
            return;
        }
        let is_note = |at: &usize| {
            let made_here = made_id(self.log, *at);
            made_here.is_some_and(|here| (here.hash, here.number) == (made.hash, made.number))
        };
        let notes = (0..self.log.len()).find(|at| is_by_place(self.log, *at) && is_note(at));
        self.told.known_notes.extend(notes);
    }

    /// Compares an entry that may have come with the first source. One with an id or a time may also have come from
    /// elsewhere: it counts as the first source's own unless this source is known to begin as that one. Without the hash
    /// of the first source, one that directly follows its entries counts as its own.
    fn compare_first(&mut self, entry: &LogEntry, hash: Option<&str>) -> Result<()> {
        if let Some(hash) = hash {
            self.alone = short_hash(&format!("{} {hash}", self.alone));
            self.is_alone |= self.first_source == Some(self.alone.as_str());
            self.first_alone
                .compare(self.log, &self.messages, entry, true)?;
        }
        let is_own = match self.is_first {
            Some(is_beginning) => !is_beginning,
            None => self.is_in_first,
        };
        let is_own = is_own || hash.is_some();
        self.is_in_first |= self
            .first
            .compare(self.log, &self.messages, entry, is_own)?;
        Ok(())
    }

    /// Returns the course of the source with which the session begins.
    fn first_course(&self) -> &Course {
        match self.is_alone {
            true => &self.first_alone,
            false => &self.first,
        }
    }

    /// Compares the values of an entry that came with another source.
    fn compare_other(&mut self, source: &str, made: &MadeId<'_>, entry: &LogEntry) -> Result<()> {
        if self.beginnings.contains(source) {
            return Ok(());
        }
        let other = self.others.entry(source.to_owned());
        let other = other.or_insert_with(|| Some(BTreeMap::new()));
        let Some(known) = other else {
            return Ok(());
        };
        let at = (made.number as usize).checked_sub(1);
        match at.and_then(|at| self.messages.get(at)) {
            Some(at) if is_same(self.log, *at, entry)? => {
                known.insert(*at, (entry.seq, made.hash.to_owned()));
            }
            _ => *other = None,
        }
        Ok(())
    }

    /// Returns the positions of the messages that came with a beginning of this source that was written in another way:
    /// with the hashes of its stored messages, the beginning has the hash that names it.
    fn told_otherwise(&self) -> BTreeMap<usize, Seq> {
        let told = self.others.iter();
        let told = told.filter_map(|(source, told)| Some((source, told.as_ref()?)));
        let mut told: Vec<(&String, &Told)> = told.collect();
        told.sort_by_key(|(_, told)| told.last_key_value().map(|(last, _)| *last));
        let mut found = Told::new();
        for (source, own) in told {
            let Some((first, _)) = own.first_key_value() else {
                continue;
            };
            let mut whole = found.clone();
            whole.split_off(first);
            whole.extend(own.iter().map(|(at, told)| (*at, told.clone())));
            if self.is_beginning(&whole, source) {
                found = whole;
            }
        }
        found.into_iter().map(|(at, (seq, _))| (at, seq)).collect()
    }

    /// Returns whether a beginning of the source has a hash, with the hashes that its messages have in the log.
    fn is_beginning(&self, told: &Told, source: &str) -> bool {
        let mut before = String::new();
        self.messages
            .iter()
            .map_while(|at| match is_by_place(self.log, *at) {
                true => told.get(at).map(|(_, hash)| hash.as_str()),
                false => {
                    let stored = self.ids.get(at).map(String::as_str);
                    Some(
                        stored
                            .or_else(|| self.log.head(*at)?.id)
                            .unwrap_or_default(),
                    )
                }
            })
            .any(|name| {
                before = short_hash(&format!("{before} {name}"));
                before == source
            })
    }

    /// Returns the records of the first messages that have neither an id nor a time, with the positions of a course.
    fn by_place(&self, same: &[Seq]) -> BTreeMap<usize, Seq> {
        let messages = self.messages.iter().copied().zip(same.iter().copied());
        messages
            .filter(|(at, _)| is_by_place(self.log, *at))
            .collect()
    }
}

impl Session {
    /// Recognises the records of a source without an id in the session's log up to a position.
    pub(crate) async fn recognize(&self, log: &SessionLog, head: Seq) -> Result<ByPlace> {
        let mut rest = SeqRange::new(Seq::FIRST, head);
        // If the first record with a time is found by its id, the source is not written in another way.
        let timed = (0..log.len()).find(|at| is_timed(log, *at));
        let is_rewritten = match timed.and_then(|at| log.head(at)?.id) {
            Some(id) => self.position(id).await?.is_none(),
            None => false,
        };
        let mut by_place = log.heads().filter(|head| head.by_place);
        let has_by_place = by_place.any(|head| head.kind == EntryKind::Message);
        if rest.is_none() || !(is_rewritten || has_by_place) {
            return Ok(ByPlace::default());
        }
        let store = &self.memory().inner.store;
        let first = store.state(self.id(), FIRST_SOURCE).await?;
        let first =
            first.and_then(|first| serde_json::from_str::<String>(first.value.as_str()).ok());
        let mut compared = Comparison::new(log, first.as_deref())?;
        if !is_rewritten {
            compared.timed.clear();
        }
        while let Some(range) = rest.filter(|_| !compared.is_done()) {
            let page = self.entries_in(range).await?;
            for entry in &page.items {
                compared.take(entry)?;
            }
            rest = page.next;
        }
        let found = match has_by_place {
            true => self.place(&compared).await?,
            false => ByPlace::default(),
        };
        Ok(ByPlace {
            rewritten: compared.rewritten,
            ..found
        })
    }

    /// Decides which records without an id and a time are known, and names the others.
    async fn place(&self, compared: &Comparison<'_>) -> Result<ByPlace> {
        let whole = compared.by_place(&compared.whole.same);
        let course = compared.first_course();
        let first = compared.by_place(&course.same);
        if !compared.whole.differs {
            let found = ByPlace {
                known: whole,
                ..ByPlace::default()
            };
            return match compared.has_same_ids {
                true => self.keep_ids(compared, found).await,
                false => Ok(name(compared, found, false)),
            };
        }
        if let Some((last, _)) = compared.told.known.last_key_value() {
            let mut told = compared.told.clone();
            // The source was imported first when all of the session was a beginning of it.
            for (at, seq) in whole.range(..last) {
                told.known.entry(*at).or_insert(*seq);
            }
            return Ok(name(compared, told, true));
        }
        let is_whole = course.same.len() == compared.messages.len();
        if !course.differs && !first.is_empty() && (is_whole || compared.is_first != Some(false)) {
            let found = ByPlace {
                known: first,
                ..ByPlace::default()
            };
            return self.keep_ids(compared, found).await;
        }
        let found = ByPlace {
            known: compared.told_otherwise(),
            ..ByPlace::default()
        };
        Ok(name(compared, found, true))
    }

    /// Records the source with which the session begins, before its records are stored.
    pub(crate) async fn record_first(&self, by_place: &ByPlace) -> Result<()> {
        let Some(source) = &by_place.begins_with else {
            return Ok(());
        };
        let store = &self.memory().inner.store;
        let known = store.state(self.id(), FIRST_SOURCE).await?;
        let revision = known.map_or(0, |known| known.revision);
        let source = RawJson::from_value(source)?;
        match store
            .put_state(self.id(), FIRST_SOURCE, revision, Some(&source))
            .await
        {
            // Another process imports too. The import that ends later has the longer source.
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => Ok(()),
            recorded => Ok(recorded.map(drop)?),
        }
    }

    /// Leaves new records the ids that they have in the source, unless other entries have these ids.
    async fn keep_ids(&self, compared: &Comparison<'_>, mut found: ByPlace) -> Result<ByPlace> {
        let log = compared.log;
        let new = compared.messages.iter().copied();
        let new = new.filter(|at| is_by_place(log, *at) && !found.has(*at));
        let mut new: Vec<usize> = new.collect();
        let has_new = !new.is_empty();
        let mut more = 0;
        while !new.is_empty() {
            let id = |at: &usize| {
                let mut made = made_id(log, *at)?;
                made.number += more;
                Some((*at, made.to_string()))
            };
            let named: Vec<(usize, String)> = new.iter().filter_map(id).collect();
            let ids: Vec<String> = named.iter().map(|(_, id)| id.clone()).collect();
            let stored = self.memory().inner.store.find(self.id(), &ids).await?;
            new.clear();
            for ((at, id), stored) in named.into_iter().zip(stored) {
                match stored {
                    Some(_) => new.push(at),
                    None if more > 0 => drop(found.ids.insert(at, id)),
                    None => {}
                }
            }
            // No record of the source has a higher number.
            more += log.len() as u64;
        }
        found.begins_with = Some(compared.source.clone()).filter(|_| has_new);
        Ok(found)
    }
}

/// Gives new records the ids of this source. The ids of notes are theirs too if `all`.
fn name(compared: &Comparison<'_>, mut found: ByPlace, all: bool) -> ByPlace {
    let log = compared.log;
    for at in (0..log.len()).filter(|at| is_by_place(log, *at)) {
        let message = compared.messages.binary_search(&at);
        let Some(mut made) = made_id(log, at).filter(|_| !found.has(at)) else {
            continue;
        };
        match message {
            Ok(before) => made.number = before as u64 + 1,
            Err(_) if !all => continue,
            Err(_) => {}
        }
        made.source = Some(&compared.source);
        found.ids.insert(at, made.to_string());
    }
    found
}

/// Returns the indices of the messages.
fn messages_of(log: &SessionLog) -> Vec<usize> {
    let is_message = |at: &usize| {
        let head = log.head(*at);
        head.is_some_and(|head| head.kind == EntryKind::Message)
    };
    (0..log.len()).filter(is_message).collect()
}

/// Returns the hash over each beginning of a source.
fn hashes(log: &SessionLog, messages: &[usize]) -> Vec<String> {
    let mut before = String::new();
    let next = |at: &usize| {
        let name = match made_id(log, *at).filter(|_| is_by_place(log, *at)) {
            Some(made) => made.hash,
            None => log.head(*at).and_then(|head| head.id).unwrap_or_default(),
        };
        before = short_hash(&format!("{before} {name}"));
        before.clone()
    };
    messages.iter().map(next).collect()
}

fn made_id(log: &SessionLog, at: usize) -> Option<MadeId<'_>> {
    MadeId::parse(log.head(at)?.id?)
}

/// Returns whether a record has a time and no id.
fn is_timed(log: &SessionLog, at: usize) -> bool {
    let head = log.head(at).filter(|head| !head.by_place);
    head.is_some_and(|head| head.id.is_some_and(is_made_id))
}

fn is_by_place(log: &SessionLog, at: usize) -> bool {
    log.head(at).is_some_and(|head| head.by_place)
}

/// Returns whether a message of a source is the same as an entry of a log.
pub(super) fn is_same(log: &SessionLog, at: usize, entry: &LogEntry) -> Result<bool> {
    let Some(head) = log.head(at) else {
        return Ok(false);
    };
    let id = head.id.unwrap_or_default();
    if entry.external_id.as_deref() == Some(id) {
        return Ok(true);
    }
    // A record without an id is not one that has an id, and one without a time is not one that has a time.
    let stored = entry.external_id.as_deref();
    let is_other = stored
        .is_some_and(|stored| !is_made_id(stored) || head.by_place && entry.created_at.is_known());
    if is_other || !is_made_id(id) {
        return Ok(false);
    }
    let stored = stored.and_then(MadeId::parse);
    let here = made_id(log, at).filter(|_| head.by_place);
    if let (Some(stored), Some(here)) = (stored, here)
        && stored.hash == here.hash
    {
        return Ok(true);
    }
    let read = log.entry(at).map_err(|error| unreadable(log, &error))?;
    Ok(read.is_some_and(|message| {
        (head.by_place || message.created_at == entry.created_at)
            && !is_erased(entry)
            && message.has_same_values(entry)
    }))
}

/// Returns whether an entry may be erased: it has no parts, or only the text of erased messages.
pub(super) fn is_erased(entry: &LogEntry) -> bool {
    entry.parts.is_empty() || (entry.meta.is_none() && entry.text() == ERASED)
}
