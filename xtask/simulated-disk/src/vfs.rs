//! The file system that SQLite calls.
//!
//! SQLite calls a file system through tables of C function pointers, and keeps each open file in memory that it
//! allocates itself, so that this module needs `unsafe`. Every function gets its pointers from SQLite, which promises in
//! its documentation (`sqlite3_vfs`, `sqlite3_io_methods`) what they point to. Files outside of simulated disks are
//! opened by the system's own file system, with its own methods.
#![allow(unsafe_code, reason = "SQLite's interface for file systems is in C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::path::Path;
use std::ptr;
use std::sync::Once;

use rusqlite::ffi as c;

use crate::disk::{Shared, find, lock};
use crate::files::{Fault, FileNo};

/// An open file of a simulated disk.
struct Open {
    disk: Shared,
    no: FileNo,
    handle: u64,
    /// Name, if the file is deleted when it is closed.
    deleted: Option<String>,
    /// Whether the next sync makes the names in the folder durable.
    syncs_folder: bool,
}

/// What SQLite allocates for an open file of a simulated disk.
#[repr(C)]
struct Allocated {
    base: c::sqlite3_file,
    open: *mut Open,
}

static METHODS: c::sqlite3_io_methods = c::sqlite3_io_methods {
    // With shared memory, without memory-mapped files.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock_file),
    xUnlock: Some(unlock_file),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Makes the simulated file system the default of this process, once.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite initializes itself in the first call. The system's file system lives as long as the process,
        // and so does the copy of it, which is leaked. A copy shares the pointer to the system's data.
        let registered = unsafe {
            c::sqlite3_initialize();
            let base = c::sqlite3_vfs_find(ptr::null());
            assert!(!base.is_null(), "SQLite has no file system");
            let mut vfs = *base;
            vfs.szOsFile = vfs.szOsFile.max(size_of::<Allocated>() as c_int);
            vfs.zName = c"simulated".as_ptr();
            vfs.pNext = ptr::null_mut();
            vfs.xOpen = Some(open);
            vfs.xDelete = Some(delete);
            vfs.xAccess = Some(access);
            c::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 1)
        };
        assert_eq!(registered, c::SQLITE_OK, "SQLite refuses the file system");
    });
}

/// Returns the system's file system, whose functions take files outside of simulated disks.
fn system() -> *mut c::sqlite3_vfs {
    // SAFETY: The name is a C string.
    unsafe { c::sqlite3_vfs_find(c"unix".as_ptr()) }
}

/// Returns the simulated disk and file of a name that SQLite gives. Temporary files have no name.
fn on_disk(name: *const c_char) -> Option<(Shared, String)> {
    find(path_of(name)?)
}

/// Returns the path of a name that SQLite gives. Temporary files have no name.
fn path_of<'a>(name: *const c_char) -> Option<&'a Path> {
    if name.is_null() {
        return None;
    }
    // SAFETY: SQLite gives a C string, which lives during the call.
    let name = unsafe { CStr::from_ptr(name) };
    Some(Path::new(name.to_str().ok()?))
}

/// Returns SQLite's result code for a call.
fn code<T>(done: Result<T, Fault>, io: c_int) -> c_int {
    match done {
        Ok(_) => c::SQLITE_OK,
        Err(Fault::Full | Fault::Short) => c::SQLITE_FULL,
        Err(Fault::Cut | Fault::Io | Fault::Dropped) => io,
    }
}

fn index(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(0)
}

/// Returns an open file.
///
/// # Safety
/// `file` is a file that [`open`] has opened, and no other reference to it is in use: SQLite uses a connection's files
/// from one thread at a time.
unsafe fn opened<'a>(file: *mut c::sqlite3_file) -> &'a mut Open {
    // SAFETY: `open` has stored the pointer of a box, which `close` alone frees.
    unsafe { &mut *(*file.cast::<Allocated>()).open }
}

