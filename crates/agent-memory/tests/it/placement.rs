//! Sources and sessions. Two conversations are never merged, and entries that they share are stored once.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use agent_memory::testing::memory;
use agent_memory::{
    ErrorKind, Memory, Message, Session, model::EntryKind, store::ConversationFilter,
};
use async_trait::async_trait;
use memory_store::{FullStore, InMemoryStore, Origin};
use message_formats::{ReadOptions, Transcript, read};
use proptest::prelude::*;
use store_conformance::{Layer, Layered};

fn parse(source: &str) -> Transcript {
    read(source.as_bytes(), &ReadOptions::default()).unwrap()
}

/// Returns a line of a Claude Code file with this uuid, parent and session. A uuid with `u` belongs to the user.
fn claude(uuid: &str, parent: &str, session: &str) -> String {
    let role = if uuid.starts_with('u') {
        "user"
    } else {
        "assistant"
    };
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(
        "{{\"parentUuid\":{parent},\"sessionId\":\"{session}\",\"type\":\"{role}\",\"uuid\":\"{uuid}\",\
         \"timestamp\":\"2026-03-02T09:00:00.000Z\",\"message\":{{\"role\":\"{role}\",\"content\":\"says {uuid}\"}}}}\n"
    )
}

/// Returns lines that follow one another. Each word is `uuid` or `uuid@session`.
fn chain(lines: &str) -> String {
    let mut out = String::new();
    let mut parent = "";
    for line in lines.split(' ') {
        let (uuid, session) = line.split_once('@').unwrap_or((line, "main"));
        out += &claude(uuid, parent, session);
        parent = uuid;
    }
    out
}

fn pi(id: &str, parent: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    let role = if id.starts_with('u') {
        "user"
    } else {
        "assistant"
    };
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-03-02T09:00:00.000Z\",\
         \"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"says {id}\"}}]}}}}\n"
    )
}

fn plain(texts: &str) -> String {
    texts.split(' ').fold(String::new(), |mut out, text| {
        writeln!(out, "{{\"role\":\"user\",\"content\":\"{text}\"}}").unwrap();
        out
    })
}

/// Returns the texts of a session's messages, without notes.
async fn said(session: &Session) -> Vec<String> {
    let entries = session.entries().await.unwrap();
    let entries = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message);
    entries
        .map(|entry| entry.text().replace("says ", ""))
        .collect()
}

/// Returns a line for each session: its key, a fork's parent and position, and its messages.
async fn told(memory: &Memory) -> Vec<String> {
    let sessions = memory
        .sessions(&ConversationFilter::default())
        .await
        .unwrap();
    let keys: HashMap<_, _> = sessions
        .iter()
        .map(|s| (s.conversation.id, s.conversation.key.to_string()))
        .collect();
    let mut lines = Vec::new();
    for info in &sessions {
        let session = memory
            .get_session(info.conversation.key.clone())
            .await
            .unwrap();
        let from = match &info.conversation.origin {
            Origin::Fork { parent, at } => format!(" ({} {at})", keys[parent]),
            _ => String::new(),
        };
        lines.push(format!(
            "{}{from}: {}",
            session.key(),
            said(&session).await.join(" ")
        ));
    }
    lines
}

/// Imports a source. Returns the messages of its main session, and the number of new entries.
async fn import(memory: &Memory, source: &str) -> (Vec<String>, u64) {
    let imported = memory.import(&parse(source)).await.unwrap();
    let main = memory.get_session(imported.main.unwrap()).await.unwrap();
    let new = imported.sessions.iter().map(|one| one.inserted).sum();
    (said(&main).await, new)
}

async fn imported(sources: &[&str]) -> Vec<String> {
    let (memory, large) = (
        memory().open().await.unwrap(),
        memory().open().await.unwrap(),
    );
    let options = ReadOptions::default().with_overflow(0, std::env::temp_dir());
    for source in sources {
        import(&memory, source).await;
        let transcript = read(source.as_bytes(), &options).unwrap();
        large.import(&transcript).await.unwrap();
    }
    let known = told(&memory).await;
    assert_eq!(told(&large).await, known);
    // A growing file is imported again by its last reading alone.
    if let Some(last) = sources.last() {
        assert_eq!(import(&memory, last).await.1, 0);
    }
    assert_eq!(told(&memory).await, known);
    assert_eq!(memory.verify().await.unwrap().violations, []);
    known
}

