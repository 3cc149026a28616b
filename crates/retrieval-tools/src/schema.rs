//! A tool as data, and its declaration in the shapes of those who call tools.

use memory_model::RawJson;
use serde_json::{Map, Value, json};

/// Kind of a parameter's values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// A text.
    Text,
    /// A whole number.
    Whole,
    /// True or false.
    Flag,
    /// One of some texts.
    OneOf(Vec<String>),
    /// A list of some texts.
    SomeOf(Vec<String>),
}

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: ParameterKind,
    /// Whether a call without it is refused.
    pub required: bool,
    /// Description, for the model.
    pub description: String,
}

impl Parameter {
    pub(crate) fn new(name: &'static str, kind: ParameterKind, description: &str) -> Self {
        Self {
            name,
            kind,
            required: false,
            description: description.to_owned(),
        }
    }

    pub(crate) fn text(name: &'static str, description: &str) -> Self {
        Self::new(name, ParameterKind::Text, description)
    }

    pub(crate) fn whole(name: &'static str, description: &str) -> Self {
        Self::new(name, ParameterKind::Whole, description)
    }

    pub(crate) fn flag(name: &'static str, description: &str) -> Self {
        Self::new(name, ParameterKind::Flag, description)
    }

    pub(crate) fn one_of<I>(name: &'static str, texts: I, description: &str) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let texts = texts.into_iter().map(Into::into).collect();
        Self::new(name, ParameterKind::OneOf(texts), description)
    }

    pub(crate) fn some_of<I>(name: &'static str, texts: I, description: &str) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let texts = texts.into_iter().map(Into::into).collect();
        Self::new(name, ParameterKind::SomeOf(texts), description)
    }

    pub(crate) fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The type's name in JSON Schema, and the texts that a value, or an item of it, is one of.
    fn json_type(&self) -> (&'static str, Option<&Vec<String>>) {
        match &self.kind {
            ParameterKind::Text => ("string", None),
            ParameterKind::Whole => ("integer", None),
            ParameterKind::Flag => ("boolean", None),
            ParameterKind::OneOf(texts) => ("string", Some(texts)),
            ParameterKind::SomeOf(texts) => ("array", Some(texts)),
        }
    }

    /// The parameter's schema.
    fn schema(&self, dialect: Dialect) -> Value {
        let (name, texts) = self.json_type();
        let named = |name: &str| match dialect {
            Dialect::OpenApi => Value::from(name.to_uppercase()),
            Dialect::Plain | Dialect::Strict => Value::from(name),
        };
        let mut schema = Map::new();
        schema.insert("description".to_owned(), self.description.clone().into());
        let nullable = dialect == Dialect::Strict && !self.required;
        let name = named(name);
        schema.insert(
            "type".to_owned(),
            match nullable {
                true => json!([name, "null"]),
                false => name,
            },
        );
        match (&self.kind, texts) {
            (ParameterKind::SomeOf(_), Some(texts)) => {
                let items = json!({"enum": texts, "type": named("string")});
                schema.insert("items".to_owned(), items);
            }
            (_, Some(texts)) => {
                let mut texts: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
                if nullable {
                    texts.push(Value::Null);
                }
                schema.insert("enum".to_owned(), texts.into());
            }
            (_, None) => {}
        }
        sorted(schema)
    }
}

/// Language in which a schema is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// JSON Schema: what is not required can be left out.
    Plain,
    /// JSON Schema of strict modes: every property is required, and `null` stands for one that is left out.
    Strict,
    /// Gemini's subset of OpenAPI.
    OpenApi,
}

/// The shapes in which a list of tools is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolShape {
    /// The Model Context Protocol: the field `tools` of `tools/list`.
    Mcp,
    /// OpenAI's chat completions, with strict checks of arguments.
    OpenAiChat,
    /// OpenAI's responses, with strict checks of arguments.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's contents.
    Gemini,
}

