use std::sync::Arc;

use extractive_summarizer::{ExtractiveSummarizer, Source, SummarySource, rank_of};
use memory_model::{Message, RawJson, Seq, SeqRange, SummaryBody};

use agent_conventions::KnownAgents;
use token_estimate::{EstimatorId, HeuristicEstimator, MessageView, TokenEstimator};

use crate::fixtures;

/// A summarizer that knows the agents of this workspace's formats.
fn summarizer() -> ExtractiveSummarizer {
    ExtractiveSummarizer::new().with_conventions(Arc::new(KnownAgents))
}

fn extract(log: &[memory_model::LogEntry], target: u64) -> String {
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    summarizer().extract(&source, target, &HeuristicEstimator::Bytes4)
}

pub(crate) fn summary(range: SeqRange, text: &str) -> Source<'_> {
    Source::Summary(SummarySource {
        id: "sum_1",
        range,
        depth: 0,
        text,
        ranks: None,
        tokens: HeuristicEstimator::Bytes4.text(text),
        earliest_at: Default::default(),
        latest_at: Default::default(),
        provisional: false,
    })
}

/// The lines of a summary that a form of this many tokens has.
pub(crate) fn short_form(body: &SummaryBody, tokens: u64) -> String {
    let lines = body.lines().filter(|line| line.rank >= rank_of(tokens));
    let lines: Vec<&str> = lines.map(|line| line.text).collect();
    lines.join("\n")
}

#[test]
fn a_coding_session() {
    let log = fixtures::coding();
    insta::assert_snapshot!("coding_400", extract(&log, 400));
    insta::assert_snapshot!("coding_150", extract(&log, 150));
    insta::assert_snapshot!("coding_12", extract(&log, 12));
}

#[test]
fn a_conversation_in_japanese_and_korean() {
    let text = extract(&fixtures::planning(), 300);
    assert!(!text.contains("QUJD"));
    insta::assert_snapshot!("planning_300", text);
}

#[test]
fn extracts_of_extracts() {
    let log = fixtures::coding();
    let (first, second) = log.split_at(11);
    let texts = [extract(first, 260), extract(second, 260)];
    let ranges = [(1, 11), (12, 22)].map(|(a, b)| SeqRange::new(Seq(a), Seq(b)).unwrap());
    let mut source: Vec<Source<'_>> = texts
        .iter()
        .zip(ranges)
        .map(|(text, range)| summary(range, text))
        .collect();
    source.push(summary(
        SeqRange::new(Seq(23), Seq(30)).unwrap(),
        "The issue was filed as #42. The user decided that parse_block must wait.\n\
         Files: none\n\
         Expand for details about: the issue's text, the label question.",
    ));
    let text = summarizer().extract(&source, 320, &HeuristicEstimator::Bytes4);
    assert!(text.contains("[1] User: The parser drops"));
    assert!(text.contains("[23-30] The issue was filed as #42."));
    assert!(text.contains("the label question"));
    insta::assert_snapshot!("condensed_320", text);
}

/// A commit has a line of its own in a short form, whatever lists there are.
#[test]
fn a_short_form_of_summaries_tells_the_commits() {
    let step = |n: u32| {
        let id = n.to_string();
        let command = match n % 5 {
            0 => format!("git commit -am \"part {n} is done\""),
            _ => format!("cargo check -p crumb-part-{n}"),
        };
        [
            bash(&id, &command),
            Message::tool_result(&id, "ok ".repeat(90)),
        ]
    };
    let log = fixtures::entries((0..60).flat_map(step).collect());
    let text = extract(&log, 3_000);
    let range = SeqRange::new(Seq(1), Seq(120)).unwrap();
    let below = [summary(range, &text)];
    let body = summarizer().extract_ranked(&below, 2_000, &HeuristicEstimator::Bytes4);
    let form = short_form(&body, 390);
    assert!(HeuristicEstimator::Bytes4.text(&form) < 400, "{form}");
    for part in [55, 45] {
        let commit = format!("] $ git commit -am \"part {part} is done\"");
        assert!(form.contains(&commit), "{form}");
    }
}

