//! Recorded figures of the library before a change of what its contexts carry.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

use super::gold::COLUMNS;
use super::table::Row;

const RECORDED: &str = include_str!("before.tsv");

/// Returns the recorded row of contexts of one size.
///
/// # Errors
/// When a line of the file is not a size, a number of tokens and one share per column.
pub(super) fn row(size: &str) -> anyhow::Result<Option<Row>> {
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let (recorded, row) = parsed(line)?;
        if recorded == size {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

fn parsed(line: &str) -> anyhow::Result<(&str, Row)> {
    let malformed = || format!("before.tsv holds {line:?}: write it with `bench-density --record`");
    let cells: Vec<&str> = line.split('\t').collect();
    ensure!(cells.len() == 2 + COLUMNS.len(), malformed());
    let mut kept = [None; COLUMNS.len()];
    for (share, cell) in kept.iter_mut().zip(&cells[2..]) {
        *share = Some(cell.parse().with_context(malformed)?);
    }
    let row = Row {
        method: "before".to_owned(),
        tokens: cells[1].parse().with_context(malformed)?,
        kept,
    };
    Ok((cells[0], row))
}

/// Returns the file's text for these rows, by size.
pub(super) fn recorded<'a>(rows: impl Iterator<Item = (&'a str, Row)>) -> String {
    let mut out =
        String::from("# Written by `bench-density --record`: what contexts kept before.\n");
    let _ = writeln!(out, "# size\ttokens\t{}", COLUMNS.join("\t"));
    for (size, row) in rows {
        let _ = write!(out, "{size}\t{}", row.tokens);
        for share in row.kept {
            let _ = write!(out, "\t{:.4}", share.unwrap_or_default());
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_back() {
        let row = Row {
            method: String::new(),
            tokens: 7,
            kept: [Some(0.25); COLUMNS.len()],
        };
        let text = recorded([("0.6", row)].into_iter());
        let line = text.lines().last().unwrap_or_default();
        let (size, row) = parsed(line).unwrap();
        assert_eq!((size, row.tokens, row.kept[6]), ("0.6", 7, Some(0.25)));
        assert!(parsed("0.6\t7").is_err());
    }
}
