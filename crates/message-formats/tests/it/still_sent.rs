//! The session in use holds each turn that the agent would still send, each once and in order; turns that were taken
//! back stay in another branch.
//!
//! For each agent with branches, a model of the agent has a conversation at random and writes the transcript as the
//! agent does. After each step the file is read as it is by then.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memory_model::EntryKind;
use message_formats::{Origin, SessionLog, Transcript};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use crate::support::read_str;

/// A step of a conversation.
#[derive(Debug, Clone)]
enum Step {
    /// The user says something, and the agent answers with this number of calls.
    Turn { calls: usize },
    /// The user goes back to before a turn and says something else.
    Back { to: usize },
    /// The agent compacts the conversation.
    Compact { way: usize },
    /// Rows are written again without a compaction of the conversation itself.
    Again { way: usize },
    /// The user goes on in a copy of the conversation.
    Fork,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..3usize).prop_map(|calls| Step::Turn { calls }),
        2 => any::<usize>().prop_map(|to| Step::Back { to }),
        2 => any::<usize>().prop_map(|way| Step::Compact { way }),
        2 => any::<usize>().prop_map(|way| Step::Again { way }),
        1 => Just(Step::Fork),
    ];
    prop::collection::vec(step, 1..14)
}

/// A model of an agent.
trait Agent {
    /// Writes a turn, with these words of the user and of the agent.
    fn turn(&mut self, words: &str, calls: usize);
    /// Returns the first turn of the context to which the user can go back, by its place among them.
    fn first(&self) -> usize {
        0
    }
    /// Goes back to before a turn of the context.
    fn back(&mut self, to: usize);
    fn compact(&mut self, way: usize);
    fn again(&mut self, _way: usize) {}
    fn fork(&mut self) {}
    /// Returns the file as it is.
    fn file(&self) -> String;
}

/// Lets an agent have a conversation, and compares each reading of its file with what the agent would send.
fn check(agent: &mut dyn Agent, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut course: Vec<String> = Vec::new();
    let mut number = 0;
    let mut says = |agent: &mut dyn Agent, course: &mut Vec<String>, calls| {
        number += 1;
        let words = format!("w{number}.");
        agent.turn(&words, calls);
        course.push(words);
    };
    for step in steps {
        match step {
            Step::Turn { calls } => says(agent, &mut course, *calls),
            Step::Back { to } => {
                let first = agent.first();
                if first >= course.len() {
                    continue;
                }
                let to = first + to % (course.len() - first);
                agent.back(to);
                course.truncate(to);
                says(agent, &mut course, 1);
            }
            _ if course.is_empty() => continue,
            Step::Compact { way } => agent.compact(*way),
            Step::Again { way } => agent.again(*way),
            Step::Fork => {
                agent.fork();
                says(agent, &mut course, 0);
            }
        }
        let file = agent.file();
        let transcript = read_str(&file);
        let said = said(&transcript);
        let users: Vec<&String> = said
            .iter()
            .filter_map(|(of, words)| of.then_some(words))
            .collect();
        let answers: Vec<&String> = said
            .iter()
            .filter_map(|(of, words)| (!of).then_some(words))
            .collect();
        prop_assert_eq!(&users, &course.iter().collect::<Vec<_>>(), "{}", file);
        prop_assert_eq!(&answers, &course.iter().collect::<Vec<_>>(), "{}", file);
        // Nothing is lost, and no message is in two branches.
        let everything = transcript.sessions.iter().flat_map(messages);
        let mut everywhere: BTreeMap<(bool, String), usize> = BTreeMap::new();
        everything.for_each(|one| *everywhere.entry(one).or_default() += 1);
        for ((_, words), times) in everywhere {
            prop_assert_eq!(times, 1, "{} in {}", words, file);
        }
        prop_assert!(!transcript.report.lost_any());
    }
    Ok(())
}

/// Returns the words in a conversation, and whether the user said them.
fn messages(log: &SessionLog) -> Vec<(bool, String)> {
    let said = log
        .messages
        .iter()
        .filter(|one| one.kind == EntryKind::Message);
    let words = |one: &memory_model::Message| {
        let words = one.text();
        let words = words
            .split_whitespace()
            .find(|word| word.starts_with('w') && word.ends_with('.'));
        Some((one.role == memory_model::Role::User, words?.to_owned()))
    };
    said.filter_map(words).collect()
}

