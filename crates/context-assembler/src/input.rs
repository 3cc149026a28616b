//! The input of an assembly.

use memory_model::{LogEntry, Seq, SeqRange, Summary, TrimPolicyId};

/// A span of a view together with the messages or the summary that it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Messages to be shown unchanged: the whole span or a newer part of it. The first message begins an atom.
    Raw(Vec<LogEntry>),
    /// Messages to be shown shortened. The values are the trim policy that shortens them, the messages as stored, and
    /// the cost of the shortened messages that the view records, in tokens. A policy that is not known leaves them
    /// whole.
    Trimmed(TrimPolicyId, Vec<LogEntry>, u64),
    /// A summary to be shown instead of its messages.
    Summary(Box<Summary>),
    /// Messages that the preceding summary covers, to be shown unchanged after it. They are the first to be left out,
    /// unless they are [requested](AssemblyInput::requested).
    Quoted(Vec<LogEntry>),
    /// Range of messages that the view omits.
    Omitted(SeqRange),
    /// Range of the view that was not read because it cannot fit, and the cost of that range as the view records it, in
    /// tokens. The context leaves it out.
    Unread(SeqRange, u64),
}

/// Input of [`assemble`](fn@crate::assemble): the content of a view, with additions that the context should show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssemblyInput {
    /// Cost of the whole view, in tokens.
    pub view_tokens: u64,
    /// Items of the view in order, without gaps, from the log's first position to its last.
    pub items: Vec<Item>,
    /// Positions of the messages of the request that the user still waits for, in ascending order. The budget is spent
    /// on them first. A single one costs at most a quarter of the tokens that are left for messages, or more if the rest
    /// of the context does not need them.
    pub requested: Vec<Seq>,
    /// Description of the current state of the conversation; `None` for none. It follows the last summary, and is left
    /// out if the latest group of messages needs its tokens.
    pub state: Option<String>,
    /// Remarks on sentences of messages. The context shows each remark directly after its sentence.
    pub remarks: Vec<Remark>,
}

/// A remark to be shown after a sentence of a message, such as that a later message contradicts the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Position in the log of the message that holds the sentence.
    pub seq: Seq,
    /// The sentence after which the remark is shown. If the message's text does not contain it, the remark is not
    /// shown.
    pub behind: String,
    /// Text of the remark, without the marks that surround it.
    pub text: String,
}
