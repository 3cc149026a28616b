//! Loops of sixty turns with a large result in the middle.

use agent_memory::testing::memory;
use agent_memory::{
    Context, DagPolicy, HandoffPolicy, Message, Part, Session, Strategy, Window,
    model::ResultContent,
};

use crate::provider::accepted;
use crate::support::json;

const TURNS: usize = 60;
/// Index of the turn with the large result.
const LARGE: usize = 30;

const FIRST: &str = "FIRST LINE of the log";
const LAST: &str = "LAST LINE of the log";
/// A message that the user sends during the turn with the large result.
const MEANWHILE: &str = "And which worker was the slowest one?";

/// Returns the request of a turn, about twenty tokens long.
fn request(turn: usize) -> String {
    let line = turn * 7;
    format!("Look into module_{turn}: why does check_{turn} fail, and must line {line} change?")
}

fn answer(turn: usize) -> String {
    let line = turn * 7;
    format!("check_{turn} fails because case {turn} was never handled; line {line} handles it now.")
}

/// Returns lines of a log file, about `bytes` bytes long.
fn large_result(bytes: usize) -> String {
    let line = |n: usize| {
        let (worker, took) = (n % 17, n * 37 % 1_009);
        format!("{n:06} worker {worker} took {took} ms for a job\n")
    };
    let lines: String = (0..bytes / 40).map(line).collect();
    format!("{FIRST}\n{lines}{LAST}")
}

fn result(turn: usize, call: usize) -> String {
    let line =
        |line: usize| format!("src/module_{turn}.rs:{line}: step {call} handles case {line}");
    (0..30).map(line).collect::<Vec<_>>().join("\n")
}

fn text(context: &Context) -> String {
    let mut all = String::new();
    for part in context.messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::Text { text } => all += text,
            Part::ToolResult {
                content: ResultContent::Text(text),
                ..
            } => all += text,
            _ => {}
        }
        all.push('\n');
    }
    all
}

/// A loop of turns in one window.
struct Loop {
    session: Session,
    /// Requests that are not answered yet.
    open: Vec<String>,
    /// Context of the last call as text, with its cost and its maximum cost.
    text: String,
    tokens: u64,
    limit: u64,
}

impl Loop {
    async fn new(strategy: Strategy, window: u64) -> Self {
        let tokens = Window::new(window).budget().get();
        let memory = memory()
            .dag(DagPolicy::for_window(window))
            .handoff(HandoffPolicy::for_window(tokens))
            .strategy(strategy);
        let memory = memory.open().await.unwrap();
        Self {
            session: memory
                .session("loop")
                .window(Window::new(window))
                .await
                .unwrap(),
            open: Vec::new(),
            text: String::new(),
            tokens: 0,
            limit: 0,
        }
    }

    async fn ask(&mut self, text: &str) {
        self.session.before_turn().await.unwrap();
        self.session.ingest(Message::user(text)).await.unwrap();
        self.open.push(text.to_owned());
    }

    /// Calls the model. Every request that is not answered yet must be in the context, word for word.
    async fn call(&mut self) {
        let prepared = self.session.context().await.unwrap();
        let context = prepared.context;
        self.limit = context.receipt.limit;
        self.tokens = context.tokens;
        assert!(self.tokens + context.receipt.request_tokens <= self.limit);
        accepted(&context.messages).unwrap();
        self.text = text(&context);
        for open in &self.open {
            assert!(self.text.contains(open), "{open:?}: {}", self.text);
        }
    }

    async fn read(&mut self, id: &str, result: String) {
        self.call().await;
        let call = Message::tool_call(id, "read", json(r#"{"path":"src/lib.rs"}"#));
        self.session.ingest(call).await.unwrap();
        let result = Message::tool_result(id, result);
        self.session.ingest(result).await.unwrap();
    }

    async fn answer(&mut self, text: &str) {
        self.call().await;
        self.session.ingest(Message::assistant(text)).await.unwrap();
        self.session.after_turn().await.unwrap();
        self.open.clear();
    }
}

/// Runs turns of `reads` ordinary results each. Returns the largest share of the limit that a context has after the
/// turn with the large result, in percent.
async fn turns(strategy: Strategy, window: u64, bytes: usize, reads: usize) -> u64 {
    let mut agent = Loop::new(strategy, window).await;
    let mut share = 0;
    for turn in 1..=TURNS {
        agent.ask(&request(turn)).await;
        for n in 0..reads {
            agent.read(&format!("c{turn}_{n}"), result(turn, n)).await;
        }
        if turn == LARGE {
            agent.read("large", large_result(bytes)).await;
            agent.call().await;
            let shown = [FIRST, LAST, "left out; expand message:"];
            for shown in shown.iter().chain([&answer(turn - 1).as_str()]) {
                assert!(agent.text.contains(shown), "{shown:?}: {}", agent.text);
            }
            agent.ask(MEANWHILE).await;
        }
        agent.answer(&answer(turn)).await;
        if turn > LARGE {
            share = share.max(agent.tokens * 100 / agent.limit);
        }
        if reads == 0 {
            for before in 1..turn {
                let is_shown = agent.text.contains(&request(before));
                assert!(is_shown, "{strategy} {turn}: {before} is missing");
            }
        }
    }
    share
}

const STRATEGIES: [Strategy; 3] = [Strategy::Dag, Strategy::Handoff, Strategy::Blocks];

#[tokio::test]
async fn a_large_result_in_a_small_window_takes_no_request_and_the_room_is_used_again() {
    for strategy in STRATEGIES {
        for bytes in [60_000, 300_000] {
            let share = turns(strategy, 16_000, bytes, 4).await;
            assert!(share >= 75, "{strategy} {bytes}: {share} %");
        }
    }
}

#[tokio::test]
async fn a_result_of_a_megabyte_in_a_large_window() {
    for strategy in STRATEGIES {
        let share = turns(strategy, 128_000, 1_000_000, 4).await;
        assert!(share >= 50, "{strategy}: {share} %");
    }
}

/// All content except the large result fits, and no other content is left out at any time.
#[tokio::test]
async fn a_large_result_among_short_turns_hides_none_of_them() {
    for strategy in STRATEGIES {
        for (window, bytes) in [(16_000, 60_000), (16_000, 300_000), (128_000, 1_000_000)] {
            turns(strategy, window, bytes, 0).await;
        }
    }
}
