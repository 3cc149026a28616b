//! `import`: imports transcripts as sessions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_memory::model::{EntryKind, Zone};
use agent_memory::transcripts::{
    AgentHome, Formats, OpenCodeDatabase, ReadOptions, SessionLog, Transcript, take_reserved,
};
use agent_memory::{
    Memory, Message, Role, SessionKey,
    transcripts::{ImportReport, SessionImport, SummaryImport},
};
use serde::Serialize;

use crate::app::App;
use crate::args::Import;
use crate::error::{Failure, Kind, from_format};
use crate::hook::answer::WORD_FOR_WORD;
use crate::kept::KeptTranscripts;
use crate::output::{clip, count, note, number, one_line, table};
use crate::progress::Progress;

/// Maximum number of sessions that the table in text output lists. The table of more sessions has one row for each format.
const LISTED: usize = 50;

/// Bytes of the lines of one transcript with messages in memory. The other messages go to a temporary file.
const KEPT: usize = 8 << 20;

/// Maximum number of skipped files in text output, and of warnings about one file's lines in any output.
const NAMED: usize = 20;

/// Result of an import in the form of `--json`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ImportedFiles {
    pub(crate) sessions: Vec<ImportedSession>,
    /// Files that were skipped in directories.
    pub(crate) skipped_files: Vec<SkippedFile>,
    /// Reports of the import of summaries from transcripts, one for each session. Empty without `--summaries`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) summaries: Vec<SummaryImport>,
}

/// Report of the import of one session of a file.
#[derive(Debug, Serialize)]
pub(crate) struct ImportedSession {
    file: String,
    #[serde(flatten)]
    session: SessionImport,
    /// Numbers of skipped lines in the whole file, by kind. Only the first session of a file has them.
    skipped: BTreeMap<String, u64>,
    /// Whether the session is [`ImportReport::main`], the session that the file's agent continues.
    in_use: bool,
}

/// A file of a directory that was skipped, with the reason.
#[derive(Debug, Serialize)]
pub(crate) struct SkippedFile {
    file: String,
    kind: Kind,
    reason: String,
}

impl ImportedFiles {
    /// Imports a transcript, and returns the key of its main session. Prints warnings on stderr for lines that look
    /// like parts of a conversation but did not become messages.
    pub(crate) async fn take(
        &mut self,
        memory: &Memory,
        file: &str,
        transcript: &Transcript,
    ) -> anyhow::Result<Option<SessionKey>> {
        let imported = memory.import(transcript).await?;
        for warning in warnings(file, transcript) {
            note(&warning);
        }
        let main = imported.main.clone();
        self.add(file, imported);
        Ok(main)
    }

    fn add(&mut self, file: &str, imported: ImportReport) {
        let mut skipped = Some(imported.skipped);
        for session in imported.sessions {
            if session.archived && session.inserted > 0 {
                let name = one_line(session.session.as_str());
                note(&format!(
                    "warning: the session {name} is archived, and {} of {file} were added to it: `set {name} --unarchive` \
                     shows it again",
                    count(session.inserted, "entry", "entries"),
                ));
            }
            if session.conflicts > 0 {
                note(&format!(
                    "warning: {} of {file} refused by the session {}, which has another entry with the same id: what is stored \
                     stays as it is",
                    count(session.conflicts, "entry", "entries"),
                    one_line(session.session.as_str())
                ));
            }
            let in_use = imported.main.as_ref() == Some(&session.session);
            self.sessions.push(ImportedSession {
                file: file.to_owned(),
                session,
                skipped: skipped.take().unwrap_or_default(),
                in_use,
            });
        }
    }

