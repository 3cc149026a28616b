//! The exported plain database, read with another SQLite client and compared with the raw transcript.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::Inspect as _;
use agent_memory::model::{Summary, SummaryId};
use agent_memory::testing::{Scripted, memory};
use agent_memory::{DagPolicy, ErrorKind, Message, Mode, Seq, Session, compaction::FreshTail};
use message_formats::ReadOptions;
use rusqlite::Connection;
use serde_json::Value;

fn policy() -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail {
            messages: 4,
            max_tokens: Some(2_000),
            max_part: None,
        },
        max_source_tokens: Some(1_500),
        condensed_min: 2,
        condensed_max: Some(3),
        max_depth: Some(2),
        ..DagPolicy::default()
    }
}

fn rows<T: rusqlite::types::FromSql>(db: &Connection, sql: &str) -> Vec<T> {
    let mut statement = db.prepare(sql).unwrap();
    let found = statement.query_map([], |row| row.get(0)).unwrap();
    found.map(Result::unwrap).collect()
}

fn one(db: &Connection, sql: &str) -> i64 {
    rows::<i64>(db, sql)[0]
}

/// Content of a Claude Code transcript, read from its raw lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Raw {
    /// Author and text.
    texts: Vec<(String, String)>,
    reasoning: Vec<String>,
    /// Id, tool and arguments.
    calls: Vec<(String, String, Value)>,
    /// Id of the call, and the text.
    results: Vec<(String, String)>,
}

fn raw(path: &Path) -> Raw {
    let mut raw = Raw::default();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if !["user", "assistant"].contains(&line["type"].as_str().unwrap_or_default()) {
            continue;
        }
        let author = line["type"].as_str().unwrap().to_owned();
        match &line["message"]["content"] {
            Value::String(text) => raw.texts.push((author, text.clone())),
            Value::Array(blocks) => {
                let texts: Vec<&str> = blocks
                    .iter()
                    .filter(|block| block["type"] == "text")
                    .filter_map(|block| block["text"].as_str())
                    .collect();
                if !texts.is_empty() {
                    raw.texts.push((author, texts.join("\n")));
                }
                for block in blocks {
                    let text = |key: &str| block[key].as_str().unwrap().to_owned();
                    if block["type"] == "thinking" {
                        raw.reasoning.push(text("thinking"));
                    } else if block["type"] == "tool_use" {
                        let call = (text("id"), text("name"), block["input"].clone());
                        raw.calls.push(call);
                    } else if block["type"] == "tool_result" {
                        let result = match &block["content"] {
                            Value::String(text) => text.clone(),
                            Value::Array(parts) => parts
                                .iter()
                                .filter_map(|part| part["text"].as_str())
                                .collect::<Vec<_>>()
                                .join("\n"),
                            _ => String::new(),
                        };
                        raw.results.push((text("tool_use_id"), result));
                    }
                }
            }
            _ => {}
        }
    }
    raw
}

fn exported(db: &Connection) -> Raw {
    let content = |kind: &str| -> Vec<String> {
        rows(
            db,
            &format!("select content from messages where event_type = '{kind}' order by seq"),
        )
    };
    let json = |kind: &str| -> Vec<Value> {
        let parse = |text: String| serde_json::from_str(&text).unwrap();
        content(kind).into_iter().map(parse).collect()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let authors = rows(
        db,
        "select role from messages where event_type = 'text' order by seq",
    );
    Raw {
        texts: authors.into_iter().zip(content("text")).collect(),
        reasoning: content("thinking"),
        calls: json("tool_call")
            .iter()
            .map(|call| (text(&call["id"]), text(&call["tool"]), call["args"].clone()))
            .collect(),
        results: json("tool_result")
            .iter()
            .map(|result| (text(&result["id"]), text(&result["result"])))
            .collect(),
    }
}

/// Compares the figures of every summary with figures that are counted in the plain tables.
fn check_figures(db: &Connection) -> (usize, usize) {
    type Node = (String, String, i64, i64, i64, i64);
    let mut statement = db
        .prepare(
            "select id, kind, token_count, descendant_count, descendant_token_count, source_message_token_count
               from summaries order by depth",
        )
        .unwrap();
    let nodes: Vec<Node> = statement
        .query_map([], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
            ))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let known: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.0.as_str(), node)).collect();
    let (mut leaves, mut condensed) = (0, 0);
    for (id, kind, _, count, tokens, source) in &nodes {
        let own = |what: &str| {
            one(
                db,
                &format!(
                    "select {what} from summary_messages s join messages m on m.id = s.message_id where s.summary_id = '{id}'"
                ),
            )
        };
        let (rows_of, cost) = (own("count(*)"), own("coalesce(sum(m.token_count), 0)"));
        // The containing node is `summary_id`; what went into it is `parent_summary_id`.
        let parts: Vec<String> = rows(
            db,
            &format!(
                "select parent_summary_id from summary_parents where summary_id = '{id}' order by ordinal"
            ),
        );
        let below = parts.iter().map(|part| known[part.as_str()]);
        let (mut counts, mut costs, mut sources) = (rows_of, cost, cost);
        for (_, _, tokens, count, descendants, source) in below {
            counts += count + 1;
            costs += descendants + tokens;
            sources += source;
        }
        assert_eq!((*count, *tokens, *source), (counts, costs, sources), "{id}");
        match kind.as_str() {
            "leaf" => {
                assert!(rows_of > 0 && parts.is_empty(), "{id}");
                leaves += 1;
            }
            _ => {
                assert!(!parts.is_empty(), "{id}");
                condensed += 1;
            }
        }
    }
    (leaves, condensed)
}

