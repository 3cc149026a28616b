//! Records without an id: a new one is stored, and one that is told again is not.

use agent_memory::store::PostgresOptions;
use agent_memory::testing::memory;
use agent_memory::transcripts::{ImportReport, KnownRun};
use agent_memory::{Memory, Message, Session};
use message_formats::{ReadOptions, Transcript, read};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

use crate::databases::{drop_schema, open, server};
use crate::support::plain;

const KEY: &str = "k";

/// Reads a source for the session.
fn parse(source: &str) -> Transcript {
    let mut options = ReadOptions::default();
    options.session = Some(KEY.to_owned());
    read(source.as_bytes(), &options).unwrap()
}

/// Returns lines of messages without ids and times. Words with a capital letter are the user's.
fn lines(words: &str) -> String {
    let line = |word: &str| {
        let role = match word.starts_with(char::is_uppercase) {
            true => "user",
            false => "assistant",
        };
        json!({"role": role, "content": word}).to_string() + "\n"
    };
    words.split_whitespace().map(line).collect()
}

async fn said(memory: &Memory) -> String {
    let session = memory.session(KEY).await.unwrap();
    let entries = session.entries().await.unwrap();
    let texts: Vec<String> = entries.iter().map(|entry| entry.text()).collect();
    texts.join(" ")
}

async fn import(memory: &Memory, source: &str) -> ImportReport {
    memory.import(&parse(source)).await.unwrap()
}

/// Returns the number of entries that an import stored.
fn new(report: &ImportReport) -> u64 {
    report.sessions.iter().map(|one| one.inserted).sum()
}

/// Returns the messages that an import left out: the record, the position, and their number.
fn known(report: &ImportReport) -> Vec<(u64, u32, u64)> {
    let runs = report.sessions.iter().flat_map(|one| &one.known);
    let told = |run: &KnownRun| (run.record, run.seq.0, run.count);
    runs.map(told).collect()
}

#[tokio::test]
async fn a_line_that_another_file_has_too_is_stored() {
    for place in plain().await {
        let memory = &place.memory;
        let (first, second) = (lines("Ready? yes"), lines("Ship? yes Shipped."));
        assert_eq!(new(&import(memory, &first).await), 2);
        let report = import(memory, &second).await;
        assert_eq!((new(&report), known(&report)), (3, Vec::new()));
        assert_eq!(said(memory).await, "Ready? yes Ship? yes Shipped.");
        // Each file again, in any order.
        let report = import(memory, &second).await;
        assert_eq!((new(&report), known(&report)), (0, vec![(1, 3, 3)]));
        let report = import(memory, &first).await;
        assert_eq!((new(&report), known(&report)), (0, vec![(1, 1, 2)]));
        assert_eq!(memory.verify().await.unwrap().violations, []);
    }
}

/// Such a file cannot be told from the first file again, so the report says what was left out.
#[tokio::test]
async fn a_file_that_begins_as_the_session_is_left_out_with_its_positions() {
    let memory = memory().open().await.unwrap();
    import(&memory, &lines("Go? yes Done.")).await;
    let report = import(&memory, &lines("Go? yes")).await;
    assert_eq!((new(&report), known(&report)), (0, vec![(1, 1, 2)]));
    assert_eq!(report.sessions[0].duplicates, 2);
    // A file that only begins with the same words is another one.
    let report = import(&memory, &lines("Go? no")).await;
    assert_eq!((new(&report), known(&report)), (2, Vec::new()));
    assert_eq!(said(&memory).await, "Go? yes Done. Go? no");
}

#[tokio::test]
async fn a_file_grows_although_others_follow_it() {
    for place in plain().await {
        let memory = &place.memory;
        for (source, count) in [
            ("One yes", 2),
            ("Two yes", 2),
            ("Three yes yes", 3),
            ("Two yes More", 1),
            ("One yes And", 1),
            ("Two yes More", 0),
            ("Two yes", 0),
            ("Two yes More yes", 1),
            ("Three yes", 2),
            ("One yes And yes", 1),
            ("Two yes More yes", 0),
            ("One yes And yes", 0),
            ("Three yes yes", 0),
        ] {
            assert_eq!(
                new(&import(memory, &lines(source)).await),
                count,
                "{source}"
            );
        }
        let all = "One yes Two yes Three yes yes More And yes Three yes yes";
        assert_eq!(said(memory).await, all);
        // All of the session as one file.
        let whole = lines(all);
        assert_eq!(new(&import(memory, &whole).await), 0);
        assert_eq!(
            new(&import(memory, &(whole.clone() + &lines("yes"))).await),
            1
        );
        assert_eq!(new(&import(memory, &lines("Four")).await), 1);
        let more = whole + &lines("yes yes");
        assert_eq!(new(&import(memory, &more).await), 1);
        assert_eq!(new(&import(memory, &more).await), 0);
    }
}

