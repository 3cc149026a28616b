//! `audit`: measures compactions that an agent made, and leaves nothing behind.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Home, fixture, has, is, program};

/// A transcript of Claude Code, line by line.
struct Transcript {
    lines: Vec<Value>,
}

impl Transcript {
    /// A session with a rule, tasks, a changed file, a decision, a failing test, and two compactions that lose much of it.
    fn work() -> Self {
        let mut it = Self { lines: Vec::new() };
        it.user("From now on, never commit without asking ada@engine.org first.");
        it.user("Add a retry to the uploader in src/upload.rs, please.");
        let todos = json!([
            {"content": "Add the retry to the uploader", "status": "in_progress", "activeForm": "Adding"},
            {"content": "Measure the traffic of retries", "status": "pending", "activeForm": "Measuring"},
        ]);
        it.call(
            "TodoWrite",
            json!({"todos": todos}),
            "Todos have been modified.",
            false,
        );
        let edit = json!({"file_path": "/home/ada/uploader/src/upload.rs", "old_string": "send()", "new_string": "retry(send)"});
        it.call("Edit", edit, "The file has been updated.", false);
        let write = json!({"file_path": "/home/ada/uploader/src/backoff_table.rs", "content": "pub const WAITS: [u64; 5];"});
        it.call("Write", write, "File created.", false);
        it.assistant("We decided to double the wait after each attempt, up to 8000 milliseconds.");
        let failing = "error: test retry_stops_after_five failed";
        it.call(
            "Bash",
            json!({"command": "cargo test -p uploader"}),
            failing,
            true,
        );
        it.user("Make retry_stops_after_five pass, then describe the retry in docs/retry.md.");
        it.assistant("I read the test first.");
        let last = it.last();
        it.compaction(
            "auto",
            "The user wants a retry in the uploader (src/upload.rs). Open: add the retry to the uploader.\n\
             Newest: make retry_stops_after_five pass, then describe the retry in docs/retry.md.",
            &[last],
        );
        let sed = json!({"command": "sed -n 1,40p src/backoff_table.rs; grep -rn retry_stops_after_five src"});
        it.call("Bash", sed, "pub const WAITS: [u64; 5];", false);
        it.user("Why does it stop after four attempts?");
        it.compaction("manual", "Somebody works on an uploader.", &[]);
        it.call(
            "Read",
            json!({"file_path": "/home/ada/uploader/src/upload.rs"}),
            "retry(send)",
            false,
        );
        it
    }