/// Returns the words of the session in use, with what it shares with other branches.
fn said(transcript: &Transcript) -> Vec<(bool, String)> {
    let used: Vec<&SessionLog> = transcript
        .sessions
        .iter()
        .filter(|log| log.in_use)
        .collect();
    let [used] = used.as_slice() else {
        panic!("{} sessions are in use", used.len())
    };
    let mut parts = vec![messages(used)];
    let mut log = *used;
    while let Origin::Fork { parent, after } = &log.origin {
        log = transcript
            .sessions
            .iter()
            .find(|log| log.key == *parent)
            .unwrap();
        let mut shared = log.clone();
        let ids = shared.messages.iter().map(|one| one.external_id.clone());
        let last = ids.into_iter().position(|id| id == *after);
        shared.messages.truncate(last.map_or(0, |last| last + 1));
        parts.push(messages(&shared));
    }
    parts.into_iter().rev().flatten().collect()
}

fn joined(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns a time, by the number of lines before it.
fn time(lines: usize) -> String {
    format!(
        "2026-04-01T{:02}:{:02}:{:02}.{:03}Z",
        lines / 3600,
        lines / 60 % 60,
        lines % 60,
        lines % 1000
    )
}

/// Claude Code. It keeps the rows that it has written since its start, and writes a part of them again with the second
/// compaction of a process, or with one of a sub-agent.
#[derive(Default)]
struct ClaudeCode {
    lines: Vec<Value>,
    /// Uuid of the row that the next one follows.
    tip: Option<String>,
    /// For each turn of the context, the row before it and its place in the memory.
    turns: Vec<(Option<String>, usize)>,
    /// The number of turns before the last compaction.
    compacted: usize,
    /// The rows in the memory of the process.
    memory: Vec<Value>,
    /// The number of rows in the memory that the next compaction writes again.
    repeated: usize,
}

impl ClaudeCode {
    fn row(&mut self, tag: &str, parent: Option<String>, rest: Value) -> String {
        let number = self.lines.len();
        let uuid = format!("u{number}");
        let mut row = json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s", "type": tag, "uuid": uuid,
            "timestamp": time(number)});
        row.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        self.lines.push(row.clone());
        self.memory.push(row);
        uuid
    }

    fn next(&mut self, tag: &str, rest: Value) {
        let parent = self.tip.clone();
        self.tip = Some(self.row(tag, parent, rest));
    }

    fn user(&mut self, content: Value) {
        self.next(
            "user",
            json!({"message": {"role": "user", "content": content}}),
        );
    }

    fn assistant(&mut self, block: Value) {
        let id = format!("m{}", self.lines.len());
        self.next(
            "assistant",
            json!({"message": {"role": "assistant", "id": id, "content": [block]}}),
        );
    }

    fn hook(&mut self) {
        self.next("system", json!({"subtype": "stop_hook_summary"}));
    }

    /// Writes rows of the memory again. The next row follows the last one.
    fn write_again(&mut self, way: usize) {
        let rows: Vec<Value> = self.memory[..self.repeated].to_vec();
        let mut names: HashMap<String, String> = HashMap::new();
        for mut row in rows {
            let uuid = row["uuid"].as_str().unwrap().to_owned();
            let number = self.lines.len();
            let new = match way % 4 {
                // As they are, or by another version of the program.
                0 => uuid.clone(),
                1 => {
                    row["version"] = json!(format!("2.{number}"));
                    uuid.clone()
                }
                // With new ids, and with the old or the new ids of their parents.
                _ => format!("n{number}"),
            };
            let parent = row["parentUuid"]
                .as_str()
                .and_then(|parent| names.get(parent));
            if let Some(parent) = parent.filter(|_| way % 4 == 3) {
                row["parentUuid"] = json!(parent);
            }
            row["uuid"] = json!(new);
            names.insert(uuid, new.clone());
            self.lines.push(row);
            self.tip = Some(new);
        }
    }
}

