//! The parts of each agent's configuration: hooks, a server, scripts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Agent, Edit, Part, Program, State, variable};

impl Agent {
    /// Returns the parts of the agent's configuration that are ours.
    pub(crate) fn parts(self, program: &Program) -> Vec<Part> {
        let own = Configuration {
            agent: self,
            home: self.home(),
            program,
        };
        match self {
            Agent::ClaudeCode => own.claude_code(),
            Agent::Codex => own.codex(),
            Agent::GeminiCli => {
                // Not PreCompress, which comes before every call of the model.
                const EVENTS: &[&str] = &["SessionStart", "AfterAgent", "SessionEnd"];
                vec![
                    own.hooks("settings.json", EVENTS),
                    own.servers(&own.home.join("settings.json"), Value::Null),
                ]
            }
            Agent::QwenCode => {
                const EVENTS: &[&str] = &["SessionStart", "Stop", "PreCompact", "SessionEnd"];
                vec![
                    own.hooks("settings.json", EVENTS),
                    own.servers(&own.home.join("settings.json"), Value::Null),
                ]
            }
            Agent::Pi => vec![
                own.whole(
                    "extension",
                    "extensions/agent-memory.ts",
                    include_str!("doors/pi-extension.ts"),
                ),
                own.servers(&own.home.join("mcp.json"), json!({"exposure": "direct"})),
            ],
            Agent::Opencode => own.opencode(),
        }
    }
}

/// The configuration of one agent.
struct Configuration<'a> {
    agent: Agent,
    home: PathBuf,
    program: &'a Program,
}

impl Configuration<'_> {
    fn hooks(&self, file: &str, events: &'static [&'static str]) -> Part {
        let edit = Edit::Hooks(events, self.program.shell(self.agent));
        part("hooks", &self.home.join(file), edit)
    }

    fn servers(&self, path: &Path, more: Value) -> Part {
        let server = self.program.server("env", more);
        part("server", path, Edit::Server("mcpServers", server))
    }

    fn whole(&self, name: &'static str, file: &str, content: &str) -> Part {
        let content = self.program.door(self.agent, content);
        part(name, &self.home.join(file), Edit::Whole(content))
    }

    fn claude_code(&self) -> Vec<Part> {
        const EVENTS: &[&str] = &[
            "SessionStart",
            "Stop",
            "SubagentStop",
            "PreCompact",
            "SessionEnd",
        ];
        // Beside the folder, unless the folder is named.
        let file = match variable("CLAUDE_CONFIG_DIR") {
            Some(_) => self.home.join(".claude.json"),
            None => self.home.with_extension("json"),
        };
        // A folder of skills with a manifest is a plugin.
        let plugin = |file, content| self.whole("mod", file, content);
        vec![
            self.hooks("settings.json", EVENTS),
            plugin(
                "skills/agent-memory/.claude-plugin/plugin.json",
                include_str!("doors/plugin.json"),
            ),
            plugin(
                "skills/agent-memory/hooks/hooks.json",
                include_str!("doors/hooks.json"),
            ),
            plugin(
                "skills/agent-memory/hooks/register.js",
                include_str!("doors/register.js"),
            ),
            self.servers(&file, json!({"type": "stdio"})),
        ]
    }

    fn codex(&self) -> Vec<Part> {
        const EVENTS: &[&str] = &["SessionStart", "Stop", "PreCompact", "SessionEnd"];
        // Codex gives a server only the variables that are named.
        let inherited = json!({"env_vars": ["XDG_DATA_HOME", "APPDATA", "AGENT_MEMORY_STORE"]});
        let server = Edit::CodexServer(self.program.server("env", inherited));
        vec![
            self.hooks("hooks.json", EVENTS),
            part("server", &self.home.join("config.toml"), server),
        ]
    }

    fn opencode(&self) -> Vec<Part> {
        let mut server = self.program.server("environment", Value::Null);
        if let Some(fields) = server.as_object_mut() {
            fields.remove("args");
            fields.insert("type".to_owned(), json!("local"));
            fields.insert("command".to_owned(), json!([self.program.path(), "mcp"]));
            fields.insert("enabled".to_owned(), json!(true));
        }
        let server = |path: &Path| part("server", path, Edit::Server("mcp", server.clone()));
        // opencode reads both, so the server may be in either, or in both.
        let both = ["opencode.jsonc", "opencode.json"].map(|name| self.home.join(name));
        let mut servers: Vec<Part> = both.iter().map(|path| server(path)).collect();
        let has_ours =
            |part: &mut Part| matches!(part.state(), State::Installed | State::Different);
        servers.retain_mut(has_ours);
        if servers.is_empty() {
            let [comments, plain] = &both;
            servers.push(server(if comments.exists() { comments } else { plain }));
        }
        let plugin = self.whole(
            "plugin",
            "plugin/agent-memory.js",
            include_str!("doors/opencode-plugin.js"),
        );
        std::iter::once(plugin).chain(servers).collect()
    }
}

fn part(name: &'static str, path: &Path, edit: Edit) -> Part {
    Part {
        name,
        path: path.to_owned(),
        edit,
    }
}
