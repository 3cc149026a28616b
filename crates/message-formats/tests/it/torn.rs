//! Lines that are not one record, in every format of lines.

use memory_model::EntryKind;
use message_formats::{SessionLog, Transcript};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::growing::sources;
use crate::support::{agents, read_bytes};

/// Returns the lines of a source that are whole records.
fn lines(source: &[u8]) -> Vec<&[u8]> {
    let lines = source.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).collect()
}

fn file(lines: &[&[u8]]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [line, b"\n".as_slice()].concat())
        .collect()
}

fn sessions(source: &[u8]) -> Vec<SessionLog> {
    read_bytes(source).unwrap().sessions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn half_a_record_costs_only_itself(source in any::<Index>(), line in any::<Index>(), cut in any::<Index>()) {
        let sources = sources();
        let source = source.get(&sources);
        let lines = lines(source);
        // A format is known by its first lines.
        let at = 2 + line.index(lines.len() - 3);
        let cut = 1 + cut.index(lines[at].len() - 1);
        let half = &lines[at][..cut];
        let without = [&lines[..at], &lines[at + 1..]].concat();
        let torn = [half, lines[at + 1]].concat();
        let torn = [&lines[..at], &[&torn], &lines[at + 2..]].concat();
        let found = read_bytes(&file(&torn)).unwrap();
        prop_assert!(found.sessions == sessions(&file(&without)), "{}", String::from_utf8_lossy(half));
        let named: Vec<u64> = found.report.warnings.iter().map(|warning| warning.line).collect();
        prop_assert!(found.report.lost_any() && named.contains(&(at as u64 + 1)));
    }

    #[test]
    fn records_without_a_line_break_are_all_read(source in any::<Index>(), line in any::<Index>()) {
        let sources = sources();
        let source = source.get(&sources);
        let lines = lines(source);
        let at = line.index(lines.len() - 1);
        let joined = [lines[at], lines[at + 1]].concat();
        let joined = [&lines[..at], &[&joined], &lines[at + 2..]].concat();
        let found = read_bytes(&file(&joined)).unwrap();
        prop_assert!(found.sessions == sessions(&file(&lines)));
    }
}

/// Returns what was said in each session. Notes of the program before a session's first line may be with another.
fn told(transcript: &Transcript) -> Vec<(String, bool, Vec<String>)> {
    let told = transcript.sessions.iter().map(|log| {
        let said = log.messages.iter();
        let said = said.filter(|one| one.kind == EntryKind::Message);
        let said = said.map(|one| format!("{:?} {}", one.external_id, one.text()));
        (log.key.to_string(), log.in_use, said.collect())
    });
    told.collect()
}

#[test]
fn several_sessions_in_one_file_stay_several() {
    let files = agents();
    for folder in ["claude-code", "gemini-cli", "pi", "qwen-code"] {
        let is_of = |name: &str| name.starts_with(folder) && !name.contains("subagents");
        let file = files.iter().find(|(name, _)| is_of(name)).unwrap();
        let one = std::str::from_utf8(&file.1).unwrap();
        let first = read_bytes(one.as_bytes()).unwrap();
        // The same records, but for the session's name.
        let two = one.replace(first.sessions[0].key.as_str(), "another");
        let second = read_bytes(two.as_bytes()).unwrap();
        let told_apart = [told(&first), told(&second)].concat();
        for source in [one.to_owned() + &two, one.to_owned() + &two + one] {
            let both = read_bytes(source.as_bytes()).unwrap();
            assert_eq!(told(&both), told_apart, "{folder}");
        }
    }
}
