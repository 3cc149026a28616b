//! Files of a disk, with the writes that no sync has made durable.

use std::collections::BTreeMap;

use crate::shared_memory::Sharing;

/// Length of the pieces of a torn write, in bytes: the sector of a disk.
const SECTOR: usize = 512;

/// Kind of a call to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Opens a file, or creates it.
    Open,
    /// Reads bytes of a file.
    Read,
    /// Writes bytes of a file.
    Write,
    /// Shortens or lengthens a file.
    Truncate,
    /// Makes the content of a file durable.
    Sync,
    /// Deletes a file.
    Delete,
    /// Asks for the length of a file.
    Size,
    /// Maps shared memory.
    Map,
}

impl Call {
    /// The calls that change a disk. The power is cut before one of these.
    pub const CHANGING: &[Self] = &[
        Self::Open,
        Self::Write,
        Self::Truncate,
        Self::Sync,
        Self::Delete,
    ];
}

/// A failure of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The power is cut before the call. Every call fails from then on.
    Cut,
    /// The disk is full (`ENOSPC`).
    Full,
    /// The medium does not answer (`EIO`).
    Io,
    /// Half of the bytes are written, then the disk is full.
    Short,
    /// A sync fails once (`EIO`), and the system drops the writes: programs see them, but no later sync makes them durable.
    Dropped,
}

/// A failure at one call.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The kinds of calls that are counted.
    pub calls: &'a [Call],
    /// The number of the failing call among these, from 1.
    pub nth: u64,
    /// The failure.
    pub fault: Fault,
    /// Whether all later calls of these kinds fail too, until [`Disk::mend`](crate::Disk::mend).
    pub lasting: bool,
}

/// A write that is not durable.
#[derive(Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => put(to, *at, bytes),
            Self::Length(length) => to.resize(*length, 0),
        }
    }
}

fn put(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    to[at..end].copy_from_slice(bytes);
}

#[derive(Debug, Default)]
struct File {
    /// The bytes that programs see.
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, with their order among all changes of the disk.
    changes: Vec<(u64, Change)>,
    sharing: Sharing,
}

/// Number of a file, which is never used again.
pub(crate) type FileNo = usize;

#[derive(Debug)]
struct Planned {
    calls: Vec<Call>,
    left: u64,
    fault: Fault,
    lasting: bool,
}

/// All files of one disk.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: Vec<File>,
    names: BTreeMap<String, FileNo>,
    durable_names: BTreeMap<String, FileNo>,
    /// Created and deleted names since the folder was synced.
    renamed: Vec<(String, Option<FileNo>)>,
    changes: u64,
    counts: [u64; 8],
    planned: Option<Planned>,
    reached: bool,
    off: bool,
    handles: u64,
    open_handles: u64,
    /// The files before each call that changes them, if they are recorded.
    recorded: Option<Vec<BTreeMap<String, Vec<u8>>>>,
}

impl Files {
    pub(crate) fn with(contents: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut disk = Self::default();
        for (name, bytes) in contents {
            disk.names.insert(name.clone(), disk.files.len());
            disk.files.push(File {
                seen: bytes.clone(),
                durable: bytes.clone(),
                ..File::default()
            });
        }
        disk.durable_names = disk.names.clone();
        disk
    }

    pub(crate) fn plan(&mut self, plan: Plan<'_>) {
        self.reached = false;
        self.counts = [0; 8];
        self.planned = Some(Planned {
            calls: plan.calls.to_vec(),
            left: plan.nth,
            fault: plan.fault,
            lasting: plan.lasting,
        });
    }

    /// Ends the planned failure. Returns whether its call was made.
    pub(crate) fn mend(&mut self) -> bool {
        self.planned = None;
        self.reached
    }

    pub(crate) fn turn_off(&mut self) {
        self.off = true;
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off
    }

    pub(crate) fn count(&self, calls: &[Call]) -> u64 {
        calls.iter().map(|call| self.counts[*call as usize]).sum()
    }

