//! A dated table of models: context windows, limits of input and output, tokenizers, prices.
//!
//! [`get`] finds a model of the built-in table. [`ModelTable`] adds rows of your own, or replaces outdated rows.
//!
//! ```
//! use token_estimate::models::{self, ModelInfo, ModelTable};
//!
//! let model = models::get("openai/gpt-5-2025-08-07")?;
//! assert_eq!(model.name, "gpt-5");
//! assert_eq!((model.context_window, model.max_input), (400_000, Some(272_000)));
//! assert_eq!(model.largest_input(16_000), 272_000);
//!
//! let table = ModelTable::builtin().with(ModelInfo::new("house-model", 32_768, 4_096, "2026-11-23"))?;
//! assert_eq!(table.get("house-model")?.largest_input(4_096), 28_672);
//! # Ok::<(), token_estimate::Error>(())
//! ```

mod info;
mod model_estimator;
mod names;
mod table;
#[cfg(feature = "models-toml")]
mod toml_rows;

pub use info::{ModelInfo, ModelTokenizer, TokenPrices};

use crate::Error;

/// Returns the row of the built-in table that matches a model's name.
///
/// The name is looked up in these forms, until one matches a row:
///
/// 1. unchanged: `gpt-4o-2024-05-13`;
/// 2. without the prefix before each slash, from the first slash on: `openai/gpt-5`, `models/gemini-2.5-pro`;
/// 3. each of these forms without `-latest` or a date at the end: `claude-sonnet-4-5-20250929`,
///    `claude-sonnet-4-5@20250929`, `gpt-4o-2024-08-06`.
///
/// For each form, a row with exactly this spelling takes precedence over a row that differs only in case, or in a
/// hyphen instead of a dot (`claude-sonnet-4.5`). A dated name without a separate row has the limits of the undated
/// name.
///
/// # Errors
///
/// [`UnknownModel`](crate::ErrorKind::UnknownModel) for any other name. The message lists the nearest rows.
pub fn get(name: &str) -> Result<&'static ModelInfo, Error> {
    find(table::MODELS, name)
}

fn find<'t>(rows: &'t [ModelInfo], name: &str) -> Result<&'t ModelInfo, Error> {
    let names = rows.iter().map(|row| row.name.as_ref());
    names::resolve(name, names.clone())
        .and_then(|place| rows.get(place))
        .ok_or_else(|| Error::unknown_model(name, names::nearest(name, names)))
}

/// A table of models: the built-in rows, and rows of your own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTable {
    rows: Vec<ModelInfo>,
}

impl ModelTable {
    /// Returns a table with only the built-in rows.
    pub fn builtin() -> Self {
        Self {
            rows: table::MODELS.to_vec(),
        }
    }

    /// Adds a row. Replaces a row with the same name.
    ///
    /// # Errors
    ///
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a row without a name or with white space in it, with a
    /// limit that is 0 or exceeds the window, with a safety factor below 1, or with a date that does not have the form
    /// `2026-11-23`.
    pub fn with(mut self, model: ModelInfo) -> Result<Self, Error> {
        model.check()?;
        match self.rows.iter_mut().find(|row| row.name == model.name) {
            Some(row) => *row = model,
            None => self.rows.push(model),
        }
        Ok(self)
    }

    /// Adds the rows in a TOML text. They replace rows with the same names. Requires the feature `models-toml`.
    ///
    /// `name`, `context_window`, `max_output` and `as_of` are required; the other fields of [`ModelInfo`] have the
    /// defaults of [`ModelInfo::new`]. The text has no prices.
    ///
    /// ```
    /// # use token_estimate::models::ModelTable;
    /// let table = ModelTable::builtin().extended_by_toml(
    ///     r#"
    ///     [[model]]
    ///     name = "house-model"
    ///     context_window = 65536     # tokens
    ///     output_in_window = true
    ///     max_input = 60000
    ///     max_output = 8192
    ///     tokenizer = "o200k"        # or "cl100k", "other"
    ///     safety_factor = 1.1
    ///     tools_overhead = 100
    ///     as_of = "2026-11-23"
    ///     "#,
    /// )?;
    /// assert_eq!(table.get("house-model")?.largest_input(8_192), 57_344);
    /// # Ok::<(), token_estimate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a text that is not a valid table, with the position of the
    /// mistake, and for a row that [`with`](Self::with) refuses.
    #[cfg(feature = "models-toml")]
    pub fn extended_by_toml(self, toml: &str) -> Result<Self, Error> {
        toml_rows::read(toml)?
            .into_iter()
            .try_fold(self, |table, row| table.with(row))
    }

    /// Returns the row that matches a model's name, by the rules of [`get`].
    ///
    /// # Errors
    ///
    /// [`UnknownModel`](crate::ErrorKind::UnknownModel) if no row matches the name.
    pub fn get(&self, name: &str) -> Result<&ModelInfo, Error> {
        find(&self.rows, name)
    }

    /// Returns all rows: the built-in ones, sorted by provider, then the added ones.
    pub fn models(&self) -> impl Iterator<Item = &ModelInfo> {
        self.rows.iter()
    }
}

impl Default for ModelTable {
    fn default() -> Self {
        Self::builtin()
    }
}

#[cfg(test)]
mod tests;
