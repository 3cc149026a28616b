//! Sentences that later messages replace.

use memory_model::conventions::AgentConventions;
use memory_model::{Seq, SummaryBody};

use crate::gather::gather;
use crate::item::{Kind, REPLACED};
use crate::later::{BEGIN, Later};
use crate::source::Source;
use crate::text::line_sentences;

/// A sentence in a message or a summary that a later message replaces or contradicts. The sentence is from the user or
/// from the assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overtaken {
    /// Position of the message that contains the sentence.
    pub seq: Seq,
    /// Text of the sentence that is replaced.
    pub sentence: String,
    /// Position of the later message that replaces the sentence.
    pub later: Seq,
    /// Whether the later message replaces only a part of the sentence: it changes one of several things that the
    /// sentence is about.
    pub in_part: bool,
    /// Value that the later message sets instead, or quoted words of the later message; `None` if there are neither.
    pub value: Option<String>,
}

impl Overtaken {
    /// Returns a note to put after the sentence that refers to the later message, such as `(later: [88]: 'x')`.
    pub fn note(&self) -> String {
        let later = Later {
            seq: self.later,
            in_part: self.in_part,
            value: self.value.clone(),
        };
        later.to_string().trim_start().to_owned()
    }

    /// Returns the text of a summary with the [note](Self::note) added after the sentence. `None` if the text does not
    /// contain the sentence, or has a note after it.
    pub fn mark(&self, body: &SummaryBody) -> Option<SummaryBody> {
        let text = body.text();
        let line = text.find(&format!("[{}] ", self.seq))?;
        let at = line + text.get(line..)?.find(&self.sentence)? + self.sentence.len();
        let (before, after) = text.split_at_checked(at)?;
        if after.starts_with(BEGIN) {
            return None;
        }
        let marked = format!("{before} {}{after}", self.note());
        SummaryBody::from_parts(marked, body.ranks().map(<[u8]>::to_vec)).ok()
    }
}

/// Returns the sentences of messages and earlier summaries that later ones replace. `pieces` are in the order of the log. Takes
/// time proportional to the length of their texts.
pub fn overtaken(pieces: &[Source<'_>], conventions: &dyn AgentConventions) -> Vec<Overtaken> {
    let gathered = gather(pieces, conventions);
    let users = gathered.items.iter().filter(|item| item.kind == Kind::User);
    let sentences = users.flat_map(|item| {
        let whole = item.later.filter(|_| item.weight == REPLACED);
        let whole = whole.map(|seq| {
            let later = Later {
                seq,
                in_part: false,
                value: item.instead.clone(),
            };
            (item.lines.join(" "), later)
        });
        let all = item.lines.iter().flat_map(|line| line_sentences(line));
        let parts = all.filter_map(|sentence| {
            let (said, later) = Later::read(&sentence)?;
            Some((said.to_owned(), later))
        });
        whole
            .into_iter()
            .chain(parts)
            .map(|told| (item.range, told))
    });
    let forgotten = gathered.forgotten.iter();
    let forgotten = forgotten.map(|one| (one.range, (one.sentence.clone(), one.later.clone())));
    let overtaken = sentences
        .chain(forgotten)
        .filter_map(|(own, (sentence, later))| {
            let piece = pieces.iter().find(|piece| piece.range().covers(&own))?;
            let is_outside = piece.range().last < later.seq;
            is_outside.then_some(Overtaken {
                seq: own.last,
                sentence,
                later: later.seq,
                in_part: later.in_part,
                value: later.value,
            })
        });
    overtaken.collect()
}
