//! Random conversations and views.

use std::sync::Arc;

use context_assembler::{AssemblyInput, ContextAccounting, Item};
use memory_model::{
    Accounting, Child, Hash, LogEntry, Media, MediaSource, Message, Part, RankedLine, RawJson,
    Recipe, ResultContent, Role, Seq, SeqRange, Summary, SummaryBody, SummaryId, Timestamp,
    TrimPolicyId,
};
use proptest::prelude::*;
use token_estimate::HeuristicEstimator;
use turn_map::atoms;

/// Estimators that the tests use.
pub(crate) const PRESETS: [HeuristicEstimator; 4] = [
    HeuristicEstimator::Bytes4,
    HeuristicEstimator::Bytes3_5,
    HeuristicEstimator::Bytes4PerPart,
    HeuristicEstimator::Chars4,
];

pub(crate) fn accounting(preset: HeuristicEstimator) -> ContextAccounting {
    ContextAccounting::new(Arc::new(preset))
}

/// An event of a random conversation.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    User(String),
    Assistant(String),
    /// Messages of one response without calls.
    Lines(Vec<String>),
    /// A response with calls. `lines`: each call is in a separate message. `between`: results come before the next
    /// message. `answered`: number of calls with a result. `aside`: a user message comes before the results.
    Calls {
        results: Vec<String>,
        answered: usize,
        lines: bool,
        between: bool,
        aside: bool,
    },
    /// Two calls with the same id in a message, and `results` results for this id in the next message.
    Twins {
        results: usize,
    },
    /// Calls in neighbouring messages without a response id. The first `answered` calls get results, in reverse order.
    Neighbours {
        calls: usize,
        answered: usize,
    },
    /// A call with an id that other calls have too, and its result.
    Reused,
    /// A call without an id, and its result.
    NoId,
    /// A call in a user's message, with or without a result.
    UserCall {
        answered: bool,
    },
    /// A call and a result in one message of an assistant.
    OwnResult,
    /// A call, then a user's message with a text followed by the result.
    Mixed,
    /// A call, then its result in a system message.
    SystemResult,
    /// A message of a tool without a result.
    ToolText,
    /// A call and a blank text in one message, the result, and a blank message.
    Blank,
    /// A result for the oldest call without a result.
    Late(String),
    Orphan(String),
    Note,
    Empty,
    Image,
    Unknown,
    Reasoning,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0_usize..60).prop_map(|n| "word ".repeat(n)),
        2 => (0_usize..600).prop_map(|n| "x\n".repeat(n)),
        1 => (0_usize..400).prop_map(|n| "日本語の文 & <tag> ".repeat(n)),
        1 => (1_000_usize..20_000).prop_map(|n| "0123456789".repeat(n / 10)),
        1 => ".{0,40}",
    ]
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let calls = (
        prop::collection::vec(text(), 1..5),
        0_usize..6,
        any::<(bool, bool, bool)>(),
    );
    prop_oneof![
        4 => text().prop_map(Event::User),
        3 => text().prop_map(Event::Assistant),
        1 => prop::collection::vec(text(), 1..6).prop_map(Event::Lines),
        6 => calls.prop_map(|(results, answered, (lines, between, aside))| Event::Calls {
            results, answered, lines, between, aside
        }),
        1 => (0_usize..4).prop_map(|results| Event::Twins { results }),
        2 => (2_usize..5, 0_usize..5)
            .prop_map(|(calls, answered)| Event::Neighbours { calls, answered }),
        2 => Just(Event::Reused),
        1 => Just(Event::NoId),
        1 => any::<bool>().prop_map(|answered| Event::UserCall { answered }),
        1 => Just(Event::OwnResult),
        1 => Just(Event::Mixed),
        1 => Just(Event::SystemResult),
        1 => Just(Event::ToolText),
        1 => Just(Event::Blank),
        2 => text().prop_map(Event::Late),
        1 => text().prop_map(Event::Orphan),
        1 => Just(Event::Note),
        1 => Just(Event::Empty),
        1 => Just(Event::Image),
        1 => Just(Event::Unknown),
        1 => Just(Event::Reasoning),
    ]
}

