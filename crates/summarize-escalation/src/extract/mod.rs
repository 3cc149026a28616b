//! The extractive summarizer: picks what was said, writes nothing of its own.

mod call;
mod change;
mod compose;
mod frame;
mod gather;
mod parse;
mod print;
mod results;
mod stand;

mod text;
mod users;
mod words;

pub(crate) use text::line_sentences;

use async_trait::async_trait;

use crate::{Error, Ladder, Summarizer, SummaryRequest, SummaryText};

/// Makes a summary without a model: a deterministic extract that reads as a handover.
///
/// From messages it takes what the user asked for, what the assistant concluded and decided,
/// errors and what was said right after them, what the tools did and how that ended, what edits
/// changed, the files read and changed, and names, numbers and addresses; from summaries their most
/// valuable lines. What is newer is taken first, what is taken is printed in order; what was asked
/// last and how it stands comes before. Each line carries the `[seq]` of the message to expand.
///
/// The result never costs more than the request's target (a target of 0 means anna's shares); a
/// target too small for one whole line gives the beginning of the most important one. Time is
/// linear in the source, and a huge message is read at its head and its tail.
///
/// What it writes is provisional: to be redone when a model is available.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extractive;

impl Extractive {
    /// Name and version of what is written.
    pub const ID: &'static str = "extractive@3";

    /// The extract.
    pub fn extract(&self, request: &SummaryRequest<'_>) -> String {
        let target = match request.target_tokens {
            0 => Ladder::default()
                .target_rule(request.kind())
                .target(request.source_tokens()),
            tokens => tokens,
        };
        let mut gathered = gather::gather(request.source);
        compose::compose(&mut gathered, request, target)
    }
}

#[async_trait]
impl Summarizer for Extractive {
    fn id(&self) -> &str {
        Self::ID
    }

    fn provisional(&self) -> bool {
        true
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
        Ok(SummaryText::new(self.extract(request)))
    }
}