/// A short form of a summary of summaries lists what ran, what failed, the files and the names of all of them.
#[test]
fn a_short_form_lists_what_all_summaries_below_list() {
    let part = |first: u32| -> Vec<Message> {
        let call = |n: u32| {
            let id = n.to_string();
            let command = match n % 6 {
                0 => format!("cargo test -p crumb-lexer --test case_{n}"),
                _ => format!("cargo check -p crumb-part-{n}"),
            };
            let result = match n % 6 {
                0 => Message::failed_result(
                    &id,
                    format!("assertion of case {n} failed\nleft: 1\nright: 2"),
                ),
                _ => Message::tool_result(&id, "ok ".repeat(200)),
            };
            let about = format!("I look at parse_block and LexerState in step {n} of the work.");
            [Message::assistant(about), bash(&id, &command), result]
        };
        (first..first + 24).flat_map(call).collect()
    };
    let source = [part(0), part(24), part(48)];
    let logs: Vec<_> = source.into_iter().map(fixtures::entries).collect();
    let texts: Vec<String> = logs.iter().map(|log| extract(log, 3_000)).collect();
    let mut first = 1;
    let sources: Vec<Source<'_>> = texts
        .iter()
        .zip(&logs)
        .map(|(text, log)| {
            let last = first + log.len() as u32 - 1;
            let range = SeqRange::new(Seq(first), Seq(last)).unwrap();
            first = last + 1;
            summary(range, text)
        })
        .collect();
    let body = summarizer().extract_ranked(&sources[..1], 2_400, &HeuristicEstimator::Bytes4);
    let form = short_form(&body, 590);
    let cost = HeuristicEstimator::Bytes4.text(&form);
    assert!(cost < 600, "{cost}: {form}");
    for kept in [
        "Failed: [3] cargo test: assertion of case 0 failed",
        "assertion of case 18 failed",
        "Ran: ",
        "cargo check -p crumb-part-23",
    ] {
        assert!(form.contains(kept), "{kept}: {form}");
    }
}

#[test]
fn a_huge_result_takes_milliseconds_and_shows_its_ends() {
    let noise = "some line of output that says nothing in particular\n".repeat(9_600);
    let big = format!("fatal: the disk is full\n{noise}Error: gave up after 3 tries\n");
    assert!(big.len() > 480_000);
    let log = fixtures::entries(vec![
        Message::user("Run the migration."),
        bash("1", "make migrate"),
        Message::tool_result("1", big),
    ]);
    let text = extract(&log, 2_000);
    assert!(text.contains("fatal: the disk is full"), "{text}");
    assert!(text.contains("gave up after 3 tries"), "{text}");
}

#[test]
fn nothing_said_is_said() {
    let log = fixtures::entries(vec![Message::user(""), Message::assistant("  ")]);
    let text = extract(&log, 200);
    assert!(text.starts_with("Extract of messages 1-2"), "{text}");
    assert_eq!(extract(&log, 3), "No text.");
    assert_eq!(extract(&[], 100), extract(&[], 100));
}

#[test]
fn every_request_of_the_user_is_kept_where_half_the_budget_holds_it() {
    let mut messages = Vec::new();
    for n in 0..40 {
        messages.push(Message::user(format!(
            "Rule {n}: keep item {} as it is.",
            n * 7
        )));
        messages.push(Message::assistant("Understood. ".repeat(40)));
    }
    let log = fixtures::entries(messages);
    let text = extract(&log, 1_100);
    for n in 0..40 {
        assert!(
            text.contains(&format!("Rule {n}: keep item {} as it is.", n * 7)),
            "{n}\n{text}"
        );
    }
    assert!(HeuristicEstimator::Bytes4.text(&text) <= 1_100);
    // With less room: the first and the newest.
    let text = extract(&log, 300);
    assert!(text.contains("Rule 0:") && text.contains("Rule 39:") && text.contains("Rule 30:"));
}

#[test]
fn a_summary_of_prose_is_quoted_by_its_range() {
    let range = SeqRange::new(Seq(5), Seq(9)).unwrap();
    let source = [summary(range, "We decided to use tea.\n\n- It is cheaper.")];
    let text = summarizer().extract(&source, 90, &HeuristicEstimator::Bytes4);
    assert!(
        text.contains("[5-9] We decided to use tea.\n[5-9] It is cheaper."),
        "{text}"
    );
}

/// Text costs more together than in pieces: no line's cost says what the whole will cost.
#[derive(Debug)]
struct Together;

