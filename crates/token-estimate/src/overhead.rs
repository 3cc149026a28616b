//! Fixed costs of messages and parts, for the exact and the calibrated estimators.

use crate::media::{self, IMAGE};
use crate::{MessageView, PartView};

/// Tokens that OpenAI's chat format adds to each message: three, and one more for the role.
const MESSAGE: u64 = 4;
/// Tokens that a call or a result adds to its message.
const TOOL: u64 = 4;
/// Tokens at the beginning of the answer in OpenAI's chat format, counted once for each request.
pub(crate) const REQUEST: u64 = 3;

/// Calls `add` with every text of the message that is counted, and returns the cost of everything else in the message,
/// in tokens. A note has no texts and costs 0.
pub(crate) fn count(message: &dyn MessageView, add: &mut dyn FnMut(&str)) -> u64 {
    if message.is_note() {
        return 0;
    }
    let mut sum = MESSAGE;
    message.parts(&mut |part| {
        part.each(&mut |part, _| {
            sum = sum.saturating_add(part.counted(add));
            sum = sum.saturating_add(match part {
                PartView::ToolCall { .. } | PartView::ToolResult { .. } => TOOL,
                PartView::Image { .. } => IMAGE,
                PartView::File { data } => media::file(data, IMAGE),
                PartView::Text(_) | PartView::Reasoning(_) | PartView::Other(_) => 0,
            });
        });
    });
    sum
}
