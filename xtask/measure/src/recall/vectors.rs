//! The ranking with a table of vectors of words beside it: measured when there is a table, and recorded.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use memory_search::StaticTable;

use super::cases::Case;
use super::measure::{ByCategory, of_all, pooled, with_goals};
use crate::mode::root;

/// The file that holds the figures: a table is no part of the repository.
pub(super) const PATH: &str = "xtask/measure/src/recall/static_table.tsv";

/// Measures the ranking with a table. Returns the lines of the file.
///
/// # Errors
/// When the table cannot be read, or a search fails.
pub(super) fn measured(table: &Path, locomo: &[Case], beam: &[Case]) -> anyhow::Result<String> {
    let table = Arc::new(StaticTable::open(table)?);
    let of = |cases| of_all(cases, Some(&table));
    Ok(lines(&[("locomo", &of(locomo)?), ("beam", &of(beam)?)]))
}

/// Writes figures: a line for each name, columns as in `GOALS` and recall at 20.
fn lines(named: &[(&str, &ByCategory)]) -> String {
    let mut out = String::new();
    for (name, figures) in named {
        let _ = write!(out, "{name}");
        for figure in with_goals(figures) {
            let _ = write!(out, "\t{figure:.4}");
        }
        let _ = writeln!(out, "\t{:.4}", pooled(figures).recall(2));
    }
    out
}

/// Reads the recorded figures of a name.
///
/// # Errors
/// When the file is missing or broken.
pub(super) fn read(name: &str) -> anyhow::Result<[f64; 6]> {
    let text = std::fs::read_to_string(root().join(PATH)).context(PATH)?;
    let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
    let line = lines.find(|line| line.0 == name);
    let columns = line.map_or("", |line| line.1).split_whitespace();
    let figures: Result<Vec<f64>, _> = columns.map(str::parse).collect();
    let figures = figures?.try_into().ok();
    figures.with_context(|| format!("{PATH} has no six figures of {name}: record them"))
}