#[tokio::test]
async fn a_resumed_copy_that_goes_another_way_is_a_session_of_its_own() {
    let first = chain("u1 a1 u2 a2");
    let copy = chain("u1 a1 u3@copy a3@copy");
    let third = chain("u1 a1 u3@copy a3@copy u4@third");
    let fourth = chain("u1 a1 u3@copy u5@fourth");
    assert_eq!(
        imported(&[&first, &copy]).await,
        ["main: u1 a1 u2 a2", "copy (main 2): u1 a1 u3 a3"]
    );
    assert_eq!(
        imported(&[&copy, &first]).await,
        ["main: u1 a1 u3 a3", "main/u2 (main 2): u1 a1 u2 a2"]
    );
    assert_eq!(
        imported(&[&first, &copy, &third, &fourth]).await,
        [
            "main: u1 a1 u2 a2",
            "copy (main 2): u1 a1 u3 a3 u4",
            "fourth (copy 3): u1 a1 u3 u5"
        ]
    );
    // Both go on. Neither gets the shared entries twice.
    let (first, copy) = (
        chain("u1 a1 u2 a2 u6"),
        chain("u1 a1 u3@copy a3@copy u7@copy"),
    );
    let begin = chain("u1 a1");
    assert_eq!(
        imported(&[&begin, &chain("u1 a1 u3@copy"), &begin, &first, &copy]).await,
        ["main: u1 a1 u3 a3 u7", "main/u2 (main 2): u1 a1 u2 a2 u6"]
    );
    // The name is another session's already.
    assert_eq!(
        imported(&[&chain("u9@copy"), &first, &copy]).await,
        [
            "copy: u9",
            "main: u1 a1 u2 a2 u6",
            "main/u3 (main 2): u1 a1 u3 a3 u7"
        ]
    );
    // The same session went on in another way on another machine.
    let elsewhere = chain("u1 a1 u8");
    assert_eq!(
        imported(&[&first, &elsewhere]).await,
        ["main: u1 a1 u2 a2 u6", "main/u8 (main 2): u1 a1 u8"]
    );
    // One file, several sessions after resumes, stays one.
    assert_eq!(
        imported(&[
            &chain("u1 a1@two u2@three"),
            &chain("u1 a1@two u2@three a2@three")
        ])
        .await,
        ["main: u1 a1 u2 a2"]
    );
}

#[tokio::test]
async fn a_rewind_leaves_the_session_to_the_branch_in_use_where_the_store_allows() {
    let before = chain("u1 a1 u2 a2");
    let after = before.clone() + &claude("u3", "a1", "main") + &claude("a3", "u3", "main");
    let back = after.clone() + &claude("u4", "a2", "main");
    assert_eq!(
        imported(&[&after]).await,
        ["main: u1 a1 u3 a3", "main/u2 (main 2): u1 a1 u2 a2"]
    );
    assert_eq!(
        imported(&[&before, &after]).await,
        ["main: u1 a1 u2 a2", "main/u3 (main 2): u1 a1 u3 a3"]
    );
    assert_eq!(
        imported(&[&after, &back]).await,
        ["main: u1 a1 u3 a3", "main/u2 (main 2): u1 a1 u2 a2 u4"]
    );
    assert_eq!(
        imported(&[&before, &after, &back]).await,
        ["main: u1 a1 u2 a2 u4", "main/u3 (main 2): u1 a1 u3 a3"]
    );
    let first = before + &claude("u5", "", "main");
    assert_eq!(
        imported(&[&first]).await,
        ["main: u5", "main/u1 (main 0): u1 a1 u2 a2"]
    );
    let memory = memory().open().await.unwrap();
    let report = memory.import(&parse(&after)).await.unwrap();
    let rows = report.sessions.iter();
    let rows: Vec<_> = rows
        .map(|row| (row.session.as_str(), row.messages, row.inserted))
        .collect();
    assert_eq!(rows, [("main", 4, 4), ("main/u2", 2, 2)]);
    assert_eq!(report.main.unwrap().as_str(), "main");
}

/// Returns a line of a Gemini CLI file.
fn gemini(id: &str) -> String {
    let kind = if id.starts_with('u') {
        "user"
    } else {
        "gemini"
    };
    format!(
        "{{\"id\":\"{id}\",\"timestamp\":\"2026-03-02T09:00:00.000Z\",\"type\":\"{kind}\",\"content\":\"says {id}\",\"model\":\"m\"}}\n"
    )
}

