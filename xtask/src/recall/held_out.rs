//! Recorded figures of policies that were tuned on other conversations.

use std::fmt::Write as _;

use anyhow::Context as _;

use super::measure::{ByCategory, pooled, with_goals};
use crate::mode::root;

/// The file that holds them.
pub(super) const PATH: &str = "xtask/src/recall/held_out.tsv";

/// Writes the figures: a line for each corpus, columns as in `GOALS` and recall at 20.
pub(super) fn written(locomo: &ByCategory, beam: &ByCategory) -> String {
    let mut out = String::new();
    for (name, figures) in [("locomo", locomo), ("beam", beam)] {
        let _ = write!(out, "{name}");
        for figure in with_goals(figures) {
            let _ = write!(out, "\t{figure:.4}");
        }
        let _ = writeln!(out, "\t{:.4}", pooled(figures).recall(2));
    }
    out
}

/// Reads the figures of a corpus.
///
/// # Errors
/// When the file is missing or broken.
pub(super) fn read(corpus: &str) -> anyhow::Result<[f64; 6]> {
    let text = std::fs::read_to_string(root().join(PATH)).context(PATH)?;
    let line = text.lines().find_map(|line| line.strip_prefix(corpus));
    let columns = line.unwrap_or_default().split_whitespace();
    let figures: Result<Vec<f64>, _> = columns.map(str::parse).collect();
    let figures = figures?.try_into().ok();
    figures.with_context(|| format!("{PATH} has no six figures of {corpus}: run with --record"))
}
