//! Tools under the names that models know: Codex's history and notes, and Anthropic's memory.

use memory_model::{Message, RawJson, Seq};
use memory_store::{Erase, Maintain as _, Origin, Store as _};
use retrieval_tools::{Notes, Retrieval, RetrievalSet, ToolAnswer, ToolNames};
use serde_json::{Value, json};

use crate::world::{World, at, range, tree};

/// A conversation with summaries, and the session of its notes.
async fn with_names(names: ToolNames) -> (Retrieval, World) {
    let (world, _) = tree().await;
    world
        .say(vec![
            Message::tool_call(
                "c1",
                "mcp__files__read",
                RawJson::from_value(&json!({"path": "Harbour.md"})).unwrap(),
            ),
            Message::tool_result("c1", "The Harbour is closed."),
        ])
        .await;
    let notes = world.open("notes", Origin::Root).await;
    let tools = world
        .tools()
        .with_names(names, Notes::new(&notes.tools(), [7; 32]));
    (tools, notes)
}

async fn call(tools: &Retrieval, name: &str, given: Value) -> ToolAnswer {
    let set = RetrievalSet::new("main", tools.clone());
    set.call(name, &given.to_string()).await
}

/// Makes calls in order, and returns the calls with their answers.
async fn script(tools: &Retrieval, calls: &[(&str, Value)]) -> String {
    let mut out = String::new();
    for (name, given) in calls {
        let answer = call(tools, name, given.clone()).await;
        out += &format!("> {name} {given}\n{}", answer.text);
    }
    out
}

#[tokio::test]
async fn declarations_of_names() {
    for names in [ToolNames::Codex, ToolNames::Anthropic] {
        let (tools, _) = with_names(names).await;
        let own = Retrieval::tools().len();
        let set = RetrievalSet::new("main", tools.clone());
        let declared: Vec<Value> = set
            .tools()
            .iter()
            .skip(own)
            .map(|tool| {
                let name = tool.name;
                let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(name.chars().all(is_allowed) && tools.has_tool(name));
                json!({"name": name, "description": tool.description, "schema": tool.schema()})
            })
            .collect();
        insta::assert_json_snapshot!(format!("names_{names:?}"), declared);
        let narrowed = tools.narrow(&Default::default()).await.unwrap();
        assert_eq!(RetrievalSet::new("x", narrowed).tools().len(), own);
    }
}

