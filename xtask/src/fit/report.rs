//! The table of docs/tokens.md.

use std::path::Path;

use crate::mode::Mode;

pub(super) fn run(_data: &Path, _mode: Mode) -> anyhow::Result<()> {
    Ok(())
}