impl Agent for ClaudeCode {
    fn turn(&mut self, words: &str, calls: usize) {
        self.turns.push((self.tip.clone(), self.memory.len()));
        self.user(json!(format!("Say {words}")));
        for _ in 0..calls {
            let id = format!("t{}", self.lines.len());
            self.assistant(json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}}));
            self.user(json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}]));
        }
        self.assistant(json!({"type": "text", "text": format!("It is {words}")}));
    }

    /// A new turn on a row that was written again since the turn before it goes on behind the copy, as after a second
    /// compaction of one process. Nothing in the file tells it from going back to before the turn, so nobody does that.
    fn first(&self) -> usize {
        let hangs_on_a_copy = |(before, at): &(Option<String>, usize)| {
            let row = self.memory.get(*at).map(|row| &row["uuid"]);
            let mut behind = self
                .lines
                .iter()
                .skip_while(|line| Some(&line["uuid"]) != row);
            behind.any(|line| line["uuid"].as_str() == before.as_deref())
        };
        let turns = self.turns.iter().skip(self.compacted);
        self.compacted + turns.take_while(|turn| hangs_on_a_copy(turn)).count()
    }

    fn back(&mut self, to: usize) {
        // The row before the turn in the memory, wherever the turn hung in the file.
        let (before, memory) = self.turns[to].clone();
        self.tip = match memory.checked_sub(1).and_then(|last| self.memory.get(last)) {
            Some(row) if to > self.compacted => Some(row["uuid"].as_str().unwrap().to_owned()),
            _ => before,
        };
        self.turns.truncate(to);
        self.memory.truncate(memory);
    }

    fn compact(&mut self, way: usize) {
        let last = self.tip.clone();
        if self.repeated > 0 {
            self.write_again(way);
        }
        if !way.is_multiple_of(3) || self.repeated > 0 {
            self.hook();
        }
        let tip = self.tip.clone();
        let head = self
            .memory
            .iter()
            .position(|row| row["uuid"].as_str() == last.as_deref());
        let boundary = json!({"subtype": "compact_boundary", "logicalParentUuid": tip,
            "compactMetadata": {"trigger": "manual"}});
        let boundary = self.row("system", None, boundary);
        let summary =
            json!({"isCompactSummary": true, "message": {"role": "user", "content": "So far."}});
        let summary = self.row("user", Some(boundary), summary);
        self.tip = match way % 2 {
            0 => tip,
            _ => Some(summary),
        };
        self.user(json!("<command-name>/compact</command-name>"));
        self.user(json!(
            "<local-command-stdout>Compacted</local-command-stdout>"
        ));
        self.repeated = self.repeated.max(head.unwrap_or_default());
        self.compacted = self.turns.len();
    }

    fn again(&mut self, way: usize) {
        if self.repeated > 0 {
            self.write_again(way);
        }
    }

    fn file(&self) -> String {
        joined(&self.lines)
    }
}

/// pi. Its entries are a tree, and the last entry is on the branch in use.
#[derive(Default)]
struct Pi {
    lines: Vec<Value>,
    files: usize,
    entries: usize,
    tip: Option<String>,
    before: Vec<Option<String>>,
}

impl Pi {
    fn entry(&mut self, tag: &str, rest: Value) {
        if self.lines.is_empty() {
            let id = format!("s{}", self.files);
            self.lines.push(json!({"type": "session", "version": 3, "id": id, "timestamp": time(0), "cwd": "/w"}));
        }
        self.entries += 1;
        let id = format!("e{}", self.entries);
        let mut entry =
            json!({"type": tag, "id": id, "parentId": self.tip, "timestamp": time(self.entries)});
        entry
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        self.lines.push(entry);
        self.tip = Some(id);
    }

    fn message(&mut self, message: Value) {
        self.entry("message", json!({"message": message}));
    }
}