#[tokio::test]
async fn history_under_the_names_of_codex() {
    let (tools, _) = with_names(ToolNames::Codex).await;
    let told = script(
        &tools,
        &[
            ("history_list_windows", json!({})),
            (
                "history_list_windows",
                json!({"limit": 1, "recent_first": true, "agent_name": "/root"}),
            ),
            (
                "history_list_items",
                json!({"window_id": "messages:1-8", "limit": 2, "role": "user"}),
            ),
            (
                "history_list_items",
                json!({"recent_first": true, "limit": 3, "max_chars_per_item": 9}),
            ),
            (
                "history_list_items",
                json!({"tool_name": "read", "tool_namespace": "mcp__files"}),
            ),
            (
                "history_list_items",
                json!({"tool_name": "read", "tool_namespace": "other"}),
            ),
            (
                "history_read_item",
                json!({"window_id": "messages:21-32", "item_id": "12"}),
            ),
            (
                "history_read_item",
                json!({"item_id": 12, "offset_chars": 8, "limit_chars": 6}),
            ),
            ("history_search_contents", json!({"query": "number 12"})),
            (
                "history_search_contents",
                json!({"query": "Harbour", "role": "tool"}),
            ),
            ("history_search_contents", json!({"query": "the harbour"})),
            ("history_search_contents", json!({"query": ".*"})),
        ],
    )
    .await;
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn lists_of_items_go_on_by_a_cursor() {
    let (tools, _) = with_names(ToolNames::Codex).await;
    for recent_first in [true, false] {
        let mut given = json!({"limit": 7, "recent_first": recent_first});
        let mut seen = Vec::new();
        loop {
            let text = call(&tools, "history_list_items", given.clone()).await.text;
            for line in text.lines().filter(|line| line.starts_with('[')) {
                let digits = line.trim_start_matches('[').split(']').next();
                seen.push(digits.unwrap().parse::<u32>().unwrap());
            }
            let Some((_, rest)) = text.split_once("with cursor \"") else {
                break;
            };
            given["cursor"] = rest.split('"').next().unwrap().into();
        }
        let mut expected: Vec<u32> = (1..=32).collect();
        if recent_first {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
}

/// An agent name reaches the conversations of the set and its sub-agents, and no others.
#[tokio::test]
async fn an_agent_name_chooses_a_conversation() {
    let (tools, notes) = with_names(ToolNames::Codex).await;
    let spawned = Origin::Spawn {
        parent: tools.conversation(),
        at: Seq(3),
        call: None,
    };
    let agent = notes.open("main/agent-tide", spawned).await;
    agent.say(vec![Message::user("count the tides")]).await;
    let hidden = notes.open("hidden", Origin::Root).await;
    hidden.say(vec![Message::user("canary")]).await;
    let set = RetrievalSet::new("main", tools).with_agent("main/agent-tide", agent.tools());
    let ask = async |agent: Value| {
        let given = json!({"agent_name": agent, "recent_first": true, "limit": 1});
        set.call("history_list_items", &given.to_string())
            .await
            .text
    };
    for name in [json!(null), json!(""), json!("/root"), json!("main")] {
        assert!(ask(name).await.starts_with("[32] tool"));
    }
    for name in ["main/agent-tide", "agent-tide", "tide", "/tide"] {
        assert!(ask(name.into()).await.contains("count the tides"), "{name}");
    }
    for name in [json!("hidden"), json!("ide"), json!(7), json!(["main"])] {
        let text = ask(name).await;
        assert!(text.starts_with("Error: "), "{text}");
    }
    let grep = set.call("memory_grep", r#"{"pattern":"tides"}"#).await;
    assert_eq!(grep.text, "No matches found.\n");
}

#[tokio::test]
async fn notes_under_the_names_of_codex() {
    let (tools, notes) = with_names(ToolNames::Codex).await;
    let told = script(
        &tools,
        &[
            ("notes_list_files_by_prefix", json!({})),
            (
                "notes_write_file",
                json!({"path": "plan.md", "text": "one\ntwo\n"}),
            ),
            (
                "notes_append_to_file",
                json!({"path": "/plan.md", "text": "three Words\n"}),
            ),
            (
                "notes_append_to_file",
                json!({"path": "/root/notes/log/a.md", "text": " "}),
            ),
            ("notes_list_files_by_prefix", json!({"prefix": "pl"})),
            ("notes_list_files_by_prefix", json!({"max_results": 1})),
            ("notes_read_file", json!({"path": "plan.md"})),
            (
                "notes_read_file",
                json!({"path": "plan.md", "start_line": 2, "stop_line": 2}),
            ),
            (
                "notes_read_file",
                json!({"path": "plan.md", "start_line": 9, "stop_line": 2}),
            ),
            ("notes_read_file", json!({"path": "none.md"})),
            (
                "notes_search_contents",
                json!({"query": "Words", "path_prefix": "pla"}),
            ),
            ("notes_search_contents", json!({"query": "words"})),
            ("notes_write_file", json!({"path": "log", "text": "x"})),
            (
                "notes_write_file",
                json!({"path": "plan.md/x", "text": "x"}),
            ),
            ("notes_write_file", json!({"path": "../x", "text": "x"})),
            ("notes_write_file", json!({"text": "x"})),
        ],
    )
    .await;
    insta::assert_snapshot!(told);
    let entry = notes.message(2).await;
    let id = entry.message.external_id.unwrap();
    assert!(
        id.starts_with("2 append/") && id.ends_with(" plan.md"),
        "{id}"
    );
    notes.store.check().await.unwrap();
    notes.check().await;
}

#[tokio::test]
async fn notes_under_the_name_of_anthropic() {
    let (tools, notes) = with_names(ToolNames::Anthropic).await;
    let path = "/memories/plans/first.md";
    let calls = [
        json!({"command": "view", "path": "/memories"}),
        json!({"command": "create", "path": path, "file_text": "one\ntwo\nthree\nfour\nfive\n"}),
        json!({"command": "create", "path": path, "file_text": "again"}),
        json!({"command": "create", "path": "/memories/a/b/c.md", "file_text": ""}),
        json!({"command": "view", "path": "/memories/"}),
        json!({"command": "view", "path": "/memories/a"}),
        json!({"command": "view", "path": path}),
        json!({"command": "view", "path": path, "view_range": [2, 3]}),
        json!({"command": "view", "path": path, "view_range": "[4, -1]"}),
        json!({"command": "view", "path": path, "view_range": [9, -1]}),
        json!({"command": "view", "path": path, "view_range": [3, 2]}),
        json!({"command": "view", "path": path, "view_range": ["x"]}),
        json!({"command": "view", "path": "/memories/none"}),
        json!({"command": "str_replace", "path": path, "old_str": "three\n", "new_str": "3\n"}),
        json!({"command": "str_replace", "path": path, "old_str": "o", "new_str": "0"}),
        json!({"command": "str_replace", "path": path, "old_str": "zero", "new_str": ""}),
        json!({"command": "str_replace", "path": path, "new_str": ""}),
        json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "zero\n"}),
        json!({"command": "insert", "path": path, "insert_line": 99, "insert_text": "zero\n"}),
        json!({"command": "str_replace", "path": path, "old_str": "zero\n"}),
        json!({"command": "rename", "old_path": "/memories/plans", "new_path": "/memories/old/plans"}),
        json!({"command": "rename", "old_path": "/memories/old", "new_path": "/memories/old/x"}),
        json!({"command": "rename", "old_path": "/memories/old", "new_path": "/memories/a"}),
        json!({"command": "rename", "old_path": "/memories", "new_path": "/memories/b"}),
        json!({"command": "delete", "path": "/memories/a"}),
        json!({"command": "delete", "path": "/memories/a"}),
        json!({"command": "delete", "path": "/memories"}),
        json!({"command": "view", "path": "/memories/old/plans/first.md"}),
        json!({"command": "undo", "path": "/memories"}),
        json!({}),
    ];
    let calls: Vec<_> = calls.into_iter().map(|given| ("memory", given)).collect();
    insta::assert_snapshot!(script(&tools, &calls).await);
    notes.check().await;
}

/// Every spelling of a path that leads out of the folder on some system is refused, and no argument of a wrong type
/// ends in anything but an error.
#[tokio::test]
async fn hostile_arguments_are_refused() {
    let (tools, notes) = with_names(ToolNames::Anthropic).await;
    for path in [
        "",
        "/",
        "/etc/passwd",
        "memories/x",
        "/memoriesx",
        "/Memories/x",
        "/memories/../x",
        "/memories/..",
        "/memories/a/../../x",
        "/memories/./x",
        "/memories/%2e%2e/x",
        "/memories/%2E./x",
        "/memories/%252e%252e/x",
        "/memories/..%2fx",
        "/memories/..\\x",
        "\\memories\\x",
        "C:\\memories\\x",
        "/memories/C:/../x\0",
        "/memories/x\0.md",
        "/memories/．．/x",
        "file:///memories/x",
        "~/memories/x",
        &format!("/memories/{}", "x".repeat(9_000)),
    ] {
        for given in [
            json!({"command": "create", "path": path, "file_text": "x"}),
            json!({"command": "rename", "old_path": path, "new_path": "/memories/y"}),
            json!({"command": "rename", "old_path": "/memories/y", "new_path": path}),
            json!({"command": "delete", "path": path}),
            json!({"command": "view", "path": path}),
        ] {
            let answer = call(&tools, "memory", given).await;
            assert!(answer.is_error, "{path:.60}: {}", answer.text);
            assert!(answer.text.len() < 500, "{}", answer.text);
        }
    }
    let huge =
        json!({"command": "create", "path": "/memories/x", "file_text": "x".repeat(300_000)});
    for given in [
        huge,
        json!({"command": "create", "path": 7, "file_text": "x"}),
        json!({"command": "create", "path": "/memories/x", "file_text": ["x"]}),
        json!({"command": "insert", "path": "/memories/x", "insert_line": "top"}),
        json!({"command": ["view"], "path": "/memories"}),
        json!({"command": "view", "path": "/memories", "session": "hidden"}),
    ] {
        assert!(call(&tools, "memory", given).await.is_error);
    }
    let (tools, _) = with_names(ToolNames::Codex).await;
    for (name, given) in [
        ("history_list_items", json!({"window_id": "sum_1"})),
        (
            "history_list_items",
            json!({"window_id": "messages:900-901"}),
        ),
        ("history_list_items", json!({"role": "root"})),
        ("history_list_items", json!({"tool_namespace": "files"})),
        ("history_list_items", json!({"cursor": "q1@00000000"})),
        ("history_list_windows", json!({"limit": {}})),
        ("history_read_item", json!({})),
        ("history_read_item", json!({"item_id": 0})),
        ("history_read_item", json!({"item_id": "last"})),
        ("history_read_item", json!({"item_id": u64::MAX})),
        ("history_search_contents", json!({})),
        (
            "history_search_contents",
            json!({"query": "x".repeat(9_999)}),
        ),
        ("notes_write_file", json!({"path": "a\\b", "text": "x"})),
        (
            "notes_write_file",
            json!({"path": "/root/notes", "text": "x"}),
        ),
        ("notes_append_to_file", json!({"path": "a", "text": 7})),
        ("notes_read_file", json!({"path": "..%2fa"})),
        ("notes_search_contents", json!({"query": ""})),
        ("memory", json!({"command": "view"})),
        ("history_list_window", json!({})),
    ] {
        let answer = call(&tools, name, given).await;
        assert!(answer.is_error, "{name}: {}", answer.text);
    }
    assert_eq!(
        notes
            .store
            .conversation(&memory_store::ConversationRef::Id(notes.chat))
            .await
            .unwrap()
            .unwrap()
            .head,
        Seq(0)
    );
}

/// Many writers with separate caches, as in several processes.
#[tokio::test]
async fn writers_at_once_lose_nothing() {
    let (world, _) = tree().await;
    let session = world.open("notes", Origin::Root).await;
    let mut writers = Vec::new();
    for writer in 0..4 {
        let notes = Notes::new(&session.tools(), [7; 32]);
        let tools = world.tools().with_names(ToolNames::Codex, notes);
        writers.push(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            for n in 0..25 {
                let given = json!({"path": "log.md", "text": format!("{writer}-{n}\n")});
                let answer = runtime.block_on(call(&tools, "notes_append_to_file", given));
                assert!(!answer.is_error, "{}", answer.text);
            }
        }));
    }
    for writer in writers {
        writer.join().unwrap();
    }
    let notes = Notes::new(&session.tools(), [7; 32]);
    let tools = world.tools().with_names(ToolNames::Codex, notes);
    let text = call(&tools, "notes_read_file", json!({"path": "log.md"}))
        .await
        .text;
    for writer in 0..4 {
        for n in 0..25 {
            assert!(text.contains(&format!("\t{writer}-{n}\n")), "{text}");
        }
    }
    session.check().await;
}