fn call(id: &str) -> Part {
    Part::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: RawJson::parse(r#"{"path":"src/lib.rs"}"#).unwrap(),
    }
}

fn result(id: &str, text: &str) -> Part {
    let image = Part::Image(Media {
        media_type: "image/png".to_owned(),
        source: MediaSource::Data("A".repeat(400)),
    });
    let content = if text.len() % 5 == 3 {
        ResultContent::Parts(vec![Part::text(text), image])
    } else {
        ResultContent::Text(text.to_owned())
    };
    Part::ToolResult {
        call_id: id.to_owned(),
        content,
        is_error: (text.len() % 7 == 1).then_some(true),
    }
}

/// Returns the conversation with these events.
pub(crate) fn messages(events: &[Event]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    let mut waiting: Vec<String> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let tool = |parts| Message::new(Role::Tool, parts);
        match event {
            Event::User(text) => out.push(Message::user(text.as_str()).with_name("ada")),
            Event::Assistant(text) => out.push(Message::assistant(text.as_str())),
            Event::Lines(texts) => {
                out.extend(texts.iter().map(|text| {
                    Message::assistant(text.as_str()).with_response(format!("lines{at}"))
                }))
            }
            Event::Calls {
                results,
                answered,
                lines,
                between,
                aside,
            } => {
                let ids: Vec<String> = (0..results.len()).map(|n| format!("c{at}-{n}")).collect();
                let mut answers: Vec<Message> = Vec::new();
                if *lines {
                    for (n, id) in ids.iter().enumerate() {
                        let line = Message::new(Role::Assistant, vec![call(id)]);
                        out.push(line.with_response(format!("r{at}")));
                        let answer = tool(vec![result(id, &results[n])]);
                        match (n < *answered, *between) {
                            (true, true) => out.push(answer),
                            (true, false) => answers.push(answer),
                            (false, _) => waiting.push(id.clone()),
                        }
                    }
                } else {
                    let mut parts = vec![Part::text("Let me look.")];
                    parts.extend(ids.iter().map(|id| call(id)));
                    out.push(Message::new(Role::Assistant, parts));
                    let done = ids.iter().zip(results).take(*answered);
                    let parts: Vec<Part> = done.map(|(id, text)| result(id, text)).collect();
                    if *between {
                        answers.extend(parts.into_iter().map(|part| tool(vec![part])));
                    } else if !parts.is_empty() {
                        answers.push(tool(parts));
                    }
                    waiting.extend(ids.iter().skip(*answered).cloned());
                }
                if *aside {
                    out.push(Message::user("Stop a moment."));
                    out.push(Message::note(Role::System, vec![Part::text("label")]));
                }
                out.extend(answers);
            }
            Event::Twins { results } => {
                let id = format!("twin{at}");
                out.push(Message::new(Role::Assistant, vec![call(&id), call(&id)]));
                let parts: Vec<Part> = (0..*results).map(|_| result(&id, "twin")).collect();
                if !parts.is_empty() {
                    out.push(tool(parts));
                }
            }
            Event::Neighbours { calls, answered } => {
                let ids: Vec<String> = (0..*calls).map(|n| format!("n{at}-{n}")).collect();
                let line = |id: &String| Message::new(Role::Assistant, vec![call(id)]);
                out.extend(ids.iter().map(line));
                let done = ids.iter().take(*answered).rev();
                out.extend(done.map(|id| tool(vec![result(id, "done")])));
                waiting.extend(ids.into_iter().skip(*answered));
            }
            Event::Reused => {
                out.push(Message::new(Role::Assistant, vec![call("reused")]));
                out.push(tool(vec![result("reused", "again")]));
            }
            Event::NoId => {
                out.push(Message::new(Role::Assistant, vec![call("")]));
                out.push(tool(vec![result("", "nameless")]));
            }
            Event::UserCall { answered } => {
                let id = format!("u{at}");
                out.push(Message::new(Role::User, vec![call(&id)]));
                if *answered {
                    out.push(tool(vec![result(&id, "for a user")]));
                }
            }
            Event::OwnResult => {
                let id = format!("own{at}");
                let parts = vec![call(&id), result(&id, "own")];
                out.push(Message::new(Role::Assistant, parts));
            }
            Event::Mixed => {
                let id = format!("m{at}");
                out.push(Message::new(Role::Assistant, vec![call(&id)]));
                let parts = vec![Part::text("First this."), result(&id, "then that")];
                out.push(Message::new(Role::User, parts));
            }
            Event::SystemResult => {
                let id = format!("s{at}");
                out.push(Message::new(Role::Assistant, vec![call(&id)]));
                out.push(Message::new(Role::System, vec![result(&id, "by nobody")]));
            }
            Event::ToolText => out.push(tool(vec![Part::text("progress: 50 %")])),
            Event::Blank => {
                let id = format!("b{at}");
                let parts = vec![Part::text("\n"), call(&id)];
                out.push(Message::new(Role::Assistant, parts));
                out.push(tool(vec![result(&id, "")]));
                out.push(Message::user(" "));
            }
            Event::Late(text) => {
                if !waiting.is_empty() {
                    out.push(tool(vec![result(&waiting.remove(0), text)]));
                }
            }
            Event::Orphan(text) => out.push(tool(vec![result(&format!("o\n{at}"), text)])),
            Event::Note => out.push(Message::note(Role::System, vec![Part::text("note")])),
            Event::Empty => out.push(Message::new(Role::Assistant, Vec::new())),
            Event::Image => {
                let media = Media {
                    media_type: "image/png".to_owned(),
                    source: MediaSource::Data("A".repeat(90_000)),
                };
                out.push(Message::new(Role::User, vec![Part::Image(media)]));
            }
            Event::Unknown => {
                let raw = RawJson::parse(r#"{"type":"odd","n":1.00}"#).unwrap();
                out.push(Message::new(Role::User, vec![Part::Unknown { raw }]));
            }
            Event::Reasoning => {
                let thought = Part::Reasoning {
                    text: "I think. ".repeat(50),
                    signature: Some("sig".to_owned()),
                };
                out.push(Message::new(
                    Role::Assistant,
                    vec![thought, Part::text("So.")],
                ));
            }
        }
    }
    out
}

