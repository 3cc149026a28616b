//! Recorded figures of lines ranked by TF-IDF and TextRank: `cargo research retention` measures and
//! writes them.

use anyhow::{Context as _, ensure};

use super::gold::COLUMNS;

const RECORDED: &str = include_str!("ranked.tsv");

/// What one method keeps at one ratio.
pub(super) struct Row {
    /// The source's tokens divided by the budget.
    pub(super) ratio: u64,
    /// The method's name.
    pub(super) method: String,
    /// The mean share kept, by column.
    pub(super) kept: [f64; COLUMNS.len()],
}

/// The recorded rows, in their order.
///
/// # Errors
/// When a line of the file is not a ratio, a method and one share per column.
pub(super) fn rows() -> anyhow::Result<Vec<Row>> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    lines.map(row).collect()
}

fn row(line: &str) -> anyhow::Result<Row> {
    let malformed =
        || format!("ranked.tsv holds {line:?}: write it with `cargo research retention`");
    let cells: Vec<&str> = line.split('\t').collect();
    ensure!(cells.len() == 2 + COLUMNS.len(), malformed());
    let mut kept = [0.0; COLUMNS.len()];
    for (share, cell) in kept.iter_mut().zip(&cells[2..]) {
        *share = cell.parse().with_context(malformed)?;
    }
    Ok(Row {
        ratio: cells[0].parse().with_context(malformed)?,
        method: cells[1].to_owned(),
        kept,
    })
}
