//! Sources that grow while they are read.

use std::io::{BufReader, Read, Write};

use memory_model::Message;
use message_formats::{ReadOptions, Transcript, read, read_file};
use outside_checks::fixtures::{claude_code, pi, plain};
use proptest::prelude::*;

use crate::support::agents;

/// A source that has reached its end several times: after each `stop` (a byte offset) it reports
/// the end once, and has more at the next call.
struct Growing<'a> {
    bytes: &'a [u8],
    at: usize,
    stops: Vec<usize>,
}

impl Read for Growing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let stop = self.stops.first().copied().unwrap_or(self.bytes.len());
        if self.at >= stop && !self.stops.is_empty() {
            self.stops.remove(0);
            return Ok(0);
        }
        let n = buffer.len().min(stop - self.at);
        buffer[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// What a store that appends keeps of several imports, in its order: entries that are there
/// already are not stored again.
fn imported(imports: &[Transcript]) -> Vec<(String, Vec<Message>)> {
    let mut sessions: Vec<(String, Vec<Message>)> = Vec::new();
    for transcript in imports {
        for session in &transcript.sessions {
            let key = session.key.as_str();
            let at = sessions.iter().position(|(known, _)| known == key);
            let at = at.unwrap_or_else(|| {
                sessions.push((key.to_owned(), Vec::new()));
                sessions.len() - 1
            });
            let log = &mut sessions[at].1;
            for message in &session.messages {
                let known = |other: &Message| other.external_id == message.external_id;
                if !log.iter().any(known) {
                    log.push(message.clone());
                }
            }
        }
    }
    sessions
}

pub(crate) fn sources() -> Vec<Vec<u8>> {
    let generated = [claude_code(30), pi(30), plain(30)].map(String::into_bytes);
    let lines = agents()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".jsonl"));
    generated
        .into_iter()
        .chain(lines.map(|(_, bytes)| bytes))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_is_that_of_the_finished_file(
        stops in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        for whole in sources() {
            let mut stops: Vec<usize> = stops.iter().map(|stop| stop.index(whole.len())).collect();
            stops.sort_unstable();
            let options = ReadOptions::default();
            let growing = Growing { bytes: &whole, at: 0, stops };
            let first = read(BufReader::with_capacity(64, growing), &options);
            let finished = read(whole.as_slice(), &options).unwrap();
            let mut imports: Vec<Transcript> = first.into_iter().collect();
            imports.push(finished.clone());
            prop_assert!(imported(&imports) == imported(&[finished]));
        }
    }

    #[test]
    fn another_handle_may_write_between_two_imports(
        stops in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        for whole in sources() {
            let mut stops: Vec<usize> = stops.iter().map(|stop| stop.index(whole.len())).collect();
            stops.sort_unstable();
            stops.push(whole.len());
            let mut file = tempfile::NamedTempFile::new().unwrap();
            let mut imports = Vec::new();
            let mut written = 0;
            for stop in stops {
                file.as_file_mut().write_all(&whole[written..stop]).unwrap();
                written = stop;
                imports.extend(read_file(file.path(), &ReadOptions::default()));
            }
            let finished = read(whole.as_slice(), &ReadOptions::default()).unwrap();
            prop_assert!(imported(&imports) == imported(&[finished]));
        }
    }
}

#[test]
fn nothing_behind_an_unfinished_line_is_read() {
    let whole = b"{\"role\":\"user\",\"content\":\"1\"}\n{\"role\":\"user\",\"content\":\"2\"}\n{\"role\":\"user\",\"content\":\"3\"}\n";
    let texts = |stops: &[usize]| {
        let growing = Growing {
            bytes: whole,
            at: 0,
            stops: stops.to_vec(),
        };
        let transcript = read(BufReader::new(growing), &ReadOptions::default()).unwrap();
        let messages = transcript.sessions[0].messages.iter();
        let texts: Vec<String> = messages.map(Message::text).collect();
        (texts.join(""), transcript.report.skipped)
    };
    let incomplete = [("incomplete".to_owned(), 1)].into();
    let second = whole.len() / 3 + 9;
    assert_eq!(texts(&[second]), ("1".to_owned(), incomplete));
    // The last line lacks only its newline: it is whole, and what comes behind it waits.
    let second = whole.len() / 3 * 2 - 1;
    assert_eq!(texts(&[second]), ("12".to_owned(), [].into()));
    assert_eq!(texts(&[]), ("123".to_owned(), [].into()));
}