/// Returns the messages as a stored log.
pub(crate) fn log(messages: Vec<Message>, accounting: &dyn Accounting) -> Vec<LogEntry> {
    let mut running = 0;
    let store = |(index, message): (usize, Message)| {
        let tokens = accounting.message(&message);
        running += tokens;
        LogEntry {
            seq: Seq(index as u32 + 1),
            hash: Hash::ZERO,
            message,
            tokens,
            running,
        }
    };
    messages.into_iter().enumerate().map(store).collect()
}

/// Form in which a random view shows a range.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown {
    Raw,
    Summary {
        bytes: usize,
        depth: u32,
    },
    /// A summary of `lines` lines: an extract with ranks, or a written text without.
    Lines {
        lines: usize,
        ranked: bool,
    },
    Omitted,
    Trimmed,
}

pub(crate) fn shown() -> impl Strategy<Value = Shown> {
    prop_oneof![
        4 => Just(Shown::Raw),
        2 => (0_usize..4_000, 0_u32..3).prop_map(|(bytes, depth)| Shown::Summary { bytes, depth }),
        3 => (1_usize..120, any::<bool>()).prop_map(|(lines, ranked)| Shown::Lines { lines, ranked }),
        1 => Just(Shown::Omitted),
        1 => Just(Shown::Trimmed),
    ]
}