/// Compares depth, text and times of every summary with those of the session.
async fn check_summaries(db: &Connection, session: &Session) {
    let ids: Vec<String> = rows(db, "select id from summaries order by id");
    let ids: Vec<SummaryId> = ids.into_iter().map(SummaryId::new).collect();
    let column = |name: &str| -> Vec<String> {
        rows(
            db,
            &format!("select cast({name} as text) from summaries order by id"),
        )
    };
    let summaries = session.summaries(&ids).await.unwrap();
    let expected = |of: &dyn Fn(&Summary) -> String| -> Vec<String> {
        summaries.iter().flatten().map(of).collect()
    };
    assert_eq!(column("depth"), expected(&|one| one.depth.to_string()));
    assert_eq!(column("content"), expected(&|one| one.text().to_owned()));
    let earliest = expected(&|one| one.earliest_at.0.to_string());
    let latest = expected(&|one| one.latest_at.0.to_string());
    assert_ne!(earliest, latest);
    assert_eq!(column("earliest_at"), earliest);
    assert_eq!(column("latest_at"), latest);
}

#[tokio::test]
async fn it_holds_what_the_transcript_says() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory()
        .dag(policy())
        .sqlite(folder.path().join("memory.db"))
        .open()
        .await
        .unwrap();
    let path = crate::support::fixture("claude-code/bugfix");
    let transcript = message_formats::read_file(&path, &ReadOptions::default()).unwrap();
    memory.import(&transcript).await.unwrap();
    let session = memory
        .get_session(transcript.sessions[0].key.clone())
        .await
        .unwrap();
    let outcome = session.compact(Mode::Full).await.unwrap();
    assert!(outcome.published.get("condensed") > 1, "{outcome:?}");
    let notes = transcript.sessions[0].notes();
    assert!(notes > 0);

    let file = folder.path().join("plain.db");
    let written = memory.export_sqlite(&[], &file).await.unwrap();
    let db = Connection::open(&file).unwrap();
    let said = raw(&path);
    assert!(said.reasoning.len() > 2);
    assert_eq!(exported(&db), said);
    let roles: Vec<String> = rows(
        &db,
        "select distinct event_type || ' ' || role from messages where event_type <> 'text' order by 1",
    );
    assert_eq!(
        roles,
        [
            "thinking assistant",
            "tool_call assistant",
            "tool_result tool"
        ]
    );
    let (leaves, condensed) = check_figures(&db);
    assert!(leaves > 4 && condensed > 1);
    check_summaries(&db, &session).await;
    assert_eq!((leaves + condensed) as u64, written.summaries);

    // Rows cost what the log costs, and every row that is not summarized stands in the context.
    let info = session.info().await.unwrap().conversation;
    let cost = one(&db, "select sum(token_count) from messages");
    assert_eq!(cost, i64::try_from(info.tokens).unwrap());
    let shown: Vec<String> = rows(
        &db,
        "select summary_id from context_items where item_type = 'summary' order by ordinal",
    );
    let spans = session.spans().await.unwrap();
    let expected: Vec<String> = spans
        .iter()
        .filter_map(|span| Some(span.body.summary()?.to_string()))
        .collect();
    assert_eq!(shown, expected);
    let covered =
        "select coalesce(sum(n), 0) from (select count(*) as n from summary_messages where summary_id in
           (with recursive below(id) as (
              select summary_id from context_items where summary_id is not null
              union select parent_summary_id from summary_parents join below on summary_id = below.id)
            select id from below))";
    let raw_items = one(
        &db,
        "select count(*) from context_items where item_type = 'message'",
    );
    let all = one(&db, "select count(*) from messages");
    assert_eq!(one(&db, covered) + raw_items, all);
    assert_eq!(all, i64::try_from(written.messages).unwrap());

    // Parts are readable too, and nothing says that it is packed.
    let inputs: Vec<String> = rows(
        &db,
        "select tool_input from message_parts where part_type = 'tool' and tool_input is not null",
    );
    assert_eq!(inputs.len(), said.calls.len());
    let thoughts: Vec<String> = rows(
        &db,
        "select p.text_content from message_parts p join messages m on m.id = p.message_id
          where p.part_type = 'reasoning' order by m.seq",
    );
    assert_eq!(thoughts, said.reasoning);
    let texts: Vec<Option<String>> = rows(
        &db,
        "select text_content from message_parts where part_type = 'text'",
    );
    assert!(
        texts
            .iter()
            .all(|text| text.as_ref().is_some_and(|text| !text.is_empty()))
    );
    let broken: Vec<String> = rows(&db, "pragma foreign_key_check");
    assert_eq!(broken, Vec::<String>::new());

    // An existing file is not overwritten.
    let error = memory.export_sqlite(&[], &file).await.unwrap_err();
    assert!(error.to_string().contains("does not exist yet"), "{error}");
    let error = memory
        .export_sqlite(&["nobody".into()], &folder.path().join("none.db"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// What a model read before a segment is a source of its summary, and no part of it.
#[tokio::test]
async fn what_was_context_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory().dag(policy()).summarizer(Scripted::head_cut());
    let memory = memory.sqlite(folder.path().join("memory.db"));
    let memory = memory.open().await.unwrap();
    let path = crate::support::fixture("claude-code/bugfix");
    let transcript = message_formats::read_file(&path, &ReadOptions::default()).unwrap();
    memory.import(&transcript).await.unwrap();
    let key = transcript.sessions[0].key.clone();
    let session = memory.get_session(key).await.unwrap();
    session.compact(Mode::Full).await.unwrap();

    let file = folder.path().join("plain.db");
    memory.export_sqlite(&[], &file).await.unwrap();
    let db = Connection::open(&file).unwrap();
    let ids: Vec<String> = rows(&db, "select id from summaries where kind = 'leaf'");
    let ids: Vec<SummaryId> = ids.into_iter().map(SummaryId::new).collect();
    let leaves = session.summaries(&ids).await.unwrap();
    let mut leaves = leaves.iter().flatten();
    assert!(leaves.any(|leaf| leaf.sources != leaf.children));
    let twice = "select count(*) - count(distinct message_id) from summary_messages";
    assert_eq!(one(&db, twice), 0);
    check_figures(&db);
}

/// Notes are not exported as rows. In a log with as many notes as messages, a node counts only its messages.
#[tokio::test]
async fn notes_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory().dag(policy()).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    for n in 1..=200 {
        let text = format!("Message {n}: the module was renamed and its callers were changed.");
        let note = vec![memory_model::Part::text(format!("note {n}"))];
        let batch = vec![
            Message::user(text),
            Message::note(memory_model::Role::System, note),
        ];
        assert_eq!(session.ingest_batch(batch).await.unwrap().inserted(), 2);
    }
    session.compact(Mode::Full).await.unwrap();
    let file = folder.path().join("plain.db");
    memory.export_sqlite(&["s".into()], &file).await.unwrap();
    let db = Connection::open(&file).unwrap();
    assert_eq!(one(&db, "select count(*) from messages"), 200);
    check_figures(&db);
    let leaf = one(
        &db,
        "select sum(descendant_count) from summaries where kind = 'leaf'",
    );
    assert_eq!(leaf, one(&db, "select count(*) from summary_messages"));
}

