//! What the tests share: a message type of their own, and loops of it.

use block_overlay::{
    BlockSettings, CompactionConfig, CompactionScope, DefaultBlockCompaction, LoopContext,
    LoopMessage, LoopRecord, LoopSession, LoopTurnId, Shown, build_context_from_session,
    compact_session_loops,
};
use memory_model::Timestamp;
use serde::{Deserialize, Serialize};
use token_estimate::HeuristicEstimator;
use turn_map::{EditableMessage, MessageView, PartView, Role};

/// Runs a future to its end.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(future)
}

pub(crate) const NOW: Timestamp = Timestamp(1_770_000_000_000_000);
pub(crate) const COUNTER: HeuristicEstimator = HeuristicEstimator::Bytes4PerPart;

/// A message as some host has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Msg {
    pub(crate) role: Role,
    pub(crate) content: Vec<Block>,
    #[serde(rename = "turnId", default, skip_serializing_if = "Option::is_none")]
    pub(crate) turn_id: Option<LoopTurnId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text { text: String },
    Call { id: String, name: String },
    Result { id: String, text: String },
}

impl MessageView for Msg {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        for block in &self.content {
            match block {
                Block::Text { text } => visit(PartView::Text(text)),
                Block::Call { id, name } => visit(PartView::ToolCall {
                    id,
                    name,
                    arguments: "{}",
                }),
                Block::Result { id, text } => visit(PartView::ToolResult {
                    call_id: id,
                    name: None,
                    content: &[PartView::Text(text)],
                    is_error: false,
                }),
            }
        }
    }

    fn turn(&self) -> Option<u64> {
        self.turn_id.as_ref().map(|id| u64::from(id.turn_index))
    }
}

impl EditableMessage for Msg {
    type Part = Block;

    fn take_parts(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.content)
    }

    fn put_parts(&mut self, parts: Vec<Block>) {
        self.content = parts;
    }

    fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    fn results_behind(&self, parts: Vec<Block>) -> Vec<Self> {
        vec![new(Role::Tool, parts)]
    }

    fn result_part(id: String, text: String) -> Block {
        Block::Result { id, text }
    }

    fn set_text(part: &mut Block, new: String) {
        match part {
            Block::Text { text } | Block::Result { text, .. } => *text = new,
            Block::Call { .. } => {}
        }
    }

    fn set_id(part: &mut Block, new: String) {
        match part {
            Block::Call { id, .. } | Block::Result { id, .. } => *id = new,
            Block::Text { .. } => {}
        }
    }

    fn result_to_text(part: Block, heading: String) -> Vec<Block> {
        let text = match part {
            Block::Text { text } | Block::Result { text, .. } => format!("{heading}\n{text}"),
            Block::Call { .. } => heading,
        };
        vec![Block::Text { text }]
    }
}

impl LoopMessage for Msg {
    fn user(text: String) -> Self {
        said(Role::User, &text)
    }
}

fn new(role: Role, content: Vec<Block>) -> Msg {
    Msg {
        role,
        content,
        turn_id: None,
    }
}

pub(crate) fn said(role: Role, text: &str) -> Msg {
    let text = text.to_owned();
    new(role, vec![Block::Text { text }])
}

pub(crate) fn user(text: &str) -> Msg {
    said(Role::User, text)
}

pub(crate) fn assistant(text: &str) -> Msg {
    said(Role::Assistant, text)
}

pub(crate) fn call(id: &str) -> Msg {
    let (id, name) = (id.to_owned(), "read".to_owned());
    new(Role::Assistant, vec![Block::Call { id, name }])
}

pub(crate) fn result(id: &str, text: &str) -> Msg {
    let (id, text) = (id.to_owned(), text.to_owned());
    new(Role::Tool, vec![Block::Result { id, text }])
}