    pub(crate) fn record(&mut self) {
        self.counts = [0; 8];
        self.recorded = Some(Vec::new());
    }

    pub(crate) fn recorded(&mut self) -> Vec<BTreeMap<String, Vec<u8>>> {
        self.recorded.take().unwrap_or_default()
    }

    /// Counts a call, and returns the failure that it meets.
    fn call(&mut self, call: Call) -> Result<(), Fault> {
        if self.off {
            return Err(Fault::Cut);
        }
        self.counts[call as usize] += 1;
        if Call::CHANGING.contains(&call) && self.recorded.is_some() {
            let seen = self.seen();
            let recorded = self.recorded.get_or_insert_default();
            recorded.push(seen);
        }
        let Some(planned) = self.planned.as_mut().filter(|p| p.calls.contains(&call)) else {
            return Ok(());
        };
        planned.left = planned.left.saturating_sub(1);
        if planned.left > 0 || (self.reached && !planned.lasting) {
            return Ok(());
        }
        self.reached = true;
        self.off = planned.fault == Fault::Cut;
        Err(planned.fault)
    }

    pub(crate) fn new_handle(&mut self) -> u64 {
        self.handles += 1;
        self.open_handles += 1;
        self.handles
    }

    pub(crate) fn close(&mut self, no: FileNo, handle: u64) {
        self.open_handles -= 1;
        self.files[no].sharing.close(handle);
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.open_handles > 0
    }

    /// Returns the file of a name. `None` if it does not exist and `create` is false.
    pub(crate) fn open(
        &mut self,
        name: &str,
        create: bool,
        is_log: bool,
    ) -> Result<Option<FileNo>, Fault> {
        self.call(Call::Open)?;
        if let Some(no) = self.names.get(name) {
            return Ok(Some(*no));
        }
        if !create {
            return Ok(None);
        }
        let no = self.files.len();
        self.files.push(File::default());
        self.names.insert(name.to_owned(), no);
        match is_log {
            true => self.renamed.push((name.to_owned(), Some(no))),
            false => {
                self.durable_names.insert(name.to_owned(), no);
            }
        }
        Ok(Some(no))
    }