/// Returns a line of a Codex file, whose messages have no ids.
fn codex(text: &str) -> String {
    let (role, kind) = match text.starts_with('u') {
        true => ("user", "input_text"),
        false => ("assistant", "output_text"),
    };
    format!(
        "{{\"timestamp\":\"2026-03-02T09:00:00.000Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\
         \"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}\",\"text\":\"says {text}\"}}]}}}}\n"
    )
}

/// Turns that were taken back are not in the session that goes on, also if they were stored before.
#[tokio::test]
async fn turns_that_were_taken_back_stay_in_their_branch() {
    let lines = |line: fn(&str) -> String, ids: &str| ids.split(' ').map(line).collect::<String>();
    let begin = "{\"sessionId\":\"main\",\"projectHash\":\"p\",\"startTime\":\"2026-03-02T09:00:00.000Z\",\"kind\":\"main\"}\n";
    let before = begin.to_owned() + &lines(gemini, "u1 a1 u2 a2");
    let after = before.clone() + "{\"$rewindTo\":\"u2\"}\n" + &lines(gemini, "u3 a3");
    let more = after.clone() + &gemini("u4");
    assert_eq!(
        imported(&[&more]).await,
        ["main: u1 a1 u3 a3 u4", "main/u2 (main 2): u1 a1 u2 a2"]
    );
    assert_eq!(
        imported(&[&before, &after, &more]).await,
        ["main: u1 a1 u2 a2", "main/fork-1 (main 2): u1 a1 u3 a3 u4"]
    );

    let begin = "{\"timestamp\":\"2026-03-02T09:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"main\",\"cwd\":\"/x\"}}\n";
    let back = "{\"timestamp\":\"2026-03-02T09:00:00.000Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\",\"num_turns\":1}}\n";
    let before = begin.to_owned() + &lines(codex, "u1 a1 u2 a2");
    let after = before.clone() + back + &lines(codex, "u3 a3");
    let more = after.clone() + &codex("u4");
    let whole = imported(&[&more]).await;
    assert_eq!(whole[0], "main: u1 a1 u3 a3 u4", "{whole:?}");
    let grown = imported(&[&before, &after, &more]).await;
    assert_eq!(grown[0], "main: u1 a1 u2 a2", "{grown:?}");
    assert!(grown[1].ends_with(": u1 a1 u3 a3 u4"), "{grown:?}");
    let memory = memory().open().await.unwrap();
    import(&memory, &before).await;
    assert_eq!(import(&memory, &more).await.0.join(" "), "u1 a1 u3 a3 u4");
}

#[tokio::test]
async fn what_older_programs_kept_in_line_stays_there() {
    let before = chain("u1 a1 u2 a2");
    let after = before + &claude("u3", "a1", "main") + &claude("a3", "u3", "main");
    let memory = memory().open().await.unwrap();
    let session = memory.session("main").await.unwrap();
    let logs = parse(&after).sessions;
    let all: Vec<Message> = logs.into_iter().flat_map(|log| log.messages).collect();
    assert_eq!(session.ingest_batch(all).await.unwrap().inserted(), 6);
    assert_eq!(import(&memory, &after).await.1, 0);
    let grown = after + &claude("u4", "a3", "main");
    assert_eq!(import(&memory, &grown).await.1, 1);
    assert_eq!(told(&memory).await, ["main: u1 a1 u2 a2 u3 a3 u4"]);
}

#[tokio::test]
async fn what_an_application_appended_is_no_other_course() {
    let memory = memory().open().await.unwrap();
    import(&memory, &chain("u1 a1")).await;
    let session = memory.get_session("main").await.unwrap();
    session
        .ingest(Message::user("a note of the host"))
        .await
        .unwrap();
    let own = Message::user("another").with_external_id("host-1");
    session.ingest(own).await.unwrap();
    import(&memory, &chain("u1 a1 u2")).await;
    assert_eq!(
        told(&memory).await,
        ["main: u1 a1 a note of the host another u2"]
    );
}

