//! The content of a case: a policy and a sequence of operations.

use agent_memory::{
    DagPolicy, Message, Mode, Part, RawJson, Role, compaction::FreshTail, model::Timestamp,
};

use super::random::Random;

/// One operation. Numbers are taken modulo the number of available objects.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Appends messages of these kinds. With `crash`, the write fails first and is repeated.
    Say {
        chat: u8,
        kinds: Vec<u8>,
        crash: Option<Crash>,
    },
    /// Appends the last messages again, with the same ids.
    SayAgain {
        chat: u8,
        last: u8,
    },
    /// Compacts with a misbehaving model. Writes may fail from some write on, and the compaction may be cancelled or
    /// dropped.
    Compact {
        chat: u8,
        mode: Mode,
        model: Vec<Behaviour>,
        end: End,
    },
    /// Runs two compactions and an append at the same time.
    Race {
        chat: u8,
        kinds: Vec<u8>,
        model: Vec<Behaviour>,
        yields: u64,
    },
    Fork {
        chat: u8,
        at: u8,
    },
    Spawn {
        chat: u8,
        at: u8,
    },
    /// Reverts the view to an earlier version.
    Return {
        chat: u8,
        version: u8,
    },
    Reopen,
}

/// Number of the write that fails, from 1, and whether that write is completed in spite of the failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    pub(crate) write: u64,
    pub(crate) after: bool,
}

/// Way in which a compaction ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Done,
    Crash(Crash),
    /// The token is cancelled after this many steps.
    CancellationToken(u8),
    /// The future is dropped after this many steps.
    Drop(u8),
}

/// Behaviour of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Good,
    Error,
    Empty,
    Blank,
    Longer,
    Echo,
    Refusal,
    Truncated,
    /// Returns the first word of the source.
    Terse,
    Markup,
    Hang,
}

const BEHAVIOURS: [Behaviour; 11] = [
    Behaviour::Good,
    Behaviour::Error,
    Behaviour::Empty,
    Behaviour::Blank,
    Behaviour::Longer,
    Behaviour::Echo,
    Behaviour::Refusal,
    Behaviour::Truncated,
    Behaviour::Terse,
    Behaviour::Markup,
    Behaviour::Hang,
];

/// A complete description of a case.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) policy: DagPolicy,
    pub(crate) budget: u64,
    /// Whether summaries are made one at a time, so that the result does not depend on the speed of a store.
    pub(crate) serial: bool,
    pub(crate) ops: Vec<Op>,
}

pub(crate) fn script(seed: u64) -> Script {
    let mut random = Random(seed);
    let r = &mut random;
    let policy = policy(r);
    let budget = r.pick(&[300, 500, 900, 2_000, 100_000]);
    // Something to compact, a compaction, and a crash are in every case.
    let mut ops = vec![Op::Say {
        chat: 0,
        kinds: kinds(r, 20),
        crash: None,
    }];
    for _ in 0..2 + r.below(5) {
        ops.push(op(r));
    }
    let crash = Crash {
        write: 1,
        after: r.one_in(2),
    };
    ops.push(Op::Say {
        chat: r.byte(),
        kinds: kinds(r, 4),
        crash: Some(crash),
    });
    ops.push(Op::Compact {
        chat: r.byte(),
        mode: Mode::Full,
        model: behaviours(r, false),
        end: End::Done,
    });
    for _ in 0..r.below(3) {
        ops.push(op(r));
    }
    Script {
        policy,
        budget,
        serial: false,
        ops,
    }
}

impl Script {
    /// Returns the script without operations that depend on the speed of a store.
    pub(crate) fn serial(mut self) -> Script {
        self.serial = true;
        self.ops.retain(|op| match op {
            Op::Race { .. } => false,
            Op::Compact { end, .. } => matches!(end, End::Done | End::Crash(_)),
            _ => true,
        });
        self
    }
}

fn policy(r: &mut Random) -> DagPolicy {
    let limited = r.one_in(2);
    let tail = FreshTail {
        messages: r.pick(&[0, 1, 2, 3, 5, 8]),
        max_tokens: limited.then_some(400),
        max_part: limited.then_some(4),
    };
    let most = r.pick(&[None, Some(2), Some(3), Some(4)]);
    let mut policy = DagPolicy {
        fresh_tail: tail,
        leaf_min_messages: r.pick(&[1, 2, 3, 5]),
        max_source_tokens: r.pick(&[None, Some(80), Some(150), Some(400)]),
        condensed_min: r.pick(&[2, 2, 3]),
        condensed_max: most,
        max_depth: r.pick(&[None, None, Some(0), Some(1), Some(2)]),
        ..DagPolicy::default()
    };
    policy.keep_request = !r.one_in(4);
    policy.bridge = !r.one_in(4);
    policy.require_gain = !r.one_in(4);
    policy
}

fn kinds(r: &mut Random, most: u64) -> Vec<u8> {
    let count = 1 + r.below(most);
    (0..count).map(|_| r.byte()).collect()
}

fn behaviours(r: &mut Random, hang: bool) -> Vec<Behaviour> {
    let count = 1 + r.below(4);
    let of = if hang {
        &BEHAVIOURS[..]
    } else {
        &BEHAVIOURS[..10]
    };
    let mut all: Vec<Behaviour> = (0..count).map(|_| r.pick(of)).collect();
    // Half of the models are good to the end.
    if r.one_in(2) {
        all.push(Behaviour::Good);
    }
    all
}

