//! Large transcripts, with messages in a temporary file, are imported as others are.

use std::path::{Path, PathBuf};

use agent_memory::testing::memory;
use message_formats::{ReadOptions, SessionLog, Transcript, read};
use outside_checks::fixtures::{claude_code, pi, plain};

use crate::branched::{Branched, SHAPES};
use crate::corpus::{corpus, transcripts};
use crate::support::dump;

/// Returns all fixtures of JSON lines.
fn fixtures() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "jsonl" => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

pub(crate) fn sources() -> Vec<Vec<u8>> {
    let generated = [claude_code(200), pi(200), plain(200)].map(String::into_bytes);
    let branched = SHAPES.map(|shape| Branched::new(shape, 12).text.into_bytes());
    let mut files = fixtures();
    files.extend(corpus().iter().flat_map(|corpus| transcripts(corpus)));
    assert!(files.len() > 10);
    let files = files.iter().map(|path| std::fs::read(path).unwrap());
    generated.into_iter().chain(branched).chain(files).collect()
}

/// Imports transcripts one after the other. Returns the reports, and all data of the memory.
async fn imported(transcripts: &[Transcript]) -> String {
    let memory = memory().open().await.unwrap();
    let mut reports = Vec::new();
    for transcript in transcripts {
        reports.push(memory.import(transcript).await.unwrap());
    }
    if let Some(transcript) = transcripts.last() {
        let again = memory.import(transcript).await.unwrap();
        assert!(again.sessions.iter().all(|one| one.inserted == 0));
        memory.session_of(transcript).await.unwrap();
    }
    assert_eq!(memory.verify().await.unwrap().violations, []);
    format!("{reports:#?}\n{}", dump(&memory).await)
}

#[tokio::test]
async fn a_transcript_is_stored_the_same_if_memory_keeps_its_beginning_alone() {
    let folder = tempfile::tempdir().unwrap();
    for source in sources() {
        let lines: Vec<&[u8]> = source.split_inclusive(|byte| *byte == b'\n').collect();
        let half = lines.split_at(lines.len() / 2).0.concat();
        let all = |bytes: &[u8]| read(bytes, &ReadOptions::default());
        let whole = all(&source).unwrap();
        // What is stored before: nothing, or the beginning.
        let begins = [(None, source.len() / 3), (all(&half).ok(), 0)];
        for (begin, kept) in begins {
            let options = ReadOptions::default().with_overflow(kept, folder.path());
            let some = read(source.as_slice(), &options).unwrap();
            let is_partial = |log: &SessionLog| log.messages.len() < log.len();
            assert!(some.sessions.iter().any(is_partial));
            let begin: Vec<Transcript> = begin.into_iter().collect();
            let wanted = imported(&[&begin[..], std::slice::from_ref(&whole)].concat()).await;
            let found = imported(&[&begin[..], &[some]].concat()).await;
            let mut lines = wanted.lines().zip(found.lines());
            assert_eq!(lines.find(|(one, other)| one != other), None);
            assert!(wanted == found);
        }
    }
}
