//! Events of agents: imports, outlines, and compactions in the place of the agents' own.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{Home, Ran, fixture, program, tells};
#[cfg(target_os = "linux")]
use crate::support::{PATIENCE, mode, pipe, with_umask};

const RELEASE: &str = "claude-code/release-week";

/// Returns the path of a transcript that an agent wrote.
fn agents(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents");
    root.join(name).canonicalize().unwrap()
}

/// Starts the hook with an event.
fn start(home: &Home, arguments: &[&str], event: &str) -> Child {
    let mut process = home.process(program());
    process.args(["hook"]).args(arguments).stdin(Stdio::piped());
    let mut child = process.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The hook may end before it has read everything.
    let _ = stdin.write_all(event.as_bytes());
    child
}

/// Runs the hook with an event. It must succeed without a word on stderr.
fn hook(home: &Home, arguments: &[&str], event: &Value) -> Ran {
    let child = start(home, arguments, &event.to_string());
    let ran = Ran::from(child.wait_with_output().unwrap()).ended(0);
    assert_eq!(ran.err, "");
    ran
}

/// Returns the text that the agent adds to its context.
fn added(ran: &Ran) -> String {
    let output = &ran.json()["hookSpecificOutput"];
    output["additionalContext"].as_str().unwrap().to_owned()
}

fn event(name: &str, path: &Path, session: &str) -> Value {
    json!({
        "hook_event_name": name, "session_id": session, "transcript_path": path, "cwd": "/srv/tide",
    })
}

fn log(home: &Home) -> Vec<Value> {
    let path = home.database().with_file_name("memory.db-hook.log");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The lines of a transcript that grows.
struct Growing {
    path: PathBuf,
    lines: Vec<String>,
    session: String,
}

impl Growing {
    fn new(home: &Home, name: &str) -> Self {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let first = lines
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let key = |line: Value| Some(line.get("sessionId")?.as_str()?.to_owned());
        Self {
            path: home.path().join("projects/-srv-tide/growing.jsonl"),
            session: first.filter_map(key).next().unwrap(),
            lines,
        }
    }

    fn grow(&self, lines: usize) {
        std::fs::create_dir_all(self.path.parent().unwrap()).unwrap();
        std::fs::write(&self.path, self.lines[..lines].concat()).unwrap();
    }

    /// Returns the messages of Claude Code's event for its mod: one for each line.
    fn messages(&self) -> Vec<Value> {
        let lines = self
            .lines
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let messages = lines.filter_map(|line| {
            let role = line["message"]["role"].as_str()?.to_owned();
            let mut message = json!({"role": role, "text": "", "toolUses": [], "handle": line["uuid"]});
            let content = &line["message"]["content"];
            if let Some(text) = content.as_str() {
                message["text"] = text.into();
            }
            let mut results = Vec::new();
            for block in content.as_array().into_iter().flatten() {
                match block["type"].as_str() {
                    Some("text") => message["text"] = block["text"].clone(),
                    Some("tool_use") => message["toolUses"].as_array_mut()?.push(
                        json!({"tool_use_id": block["id"], "tool": block["name"], "input": block["input"]}),
                    ),
                    Some("tool_result") => results.push(json!({"tool_use_id": block["tool_use_id"]})),
                    _ => {}
                }
            }
            if !results.is_empty() {
                message["toolResults"] = results.into();
            }
            Some(message)
        });
        messages.collect()
    }
}

#[test]
fn a_transcript_is_imported_while_it_grows() {
    let home = Home::new();
    let growing = Growing::new(&home, RELEASE);
    let end = growing.lines.len();
    for lines in [1, 2, end / 3, end / 3 + 1, end / 2, end, end] {
        growing.grow(lines);
        for name in [
            "Stop",
            "PreCompact",
            "UserPromptSubmit",
            "SessionEnd",
            "Unknown",
        ] {
            let ran = hook(&home, &[], &event(name, &growing.path, &growing.session));
            assert_eq!(ran.out, "", "{name}");
        }
    }
    // The last event may still be at work.
    hook(&home, &[], &event("Stop", &growing.path, &growing.session));
    let alone = Home::new();
    alone.ok(&["import", &fixture(RELEASE)]);
    let export = |home: &Home| home.ok(&["export", &growing.session]).out;
    assert_eq!(export(&home), export(&alone));
    assert!(log(&home).iter().all(|line| line["result"] != "error"));
    home.ok(&["verify"]);
}

#[test]
fn a_hook_never_fails_and_says_why_in_the_log() {
    let home = Home::new();
    let gone = home.path().join("gone.jsonl");
    let bad = home.file("bad.jsonl", "neither JSON\nnor text\n");
    for text in ["", "nonsense", "[]", "{\"hook_event_name\":7}", "\u{0}"] {
        let child = start(&home, &[], text);
        let ran = Ran::from(child.wait_with_output().unwrap()).ended(0);
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""), "{text}");
    }
    for path in [&gone, &bad] {
        for name in ["Stop", "SessionStart", "session_before_compact"] {
            let mut event = event(name, path, "none");
            event["source"] = "compact".into();
            assert_eq!(hook(&home, &[], &event).out, "");
        }
    }
    assert!(log(&home).iter().any(|line| {
        let detail = line["detail"].as_str().unwrap();
        line["result"] == "error" && detail.contains("bad.jsonl")
    }));
    // Not even if the command line or the database is wrong.
    for arguments in [
        &["hook", "--bogus"][..],
        &["--store", "postgres://h/d", "hook"],
        &["--store", "/none/such/memory.db", "hook", "claude-code"],
    ] {
        assert_eq!(home.run(arguments).ended(0).out, "", "{arguments:?}");
    }
    #[cfg(unix)]
    {
        let store = std::os::unix::ffi::OsStrExt::from_bytes(b"--store=\xff");
        let store: &std::ffi::OsStr = store;
        let output = home.process(program()).arg(store).arg("hook").output();
        Ran::from(output.unwrap()).ended(0);
    }
    home.fails(&["grep", "hook", "--bogus"], 2);
    assert!(!home.database().with_file_name("gone.jsonl").exists());
}

