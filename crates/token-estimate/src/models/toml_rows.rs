//! Reads rows of a table of models from TOML.

use serde::Deserialize;

use super::info::{ModelInfo, ModelTokenizer};
use crate::{Error, SafetyFactor};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    context_window: u64,
    output_in_window: Option<bool>,
    max_input: Option<u64>,
    max_output: u64,
    tokenizer: Option<Tokenizer>,
    safety_factor: Option<f64>,
    tools_overhead: Option<u64>,
    as_of: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tokenizer {
    O200k,
    Cl100k,
    Other,
}

/// Returns the rows of a TOML text, in the order of the text.
pub(super) fn read(text: &str) -> Result<Vec<ModelInfo>, Error> {
    let file: File = toml::from_str(text).map_err(|error| {
        let reason = format!("the TOML text cannot be read: {}", error.to_string().trim());
        Error::invalid_model("[[model]]", reason)
    })?;
    Ok(file.model.into_iter().map(row).collect())
}

fn row(row: Row) -> ModelInfo {
    let mut model = ModelInfo::new(row.name, row.context_window, row.max_output, row.as_of);
    model.output_in_window = row.output_in_window.unwrap_or(true);
    model.max_input = row.max_input;
    model.tools_overhead = row.tools_overhead;
    model.tokenizer = match row.tokenizer {
        Some(Tokenizer::O200k) => ModelTokenizer::O200k,
        Some(Tokenizer::Cl100k) => ModelTokenizer::Cl100k,
        Some(Tokenizer::Other) | None => ModelTokenizer::Other,
    };
    model.safety_factor = row
        .safety_factor
        .map_or(SafetyFactor::ONE, SafetyFactor::new);
    model
}
