//! Would a provider accept these messages?
//!
//! One function a provider reads the fields of a request that are about messages, and reports each
//! rule of the provider that they break. The rules come from the providers' documents, from the
//! types of their own libraries, and from the errors that their servers answer with. The checkers
//! share no code with what writes requests.
//!
//! They know what an agent's conversation needs: text, images, files, reasoning, calls of functions
//! and their results. What else a provider offers (its own tools, batches, …) is reported as unknown.
//!
//! | Provider | Function | Documents |
//! |---|---|---|
//! | OpenAI, Chat Completions | [`openai_chat`] | <https://platform.openai.com/docs/api-reference/chat/create>, <https://developers.openai.com/api/docs/guides/function-calling>, `openai.types.chat` of the Python library |
//! | OpenAI, Responses | [`openai_responses`] | <https://platform.openai.com/docs/api-reference/responses/create>, <https://developers.openai.com/api/docs/guides/conversation-state>, the specification of Open Responses (<https://www.openresponses.org>), `openai.types.responses` of the Python library |
//! | Anthropic, Messages | [`anthropic`] | <https://platform.claude.com/docs/en/api/messages>, <https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls>, <https://platform.claude.com/docs/en/build-with-claude/extended-thinking>, `anthropic.types` of the Python library |
//! | Google, `generateContent` | [`gemini`] | <https://ai.google.dev/api/caching#Content>, <https://ai.google.dev/gemini-api/docs/function-calling>, <https://ai.google.dev/gemini-api/docs/thought-signatures>, `google.genai.types` of the Python library |
//!
//! Each of [`OPENAI_CHAT_RULES`], [`OPENAI_RESPONSES_RULES`], [`ANTHROPIC_RULES`] and
//! [`GEMINI_RULES`] lists the rules of one provider, with where each is from; [`SHAPE_RULES`] hold
//! for all of them. [`sizes`] judges the number and size of pictures and documents ([`SIZE_RULES`]).
//!
//! ```
//! use outside_checks::provider_rules;
//! use serde_json::json;
//!
//! let request = json!({"messages": [{"role": "user", "content": "Deploy."}]});
//! assert_eq!(provider_rules::anthropic(&request), []);
//!
//! let request = json!({"messages": [{"role": "user", "content": " "}]});
//! let findings = provider_rules::anthropic(&request);
//! assert_eq!(findings[0].rule, "empty-text");
//! assert_eq!(findings[0].path, "/messages/0/content");
//! ```

mod anthropic;
#[cfg(test)]
mod cases;
mod finding;
mod gemini;
mod openai_chat;
mod openai_responses;
mod shape;
mod sizes;

use serde_json::Value;

pub use anthropic::RULES as ANTHROPIC_RULES;
pub use finding::{Finding, Rule};
pub use gemini::RULES as GEMINI_RULES;
pub use openai_chat::RULES as OPENAI_CHAT_RULES;
pub use openai_responses::RULES as OPENAI_RESPONSES_RULES;
pub use shape::RULES as SHAPE_RULES;
pub use sizes::{RULES as SIZE_RULES, sizes};

/// Checks `{"messages": [...], "tools"?: [...]}` of OpenAI's Chat Completions.
pub fn openai_chat(request: &Value) -> Vec<Finding> {
    let mut judge = shape::Judge::default();
    openai_chat::check(request, &mut judge);
    judge.findings
}

/// Checks `{"instructions"?: "...", "input": [...], "tools"?: [...]}` of OpenAI's Responses, for a
/// request that stands alone: without `previous_response_id`.
pub fn openai_responses(request: &Value) -> Vec<Finding> {
    let mut judge = shape::Judge::default();
    openai_responses::check(request, &mut judge);
    judge.findings
}

/// Checks `{"system"?: string | blocks, "messages": [...], "tools"?: [...]}` of Anthropic's
/// Messages.
pub fn anthropic(request: &Value) -> Vec<Finding> {
    let mut judge = shape::Judge::default();
    anthropic::check(request, &mut judge);
    judge.findings
}

/// Checks `{"systemInstruction"?: Content, "contents": [...], "tools"?: [...]}` of Gemini's
/// `generateContent`, in the JSON names of its fields (`camelCase`).
pub fn gemini(request: &Value) -> Vec<Finding> {
    let mut judge = shape::Judge::default();
    gemini::check(request, &mut judge);
    judge.findings
}