unsafe extern "C" fn open(
    _: *mut c::sqlite3_vfs,
    name: *const c_char,
    file: *mut c::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let name_pointer = name;
    let Some((disk, name)) = on_disk(name) else {
        let system = system();
        // SAFETY: SQLite has allocated enough for a file of the system, which sets its own methods.
        return match unsafe { (*system).xOpen } {
            // SAFETY: The pointers are those that SQLite has passed.
            Some(open) => unsafe { open(system, name_pointer, file, flags, out_flags) },
            None => c::SQLITE_CANTOPEN,
        };
    };
    // SAFETY: SQLite has allocated the file; without methods it is not closed if it cannot be opened.
    unsafe { (*file).pMethods = ptr::null() };
    let logs = c::SQLITE_OPEN_WAL | c::SQLITE_OPEN_MAIN_JOURNAL | c::SQLITE_OPEN_SUPER_JOURNAL;
    let is_log = flags & logs != 0;
    // A program may have created an empty file by itself, which is in the real folder.
    let is_there = !is_log && path_of(name_pointer).is_some_and(Path::exists);
    let create = flags & c::SQLITE_OPEN_CREATE != 0 || is_there;
    let mut files = lock(&disk.files);
    let Ok(Some(no)) = files.open(&name, create, is_log) else {
        return c::SQLITE_CANTOPEN;
    };
    let handle = files.new_handle();
    drop(files);
    let open = Box::new(Open {
        disk,
        no,
        handle,
        deleted: (flags & c::SQLITE_OPEN_DELETEONCLOSE != 0).then_some(name),
        syncs_folder: is_log && create,
    });
    // SAFETY: SQLite has allocated `szOsFile` bytes, which is at least the size of this struct.
    unsafe {
        let file = file.cast::<Allocated>();
        (*file).open = Box::into_raw(open);
        (*file).base.pMethods = &METHODS;
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    c::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut c::sqlite3_file) -> c_int {
    // SAFETY: `open` has stored the pointer of a box, and SQLite closes a file once.
    let open = unsafe { Box::from_raw((*file.cast::<Allocated>()).open) };
    let mut files = lock(&open.disk.files);
    files.close(open.no, open.handle);
    open.disk.closed.notify_all();
    match &open.deleted {
        Some(name) => code(files.delete(name, false), c::SQLITE_IOERR_DELETE),
        None => c::SQLITE_OK,
    }
}

unsafe extern "C" fn delete(_: *mut c::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    let Some((disk, name)) = on_disk(name) else {
        let system = system();
        // SAFETY: The pointers are those that SQLite has passed.
        return match unsafe { (*system).xDelete } {
            // SAFETY: As above.
            Some(delete) => unsafe { delete(system, name, sync) },
            None => c::SQLITE_IOERR_DELETE,
        };
    };
    match lock(&disk.files).delete(&name, sync != 0) {
        Ok(false) => c::SQLITE_IOERR_DELETE_NOENT,
        done => code(done, c::SQLITE_IOERR_DELETE),
    }
}

unsafe extern "C" fn access(
    _: *mut c::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some((disk, name)) = on_disk(name) else {
        let system = system();
        // SAFETY: The pointers are those that SQLite has passed.
        return match unsafe { (*system).xAccess } {
            // SAFETY: As above.
            Some(access) => unsafe { access(system, name, flags, out) },
            None => c::SQLITE_IOERR_ACCESS,
        };
    };
    let files = lock(&disk.files);
    // The system's own file system takes an empty file for one that does not exist.
    let exists = match flags {
        c::SQLITE_ACCESS_EXISTS => files.exists(&name) && !files.is_empty(&name),
        _ => files.exists(&name),
    };
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *out = c_int::from(exists) };
    c::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut c::sqlite3_file,
    to: *mut c_void,
    length: c_int,
    at: c::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes a file of `open`, and room for `length` bytes.
    let (open, to) = unsafe {
        let to = std::slice::from_raw_parts_mut(to.cast::<u8>(), index(length));
        (opened(file), to)
    };
    match lock(&open.disk.files).read(open.no, index(at), to) {
        Ok(read) if read < to.len() => {
            to[read..].fill(0);
            c::SQLITE_IOERR_SHORT_READ
        }
        Ok(_) => c::SQLITE_OK,
        Err(_) => c::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn write(
    file: *mut c::sqlite3_file,
    from: *const c_void,
    length: c_int,
    at: c::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite passes a file of `open`, and `length` bytes.
    let (open, bytes) = unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), index(length));
        (opened(file), bytes)
    };
    let written = lock(&open.disk.files).write(open.no, index(at), bytes);
    code(written, c::SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut c::sqlite3_file, length: c::sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    let truncated = lock(&open.disk.files).truncate(open.no, index(length));
    code(truncated, c::SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut c::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    let synced = lock(&open.disk.files).sync(open.no, open.syncs_folder);
    open.syncs_folder &= synced.is_err();
    code(synced, c::SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut c::sqlite3_file, out: *mut c::sqlite3_int64) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    let size = lock(&open.disk.files).size(open.no);
    if let Ok(size) = size {
        // SAFETY: SQLite passes a place for the answer.
        unsafe { *out = size as c::sqlite3_int64 };
    }
    code(size, c::SQLITE_IOERR_FSTAT)
}

unsafe extern "C" fn lock_file(file: *mut c::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    let mut files = lock(&open.disk.files);
    if files.is_off() {
        return c::SQLITE_IOERR_LOCK;
    }
    match files.sharing(open.no).lock(open.handle, level) {
        Ok(()) => c::SQLITE_OK,
        Err(_) => c::SQLITE_BUSY,
    }
}

unsafe extern "C" fn unlock_file(file: *mut c::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    lock(&open.disk.files)
        .sharing(open.no)
        .unlock(open.handle, level);
    c::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut c::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a file of `open`, and a place for the answer.
    unsafe {
        let open = opened(file);
        *out = c_int::from(lock(&open.disk.files).sharing(open.no).is_reserved());
    }
    c::SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut c::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    c::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut c::sqlite3_file) -> c_int {
    4_096
}

unsafe extern "C" fn device_characteristics(_: *mut c::sqlite3_file) -> c_int {
    c::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut c::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    let mapped = lock(&open.disk.files).map(
        open.no,
        open.handle,
        index(region),
        index(size),
        extend != 0,
    );
    if let Ok(region) = mapped {
        // SAFETY: SQLite passes a place for the answer.
        unsafe { *out = region.map_or(ptr::null_mut(), <*mut u8>::cast) };
    }
    code(mapped, c::SQLITE_IOERR_SHMMAP)
}

unsafe extern "C" fn shm_lock(
    file: *mut c::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    let (first, count) = (index(first), index(count));
    let mut files = lock(&open.disk.files);
    if flags & c::SQLITE_SHM_UNLOCK != 0 {
        files
            .sharing(open.no)
            .unlock_slots(open.handle, first, count);
        return c::SQLITE_OK;
    }
    if files.is_off() {
        return c::SQLITE_IOERR_SHMLOCK;
    }
    let exclusive = flags & c::SQLITE_SHM_EXCLUSIVE != 0;
    match files
        .sharing(open.no)
        .lock_slots(open.handle, first, count, exclusive)
    {
        Ok(()) => c::SQLITE_OK,
        Err(_) => c::SQLITE_BUSY,
    }
}

unsafe extern "C" fn shm_barrier(file: *mut c::sqlite3_file) {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    // Taking and releasing the disk's lock orders the accesses before and after it.
    drop(lock(&open.disk.files));
}

unsafe extern "C" fn shm_unmap(file: *mut c::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: SQLite passes a file of `open`.
    let open = unsafe { opened(file) };
    lock(&open.disk.files).sharing(open.no).unmap(open.handle);
    c::SQLITE_OK
}