/// A fork has rows for its own messages only. Shared messages are rows of its parent, and its context shows both.
#[tokio::test]
async fn forks_refer_to_what_they_share() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory().dag(policy()).open().await.unwrap();
    let parent = memory.session("parent").await.unwrap();
    crate::support::talk(&parent, 100).await;
    parent.compact(Mode::Full).await.unwrap();
    let child = parent.fork(Seq(70), "child").await.unwrap();
    crate::support::talk(&child, 10).await;
    let file = folder.path().join("plain.db");
    // The parent comes along.
    memory
        .export_sqlite(&["child".into()], &file)
        .await
        .unwrap();
    let db = Connection::open(&file).unwrap();
    let sessions: Vec<String> = rows(&db, "select session_id from conversations order by id");
    assert_eq!(sessions, ["parent", "child"]);
    let own: Vec<i64> = rows(
        &db,
        "select seq from messages m join conversations c on c.id = m.conversation_id
          where c.session_id = 'child' order by seq",
    );
    assert_eq!(own, (71..=80).collect::<Vec<i64>>());
    check_figures(&db);
    let shown = "from context_items i join conversations c on c.id = i.conversation_id where c.session_id = 'child'";
    let last = one(
        &db,
        &format!(
            "select count(*) {shown} and i.message_id in (select id from messages where conversation_id = c.id)"
        ),
    );
    assert_eq!(last, 10);
    assert!(
        one(
            &db,
            &format!("select count(*) {shown} and i.summary_id is not null")
        ) > 0
    );
}
