//! Checks requests with the types of the providers' own Python libraries, as independent judges in exact versions. The
//! libraries are installed in a virtual environment in the target folder; `judge.py` describes the use of their types.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::mode::target_folder;
use crate::python::{call, environment};

/// The package for pip. `google-ai-generativelanguage` holds the messages of Gemini's servers, as protocol buffers.
const PACKAGES: [&str; 6] = [
    "anthropic==2.12.0",
    "google-ai-generativelanguage==0.12.1",
    "google-genai==3.4.0",
    "openai==3.54.0",
    "protobuf==7.36.2",
    "pydantic==2.14.3",
];

const JUDGE: &str = include_str!("provider_types/judge.py");

/// Runs the self-test, and judges the requests of a folder, if there is one.
pub(crate) fn run(folder: &[&str]) -> anyhow::Result<()> {
    ensure!(folder.len() < 2, "usage: cargo xtask provider-types [DIR]");
    if let Some(folder) = folder.first() {
        let is_folder = Path::new(folder).is_dir();
        ensure!(is_folder, "{folder} is no folder: write the requests there");
    }
    let base = target_folder().join("provider-types");
    let python = environment(&base, &PACKAGES)?;
    let judge = base.join("judge.py");
    std::fs::write(&judge, JUDGE).with_context(|| format!("write {}", judge.display()))?;
    call(Command::new(python).arg(judge).args(folder))
}
