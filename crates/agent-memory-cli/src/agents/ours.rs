//! Recognition of our content, also of another path or version of the program.

/// Name of our server in the agents' lists of servers.
pub(super) const SERVER: &str = "agent-memory";

/// Name of the program, as it is released.
const PROGRAM: &str = "agent-memory";

/// Words of platforms in the names of released files.
const PLATFORMS: [&str; 8] = [
    "linux", "darwin", "macos", "windows", "x86_64", "aarch64", "amd64", "arm64",
];

/// Returns whether a path names this program, wherever it is: by its name, also with a version or a platform such as
/// `agent-memory-1.0-linux`, or by the name in `own`, the path of this program now.
pub(super) fn is_program(path: &str, own: &str) -> bool {
    let name = file_name(path);
    let is_released = name.strip_prefix(PROGRAM).is_some_and(|rest| {
        let more = rest.strip_prefix('-').unwrap_or_default();
        let version = more.strip_prefix('v').unwrap_or(more);
        rest.is_empty()
            || version.starts_with(|first: char| first.is_ascii_digit())
            || PLATFORMS.iter().any(|platform| more.starts_with(platform))
    });
    is_released || (!name.is_empty() && name == file_name(own))
}

fn file_name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Returns whether a hook's command calls this program, of any place and version. `own` is the command that it writes
/// now.
pub(super) fn is_our_hook(command: &str, own: &str) -> bool {
    let (program, rest) = split(command);
    let (own, _) = split(own);
    is_program(&program, &own) && rest.split_whitespace().any(|word| word == "hook")
}

/// Returns the first word of a command line without quotes, and the others.
fn split(command: &str) -> (String, String) {
    let mut first = String::new();
    let mut quote = None;
    // A quote in a path is not in the program's name.
    let command = command.replace("\\'", "");
    let mut chars = command.chars();
    for c in chars.by_ref() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => break,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (_, c) => first.push(c),
        }
    }
    (first, chars.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_every_place_are_ours() {
        for ours in [
            "/opt/x/agent-memory hook pi",
            "'/o p/it'\\''s/agent-memory' --store /d/a.db hook codex",
            "\"C:/Program Files/agent-memory.exe\" hook qwen-code",
            "agent-memory hook",
            "/opt/agent-memory-v1.0-linux hook pi",
            "/opt/agent-memory-x86_64.exe hook pi",
            "/old/am hook pi",
        ] {
            assert!(is_our_hook(ours, "'/new place/am' hook pi"), "{ours}");
        }
        for other in [
            "",
            "agent-memory import ~/.claude",
            "/usr/bin/hook agent-memory",
            "my-agent-memory hook pi",
            "echo agent-memory hook pi",
            "agent-memoryless hook pi",
            "agent-memory-mcp hook pi",
            "/old/am import",
            "/old/amx hook pi",
        ] {
            assert!(!is_our_hook(other, "'/new place/am' hook pi"), "{other}");
        }
    }
}