impl ToolShape {
    /// Every shape.
    pub const ALL: [Self; 5] = [
        Self::Mcp,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The shape's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The value of a request's field `tools`.
    pub fn declare(self, tools: &[Tool]) -> Value {
        let declared: Vec<Value> = tools.iter().map(|tool| self.one(tool)).collect();
        match self {
            Self::Gemini => json!([{"functionDeclarations": declared}]),
            _ => declared.into(),
        }
    }

    fn one(self, tool: &Tool) -> Value {
        let (name, description) = (tool.name, tool.description.as_str());
        match self {
            Self::Mcp => json!({
                "annotations": {
                    "destructiveHint": false,
                    "idempotentHint": true,
                    "openWorldHint": false,
                    "readOnlyHint": true,
                    "title": tool.title,
                },
                "description": description,
                "inputSchema": tool.schema(),
                "name": name,
                "title": tool.title,
            }),
            Self::OpenAiChat => json!({
                "function": {
                    "description": description,
                    "name": name,
                    "parameters": tool.strict_schema(),
                    "strict": true,
                },
                "type": "function",
            }),
            Self::OpenAiResponses => json!({
                "description": description,
                "name": name,
                "parameters": tool.strict_schema(),
                "strict": true,
                "type": "function",
            }),
            Self::Anthropic => json!({
                "description": description,
                "input_schema": tool.schema(),
                "name": name,
            }),
            Self::Gemini => json!({
                "description": description,
                "name": name,
                "parameters": tool.in_dialect(Dialect::OpenApi),
            }),
        }
    }
}

/// A tool: its name, what it does, and its parameters. Its arguments are a type of this crate.
///
/// Every tool only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Name of the tool.
    pub name: &'static str,
    /// Name of the tool for people.
    pub title: &'static str,
    /// Description of the tool, for the model.
    pub description: String,
    /// The parameters, in alphabetical order.
    pub parameters: Vec<Parameter>,
}

impl Tool {
    pub(crate) fn new(
        name: &'static str,
        title: &'static str,
        description: &str,
        parameters: impl Into<Vec<Parameter>>,
    ) -> Self {
        let mut parameters = parameters.into();
        parameters.sort_by_key(|parameter| parameter.name);
        Self {
            name,
            title,
            description: description.to_owned(),
            parameters,
        }
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self.parameters.sort_by_key(|parameter| parameter.name);
        self
    }

    /// The JSON Schema of the arguments, of plain types only. What is not required can be left out.
    pub fn schema(&self) -> Value {
        self.in_dialect(Dialect::Plain)
    }

    /// The JSON Schema of the arguments in the subset that strict modes accept: every property is required,
    /// and `null` stands for one that is left out.
    pub fn strict_schema(&self) -> Value {
        self.in_dialect(Dialect::Strict)
    }

    fn in_dialect(&self, dialect: Dialect) -> Value {
        let properties = self.parameters.iter();
        let properties = properties.map(|one| (one.name.to_owned(), one.schema(dialect)));
        let properties: Map<String, Value> = properties.collect();
        let required = self.parameters.iter();
        let required = required.filter(|one| one.required || dialect == Dialect::Strict);
        let required: Vec<&str> = required.map(|one| one.name).collect();
        let mut schema = Map::new();
        if dialect != Dialect::OpenApi {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() || dialect != Dialect::OpenApi {
            schema.insert("required".to_owned(), required.into());
        }
        let name = match dialect {
            Dialect::OpenApi => "OBJECT",
            Dialect::Plain | Dialect::Strict => "object",
        };
        schema.insert("type".to_owned(), name.into());
        schema.into()
    }
}

impl From<&Tool> for memory_model::ToolDefinition {
    fn from(tool: &Tool) -> Self {
        let parameters = RawJson::from_value(&tool.schema()).unwrap_or_else(|_| null());
        Self::new(tool.name, parameters).with_description(tool.description.as_str())
    }
}

impl From<Tool> for memory_model::ToolDefinition {
    fn from(tool: Tool) -> Self {
        Self::from(&tool)
    }
}

/// JSON's null; there is always a way to write it.
pub(crate) fn null() -> RawJson {
    RawJson::from_raw(serde_json::value::RawValue::NULL)
}

/// An object with its keys in alphabetical order: whether serde_json sorts them or keeps the order in which
/// they came depends on features that other crates turn on.
fn sorted(map: Map<String, Value>) -> Value {
    let mut entries: Vec<(String, Value)> = map.into_iter().collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Value::Object(entries.into_iter().collect())
}
