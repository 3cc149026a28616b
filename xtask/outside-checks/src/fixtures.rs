//! Generated transcripts of any length: for tests and benches, here and elsewhere.
//!
//! The same number of turns always gives the same bytes.

use std::fmt::Write as _;

/// A text of a few sentences that differs from turn to turn.
fn words(turn: usize) -> String {
    let subjects = ["The parser", "A failing test", "The cache", "The importer"];
    let verbs = ["drops", "keeps", "rewrites", "repeats"];
    let pick = |list: &[&'static str], at: usize| list.get(at % list.len()).copied().unwrap_or("");
    let mut out = String::new();
    for sentence in 0..3 + turn % 5 {
        let _infallible = write!(
            out,
            "{} {} line {} of \\\"src/file_{}.rs\\\". ",
            pick(&subjects, turn + sentence),
            pick(&verbs, turn / 3 + sentence),
            turn * 7 + sentence,
            turn % 13,
        );
    }
    out
}

/// The time of a turn, RFC 3339.
fn time(turn: usize) -> String {
    let (hours, minutes, seconds) = (turn / 3600 % 24, turn / 60 % 60, turn % 60);
    format!("2026-03-02T{hours:02}:{minutes:02}:{seconds:02}.000Z")
}

/// A Claude Code session: in each turn a question, a call, its result and an answer.
pub fn claude_code(turns: usize) -> String {
    let mut out = String::new();
    let mut parent = "null".to_owned();
    for turn in 0..turns {
        let text = words(turn);
        let lines = [
            (
                "user",
                format!(r#"{{"role":"user","content":"{text}"}}"#),
                String::new(),
            ),
            (
                "assistant",
                format!(
                    r#"{{"id":"msg_{turn}","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"toolu_{turn}","name":"Read","input":{{"file_path":"src/file_{}.rs","limit":{turn}}}}}],"usage":{{"input_tokens":{turn},"output_tokens":7}}}}"#,
                    turn % 13
                ),
                String::new(),
            ),
            (
                "user",
                format!(
                    r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{turn}","content":"{text}{text}"}}]}}"#
                ),
                format!(
                    r#","toolUseResult":{{"type":"text","file":{{"filePath":"src/file_{}.rs","content":"{text}"}}}}"#,
                    turn % 13
                ),
            ),
            (
                "assistant",
                format!(
                    r#"{{"id":"msg_{turn}b","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}}]}}"#
                ),
                String::new(),
            ),
        ];
        for (at, (tag, message, more)) in lines.into_iter().enumerate() {
            let uuid = format!("00000000-0000-4000-8000-{:012}", turn * 4 + at);
            let time = time(turn);
            let _infallible = writeln!(
                out,
                r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/home/dev/project","sessionId":"10000000-0000-4000-8000-000000000000","version":"2.0.1","type":"{tag}","message":{message},"uuid":"{uuid}","timestamp":"{time}"{more}}}"#
            );
            parent = format!("\"{uuid}\"");
        }
    }
    out
}

/// A pi session: in each turn a question, a call, its result and an answer.
pub fn pi(turns: usize) -> String {
    let mut out = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"20000000-0000-4000-8000-000000000000\",\"timestamp\":\"2026-03-02T09:00:00.000Z\",\"cwd\":\"/home/dev/project\"}\n",
    );
    let mut parent = "null".to_owned();
    for turn in 0..turns {
        let text = words(turn);
        let messages = [
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"call_{turn}","name":"read","arguments":{{"path":"src/file_{}.rs"}}}}],"stopReason":"toolUse"}}"#,
                turn % 13
            ),
            format!(
                r#"{{"role":"toolResult","toolCallId":"call_{turn}","toolName":"read","content":[{{"type":"text","text":"{text}{text}"}}],"isError":false}}"#
            ),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stopReason":"stop"}}"#
            ),
        ];
        for (at, message) in messages.into_iter().enumerate() {
            let id = format!("{:08x}", turn * 4 + at);
            let time = time(turn);
            let _infallible = writeln!(
                out,
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{time}","message":{message}}}"#
            );
            parent = format!("\"{id}\"");
        }
    }
    out
}

/// Plain JSON lines in the chat format that most providers share: in each turn a question, a call,
/// its result and an answer.
pub fn plain(turns: usize) -> String {
    let mut out = String::new();
    for turn in 0..turns {
        let text = words(turn);
        let file = turn % 13;
        let _infallible = write!(
            out,
            "{{\"role\":\"user\",\"content\":\"{text}\"}}\n\
             {{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"call_{turn}\",\"type\":\"function\",\"function\":{{\"name\":\"read\",\"arguments\":\"{{\\\"path\\\":\\\"src/file_{file}.rs\\\"}}\"}}}}]}}\n\
             {{\"role\":\"tool\",\"tool_call_id\":\"call_{turn}\",\"content\":\"{text}{text}\"}}\n\
             {{\"role\":\"assistant\",\"content\":\"{text}\"}}\n",
        );
    }
    out
}

/// A line of a Claude Code session whose tool result holds a tool result, and so on, `depth` deep.
pub fn nested_claude_code(depth: usize) -> String {
    let (open, close) = (
        r#"[{"type":"tool_result","tool_use_id":"t","content":"#.repeat(depth),
        "}]".repeat(depth),
    );
    format!(
        r#"{{"type":"user","uuid":"u1","sessionId":"nested","timestamp":"2026-03-02T09:00:00Z","message":{{"role":"user","content":{open}"the innermost word"{close}}}}}"#
    )
}

/// A line of a pi session whose tool result holds lists in lists, `depth` deep.
pub fn nested_pi(depth: usize) -> String {
    let (open, close) = (
        r#"[{"type":"tool_result","toolCallId":"t","content":"#.repeat(depth),
        "}]".repeat(depth),
    );
    format!(
        r#"{{"type":"message","id":"00000001","parentId":null,"message":{{"role":"toolResult","toolCallId":"t","content":{open}"the innermost word"{close}}}}}"#
    )
}

/// A plain line whose tool result holds a tool result, and so on, `depth` deep.
pub fn nested_plain(depth: usize) -> String {
    let (open, close) = (
        r#"[{"type":"tool_result","call_id":"t","content":"#.repeat(depth),
        "}]".repeat(depth),
    );
    format!(r#"{{"role":"tool","parts":{open}"the innermost word"{close}}}"#)
}