/// An import that was interrupted has stored the beginning of its file.
#[tokio::test]
async fn an_interrupted_import_goes_on() {
    let long: String = (0..700)
        .map(|n| lines(&format!("Ask{} yes", n % 7)))
        .collect();
    let cut: usize = long.split_inclusive('\n').take(256).map(str::len).sum();
    for before in ["", "Ask0 no"] {
        let memory = memory().open().await.unwrap();
        if !before.is_empty() {
            import(&memory, &lines(before)).await;
        }
        assert_eq!(new(&import(&memory, &long[..cut]).await), 256);
        assert_eq!(new(&import(&memory, &long).await), 1400 - 256);
        assert_eq!(new(&import(&memory, &long).await), 0);
    }
}

#[tokio::test]
async fn two_processes_store_a_file_once() {
    let memory = memory().open().await.unwrap();
    import(&memory, &lines("One yes")).await;
    let (grown, other) = (parse(&lines("Two yes")), parse(&lines("Three yes")));
    let imports = tokio::join!(
        memory.import(&grown),
        memory.import(&other),
        memory.import(&grown)
    );
    let counts = [imports.0, imports.1, imports.2].map(|report| new(&report.unwrap()));
    assert_eq!(counts.iter().sum::<u64>(), 4, "{counts:?}");
}

#[tokio::test]
async fn what_a_program_appended_is_the_beginning_too() {
    let memory = memory().open().await.unwrap();
    let session = memory.session(KEY).await.unwrap();
    let told = [Message::user("Go?"), Message::assistant("yes")];
    assert_eq!(
        session
            .ingest_batch(told.to_vec())
            .await
            .unwrap()
            .inserted(),
        2
    );
    let report = import(&memory, &lines("Go? yes Next")).await;
    assert_eq!((new(&report), known(&report)), (1, vec![(1, 1, 2)]));
    session.ingest(Message::assistant("yes")).await.unwrap();
    // The file grows behind a message of the program.
    assert_eq!(new(&import(&memory, &lines("Go? yes Next no")).await), 1);
    assert_eq!(new(&import(&memory, &lines("Go? yes Next no")).await), 0);
    assert_eq!(said(&memory).await, "Go? yes Next yes no");
}

#[tokio::test]
async fn a_fork_has_the_files_of_its_parent() {
    let memory = memory().open().await.unwrap();
    let session = memory.session("parent").await.unwrap();
    for source in ["One yes", "Two yes"] {
        let mut transcript = parse(&lines(source));
        transcript.sessions[0].key = "parent".into();
        memory.import(&transcript).await.unwrap();
    }
    session.fork(agent_memory::Seq(4), KEY).await.unwrap();
    assert_eq!(new(&import(&memory, &lines("Two yes")).await), 0);
    assert_eq!(new(&import(&memory, &lines("Two yes More")).await), 1);
    assert_eq!(new(&import(&memory, &lines("Three yes")).await), 2);
    assert_eq!(said(&memory).await, "One yes Two yes More Three yes");
}

/// Erased words are not stored again.
#[tokio::test]
async fn erased_lines_stay_erased() {
    let memory = memory().open().await.unwrap();
    for source in ["One yes", "Two yes"] {
        import(&memory, &lines(source)).await;
    }
    let session: Session = memory.session(KEY).await.unwrap();
    let all = agent_memory::SeqRange::new(agent_memory::Seq(1), agent_memory::Seq(4)).unwrap();
    session.erase(all, "a test").await.unwrap();
    for source in ["Two yes", "One yes"] {
        let report = import(&memory, &lines(source)).await;
        assert_eq!((new(&report), report.sessions[0].erased), (0, 2));
    }
}

/// The host's messages have ids, and come directly behind the lines of the file.
#[tokio::test]
async fn a_file_grows_although_the_host_appends_messages_with_ids() {
    let memory = memory().open().await.unwrap();
    import(&memory, &lines("Go? yes")).await;
    let session = memory.session(KEY).await.unwrap();
    let own = Message::user("Stop.").with_external_id("host-1");
    session.ingest(own).await.unwrap();
    assert_eq!(new(&import(&memory, &lines("Go? yes Next")).await), 1);
    assert_eq!(new(&import(&memory, &lines("Go? yes Next yes")).await), 1);
    assert_eq!(new(&import(&memory, &lines("Go? yes Next")).await), 0);
    assert_eq!(new(&import(&memory, &lines("Go? yes Next yes")).await), 0);
    assert_eq!(said(&memory).await, "Go? yes Stop. Next yes");
}

