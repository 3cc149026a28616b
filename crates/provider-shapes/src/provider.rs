//! The operations of a shape, for a provider that is chosen at run time.

use memory_model::{Message, ToolDefinition};
use serde_json::{Map, Value};
use token_estimate::Usage;

use crate::error::Error;
use crate::fields;
use crate::limits::within;
use crate::shape::Provider;
use crate::{anthropic, gemini, openai, responses};

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