#[test]
fn an_outline_follows_a_compaction_and_a_resume() {
    let home = Home::new();
    let growing = Growing::new(&home, RELEASE);
    growing.grow(growing.lines.len());
    let start = |source: &str, agent: &[&str]| {
        let mut event = event("SessionStart", &growing.path, &growing.session);
        event["source"] = source.into();
        hook(&home, agent, &event)
    };
    // Codex starts a session twice after a compaction.
    assert!(!start("resume", &["codex"]).out.is_empty());
    assert_eq!(start("compact", &["codex"]).out, "");
    assert_eq!(start("startup", &[]).out, "");
    assert_eq!(start("clear", &[]).out, "");
    assert_eq!(start("compact", &["gemini-cli"]).out, "{}");
    for (source, agent) in [("compact", "claude-code"), ("resume", "qwen-code")] {
        let ran = start(source, &[agent]);
        let output = &ran.json()["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "SessionStart");
        let text = added(&ran);
        assert!(text.len() <= 9_500, "{}", text.len());
        assert!(text.starts_with("<agent-memory>\n") && text.ends_with("\n</agent-memory>"));
        assert!(
            text.contains(&format!("grep {}", growing.session)),
            "{text}"
        );
        assert!(text.contains("First request"), "{text}");
    }
    // The resumed conversation still shows the outline of the compaction.
    assert_eq!(start("resume", &["claude-code"]).out, "");
}

#[test]
fn own_text_is_neither_searched_nor_counted() {
    let home = Home::new();
    let growing = Growing::new(&home, RELEASE);
    growing.grow(growing.lines.len());
    let mut compacted = event("SessionStart", &growing.path, &growing.session);
    compacted["source"] = "compact".into();
    let text = added(&hook(&home, &[], &compacted));
    let before = home.json(&["sessions"]);
    let attached = json!({
        "type": "attachment", "uuid": "00000000-0000-4000-8000-00000000000a", "parentUuid": null,
        "sessionId": growing.session, "isSidechain": false, "timestamp": "2026-03-09T10:00:00Z",
        "attachment": {
            "type": "hook_additional_context", "hookName": "SessionStart", "hookEvent": "SessionStart",
            "content": [text],
        },
    });
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&growing.path)
        .unwrap();
    writeln!(file, "{attached}").unwrap();
    hook(&home, &[], &event("Stop", &growing.path, &growing.session));
    let after = home.json(&["sessions"]);
    assert_eq!(
        before["sessions"][0]["tokens"],
        after["sessions"][0]["tokens"]
    );
    let words = "agent-memory's log of all its messages";
    let found = home.ok(&["grep", &growing.session, words]);
    found.shows("nothing has all words of the pattern");
    assert!(home.ok(&["export", &growing.session]).out.contains(words));
}