impl Agent for Pi {
    fn turn(&mut self, words: &str, calls: usize) {
        self.before.push(self.tip.clone());
        self.message(json!({"role": "user", "content": format!("Say {words}")}));
        for _ in 0..calls {
            let id = format!("t{}", self.entries);
            let call = json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}});
            self.message(json!({"role": "assistant", "content": [call]}));
            let content = json!([{"type": "text", "text": "done"}]);
            self.message(json!({"role": "toolResult", "toolCallId": id, "content": content, "isError": false}));
        }
        let text = json!({"type": "text", "text": format!("It is {words}")});
        self.message(json!({"role": "assistant", "content": [text]}));
    }

    fn back(&mut self, to: usize) {
        let left = std::mem::replace(&mut self.tip, self.before[to].clone());
        self.before.truncate(to);
        if self.entries.is_multiple_of(2) {
            self.entry(
                "branch_summary",
                json!({"fromId": left, "summary": "Tried something."}),
            );
        }
    }

    fn compact(&mut self, way: usize) {
        let kept = self.before[way % self.before.len()].clone();
        let kept = kept.or_else(|| self.tip.clone());
        self.entry(
            "compaction",
            json!({"summary": "So far.", "firstKeptEntryId": kept, "tokensBefore": 9}),
        );
    }

    fn again(&mut self, way: usize) {
        // The whole file once more, or an entry that is no message.
        match way % 2 {
            0 if self.lines.len() < 200 => self.lines.extend(self.lines.clone()),
            _ => self.entry("label", json!({"targetId": self.tip, "label": "here"})),
        }
    }

    fn fork(&mut self) {
        let parents: HashMap<String, Value> = self
            .lines
            .iter()
            .filter_map(|line| Some((line["id"].as_str()?.to_owned(), line.clone())))
            .collect();
        let mut path = Vec::new();
        let mut at = self.tip.clone();
        while let Some(entry) = at.and_then(|id| parents.get(&id)) {
            path.push(entry.clone());
            at = entry["parentId"].as_str().map(str::to_owned);
        }
        let old = format!("/sessions/--w--/2026_s{}.jsonl", self.files);
        self.files += 1;
        let id = format!("s{}", self.files);
        self.lines = vec![
            json!({"type": "session", "version": 3, "id": id, "timestamp": time(0), "cwd": "/w",
            "parentSession": old}),
        ];
        self.lines.extend(path.into_iter().rev());
    }

    fn file(&self) -> String {
        joined(&self.lines)
    }
}

/// Qwen Code. Its rows are a tree with records of the program in between.
#[derive(Default)]
struct QwenCode {
    lines: Vec<Value>,
    tip: Option<String>,
    before: Vec<Option<String>>,
}

impl QwenCode {
    fn row(&mut self, tag: &str, rest: Value) {
        let number = self.lines.len();
        let uuid = format!("u{number}");
        let mut row = json!({"uuid": uuid, "parentUuid": self.tip, "sessionId": "s", "timestamp": time(number),
            "type": tag});
        row.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        self.lines.push(row);
        self.tip = Some(uuid);
    }

    fn said(&mut self, tag: &str, role: &str, part: Value) {
        self.row(tag, json!({"message": {"role": role, "parts": [part]}}));
    }
}

impl Agent for QwenCode {
    fn turn(&mut self, words: &str, calls: usize) {
        self.before.push(self.tip.clone());
        self.said("user", "user", json!({"text": format!("Say {words}")}));
        for _ in 0..calls {
            let id = format!("t{}", self.lines.len());
            let call = json!({"functionCall": {"id": id, "name": "shell", "args": {}}});
            self.said("assistant", "model", call);
            self.row(
                "system",
                json!({"subtype": "ui_telemetry", "systemPayload": {}}),
            );
            let response = json!({"id": id, "name": "shell", "response": {"output": "done"}});
            self.said("tool_result", "user", json!({"functionResponse": response}));
        }
        self.said(
            "assistant",
            "model",
            json!({"text": format!("It is {words}")}),
        );
    }

    fn back(&mut self, to: usize) {
        self.tip = self.before[to].clone();
        self.before.truncate(to);
    }

    fn compact(&mut self, _way: usize) {
        let history = json!([{"role": "user", "parts": [{"text": "So far."}]}]);
        let payload = json!({"info": {"triggerReason": "auto"}, "compressedHistory": history});
        self.row(
            "system",
            json!({"subtype": "chat_compression", "systemPayload": payload}),
        );
    }

    fn again(&mut self, way: usize) {
        match way % 2 {
            0 if self.lines.len() < 200 => self.lines.extend(self.lines.clone()),
            _ => self.row(
                "system",
                json!({"subtype": "slash_command", "systemPayload": {}}),
            ),
        }
    }

    fn file(&self) -> String {
        joined(&self.lines)
    }
}

/// Gemini CLI. It writes records again as they grow, and takes records back by name.
#[derive(Default)]
struct GeminiCli {
    lines: Vec<Value>,
    /// The first record of each turn of the context.
    turns: Vec<String>,
    taken_back: BTreeSet<String>,
}

