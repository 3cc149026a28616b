//! Disks that are mounted below SQLite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::files::{Call, Files, Plan};
use crate::vfs;

/// Maximum time that connections have to close after their disk has died.
const PATIENCE: Duration = Duration::from_secs(60);

/// Files of one disk, which connections share.
pub(crate) type Shared = Arc<Mounted>;

#[derive(Debug, Default)]
pub(crate) struct Mounted {
    pub(crate) files: Mutex<Files>,
    /// Wakes when a file is closed.
    pub(crate) closed: Condvar,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mounted disks, by folder.
static MOUNTED: Mutex<BTreeMap<PathBuf, Shared>> = Mutex::new(BTreeMap::new());

/// Returns the disk that a path is on, and the name of the file there. `None` if the path is on no simulated disk.
pub(crate) fn find(path: &Path) -> Option<(Shared, String)> {
    let disk = lock(&MOUNTED).get(path.parent()?).cloned()?;
    Some((disk, path.file_name()?.to_str()?.to_owned()))
}

/// Content of all files of a disk, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image(BTreeMap<String, Vec<u8>>);

impl Image {
    /// Returns the name of a file that contains these bytes.
    pub fn find(&self, bytes: &[u8]) -> Option<&str> {
        let mut files = self.0.iter();
        files
            .find(|(_, content)| content.windows(bytes.len()).any(|window| window == bytes))
            .map(|(name, _)| name.as_str())
    }
}

/// A simulated disk, mounted at a folder until it is dropped.
///
/// Restarting it gives later connections a new disk. Drop all connections before that.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Mounts a new empty disk at an existing folder.
    ///
    /// # Panics
    /// If the folder does not exist, or SQLite refuses the file system.
    pub fn mount(folder: &Path) -> Self {
        vfs::register();
        #[expect(clippy::unwrap_used, reason = "for tests")]
        let folder = folder.canonicalize().unwrap();
        let disk = Self { folder };
        disk.put(&Image::default());
        disk
    }

    fn files<T>(&self, act: impl FnOnce(&mut Files) -> T) -> T {
        let disk = lock(&MOUNTED).get(&self.folder).cloned();
        act(&mut lock(&disk.unwrap_or_default().files))
    }

    /// Replaces the disk by one with these files, all of them durable.
    ///
    /// # Panics
    /// If a connection is still open after a minute.
    pub fn put(&self, image: &Image) {
        self.replace(|_| Files::with(&image.0));
    }

    /// Replaces the disk. Connections that are being closed find a dead disk, and are waited for.
    fn replace(&self, next: impl FnOnce(Files) -> Files) {
        let before = lock(&MOUNTED).get(&self.folder).cloned();
        let before = before.map_or_else(Files::default, |before| {
            let mut files = lock(&before.files);
            files.turn_off();
            let waited = before
                .closed
                .wait_timeout_while(files, PATIENCE, |files| files.is_in_use());
            let (mut files, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            // An open connection would delete files of the new disk, which it finds by their names.
            assert!(!waited.timed_out(), "close all connections first");
            std::mem::take(&mut *files)
        });
        let disk = Mounted {
            files: Mutex::new(next(before)),
            closed: Condvar::new(),
        };
        lock(&MOUNTED).insert(self.folder.clone(), Arc::new(disk));
    }

    /// Lets every call fail from now on, so that closing a connection changes no file.
    pub fn turn_off(&self) {
        self.files(Files::turn_off);
    }

    /// Plans a failure. The calls are counted from here.
    pub fn plan(&self, plan: Plan<'_>) {
        self.files(|files| files.plan(plan));
    }

    /// Ends the planned failure. Returns whether its call was made.
    pub fn mend(&self) -> bool {
        self.files(Files::mend)
    }

    /// Returns whether the power was cut.
    pub fn is_off(&self) -> bool {
        self.files(|files| files.is_off())
    }

    /// Counts calls from now on, and records the files before each call that changes them.
    pub fn record(&self) {
        self.files(Files::record);
    }

    /// Ends the recording. Returns the files before each call of [`Call::CHANGING`], and after the last one.
    pub fn recorded(&self) -> Vec<Image> {
        let mut images = self.files(Files::recorded);
        images.push(self.files(|files| files.seen()));
        images.into_iter().map(Image).collect()
    }

    /// Returns the number of calls of some kinds.
    pub fn count(&self, calls: &[Call]) -> u64 {
        self.files(|files| files.count(calls))
    }

    /// Returns the files as programs see them.
    pub fn image(&self) -> Image {
        Image(self.files(|files| files.seen()))
    }

    /// Restarts after a power cut: writes that were not synced are kept, lost or torn.
    pub fn restart(&self, random: &mut fastrand::Rng) {
        self.replace(|files| Files::with(&files.after_cut(random)));
    }

    /// Goes on after the death of all processes: all writes are there, but those that were not synced are not durable.
    pub fn kill(&self) {
        self.replace(Files::after_kill);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        lock(&MOUNTED).remove(&self.folder);
    }
}
