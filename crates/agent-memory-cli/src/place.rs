//! Location of the database.

use std::path::{Path, PathBuf};

use crate::error::{Failure, Kind};
use crate::output::quoted;

/// Path of a command's database.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// Whether the path is the default in the platform's data directory.
    default: bool,
}

impl Place {
    /// Returns the path that `--store` names, or the default in the platform's data directory.
    pub(crate) fn find(store: Option<&str>) -> Result<Self, Failure> {
        let Some(store) = store else {
            let directory = data_directory(&|name| std::env::var_os(name).map(PathBuf::from));
            let directory = directory.ok_or_else(|| {
                Failure::new(Kind::Usage, "there is no home directory for the database")
                    .hint("name one with --store PATH")
            })?;
            return Ok(Self {
                path: directory.join("agent-memory").join("memory.db"),
                default: true,
            });
        };
        Ok(Self {
            path: parse(store)?,
            default: false,
        })
    }

    /// Returns whether a database exists at the path. An empty file does not count as a database.
    pub(crate) fn exists(&self) -> bool {
        match std::fs::metadata(&self.path) {
            Ok(meta) => !meta.is_file() || meta.len() > 0,
            Err(_) => false,
        }
    }

    /// Creates the directory of the default database. For another path, fails if the directory does not exist.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let Some(parent) = self.path.parent().filter(|p| !p.as_os_str().is_empty()) else {
            return Ok(());
        };
        if self.default {
            return create_private(parent).map_err(|error| {
                let text = format!("cannot create the directory {}: {error}", parent.display());
                Failure::new(Kind::Database, text).hint("name another place with --store PATH")
            });
        }
        if parent.is_dir() {
            return Ok(());
        }
        let text = format!(
            "there is no directory {} for the database",
            parent.display()
        );
        Err(Failure::new(Kind::Database, text)
            .hint("create it, or name another place with --store"))
    }

    /// Returns a warning if other users may read or write the database. Only call it after the database was opened. The
    /// permissions of the folder are not considered, because they can change.
    #[cfg(unix)]
    pub(crate) fn warning(&self) -> Option<String> {
        use std::os::unix::fs::MetadataExt as _;

        let meta = std::fs::metadata(&self.path).ok()?;
        let mode = meta.mode() & 0o777;
        (meta.is_file() && mode & 0o077 != 0).then(|| {
            let path = self.path.to_string_lossy();
            format!(
                "warning: other users have access to {path} (mode {mode:03o}): chmod 600 {}",
                quoted(&path)
            )
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn warning(&self) -> Option<String> {
        None
    }

    /// Returns the size of the database including its write-ahead log, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        [self.path.as_path(), Path::new(&log)]
            .iter()
            .filter_map(|path| std::fs::metadata(path).ok())
            .map(|meta| meta.len())
            .sum()
    }
}

/// Creates a directory and its parents with mode 0700, regardless of the umask, and syncs their names to the disk.
#[cfg(unix)]
fn create_private(directory: &Path) -> std::io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

    if directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().unwrap_or(Path::new("/"));
    create_private(above)?;
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        // The umask may have removed rights of the owner.
        Ok(()) => std::fs::set_permissions(directory, Permissions::from_mode(0o700))?,
        // Another process created the directory first.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    std::fs::File::open(above)?.sync_all()
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)
}

fn parse(store: &str) -> Result<PathBuf, Failure> {
    let usage = |text: String| {
        Failure::new(Kind::Usage, text).hint(
            "give --store sqlite:PATH, or just a path; without --store it is the default database",
        )
    };
    let path = match store.strip_prefix("sqlite:") {
        Some(path) => path.strip_prefix("//").unwrap_or(path),
        None => match store.split_once("://") {
            Some((scheme, _)) => {
                return Err(usage(format!(
                    "this program cannot open a {scheme} database"
                )));
            }
            None => store,
        },
    };
    if store.is_empty() {
        return Err(usage("--store is empty".to_owned()));
    }
    if path.is_empty() || path == ":memory:" {
        return Err(usage(format!("--store {store} does not name a file")));
    }
    Ok(PathBuf::from(path))
}

/// Returns the user's data directory. `XDG_DATA_HOME` takes precedence on every platform.
fn data_directory(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|path| path.is_absolute());
    let platform = || {
        if cfg!(windows) {
            set("APPDATA")
        } else if cfg!(target_os = "macos") {
            set("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            set("HOME").map(|home| home.join(".local/share"))
        }
    };
    set("XDG_DATA_HOME").or_else(platform)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_paths() {
        for (store, path) in [
            ("sqlite:a.db", "a.db"),
            ("sqlite:///tmp/a.db", "/tmp/a.db"),
            ("x/a.db", "x/a.db"),
        ] {
            assert_eq!(parse(store).unwrap(), Path::new(path));
        }
        for store in ["", "postgres://h/d", "sqlite:", "sqlite::memory:"] {
            assert_eq!(parse(store).unwrap_err().kind, Kind::Usage, "{store}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_environment_decides() {
        let with = |pairs: &'static [(&str, &str)]| {
            data_directory(&|name| {
                let found = pairs.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| PathBuf::from(value))
            })
        };
        assert_eq!(with(&[]), None);
        assert_eq!(
            with(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")]),
            Some("/d".into())
        );
        assert!(
            with(&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")])
                .unwrap()
                .starts_with("/h")
        );
    }
}
