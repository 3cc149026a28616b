//! `import`: imports transcripts as sessions.

mod discovery;
mod reading;
mod report;
mod warnings;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use agent_memory::Memory;
use agent_memory::transcripts::{ReadOptions, Transcript};

use self::discovery::{files_of, homes, transcripts_of_home};
pub(crate) use self::reading::{formats, options, options_in, read};
use self::reading::{is_regular, is_standard_input, name};
pub(crate) use self::report::ImportedFiles;
use self::report::SkippedFile;
use crate::app::App;
use crate::args::Import;
use crate::error::{Failure, Kind};
use crate::kept::KeptTranscripts;
use crate::output::{count, number, one_line};
use crate::progress::Progress;

/// A file to import.
struct Source {
    path: PathBuf,
    /// Whether the command line names the file, which must then be a transcript.
    is_named: bool,
    /// The transcript, if it was read already and is kept.
    kept: Option<Transcript>,
}

pub(crate) async fn run(app: &mut App, args: &Import) -> anyhow::Result<()> {
    let options = options(app, args.session.as_deref());
    let mut answer = ImportedFiles::default();
    let mut sources = sources(args, &mut answer.skipped_files)?;
    read_named(&mut sources, &options)?;
    let progress = Arc::new(Progress::new(app.json));
    let memory = import(app, args, sources, &options, &progress, &mut answer).await?;
    progress.done();
    let Some(memory) = memory else {
        return Err(nothing_found(&answer).into());
    };
    memory.close().await?;
    if app.json {
        app.out.json(&answer)?;
    } else {
        print(app, &answer)?;
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

/// Returns the files to import.
fn sources(args: &Import, skipped: &mut Vec<SkippedFile>) -> Result<Vec<Source>, Failure> {
    let formats = formats();
    let paths = match args.all {
        true => homes(&formats)?,
        false => args.paths.clone(),
    };
    let source = |path, is_named| Source {
        path,
        is_named,
        kept: None,
    };
    let mut sources = Vec::new();
    for path in paths
        .iter()
        .flat_map(|path| transcripts_of_home(&formats, path))
    {
        if path.is_dir() && !is_standard_input(&path) {
            let files = files_of(&path, &formats, skipped);
            sources.extend(files.into_iter().map(|file| source(file, false)));
        } else {
            sources.push(source(path, !args.all));
        }
    }
    Ok(sources)
}

/// Reads the named files. If one of them is not a transcript, no session is written, so all of them are read first. To
/// save memory, only those that cannot be read again (pipes) are kept until they are imported.
fn read_named(sources: &mut [Source], options: &ReadOptions) -> Result<(), Failure> {
    let files = sources.len();
    for source in sources.iter_mut().filter(|source| source.is_named) {
        let transcript = read(&source.path, options)?;
        let is_kept = files == 1 || !is_regular(&source.path);
        source.kept = is_kept.then_some(transcript);
    }
    Ok(())
}

/// Imports files in order. Returns the memory; `None` if no file could be read.
async fn import(
    app: &App,
    args: &Import,
    sources: Vec<Source>,
    options: &ReadOptions,
    progress: &Arc<Progress>,
    answer: &mut ImportedFiles,
) -> anyhow::Result<Option<Memory>> {
    let files = sources.len();
    let mut memory = None;
    let mut waiting = sources.into_iter();
    // The next files are read in parallel while one is imported.
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let mut reading = VecDeque::new();
    for number in 1.. {
        while reading.len() <= most
            && let Some(source) = waiting.next()
        {
            let options = options.clone();
            let path = source.path.clone();
            let read = move || match source.kept {
                Some(transcript) => Ok(transcript),
                None => read(&source.path, &options),
            };
            reading.push_back((path, source.is_named, tokio::task::spawn_blocking(read)));
        }
        let Some((path, is_named, transcript)) = reading.pop_front() else {
            break;
        };
        let file = name(&path);
        progress.say(&format!("reading {file} ({number} of {files})"));
        let transcript = match transcript.await? {
            Ok(transcript) => transcript,
            Err(failure) if is_named => return Err(failure.into()),
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
            None => memory.insert(app.open_for_writing(progress, |builder| builder).await?),
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
    Ok(memory)
}

/// Returns the error for an import without a transcript.
fn nothing_found(answer: &ImportedFiles) -> Failure {
    // If no file could be read, the first failure is the error.
    let mut skipped = answer.skipped_files.iter();
    if let Some(first) = skipped.find(|skipped| skipped.kind == Kind::Unreadable) {
        return Failure::new(Kind::Unreadable, first.reason.clone())
            .hint("check that you may read it");
    }
    let text = format!(
        "found no transcript; {} read",
        count(answer.skipped_files.len() as u64, "file was", "files were")
    );
    Failure::new(Kind::Empty, text).hint(
        "give a transcript of a coding agent (docs/cli.md lists them), or a file of JSON lines",
    )
}

fn print(app: &mut App, answer: &ImportedFiles) -> anyhow::Result<()> {
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
    Ok(())
}