impl Msg {
    pub(crate) fn in_turn(mut self, loop_id: &str, turn_index: u32) -> Self {
        let loop_id = loop_id.to_owned();
        self.turn_id = Some(LoopTurnId {
            loop_id,
            turn_index,
        });
        self
    }

    pub(crate) fn text(&self) -> String {
        let text = |block: &Block| match block {
            Block::Text { text } | Block::Result { text, .. } => text.clone(),
            Block::Call { id, .. } => format!("<{id}>"),
        };
        self.content.iter().map(text).collect::<Vec<_>>().join("\n")
    }
}

/// Lines of a tool's output.
pub(crate) fn output(lines: usize) -> String {
    (1..=lines)
        .map(|n| format!("line {n} of the output\n"))
        .collect()
}

/// A loop of turns: every third calls a tool with `lines` lines of output, the others answer.
pub(crate) fn turns(id: &str, count: u32, lines: usize) -> LoopRecord<Msg> {
    let mut messages = Vec::new();
    for turn in 0..count {
        let asks = user(&format!("{id}: question {turn}, please look at it closely"));
        let mut of_turn = vec![asks];
        if turn % 3 == 2 {
            let tool = format!("{id}-{turn}");
            of_turn.extend([
                call(&tool),
                result(&tool, &format!("{tool}\n{}", output(lines))),
            ]);
        } else {
            of_turn.push(assistant(&format!(
                "{id}: answer {turn}, which is quite a bit longer than the question was. {}",
                "It goes on and on. ".repeat(12)
            )));
        }
        messages.extend(of_turn.into_iter().map(|message| message.in_turn(id, turn)));
    }
    LoopRecord::new(id, messages)
}

/// A chain of loops, each the parent of the next.
pub(crate) fn chain(loops: Vec<LoopRecord<Msg>>) -> LoopSession<Msg> {
    let mut session = LoopSession::new("s");
    let mut parent: Option<String> = None;
    for record in loops {
        let id = record.loop_id.clone();
        session.push(match parent {
            Some(parent) => record.with_parent(parent),
            None => record,
        });
        parent = Some(id);
    }
    session
}

pub(crate) fn config() -> CompactionConfig<Msg> {
    CompactionConfig::default()
}

pub(crate) fn fixed(count: usize) -> CompactionConfig<Msg> {
    config().with_scope(CompactionScope::FixedCount(count))
}

pub(crate) fn settings(config: &CompactionConfig<Msg>, budget: u64) -> BlockSettings<'_, Msg> {
    BlockSettings::new(config, budget, &COUNTER, NOW)
}

/// Makes the blocks with the default strategy, and returns the ids of the loops that got one.
pub(crate) fn compact(
    session: &mut LoopSession<Msg>,
    current: &str,
    config: &CompactionConfig<Msg>,
    budget: u64,
) -> Vec<String> {
    let settings = settings(config, budget);
    let made = compact_session_loops(session, current, &DefaultBlockCompaction, &settings);
    block_on(made)
        .unwrap()
        .into_iter()
        .map(|made| made.loop_id)
        .collect()
}

pub(crate) fn context(
    session: &LoopSession<Msg>,
    current: &str,
    config: &CompactionConfig<Msg>,
    budget: u64,
) -> LoopContext<Msg> {
    build_context_from_session(session, current, &settings(config, budget)).unwrap()
}

/// What is shown of the turns of one loop, a letter a turn.
pub(crate) fn letters(context: &LoopContext<Msg>, loop_id: &str) -> String {
    let of_loop = context.turns.iter().filter(|turn| turn.loop_id == loop_id);
    let letter = |shown: Shown| match shown {
        Shown::Raw => 'r',
        Shown::Trimmed => 't',
        Shown::Summarized => 's',
        Shown::Omitted => '-',
        _ => '?',
    };
    of_loop.map(|turn| letter(turn.shown)).collect()
}

pub(crate) fn texts(messages: &[Msg]) -> Vec<String> {
    messages.iter().map(Msg::text).collect()
}
