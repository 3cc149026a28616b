//! Sources with messages that do not fit into memory.

use memory_model::EntryKind;
use message_formats::{ErrorKind, ReadOptions, SessionLog, read};

use crate::growing::sources;
use crate::support::{corpus, whole};

#[test]
fn a_source_is_read_the_same_if_memory_keeps_the_beginning_alone() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["claude-code", "codex", "pi"].into_iter().flat_map(corpus);
    let files = files.map(|path| std::fs::read(path).unwrap());
    for source in sources().into_iter().chain(files) {
        let all = read(source.as_slice(), &ReadOptions::default()).unwrap();
        for kept in [0, 5_000, 100_000] {
            let options = ReadOptions::default().with_overflow(kept, folder.path());
            let some = read(source.as_slice(), &options).unwrap();
            assert_eq!(some.report, all.report);
            assert_eq!(some.sessions.len(), all.sessions.len());
            let mut held = 0;
            for (some, all) in some.sessions.iter().zip(&all.sessions) {
                let (whole, bytes) = whole(some);
                held += bytes;
                assert_eq!(some.len(), all.len());
                assert_eq!(some.notes(), all.notes());
                assert!(whole.messages == all.messages);
                let facts = |log: &SessionLog| {
                    let names = (log.key.clone(), log.origin.clone(), log.later_keys.clone());
                    let is = (log.named, log.linked, log.in_use, log.duplicates);
                    (names, is, log.summaries.clone(), log.copied_from.clone())
                };
                assert_eq!(facts(some), facts(all));
            }
            assert!(held <= kept, "{held} of {kept} bytes in memory");
        }
    }
    assert!(folder.path().read_dir().unwrap().next().is_none());
}

#[test]
fn entries_of_another_conversation_of_the_source_are_adopted_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..6)
        .map(|n| {
            format!(
                "{{\"session\":\"{}\",\"role\":\"user\",\"content\":\"{n}\"}}\n",
                n % 2
            )
        })
        .collect();
    let options = ReadOptions::default().with_overflow(120, folder.path());
    let transcript = read(lines.concat().as_bytes(), &options).unwrap();
    let [even, odd] = transcript.sessions.as_slice() else {
        panic!("{} sessions", transcript.sessions.len())
    };
    assert!(even.messages.len() < even.len() && !odd.messages.is_empty());
    let mut all = even.clone();
    for at in 0..odd.len() {
        all.push_entry(odd, at);
    }
    let texts: Vec<String> = whole(&all).0.messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["0", "2", "4", "1", "3", "5"]);
    assert!(all.heads().all(|head| head.kind == EntryKind::Message));
}

#[test]
fn a_folder_without_room_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let options = ReadOptions::default().with_overflow(0, &gone);
    let line = format!(
        "{{\"role\":\"user\",\"content\":\"{}\"}}\n",
        "x".repeat(1 << 18)
    );
    let error = read(line.as_bytes(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains(&gone.display().to_string()),
        "{error}"
    );
}
