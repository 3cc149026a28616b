//! `install`: puts the program into an agent's configuration, or takes it out.

use std::path::Path;

use serde::Serialize;
use similar::TextDiff;

use crate::agents::{Change, File, Program, files};
use crate::app::App;
use crate::args::Install;

#[derive(Debug, Serialize)]
struct Installed<'a> {
    agent: &'static str,
    /// Whether the files would be changed, and were not.
    dry_run: bool,
    files: Vec<InstalledFile<'a>>,
    /// Steps that are left to the person.
    steps: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct InstalledFile<'a> {
    path: &'a Path,
    change: Change,
}

pub(crate) fn run(app: &mut App, args: &Install) -> anyhow::Result<()> {
    let install = !args.remove;
    let agent = args.agent;
    if install {
        agent.must_be_there()?;
    }
    let program = Program::of(app)?;
    let parts = agent.parts(&program);
    let files = files(&parts, install)?;
    for file in &files {
        file.check()?;
    }
    if !args.dry_run {
        for file in &files {
            file.write(install)?;
            if file.change() == Change::Deleted {
                file.prune(&agent.home());
            }
        }
    }
    let is_changed = files.iter().any(|file| file.change() != Change::Unchanged);
    let answer = Installed {
        agent: agent.name(),
        dry_run: args.dry_run,
        files: files
            .iter()
            .map(|file| InstalledFile {
                path: &file.path,
                change: file.change(),
            })
            .collect(),
        steps: match install {
            true => program
                .steps()
                .into_iter()
                .chain(agent.steps().iter().copied())
                .collect(),
            false => Vec::new(),
        },
    };
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    for file in &files {
        print(app, file, args.dry_run)?;
    }
    let done = match (is_changed, install) {
        (false, true) => "already installed: no file was changed",
        (false, false) => "not installed: no file was changed",
        (true, _) if args.dry_run => "no file was changed (--dry-run)",
        (true, true) => "installed",
        (true, false) => "removed",
    };
    app.out.line(&format!("{}: {done}", agent.name()))?;
    for step in &answer.steps {
        app.out.line(&format!("next: {step}"))?;
    }
    if install {
        let check = app.command(&["doctor"], &[]);
        app.out.line(&format!("check it: {check}"))?;
    }
    Ok(())
}

/// Prints the change to a file; for a dry run as a diff.
fn print(app: &mut App, file: &File, dry_run: bool) -> anyhow::Result<()> {
    let path = file.path.display();
    let change = match file.change() {
        Change::Unchanged => return Ok(()),
        Change::Created => "created",
        Change::Changed => "changed",
        Change::Deleted => "deleted",
    };
    if !dry_run {
        return Ok(app.out.line(&format!("{change}: {path}"))?);
    }
    let name = |text: &Option<String>| match text {
        Some(_) => path.to_string(),
        None => "/dev/null".to_owned(),
    };
    let before = file.before.as_deref().unwrap_or_default();
    let after = file.after.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(before, after);
    let (from, to) = (name(&file.before), name(&file.after));
    let diff = diff.unified_diff().header(&from, &to).to_string();
    Ok(app.out.text(&diff)?)
}