/// One message of a random conversation.
#[derive(Debug, Clone)]
struct Line {
    word: usize,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    ByPlace,
    WithId,
    WithTime,
}

/// Way in which a file is written.
#[derive(Debug, Clone, Copy)]
enum Writing {
    Lines,
    List,
}

#[derive(Debug, Clone)]
struct Split {
    lines: Vec<Line>,
    /// Whether a file ends behind each line.
    ends: Vec<bool>,
    writing: Writing,
}

const WORDS: [&str; 3] = ["yes", "\"go\" é\t", "Next 🦀"];

fn split() -> impl Strategy<Value = Split> {
    let how = prop_oneof![
        3 => Just(How::ByPlace),
        1 => Just(How::WithId),
        1 => Just(How::WithTime),
    ];
    let line = (0..WORDS.len(), how).prop_map(|(word, how)| Line { word, how });
    let lines = prop::collection::vec((line, prop::bool::weighted(0.4)), 1..16);
    let writing = prop_oneof![Just(Writing::Lines), Just(Writing::List)];
    (lines, writing).prop_map(|(lines, writing)| {
        let (lines, ends) = lines.into_iter().unzip();
        Split {
            lines,
            ends,
            writing,
        }
    })
}

/// A message of a file: its text, and its id and time.
type Told = (String, Option<String>, Option<String>);

impl Split {
    /// Returns the files. A file that cannot be told from an earlier one, because it begins as the session or as a whole
    /// earlier file does, begins with another text.
    fn files(&self) -> Vec<Vec<Told>> {
        let mut files: Vec<Vec<Told>> = vec![Vec::new()];
        for (at, (line, end)) in self.lines.iter().zip(&self.ends).enumerate() {
            let id = (line.how == How::WithId).then(|| format!("m{at}"));
            let time = (line.how == How::WithTime).then(|| format!("2026-03-02T09:00:{at:02}Z"));
            files
                .last_mut()
                .unwrap()
                .push((WORDS[line.word].to_owned(), id, time));
            if *end {
                files.push(Vec::new());
            }
        }
        files.retain(|file| !file.is_empty());
        for at in 1..files.len() {
            let (before, behind) = files.split_at_mut(at);
            let file = &mut behind[0];
            let session = before.concat();
            let shorter = session.len().min(file.len());
            let is_again = session[..shorter] == file[..shorter]
                || before.iter().any(|known| file.starts_with(known));
            if is_again {
                file[0].0 = format!("File {at}.");
            }
        }
        files
    }

    /// Returns a file. `other` writes the same values in another way.
    fn write(&self, file: &[Told], other: bool) -> String {
        let one = |(text, id, time): &Told| {
            let role = match text.len() % 2 {
                0 => "user",
                _ => "assistant",
            };
            let id_key = match self.writing {
                Writing::Lines => "external_id",
                Writing::List => "id",
            };
            let call = json!({"a": 1, "b": [text]});
            let mut fields = vec![("role", json!(role)), ("content", json!(text))];
            fields.extend(id.as_ref().map(|id| (id_key, json!(id))));
            fields.extend(time.as_ref().map(|time| ("created_at", json!(time))));
            fields.push(("extra", call));
            if !other {
                let fields = fields
                    .iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"));
                return format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
            }
            let escaped = |text: &str| text.replace('e', "\\u0065").replace('é', "\\u00e9");
            let fields = fields.iter().rev().map(|(key, value)| match *key {
                "content" => format!("\"{key}\" : {}", escaped(&value.to_string())),
                "extra" => format!(
                    "\"extra\": {{ \"b\": {}, \"a\": 1 }}",
                    escaped(&value["b"].to_string())
                ),
                _ => format!("\"{key}\": {value}"),
            });
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        };
        let all: Vec<String> = file.iter().map(one).collect();
        match (self.writing, other) {
            (Writing::Lines, _) => all.join("\n") + "\n",
            (Writing::List, false) => format!("[{}]", all.join(",")),
            (Writing::List, true) => format!("[\n  {}\n]\n", all.join(",\n  ")),
        }
    }
}

