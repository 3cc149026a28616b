//! `import`: imports transcripts as sessions.

mod discovery;
mod reading;
mod report;
mod warnings;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use agent_memory::transcripts::Transcript;

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
