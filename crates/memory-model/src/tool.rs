//! Definitions of the tools that a model may call.

use serde::{Deserialize, Serialize};
use token_estimate::ToolView;

use crate::json::RawJson;

/// A tool that a model may call, in no provider's shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name that a call names.
    pub name: String,
    /// What the tool does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments, an object schema.
    pub parameters: RawJson,
}

impl ToolDefinition {
    /// Creates a definition without a description.
    pub fn new(name: impl Into<String>, parameters: RawJson) -> Self {
        Self {
            name: name.into(),
            description: None,
            parameters,
        }
    }

    /// Sets the description.
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Returns a borrowed view, which estimators count.
    ///
    /// ```
    /// use memory_model::{RawJson, ToolDefinition};
    /// use token_estimate::{Calibrated, TokenEstimatorExt};
    ///
    /// let schema = RawJson::parse(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#)?;
    /// let read = ToolDefinition::new("read", schema).with_description("Reads a file.");
    /// assert_eq!(Calibrated::O200k.tools([read.view()]), 47);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn view(&self) -> ToolView<'_> {
        let description = self.description.as_deref().unwrap_or_default();
        ToolView::new(&self.name, description, self.parameters.as_str())
    }
}
