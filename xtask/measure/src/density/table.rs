//! Rows of pooled figures.

use std::fmt::Write as _;

use super::gold::{COLUMNS, Counts};
use super::ours::TOKENS;
use token_estimate::TokenEstimator as _;

/// What one method keeps.
pub(super) struct Row {
    /// The method's name.
    pub(super) method: String,
    /// The tokens of all its texts.
    pub(super) tokens: u64,
    /// The share kept, by column; `None` where there is nothing to keep.
    pub(super) kept: [Option<f64>; COLUMNS.len()],
}

/// What the texts of one method keep, added up.
#[derive(Clone, Copy, Default)]
pub(super) struct Pool {
    tokens: u64,
    counts: Counts,
}

impl Pool {
    /// Adds a text and what it keeps.
    pub(super) fn add(&mut self, text: &str, kept: Counts) {
        self.tokens += TOKENS.text(text);
        for (sum, (kept, all)) in self.counts.iter_mut().zip(kept) {
            sum.0 += kept;
            sum.1 += all;
        }
    }

    /// Adds another pool.
    pub(super) fn merge(&mut self, other: &Pool) {
        self.tokens += other.tokens;
        for (sum, (kept, all)) in self.counts.iter_mut().zip(other.counts) {
            sum.0 += kept;
            sum.1 += all;
        }
    }

    /// How many items there are to keep, by column.
    pub(super) fn items(&self) -> [usize; COLUMNS.len()] {
        self.counts.map(|(_, all)| all)
    }

    /// Returns the row of a table.
    pub(super) fn row(&self, method: &str) -> Row {
        Row {
            method: method.to_owned(),
            tokens: self.tokens,
            kept: self
                .counts
                .map(|(kept, all)| (all > 0).then(|| kept as f64 / all as f64)),
        }
    }
}

/// Writes rows as a table of Markdown.
pub(super) fn table(rows: &[Row]) -> String {
    let mut out = String::from("| text | tokens |");
    for column in COLUMNS {
        let _ = write!(out, " {column} |");
    }
    let _ = writeln!(out, "\n|---|--:|{}", "--:|".repeat(COLUMNS.len()));
    for row in rows {
        let _ = write!(out, "| {} | {} |", row.method, row.tokens);
        for share in row.kept {
            let _ = match share {
                Some(share) => write!(out, " {:.1} |", share * 100.0),
                None => write!(out, " – |"),
            };
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_sums_over_sums() {
        let mut pool = Pool::default();
        pool.add("one", [(1, 1); COLUMNS.len()]);
        pool.add("two", [(0, 3); COLUMNS.len()]);
        let row = pool.row("x");
        assert_eq!((row.tokens, row.kept[0]), (2, Some(0.25)));
        assert!(
            table(&[row]).ends_with("| x | 2 | 25.0 | 25.0 | 25.0 | 25.0 | 25.0 | 25.0 | 25.0 |\n")
        );
        assert_eq!(Pool::default().row("x").kept[0], None);
    }
}
