//! What a message costs besides its words, for the estimators that aim at a real tokenizer's count.

use crate::Piece;

/// A message's frame in OpenAI's chat format: three tokens, and one for the role.
pub(crate) const MESSAGE: u64 = 4;
/// The frame of a call or of a result inside a message.
const TOOL: u64 = 4;
/// A picture or document: Anthropic scales pictures down to about 1,568 tokens at most, OpenAI's tiles end below that.
const IMAGE: u64 = 1_600;
/// What opens the answer in OpenAI's chat format.
pub(crate) const REQUEST: u64 = 3;

/// What a piece costs besides its text.
pub(crate) fn piece(piece: &Piece<'_>) -> u64 {
    match piece {
        Piece::ToolCall { .. } | Piece::ToolResult { .. } => TOOL,
        Piece::Image { .. } | Piece::File { .. } => IMAGE,
        Piece::Text(_) | Piece::Reasoning(_) | Piece::Other(_) => 0,
    }
}
