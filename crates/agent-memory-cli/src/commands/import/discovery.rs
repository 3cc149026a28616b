//! Finds transcripts: in the homes of agents, and in directories.

use std::path::{Path, PathBuf};

use agent_memory::transcripts::{AgentHome, Formats};

use super::report::SkippedFile;
use crate::error::{Failure, Kind};

/// Returns the homes of agents that exist.
pub(super) fn homes(formats: &Formats) -> Result<Vec<PathBuf>, Failure> {
    let user = std::env::home_dir().unwrap_or_default();
    let all = formats
        .homes()
        .map(|home| named_by_variable(&home).unwrap_or_else(|| user.join(home.folder)));
    let found: Vec<PathBuf> = all.filter(|path| path.is_dir()).collect();
    match found.is_empty() {
        true => Err(
            Failure::new(Kind::Empty, "found no home of an agent".to_owned())
                .hint("give the directory with the transcripts"),
        ),
        false => Ok(found),
    }
}

fn named_by_variable(home: &AgentHome) -> Option<PathBuf> {
    let named = Some(home.variable)
        .filter(|name| !name.is_empty())
        .and_then(std::env::var_os);
    named.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the parts of an agent's home that have transcripts. Any other path is returned as it is.
pub(super) fn transcripts_of_home(formats: &Formats, path: &Path) -> Vec<PathBuf> {
    let is_home = |home: &AgentHome| {
        named_by_variable(home).is_some_and(|named| named == path)
            || path
                .file_name()
                .is_some_and(|name| Path::new(home.folder).file_name() == Some(name))
    };
    let homes = formats.homes().filter(is_home);
    let parts = homes.flat_map(|home| home.transcripts.iter().map(|part| path.join(part)));
    let parts: Vec<PathBuf> = parts.filter(|part| part.exists()).collect();
    match parts.is_empty() {
        true => vec![path.to_path_buf()],
        false => parts,
    }
}

/// Returns all files of a directory and its subdirectories that may be transcripts. Files come before the files of subdirectories, and
/// sub-agents' files come last, so that a parent is imported before its children.
pub(super) fn files_of(
    directory: &Path,
    formats: &Formats,
    unreadable: &mut Vec<SkippedFile>,
) -> Vec<PathBuf> {
    let mut skip = |path: &Path, error: &std::io::Error| {
        let file = path.display().to_string();
        unreadable.push(SkippedFile {
            kind: Kind::Unreadable,
            reason: format!("cannot read {file}: {error}"),
            file,
        });
    };
    let mut files = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                skip(&directory, &error);
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    skip(&directory, &error);
                    continue;
                }
            };
            let path = entry.path();
            // A link to a directory is not followed, because it may lead to a parent directory.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(path),
                Ok(kind) if kind.is_file() => files.push(path),
                Ok(_) => match std::fs::metadata(&path) {
                    Ok(meta) if meta.is_file() => files.push(path),
                    Ok(_) => {}
                    Err(error) => skip(&path, &error),
                },
                Err(error) => skip(&path, &error),
            }
        }
    }
    files.retain(|path| !formats.is_companion(path));
    files.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let agent = name.starts_with("agent-");
        (path.components().count(), agent, path.clone())
    });
    files
}
