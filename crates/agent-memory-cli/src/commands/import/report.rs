//! The result of `import`: the imported sessions, and the skipped lines and files.

use std::collections::{BTreeMap, BTreeSet};

use agent_memory::transcripts::{ImportReport, SessionImport, SummaryImport, Transcript};
use agent_memory::{Memory, SessionKey};
use serde::Serialize;

use super::warnings::{NAMED, warnings};
use crate::error::Kind;
use crate::output::{clip, count, note, number, one_line, table};

/// Maximum number of sessions that the table in text output lists. The table of more sessions has one row for each format.
const LISTED: usize = 50;

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
    pub(super) session: SessionImport,
    /// Numbers of skipped lines in the whole file, by kind. Only the first session of a file has them.
    skipped: BTreeMap<String, u64>,
    /// Whether the session is [`ImportReport::main`], the session that the file's agent continues.
    in_use: bool,
}

/// A file of a directory that was skipped, with the reason.
#[derive(Debug, Serialize)]
pub(crate) struct SkippedFile {
    pub(super) file: String,
    pub(super) kind: Kind,
    pub(super) reason: String,
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

    pub(super) fn lost(&self) -> u64 {
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
