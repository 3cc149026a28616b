//! How a generator treats the files that it is about.

/// What to do with the generated files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write them.
    Write,
    /// Fail when they are not up to date.
    Check,
    /// Say what writing would change.
    DryRun,
}

impl Mode {
    /// The mode that a task's arguments ask for.
    ///
    /// # Errors
    /// When an argument is not known.
    pub(crate) fn from_args(args: &[String]) -> anyhow::Result<Self> {
        match args {
            [] => Ok(Mode::Write),
            [arg] if arg == "--check" => Ok(Mode::Check),
            [arg] if arg == "--dry-run" => Ok(Mode::DryRun),
            other => {
                anyhow::bail!("unknown arguments {other:?}: give nothing, --check or --dry-run")
            }
        }
    }
}
