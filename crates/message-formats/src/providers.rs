//! Messages in the shapes of model providers, both ways.
//!
//! | Module | Request | Messages | System prompt |
//! |---|---|---|---|
//! | [`openai`] | OpenAI chat completions | `messages` | messages of the role `system` |
//! | [`responses`] | OpenAI responses | `input` | `instructions` |
//! | [`anthropic`] | Anthropic messages | `messages` | `system` |
//! | [`gemini`] | Gemini `generateContent` | `contents` | `systemInstruction` |
//!
//! Each module writes messages (`write`), reads messages and model responses (`read`), reads the usage of a response
//! (`usage`) or a whole response (`reply`), and writes tool definitions (`tools`). [`Provider`] does the same for a
//! provider that is chosen at run time.
//!
//! ```
//! use memory_model::{Message, RawJson};
//! use message_formats::providers::{anthropic, openai};
//!
//! let messages = [
//!     Message::user("What is in the folder?"),
//!     Message::tool_call("call 1", "ls", RawJson::parse(r#"{"path":"."}"#)?),
//!     Message::tool_result("call 1", "Cargo.toml"),
//! ];
//! let sent = openai::write(&messages);
//! assert_eq!(sent[1]["tool_calls"][0]["function"]["arguments"], r#"{"path":"."}"#);
//! assert_eq!(openai::read(&sent)?, messages);
//!
//! let (system, sent) = anthropic::write(&messages);
//! assert!(system.is_none());
//! assert_eq!(sent[2]["content"][0]["type"], "tool_result");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Written messages
//!
//! The provider accepts every written list, for any list of messages:
//!
//! - Notes are left out. [`turn_map::sanitize`] pairs calls and results that are not paired yet: a call without a
//!   result gets a stub, a result moves behind its call, and a result without a call becomes text.
//! - Call ids match `^[a-zA-Z0-9_-]{1,40}$`: see [`wire_call_id`]. OpenAI's chat completions get each id that is short
//!   enough as it came: see [`chat_call_id`]. Reading restores the ids. Other characters in tool names become `_`, and
//!   reading does not restore them.
//! - Empty texts and messages without content are left out. For Anthropic and Gemini, neighbouring messages of one role
//!   are joined, results first, and [`CONTINUED`] comes before a list that does not start with a user's message.
//! - Signed reasoning is sent verbatim, with its signature, to the provider that signed it. OpenAI's chat completions
//!   get unsigned reasoning before calls. Other reasoning is left out. See each module.
//! - Arguments that are no JSON object are sent to Anthropic and Gemini as `{"_arguments": "the text"}`, and are read
//!   back as the text.
//! - A failed result begins with `[tool error]` in OpenAI's shapes, which have no field for failures. Reading removes
//!   the mark.
//! - Images and files are sent if the provider takes their media type. The first bytes or a URL's ending decide the
//!   type, or else the declared type is used. For Gemini, a URL's declared type takes precedence. Base64 is written as
//!   providers read it, even if it came with line ends, without padding or as a data URL.
//! - Pictures and documents beyond the provider's limits become short texts that name them: see [`within`] and the table
//!   [`LIMITS`].
//! - Content without a place in the provider's shape becomes a short text that names it. Examples are an image in an
//!   assistant's message, a picture of another media type, and a picture without readable data.
//! - Unknown parts with an image or a file in the shape of a provider or of the Model Context Protocol are sent as
//!   images and files. Other unknown parts are sent as they came if they are complete and the provider knows them:
//!   redacted thinking and web searches go to Anthropic, and calls of server tools to OpenAI. The rest is sent as JSON
//!   text without bytes ([`RawJson::without_bytes`](memory_model::RawJson::without_bytes)), except for reasoning, which
//!   is left out.
//! - Anthropic and Gemini get a later system message as a user's text between `<system>` tags. In texts of users,
//!   models and tools, the `<` of such a tag is written `&lt;`.
//!
//! Reading a written list returns the same messages, as far as the provider can express them. Facts that are not
//! content (`external_id`, `created_at`, `turn`, `meta`) are not sent, and joined messages stay joined.
//!
//! # System prompts
//!
//! Reading makes a system prompt a message of the role `system`. In a log it is compacted like any message.
//! Instructions that must begin every request are passed to a session separately from its log: `OpenSession::system` of
//! `agent-memory`.

