//! Recognition of our content, also of another path or version of the program.

/// Name of our server in the agents' lists of servers.
pub(super) const SERVER: &str = "agent-memory";

/// Returns whether a path names this program, wherever it is.
pub(super) fn is_program(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name) == "agent-memory"
}

/// Returns whether a hook's command calls this program, of any place and version.
pub(super) fn is_our_hook(command: &str) -> bool {
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
    is_program(&first) && chars.as_str().split_whitespace().any(|word| word == "hook")
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
        ] {
            assert!(is_our_hook(ours), "{ours}");
        }
        for other in [
            "",
            "agent-memory import ~/.claude",
            "/usr/bin/hook agent-memory",
            "my-agent-memory hook pi",
            "echo agent-memory hook pi",
        ] {
            assert!(!is_our_hook(other), "{other}");
        }
    }
}