#[tokio::test]
async fn a_sub_agent_belongs_to_the_branch_that_called_it() {
    let call = |uuid: &str, parent: &str| {
        let block = format!(
            "[{{\"type\":\"tool_use\",\"id\":\"c-{uuid}\",\"name\":\"Task\",\"input\":{{\"prompt\":\"says us-{uuid}\"}}}}]"
        );
        claude(uuid, parent, "main").replace(&format!("\"says {uuid}\""), &block)
    };
    let side = |uuid: &str| {
        claude(uuid, "", "main").replace("{\"parent", "{\"isSidechain\":true,\"parent")
    };
    let source = claude("u1", "", "main")
        + &call("a1", "u1")
        + &side("us-a1")
        + &claude("u2", "a1", "main")
        + &call("a2", "u2")
        + &side("us-a2")
        + &claude("u3", "a1", "main")
        + &call("a3", "u3")
        + &side("us-a3");
    let memory = memory().open().await.unwrap();
    memory.import(&parse(&source)).await.unwrap();
    for (key, parent) in [("us-a1", "main"), ("us-a2", "main/u2"), ("us-a3", "main")] {
        let session = memory.get_session(format!("main/{key}")).await.unwrap();
        let origin = session.info().await.unwrap().conversation.origin;
        let parent = memory.get_session(parent).await.unwrap();
        assert!(
            matches!(&origin, Origin::Spawn { parent: of, at, call }
                if *of == parent.id() && at.0 > 0 && call.is_some()),
            "{key}: {origin:?}"
        );
    }
}

