//! What messages and summaries cost: the bridge to token estimators.

use std::fmt;

use token_estimate::{CountedMessage, EstimatorId, Piece};

use crate::message::{EntryKind, Message, Role};
use crate::part::{Media, MediaSource, Part, ResultContent};
use crate::summary::Summary;

/// The one place where costs come from: whatever is stored, planned or held against a budget is
/// counted by the same rules, over what is really rendered.
pub trait Accounting: Send + Sync + fmt::Debug {
    /// The estimator and its version; figures of different estimators are never mixed.
    fn estimator(&self) -> EstimatorId;

    /// The cost of a text by itself, in tokens.
    fn text(&self, text: &str) -> u64;

    /// The cost of a message, rendered alone, in tokens; 0 for a note.
    fn message(&self, message: &Message) -> u64;

    /// The cost of a summary, rendered, in tokens.
    fn summary(&self, summary: &Summary) -> u64;
}

impl CountedMessage for Message {
    fn role(&self) -> token_estimate::Role {
        match self.role {
            Role::System => token_estimate::Role::System,
            Role::User => token_estimate::Role::User,
            Role::Assistant => token_estimate::Role::Assistant,
            Role::Tool => token_estimate::Role::Tool,
        }
    }

    /// The pieces of a message; a note has none.
    fn pieces(&self, visit: &mut dyn FnMut(Piece<'_>)) {
        if self.kind == EntryKind::Message {
            for part in &self.parts {
                part_pieces(part, visit);
            }
        }
    }
}

fn part_pieces(part: &Part, visit: &mut dyn FnMut(Piece<'_>)) {
    match part {
        Part::Text { text } => visit(Piece::Text(text)),
        Part::Reasoning { text, .. } => visit(Piece::Reasoning(text)),
        Part::ToolCall {
            name, arguments, ..
        } => {
            visit(Piece::ToolCall {
                name,
                arguments: arguments.as_str(),
            });
        }
        Part::ToolResult { content, .. } => {
            visit(Piece::ToolResult { name: None });
            match content {
                ResultContent::Text(text) => visit(Piece::Text(text)),
                ResultContent::Parts(parts) => {
                    for part in parts {
                        part_pieces(part, visit);
                    }
                }
            }
        }
        Part::Image(media) => visit(Piece::Image {
            base64_len: base64_len(media),
        }),
        Part::File(media) => visit(Piece::File {
            base64_len: base64_len(media),
        }),
        Part::Unknown { raw } => visit(Piece::Other(raw.as_str())),
    }
}

fn base64_len(media: &Media) -> usize {
    match &media.source {
        MediaSource::Data(data) => data.len(),
        MediaSource::Url(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use token_estimate::{Preset, TokenEstimator};

    use super::*;
    use crate::json::RawJson;

    #[test]
    fn a_message_is_counted_by_its_parts() {
        let call = Message::tool_call("c1", "read", RawJson::parse(r#"{"a":1}"#).unwrap());
        assert_eq!(Preset::Anna.message(&call), 3);
        let result = Message::tool_result("c1", "x".repeat(40));
        assert_eq!(Preset::Anna.message(&result), 10);
        let image = Part::Image(Media {
            media_type: "image/png".to_owned(),
            source: MediaSource::Data("A".repeat(100_000)),
        });
        assert_eq!(
            Preset::Anna.message(&Message::new(Role::User, vec![image])),
            1200
        );
        let note = Message::note(Role::System, vec![Part::text("model changed")]);
        assert_eq!(Preset::Anna.message(&note), 0);
    }
}