    /// Returns a text about skipped lines and files; empty if none were skipped.
    pub(crate) fn losses(&self) -> String {
        let mut lines = Vec::new();
        let mut skipped: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for row in &self.sessions {
            let of = match self.is_listed() {
                true => row.file.as_str(),
                false => row.session.format.as_str(),
            };
            for (kind, n) in &row.skipped {
                *skipped.entry(of).or_default().entry(kind).or_default() += n;
            }
        }
        for (of, kinds) in skipped {
            let kinds = kinds.iter();
            let kinds: Vec<String> = kinds
                .map(|(kind, n)| format!("{} {kind}", number(*n)))
                .collect();
            lines.push(format!("skipped lines of {of}: {}", kinds.join(", ")));
        }
        for row in &self.sessions {
            if row.session.erased > 0 {
                lines.push(format!(
                    "erased before: {} of {}, which stay erased",
                    count(row.session.erased, "entry", "entries"),
                    row.session.session
                ));
            }
        }
        let known = self.sessions.iter().flat_map(|row| {
            let runs = row.session.known.iter();
            runs.map(move |run| (&*row.file, &row.session.session, run))
        });
        let all = known.clone().count();
        lines.extend(known.take(NAMED).map(|(file, session, run)| {
            let one = run.count == 1;
            let (record, seq) = (run.record, u64::from(run.seq.0));
            let last = run.count - 1;
            format!(
                "not stored again: {} of {file} {} {} of {session}",
                positions("message", record, record + last),
                if one { "equals" } else { "equal" },
                positions("entry", seq, seq + last)
            )
        }));
        if let Some(more @ 1..) = all.checked_sub(NAMED) {
            lines.push(format!("not stored again: {more} more; --json lists all"));
        }
        let files = self.skipped_files.iter();
        lines.extend(
            files
                .take(NAMED)
                .map(|skipped| format!("skipped file: {}", skipped.reason)),
        );
        if self.skipped_files.len() > NAMED {
            let more = self.skipped_files.len() - NAMED;
            lines.push(format!("skipped files: {more} more; --json lists all"));
        }
        let ends = |line: &String| format!("{}\n", one_line(line));
        lines.iter().map(ends).collect()
    }

    fn lost(&self) -> u64 {
        let lines = self.sessions.iter();
        let lines = lines.map(|row| row.skipped.values().sum::<u64>() + row.session.conflicts);
        lines.sum::<u64>() + self.skipped_files.len() as u64
    }

    fn is_listed(&self) -> bool {
        self.sessions.len() <= LISTED
    }

    /// Returns the sums over the sessions of each format as a table in text form.
    fn table_of_formats(&self) -> String {
        let header = [
            "format", "files", "sessions", "messages", "notes", "new", "known",
        ];
        let mut formats: BTreeMap<&str, (BTreeSet<&str>, [u64; 5])> = BTreeMap::new();
        for row in &self.sessions {
            let one = &row.session;
            let (files, sums) = formats.entry(&one.format).or_default();
            files.insert(&row.file);
            let known = one.duplicates.saturating_sub(one.erased);
            let added = [1, one.messages, one.notes, one.inserted, known];
            sums.iter_mut().zip(added).for_each(|(sum, n)| *sum += n);
        }
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for (format, (files, sums)) in formats {
            let mut row = vec![format.to_owned(), number(files.len() as u64)];
            row.extend(sums.map(number));
            rows.push(row);
        }
        table(&rows)
    }

    /// Returns the sessions as a table in text form, or the sums for each format if there are many.
    pub(crate) fn table(&self) -> String {
        if !self.is_listed() {
            return self.table_of_formats();
        }
        let header = ["session", "format", "messages", "notes", "new", "known"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        rows.extend(
            self.sessions
                .iter()
                .map(|ImportedSession { session: row, .. }| {
                    vec![
                        clip(row.session.as_str(), 60).into_owned(),
                        row.format.clone(),
                        number(row.messages),
                        number(row.notes),
                        number(row.inserted),
                        number(row.duplicates.saturating_sub(row.erased)),
                    ]
                }),
        );
        table(&rows)
    }
}

/// Returns the words for a range of positions: `entry 3`, or `entries 3-5`.
fn positions(one: &str, first: u64, last: u64) -> String {
    let many = match one.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{one}s"),
    };
    match first == last {
        true => format!("{one} {first}"),
        false => format!("{many} {first}-{last}"),
    }
}

/// Returns warnings about the lines of a file that did not become messages.
fn warnings(file: &str, transcript: &Transcript) -> Vec<String> {
    let warnings = transcript.report.warnings.iter();
    let mut lines: Vec<String> = warnings
        .take(NAMED)
        .map(|warning| {
            let fate = match warning.kind.as_str() {
                "too_long" => {
                    let limit = ReadOptions::default().max_line_bytes >> 20;
                    format!("is longer than {limit} MiB and was skipped")
                }
                "incomplete" => {
                    "is incomplete and was skipped: import the file again when it is complete".to_owned()
                }
                "unknown_role" => "has none of the roles system, developer, user, assistant and \
                                   tool: it is stored as a note, which is never sent to a model"
                    .to_owned(),
                "queued" => {
                    "has text that was typed while the agent was busy, and no line sends it yet: it is skipped until one does"
                        .to_owned()
                }
                "missing_base" => {
                    "goes on from another rollout, whose file was not found: only its own part is read. Import it from \
                     Codex' home, or with the other file next to it"
                        .to_owned()
                }
                kind => format!("was skipped: {kind}"),
            };
            format!("warning: line {} of {file} {fate}", number(warning.line))
        })
        .collect();
    if let Some(more @ 1..) = transcript.report.warnings.len().checked_sub(NAMED) {
        lines.push(format!("warning: {more} more lines of {file}"));
    }
    let hidden: u64 = transcript.sessions.iter().map(hidden).sum();
    if hidden > 0 {
        lines.push(format!(
            "warning: {file} has {} of the user between the markers of agent-memory, which agent-memory may not have \
             written: no search and no context has them",
            count(hidden, "message", "messages"),
        ));
    }
    lines
}

