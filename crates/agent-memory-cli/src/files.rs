//! Files and folders that the program keeps for itself, in places where others may have put something first.
//!
//! A link is never followed, a pipe or a device is never opened, and nothing is truncated. New files are for the
//! user alone, for any umask.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a file for reading.
///
/// Fails if there is no file, or something else than a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    open_regular(path, &mut options)
}

/// Opens a file of the user's for appending, and creates it if it does not exist. Takes rights to it from other users.
///
/// Fails if there is something else than a regular file.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = open_regular(path, &mut options)?;
    keep_private(&file)?;
    Ok(file)
}

/// Makes an open file readable and writable for the user alone.
pub(crate) fn keep_private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    make_private(file, 0o600)?;
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Opens a regular file. Looks at it before it is opened, since opening a device may have an effect, and after it, since
/// it may be another file by then.
fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let refused = || {
        let text = format!("{} is not a regular file: remove it", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    };
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => return refused(),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => refused(),
    }
}

/// Takes the rights to an open file or folder that `mode` does not have, and gives the owner those that it has.
#[cfg(unix)]
fn make_private(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    match file.metadata()?.permissions().mode() & 0o777 == mode {
        true => Ok(()),
        false => file.set_permissions(std::fs::Permissions::from_mode(mode)),
    }
}

/// Creates a folder that only the user may read, if it does not exist. Takes rights to it from other users.
///
/// Fails if there is something else than a folder, such as a link to one.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => created?,
    }
    if !is_folder(folder) {
        let text = format!("{} is not a folder: remove it", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
    }
    #[cfg(unix)]
    {
        let mut options = OpenOptions::new();
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::DIRECTORY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
        // A folder that its owner cannot read cannot be opened.
        match options.read(true).open(folder) {
            Ok(opened) => make_private(&opened, 0o700)?,
            Err(_) => std::fs::set_permissions(
                folder,
                std::os::unix::fs::PermissionsExt::from_mode(0o700),
            )?,
        }
    }
    Ok(())
}

/// Creates a folder and the missing ones above it. New ones are for the user alone.
pub(crate) fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        create_folders(above)?;
    }
    create_folder(folder)
}

/// Returns whether a path is a folder, and no link to one.
pub(crate) fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Returns whether a path is a regular file, and no link to one.
pub(crate) fn is_regular(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Reads a text of at most `most` bytes from a file, also by way of a link.
///
/// Fails if the link or path leads to something else than a regular file, or to a larger one, which is not read then.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let refused = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    let file = open(&path.canonicalize()?)?;
    let mut text = String::new();
    if file.metadata()?.len() > most || file.take(most + 1).read_to_string(&mut text)? as u64 > most
    {
        return refused(format!("has more than {most} bytes"));
    }
    Ok(text)
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::PathBuf;

    /// Returns a folder with a file `words`, and the things that are no regular files, by name.
    fn world() -> (tempfile::TempDir, Vec<(&'static str, PathBuf)>) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("words"), "words of another").unwrap();
        symlink(at("words"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        symlink(at("folder"), at("linked folder")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        let names = [
            "link",
            "dangling",
            "device",
            "folder",
            "linked folder",
            "socket",
            "pipe",
        ];
        let odd = names.map(|name| (name, at(name))).to_vec();
        (folder, odd)
    }

    #[test]
    fn only_regular_files_are_opened() {
        let (folder, odd) = world();
        for (name, path) in odd {
            assert!(
                open(&path).is_err() && open_private(&path).is_err(),
                "{name}"
            );
            assert!(!is_regular(&path), "{name}");
        }
        let path = folder.path().join("words");
        open_private(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "words of another");
        assert!(!folder.path().join("nothing").exists());
    }

    #[test]
    fn what_is_created_is_for_the_user_alone() {
        let (folder, _) = world();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        let (file, new) = (folder.path().join("new"), folder.path().join("a/b/c"));
        open_private(&file).unwrap();
        create_folders(&new).unwrap();
        assert_eq!((mode(&file), mode(&new)), (0o600, 0o700));
        assert_eq!(mode(&folder.path().join("a")), 0o700);
        // What others left open is closed.
        for (path, open) in [(&file, 0o666), (&new, 0o777)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(open)).unwrap();
        }
        open_private(&file).unwrap();
        create_folder(&new).unwrap();
        assert_eq!((mode(&file), mode(&new)), (0o600, 0o700));
        for name in ["link", "linked folder", "pipe"] {
            assert!(create_folder(&folder.path().join(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn texts_are_read_up_to_a_size() {
        let (folder, odd) = world();
        assert_eq!(
            read_text(&folder.path().join("link"), 16).unwrap(),
            "words of another"
        );
        assert!(read_text(&folder.path().join("link"), 15).is_err());
        for (name, path) in odd.iter().filter(|(name, _)| *name != "link") {
            assert!(read_text(path, 1 << 20).is_err(), "{name}");
        }
    }
}
