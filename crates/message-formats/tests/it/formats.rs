//! Formats that are added from outside: a whole file of JSON, compressed files, a directory, and a
//! dialect of JSON lines.

use std::io::{BufReader, Write as _};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use memory_model::{Message, SessionKey};
use message_formats::json_lines::{self, Line, LineReader};
use message_formats::{
    Confidence, Error, ErrorKind, Format, Formats, Head, Input, Origin, ReadOptions, Report,
    SessionBuilder, SessionLog, Sink, Transcript,
};
use outside_checks::fixtures::claude_code;
use serde::Deserialize;

/// `{"chat":"…","turns":[["question","answer"],…]}` in one JSON document.
#[derive(Debug)]
struct Chat;

#[derive(Deserialize)]
struct ChatFile {
    chat: String,
    turns: Vec<(String, String)>,
}

impl Format for Chat {
    fn name(&self) -> &str {
        "chat"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        match head.bytes().trim_ascii().starts_with(b"{\"chat\":") {
            true => Confidence::Certain,
            false => Confidence::No,
        }
    }

    fn read(
        &self,
        mut input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let file: ChatFile = serde_json::from_reader(input.reader())
            .map_err(|error| Error::invalid(&options.name, format!("{error}: export it again")))?;
        let mut session = SessionBuilder::new(Origin::Root);
        let mut report = Report::new();
        for (question, answer) in file.turns {
            session.push(Message::user(&question), None, &question);
            session.push(Message::assistant(&answer), None, &answer);
            report.lines += 2;
        }
        sink.session(session.finish(SessionKey::new(file.chat)))?;
        Ok(report)
    }
}

/// Any of the other formats, compressed, with a name of its own.
#[derive(Debug)]
struct Gzip(Formats);

impl Format for Gzip {
    fn name(&self) -> &str {
        "gzip"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        match head.bytes() {
            [0x1f, 0x8b, ..] => Confidence::Certain,
            _ => Confidence::No,
        }
    }

    fn read(
        &self,
        mut input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let unpacked = BufReader::new(GzDecoder::new(input.reader()));
        let transcript = self.0.read(unpacked, options)?;
        for session in transcript.sessions {
            sink.session(session)?;
        }
        Ok(transcript.report)
    }
}

/// A directory with a file `agent.toml` and one file a session.
#[derive(Debug)]
struct Folder;

impl Format for Folder {
    fn name(&self) -> &str {
        "folder"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        let path = head.path().filter(|_| head.is_directory());
        match path.is_some_and(|path| path.join("agent.toml").exists()) {
            true => Confidence::Certain,
            false => Confidence::No,
        }
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let folder = input.path().expect("it was sniffed by its path");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .map_err(|error| Error::io(&options.name, error))?
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
            .collect();
        files.sort();
        let mut report = Report::new();
        for path in files {
            let mut session = SessionBuilder::new(Origin::Root);
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                session.push(Message::user(line), None, line);
                report.lines += 1;
            }
            let key = path.file_stem().unwrap().to_string_lossy().into_owned();
            sink.session(session.finish(SessionKey::new(key)))?;
        }
        Ok(report)
    }
}

/// Lines such as `{"who":"you","said":"…"}`, with a heartbeat between them.
#[derive(Debug)]
struct Dialect;

#[derive(Default)]
struct DialectLines {
    messages: Vec<(Message, String)>,
}

impl LineReader for DialectLines {
    fn line(&mut self, line: &Line<'_>, report: &mut Report) {
        let said = line.string("said").unwrap_or_default();
        let message = match line.string("who").as_deref() {
            Some("you") => Message::user(said),
            Some("me") => Message::assistant(said),
            Some("heartbeat") => return report.skip("heartbeat"),
            _ => return report.warn("unknown_speaker", line.number()),
        };
        self.messages.push((message, line.text().to_owned()));
    }
}

impl Format for Dialect {
    fn name(&self) -> &str {
        "dialect"
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        let mut objects = head
            .lines()
            .filter_map(|line| std::str::from_utf8(line).ok())
            .filter_map(|line| Line::parse(1, line));
        match objects.next() {
            Some(first) if first.get("who").is_some() => Confidence::Certain,
            None if !head.is_complete() => Confidence::Undecided,
            _ => Confidence::No,
        }
    }

    fn read(
        &self,
        input: Input<'_>,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut lines = DialectLines::default();
        let report = json_lines::read(input, options, &mut lines)?;
        let mut session = SessionBuilder::new(Origin::Root);
        for (message, line) in lines.messages {
            session.push(message, None, &line);
        }
        sink.session(session.finish(SessionKey::new("dialect")))?;
        Ok(report)
    }
}

