//! Every transcript of the corpus is read, and nothing of it is lost.

use message_formats::{ErrorKind, Origin, ReadOptions, read, read_file};
use outside_checks::raw_check::{Source, check};

use crate::support::{corpus, export};

#[test]
fn every_transcript_is_read_losslessly() {
    for folder in ["claude-code", "pi"] {
        for path in corpus(folder) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let transcript = read_file(&path, &ReadOptions::default()).unwrap();
            assert_eq!(transcript.format, folder, "{name}");
            assert!(
                !transcript.report.lost_any(),
                "{name}: {:?}",
                transcript.report.skipped
            );
            assert_eq!(transcript.sessions[0].origin, Origin::Root);

            let exports: Vec<String> = transcript.sessions.iter().map(export).collect();
            let bytes = std::fs::read(&path).unwrap();
            let source = Source::parse(&bytes);
            let checked = check(&source, &exports).unwrap_or_else(|e| panic!("{name}: {e}"));
            println!(
                "{name}: {} sessions, {checked:?}, skipped {:?}",
                transcript.sessions.len(),
                transcript.report.skipped
            );
            // What was exported reads back the same.
            for (session, text) in transcript.sessions.iter().zip(&exports) {
                let options = ReadOptions::default().with_session(session.key.as_str());
                let again = read(text.as_bytes(), &options).unwrap();
                assert_eq!(again.format, "jsonl", "{name}");
                assert_eq!(again.sessions[0].key, session.key, "{name}");
                assert!(again.sessions[0].messages == session.messages, "{name}");
            }
        }
    }
}

#[test]
fn a_cut_transcript_is_the_beginning_of_the_whole() {
    for path in corpus("claude-code").into_iter().chain(corpus("pi")) {
        let bytes = std::fs::read(&path).unwrap();
        let whole = read(bytes.as_slice(), &ReadOptions::default()).unwrap();
        for nth in 1..8 {
            let cut = bytes.len() / 8 * nth;
            let Ok(part) = read(&bytes[..cut], &ReadOptions::default()) else {
                continue;
            };
            for session in &part.sessions {
                let same = whole
                    .sessions
                    .iter()
                    .find(|s| s.key == session.key)
                    .unwrap();
                assert_eq!(same.origin, session.origin);
                assert!(
                    same.messages.starts_with(&session.messages),
                    "{} at {cut}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn other_formats_are_refused() {
    for folder in ["text"] {
        for path in corpus(folder) {
            let error = read_file(&path, &ReadOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{}", path.display());
            assert!(error.to_string().contains(&*path.to_string_lossy()));
        }
    }
}
