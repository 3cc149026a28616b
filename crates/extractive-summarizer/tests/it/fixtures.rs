//! Two invented conversations, for the tests of this crate and of `summarize-escalation`.
//! [`log`] numbers and counts the messages.

use memory_model::{LogEntry, Message, Part, RawJson, Role, Timestamp};
use token_estimate::HeuristicEstimator;

use crate::log;

/// Log entries of the messages, 45 seconds apart.
pub(crate) fn entries(messages: Vec<Message>) -> Vec<LogEntry> {
    let mut at = Timestamp::parse("2026-03-01T09:00:00Z").unwrap();
    let timed = messages
        .into_iter()
        .map(|message| {
            at.0 += 45_000_000;
            message.with_created_at(at)
        })
        .collect();
    log(timed, &HeuristicEstimator::Bytes4)
}

fn call(id: &str, name: &str, arguments: &str) -> Message {
    Message::tool_call(id, name, RawJson::parse(arguments).unwrap())
}

/// A parser's bug is found and fixed.
pub(crate) fn coding() -> Vec<LogEntry> {
    let source = "fn parse(input: &str) -> Vec<Token> {\n    // a long body\n}\n".repeat(30);
    let tests = format!(
        "{}error[E0502]: cannot borrow `tokens` as mutable\n  --> src/lexer.rs:88:9\ntest result: FAILED. 3 passed; 1 failed\n",
        "   Compiling crumb v0.3.1\n".repeat(20)
    );
    entries(vec![
        Message::user(
            "The parser drops the last token when a line ends with a comment. Please fix it in \
             src/lexer.rs. Never change the public API, and don't touch the snapshots.",
        ),
        Message::assistant("I'll look at the lexer first:"),
        call("c1", "read", r#"{"path":"/code/crumb/src/lexer.rs"}"#),
        Message::tool_result("c1", source),
        call(
            "c2",
            "bash",
            r#"{"command":"cd /code/crumb && rg -n 'fn next_token' src"}"#,
        ),
        Message::tool_result(
            "c2",
            "src/lexer.rs:71:    fn next_token(&mut self) -> Option<Token>",
        ),
        Message::assistant(
            "The root cause is in `next_token`: on `#` it returns `None` instead of skipping to \
             the end of the line, so the loop in `parse` stops early.",
        ),
        call(
            "c3",
            "edit",
            r#"{"path":"/code/crumb/src/lexer.rs","old":"return None","new":"self.skip_line()"}"#,
        ),
        Message::tool_result("c3", "ok"),
        call("c4", "bash", r#"{"command":"cargo test -p crumb"}"#),
        Message::tool_result("c4", tests),
        call(
            "c5",
            "edit",
            r#"{"path":"/code/crumb/src/lexer.rs","old":"a","new":"b"}"#,
        ),
        Message::failed_result(
            "c5",
            "The text to replace was found 14 times: give more context.",
        ),
        call(
            "c6",
            "write",
            r#"{"path":"/code/crumb/src/cursor.rs","content":"pub struct Cursor;"}"#,
        ),
        Message::tool_result("c6", "ok"),
        call("c7", "bash", r#"{"command":"cargo test -p crumb"}"#),
        Message::tool_result(
            "c7",
            "running 4 tests\n....\ntest result: ok. 4 passed; 0 failed\n",
        ),
        Message::assistant(
            "Fixed. `next_token` now skips comments with the new `Cursor`, which also settles the \
             borrow error E0502. All 4 tests pass; the public API and the snapshots are unchanged. \
             Open: `parse_block` has the same pattern and no test. See \
             https://example.org/crumb/issues/41.",
        ),
        Message::user(
            "Great. Commit that, and open an issue for parse_block instead of fixing it.",
        ),
        call(
            "c8",
            "bash",
            r#"{"command":"git commit -am 'Skip comments in the lexer'"}"#,
        ),
        Message::tool_result(
            "c8",
            "[main 4f2a91c] Skip comments in the lexer\n 2 files changed",
        ),
        Message::assistant("Committed as 4f2a91c. I am writing the issue now."),
    ])
}

/// A trip is planned, in Japanese and Korean, with a picture.
pub(crate) fn planning() -> Vec<LogEntry> {
    let picture: Part = serde_json::from_str(&format!(
        r#"{{"type":"image","media_type":"image/png","data":"{}"}}"#,
        "QUJD".repeat(4_000)
    ))
    .unwrap();
    entries(vec![
        Message::new(
            Role::User,
            vec![
                Part::text(
                    "京都への旅行を計画してください。予算は8万円です。必ず四条駅の近くに泊まりたいです。",
                ),
                picture,
            ],
        )
        .with_name("hana"),
        Message::assistant(format!(
            "{}四条駅の近くの宿を二つ見つけました。一つ目は満室です。結論として「鴨川の宿」を勧めます。一泊12,000円です。",
            "京都には多くの名所があります。".repeat(40)
        )),
        Message::user("일정은 3일로 해주세요. 금요일에 출발해야 합니다.").with_name("minjun"),
        Message::assistant("일정을 3일로 결정했습니다. 금요일 출발, 일요일 귀가입니다."),
        Message::user("").with_name("hana"),
        Message::user("鴨川の宿を予約しないでください。先に父に聞きます。").with_name("hana"),
        Message::assistant("わかりました。予約は保留にします。次のステップはお父様の返事です。"),
    ])
}