#[tokio::test]
async fn a_sub_agents_file_may_come_before_its_parents() {
    let side = claude("s1", "", "main").replace("{\"parent", "{\"isSidechain\":true,\"parent");
    let memory = memory().open().await.unwrap();
    import(&memory, &side).await;
    let parent = memory.get_session("main").await.unwrap();
    import(&memory, &chain("u1 a1")).await;
    let child = memory.get_session("main/s1").await.unwrap();
    let origin = child.info().await.unwrap().conversation.origin;
    assert_eq!(origin.parent(), Some(parent.id()));
    assert_eq!(parent.entries().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_copied_file_shares_the_history_of_the_file_that_it_was_copied_from() {
    let line = |id: &str, parent: &str| {
        let parent = match parent {
            "" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        };
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-03-08T10:00:00Z","message":{{"role":"user","content":"says {id}"}}}}"#
        ) + "\n"
    };
    let header = |id: &str, more: &str| {
        format!(r#"{{"type":"session","version":3,"id":"{id}"{more}}}"#) + "\n"
    };
    let first = header("one", "") + &line("a", "") + &line("b", "a") + &line("c", "b");
    let copied = r#","parentSession":"/w/2026-03-08T10-00-00-000Z_one.jsonl""#;
    let at_the_end = header("two", copied) + &line("a", "") + &line("b", "a") + &line("c", "b");
    let in_the_middle =
        header("three", copied) + &line("a", "") + &line("b", "a") + &line("e", "b");
    let memory = memory().open().await.unwrap();
    for _ in 0..2 {
        for (source, more) in [(&first, ""), (&at_the_end, "d"), (&in_the_middle, "")] {
            let source = match more {
                "" => source.clone(),
                more => source.clone() + &line(more, "c"),
            };
            memory.import(&parse(&source)).await.unwrap();
        }
    }
    let mut stored = Vec::new();
    for key in ["one", "two", "three"] {
        let session = memory.get_session(key).await.unwrap();
        let conversation = session.info().await.unwrap().conversation;
        let said = session.entries().await.unwrap();
        let said = said.iter().filter(|entry| entry.kind == EntryKind::Message);
        let said: Vec<String> = said
            .map(|entry| entry.text().replace("says ", ""))
            .collect();
        stored.push((
            key,
            matches!(conversation.origin, Origin::Fork { .. }),
            said.concat(),
        ));
    }
    assert_eq!(
        stored,
        [
            ("one", false, "abc".to_owned()),
            ("two", true, "abcd".to_owned()),
            ("three", true, "abe".to_owned())
        ]
    );
    // A copy whose parent is not stored is a session of its own, and stays one.
    let alone = agent_memory::testing::memory().open().await.unwrap();
    for source in [&in_the_middle, &first, &in_the_middle] {
        alone.import(&parse(source)).await.unwrap();
    }
    let three = alone.get_session("three").await.unwrap();
    assert_eq!(
        three.info().await.unwrap().conversation.origin,
        Origin::Root
    );
    assert_eq!(three.entries().await.unwrap().len(), 4);
}

#[tokio::test]
async fn an_import_that_ended_behind_the_making_of_a_fork_goes_on_in_it() {
    let after = chain("u1 a1 u2 a2") + &claude("u3", "a1", "main");
    let memory = memory().open().await.unwrap();
    import(&memory, &chain("u1 a1 u2 a2")).await;
    let fork = parse(&after).sessions.remove(1);
    memory.open_log(&fork).await.unwrap();
    import(&memory, &after).await;
    assert_eq!(
        told(&memory).await,
        ["main: u1 a1 u2 a2", "main/u3 (main 2): u1 a1 u3"]
    );
}

#[tokio::test]
async fn sources_that_name_no_session_are_one_only_where_one_begins_the_other() {
    let key = parse(&plain("system")).sessions[0].key.to_string();
    let lines = |told: Vec<String>| -> Vec<String> {
        told.iter().map(|line| line.replace(&key, "K")).collect()
    };
    let both = [plain("system hi yes"), plain("system hello yes bye")];
    assert_eq!(
        lines(imported(&[&both[0], &both[1], &both[0]]).await),
        ["K: system hi yes", "K-2: system hello yes bye"]
    );
    // One grows, another is cut short, a third is a beginning of two.
    assert_eq!(
        lines(
            imported(&[
                &both[0],
                &both[1],
                &plain("system hi yes and"),
                &plain("system hello"),
                &plain("system"),
                &plain("system yes"),
                &plain("system yes no"),
            ])
            .await
        ),
        [
            "K: system hi yes and",
            "K-2: system hello yes bye",
            "K-3: system yes no"
        ]
    );
    // A line less, a line twice, a line moved.
    assert_eq!(
        lines(
            imported(&[
                &plain("system a b c"),
                &plain("system a c"),
                &plain("system a b b c"),
                &plain("system b a c"),
            ])
            .await
        ),
        [
            "K: system a b c",
            "K-2: system a c",
            "K-3: system a b b c",
            "K-4: system b a c"
        ]
    );
}

#[tokio::test]
async fn ids_of_its_own_do_not_make_two_plain_sources_one() {
    let numbered = |texts: &str| {
        let lines = plain(texts);
        let lines = lines.lines().enumerate().map(|(at, line)| {
            line.replacen('{', &format!("{{\"external_id\":\"{at}\","), 1) + "\n"
        });
        lines.collect::<String>()
    };
    let known = imported(&[
        &numbered("system a b"),
        &numbered("system c b"),
        &numbered("system a b d"),
    ])
    .await;
    let texts: Vec<&str> = known
        .iter()
        .map(|line| line.split_once(": ").unwrap().1)
        .collect();
    assert_eq!(texts, ["system a b d", "system c b"]);
    // Lines that name their session go there, in the order in which they come.
    let named =
        |texts: &str| numbered(texts).replace("{\"external", "{\"session\":\"s\",\"external");
    let known = imported(&[&named("system a"), &named("system a b")]).await;
    assert_eq!(known, ["s: system a b"]);
}

#[tokio::test]
async fn a_tree_without_a_name_is_told_from_another_with_the_same_first_line() {
    let begin = pi("u1", "") + &pi("a1", "u1");
    let one = begin.clone() + &pi("u2", "a1");
    let two = begin.clone() + &pi("u3", "a1");
    let key = parse(&begin).sessions[0].key.to_string();
    let known = imported(&[&one, &two, &(one.clone() + &pi("u4", "a1"))]).await;
    let known: Vec<String> = known.iter().map(|line| line.replace(&key, "K")).collect();
    assert_eq!(
        known,
        ["K: u1 a1 u2", "K-2: u1 a1 u3", "K/u4 (K 2): u1 a1 u4"]
    );
}

#[tokio::test]
async fn two_at_once_do_not_become_one() {
    for round in 0..8 {
        let store = Arc::new(InMemoryStore::new());
        let sources: Vec<String> = (0..4)
            .map(|n| {
                plain(&format!(
                    "system hi{} yes",
                    if n == 3 { round % 3 } else { n }
                ))
            })
            .collect();
        let mut tasks = tokio::task::JoinSet::new();
        for source in sources {
            let memory = memory().store(store.clone()).open().await.unwrap();
            tasks.spawn(async move {
                let (said, _) = import(&memory, &source).await;
                assert_eq!(plain(&said.join(" ")), source);
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        let memory = memory().store(store).open().await.unwrap();
        assert_eq!(told(&memory).await.len(), 3);
    }
}

/// A file of turns. Each turn follows an earlier turn.
#[derive(Debug, Clone)]
struct Turns {
    is_pi: bool,
    /// For each turn, the number of the turn that it follows; 0 for none.
    after: Vec<usize>,
}

impl Turns {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_pi {
            lines.push("{\"type\":\"session\",\"version\":3,\"id\":\"main\"}\n".to_owned());
        }
        for (at, after) in self.after.iter().enumerate() {
            let turn = at + 1;
            let parent = match after {
                0 => String::new(),
                after => format!("a{after}"),
            };
            let (prompt, answer) = (format!("u{turn}"), format!("a{turn}"));
            match self.is_pi {
                true => lines.extend([pi(&prompt, &parent), pi(&answer, &prompt)]),
                false => lines.extend([
                    claude(&prompt, &parent, "main"),
                    claude(&answer, &prompt, "main"),
                ]),
            }
        }
        lines
    }

    /// Returns the ids of the lines that lead to a turn, including the turn's own.
    fn way(&self, mut turn: usize) -> Vec<String> {
        let mut way = Vec::new();
        while turn > 0 {
            way.extend([format!("a{turn}"), format!("u{turn}")]);
            turn = self.after[turn - 1];
        }
        way.reverse();
        way
    }
}

fn turns() -> impl Strategy<Value = Turns> {
    let steps = prop::collection::vec((0..4u8, any::<prop::sample::Index>()), 1..9);
    (any::<bool>(), steps).prop_map(|(is_pi, steps)| Turns {
        is_pi,
        after: steps
            .iter()
            .enumerate()
            .map(|(turn, (kind, to))| match kind {
                0 | 1 => turn,
                _ => to.index(turn + 1),
            })
            .collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_branched_file_that_grows_keeps_each_word_once_in_each_line_of_conversation(
        turns in turns(),
        stops in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let lines = turns.lines();
            let mut stops: Vec<usize> = stops.iter().map(|stop| stop.index(lines.len()) + 1).collect();
            stops.sort_unstable();
            stops.push(lines.len());
            let memory = memory().open().await.unwrap();
            let mut new = 0;
            let mut main = Vec::new();
            for stop in stops {
                let imported = import(&memory, &lines[..stop].concat()).await;
                (main, new) = (imported.0, new + imported.1);
            }
            // The session that the file goes on in tells the way to the last turn, and nothing else.
            assert_eq!(main, turns.way(turns.after.len()));
            assert_eq!(new, lines.len() as u64);
            assert_eq!(import(&memory, &lines.concat()).await.1, 0);
            let known = told(&memory).await;
            let ways: HashSet<String> = known
                .iter()
                .map(|line| line.split_once(": ").unwrap().1.to_owned())
                .collect();
            let left: HashSet<usize> = (1..=turns.after.len()).filter(|turn| !turns.after.contains(turn)).collect();
            let expected: HashSet<String> = left.iter().map(|turn| turns.way(*turn).join(" ")).collect();
            assert_eq!(ways, expected, "{known:?}");
            assert_eq!(ways.len(), known.len());
            assert_eq!(memory.verify().await.unwrap().violations, []);
        });
    }

    #[test]
    fn sources_with_equal_beginnings_are_told_whole_in_any_order(
        sources in prop::collection::vec(prop::collection::vec(0..3u8, 0..5), 1..5),
        imports in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..12),
        is_plain in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // The words of a source. If lines have ids, each word begins with the word before it.
            let words = |source: &[u8]| -> Vec<String> {
                let mut words = vec!["u".to_owned()];
                for word in source {
                    let before = words.last().cloned().unwrap_or_default();
                    words.push(match is_plain {
                        true => word.to_string(),
                        false => format!("{before}{word}"),
                    });
                }
                words
            };
            let text = |words: &[String]| match is_plain {
                true => plain(&words.join(" ")),
                false => chain(&words.join(" ")),
            };
            let memory = memory().open().await.unwrap();
            let parts = imports.iter().map(|(source, part)| {
                let words = words(source.get::<Vec<u8>>(&sources));
                let part = part.index(words.len()) + 1;
                words[..part].to_vec()
            });
            let parts: Vec<Vec<String>> = parts.chain(sources.iter().map(|source| words(source))).collect();
            for part in &parts {
                let (main, _) = import(&memory, &text(part)).await;
                assert!(main.starts_with(part), "{part:?} is not the beginning of {main:?}");
            }
            let known = told(&memory).await;
            for part in &parts {
                assert_eq!(import(&memory, &text(part)).await.1, 0, "{part:?} in {known:?}");
            }
            // Each session equals an imported part of a source.
            let all: HashSet<String> = parts.iter().map(|part| part.join(" ")).collect();
            for line in &known {
                assert!(all.contains(line.split_once(": ").unwrap().1), "{line}");
            }
        });
    }
}

/// A store in which another process appends to the session `main` before each write.
#[derive(Debug)]
struct Overtaken {
    store: Arc<InMemoryStore>,
    other: Memory,
}

#[async_trait]
impl Layer for Overtaken {
    fn inner(&self) -> &dyn FullStore {
        &*self.store
    }

    async fn before_write(&self) -> memory_store::Result<Option<memory_store::Error>> {
        let session = self.other.session("main").await.unwrap();
        let number = session.entries().await.unwrap().len();
        let message = Message::user(format!("message {number}"));
        session.ingest(message).await.unwrap();
        Ok(None)
    }
}

#[tokio::test]
async fn an_import_gives_up_if_another_process_always_appends_first() {
    let store = Arc::new(InMemoryStore::new());
    let other = memory().store(Arc::clone(&store) as Arc<dyn FullStore>);
    let other = other.open().await.unwrap();
    let session = other.session("main").await.unwrap();
    let overtaken = Layered(Overtaken { store, other });
    let overtaken = memory().store(Arc::new(overtaken) as Arc<dyn FullStore>);
    let overtaken = overtaken.open().await.unwrap();
    let transcript = parse(&chain("u1 a1"));
    let error = overtaken.import(&transcript).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let moved = memory_store::ErrorKind::HeadMoved;
    assert_eq!(error.kind(), ErrorKind::Store(moved));
    assert!(error.to_string().contains("session main"), "{error}");
    // Nothing of the transcript is stored.
    let texts = session.entries().await.unwrap();
    assert!(
        texts
            .iter()
            .all(|entry| entry.text().starts_with("message"))
    );
}

/// Lines with queued words, attachments, a client's error, half a surrogate pair, and a time in another form.
const GROWING: &[&str] = &[
    r#"{"type":"user","uuid":"u0","sessionId":"s","timestamp":"2026-05-04T10:00:00Z","isCompactSummary":true,"message":{"role":"user","content":"what was"}}"#,
    r#"{"type":"user","uuid":"u1","sessionId":"s","timestamp":1780000000,"message":{"role":"user","content":"start \ud83d"}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"use gas"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"s"}"#,
    r#"{"type":"attachment","uuid":"q1","sessionId":"s","attachment":{"type":"queued_command","prompt":"and oil"}}"#,
    r#"{"type":"attachment","uuid":"q2","sessionId":"s","attachment":{"type":"hook_additional_context","content":["be brief"],"hookName":"x"}}"#,
    r#"{"type":"assistant","uuid":"e1","sessionId":"s","isApiErrorMessage":true,"message":{"id":"e","role":"assistant","content":[{"type":"text","text":"API Error"}]}}"#,
    r#"{"type":"assistant","uuid":"a1","sessionId":"s","message":{"id":"a","role":"assistant","content":[{"type":"text","text":"done"}]}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"and coal"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"s"}"#,
    r#"{"type":"user","uuid":"u9","sessionId":"s","message":{"role":"user","content":"end"}}"#,
];

/// An import line by line, as by a hook for a growing file, stores all entries in the order of the file.
#[tokio::test]
async fn a_file_that_grows_is_stored_as_a_whole_one() {
    for place in crate::support::plain().await {
        for count in 1..=GROWING.len() {
            let lines = parse(&GROWING[..count].join("\n"));
            let report = place.memory.import(&lines).await;
            let sessions = report.unwrap().sessions;
            assert!(sessions.iter().all(|session| session.conflicts == 0));
        }
        let session = place.memory.get_session("s").await.unwrap();
        let stored = session.entries().await.unwrap();
        let stored: Vec<_> = stored.iter().map(|entry| entry.message.clone()).collect();
        let whole = parse(&GROWING.join("\n"));
        assert_eq!(stored, whole.sessions[0].messages, "{}", place.name);
    }
}
