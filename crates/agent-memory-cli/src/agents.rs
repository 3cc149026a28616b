//! Coding agents with doors for this program: their homes, and the parts of their configuration that are ours.
//!
//! A [`Part`] edits one file. [`files`] applies the parts of an agent to copies of its files, with or without our
//! content. `install` writes the result, and `doctor` compares it with the files.

mod file;
mod json;
mod ours;
mod parts;
mod toml;

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{Failure, Kind, unreadable};
use crate::output::quoted;
pub(crate) use file::{Change, File};
pub(crate) use json::read as read_json;
use ours::SERVER;

/// An agent that the program can be installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// Gemini CLI
    GeminiCli,
    /// opencode
    Opencode,
    /// pi
    Pi,
    /// Qwen Code
    QwenCode,
}

/// A part of an agent's configuration that is ours.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    edit: Edit,
}

#[derive(Debug)]
enum Edit {
    /// Commands in the object `hooks` of a JSON file, by event.
    Hooks(&'static [&'static str], String),
    /// Our server in this object of a JSON file.
    Server(&'static str, Value),
    /// Our server in Codex's configuration.
    CodexServer(Value),
    /// A whole file.
    Whole(String),
}

impl Part {
    /// Returns a file's text with our part or without it. `None` if there is no such file.
    fn applied(&self, text: Option<&str>, installed: bool) -> Result<Option<String>, String> {
        match &self.edit {
            Edit::Hooks(events, command) => json::edit(text, installed, |root| {
                json::hooks(root, if installed { events } else { &[] }, command)
            }),
            Edit::Server(table, server) => json::edit(text, installed, |root| {
                json::server(root, table, server, installed)
            }),
            Edit::CodexServer(server) => toml::server(text, server, installed),
            Edit::Whole(content) => match text {
                Some(text) if !text.contains(SERVER) => match installed {
                    true => Err("is not agent-memory's: move it away".to_owned()),
                    false => Ok(Some(text.to_owned())),
                },
                _ => Ok(installed.then(|| content.clone())),
            },
        }
    }
}

/// Returns the changes to the files of these parts that add our content or remove it.
pub(crate) fn files(parts: &[Part], installed: bool) -> Result<Vec<File>, Failure> {
    let mut files: Vec<File> = Vec::new();
    for part in parts {
        if !files.iter().any(|file| file.path == part.path) {
            files.push(File::read(&part.path)?);
        }
    }
    for file in &mut files {
        let apply = |text: Option<String>, installed| {
            let mut parts = parts.iter().filter(|part| part.path == file.path);
            parts.try_fold(text, |text, part| part.applied(text.as_deref(), installed))
        };
        let explained = |reason: String| {
            Failure::new(Kind::Invalid, format!("{} {reason}", file.path.display()))
                .hint("no file was changed: mend this one, and run it again")
        };
        let mut after = apply(file.before.clone(), installed).map_err(explained)?;
        if installed {
            // What has content of ours, of any path, is no original.
            let without = apply(file.before.clone(), false).map_err(explained)?;
            file.is_original = without == file.before;
        } else {
            // If nothing else changed, the file becomes the original, byte by byte.
            let without = |text: &String| apply(Some(text.clone()), false).ok()?;
            let original = file.backup()?;
            let with = |text: &String| apply(Some(text.clone()), true).ok()?;
            let anew = original.as_ref().and_then(with);
            let is_changed = after != file.before;
            if is_changed && anew.is_some_and(|anew| without(&anew) == after) {
                after = original;
            } else if is_changed && original.is_none() {
                after = after.filter(|text| !matches!(text.trim(), "" | "{}"));
            }
        }
        file.after = after;
    }
    Ok(files)
}

/// State of a part of an agent's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Installed,
    Missing,
    /// Of another path or version of the program, or incomplete.
    Different,
    /// The file cannot be read or edited.
    Unreadable,
}

impl Part {
    pub(crate) fn state(&self) -> State {
        let file = File::read(&self.path);
        let text = file.map(|file| file.before).map_err(|error| error.message);
        let states = text.and_then(|text| {
            let with = self.applied(text.as_deref(), true)?;
            let without = self.applied(text.as_deref(), false)?;
            Ok((with == text, without == text))
        });
        match states {
            Err(_) => State::Unreadable,
            Ok((true, _)) => State::Installed,
            Ok((_, true)) => State::Missing,
            Ok(_) => State::Different,
        }
    }
}

/// Command line of this program: its path, and options that name the database if it is not the default.
#[derive(Debug)]
pub(crate) struct Program {
    words: Vec<String>,
    store: Option<String>,
    /// Whether the server of the database needs a password that `store` does not have.
    needs_password: bool,
}

