//! Location of the database.

use std::path::{Path, PathBuf};

use crate::error::{Failure, Kind};
use crate::output::quoted;
#[cfg(feature = "postgres")]
use crate::output::short_hash;

/// Location of a command's database.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) location: Location,
    /// Whether the path is the default in the platform's data directory.
    default: bool,
}

/// Kind of a database, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// An SQLite file.
    File(PathBuf),
    /// The URL of a database on a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Server(String),
}

impl Place {
    /// Returns the location that `--store` names, or the default in the platform's data directory.
    pub(crate) fn find(store: Option<&str>) -> Result<Self, Failure> {
        let Some(store) = store else {
            let directory = data_directory(&environment);
            let directory = directory.ok_or_else(|| {
                Failure::new(Kind::Usage, "there is no home directory for the database")
                    .hint("name one with --store PATH")
            })?;
            return Ok(Self {
                location: Location::File(directory.join("agent-memory").join("memory.db")),
                default: true,
            });
        };
        Ok(Self {
            location: parse(store)?,
            default: false,
        })
    }

    /// Returns the path of a database in a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.location {
            Location::File(path) => Some(path),
            #[cfg(feature = "postgres")]
            Location::Server(_) => None,
        }
    }

    /// Returns the location for people: a path, or a URL without the password.
    pub(crate) fn name(&self) -> String {
        match &self.location {
            Location::File(path) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Location::Server(url) => without_password(url),
        }
    }

    /// Returns the location with which another process finds the database from any folder: an absolute path, or the
    /// URL.
    pub(crate) fn absolute(&self) -> String {
        match &self.location {
            Location::File(path) => {
                let absolute = std::path::absolute(path).ok();
                absolute.as_deref().unwrap_or(path).display().to_string()
            }
            #[cfg(feature = "postgres")]
            Location::Server(url) => url.clone(),
        }
    }

    /// Returns the location for a configuration file, which may be read by others: an absolute path, or the URL without
    /// its password. The second value is whether the URL has one.
    pub(crate) fn without_password(&self) -> (String, bool) {
        match &self.location {
            Location::File(_) => (self.absolute(), false),
            #[cfg(feature = "postgres")]
            Location::Server(url) => {
                let open = without_password(url);
                let is_shorter = open != *url;
                (open, is_shorter)
            }
        }
    }

    /// Returns the path of a file or folder of this machine that belongs to the database: next to its file, or in the
    /// platform's data directory for a server.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = match &self.location {
            Location::File(path) => path.clone().into_os_string(),
            #[cfg(feature = "postgres")]
            Location::Server(url) => {
                let directory = data_directory(&environment).unwrap_or_else(std::env::temp_dir);
                let name = format!("server-{}", short_hash(without_password(url).as_bytes()));
                directory.join("agent-memory").join(name).into_os_string()
            }
        };
        path.push(suffix);
        PathBuf::from(path)
    }

    /// Returns whether a database exists at the path. An empty file does not count as a database, and a server does
    /// before it is asked.
    pub(crate) fn exists(&self) -> bool {
        self.file()
            .is_none_or(|path| match std::fs::metadata(path) {
                Ok(meta) => !meta.is_file() || meta.len() > 0,
                Err(_) => false,
            })
    }

    /// Creates the directory of the default database, and of the files that belong to a server's. For another path, fails if the directory does not exist.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let beside = self.beside("");
        let Some(parent) = beside.parent().filter(|p| !p.as_os_str().is_empty()) else {
            return Ok(());
        };
        if self.default || self.file().is_none() {
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

        let path = self.file()?;
        let meta = std::fs::metadata(path).ok()?;
        let mode = meta.mode() & 0o777;
        (meta.is_file() && mode & 0o077 != 0).then(|| {
            let path = path.to_string_lossy();
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

    /// Returns the size of a database file including its write-ahead log, in bytes. Returns 0 for a server.
    pub(crate) fn bytes(&self) -> u64 {
        let paths = self
            .file()
            .map(|path| [path.to_owned(), self.beside("-wal")]);
        let metas = paths.into_iter().flatten();
        metas
            .filter_map(|path| std::fs::metadata(path).ok())
            .map(|meta| meta.len())
            .sum()
    }
}

fn environment(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Returns a location, with the password of `other` if both are otherwise the same URL.
pub(crate) fn with_password(store: String, other: Option<String>) -> String {
    #[cfg(feature = "postgres")]
    if let Some(other) = other
        && matches!(parse(&other), Ok(Location::Server(_)))
        && without_password(&other) == store
    {
        return other;
    }
    #[cfg(not(feature = "postgres"))]
    drop(other);
    store
}

/// Parameters of a URL that are not secret. Others are a password, or mistyped names of one.
#[cfg(feature = "postgres")]
const PARAMETERS: [&str; 19] = [
    "schema",
    "partitions",
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "application_name",
    "options",
];

/// Returns a URL without its password, also if the password has characters that the URL should have escaped. Parameters
/// that are not known are left out.
#[cfg(feature = "postgres")]
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (user, place) = match before.rsplit_once('@') {
        Some((user, place)) => (user.split(':').next(), place),
        None => (None, before),
    };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = match host.rsplit_once(':') {
        // Not an address in brackets.
        Some((name, port)) if !port.ends_with(']') && port.parse::<u16>().is_err() => name,
        _ => host,
    };
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let is_open = |pair: &&str| {
        let name = pair.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| PARAMETERS.contains(&name) || name.starts_with("options["))
    };
    let query: Vec<&str> = query.split('&').filter(is_open).collect();
    match query.is_empty() {
        true => format!("{scheme}://{user}{host}{path}"),
        false => format!("{scheme}://{user}{host}{path}?{}", query.join("&")),
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

fn parse(store: &str) -> Result<Location, Failure> {
    let usage = |text: String| {
        Failure::new(Kind::Usage, text).hint(
            "give --store sqlite:PATH, postgres://…, or just a path; without --store it is the default database",
        )
    };
    // A path would be repeated in errors, with its password.
    let begins = |scheme: &str| {
        let begin = store.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    if begins("postgres") && !store.contains("://") && store.contains(':') {
        return Err(usage("the address of a server has another form".to_owned()));
    }
    let path = match store.strip_prefix("sqlite:") {
        Some(path) => path.strip_prefix("//").unwrap_or(path),
        None => match store.split_once("://") {
            #[cfg(feature = "postgres")]
            Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => {
                return Ok(Location::Server(store.to_owned()));
            }
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
    if store.starts_with("sqlite:") && path.contains("://") {
        return Err(usage(
            "sqlite: is followed by the address of a server".to_owned(),
        ));
    }
    if path.is_empty() || path == ":memory:" {
        return Err(usage(format!("--store {store} does not name a file")));
    }
    Ok(Location::File(PathBuf::from(path)))
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
            assert_eq!(parse(store).unwrap(), Location::File(path.into()));
        }
        for store in [
            "",
            "mysql://h/d",
            "postgres://",
            "sqlite:",
            "sqlite::memory:",
        ] {
            assert_eq!(parse(store).unwrap_err().kind, Kind::Usage, "{store}");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_server_is_named_without_its_password() {
        let place =
            Place::find(Some("postgres://me:se:cret@h:1/d?schema=x&password=cret")).unwrap();
        assert_eq!(place.name(), "postgres://me@h:1/d?schema=x");
        assert!(place.absolute().contains("cret") && place.exists() && place.bytes() == 0);
        let path = place.beside("-hook.log");
        assert!(!path.to_string_lossy().contains("cret"), "{path:?}");
        for (url, open) in [
            ("postgresql:///d", "postgresql:///d"),
            ("postgres://h:5432/d", "postgres://h:5432/d"),
            ("postgres://[::1]/d", "postgres://[::1]/d"),
            ("postgres://me@h/d", "postgres://me@h/d"),
            ("postgres://me:cr/et@h/d", "postgres://me@h/d"),
            ("postgres://me:cr@et@h/d", "postgres://me@h/d"),
            ("postgres://me:cr?et@h/d", "postgres://me"),
            ("postgres://h/d?sslpassword=cret", "postgres://h/d"),
            (
                "postgres://h/d?cret&sslmode=require&Password=cret",
                "postgres://h/d?sslmode=require",
            ),
            (
                "postgres://h/d?options[search_path]=x",
                "postgres://h/d?options[search_path]=x",
            ),
        ] {
            assert_eq!(Place::find(Some(url)).unwrap().name(), open, "{url}");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn an_address_takes_its_password_from_the_environment() {
        let whole = "postgres://me:cret@h/d?sslmode=require";
        for (store, completed) in [
            ("postgres://me@h/d?sslmode=require", whole),
            ("postgres://me@h/other", "postgres://me@h/other"),
            (
                "postgres://me:own@h/d?sslmode=require",
                "postgres://me:own@h/d?sslmode=require",
            ),
            ("a.db", "a.db"),
        ] {
            let found = with_password(store.to_owned(), Some(whole.to_owned()));
            assert_eq!(found, completed);
        }
    }

    #[test]
    fn a_mistyped_address_is_not_repeated() {
        for store in [
            "postgres:me:cret@h/d",
            "postgresql:me:cret@h/d",
            "postgres:/me:cret@h/d",
            "postgres//me:cret@h/d",
            "Postgres:me:cret@h/d",
            "postgre://me:cret@h/d",
            "sqlite:postgres://me:cret@h/d",
        ] {
            let failure = parse(store).unwrap_err();
            let told = format!("{failure:?}");
            assert!(
                failure.kind == Kind::Usage && !told.contains("cret"),
                "{told}"
            );
        }
        assert!(parse("postgres.db").is_ok() && parse("postgres/a.db").is_ok());
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