    fn last(&self) -> String {
        self.lines.last().unwrap()["uuid"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn push(&mut self, mut line: Value) {
        let n = self.lines.len();
        let parent = (n > 0 && line["subtype"].is_null()).then(|| self.last());
        line["uuid"] = json!(format!("line-{n}"));
        line["parentUuid"] = json!(parent);
        line["sessionId"] = json!("uploader");
        line["timestamp"] = json!(format!("2026-03-02T09:{:02}:00.000Z", n));
        self.lines.push(line);
    }

    fn user(&mut self, text: &str) {
        self.push(json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    fn assistant(&mut self, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.push(
            json!({"type": "assistant", "message": {"role": "assistant", "content": content}}),
        );
    }

    fn call(&mut self, name: &str, input: Value, result: &str, failed: bool) {
        let id = format!("call-{}", self.lines.len());
        let call = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
        self.push(json!({"type": "assistant", "message": {"role": "assistant", "content": call}}));
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}]);
        self.push(json!({"type": "user", "message": {"role": "user", "content": result}}));
    }

    fn compaction(&mut self, trigger: &str, summary: &str, kept: &[String]) {
        let facts =
            json!({"trigger": trigger, "preTokens": 150_000, "preservedMessages": {"uuids": kept}});
        self.push(
            json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": facts}),
        );
        self.push(json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": summary}}));
    }

    fn save(&self, home: &Home) -> PathBuf {
        let lines: Vec<String> = self.lines.iter().map(Value::to_string).collect();
        home.file("work.jsonl", lines.join("\n") + "\n")
    }
}

fn counts(compaction: &Value, kind: &str) -> Value {
    let kinds = compaction["kinds"].as_array().unwrap();
    kinds
        .iter()
        .find(|one| one["kind"] == kind)
        .unwrap()
        .clone()
}

#[test]
fn what_a_compaction_loses_is_shown_with_the_command_that_returns_it() {
    let home = Home::new();
    Transcript::work().save(&home);
    let named = |out: &str| out.replace(program().to_str().unwrap(), "agent-memory");
    let text = home.ok(&["audit", "work.jsonl"]);
    insta::assert_snapshot!("audit_text", named(&text.out));
    let json = home.ok(&["audit", "work.jsonl", "--json"]);
    insta::assert_snapshot!("audit_json", named(&json.out));
    json.says("redacted: 1 email, 1 user");
    assert!(!home.database().exists());
}

#[test]
fn the_figures_of_a_compaction_add_up() {
    let home = Home::new();
    Transcript::work().save(&home);
    let answer = home.json(&["audit", "work.jsonl", "--no-redact"]);
    has(
        &answer,
        "file session format messages compactions elsewhere total redacted",
    );
    is(
        &answer,
        json!({"session": "uploader", "format": "claude-code", "messages": 18, "redacted": null}),
    );
    let compactions = answer["compactions"].as_array().unwrap();
    let [first, second] = compactions.as_slice() else {
        panic!("{answer}");
    };
    is(
        first,
        json!({"trigger": "auto", "entry": "line-13", "seq": 14}),
    );
    is(
        &first["before"],
        json!({"messages": 13, "tokens_by_agent": 150_000}),
    );
    is(&first["after"], json!({"messages": 1, "added": 0}));
    // The kept message, three messages since, and the summary.
    is(&second["before"], json!({"messages": 4}));
    is(
        &second["after"],
        json!({"messages": 0, "summary": "Somebody works on an uploader."}),
    );
    is(
        &counts(first, "newest_request"),
        json!({"known": 1, "kept": 1, "agent_memory": 1}),
    );
    is(
        &counts(first, "standing_instruction"),
        json!({"known": 1, "kept": 0, "lost": 1, "agent_memory": 1}),
    );
    is(
        &counts(first, "changed_file"),
        json!({"known": 2, "kept": 1, "lost": 1, "missing_before": 0, "agent_memory": 2}),
    );
    is(
        &counts(first, "open_task"),
        json!({"known": 2, "kept": 1, "lost": 1}),
    );
    // The call since read the file again.
    is(
        &counts(second, "changed_file"),
        json!({"known": 2, "kept": 0, "lost": 2, "missing_before": 0}),
    );
    is(
        &counts(second, "standing_instruction"),
        json!({"known": 1, "lost": 0, "missing_before": 1}),
    );
    for one in compactions {
        let sum = |field: &str| {
            one["kinds"]
                .as_array()
                .unwrap()
                .iter()
                .map(|kind| kind[field].as_u64().unwrap())
                .sum::<u64>()
        };
        assert_eq!(
            sum("known"),
            sum("kept") + sum("lost") + sum("missing_before")
        );
        let items = one["items"].as_array().unwrap();
        assert_eq!(items.len() as u64, sum("known"));
        let after = &one["after"];
        let cache = &one["cache"];
        let number = |value: &Value| value.as_u64().unwrap();
        assert_eq!(
            number(&after["tokens"]),
            number(&cache["same"]) + number(&cache["rewritten"])
        );
        let parts =
            ["summary_tokens", "message_tokens", "added_tokens"].map(|part| number(&after[part]));
        assert_eq!(number(&after["tokens"]), parts.iter().sum::<u64>());
    }
    assert_eq!(answer["total"]["missing"], answer["total"]["recoverable"]);
}

#[test]
fn the_printed_commands_return_what_was_lost() {
    let home = Home::new();
    Transcript::work().save(&home);
    let answer = home.json(&["audit", "work.jsonl", "--no-redact"]);
    home.ok(&["import", "work.jsonl"]);
    let items = answer["compactions"][1]["items"].as_array().unwrap();
    let lost: Vec<&Value> = items.iter().filter(|item| item["kept"] == false).collect();
    assert!(lost.len() > 5, "{items:?}");
    for item in lost {
        let command = item["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let shown = home.ok(&words).out;
        let text = item["text"].as_str().unwrap();
        let name = text.rsplit('/').next().unwrap().trim_start_matches("$ ");
        let told = item["kind"] == "open_task" && shown.contains(text);
        assert!(told || shown.contains(name), "{command}: {shown}");
    }
}

#[test]
fn a_page_folds_out_what_was_lost() {
    let home = Home::new();
    Transcript::work().save(&home);
    let ran = home.ok(&["audit", "work.jsonl", "--html", "audit.html"]);
    ran.shows("audit.html: 2 compactions, ");
    let page = std::fs::read_to_string(home.path().join("audit.html")).unwrap();
    assert!(
        page.contains("default-src 'none'") && page.contains("<details><summary>"),
        "{page}"
    );
    assert!(
        page.contains("never commit without asking [redacted:email 1] first."),
        "{page}"
    );
    assert!(
        !page.contains("<script") && !page.contains("ada@engine.org") && !page.contains("src=\"")
    );
    home.fails(&["audit", "work.jsonl", "--html", "audit.html"], 4)
        .says("does not exist yet");
    let shown = home
        .ok(&["audit", "work.jsonl", "--html", "-", "--no-redact"])
        .out;
    assert!(shown.contains("ada@engine.org first."));
}

#[test]
fn markup_in_a_transcript_is_text_on_the_page() {
    let home = Home::new();
    let mut it = Transcript { lines: Vec::new() };
    it.user("From now on, never write <script>alert(1)</script> or </p></details> in pages.");
    it.assistant("Yes.");
    it.compaction("auto", "Nothing.", &[]);
    it.save(&home);
    let page = home.ok(&["audit", "work.jsonl", "--html", "-"]).out;
    assert!(
        !page.contains("<script") && page.contains("&lt;script>"),
        "{page}"
    );
}

#[test]
fn transcripts_of_agents_are_audited() {
    for (file, messages, kept, trigger) in [
        (
            "agents/claude-code/a6737539-e1d2-4567-9a63-931cf1b75242.jsonl",
            25,
            1,
            "manual",
        ),
        (
            "agents/claude-code/1f28f6c5-849a-423c-83b8-fb3a5901717b.jsonl",
            7,
            7,
            "manual",
        ),
        (
            "agents/qwen-code/42caf678-8182-4045-99c7-df1b7f986a11.jsonl",
            23,
            0,
            "manual",
        ),
        (
            "claude-code/parallel-and-sidechain/session.jsonl",
            20,
            0,
            "auto",
        ),
    ] {
        let home = Home::new();
        let root = fixture("jsonl/tiny").replace("jsonl/tiny/session.jsonl", file);
        let answer = home.json(&["audit", &root]);
        let [one] = answer["compactions"].as_array().unwrap().as_slice() else {
            panic!("{answer}");
        };
        assert_eq!(one["trigger"], trigger, "{file}");
        is(&one["before"], json!({"messages": messages}));
        is(&one["after"], json!({"messages": kept}));
        assert_eq!(
            answer["total"]["missing"], answer["total"]["recoverable"],
            "{file}"
        );
    }
}

#[test]
fn without_a_compaction_an_audit_says_what_it_needs() {
    let home = Home::new();
    let file = fixture("claude-code/bugfix");
    home.ok(&["audit", &file]).shows("no compaction was found");
    let answer = home.json(&["audit", &file]);
    assert_eq!(
        (
            answer["compactions"].clone(),
            answer["total"]["missing"].clone()
        ),
        (json!([]), json!(0))
    );
    // The only compaction of this file is in a branch that its user left.
    let branched = home.ok(&["audit", &fixture("pi/branched")]);
    branched.shows("Abandoned branches and sub-agents of the file have 1, which are not audited.");
    // A conversation that begins with its summary has no past to compare.
    let mut it = Transcript { lines: Vec::new() };
    it.compaction("auto", "All that was said.", &[]);
    it.user("Go on.");
    it.save(&home);
    home.ok(&["audit", "work.jsonl"])
        .shows("no compaction was found");
}

#[test]
fn files_that_are_no_transcripts_are_refused_and_damaged_lines_are_told() {
    let home = Home::new();
    home.fails(&["audit", "nowhere.jsonl"], 4);
    home.file("notes.txt", "not a transcript\n");
    home.fails(&["audit", "notes.txt"], 4);
    home.file("empty.jsonl", "");
    home.fails(&["audit", "empty.jsonl"], 4);
    let path = Transcript::work().save(&home);
    let mut text = std::fs::read_to_string(&path).unwrap();
    // The record of the first compaction is damaged, and the file ends in a line.
    text = text.replace("{\"compactMetadata\":{\"preTokens\":150000,\"preservedMessages\":{\"uuids\":[\"line-12\"]}", "{{");
    text.truncate(text.len() - 20);
    std::fs::write(&path, text).unwrap();
    let ran = home.ok(&["audit", "work.jsonl"]);
    ran.says("warning: line 14 of work.jsonl");
    // The summary alone shows that there was a compaction.
    ran.shows("2 compactions by the agent");
}