fn op(r: &mut Random) -> Op {
    let chat = r.byte();
    match r.below(16) {
        0..=3 => Op::Say {
            chat,
            kinds: kinds(r, 10),
            crash: None,
        },
        4 => Op::SayAgain {
            chat,
            last: r.byte(),
        },
        5..=8 => {
            let mode = r.pick(&[Mode::Incremental, Mode::Full]);
            let end = match r.below(6) {
                0 | 1 => End::Crash(Crash {
                    write: 1 + r.below(12),
                    after: r.one_in(2),
                }),
                2 => End::CancellationToken(r.byte() % 12),
                3 => End::Drop(r.byte() % 12),
                _ => End::Done,
            };
            let hang = matches!(end, End::CancellationToken(_) | End::Drop(_));
            Op::Compact {
                chat,
                mode,
                model: behaviours(r, hang),
                end,
            }
        }
        9 | 10 => Op::Race {
            chat,
            kinds: kinds(r, 5),
            model: behaviours(r, false),
            yields: r.next(),
        },
        11 | 12 => Op::Fork { chat, at: r.byte() },
        13 => Op::Spawn { chat, at: r.byte() },
        14 => Op::Return {
            chat,
            version: r.byte(),
        },
        _ => Op::Reopen,
    }
}

const WORDS: [&str; 16] = [
    "deploy",
    "the",
    "green",
    "tests",
    "only",
    "after",
    "release",
    "branch",
    "日本語",
    "Grüße",
    "src/main.rs",
    "error[E0308]:",
    "<b>",
    "\u{0}",
    "🙂",
    "2026-01-01",
];

fn words(r: &mut Random, count: u64) -> String {
    let words: Vec<&str> = (0..count).map(|_| r.pick(&WORDS)).collect();
    words.join(" ")
}

fn call(id: &str, r: &mut Random) -> Part {
    let arguments = format!("{{\"path\": \"{}\", \"n\": 1.00}}", r.below(99));
    Part::ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: RawJson::parse(arguments).unwrap(),
    }
}

/// Returns messages of these kinds. `unanswered` are the calls that have no result yet.
pub(crate) fn messages(
    kinds: &[u8],
    name: &str,
    count: &mut u64,
    unanswered: &mut Vec<String>,
) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    for kind in kinds {
        *count += 1;
        let n = *count;
        let r = &mut Random(n.wrapping_mul(31).wrapping_add(u64::from(*kind)));
        let id = format!("{name} {n}");
        let length = r.pick(&[1, 5, 20, 40]);
        let text = words(r, length);
        let result = |id: &str, r: &mut Random| {
            let length = r.pick(&[1, 30, 150]);
            Message::tool_result(id, words(r, length))
        };
        match kind % 24 {
            0..=3 => out.push(Message::user(format!("{n}: {text}"))),
            4..=6 => out.push(Message::assistant(format!("{n}: {text}"))),
            // A call with its result, two at once, one that nobody answers, or answers late.
            7 | 8 => {
                let parts = vec![Part::text(text), call(&id, r)];
                out.push(Message::new(Role::Assistant, parts));
                out.push(result(&id, r));
            }
            9 => {
                let (a, b) = (format!("{id} a"), format!("{id} b"));
                out.push(Message::new(
                    Role::Assistant,
                    vec![call(&a, r), call(&b, r)],
                ));
                out.push(result(&b, r));
                out.push(result(&a, r));
            }
            10 => {
                out.push(Message::new(Role::Assistant, vec![call(&id, r)]));
                unanswered.push(id.clone());
            }
            11 => match unanswered.pop() {
                Some(id) => out.push(result(&id, r)),
                None => out.push(result("nobody's", r)),
            },
            12 => out.push(Message::note(Role::System, vec![Part::text(text)])),
            13 => out.push(Message::user(words(r, 300))),
            14 => out.push(Message::user("The same again.")),
            15 => out.push(Message::new(Role::Assistant, Vec::new())),
            // A user speaks before the result.
            16 => {
                out.push(Message::new(Role::Assistant, vec![call(&id, r)]));
                out.push(Message::user("Stop a moment."));
                out.push(result(&id, r));
            }
            // Parallel calls on neighbouring lines.
            17 => {
                let (a, b) = (format!("{id} a"), format!("{id} b"));
                out.push(Message::new(Role::Assistant, vec![call(&a, r)]));
                out.push(Message::new(Role::Assistant, vec![call(&b, r)]));
                out.push(result(&a, r));
                out.push(result(&b, r));
            }
            // An id that others have, or none.
            18 | 19 => {
                let id = r.pick(&["again", "again", ""]);
                out.push(Message::new(Role::Assistant, vec![call(id, r)]));
                out.push(result(id, r));
            }
            // A user calls, or brings a result behind what it says.
            20 => {
                out.push(Message::new(Role::User, vec![call(&id, r)]));
                out.push(result(&id, r));
            }
            21 => {
                out.push(Message::new(Role::Assistant, vec![call(&id, r)]));
                let answer = result(&id, r).parts.remove(0);
                out.push(Message::new(Role::User, vec![Part::text(text), answer]));
            }
            // A call and its result in one message.
            22 => {
                let answer = result(&id, r).parts.remove(0);
                out.push(Message::new(Role::Assistant, vec![call(&id, r), answer]));
            }
            _ => out.push(Message::user(" ")),
        }
    }
    let mut numbered = Vec::new();
    for (part, message) in out.into_iter().enumerate() {
        let message = message.with_created_at(Timestamp(1_000_000 * (1 + *count as i64)));
        numbered.push(match kinds[0] % 3 {
            0 => message,
            _ => message.with_external_id(format!("{name} {count} {part}")),
        });
    }
    numbered
}