impl Program {
    pub(crate) fn of(app: &App) -> Result<Self, Failure> {
        let path = std::env::current_exe();
        // Windows understands the canonical form of a path in few places.
        let path = match cfg!(windows) {
            true => path,
            false => path.and_then(|path| path.canonicalize()),
        };
        let path = path.map_err(|error| unreadable("this program", Some(&error.to_string())))?;
        let path = match path.to_str() {
            Some(path) if cfg!(windows) => path.replace('\\', "/"),
            Some(path) => path.to_owned(),
            None => {
                let text = format!("the path {} is not text", path.display());
                return Err(Failure::new(Kind::Other, text)
                    .hint("move the program, since configurations name its path"));
            }
        };
        let (store, needs_password) = app.named_store()?.unzip();
        let mut words = vec![path];
        if let Some(store) = &store {
            words.extend(["--store".to_owned(), store.clone()]);
        }
        Ok(Self {
            words,
            store,
            needs_password: needs_password.unwrap_or(false),
        })
    }

    /// Returns the steps about the database that are left to the person.
    pub(crate) fn steps(&self) -> Option<&'static str> {
        self.needs_password.then_some(
            "the password of the database is in no file of the agent: put HOST:PORT:DATABASE:USER:PASSWORD into \
             ~/.pgpass with mode 0600, or start the agent with PGPASSWORD",
        )
    }

    pub(crate) fn path(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn hook(&self, agent: Agent) -> Vec<String> {
        let mut words = self.words.clone();
        words.extend(["hook".to_owned(), agent.name().to_owned()]);
        words
    }

    /// Returns the command of the hooks for a shell.
    fn shell(&self, agent: Agent) -> String {
        let quote = |word: &String| match cfg!(windows) && word.contains(' ') {
            true => format!("\"{word}\""),
            false => quoted(word).into_owned(),
        };
        let words: Vec<String> = self.hook(agent).iter().map(quote).collect();
        words.join(" ")
    }

    /// Returns a door's script with the command of this program.
    fn door(&self, agent: Agent, script: &str) -> String {
        let template = json!(["agent-memory", "hook", agent.name()]).to_string();
        let template = template.replace(',', ", ");
        script.replace(&template, &json!(self.hook(agent)).to_string())
    }

    /// Returns the entry of the server, with fields of the agent.
    fn server(&self, environment: &str, more: Value) -> Value {
        let mut server = json!({"command": self.path(), "args": ["mcp"]});
        if let (Some(store), Some(fields)) = (&self.store, server.as_object_mut()) {
            fields.insert(environment.to_owned(), json!({"AGENT_MEMORY_STORE": store}));
        }
        if let (Value::Object(more), Some(fields)) = (more, server.as_object_mut()) {
            fields.extend(more);
        }
        server
    }
}

/// Returns the path in a variable of the environment.
fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