impl TokenEstimator for Together {
    fn id(&self) -> EstimatorId {
        EstimatorId::new("together", 1).unwrap()
    }

    fn text(&self, text: &str) -> u64 {
        let bytes = text.len() as u64;
        bytes * bytes / 2_000
    }

    fn message(&self, _: &dyn MessageView) -> u64 {
        0
    }
}

#[test]
fn an_estimator_need_not_be_additive() {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    for target in [3, 40, 200, 700] {
        let text = summarizer().extract(&source, target, &Together);
        assert!(Together.text(&text) <= target, "{target}: {text}");
        let told = ["User: ", "Assistant: "];
        let told = &told[..if target < 40 { 2 } else { 1 }];
        assert!(
            told.iter().any(|who| text.contains(who)),
            "{target}: {text}"
        );
    }
}

fn call(id: &str, name: &str, arguments: serde_json::Value) -> Message {
    Message::tool_call(id, name, RawJson::parse(arguments.to_string()).unwrap())
}

fn bash(id: &str, command: &str) -> Message {
    call(id, "bash", serde_json::json!({ "command": command }))
}

fn edit(id: &str, path: &str, old: &str, new: &str) -> Message {
    let arguments = serde_json::json!({ "path": path, "old_string": old, "new_string": new });
    call(id, "edit", arguments)
}

/// A piece of work with a dead end, a refusal, and something left open.
fn work() -> Vec<Message> {
    vec![
        Message::user("Make the timer pause when the window is hidden, in /app/src/timer.ts."),
        Message::assistant("I will pause the interval."),
        edit("1", "/app/src/timer.ts", "tick();", "if (!hidden) tick();"),
        Message::tool_result("1", "ok"),
        bash("2", "cd /app && npm test"),
        Message::failed_result(
            "2",
            "Exit code 1\nsrc/timer.ts(3,5): error TS2304: Cannot find name 'hidden'.",
        ),
        Message::assistant("The flag lives on the document. A listener is the simpler way."),
        edit(
            "3",
            "/app/src/timer.ts",
            "if (!hidden) tick();",
            "tick();\n}\n\nexport function onVisibility(): void {\n  stop();",
        ),
        Message::failed_result(
            "3",
            "The user doesn't want to proceed with this tool use. To tell you how to proceed, \
             the user said:\nno new exports please",
        ),
        Message::assistant("Then the listener stays private. I write it again."),
        edit(
            "4",
            "/app/src/timer.ts",
            "tick();",
            "tick();\n}\n\nfunction onVisibility() {\n  stop();",
        ),
        Message::tool_result("4", "ok"),
        bash("5", "cd /app && npm test"),
        Message::tool_result("5", "12 passed"),
        Message::user("push"),
        bash("6", "cd /app && git push"),
        Message::failed_result(
            "6",
            "Exit code 1\nerror: failed to push some refs\nhint: pull first",
        ),
        Message::assistant("The push was rejected. Shall I rebase on main?"),
    ]
}

#[test]
fn a_short_answer_is_told_with_what_it_answers_at_every_level() {
    let mut messages = work();
    messages.push(Message::user("yes, the first one"));
    messages.extend(done(
        "7",
        "cd /app && git rebase main",
        "Successfully rebased.",
    ));
    let answer = "[19] User: yes, the first one (to [18] Shall I rebase on main?)\n";
    let text = extract(&fixtures::entries(messages), 1_200);
    assert!(text.contains(answer), "{text}");
    let range = SeqRange::new(Seq(1), Seq(21)).unwrap();
    let source = [summary(range, &text)];
    let text = summarizer().extract(&source, 400, &HeuristicEstimator::Bytes4);
    assert!(text.contains(answer), "{text}");
}

#[test]
fn an_edit_says_what_it_changed_and_a_refusal_what_it_refused() {
    let text = extract(&fixtures::entries(work()), 1_200);
    assert!(
        text.contains("[3] edit: timer.ts → - tick(); | + if (!hidden) tick();\n"),
        "{text}"
    );
    assert!(
        text.contains("[9] User: (refused edit: timer.ts → - if (!hidden) tick(); |\n   + export function onVisibility(): void {"),
        "{text}"
    );
    assert!(text.contains("\n  no new exports please\n"), "{text}");
    // The refusal names the call; the file is named in full once.
    assert!(!text.contains("[8] edit"), "{text}");
    // A refused edit changes nothing.
    assert!(
        text.contains("Files: changed /app/src/timer.ts ×2"),
        "{text}"
    );
}