/// Returns the number of the user's messages that are notes because they are between the markers of agent-memory, in a
/// session in which none has the sentence that begins each of its texts about a session.
fn hidden(log: &SessionLog) -> u64 {
    let is_marked = |message: &&Message| {
        let is_note = message.kind == EntryKind::Note && message.role == Role::User;
        is_note && message.text().trim_start().starts_with("<agent-memory>")
    };
    let marked: Vec<&Message> = log.messages.iter().filter(is_marked).collect();
    match marked
        .iter()
        .any(|message| message.text().contains(WORD_FOR_WORD))
    {
        true => 0,
        false => marked.len() as u64,
    }
}

/// Returns whether a path is a regular file, which can be read twice. A pipe can be read only once.
fn is_regular(path: &Path) -> bool {
    !is_standard_input(path) && path.metadata().is_ok_and(|meta| meta.is_file())
}

/// Returns whether a path stands for standard input: `-`. A file of this name is `./-`.
fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns a path for messages.
fn name(path: &Path) -> String {
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

pub(crate) async fn run(app: &mut App, args: &Import) -> anyhow::Result<()> {
    let options = options(app, args.session.as_deref());
    let mut answer = ImportedFiles::default();
    let mut sources: Vec<(PathBuf, bool)> = Vec::new();
    let formats = formats();
    let paths = match args.all {
        true => homes(&formats)?,
        false => args.paths.clone(),
    };
    for path in paths
        .iter()
        .flat_map(|path| transcripts_of_home(&formats, path))
    {
        if path.is_dir() && !is_standard_input(&path) {
            let files = files_of(&path, &formats, &mut answer.skipped_files);
            sources.extend(files.into_iter().map(|file| (file, false)));
        } else {
            sources.push((path, !args.all));
        }
    }
    let files = sources.len();
    // If one of the named files is not a transcript, no session is written, so all of them are read first. To save
    // memory, only those that cannot be read again (pipes) are kept until they are imported.
    let mut kept: VecDeque<Option<Transcript>> = VecDeque::new();
    for (path, named) in &sources {
        let transcript = match *named {
            true => Some(read(path, &options)?),
            false => None,
        };
        kept.push_back(transcript.filter(|_| files == 1 || !is_regular(path)));
    }
    let progress = Arc::new(Progress::new(app.json));
    let mut memory = None;
    let mut waiting = sources.into_iter().zip(kept);
    // The next files are read in parallel while one is imported.
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let mut reading = VecDeque::new();
    for number in 1.. {
        while reading.len() <= most
            && let Some(((path, named), kept)) = waiting.next()
        {
            let options = options.clone();
            let source = path.clone();
            let read = move || match kept {
                Some(transcript) => Ok(transcript),
                None => read(&source, &options),
            };
            reading.push_back((path, named, tokio::task::spawn_blocking(read)));
        }
        let Some((path, named, transcript)) = reading.pop_front() else {
            break;
        };
        let file = name(&path);
        progress.say(&format!("reading {file} ({number} of {files})"));
        let transcript = match transcript.await? {
            Ok(transcript) => transcript,
            Err(failure) if named => return Err(failure.into()),
            Err(failure) => {
                answer.skipped_files.push(SkippedFile {
                    file,
                    kind: failure.kind,
                    reason: failure.message,
                });
                continue;
            }
        };
        let memory = match &memory {
            Some(memory) => memory,
            None => memory.insert(app.open_for_writing(&progress, |builder| builder).await?),
        };
        progress.say(&format!("importing {file} ({number} of {files})"));
        let main = answer.take(memory, &file, &transcript).await?;
        if args.keep_transcripts
            && is_regular(&path)
            && let Some(key) = &main
        {
            let session = memory.get_session(key.clone()).await?;
            KeptTranscripts::of(app)?.keep(&session, &path).await?;
        }
        if args.summaries {
            answer
                .summaries
                .extend(memory.import_summaries(&transcript).await?);
        }
    }
    progress.done();
    let Some(memory) = memory else {
        // If no file could be read, the first failure is the error.
        let mut skipped = answer.skipped_files.iter();
        if let Some(first) = skipped.find(|skipped| skipped.kind == Kind::Unreadable) {
            return Err(Failure::new(Kind::Unreadable, first.reason.clone())
                .hint("check that you may read it")
                .into());
        }
        let text = format!(
            "found no transcript; {} read",
            count(answer.skipped_files.len() as u64, "file was", "files were")
        );
        return Err(Failure::new(Kind::Empty, text)
            .hint("give a transcript of a coding agent (docs/cli.md lists them), or a file of JSON lines")
            .into());
    };
    memory.close().await?;
    if app.json {
        app.out.json(&answer)?;
    } else {
        app.out.text(&answer.table())?;
        app.out.text(&answer.losses())?;
        for one in &answer.summaries {
            let published = count(one.published, "summary", "summaries");
            app.out.line(&format!(
                "{}: {published} published in the view `handoff`, {} passed over",
                one_line(one.session.as_str()),
                number(one.passed_over)
            ))?;
        }
        if let Some(first) = answer.sessions.first() {
            let command = app.command(&["compact"], &[first.session.session.as_str()]);
            app.out.line(&format!("compact one: {command}"))?;
        }
    }
    match answer.lost() {
        lost if lost > 0 && args.strict => Err(Failure::new(
            Kind::Skipped,
            format!(
                "{} skipped",
                count(lost, "line or file was", "lines or files were")
            ),
        )
        .hint("everything else was imported; omit --strict to accept this")
        .into()),
        _ => Ok(()),
    }
}

/// Returns the formats that the program reads.
pub(crate) fn formats() -> Formats {
    Formats::default().with(OpenCodeDatabase::new())
}

/// Returns the homes of agents that exist.
fn homes(formats: &Formats) -> Result<Vec<PathBuf>, Failure> {
    let user = std::env::home_dir().unwrap_or_default();
    let all = formats
        .homes()
        .map(|home| named_by_variable(&home).unwrap_or_else(|| user.join(home.folder)));
    let found: Vec<PathBuf> = all.filter(|path| path.is_dir()).collect();
    match found.is_empty() {
        true => Err(
            Failure::new(Kind::Empty, "found no home of an agent".to_owned())
                .hint("give the directory with the transcripts"),
        ),
        false => Ok(found),
    }
}

fn named_by_variable(home: &AgentHome) -> Option<PathBuf> {
    let named = Some(home.variable)
        .filter(|name| !name.is_empty())
        .and_then(std::env::var_os);
    named.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the parts of an agent's home that have transcripts. Any other path is returned as it is.
fn transcripts_of_home(formats: &Formats, path: &Path) -> Vec<PathBuf> {
    let is_home = |home: &AgentHome| {
        named_by_variable(home).is_some_and(|named| named == path)
            || path
                .file_name()
                .is_some_and(|name| Path::new(home.folder).file_name() == Some(name))
    };
    let homes = formats.homes().filter(is_home);
    let parts = homes.flat_map(|home| home.transcripts.iter().map(|part| path.join(part)));
    let parts: Vec<PathBuf> = parts.filter(|part| part.exists()).collect();
    match parts.is_empty() {
        true => vec![path.to_path_buf()],
        false => parts,
    }
}

/// Returns all files of a directory and its subdirectories that may be transcripts. Files come before the files of subdirectories, and
/// sub-agents' files come last, so that a parent is imported before its children.
fn files_of(
    directory: &Path,
    formats: &Formats,
    unreadable: &mut Vec<SkippedFile>,
) -> Vec<PathBuf> {
    let mut skip = |path: &Path, error: &std::io::Error| {
        let file = path.display().to_string();
        unreadable.push(SkippedFile {
            kind: Kind::Unreadable,
            reason: format!("cannot read {file}: {error}"),
            file,
        });
    };
    let mut files = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                skip(&directory, &error);
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    skip(&directory, &error);
                    continue;
                }
            };
            let path = entry.path();
            // A link to a directory is not followed, because it may lead to a parent directory.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(path),
                Ok(kind) if kind.is_file() => files.push(path),
                Ok(_) => match std::fs::metadata(&path) {
                    Ok(meta) if meta.is_file() => files.push(path),
                    Ok(_) => {}
                    Err(error) => skip(&path, &error),
                },
                Err(error) => skip(&path, &error),
            }
        }
    }
    files.retain(|path| !formats.is_companion(path));
    files.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let agent = name.starts_with("agent-");
        (path.components().count(), agent, path.clone())
    });
    files
}
