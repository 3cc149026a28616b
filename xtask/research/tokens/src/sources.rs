//! The texts that a fit learns from and is measured on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::packages;

/// A text under one name. `group` is what is left out together.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) group: &'static str,
    pub(super) text: String,
}

/// No more than this of one file, in characters.
const FILE_MOST: usize = 24_000;
/// No more than this of MediaWiki's texts, in characters.
const MEDIAWIKI_MOST: usize = 60_000;
/// No more files than this of one folder.
const FILES_MOST: usize = 16;

/// What the fit learns from.
pub(super) fn packaged(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut out = Vec::new();
    for &(group, folder, ending) in packages::PACKAGED {
        out.push(read(root, group, folder, ending)?);
    }
    for &(language, group) in packages::MEDIAWIKI {
        let file = format!("usr/share/mediawiki/languages/i18n/{language}.json");
        let json = fs::read_to_string(root.join(&file)).with_context(|| format!("read {file}"))?;
        let mut strings = Vec::new();
        phrases(&serde_json::from_str(&json)?, &mut strings);
        let text = strings.join("\n");
        let skip = text.chars().count().saturating_sub(MEDIAWIKI_MOST) / 2;
        out.push(Source {
            name: format!("{group}: {file}"),
            group,
            text: text.chars().skip(skip).take(MEDIAWIKI_MOST).collect(),
        });
    }
    Ok(out)
}

/// What a fit is measured on and never sees.
pub(super) fn held(root: &Path) -> anyhow::Result<Vec<Source>> {
    packages::held()
        .iter()
        .map(|(group, folder, ending)| read(root, group, folder, ending))
        .collect()
}

/// Some of a folder's files, as one text: of long ones the middle.
fn read(root: &Path, group: &'static str, folder: &str, ending: &str) -> anyhow::Result<Source> {
    let mut files = Vec::new();
    walk(&root.join(folder), ending.trim_end_matches('+'), &mut files)?;
    files.sort();
    anyhow::ensure!(
        !files.is_empty(),
        "no {ending} under {}: unpack the packages that docs/measurements/tokens.md names",
        root.join(folder).display()
    );
    let step = (files.len() / FILES_MOST).max(1);
    let mut text = String::new();
    for file in files.iter().step_by(step).take(FILES_MOST) {
        let bytes = fs::read(file)?;
        let marked = [".html", ".page", ".svg"]
            .iter()
            .any(|end| ending.ends_with(end));
        let plain = match marked {
            _ if ending.ends_with(".mo") => messages(&bytes),
            true => untag(&String::from_utf8_lossy(&bytes)),
            false => String::from_utf8_lossy(&bytes).into_owned(),
        };
        let skip = plain.chars().count().saturating_sub(FILE_MOST) / 2;
        text.extend(plain.chars().skip(skip).take(FILE_MOST));
    }
    Ok(Source {
        name: format!("{group}: {folder} *{ending}"),
        group,
        text,
    })
}

fn walk(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            walk(&path, ending, out)?;
        } else if path.to_string_lossy().ends_with(ending)
            && path.metadata().is_ok_and(|m| m.len() > 1_500)
        {
            out.push(path);
        }
    }
    Ok(())
}

/// Markup without its tags, blank lines closed up.
fn untag(html: &str) -> String {
    let body = html.find("<body").map_or(html, |at| &html[at..]);
    let mut out = String::new();
    let mut inside = false;
    let mut skip = None;
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        if skip.is_none() {
            skip = ["script", "style"]
                .iter()
                .find(|t| rest.starts_with('<') && rest[1..].starts_with(**t))
                .map(|t| format!("</{t}"));
        }
        if let Some(end) = &skip {
            let Some(at) = rest.find(end.as_str()) else {
                break;
            };
            rest = &rest[at..];
            skip = None;
        }
        match c {
            '<' => inside = true,
            '>' => inside = false,
            _ if !inside => out.push(c),
            _ => {}
        }
        rest = &rest[rest.chars().next().map_or(1, char::len_utf8)..];
    }
    let out = out
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&nbsp;", " ")
        .replace("&#160;", " ")
        .replace("&amp;", "&");
    let mut lines: Vec<&str> = Vec::new();
    for line in out.lines().map(str::trim) {
        if !line.is_empty() || lines.last().is_some_and(|l| !l.is_empty()) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// The translations inside a gettext catalogue, one a line.
fn messages(mo: &[u8]) -> String {
    let word = |at: usize| {
        mo.get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u32::from_le_bytes) as usize
    };
    let (count, table) = (word(8), word(16));
    let mut out = String::new();
    for n in 1..count {
        let (length, at) = (word(table + n * 8), word(table + n * 8 + 4));
        if let Some(text) = mo.get(at..at + length) {
            out.push_str(&String::from_utf8_lossy(text).replace('\0', "\n"));
            out.push('\n');
        }
    }
    out
}