#[test]
fn why_a_way_was_left_comes_before_how_one_went_on() {
    // Neither holds a word that marks a finding: it is the error before it that makes the first
    // one tell something.
    let mut messages = work();
    for n in 0..40 {
        messages.insert(12, Message::assistant(format!("I look on. Round {n}.")));
    }
    let log = fixtures::entries(messages);
    let text = extract(&log, 330);
    assert!(text.contains("A listener is the simpler way."), "{text}");
    assert!(text.contains("the listener stays private"), "{text}");
    assert!(!text.contains("Round 39."), "{text}");
}

#[test]
fn a_search_without_a_hit_is_no_trouble() {
    let mut messages = work();
    messages.truncate(14);
    messages.push(bash("7", "grep -rn hidden src"));
    messages.push(Message::failed_result("7", "Exit code 1"));
    let missing = serde_json::json!({ "path": "/app/none.ts" });
    messages.push(call("8", "read", missing));
    messages.push(Message::failed_result("8", "File does not exist."));
    let text = extract(&fixtures::entries(messages), 1_200);
    assert!(
        text.contains("[13] $ cd /app && npm test → 12 passed"),
        "{text}"
    );
}

#[test]
fn what_ends_every_output_is_no_outcome() {
    let noise = format!(
        "{}\nWaiting for the debugger to disconnect...",
        "some output\n".repeat(20)
    );
    let mut messages = vec![Message::user("Build it all.")];
    for (n, command) in ["make all", "npm run build", "go build ./..."]
        .iter()
        .enumerate()
    {
        let id = format!("{n}");
        messages.extend(done(&id, command, &format!("built part {n}\n{noise}")));
    }
    let text = extract(&fixtures::entries(messages), 200);
    assert!(!text.contains("→ Waiting"), "{text}");
    // The same command may well end alike each time.
    let mut messages = vec![Message::user("Build it all.")];
    for n in 0..4 {
        let id = format!("{n}");
        let result = format!("{}all good", "some output\n".repeat(20));
        messages.extend(done(&id, &format!("make all PART={n}"), &result));
    }
    let text = extract(&fixtures::entries(messages), 300);
    assert_eq!(text.matches("→ all good").count(), 4, "{text}");
}

#[test]
fn a_commit_is_told_by_its_subject() {
    let command = "cd /app && git add src/timer.ts src/window.ts src/listener.ts test/timer.test.ts \
                   && git commit -m \"$(cat <<'EOF' Pause the timer while hidden Long text. EOF )\" && ls -la src test";
    let output = "[main 1a2b3c4] Pause the timer while hidden\n 4 files changed\n create mode 100644 a\n create mode 100644 b";
    let messages = vec![
        Message::user("Commit."),
        bash("1", command),
        Message::tool_result("1", output),
        Message::assistant("Done. ".repeat(60)),
        Message::user("Thanks."),
    ];
    let text = extract(&fixtures::entries(messages), 110);
    assert!(
        text.contains("$ … git commit -m \"…Pause the timer"),
        "{text}"
    );
    assert!(
        text.contains("→ [main 1a2b3c4] Pause the timer while hidden"),
        "{text}"
    );
}

#[test]
fn answers_are_told_without_what_a_program_says_around_them() {
    let question = serde_json::json!({ "questions": [
        { "question": "Which store is best?", "header": "Store" },
        { "question": "How many?", "header": "Count" },
    ] });
    let answer = "User has answered your questions: \"Which store is best?\"=\"sqlite\nwith one file\" user notes: sqlite\nwith one file, \"How many?\"=\"one\". You can now continue with the user's answers in mind.";
    let messages = vec![
        Message::user("Set it up."),
        call("1", "AskUserQuestion", question.clone()),
        Message::tool_result("1", answer),
        call("2", "AskUserQuestion", question),
        Message::failed_result("2", "The user doesn't want to proceed with this tool use."),
    ];
    let text = extract(&fixtures::entries(messages), 400);
    let answers = "[3] Asked: Which store is best → sqlite\n  with one file\n  How many → one\n";
    assert!(text.contains(answers), "{text}");
    // The answers and the refusal name the questions.
    let refused = "[5] User: (refused AskUserQuestion: Which store is best? How many?)";
    assert!(text.contains(refused), "{text}");
    assert!(
        !text.contains("[2]") && !text.contains("more AskUser"),
        "{text}"
    );
}