    pub(crate) fn delete(&mut self, name: &str, sync_folder: bool) -> Result<bool, Fault> {
        self.call(Call::Delete)?;
        let existed = self.names.remove(name).is_some();
        if existed {
            self.renamed.push((name.to_owned(), None));
        }
        if sync_folder {
            self.sync_folder();
        }
        Ok(existed)
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    pub(crate) fn is_empty(&self, name: &str) -> bool {
        let no = self.names.get(name);
        no.is_none_or(|no| self.files[*no].seen.is_empty())
    }

    fn sync_folder(&mut self) {
        self.durable_names = self.names.clone();
        self.renamed.clear();
    }

    /// Reads bytes, and returns their number, which is smaller at the end of the file.
    pub(crate) fn read(&mut self, no: FileNo, at: usize, to: &mut [u8]) -> Result<usize, Fault> {
        self.call(Call::Read)?;
        let rest = self.files[no].seen.get(at..).unwrap_or_default();
        let length = rest.len().min(to.len());
        to[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn change(&mut self, no: FileNo, change: Change) {
        self.changes += 1;
        let file = &mut self.files[no];
        change.apply(&mut file.seen);
        file.changes.push((self.changes, change));
    }

    pub(crate) fn write(&mut self, no: FileNo, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        let called = self.call(Call::Write);
        let bytes = match called {
            Ok(()) => bytes,
            Err(Fault::Short) => &bytes[..bytes.len() / 2],
            Err(fault) => return Err(fault),
        };
        let bytes = bytes.to_vec();
        self.change(no, Change::Write { at, bytes });
        called
    }

    pub(crate) fn truncate(&mut self, no: FileNo, length: usize) -> Result<(), Fault> {
        self.call(Call::Truncate)?;
        self.change(no, Change::Length(length));
        Ok(())
    }

    pub(crate) fn sync(&mut self, no: FileNo, with_folder: bool) -> Result<(), Fault> {
        let called = self.call(Call::Sync);
        let file = &mut self.files[no];
        if called == Err(Fault::Dropped) {
            file.changes.clear();
        }
        called?;
        for (_, change) in std::mem::take(&mut file.changes) {
            change.apply(&mut file.durable);
        }
        if with_folder {
            self.sync_folder();
        }
        Ok(())
    }

    pub(crate) fn size(&mut self, no: FileNo) -> Result<usize, Fault> {
        self.call(Call::Size)?;
        Ok(self.files[no].seen.len())
    }

    pub(crate) fn map(
        &mut self,
        no: FileNo,
        handle: u64,
        region: usize,
        size: usize,
        extend: bool,
    ) -> Result<Option<*mut u8>, Fault> {
        self.call(Call::Map)?;
        Ok(self.files[no].sharing.map(handle, region, size, extend))
    }

    pub(crate) fn sharing(&mut self, no: FileNo) -> &mut Sharing {
        &mut self.files[no].sharing
    }

    /// Returns the files as programs see them.
    pub(crate) fn seen(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.names.iter();
        files
            .map(|(name, no)| (name.clone(), self.files[*no].seen.clone()))
            .collect()
    }

    /// Returns the files that other processes find after the death of all that had them open.
    pub(crate) fn after_kill(self) -> Self {
        let files = self.files.into_iter().map(|file| File {
            sharing: Sharing::default(),
            ..file
        });
        Self {
            files: files.collect(),
            names: self.names,
            durable_names: self.durable_names,
            renamed: self.renamed,
            changes: self.changes,
            ..Self::default()
        }
    }

    /// Returns the files that are found after a power cut.
    pub(crate) fn after_cut(&self, random: &mut fastrand::Rng) -> BTreeMap<String, Vec<u8>> {
        let mut names = self.durable_names.clone();
        for (name, no) in &self.renamed[..random.usize(..=self.renamed.len())] {
            match no {
                Some(no) => names.insert(name.clone(), *no),
                None => names.remove(name),
            };
        }
        let way = random.u8(..4);
        // In one of the ways, the disk has written in order up to here.
        let until = random.u64(..=self.changes + 1);
        names
            .into_iter()
            .map(|(name, no)| {
                let file = &self.files[no];
                let mut bytes = file.durable.clone();
                match way {
                    0 => {}
                    1 => {
                        for (order, change) in &file.changes {
                            match order.cmp(&until) {
                                std::cmp::Ordering::Less => change.apply(&mut bytes),
                                std::cmp::Ordering::Equal => tear(change, &mut bytes, random),
                                std::cmp::Ordering::Greater => {}
                            }
                        }
                    }
                    _ => {
                        let mut changes: Vec<_> = file.changes.iter().collect();
                        // The order counts where writes overlap.
                        if way == 3 {
                            random.shuffle(&mut changes);
                        }
                        for (_, change) in changes {
                            match random.u8(..3) {
                                0 => {}
                                1 => change.apply(&mut bytes),
                                _ => tear(change, &mut bytes, random),
                            }
                        }
                    }
                }
                (name, bytes)
            })
            .collect()
    }
}

/// Applies some of the sectors of a write, or all or nothing of a change of length.
fn tear(change: &Change, to: &mut Vec<u8>, random: &mut fastrand::Rng) {
    let Change::Write { at, bytes } = change else {
        if random.bool() {
            change.apply(to);
        }
        return;
    };
    let mut from = *at;
    while from < at + bytes.len() {
        let end = (from / SECTOR + 1) * SECTOR;
        let end = end.min(at + bytes.len());
        if random.bool() {
            put(to, from, &bytes[from - at..end - at]);
        }
        from = end;
    }
}
