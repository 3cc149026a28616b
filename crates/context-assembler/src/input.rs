//! The input of an assembly.

use memory_model::{LogEntry, Seq, SeqRange, Summary, TrimPolicyId};

/// A span of a view, with the messages or the summary that the view shows there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Messages to show unchanged: the whole span, or its end. The first message must begin an atom: a tool result is
    /// not separated from its call.
    Raw(Vec<LogEntry>),
    /// Messages to show shortened. The values are the rule for shortening, the messages as stored, and the cost of the
    /// shortened messages as recorded in the view (the compacted log), in tokens. With an unknown rule, the messages
    /// are shown whole.
    Trimmed(TrimPolicyId, Vec<LogEntry>, u64),
    /// A summary to show instead of its messages.
    Summary(Box<Summary>),
    /// Messages to show unchanged although the summary before them covers them. They are left out first, unless they
    /// are [requested](AssemblyInput::requested).
    Quoted(Vec<LogEntry>),
    /// Range of messages that the view (the compacted log) does not show.
    Omitted(SeqRange),
    /// Range of the view (the compacted log) that the caller did not read, because it cannot fit, and its cost as
    /// recorded in the view, in tokens. The context leaves it out.
    Unread(SeqRange, u64),
}

/// Input of [`assemble`](fn@crate::assemble): the content of a view, and additions to show in the context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssemblyInput {
    /// Cost of the whole view (the compacted form of the log), in tokens.
    pub view_tokens: u64,
    /// Summaries from which summaries of the items were made, and from which these were made. A context that is used
    /// once shows all children of a summary in its place if each of them fits whole.
    pub below: Vec<Summary>,
    /// Items of the view (the compacted log), in order and without gaps, from the first position of the log to the
    /// last.
    pub items: Vec<Item>,
    /// Positions of the messages of the request that the user waits for, in ascending order. These messages get their
    /// tokens first. A single one costs at most a quarter of the tokens that are left for messages, or more if the rest
    /// of the context does not need them.
    pub requested: Vec<Seq>,
    /// Description of the current state of the conversation. `None` to show none. The context shows it after the last
    /// summary, but leaves it out if the latest group of messages needs its tokens.
    pub state: Option<String>,
    /// Remarks on sentences in messages. The context shows each remark directly after its sentence.
    pub remarks: Vec<Remark>,
}

/// A remark to show after a sentence of a message, for example that a later message contradicts the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Position in the log of the message that contains the sentence.
    pub seq: Seq,
    /// Sentence after which the remark is shown. If the message does not contain this sentence, the remark is not
    /// shown.
    pub behind: String,
    /// Text of the remark, without the marks around it.
    pub text: String,
}