#[test]
fn a_plan_is_told_like_something_said() {
    let plan = format!(
        "# Plan\n\n{}\nThe parser must stay as it is.\n\nLast: measure.",
        "Some filler that explains little. ".repeat(12)
    );
    let messages = vec![
        Message::user("Plan it."),
        call("1", "ExitPlanMode", serde_json::json!({ "plan": plan })),
        Message::failed_result(
            "1",
            "The user doesn't want to proceed with this tool use. STOP.",
        ),
    ];
    let text = extract(&fixtures::entries(messages), 160);
    assert!(text.contains("[2] ExitPlanMode: Plan"), "{text}");
    assert!(text.contains("The parser must stay as it is."), "{text}");
    assert!(text.contains("→ refused by the user"), "{text}");
}

#[test]
fn an_agents_report_ends_with_what_it_found() {
    let report = format!(
        "I looked at everything.\n{}\nThe cache never expires.\nagentId: a5cbd18 (to resume)\n<usage>tokens: 9\nduration_ms: 7</usage>",
        "Some filler that explains little.\n".repeat(12)
    );
    let messages = vec![
        Message::user("Look."),
        call(
            "1",
            "Task",
            serde_json::json!({ "description": "Explore", "prompt": "Look." }),
        ),
        Message::tool_result("1", report),
    ];
    let text = extract(&fixtures::entries(messages), 110);
    assert!(text.contains("The cache never expires."), "{text}");
    assert!(!text.contains("duration_ms"), "{text}");
}

#[test]
fn without_conventions_no_agents_wording_is_known() {
    let said = "<system-reminder>Be brief.</system-reminder>Look at it.";
    let report = "The cache never expires.\nagentId: a5cbd18\n<usage>duration_ms: 7</usage>";
    let messages = vec![
        Message::user(said),
        call("1", "Task", serde_json::json!({ "prompt": "Look." })),
        Message::tool_result("1", report),
        call("2", "bash", serde_json::json!({ "command": "make" })),
        Message::failed_result("2", "The user doesn't want to proceed with this tool use."),
    ];
    let log = fixtures::entries(messages);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let generic = ExtractiveSummarizer::new();
    let text = generic.extract(&source, 400, &HeuristicEstimator::Bytes4);
    assert!(text.contains(&format!("[1] User: {said}")), "{text}");
    assert!(text.contains("duration_ms: 7"), "{text}");
    assert!(
        text.contains("Error: $ make") && !text.contains("(refused"),
        "{text}"
    );
    // The agents' own conventions are told apart in recipes.
    let known = extract(&log, 400);
    assert!(known.contains("[1] Injected: "), "{known}");
    assert!(
        !known.contains("duration_ms") && known.contains("(refused $ make)"),
        "{known}"
    );
    assert_eq!(
        summarizer().id(),
        format!("{}+known-agents@2", generic.id())
    );
}

/// A short extract of messages, whose lists of failures and files are like those of summaries.
fn dense(mut messages: Vec<Message>) -> String {
    let filler = "Nothing of this matters to anybody. ".repeat(2_000);
    messages.push(Message::assistant(filler));
    messages.push(Message::user("Go on."));
    extract(&fixtures::entries(messages), 700)
}

fn failures(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter(|line| line.starts_with("Failed: ")).collect()
}

fn done(id: &str, command: &str, result: &str) -> [Message; 2] {
    [bash(id, command), Message::tool_result(id, result)]
}

fn broke(id: &str, command: &str, result: &str) -> [Message; 2] {
    [bash(id, command), Message::failed_result(id, result)]
}

