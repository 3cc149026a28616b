//! Fixed costs of messages and parts, for the estimators that aim at a real tokenizer's count.

use crate::{MessageView, PartView};

/// Tokens that OpenAI's chat format adds to each message: three, and one for the role.
const MESSAGE: u64 = 4;
/// Tokens that a call or a result adds inside a message.
const TOOL: u64 = 4;
/// Tokens of an image or document. Anthropic scales images down to at most 1,568 tokens; OpenAI's tiles cost less.
const IMAGE: u64 = 1_600;
/// Tokens that open the answer in OpenAI's chat format.
pub(crate) const REQUEST: u64 = 3;

/// Calls `add` with every text of the message that is counted, and returns the message's fixed cost, in tokens. A note
/// has no texts and costs nothing.
pub(crate) fn count(message: &dyn MessageView, add: &mut dyn FnMut(&str)) -> u64 {
    if message.is_note() {
        return 0;
    }
    let mut sum = MESSAGE;
    message.parts(&mut |part| {
        part.each(&mut |part, _| {
            part.counted().into_iter().for_each(&mut *add);
            sum = sum.saturating_add(match part {
                PartView::ToolCall { .. } | PartView::ToolResult { .. } => TOOL,
                PartView::Image { .. } | PartView::File { .. } => IMAGE,
                PartView::Text(_) | PartView::Reasoning(_) | PartView::Other(_) => 0,
            });
        });
    });
    sum
}