fn formats() -> Formats {
    let known = || Formats::default().with(Chat).with(Dialect);
    known().with(Gzip(known())).with(Folder)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn read(source: &[u8]) -> Result<Transcript, Error> {
    formats().read(source, &ReadOptions::default())
}

fn texts(session: &SessionLog) -> Vec<String> {
    session.messages.iter().map(Message::text).collect()
}

#[test]
fn a_whole_file_of_json_is_read() {
    let transcript =
        read(br#"{"chat":"c","turns":[["What?","This."],["What?","That."]]}"#).unwrap();
    assert_eq!(transcript.format, "chat");
    let session = &transcript.sessions[0];
    assert_eq!(session.key.as_str(), "c");
    assert_eq!(texts(session), ["What?", "This.", "What?", "That."]);
    let error = read(br#"{"chat":"c","turns":[["#).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.starts_with("the transcript cannot be read"), "{text}");
}

#[test]
fn compressed_sources_of_every_format_are_read() {
    let chat = br#"{"chat":"c","turns":[["What?","This."]]}"#.to_vec();
    for source in [claude_code(40).into_bytes(), chat] {
        let plain = read(&source).unwrap();
        let packed = read(&gzip(&source)).unwrap();
        assert_eq!(packed.format, "gzip");
        assert_eq!(packed.sessions, plain.sessions);
        assert_eq!(packed.report, plain.report);
    }
    let options = ReadOptions::default();
    let source = claude_code(40).into_bytes();
    let unpacked = Formats::default().read(&*gzip(&source), &options).unwrap();
    assert_eq!(unpacked.sessions, read(&source).unwrap().sessions);
    let error = Formats::default().read(&*gzip(b"x"), &options);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::UnknownFormat);
    let half = gzip(&source);
    let error = Formats::default().read(&half[..half.len() / 2], &options);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_directory_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let options = ReadOptions::default();
    let error = formats().read_path(folder.path(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    std::fs::write(folder.path().join("agent.toml"), "").unwrap();
    std::fs::write(folder.path().join("b.txt"), "three").unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
    let transcript = formats().read_path(folder.path(), &options).unwrap();
    let sessions: Vec<(&str, Vec<String>)> = transcript
        .sessions
        .iter()
        .map(|session| (session.key.as_str(), texts(session)))
        .collect();
    let expected = [
        ("a", vec!["one".to_owned(), "two".to_owned()]),
        ("b", vec!["three".to_owned()]),
    ];
    assert_eq!(sessions, expected);
    assert_eq!(transcript.report.lines, 3);
}

#[test]
fn a_dialect_of_lines_counts_what_it_does_not_know() {
    let source = b"{\"who\":\"you\",\"said\":\"Go.\"}\n{\"who\":\"heartbeat\"}\n[1]\n{\"who\":\"it\"}\n{\"who\":\"me\",\"said\":\"Done.\"}\n{\"who\":";
    let transcript = read(source).unwrap();
    assert_eq!(transcript.format, "dialect");
    assert_eq!(texts(&transcript.sessions[0]), ["Go.", "Done."]);
    let report = transcript.report;
    assert_eq!(report.lines, 6);
    let kinds: Vec<(&str, u64)> = report
        .skipped
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .collect();
    let expected = [
        ("heartbeat", 1),
        ("incomplete", 1),
        ("not_an_object", 1),
        ("unknown_speaker", 1),
    ];
    assert_eq!(kinds, expected);
    let lines: Vec<u64> = report.warnings.iter().map(|warning| warning.line).collect();
    assert_eq!(lines, [3, 4, 6]);
    assert!(report.lost_any());
}

/// Claims every source with this confidence.
#[derive(Debug)]
struct Claims(&'static str, Confidence);

impl Format for Claims {
    fn name(&self) -> &str {
        self.0
    }

    fn sniff(&self, head: &Head<'_>) -> Confidence {
        match self.1 {
            Confidence::Undecided if head.bytes().len() > 100_000 => Confidence::Certain,
            confidence => confidence,
        }
    }

    fn read(
        &self,
        mut input: Input<'_>,
        options: &ReadOptions,
        _: &mut dyn Sink,
    ) -> Result<Report, Error> {
        let mut report = Report::new();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(input.reader(), &mut bytes)
            .map_err(|error| Error::io(&options.name, error))?;
        report.lines = bytes.len() as u64;
        Ok(report)
    }
}

#[test]
fn the_most_certain_format_reads_a_source_from_its_beginning() {
    use Confidence::{Certain, No, Possible, Undecided};
    let plain = "{\"role\":\"user\",\"content\":\"x\"}\n";
    let long = plain.repeat(5_000);
    for (claims, source, reads) in [
        (vec![Claims("a", No)], plain, "jsonl"),
        (vec![Claims("a", Possible)], plain, "a"),
        (
            vec![Claims("a", Certain), Claims("b", Possible)],
            plain,
            "a",
        ),
        (vec![Claims("a", Certain), Claims("b", Certain)], plain, "b"),
        // It never sees enough, so the format that can read the source does.
        (vec![Claims("a", Undecided)], plain, "jsonl"),
        // The first head is too short for it.
        (vec![Claims("a", Undecided)], &long, "a"),
    ] {
        let mut formats = Formats::default();
        for claim in claims {
            formats = formats.with(claim);
        }
        let options = ReadOptions::default();
        let transcript = formats.read(source.as_bytes(), &options).unwrap();
        assert_eq!(transcript.format, reads);
        if reads != "jsonl" {
            assert_eq!(transcript.report.lines, source.len() as u64);
        }
    }
}
