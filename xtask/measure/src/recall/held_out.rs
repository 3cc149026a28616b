//! Recorded figures: of policies that were tuned on other conversations, and of tables of vectors.

use std::fmt::Write as _;

use anyhow::Context as _;

use super::measure::{ByCategory, pooled, with_goals};
use crate::mode::root;

/// The file of policies that were tuned on other conversations.
pub(super) const PATH: &str = "xtask/src/recall/held_out.tsv";

/// Writes figures: a line for each name, columns as in `GOALS` and recall at 20.
pub(super) fn lines(named: &[(&str, &ByCategory)]) -> String {
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

/// Reads the figures of a name in a file.
///
/// # Errors
/// When the file is missing or broken.
pub(super) fn read(path: &str, name: &str) -> anyhow::Result<[f64; 6]> {
    let text = std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())?;
    let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
    let line = lines.find(|line| line.0 == name);
    let columns = line.map_or("", |line| line.1).split_whitespace();
    let figures: Result<Vec<f64>, _> = columns.map(str::parse).collect();
    let figures = figures?.try_into().ok();
    figures.with_context(|| format!("{path} has no six figures of {name}: record them"))
}
