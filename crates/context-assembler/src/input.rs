//! The input of an assembly.

use memory_model::{LogEntry, Seq, SeqRange, Summary, TrimPolicyId};

/// A span of a view, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Messages verbatim: the whole span or a newer part of it. The first message begins an atom.
    Raw(Vec<LogEntry>),
    /// The trim policy that shortens the messages, the messages as they were stored, and the cost that the view records
    /// for the shortened messages, in tokens. An unknown policy leaves them whole.
    Trimmed(TrimPolicyId, Vec<LogEntry>, u64),
    /// A summary.
    Summary(Box<Summary>),
    /// Messages of the preceding summary, to be shown verbatim after it. They are the first to be omitted, unless they
    /// are [requested](AssemblyInput::requested).
    Quoted(Vec<LogEntry>),
    /// Messages that the view omits.
    Omitted(SeqRange),
    /// A part of the view that was not read because it cannot fit, and the cost that the view records for it, in
    /// tokens. The context omits it.
    Unread(SeqRange, u64),
}

/// Input of [`assemble`](fn@crate::assemble): a view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssemblyInput {
    /// Cost of the whole view, in tokens.
    pub view_tokens: u64,
    /// Items of the view without gaps, from the log's first position through its head.
    pub items: Vec<Item>,
    /// Positions of the messages of the running request, rising. They are shown before all others, each in at most a
    /// quarter of the room.
    pub requested: Vec<Seq>,
    /// State of the conversation. It follows the last summary, and is omitted if the latest group needs its room.
    pub state: Option<String>,
    /// Remarks about sentences of messages.
    pub remarks: Vec<Remark>,
}

/// A remark after a sentence of a message, such as that a later message contradicts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Position of the message.
    pub seq: Seq,
    /// The sentence. If the message's text does not contain it, there is no remark.
    pub behind: String,
    /// The remark, without the marks around it.
    pub text: String,
}