impl GeminiCli {
    fn record(&mut self, tag: &str, rest: Value) -> String {
        if self.lines.is_empty() {
            self.lines.push(
                json!({"sessionId": "s", "projectHash": "p", "startTime": time(0), "kind": "main"}),
            );
        }
        let id = format!("g{}", self.lines.len());
        let mut record = json!({"id": id, "timestamp": time(self.lines.len()), "type": tag});
        record
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        self.lines.push(record);
        id
    }
}

impl Agent for GeminiCli {
    fn turn(&mut self, words: &str, calls: usize) {
        let first = self.record(
            "user",
            json!({"content": [{"text": format!("Say {words}")}]}),
        );
        self.turns.push(first);
        for _ in 0..calls {
            let id = format!("t{}", self.lines.len());
            let call = json!({"id": id, "name": "shell", "args": {}, "status": "success"});
            let record = self.record(
                "gemini",
                json!({"content": "", "toolCalls": [call.clone()]}),
            );
            let mut grown = self.lines.last().unwrap().clone();
            let mut call = call;
            call["result"] = json!([{"functionResponse": {"id": id, "name": "shell", "response": {"output": "done"}}}]);
            grown["id"] = json!(record);
            grown["toolCalls"] = json!([call]);
            self.lines.push(grown);
        }
        self.record(
            "gemini",
            json!({"content": format!("It is {words}"), "model": "m"}),
        );
    }

    fn back(&mut self, to: usize) {
        let record = self.turns[to].clone();
        self.turns.truncate(to);
        let ids = self.lines.iter().filter_map(|line| line["id"].as_str());
        let from = ids.skip_while(|id| **id != *record).map(str::to_owned);
        self.taken_back.extend(from.collect::<Vec<_>>());
        self.lines.push(json!({"$rewindTo": record}));
    }

    fn compact(&mut self, _way: usize) {
        let messages =
            json!([{"id": format!("x{}", self.lines.len()), "type": "user", "content": "So far."}]);
        self.lines
            .push(json!({"$set": {"messages": messages, "lastUpdated": time(self.lines.len())}}));
    }

    fn again(&mut self, way: usize) {
        // A record of the context once more, with a fact that came late.
        let is_kept = |line: &&Value| {
            line["type"] == "gemini" && !self.taken_back.contains(line["id"].as_str().unwrap())
        };
        let kept: Vec<&Value> = self.lines.iter().filter(is_kept).collect();
        let Some(record) = kept.get(way % kept.len().max(1)) else {
            return;
        };
        let mut record = (*record).clone();
        record["tokens"] = json!({"total": way % 100});
        self.lines.push(record);
    }

    fn file(&self) -> String {
        joined(&self.lines)
    }
}

/// Returns the same cases for each run, and new ones in the long form.
fn cases() -> ProptestConfig {
    let is_deep = std::env::var_os("AGENT_MEMORY_DEEP").is_some();
    let (cases, rng_seed) = match is_deep {
        true => (1920, RngSeed::Random),
        false => (96, RngSeed::Fixed(1)),
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed,
        ..ProptestConfig::default()
    }
}

/// Rows that are written again with new ids may be a boundary and a summary: the turn that hangs on a row behind them can
/// be taken back, too.
#[test]
fn a_turn_on_rows_written_again_with_their_compaction_is_taken_back() {
    use Step::{Again, Back, Compact, Turn};
    let steps = [
        Turn { calls: 0 },
        Compact { way: 0 },
        Compact { way: 0 },
        Turn { calls: 0 },
        Again { way: 2 },
        Turn { calls: 0 },
    ];
    for to in 0..3 {
        let steps: Vec<Step> = steps.iter().cloned().chain([Back { to }]).collect();
        check(&mut ClaudeCode::default(), &steps).unwrap();
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn claude_code_in_use_is_what_it_would_still_send(steps in steps()) {
        check(&mut ClaudeCode::default(), &steps)?;
    }

    #[test]
    fn pi_in_use_is_what_it_would_still_send(steps in steps()) {
        check(&mut Pi::default(), &steps)?;
    }

    #[test]
    fn qwen_code_in_use_is_what_it_would_still_send(steps in steps()) {
        check(&mut QwenCode::default(), &steps)?;
    }

    #[test]
    fn gemini_cli_in_use_is_what_it_would_still_send(steps in steps()) {
        check(&mut GeminiCli::default(), &steps)?;
    }
}
