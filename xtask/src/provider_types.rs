//! Requests held against the types of the providers' own Python libraries, in their exact versions: a judge that nobody
//! here wrote. The libraries live in a virtual environment in the target folder; `judge.py` says how their types are used.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

use crate::mode::target_folder;

/// What pip installs. `google-ai-generativelanguage` holds the messages of Gemini's servers, as protocol buffers.
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
    let python = environment(&base)?;
    let judge = base.join("judge.py");
    std::fs::write(&judge, JUDGE).with_context(|| format!("write {}", judge.display()))?;
    call(Command::new(python).arg(judge).args(folder))
}

/// Makes the virtual environment of these packages, unless it is there, and returns its Python.
fn environment(base: &Path) -> anyhow::Result<PathBuf> {
    // Other versions live in another folder; one that is half made has no stamp, and is made again.
    let packages = Sha256::digest(PACKAGES.join("\n"));
    let folder = base.join(format!("venv-{:.8}", format!("{packages:x}")));
    let (python, stamp) = (folder.join("bin/python"), folder.join("complete"));
    if !stamp.exists() {
        std::fs::create_dir_all(base).with_context(|| format!("create {}", base.display()))?;
        let make = Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder)
            .status();
        let made = make.context("run python3: install Python 3.11 or newer")?;
        ensure!(made.success(), "python3 -m venv failed: install its venv");
        call(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(PACKAGES),
        )?;
        std::fs::write(&stamp, "").with_context(|| format!("write {}", stamp.display()))?;
    }
    Ok(python)
}

fn call(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("run {command:?}"))?;
    ensure!(
        status.success(),
        "{command:?} failed: the lines above say why"
    );
    Ok(())
}