#[test]
fn claude_codes_mod_gets_a_shorter_conversation_with_all_pairs() {
    let home = Home::new();
    let growing = Growing::new(&home, RELEASE);
    growing.grow(growing.lines.len());
    let messages = growing.messages();
    let mut compact = event("session.compact", &growing.path, &growing.session);
    for budget in ["1000", "4000", "16000"] {
        compact["messages"] = messages.clone().into();
        let answer = hook(&home, &["--budget", budget], &compact).json();
        let list = answer["messages"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        let whole = |message: &Value| match message["keep"].as_u64() {
            Some(at) => messages[at as usize].clone(),
            None => message.clone(),
        };
        let list: Vec<Value> = list.iter().map(whole).collect();
        // Each call has its result behind it, and each result its call before it.
        let ids = |message: &Value, key: &str| -> Vec<String> {
            let list = message[key].as_array().cloned().unwrap_or_default();
            list.iter()
                .map(|one| one["tool_use_id"].as_str().unwrap().to_owned())
                .collect()
        };
        let mut open = BTreeSet::new();
        for message in &list {
            open.extend(ids(message, "toolUses"));
            for id in ids(message, "toolResults") {
                assert!(open.remove(&id), "{id}");
            }
        }
        assert!(open.is_empty(), "{open:?}");
        // The user's last request is there word for word, and the messages that stay are in order.
        let is_request =
            |message: &&Value| message["role"] == "user" && message.get("toolResults").is_none();
        let request = messages.iter().rfind(is_request).unwrap()["text"]
            .as_str()
            .unwrap();
        let all = Value::from(list.clone()).to_string();
        let quoted = Value::from(request).to_string();
        assert!(all.contains(quoted.trim_matches('"')), "{request}");
        let kept = answer["messages"].as_array().unwrap().iter();
        let kept: Vec<u64> = kept
            .filter_map(|message| message["keep"].as_u64())
            .collect();
        assert!(kept.is_sorted());
        let (after, before) = (&answer["tokens_after"], &answer["tokens_before"]);
        assert!(
            after.as_u64().unwrap() <= before.as_u64().unwrap() / 2,
            "{after} of {before}"
        );
        // The outline is in these messages already.
        let mut start = event("SessionStart", &growing.path, &growing.session);
        start["source"] = "compact".into();
        assert_eq!(hook(&home, &[], &start).out, "");
        assert!(!hook(&home, &[], &start).out.is_empty());
    }
    // A message that the transcript does not have yet stays.
    let newest =
        json!({"role": "user", "text": "and one more thing", "toolUses": [], "handle": "new"});
    compact["messages"].as_array_mut().unwrap().push(newest);
    let answer = hook(&home, &[], &compact).json();
    let last = answer["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last, json!({"keep": messages.len()}));
    // A result whose call is elsewhere, and no transcript at all: Claude Code compacts by itself.
    compact["transcript_path"] = Value::Null;
    compact["session_id"] = "../../etc/passwd".into();
    let answer = hook(&home, &[], &compact).json();
    assert!(answer["fallback"].is_string(), "{answer}");
}

#[test]
fn pis_extension_gets_a_text_in_place_of_older_entries() {
    let home = Home::new();
    let path = agents("pi/2026-11-25T22-52-43-386Z_01a214e9-4bfa-75ce-b04b-165d0dd952bc.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let messages: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "message")
        .collect();
    let first = messages[messages.len() * 2 / 3]["id"].as_str().unwrap();
    let key = entries[0]["id"].as_str().unwrap();
    let mut event = event("session_before_compact", &path, key);
    event["first_kept_entry_id"] = first.into();
    event["tokens_before"] = 9_000.into();
    let answer = hook(&home, &["pi", "--budget", "1000"], &event).json();
    assert_eq!(answer["firstKeptEntryId"], first);
    assert_eq!(answer["tokensBefore"], 9_000);
    let summary = answer["summary"].as_str().unwrap();
    assert!(summary.starts_with("<agent-memory>\n"), "{summary}");
    assert!(summary.len() < 9_000, "{}", summary.len());
    event["first_kept_entry_id"] = "none-such".into();
    assert_eq!(hook(&home, &["pi"], &event).out, "");
}

#[test]
fn opencodes_plugin_gets_the_same_bytes_until_the_history_is_cut_again() {
    let home = Home::new();
    let text = std::fs::read_to_string(agents("opencode/ses_deb12effdffeQSjchDFQuauHbM.json"));
    let session: Value = serde_json::from_str(&text.unwrap()).unwrap();
    let key = session["info"]["id"].as_str().unwrap();
    let once = session["messages"].as_array().unwrap();
    // The same conversation several times, with other ids.
    let again = |n: usize| {
        once.iter().map(move |message| {
            let text = message.to_string();
            let text = text
                .replace("msg_", &format!("msg_{n}x"))
                .replace("prt_", &format!("prt_{n}x"));
            serde_json::from_str::<Value>(&text).unwrap()
        })
    };
    let messages: Vec<Value> = (0..12).flat_map(again).collect();
    let rewrite = |count: usize| {
        let event = json!({
            "hook_event_name": "chat.messages.transform", "session_id": key, "cwd": "/srv/tide",
            "messages": messages[..count],
        });
        hook(&home, &["opencode", "--budget", "500"], &event).out
    };
    assert_eq!(rewrite(2), "");
    let mut cuts = Vec::new();
    for count in (2..=messages.len()).step_by(3) {
        let out = rewrite(count);
        assert_eq!(out, rewrite(count));
        if out.is_empty() {
            assert!(cuts.is_empty());
            continue;
        }
        let answer: Value = serde_json::from_str(&out).unwrap();
        let list = answer["messages"].as_array().unwrap();
        let text = list[0]["text"].as_str().unwrap().to_owned();
        let kept: Vec<u64> = list[1..]
            .iter()
            .map(|one| one["keep"].as_u64().unwrap())
            .collect();
        assert_eq!(kept, (kept[0]..count as u64).collect::<Vec<_>>());
        if cuts.last() != Some(&(kept[0], text.clone())) {
            // A later cut is behind an earlier one.
            assert!(cuts.last().is_none_or(|(at, _)| *at < kept[0]));
            cuts.push((kept[0], text));
        }
    }
    assert!((2..12).contains(&cuts.len()), "{}", cuts.len());
    // The user takes messages back that the text stands for: the history is whole again, or cut elsewhere.
    let back = usize::try_from(cuts.last().unwrap().0).unwrap() - 1;
    let out = rewrite(back);
    assert!(out.is_empty() || serde_json::from_str::<Value>(&out).unwrap()["messages"].is_array());
    let found = home.ok(&["sessions"]);
    found.shows(key);
}

#[test]
fn after_opencodes_own_compaction_the_last_request_is_in_front_of_its_summary() {
    let home = Home::new();
    let message = |n: usize, role: &str, part: Value| {
        json!({
            "info": {"id": format!("msg_{n}"), "sessionID": "ses_1", "role": role, "time": {"created": n}},
            "parts": [part],
        })
    };
    let text = |n, role: &str, text: &str| message(n, role, json!({"type": "text", "text": text}));
    let rewrite = |messages: &[Value]| {
        let event = json!({
            "hook_event_name": "chat.messages.transform", "session_id": "ses_1", "cwd": "/srv/tide",
            "messages": messages,
        });
        hook(&home, &["opencode"], &event).out
    };
    let before = [
        text(1, "user", "Count the gauges of Ostermoor."),
        text(2, "assistant", "There are seven."),
    ];
    assert_eq!(rewrite(&before), "");
    let after = [
        message(3, "user", json!({"type": "compaction", "auto": true})),
        text(4, "assistant", "A summary."),
        text(5, "user", "Go on."),
    ];
    let out = rewrite(&after);
    let answer: Value = serde_json::from_str(&out).unwrap();
    let list = answer["messages"].as_array().unwrap();
    let text = list[0]["text"].as_str().unwrap();
    assert!(text.contains("Count the gauges of Ostermoor."), "{text}");
    assert!(!text.contains("Go on."), "{text}");
    assert_eq!(
        list[1..],
        [json!({"keep": 0}), json!({"keep": 1}), json!({"keep": 2})]
    );
    assert_eq!(rewrite(&after), out);
}

#[test]
fn twenty_events_at_once_and_killed_ones_lose_and_double_nothing() {
    let home = Home::new();
    let growing = Growing::new(&home, RELEASE);
    let stop = event("Stop", &growing.path, &growing.session).to_string();
    for part in 1..=4 {
        growing.grow(growing.lines.len() * part / 4);
        let mut children: Vec<Child> = (0..20).map(|_| start(&home, &[], &stop)).collect();
        for child in children.iter_mut().step_by(3) {
            let _ = child.kill();
        }
        for child in children {
            child.wait_with_output().unwrap();
        }
    }
    hook(&home, &[], &event("Stop", &growing.path, &growing.session));
    let alone = Home::new();
    alone.ok(&["import", &fixture(RELEASE)]);
    let export = |home: &Home| home.ok(&["export", &growing.session]).out;
    assert_eq!(export(&home), export(&alone));
    home.ok(&["verify"]);
}

#[test]
fn transcripts_outlive_the_agents_own_files_and_go_with_their_session() {
    let home = Home::new();
    let growing = Growing::new(&home, RELEASE);
    let session = growing.session.clone();
    let transcript = || home.ok(&["export", &session, "--transcript"]).out;
    let stop = event("Stop", &growing.path, &session);
    let half = growing.lines.len() / 2;
    growing.grow(half);
    hook(&home, &[], &stop);
    // The log says that the event is done, also after its answer.
    let events = |count: usize| {
        while log(&home).len() < count {
            std::thread::yield_now();
        }
    };
    events(1);
    assert_eq!(transcript(), growing.lines[..half].concat());
    growing.grow(growing.lines.len());
    hook(&home, &[], &stop);
    events(2);
    assert_eq!(transcript(), growing.lines.concat());
    std::fs::remove_file(&growing.path).unwrap();
    assert_eq!(transcript(), growing.lines.concat());
    // Another file with the same name does not take the place of the first.
    let mut other = growing.lines.clone();
    other.remove(1);
    std::fs::write(&growing.path, other.concat()).unwrap();
    hook(&home, &[], &stop);
    events(3);
    let ran = home.ok(&["export", &session, "--transcript"]);
    ran.says("another transcript: ");
    let end = json!({
        "hook_event_name": "SessionEnd", "session_id": session, "transcript_path": growing.path,
    });
    let limits = [
        "claude-code",
        "--transcript-days",
        "36500",
        "--transcript-mib",
        "0",
    ];
    hook(&home, &limits, &end);
    events(4);
    // Copies of files that the agent still has cost nothing, and stay.
    let detail = log(&home)[3]["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail.matches(".jsonl (").count(), 1, "{detail}");
    assert_eq!(transcript(), other.concat());
    // Erased words are in no copy, and do not come back.
    let erased = home.ok(&["erase", &session, "--from", "3", "--reason", "test"]);
    erased.shows("removed 1 kept transcript");
    home.fails(&["export", &session, "--transcript"], 3);
    hook(&home, &[], &stop);
    events(5);
    home.fails(&["export", &session, "--transcript"], 3);
    // So do other imports keep them, if they are told.
    let home = Home::new();
    home.ok(&["import", "--keep-transcripts", &fixture(RELEASE)]);
    assert_eq!(
        home.ok(&["export", &session, "--transcript"]).out,
        std::fs::read_to_string(fixture(RELEASE)).unwrap()
    );
}

/// Returns a line of a transcript of Claude Code.
fn line(session: &str, uuid: &str, parent: Option<&str>, text: &str) -> String {
    let role = match uuid.starts_with('u') {
        true => "user",
        false => "assistant",
    };
    let line = json!({
        "type": role, "sessionId": session, "uuid": uuid, "parentUuid": parent, "cwd": "/srv/tide",
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": role, "content": text},
    });
    format!("{line}\n")
}

/// Runs the hook with an event, and waits until the work behind the answer is done.
fn done(home: &Home, event: &Value) -> Value {
    let before = log(home).len();
    hook(home, &[], event);
    while log(home).len() == before {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    log(home).pop().unwrap()
}

#[test]
fn a_record_that_comes_while_the_transcript_is_read_is_stored_once() {
    let home = Home::new();
    let mode = "{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"s\"}";
    let text = line("s", "u1", None, "One.") + &line("s", "a1", Some("u1"), "Two.") + mode;
    let path = home.file("s.jsonl", &text);
    done(&home, &event("Stop", &path, "s"));
    let text = text + "\n" + &line("s", "u2", Some("a1"), "Three.");
    home.file("s.jsonl", &text);
    done(&home, &event("Stop", &path, "s"));
    let alone = Home::new();
    alone.ok(&["import", path.to_str().unwrap()]);
    let export = |home: &Home| home.ok(&["export", "s"]).out;
    assert_eq!(export(&home), export(&alone));
}

#[test]
fn an_end_that_names_another_session_is_not_added_to_that_session() {
    let home = Home::new();
    let other = line("other", "u8", None, "Eight.") + &line("other", "a8", Some("u8"), "Nine.");
    let other = home.file("other.jsonl", other);
    done(&home, &event("Stop", &other, "other"));
    let text = line("s", "u1", None, "One.") + &line("s", "a1", Some("u1"), "Two.");
    let path = home.file("s.jsonl", &text);
    done(&home, &event("Stop", &path, "s"));
    home.file("s.jsonl", text + &line("other", "u2", Some("a1"), "Three."));
    done(&home, &event("Stop", &path, "s"));
    let alone = Home::new();
    alone.ok(&["import", other.to_str().unwrap()]);
    alone.ok(&["import", path.to_str().unwrap()]);
    for key in ["s", "other"] {
        let export = |home: &Home| home.ok(&["export", key]).out;
        assert_eq!(export(&home), export(&alone), "{key}");
    }
}

#[test]
fn a_transcript_is_not_kept_again_if_words_of_a_fork_in_it_were_erased() {
    let home = Home::new();
    let text = [
        line("s", "u1", None, "One."),
        line("s", "a1", Some("u1"), "Two."),
        line("s", "u2", Some("a1"), "Taken back: swordfish."),
        line("s", "a2", Some("u2"), "Answer."),
        line("s", "u3", Some("a1"), "Three."),
        line("s", "a3", Some("u3"), "Four."),
    ];
    let path = home.file("s.jsonl", text.concat());
    done(&home, &event("Stop", &path, "s"));
    home.ok(&["export", "s", "--transcript"]).shows("swordfish");
    let sessions = home.json(&["sessions"]);
    let keys = sessions["sessions"].as_array().unwrap().iter();
    let fork = keys
        .map(|one| one["session"].as_str().unwrap())
        .find(|key| *key != "s");
    home.ok(&["erase", fork.unwrap(), "--from", "3", "--reason", "test"]);
    home.fails(&["export", "s", "--transcript"], 3);
    done(&home, &event("Stop", &path, "s"));
    home.fails(&["export", "s", "--transcript"], 3);
}

#[test]
fn a_sub_agents_transcript_that_cannot_be_read_leaves_the_rest_of_the_event() {
    let home = Home::new();
    let text = line("s", "u1", None, "One.") + &line("s", "a1", Some("u1"), "Two.");
    let path = home.file("s.jsonl", &text);
    home.file("s/subagents/agent-1.jsonl", "");
    let side = json!({
        "type": "user", "sessionId": "s", "uuid": "u9", "parentUuid": null, "isSidechain": true, "agentId": "2",
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "Count the buoys."},
    });
    home.file("s/subagents/agent-2.jsonl", format!("{side}\n"));
    let logged = done(&home, &event("SessionEnd", &path, "s"));
    tells(&logged["detail"], "agent-1.jsonl");
    assert_eq!(home.ok(&["export", "s", "--transcript"]).out, text);
    home.ok(&["grep", "s/2", "buoys"]).shows("buoys");
}

#[test]
fn half_a_surrogate_pair_in_a_message_does_not_hide_the_event() {
    let home = Home::new();
    let messages: Vec<Value> = (0..40).map(|n| {
        let id = format!("msg_{n:03}");
        json!({
            "info": {"id": id, "sessionID": "ses_1", "role": if n % 2 == 0 { "user" } else { "assistant" },
                "time": {"created": 1_700_000_000_000_u64 + n}},
            "parts": [{"id": format!("prt_{n:03}"), "type": "text", "text": format!("Cut off: HALF {}", "word ".repeat(40))}],
        })
    }).collect();
    let event = json!({
        "hook_event_name": "chat.messages.transform", "session_id": "ses_1", "cwd": "/srv/tide", "messages": messages,
    });
    let event = event.to_string().replace("HALF", "\\ud83d");
    let child = start(&home, &["opencode", "--budget", "500"], &event);
    let ran = Ran::from(child.wait_with_output().unwrap()).ended(0);
    assert!(ran.json()["messages"].as_array().unwrap().len() > 1);
    home.ok(&["grep", "ses_1", "Cut off"]).shows("Cut off");
}

#[test]
fn after_an_erasure_opencodes_plugin_gets_a_text_without_holes() {
    let home = Home::new();
    let messages: Vec<Value> = (0..50)
        .map(|n| {
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            let text = format!("Message {n} has the word lamp{n}. {}", "It goes on. ".repeat(20));
            json!({
                "info": {"id": format!("msg_{n:03}"), "sessionID": "ses_1", "role": role, "time": {"created": n}},
                "parts": [{"id": format!("prt_{n:03}"), "type": "text", "text": text}],
            })
        })
        .collect();
    let event = json!({
        "hook_event_name": "chat.messages.transform", "session_id": "ses_1", "cwd": "/srv/tide", "messages": messages,
    });
    let rewrite = || {
        hook(&home, &["opencode", "--budget", "600"], &event).json()["messages"][0]["text"]
            .to_string()
    };
    let before = rewrite();
    assert!(
        before.contains("lamp2") && before.contains("lamp20"),
        "{before}"
    );
    home.ok(&[
        "erase", "ses_1", "--from", "1", "--to", "4", "--reason", "test",
    ]);
    let after = rewrite();
    assert!(
        !after.contains("lamp2.") && after.contains("lamp20"),
        "{after}"
    );
    assert_eq!(rewrite(), after);
}

#[test]
fn claude_codes_mod_is_answered_from_the_newest_transcript_of_the_session() {
    let home = Home::new();
    for (session, old, new) in [("s1", "a", "b"), ("s2", "b", "a")] {
        let text = line(session, "u1", None, "One.") + &line(session, "a1", Some("u1"), "Two.");
        let old = home.file(&format!(".claude/projects/{old}/{session}.jsonl"), &text);
        let file = std::fs::File::options().write(true).open(old).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        let text = text + &line(session, "u2", Some("a1"), "Three.");
        home.file(&format!(".claude/projects/{new}/{session}.jsonl"), text);
        let message = json!({"role": "user", "text": "Three.", "toolUses": [], "handle": "u2"});
        let event = json!({
            "hook_event_name": "session.compact", "session_id": session, "cwd": "/srv/tide", "messages": [message],
        });
        hook(&home, &[], &event);
        assert!(
            home.ok(&["export", session]).out.contains("Three."),
            "{session}"
        );
    }
}

/// Does the work of an event, and waits for its end.
#[cfg(target_os = "linux")]
fn work(home: &Home, event: &Value) {
    let mut worker = home.command(&["hook", "--worker"]);
    worker.timeout(PATIENCE).write_stdin(event.to_string());
    worker.assert().code(0);
}

/// Returns the bytes in all files of a folder, by name.
#[cfg(target_os = "linux")]
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap_or_default();
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn what_others_put_beside_the_database_is_left_alone() {
    let text = line("s", "u1", None, "One.") + &line("s", "a1", Some("u1"), "Two.");
    for kind in ["link", "dangling", "folder", "pipe", "device"] {
        let home = Home::new();
        let path = home.file("s.jsonl", &text);
        home.file("victim/words", "words of another");
        let victim = home.path().join("victim");
        std::fs::create_dir_all(home.database().parent().unwrap()).unwrap();
        for suffix in ["-hook.lock", "-hook.log", "-hook.log.1", "-transcripts"] {
            let place = home.database().with_file_name(format!("memory.db{suffix}"));
            let target = match (kind, suffix) {
                ("link", "-transcripts") => victim.clone(),
                ("link", _) => victim.join("words"),
                ("dangling", _) => victim.join("new"),
                ("device", _) => PathBuf::from("/dev/zero"),
                ("folder", "-transcripts") => continue,
                ("folder", _) => {
                    std::fs::create_dir(&place).unwrap();
                    continue;
                }
                (_, _) => {
                    pipe(&place);
                    continue;
                }
            };
            std::os::unix::fs::symlink(target, &place).unwrap();
        }
        let before = contents(&victim);
        for name in ["Stop", "SessionEnd"] {
            work(&home, &event(name, &path, "s"));
        }
        home.ok(&["grep", "s", "Two."]).shows("Two.");
        home.ok(&["doctor"]);
        if kind != "folder" {
            home.fails(&["export", "s", "--transcript"], 3);
        }
        home.ok(&["erase", "s", "--from", "1", "--reason", "test"]);
        assert_eq!(contents(&victim), before, "{kind}");
    }
}

/// A link in the folder of a session's kept transcripts is neither read nor written.
#[cfg(target_os = "linux")]
#[test]
fn links_among_kept_transcripts_are_left_alone() {
    let home = Home::new();
    let text = line("s", "u1", None, "One.");
    let path = home.file("s.jsonl", &text);
    work(&home, &event("Stop", &path, "s"));
    let folder = home.database().with_file_name("memory.db-transcripts");
    let folder = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let copy = folder.join("s.jsonl");
    std::fs::remove_file(&copy).unwrap();
    let victim = home.file("victim", "words of another");
    std::os::unix::fs::symlink(&victim, &copy).unwrap();
    pipe(&folder.join("2-s.jsonl"));
    home.file("s.jsonl", text + &line("s", "a1", Some("u1"), "Two."));
    work(&home, &event("SessionEnd", &path, "s"));
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "words of another");
    home.ok(&["export", "s", "--transcript"]).shows("Two.");
    home.ok(&["doctor"]);
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_event_leaves_is_private_for_any_umask() {
    for umask in ["000", "022", "777"] {
        let home = Home::new();
        let path = home.file("s.jsonl", line("s", "u1", None, "One."));
        let mut worker = with_umask(&home, umask, &["hook", "--worker"]);
        worker.write_stdin(event("Stop", &path, "s").to_string());
        worker.timeout(PATIENCE).assert().code(0);
        let mut folders = vec![home.database().parent().unwrap().to_owned()];
        let mut seen = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            assert_eq!(mode(&folder), 0o700, "{umask} {folder:?}");
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                match path.is_dir() {
                    true => folders.push(path),
                    // The agent's own file has the rights that the agent gave it.
                    false if name == "s.jsonl" => {}
                    false => assert_eq!(mode(&path), 0o600, "{umask} {path:?}"),
                }
                seen.insert(name);
            }
        }
        for name in [
            "memory.db",
            "memory.db-hook.lock",
            "memory.db-hook.log",
            "s.jsonl",
        ] {
            assert!(seen.contains(name), "{seen:?}");
        }
    }
}

/// Nobody may ever write to a pipe among the transcripts of sub-agents.
#[cfg(target_os = "linux")]
#[test]
fn only_files_are_read_as_sub_agents() {
    let home = Home::new();
    let text = line("s", "u1", None, "One.") + &line("s", "a1", Some("u1"), "Two.");
    let path = home.file("s.jsonl", &text);
    let side = json!({
        "type": "user", "sessionId": "s", "uuid": "u9", "parentUuid": null, "isSidechain": true, "agentId": "2",
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "Count the buoys."},
    });
    home.file("s/subagents/agent-2.jsonl", format!("{side}\n"));
    let folder = home.path().join("s/subagents");
    pipe(&folder.join("agent-1.jsonl"));
    pipe(&home.path().join("elsewhere"));
    std::os::unix::fs::symlink("../../elsewhere", folder.join("agent-3.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.join("agent-4.jsonl")).unwrap();
    std::fs::create_dir(folder.join("agent-5.jsonl")).unwrap();
    for name in ["SubagentStop", "SessionEnd"] {
        work(&home, &event(name, &path, "s"));
        assert_eq!(log(&home).pop().unwrap()["result"], "ok", "{name}");
    }
    home.ok(&["grep", "s/2", "buoys"]).shows("buoys");
}
