//! Fields of rig's messages that parts have no place for, kept beside them in a message's `meta`.

use agent_memory::RawJson;
use serde_json::{Map, Value, json};

/// Key of the fields in `meta`.
const KEY: &str = "rig";
/// Key of the number of parts that the fields belong to.
const PARTS: &str = "parts";
/// Key of the fields of single parts, by the part's position.
const BLOCKS: &str = "blocks";

/// Fields of a message and of its blocks.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    message: Map<String, Value>,
    parts: usize,
    blocks: Map<String, Value>,
}

impl Kept {
    /// Reads the fields of a message's `meta`. A `meta` without them is no error: there are none.
    pub(crate) fn read(meta: Option<&RawJson>) -> Self {
        let meta = meta.and_then(|meta| serde_json::from_str::<Value>(meta.as_str()).ok());
        let Some(Value::Object(mut message)) = meta.and_then(|mut meta| {
            let fields = meta.get_mut(KEY)?;
            Some(fields.take())
        }) else {
            return Self::default();
        };
        let parts = message.remove(PARTS).and_then(|parts| parts.as_u64());
        let blocks = match message.remove(BLOCKS) {
            Some(Value::Object(blocks)) => blocks,
            _ => Map::new(),
        };
        Self {
            message,
            parts: parts
                .and_then(|parts| parts.try_into().ok())
                .unwrap_or_default(),
            blocks,
        }
    }

    /// Returns the `meta` that holds the fields; `None` without fields.
    pub(crate) fn write(mut self, parts: usize) -> Option<RawJson> {
        if !self.blocks.is_empty() {
            self.message.insert(PARTS.to_owned(), parts.into());
            self.message
                .insert(BLOCKS.to_owned(), Value::Object(self.blocks));
        }
        match self.message.is_empty() {
            true => None,
            false => RawJson::from_value(&json!({KEY: self.message})).ok(),
        }
    }

    /// Keeps a field of the message.
    pub(crate) fn keep(&mut self, field: &str, value: Option<Value>) {
        self.message
            .extend(value.map(|value| (field.to_owned(), value)));
    }

    /// Returns a field of the message.
    pub(crate) fn field(&self, field: &str) -> Option<&Value> {
        self.message.get(field)
    }

    /// Keeps the fields in which a block differs from what its part says. A field that only the part
    /// says is kept as `null`.
    pub(crate) fn keep_block(&mut self, at: usize, block: Value, from_part: &Value) {
        let (Value::Object(block), Some(from_part)) = (block, from_part.as_object()) else {
            return;
        };
        let mut fields = Map::new();
        for key in from_part.keys() {
            if !block.contains_key(key) {
                fields.insert(key.clone(), Value::Null);
            }
        }
        for (key, value) in block {
            if from_part.get(&key) != Some(&value) {
                fields.insert(key, value);
            }
        }
        if !fields.is_empty() {
            self.blocks.insert(at.to_string(), Value::Object(fields));
        }
    }

    /// Returns a block with the fields that were kept for it; `None` without any, or when the message has
    /// another number of parts now.
    pub(crate) fn block(&self, at: usize, parts: usize, from_part: &Value) -> Option<Value> {
        let fields = self.blocks.get(&at.to_string())?.as_object()?;
        let mut block = from_part.as_object()?.clone();
        if parts != self.parts {
            return None;
        }
        for (key, value) in fields {
            match value {
                Value::Null => block.remove(key),
                value => block.insert(key.clone(), value.clone()),
            };
        }
        Some(Value::Object(block))
    }
}
