//! `cargo xtask fixtures`: invented conversations, as files in the formats that the readers support.
//!
//! The generator is seeded: the same source gives the same bytes.
#![allow(clippy::print_stdout, reason = "a task tells what it does")]

mod bugfix;
mod claude;
mod material;
mod pi;
mod plain;
mod release;
mod rng;
mod story;
mod team;
mod tide;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::mode::Mode;

/// One conversation: a folder with the transcript and a page about it.
struct Case {
    /// `<format>/<name>`.
    path: &'static str,
    about: &'static str,
    build: fn() -> Vec<u8>,
}

const CASES: [Case; 9] = [
    Case {
        path: "claude-code/bugfix",
        about: "A developer and an agent hunt down one bug: reasoning, large tool results, parallel calls, an edit that fails and is tried again.",
        build: bugfix::build,
    },
    Case {
        path: "claude-code/parallel-and-sidechain",
        about: "Three sub-agents at work at the same time (their lines interleave), calls that come as use, result, use, result under one response, a compaction, an image, lines that are no messages.",
        build: team::build,
    },
    Case {
        path: "claude-code/release-week",
        about: "Five days and two dozen tasks in one session: long enough to compact twice. Each task ends with a decision worth finding again.",
        build: release::build,
    },
    Case {
        path: "jsonl/hard-content",
        about: "What breaks lesser readers: a byte order mark, NUL, lone surrogates, duplicate keys, `1e400`, empty and identical messages, an unanswered call, CRLF, no newline at the end. One line is not UTF-8 and one is not JSON: both are counted, none is lost silently.",
        build: plain::hard_content,
    },
    Case {
        path: "jsonl/huge-results",
        about: "Few messages, three of them giant tool results; one line of the first is what matters.",
        build: plain::huge_results,
    },
    Case {
        path: "jsonl/support-chat",
        about: "A support desk in English, Japanese, Korean, Hindi, Arabic, Swedish, Chinese, French and Russian, with names, times, ids and emoji.",
        build: plain::support_chat,
    },
    Case {
        path: "jsonl/tiny",
        about: "Five messages of the smallest form, without ids or times.",
        build: plain::tiny,
    },
    Case {
        path: "pi/branched",
        about: "A version 3 tree: the developer goes back twice and tries another way, so that there is a fork and a fork of the fork.",
        build: tide::branched,
    },
    Case {
        path: "pi/unanswered-calls",
        about: "A version 1 list without ids: calls that nobody answered, in the middle and at the end, and two identical messages.",
        build: tide::unanswered,
    },
];

/// Folder of the transcripts that agents wrote, which are not generated.
const WRITTEN_BY_AGENTS: &str = "agents";

/// Writes, checks or previews the fixtures.
///
/// # Errors
/// When files cannot be read or written, or, under [`Mode::Check`], when they differ.
pub(crate) fn run(mode: Mode) -> anyhow::Result<()> {
    let root = crate::mode::root().join("fixtures");
    let wanted = generate();
    let found = present(&root)?;
    let mut stale: Vec<&PathBuf> = wanted
        .iter()
        .filter(|(path, bytes)| found.get(*path) != Some(*bytes))
        .map(|(path, _)| path)
        .collect();
    stale.extend(found.keys().filter(|path| !wanted.contains_key(*path)));
    if mode == Mode::Check && !stale.is_empty() {
        anyhow::bail!(
            "fixtures differ from their generator: {stale:?}; run `cargo xtask fixtures`"
        );
    }
    for path in &stale {
        let verb = if wanted.contains_key(*path) {
            "write"
        } else {
            "remove"
        };
        println!("{verb} fixtures/{}", path.display());
    }
    if mode == Mode::Write {
        for path in stale {
            let target = root.join(path);
            let context = || format!("{}", target.display());
            match wanted.get(path) {
                Some(bytes) => {
                    let folder = target.parent().unwrap_or(&root);
                    fs::create_dir_all(folder).with_context(context)?;
                    fs::write(&target, bytes).with_context(context)?;
                }
                None => fs::remove_file(&target).with_context(context)?,
            }
        }
    }
    Ok(())
}

/// Every generated file, by its path below `fixtures/`.
fn generate() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut index = String::new();
    for case in &CASES {
        let bytes = (case.build)();
        let lines = bytes
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty());
        let size = bytes.len();
        let facts = format!("{} lines, {size} bytes", lines.count());
        let about = case.about;
        let page = format!(
            "# {}\n\n{about}\n\n`session.jsonl`: {facts}. Invented; written by `cargo xtask fixtures`, not to be edited by hand.\n",
            case.path
        );
        index += &format!("- [`{0}`]({0}/): {about}\n", case.path);
        let folder = Path::new(case.path);
        files.insert(folder.join("session.jsonl"), bytes);
        files.insert(folder.join("README.md"), page.into_bytes());
    }
    let readme = format!(
        "# Fixtures\n\nConversations that we invent, as files in the formats that we read; no word of them is copied\nfrom anywhere. Written by `cargo xtask fixtures` (`--check`, `--dry-run`), not to be edited by\nhand. Those in [`agents`](agents/) were written by agents.\n\n{index}"
    );
    files.insert("README.md".into(), readme.into_bytes());
    // Line ends and bytes are part of the tests.
    files.insert(
        ".gitattributes".into(),
        b"session.jsonl -text\nagents/** -text\n".to_vec(),
    );
    files
}

/// Every file below the folder, by its path.
fn present(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        if !folder.exists() {
            continue;
        }
        for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let path = entry?.path();
            if path == root.join(WRITTEN_BY_AGENTS) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).with_context(|| format!("{}", path.display()))?;
                files.insert(path.strip_prefix(root)?.to_owned(), bytes);
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_are_small_deterministic_and_up_to_date() {
        let files = generate();
        assert_eq!(files, generate());
        let bytes: usize = files.values().map(Vec::len).sum();
        assert!(bytes < 1_500_000, "{bytes} bytes");
        run(Mode::Check).unwrap();
    }
}
