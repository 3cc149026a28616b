//! Reads transcripts: of files, and of standard input.

use std::path::{Path, PathBuf};

use agent_memory::SessionKey;
use agent_memory::model::Zone;
use agent_memory::transcripts::{
    Formats, OpenCodeDatabase, ReadOptions, Transcript, take_reserved,
};

use crate::app::App;
use crate::error::{Failure, Kind, from_format};
use crate::output::note;

/// Bytes of the lines of one transcript with messages in memory. The other messages go to a temporary file.
const KEPT: usize = 8 << 20;

/// Returns whether a path is a regular file, which can be read twice. A pipe can be read only once.
pub(super) fn is_regular(path: &Path) -> bool {
    !is_standard_input(path) && path.metadata().is_ok_and(|meta| meta.is_file())
}

/// Returns whether a path stands for standard input: `-`. A file of this name is `./-`.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns a path for messages.
pub(super) fn name(path: &Path) -> String {
    match is_standard_input(path) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// Returns the options for reading transcripts into the app's database. Messages of a large one go to a temporary file
/// next to the database. `session` is the key for lines that name no session.
pub(crate) fn options(app: &App, session: Option<&str>) -> ReadOptions {
    let path = app.place().ok();
    let path = path.and_then(|place| std::path::absolute(place.file()?).ok());
    let folder = path.as_deref().and_then(Path::parent);
    let folder = folder.filter(|folder| folder.is_dir());
    let folder = folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let mut options = options_in(folder);
    options.session = session.map(str::to_owned);
    options
}

/// Returns the options for reading transcripts. Messages of a large one go to a temporary file in a folder.
pub(crate) fn options_in(folder: PathBuf) -> ReadOptions {
    ReadOptions::default()
        .with_overflow(KEPT, folder)
        .with_zone(zone(std::env::var("TZ").ok().as_deref()))
}

/// Maximum length of a file with a time zone, in bytes.
const ZONE_BYTES: u64 = 1 << 20;

/// Returns the time zone that the variable `TZ` names or describes; without it, the system's. UTC if neither is known.
fn zone(variable: Option<&str>) -> Zone {
    let of_file = |path: &Path| {
        let is_zone = path
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() <= ZONE_BYTES);
        let content = is_zone.then(|| std::fs::read(path).ok())??;
        Zone::from_tzif(&content)
    };
    let zone = match variable.map(|name| name.trim_start_matches(':')) {
        None => of_file(Path::new("/etc/localtime")),
        Some("") => None,
        Some(name) => {
            let file = Path::new("/usr/share/zoneinfo").join(name);
            of_file(&file).or_else(|| Zone::from_posix(name))
        }
    };
    zone.unwrap_or_default()
}

/// Reads one transcript.
pub(crate) fn read(path: &Path, options: &ReadOptions) -> Result<Transcript, Failure> {
    let name = name(path);
    let transcript = match is_standard_input(path) {
        true => {
            let options = options.clone().with_name(&name);
            formats().read(std::io::stdin().lock(), &options)
        }
        false => formats().read_path(path, options),
    };
    let mut transcript = transcript.map_err(|error| from_format(&name, &error))?;
    for key in take_reserved(&mut transcript) {
        let begin = SessionKey::RESERVED;
        let text =
            format!("the session {key}, because keys that begin with {begin} are the memory's own");
        if transcript.sessions.is_empty() {
            let text = format!("{name} has nothing but {text}");
            return Err(Failure::new(Kind::Invalid, text).hint("give it another name"));
        }
        note(&format!("warning: {name} has {text}: it is skipped"));
        transcript
            .report
            .skipped
            .insert(format!("session {key}"), 1);
    }
    if transcript.sessions.is_empty() {
        let text = format!("{name} holds no message that says which session it belongs to");
        return Err(Failure::new(Kind::Empty, text).hint("try again when it has grown"));
    }
    Ok(transcript)
}

/// Returns the formats that the program reads.
pub(crate) fn formats() -> Formats {
    Formats::default().with(OpenCodeDatabase::new())
}