use memory_model::{Message, ToolDefinition};
use serde_json::{Map, Value};
use token_estimate::Usage;

mod arguments;
mod call_ids;
mod failed;
mod fields;
mod limits;
mod media;
mod prepare;
mod reply;
mod shape;
mod turns;
mod unknown;

pub mod anthropic;
pub mod gemini;
pub mod openai;
pub mod responses;

pub use call_ids::{CallIds, chat_call_id, original_call_id, wire_call_id};
pub use limits::{Known, LIMITS, RequestLimits, bytes, within, within_known};
pub use shape::Provider;
pub use turns::CONTINUED;

use crate::error::Error;

impl Provider {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Gemini];

    /// Returns the provider's name: `openai`, `responses`, `anthropic` or `gemini`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Parses a [`name`](Self::name), or returns `None` for any other text.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|provider| provider.name() == name)
    }

    /// Returns the fields of a request that hold the messages: `{messages}`, `{instructions?, input}`,
    /// `{system?, messages}` or `{systemInstruction?, contents}`.
    ///
    /// Pictures and documents beyond the provider's strictest [limits](Self::limits) are left out: see [`within`].
    pub fn request(self, messages: &[Message]) -> Map<String, Value> {
        self.request_of(&within(messages, self.limits(None)))
    }

    /// Returns the fields of a request like [`request`](Self::request), for messages that are within the limits of the
    /// request's model: see [`within_known`].
    pub fn request_of(self, messages: &[Message]) -> Map<String, Value> {
        let mut fields = Map::new();
        match self {
            Self::OpenAi => {
                fields.insert("messages".to_owned(), openai::write_fitted(messages).into());
            }
            Self::Responses => {
                let (instructions, input) = responses::write_fitted(messages);
                if let Some(instructions) = instructions {
                    fields.insert("instructions".to_owned(), instructions.into());
                }
                fields.insert("input".to_owned(), input.into());
            }
            Self::Anthropic => {
                let (system, messages) = anthropic::write_fitted(messages);
                if let Some(system) = system {
                    fields.insert("system".to_owned(), system);
                }
                fields.insert("messages".to_owned(), messages.into());
            }
            Self::Gemini => {
                let (system, contents) = gemini::write_fitted(messages);
                if let Some(system) = system {
                    fields.insert("systemInstruction".to_owned(), system);
                }
                fields.insert("contents".to_owned(), contents.into());
            }
        }
        fields
    }

    /// Reads the messages from a request's fields: see [`Self::request`].
    ///
    /// # Errors
    /// Fails if the field with the messages is missing, or if a message cannot be read.
    pub fn read_request(self, request: &Value) -> Result<Vec<Message>, Error> {
        let list = |field: &str| {
            let list = request.get(field).and_then(Value::as_array);
            list.map(Vec::as_slice).ok_or_else(|| {
                let name = self.name();
                fields::invalid(field, format!("a request of `{name}` has a list there"))
            })
        };
        match self {
            Self::OpenAi => openai::read(list("messages")?),
            Self::Responses => {
                let instructions = request.get("instructions").and_then(Value::as_str);
                responses::read(instructions, list("input")?)
            }
            Self::Anthropic => anthropic::read(request.get("system"), list("messages")?),
            Self::Gemini => gemini::read(request.get("systemInstruction"), list("contents")?),
        }
    }

    /// Returns the value of the request's field `tools`.
    pub fn tools(self, tools: &[ToolDefinition]) -> Vec<Value> {
        match self {
            Self::OpenAi => openai::tools(tools),
            Self::Responses => responses::tools(tools),
            Self::Anthropic => anthropic::tools(tools),
            Self::Gemini => gemini::tools(tools),
        }
    }

    /// Returns the usage of a response or of its usage object, or `None` without token counts.
    pub fn usage(self, response: &Value) -> Option<Usage> {
        match self {
            Self::OpenAi => openai::usage(response),
            Self::Responses => responses::usage(response),
            Self::Anthropic => anthropic::usage(response),
            Self::Gemini => gemini::usage(response),
        }
    }
}

/// Returns the schema of a tool's arguments as a value.
fn schema(tool: &ToolDefinition) -> Value {
    let schema = serde_json::from_str(tool.parameters.as_str());
    // JSON that is nested too deeply for a value describes no arguments that a provider accepts.
    schema.unwrap_or_else(|_| serde_json::json!({"type": "object"}))
}