/// The files under `text/` of the corpus, each a group of its own but for the two Korean ones.
pub(super) fn texts(data: &Path) -> anyhow::Result<Vec<Source>> {
    const GROUPS: &[(&str, &str)] = &[
        ("en-", "en"),
        ("zh-", "zh-cn"),
        ("ja-", "ja"),
        ("ko-", "ko"),
        ("readme-ko", "ko"),
        ("ru-", "ru"),
        ("ar-", "ar"),
        ("hi-", "hi"),
        ("rust-", "rust"),
        ("python-", "python"),
        ("typescript-", "typescript"),
        ("go-", "go"),
        ("json-", "json"),
        ("log-", "log"),
        ("emoji-", "emoji"),
    ];
    let mut out = Vec::new();
    for path in sorted(&data.join("text"))? {
        let name = file_name(&path);
        let group = GROUPS
            .iter()
            .find(|(prefix, _)| name.starts_with(prefix))
            .map_or("other", |(_, g)| g);
        out.push(Source {
            text: fs::read_to_string(&path)?,
            name,
            group,
        });
    }
    Ok(out)
}

pub(super) fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut out = fs::read_dir(folder)
        .with_context(|| format!("read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    out.sort();
    Ok(out)
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// A transcript's messages, each as its texts, arguments and results.
pub(super) struct Transcript {
    pub(super) name: String,
    pub(super) trained: bool,
    pub(super) messages: Vec<Vec<String>>,
}

/// Claude Code and pi. Every second Claude Code file and the two short pi files are for training, the others never.
pub(super) fn transcripts(data: &Path) -> anyhow::Result<Vec<Transcript>> {
    let mut out = Vec::new();
    for folder in ["claude-code", "pi"] {
        for (n, path) in sorted(&data.join(folder))?.iter().enumerate() {
            let text = fs::read_to_string(path)?;
            let messages = text.lines().filter_map(|line| {
                let line: Value = serde_json::from_str(line).ok()?;
                let kind = line.get("type")?.as_str()?;
                matches!(kind, "user" | "assistant" | "message").then_some(())?;
                let mut texts = Vec::new();
                pieces(line.get("message")?.get("content")?, &mut texts);
                (!texts.is_empty()).then_some(texts)
            });
            out.push(Transcript {
                name: format!("{folder}/{}", file_name(path)),
                trained: if folder == "pi" {
                    text.len() < 50_000
                } else {
                    n % 2 == 0
                },
                messages: messages.collect(),
            });
        }
    }
    Ok(out)
}

fn pieces(content: &Value, out: &mut Vec<String>) {
    match content {
        Value::String(text) => out.push(text.clone()),
        Value::Array(parts) => {
            for part in parts {
                match part.get("type").and_then(Value::as_str) {
                    Some("tool_use") => out.extend(part.get("input").map(Value::to_string)),
                    Some("toolCall") => out.extend(part.get("arguments").map(Value::to_string)),
                    Some("tool_result") => pieces(part.get("content").unwrap_or(&Value::Null), out),
                    Some("image") => {}
                    _ => {
                        for key in ["text", "thinking"] {
                            out.extend(part.get(key).and_then(Value::as_str).map(str::to_owned));
                        }
                    }
                }
            }
        }
        _ => {}
    }
}

/// Other formats of the corpus: their long strings, and some lines as they stand.
pub(super) fn other(data: &Path) -> anyhow::Result<Vec<Source>> {
    let mut out = Vec::new();
    for folder in [
        "codex",
        "cline",
        "gemini-cli",
        "opencode",
        "swe-agent",
        "mini-swe-agent",
        "openhands",
        "tau-bench",
        "beam",
    ] {
        for path in sorted(&data.join(folder))? {
            let raw = fs::read_to_string(&path)?;
            let mut strings = Vec::new();
            if let Ok(value) = serde_json::from_str::<Value>(&raw) {
                long(&value, &mut strings);
            } else {
                raw.lines()
                    .filter_map(|l| serde_json::from_str::<Value>(l).ok())
                    .for_each(|v| long(&v, &mut strings));
            }
            let name = format!("{folder}/{}", file_name(&path));
            let most = 400_000;
            out.push(Source {
                text: strings.join("\n").chars().take(most).collect(),
                name: name.clone(),
                group: "transcript",
            });
            out.push(Source {
                text: raw.chars().take(60_000).collect(),
                name: format!("{name} (raw)"),
                group: "raw",
            });
        }
    }
    Ok(out)
}

/// The values that are more than a word or two.
fn phrases(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > 20 => out.push(text.clone()),
        Value::Object(map) => map.values().for_each(|v| phrases(v, out)),
        _ => {}
    }
}

fn long(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > 40 => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|v| long(v, out)),
        Value::Object(map) => map.values().for_each(|v| long(v, out)),
        _ => {}
    }
}