#[test]
fn what_was_made_good_is_no_open_failure() {
    let mut messages = vec![Message::user("Check it all.")];
    messages.extend(broke(
        "1",
        "cd /app && cargo test -p x --lib 2>&1 | tail -5",
        "error: one failed",
    ));
    messages.extend(broke("2", "make lint", "lint: 3 errors"));
    messages.extend(broke(
        "3",
        "go test ./...",
        "--- FAIL: TestHidden (0.1s)\nFAIL",
    ));
    messages.extend(broke(
        "4",
        "git merge topic",
        "CONFLICT (content): Merge conflict in a.rs",
    ));
    messages.extend(broke("5", "npm run check", "a.ts(1,2): error TS2305: none"));
    messages.push(call(
        "6",
        "read",
        serde_json::json!({ "path": "src/wrong/b.rs" }),
    ));
    messages.push(Message::failed_result("6", "File does not exist."));
    messages.push(call(
        "7",
        "read",
        serde_json::json!({ "path": "src/right/b.rs" }),
    ));
    messages.push(Message::tool_result("7", "fn b() {}"));
    messages.extend(done("8", "cargo test", "12 passed"));
    messages.extend(done(
        "9",
        "go test ./a -run Hidden -v",
        "--- PASS: TestHidden (0.2s)",
    ));
    messages.extend(done("10", "git commit --no-edit", "[main 1a2b3c4] Merge"));
    let text = dense(messages);
    assert_eq!(
        failures(&text),
        [
            "Failed: [5] make lint: lint: 3 errors",
            "Failed: [11] npm run check: a.ts(1,2): error TS2305: none",
        ],
        "{text}"
    );
    // Nor was the file read that is not there.
    let read = text.lines().find(|line| line.starts_with("Files: "));
    assert_eq!(read, Some("Files: read src/right/b.rs"));
}

#[test]
fn an_error_is_told_by_the_line_that_says_it() {
    let hello = "hello: a shell says this each time.";
    let log = "2026-02-24T23:05:27Z ERROR loader: failed to stat an entry";
    let mut messages = vec![Message::user("Check it all.")];
    messages.extend(done("1", "make docs", hello));
    messages.extend(broke(
        "2",
        "make lint",
        &format!("Exit code 1\n{hello}\n[lint] $ linter run\nsrc/a.go:9:2: x is unused"),
    ));
    let noisy = format!(
        "{log}\n{}\n{}\nfatal: no such key",
        log.replace("27Z", "28Z"),
        log.replace("27Z", "29Z")
    );
    messages.extend(broke("3", "make keys", &noisy));
    messages.extend(broke("4", "make all", &format!("Exit code 1\n{hello}")));
    // What a look shows is no failure, and neither is an interruption.
    messages.extend(done(
        "5",
        "gh api repos/a/b/comments",
        "Error: is ignored here, says the reviewer",
    ));
    messages.extend(broke("6", "sleep 500", "Command aborted"));
    let text = dense(messages);
    assert_eq!(
        failures(&text),
        [
            "Failed: [5] make lint: src/a.go:9:2: x is unused",
            "Failed: [7] make keys: fatal: no such key",
            &format!("Failed: [9] make all: {hello}"),
        ],
        "{text}"
    );
    let errors = text.matches("failed to stat").count();
    assert!(errors < 2, "{text}");
}

#[test]
fn paths_are_told_from_the_folder_in_which_their_calls_ran() {
    let paths = |messages: Vec<Message>, meta: Option<&str>| {
        let mut entries = fixtures::entries(messages);
        for entry in &mut entries {
            entry.message.meta = meta.map(|meta| RawJson::parse(meta.to_owned()).unwrap());
        }
        let text = extract(&entries, 400);
        let files = text.lines().find(|line| line.starts_with("Files: "));
        files.unwrap_or_default().to_owned()
    };
    let commands = |tool: &str| {
        let mut messages = vec![Message::user("Look at them.")];
        for (id, line) in [
            ("1", "cd sub && cat src/a.rs"),
            ("2", "(cd other; head src/b.rs)"),
            ("3", "cd - && cat src/c.rs"),
        ] {
            let command = call(id, tool, serde_json::json!({ "command": line }));
            messages.extend([command, Message::tool_result(id, "ok")]);
        }
        messages
    };
    // A message that names the folder; a shell that starts anew; a shell of which nothing is known.
    assert_eq!(
        paths(commands("Bash"), Some(r#"{"cwd":"/srv/app"}"#)),
        "Files: read /srv/app/other/src/b.rs, /srv/app/sub/src/a.rs, src/c.rs"
    );
    assert_eq!(
        paths(commands("bash"), None),
        "Files: read other/src/b.rs, src/c.rs, sub/src/a.rs"
    );
    assert_eq!(
        paths(commands("Bash"), None),
        "Files: read src/a.rs, src/b.rs, src/c.rs"
    );
}