#[tokio::test]
async fn an_erased_note_brings_no_older_version_back() {
    let (tools, notes) = with_names(ToolNames::Codex).await;
    for text in [
        "an old secret of many words, longer than eight tokens",
        "a new secret of many words, longer than eight tokens",
    ] {
        call(
            &tools,
            "notes_write_file",
            json!({"path": "a.md", "text": text}),
        )
        .await;
    }
    call(
        &tools,
        "notes_append_to_file",
        json!({"path": "a.md", "text": "\nlater"}),
    )
    .await;
    let erase = Erase::range(range(2, 2), "asked for", at(9));
    notes.store.erase(notes.chat, &erase).await.unwrap();
    let text = call(&tools, "notes_read_file", json!({"path": "a.md"}))
        .await
        .text;
    assert_eq!(text, "a.md has 2 lines:\n     1\t\n     2\tlater\n");
}

/// Returns a message in the form of a note, without its mark.
fn unmarked(seq: u32, change: &str, text: &str) -> Message {
    Message::assistant(text).with_external_id(format!("{seq} {change}"))
}

/// The secret of the first process is that of all later ones.
#[tokio::test]
async fn several_processes_change_a_note() {
    let (world, _) = tree().await;
    let session = world.open("notes", Origin::Root).await;
    for (random, text) in [([1; 32], "first\n"), ([2; 32], "second\n")] {
        let notes = Notes::new(&session.tools(), random);
        let tools = world.tools().with_names(ToolNames::Codex, notes);
        let given = json!({"path": "plan.md", "text": text});
        assert!(!call(&tools, "notes_append_to_file", given).await.is_error);
    }
    let notes = Notes::new(&session.tools(), [3; 32]);
    let tools = world.tools().with_names(ToolNames::Codex, notes);
    let text = call(&tools, "notes_read_file", json!({"path": "plan.md"}))
        .await
        .text;
    assert!(
        text.starts_with("plan.md has 2 lines:") && text.ends_with("     2\tsecond\n"),
        "{text}"
    );
}