/// Imports the files in order, each a second time at once, and all of them again at the end: as they are, and written in
/// another way. Nothing is lost and nothing is doubled.
async fn holds(memory: &Memory, split: &Split) {
    let files = split.files();
    for (at, file) in files.iter().enumerate() {
        let source = split.write(file, false);
        let report = import(memory, &source).await;
        let count = file.len() as u64;
        assert_eq!(
            (new(&report), known(&report)),
            (count, Vec::new()),
            "file {at}"
        );
        for other in [false, true] {
            let again = import(memory, &split.write(file, other)).await;
            let (conflicts, again) = (again.sessions[0].conflicts, new(&again));
            assert_eq!(
                (again, conflicts),
                (0, 0),
                "file {at}, written otherwise: {other}"
            );
        }
    }
    for other in [false, true] {
        for (at, file) in files.iter().enumerate() {
            let again = import(memory, &split.write(file, other)).await;
            assert_eq!(
                new(&again),
                0,
                "file {at} at the end, written otherwise: {other}"
            );
        }
    }
    let session = memory.session(KEY).await.unwrap();
    let entries = session.entries().await.unwrap();
    let stored: Vec<String> = entries.iter().map(|entry| entry.text()).collect();
    let told: Vec<String> = files.concat().into_iter().map(|told| told.0).collect();
    assert_eq!(stored, told);
    assert_eq!(memory.verify().await.unwrap().violations, []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_in_files_is_stored_once(split in split()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            holds(&memory().open().await.unwrap(), &split).await;
        });
    }
}

/// Random conversations that are the same in each run.
fn splits(count: usize) -> Vec<Split> {
    let mut runner = TestRunner::deterministic();
    let mut next = || split().new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| next()).collect()
}

#[tokio::test]
async fn a_conversation_in_files_is_stored_once_in_a_file() {
    for split in splits(12) {
        let [_, place] = plain().await;
        holds(&place.memory, &split).await;
    }
}

#[tokio::test]
async fn a_conversation_in_files_is_stored_once_on_a_server() {
    for (at, split) in splits(6).iter().enumerate() {
        let Some(url) = server(&format!("by_place_{at}")) else {
            return;
        };
        let store = PostgresOptions::new().open(&url).await.unwrap();
        let memory = open(store).await;
        holds(&memory, split).await;
        memory.close().await.unwrap();
        drop_schema(&url).await;
    }
}

/// The same list, as three libraries write it, without a name.
#[tokio::test]
async fn a_list_without_a_name_is_the_same_in_other_writings() {
    let writings = [
        r#"[{"role":"user","content":"Où est la clé?"},{"role":"assistant","content":"yes"}]"#,
        r#"[{"role": "user", "content": "O\u00f9 est la cl\u00e9?"}, {"role": "assistant", "content": "yes"}]"#,
        "[\n  {\n    \"content\": \"Où est la clé?\",\n    \"role\": \"user\"\n  },\n  {\n    \"content\": \"yes\",\n    \"role\": \"assistant\"\n  }\n]\n",
    ];
    for (nth, first) in writings.iter().enumerate() {
        let memory = memory().open().await.unwrap();
        for (at, writing) in [first].into_iter().chain(&writings).enumerate() {
            let transcript = read(writing.as_bytes(), &ReadOptions::default()).unwrap();
            let report = memory.import(&transcript).await.unwrap();
            assert_eq!(new(&report), if at == 0 { 2 } else { 0 }, "{nth} {at}");
        }
        // It grows, and another list with the same beginning is another session.
        for (more, sessions) in [(r#", "Why?""#, 1), (r#", "No.""#, 2)] {
            let line = more.replace(", ", r#", {"role": "user", "content": "#) + "}]";
            let grown = writings[1].trim_end_matches(']').to_owned() + &line;
            let transcript = read(grown.as_bytes(), &ReadOptions::default()).unwrap();
            memory.import(&transcript).await.unwrap();
            let filter = agent_memory::store::ConversationFilter::default();
            assert_eq!(
                memory.sessions(&filter).await.unwrap().len(),
                sessions,
                "{nth} {more}"
            );
        }
    }
}

/// What is given again under its id is the same message in another writing.
#[tokio::test]
async fn a_message_with_an_id_is_the_same_in_other_writings() {
    let memory = memory().open().await.unwrap();
    let session = memory.session(KEY).await.unwrap();
    let call = |arguments: &str| {
        let arguments = agent_memory::RawJson::parse(arguments).unwrap();
        Message::tool_call("c1", "search", arguments).with_external_id("m1")
    };
    session
        .ingest(call(r#"{"q":"é","n":[1,2]}"#))
        .await
        .unwrap();
    let again = session
        .ingest(call(r#"{ "n": [1, 2], "q": "\u00e9" }"#))
        .await
        .unwrap();
    assert_eq!(
        again,
        memory_store::EntryOutcome::Duplicate(agent_memory::Seq(1))
    );
    let other = session.ingest(call(r#"{"q":"é","n":[2,1]}"#)).await;
    assert!(other.is_err());
}