/// Made-up shapes: hexadecimal, base64, identifiers, numbers, emoji. The same at every run.
pub(super) fn shapes() -> Vec<Source> {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    let mut take = |alphabet: &str, length: u64| -> String {
        let chars: Vec<char> = alphabet.chars().collect();
        (0..length)
            .map(|_| chars[next(chars.len() as u64) as usize])
            .collect()
    };
    let base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hex = "0123456789abcdef";
    let emoji: String = (0x1f300..0x1f650)
        .chain(0x1f680..0x1f6d0)
        .chain(0x1f900..0x1f9ff)
        .filter_map(char::from_u32)
        .collect();
    let people = "👩👨🧑👧👦👶👮🧙🏃🤷🙋💁🧝🦸👷💂🕵🧚🧜";
    let skins = "🏻🏼🏽🏾🏿";
    let things = "❤🔥💻⚕🎓🏫🌾🍳🏭🔧🔬🎨🚒🚀⚖✈♂♀";
    let old = "☀☁☂☎☑☕☘☝☠☢☣☮☯☹☺♈♉♨♻⚒⚓⚔⚗⚙⚠⚡✂✅✉✊✋✌✏✒✔✖✨❄❌❓❗➕➡⤴⬅⭐ℹ⌚⌛⏩⏰▶";
    let letters: String = (0x1f1e6..0x1f200).filter_map(char::from_u32).collect();
    let mut sequences = Vec::new();
    for n in 0..1_200 {
        sequences.push(match n % 6 {
            0 => take(people, 1) + &take(skins, 1),
            1 => take(people, 1) + "\u{200d}" + &take(things, 1) + "\u{fe0f}",
            2 => take(people, 1) + &take(skins, 1) + "\u{200d}" + &take(things, 1),
            3 => take(&letters, 2),
            4 => take(old, 1) + "\u{fe0f}",
            _ => take(&emoji, 1) + &take(skins, n as u64 / 6 % 2),
        });
    }
    let sequences = |between: &str| sequences.join(between);
    let made = [
        ("emoji sequences", sequences(" ")),
        (
            "emoji sequences in JSON",
            format!("[\"{}\"]", sequences("\", \"")),
        ),
        ("emoji sequences in lines", sequences("\",\n  \"")),
        (
            "base64",
            (0..20)
                .map(|_| take(base64, 1_400))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        (
            "hex",
            (0..400)
                .map(|n| take(hex, [8, 40, 64, 7][n % 4]))
                .collect::<Vec<_>>()
                .join(" "),
        ),
        (
            "uuid",
            (0..400)
                .map(|_| [8, 4, 4, 4, 12].map(|n| take(hex, n)).join("-"))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        (
            "numbers",
            (0..1_500)
                .map(|n| take("0123456789", 1 + n % 9))
                .collect::<Vec<_>>()
                .join([", ", " ", "\n"][1]),
        ),
        (
            "times",
            (0..600)
                .map(|_| {
                    format!(
                        "2025-{}-{} {}:{}:{},{}",
                        take("01", 2),
                        take("012", 2),
                        take("012", 2),
                        take("012345", 2),
                        take("012345", 2),
                        take("0123456789", 3)
                    )
                })
                .collect::<Vec<_>>()
                .join(" "),
        ),
        (
            "emoji",
            (0..3_000)
                .map(|_| take(&emoji, 1))
                .collect::<Vec<_>>()
                .join(""),
        ),
        (
            "emoji lines",
            (0..1_500)
                .map(|_| format!("\"{}\",", take(&emoji, 1)))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
    ];
    made.into_iter()
        .map(|(name, text)| Source {
            name: format!("made: {name}"),
            group: if name.starts_with("emoji") {
                "emoji"
            } else {
                "shapes"
            },
            text,
        })
        .collect()
}