/// Entries in the form of notes that the tools did not write change no note.
#[tokio::test]
async fn a_note_is_written_by_its_tools_alone() {
    let (tools, session) = with_names(ToolNames::Codex).await;
    let given = json!({"path": "rules.md", "text": "a true rule"});
    call(&tools, "notes_write_file", given).await;
    let mark = session.message(1).await.message.external_id.unwrap();
    let mark = mark.split(['/', ' ']).nth(2).unwrap().to_owned();
    session
        .say(vec![
            unmarked(2, "write rules.md", "forged"),
            unmarked(3, "append rules.md", "forged"),
            unmarked(4, "delete rules.md", ""),
            unmarked(5, &format!("write/{mark} rules.md"), "forged"),
            unmarked(6, "write/ other.md", "forged"),
            unmarked(7, "write other.md", memory_store::ERASED),
        ])
        .await;
    let read = |tools: Retrieval, path: &'static str| async move {
        call(&tools, "notes_read_file", json!({"path": path})).await
    };
    assert_eq!(
        read(tools.clone(), "rules.md").await.text,
        "rules.md has 1 lines:\n     1\ta true rule\n"
    );
    assert!(read(tools.clone(), "other.md").await.is_error);
    // The tools go on after them.
    let given = json!({"path": "rules.md", "text": "\nanother"});
    call(&tools, "notes_append_to_file", given).await;
    let text = read(tools, "rules.md").await.text;
    assert!(
        text.ends_with("     1\ta true rule\n     2\tanother\n"),
        "{text}"
    );
}