pub(crate) fn summary(
    range: SeqRange,
    depth: u32,
    text: String,
    accounting: &dyn Accounting,
) -> Summary {
    let id = |n: u32| SummaryId::new(format!("sum_{n:016x}"));
    let children = if depth == 0 {
        vec![Child::Messages { range }]
    } else {
        vec![Child::Summary {
            range,
            id: id(range.last.0 + 1_000),
        }]
    };
    let (source_hash, recipe) = (Hash::ZERO, Recipe::new("test@1"));
    let mut summary = Summary {
        id: id(range.first.0),
        earliest_at: Timestamp(1_700_000_000_000_000),
        latest_at: Timestamp(1_700_000_060_000_000),
        created_at: Timestamp(1_700_000_120_000_000),
        rendering: accounting.rendering(),
        ..Summary::new(range, depth, children, source_hash, recipe, text)
    };
    summary.tokens = accounting.summary(&summary);
    summary
}

/// Returns a body of unique lines. Every tenth line is in the headline.
pub(crate) fn lines_of(range: SeqRange, lines: usize, ranked: bool) -> SummaryBody {
    let words = [
        "port",
        "<user>",
        "deploy & test",
        "日本語",
        "src/main.rs:42",
        "[… 3 …]",
    ];
    let text = |line: usize| {
        let words = (0..(line * 7) % 23).map(|n| words[(line + n) % words.len()]);
        format!(
            "S{}L{line}: {}",
            range.first,
            words.collect::<Vec<_>>().join(" ")
        )
    };
    let texts: Vec<String> = (0..lines).map(text).collect();
    if !ranked {
        return SummaryBody::new(texts.join("\n"));
    }
    let rank = |line: usize| match line % 10 {
        3 if line < 20 => 255,
        _ => 254 - (line * 37 % 100) as u8,
    };
    let line = |(line, text)| RankedLine {
        text,
        rank: rank(line),
    };
    SummaryBody::ranked(texts.iter().map(String::as_str).enumerate().map(line))
}

/// Returns a view of the log: ranges of `(atoms, shown)` from the beginning, and the rest raw.
pub(crate) fn input(
    entries: &[LogEntry],
    stretches: &[(usize, Shown)],
    accounting: &dyn Accounting,
) -> AssemblyInput {
    let cuts = atoms(entries);
    let mut input = AssemblyInput::default();
    let mut atom = 0;
    let mut from = 0;
    for (length, shown) in stretches {
        atom += length;
        let next = cuts.as_slice().get(atom.min(cuts.len().saturating_sub(1)));
        let to = next.map_or(0, |atom| atom.range().start);
        let slice = &entries[from..to.max(from)];
        let Some(range) = slice
            .first()
            .and_then(|first| SeqRange::new(first.seq, slice.last()?.seq))
        else {
            continue;
        };
        from = to;
        let tokens: u64 = slice.iter().map(|entry| entry.tokens).sum();
        let (item, tokens) = match *shown {
            Shown::Raw => (Item::Raw(slice.to_vec()), tokens),
            Shown::Summary { bytes, depth } => {
                let summary = summary(range, depth, "S".repeat(bytes), accounting);
                let tokens = summary.tokens;
                (Item::Summary(Box::new(summary)), tokens)
            }
            Shown::Lines { lines, ranked } => {
                let body = lines_of(range, lines, ranked);
                let mut summary = summary(range, 0, String::new(), accounting);
                summary.body = body;
                summary.tokens = accounting.summary(&summary);
                let tokens = summary.tokens;
                (Item::Summary(Box::new(summary)), tokens)
            }
            Shown::Omitted => (Item::Omitted(range), 0),
            Shown::Trimmed => {
                let policy = TrimPolicyId::new("trim@1");
                (
                    Item::Trimmed(policy, slice.to_vec(), tokens / 2),
                    tokens / 2,
                )
            }
        };
        input.items.push(item);
        input.view_tokens += tokens;
    }
    let rest = &entries[from..];
    input.view_tokens += rest.iter().map(|entry| entry.tokens).sum::<u64>();
    if !rest.is_empty() {
        input.items.push(Item::Raw(rest.to_vec()));
    }
    input
}