impl Agent {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "claude-code",
            Agent::Codex => "codex",
            Agent::GeminiCli => "gemini-cli",
            Agent::Opencode => "opencode",
            Agent::Pi => "pi",
            Agent::QwenCode => "qwen-code",
        }
    }

    /// Returns the folder of the agent's configuration.
    pub(crate) fn home(self) -> PathBuf {
        let user = std::env::home_dir().unwrap_or_default();
        let (named, folder) = match self {
            Agent::ClaudeCode => (variable("CLAUDE_CONFIG_DIR"), ".claude"),
            Agent::Codex => (variable("CODEX_HOME"), ".codex"),
            Agent::GeminiCli => (None, ".gemini"),
            Agent::Opencode => {
                let named = variable("XDG_CONFIG_HOME");
                (named.map(|path| path.join("opencode")), ".config/opencode")
            }
            Agent::Pi => (variable("PI_CODING_AGENT_DIR"), ".pi/agent"),
            Agent::QwenCode => (None, ".qwen"),
        };
        named.unwrap_or_else(|| user.join(folder))
    }

    /// Fails if the agent has no home.
    pub(crate) fn must_be_there(self) -> Result<(), Failure> {
        let home = self.home();
        if home.is_dir() {
            return Ok(());
        }
        let text = format!("there is no folder {} of {}", home.display(), self.name());
        Err(Failure::new(Kind::NotFound, text)
            .hint("start the agent once, or create the folder if it keeps its files elsewhere"))
    }

    /// Returns the steps that are left to the person after an installation.
    pub(crate) fn steps(self) -> &'static [&'static str] {
        match self {
            Agent::ClaudeCode => &["restart running sessions of Claude Code"],
            Agent::Codex => &[
                "in Codex, run /hooks once and trust the hooks of agent-memory: until then Codex skips them silently, \
                 and again after each change of them",
                "restart running sessions of Codex",
            ],
            Agent::GeminiCli => &["restart running sessions of Gemini CLI"],
            Agent::Opencode => &[
                "restart opencode. At its next start it fetches the package @opencode-ai/plugin from npm, once, as for \
                 every plugin",
            ],
            Agent::Pi => &["restart running sessions of pi"],
            Agent::QwenCode => &["restart running sessions of Qwen Code"],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Characters between the tokens of a file.
    fn space() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec![
            "",
            "",
            " ",
            "\n",
            "\n  ",
            "\r\n\t",
            " // c\n",
            "/* {\"c\": [ */",
        ])
    }

    /// Generates the text of a JSON value in any layout.
    fn value() -> BoxedStrategy<String> {
        let plain = vec![
            "1",
            "-2.5e3",
            "true",
            "null",
            "\"\"",
            r#""a \"hook\" \u00e9 \\""#,
            "\"緑\"",
        ];
        let plain = proptest::sample::select(plain).prop_map(str::to_owned);
        plain
            .prop_recursive(4, 24, 4, |inner| {
                let list = vec((space(), inner.clone(), space()), 0..4).prop_map(|items| {
                    let items = items.iter().map(|(a, item, b)| format!("{a}{item}{b}"));
                    format!("[{}]", items.collect::<Vec<_>>().join(","))
                });
                prop_oneof![list, object(inner)]
            })
            .boxed()
    }

    fn object(inner: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
        let keys = vec![
            "a",
            "b c",
            "hooks",
            "Stop",
            "mcpServers",
            "other",
            "緑",
            "command",
        ];
        let key = proptest::sample::select(keys);
        let property = (key, inner, space(), space());
        let properties = vec(property, 0..5).prop_map(|mut properties| {
            properties.sort_by_key(|(key, ..)| *key);
            properties.dedup_by_key(|(key, ..)| *key);
            properties
        });
        (properties.prop_shuffle(), space(), any::<bool>())
            .prop_map(|(properties, end, comma)| {
                let comma = if comma && !properties.is_empty() {
                    ","
                } else {
                    ""
                };
                let properties = properties.iter();
                let properties =
                    properties.map(|(key, value, a, b)| format!("{a}\"{key}\":{b}{value}{a}"));
                format!(
                    "{{{}{comma}{end}}}",
                    properties.collect::<Vec<_>>().join(",")
                )
            })
            .boxed()
    }

    fn parts(path: &Path) -> Vec<Part> {
        let part = |name, edit| Part {
            name,
            path: path.to_owned(),
            edit,
        };
        let command = "/x/agent-memory hook qwen-code".to_owned();
        let server = json!({"command": "/x/agent-memory", "args": ["mcp"]});
        vec![
            part("hooks", Edit::Hooks(&["Stop", "PreCompact"], command)),
            part("server", Edit::Server("mcpServers", server)),
        ]
    }

    fn write(parts: &[Part], installed: bool) -> Result<Change, Failure> {
        let files = files(parts, installed)?;
        files[0].write(installed)?;
        Ok(files[0].change())
    }

    /// Removes lists and objects without content, which a removal may remove.
    fn without_empty(value: &mut Value) {
        let is_empty = |value: &Value| matches!(value.to_string().as_str(), "{}" | "[]");
        match value {
            Value::Object(fields) => {
                fields.values_mut().for_each(without_empty);
                fields.retain(|_, value| !is_empty(value));
            }
            Value::Array(list) => list.iter_mut().for_each(without_empty),
            _ => {}
        }
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_is_not_overwritten() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("settings.json");
        for (before, meanwhile) in [(Some("{}"), "{\"a\":1}"), (None, "{\"b\":2}")] {
            let _ = std::fs::remove_file(&path);
            if let Some(before) = before {
                std::fs::write(&path, before).unwrap();
            }
            let files = files(&parts(&path), true).unwrap();
            std::fs::write(&path, meanwhile).unwrap();
            let failure = files[0].write(true).unwrap_err();
            assert!(failure.message.contains("meanwhile"), "{}", failure.message);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), meanwhile);
            assert!(!files[0].backup_path().exists());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn removing_gives_the_same_bytes_as_before_the_installation(
            text in (space(), object(value()), space()).prop_map(|(a, object, b)| format!("{a}{object}{b}")),
        ) {
            let folder = tempfile::TempDir::new().unwrap();
            let path = folder.path().join("settings.json");
            std::fs::write(&path, &text).unwrap();
            let parts = parts(&path);
            let read = || std::fs::read_to_string(&path).unwrap();
            if write(&parts, true).is_err() {
                // `hooks` or `mcpServers` is of another type.
                prop_assert_eq!(read(), text);
                return Ok(());
            }
            let installed = read();
            let value = read_json(&installed).unwrap();
            for event in ["Stop", "PreCompact"] {
                let ours = value["hooks"][event].to_string();
                prop_assert_eq!(ours.matches("/x/agent-memory hook qwen-code").count(), 1);
            }
            prop_assert_eq!(&value["mcpServers"]["agent-memory"]["args"], &json!(["mcp"]));
            prop_assert_eq!(write(&parts, true).unwrap(), Change::Unchanged);
            // Without the backup, the content is the same.
            let backup = files(&parts, true).unwrap()[0].backup_path();
            std::fs::rename(&backup, folder.path().join("kept")).unwrap();
            write(&parts, false).unwrap();
            let removed = std::fs::read_to_string(&path).unwrap_or_default();
            let (mut before, mut after) = (read_json(&text), read_json(&removed));
            before.iter_mut().chain(&mut after).for_each(without_empty);
            prop_assert_eq!(after.unwrap_or(json!({})), before.unwrap());
            // With it, the bytes are.
            std::fs::write(&path, &installed).unwrap();
            std::fs::rename(folder.path().join("kept"), &backup).unwrap();
            prop_assert_eq!(write(&parts, false).unwrap(), Change::Changed);
            prop_assert_eq!(read(), text);
            prop_assert!(!backup.exists());
        }
    }
}
