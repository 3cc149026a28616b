//! Examples of commands, which end their help texts.

use clap::Command;

/// The examples of each command, one a line, and the effect of each after a number sign.
const EXAMPLES: [(&str, &str); 34] = [
    (
        "audit",
        "agent-memory audit session.jsonl                        # kept and lost items of each compaction
agent-memory audit session.jsonl --html audit.html      # a page to look at",
    ),
    (
        "certify",
        "agent-memory certify 120981b4 --key key.pem > cert.json # openssl genpkey -algorithm ed25519 -out key.pem",
    ),
    (
        "backup",
        "agent-memory backup memory-2026-03-01.db",
    ),
    (
        "compact",
        "agent-memory compact session.jsonl                      # import a transcript and compact it
agent-memory compact 120981b4 --dry-run                 # what the next compaction would do
agent-memory compact 120981b4 --summarizer openai:gpt-5 # with a model's summaries",
    ),
    (
        "completions",
        "agent-memory completions bash > ~/.local/share/bash-completion/completions/agent-memory",
    ),
    (
        "context",
        "agent-memory context 120981b4 --budget 8000             # what a model would see
agent-memory context 120981b4 --as anthropic            # as the fields of a request",
    ),
    (
        "delete",
        "agent-memory delete 120981b4 --dry-run                  # what would be erased
agent-memory delete 120981b4 --reason \"customer's wish\"",
    ),
    (
        "describe",
        "agent-memory describe 120981b4 sum_4cd0e45cd1d7b30d",
    ),
    (
        "doctor",
        "agent-memory doctor",
    ),
    (
        "erase",
        "agent-memory erase 120981b4 --from 17 --reason \"a password\"
agent-memory erase 120981b4 --archived --older-than 90 --dry-run",
    ),
    (
        "expand",
        "agent-memory expand 120981b4 sum_4cd0e45cd1d7b30d       # a summary by one level
agent-memory expand 120981b4 messages:17-20             # the exact words",
    ),
    (
        "export",
        "agent-memory export 120981b4 > session.jsonl            # every entry, as JSON lines
agent-memory export 120981b4 --redact > shared.jsonl    # without keys and personal data
agent-memory export --sqlite sessions.db                # plain tables for other programs",
    ),
    (
        "files",
        "agent-memory files 120981b4 main.rs --action changed    # who changed a file, and when
agent-memory files 120981b4 --command \"cargo test\"",
    ),
    (
        "fork",
        "agent-memory fork 120981b4 --at 200                     # a session that goes on from message 200",
    ),
    (
        "grep",
        "agent-memory grep 120981b4 \"retry limit\"
agent-memory grep 120981b4 --mode regex \"E[0-9]{4}\" --role tool --order newest",
    ),
    (
        "hook",
        "agent-memory hook claude-code                           # as an agent's configuration calls it
agent-memory hook pi --budget 8000                      # with shorter compactions",
    ),
    (
        "import",
        "agent-memory import ~/.claude                           # all sessions of an agent
agent-memory import --all                               # the sessions of all agents on this machine",
    ),
    (
        "index",
        "agent-memory index 120981b4 --rebuild",
    ),
    (
        "install",
        "agent-memory install claude-code --dry-run              # the changes, as diffs
agent-memory install claude-code
agent-memory install claude-code --remove",
    ),
    (
        "mcp",
        "agent-memory mcp --session 120981b4                     # over stdin and stdout
agent-memory mcp --http 8731                            # at http://127.0.0.1:8731/mcp
agent-memory mcp --names codex --notes harbour          # with history and notes as Codex names them",
    ),
    (
        "recall",
        "agent-memory recall 120981b4 \"What did we decide about retries?\"",
    ),
    (
        "receipt",
        "agent-memory receipt > /elsewhere/receipts.jsonl        # of all sessions, outside of the database",
    ),
    (
        "redo",
        "agent-memory redo 120981b4 --summarizer openai:gpt-5 --max-calls 10
agent-memory redo 120981b4 --again sum_0123456789abcdef --summarizer openai:gpt-5
agent-memory redo 120981b4 --extracts                   # without a model",
    ),
    (
        "replay",
        "agent-memory replay session.jsonl --window 128000",
    ),
    (
        "restore",
        "agent-memory restore memory-2026-03-01.db               # lists the losses, if there are sessions
agent-memory restore memory-2026-03-01.db --replace
agent-memory restore memory-2026-03-01.db --store copy.db",
    ),
    (
        "serve",
        "agent-memory serve                                      # the sessions of this project, at http://127.0.0.1:8732
agent-memory serve --port 0 --session 120981b4 --log    # one session, at a free port",
    ),
    (
        "sessions",
        "agent-memory sessions --all",
    ),
    (
        "set",
        "agent-memory set 120981b4 --title \"Release 2.4\" --archive",
    ),
    (
        "stats",
        "agent-memory stats",
    ),
    (
        "tokens",
        "agent-memory tokens README.md",
    ),
    (
        "migrate",
        "agent-memory migrate --to postgres://me@db.example.org/memory
agent-memory migrate --from postgres://me@db.example.org/memory --to copy.db",
    ),
    (
        "verify",
        "agent-memory verify                                     # every session, and the search indexes
agent-memory verify --against receipts.jsonl            # also whether anything was lost since the receipts",
    ),
    (
        "view",
        "agent-memory view 120981b4 --html session.html          # a page to look at
agent-memory view 120981b4 --history                    # the versions of the view
agent-memory view 120981b4 --revert-to 3",
    ),
    (
        "work",
        "agent-memory work --once
agent-memory work --summarizer ollama:qwen3:8b --metrics 9464",
    ),
];

/// Adds the examples to the help texts of the commands.
pub(crate) fn add(command: Command) -> Command {
    let with = |command: Command| {
        let known = EXAMPLES
            .iter()
            .find(|(name, _)| *name == command.get_name());
        match known {
            Some((_, lines)) => {
                let lines: String = lines.lines().map(|line| format!("\n  {line}")).collect();
                command.after_help(format!("Examples:{lines}"))
            }
            None => command,
        }
    };
    command.mut_subcommands(with)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::{EXAMPLES, add};
    use crate::args::Cli;

    /// Returns the words of a command line with texts in double quotes. A redirection ends the line.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (n, piece) in line.split('"').enumerate() {
            match n % 2 {
                0 => words.extend(piece.split_whitespace().map(str::to_owned)),
                _ => words.push(piece.to_owned()),
            }
        }
        let ends = |word: &String| matches!(word.as_str(), "#" | "<" | ">");
        let end = words.iter().position(ends);
        words.truncate(end.unwrap_or(words.len()));
        words
    }

    #[test]
    fn every_example_is_a_valid_command_of_its_name() {
        let is_built = |name: &str| match name {
            "mcp" => cfg!(feature = "mcp"),
            "serve" => cfg!(feature = "serve"),
            "migrate" => cfg!(feature = "postgres"),
            _ => true,
        };
        for (name, lines) in EXAMPLES.into_iter().filter(|(name, _)| is_built(name)) {
            for line in lines.lines() {
                let words = words(line);
                assert_eq!(words.get(1).map(String::as_str), Some(name), "{line}");
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }

    #[test]
    fn every_command_has_an_example() {
        let command = add(Cli::command());
        for command in command.get_subcommands() {
            assert!(command.get_after_help().is_some(), "{}", command.get_name());
        }
    }
}
