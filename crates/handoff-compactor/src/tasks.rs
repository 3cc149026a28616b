//! The open tasks in the latest task list of a conversation.

use compaction_plan::JobSource;
use memory_model::conventions::{AgentConventions, ToolAction};
use memory_model::{Part, RawJson, Summary};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names of the field that contains the text of a task, in a task list of any agent.
const NAMES: [&str; 5] = ["content", "subject", "title", "task", "text"];
/// States in which a task is open.
const OPEN: [&str; 4] = ["pending", "in_progress", "in-progress", "todo"];

/// Texts of the open tasks in a task list that an agent updates with a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenTasks(Vec<String>);

impl OpenTasks {
    pub(crate) const FACT: &'static str = "tasks";

    /// Returns the open tasks of the latest task list in the sources; `None` if they have no task list.
    pub(crate) fn newest(
        sources: &[JobSource<'_>],
        conventions: &dyn AgentConventions,
    ) -> Option<Self> {
        sources.iter().rev().find_map(|source| match source {
            JobSource::Summary(summary) => Self::of(summary),
            JobSource::Entry(entry) => entry.parts.iter().rev().find_map(|part| match part {
                Part::ToolCall {
                    name, arguments, ..
                } => {
                    let used = conventions.tool_use(name, arguments.as_str());
                    let updates = used.action == ToolAction::UpdateTasks;
                    updates.then(|| Self::read(arguments.as_str())).flatten()
                }
                _ => None,
            }),
        })
    }

    fn of(summary: &Summary) -> Option<Self> {
        #[derive(Deserialize)]
        struct Meta {
            tasks: Option<OpenTasks>,
        }
        let meta = summary.meta.as_ref().map(RawJson::as_str)?;
        serde_json::from_str::<Meta>(meta).ok()?.tasks
    }

    /// Parses a task list from the arguments of a call: the first array of objects that all have a state.
    fn read(arguments: &str) -> Option<Self> {
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        let lists = arguments.as_object()?.values().filter_map(Value::as_array);
        let mut states = lists.filter(|list| list.iter().all(|task| task["status"].is_string()));
        let tasks = states.next()?.iter().filter_map(|task| {
            let is_open = OPEN.contains(&task["status"].as_str()?);
            let name = NAMES.iter().find_map(|name| task[*name].as_str())?;
            is_open.then(|| name.trim().to_owned())
        });
        Some(Self(tasks.collect()))
    }

    /// Returns one line for each open task that a text does not name.
    pub(crate) fn unnamed(&self, text: &str) -> Vec<String> {
        let missing = self.0.iter().filter(|task| !text.contains(task.as_str()));
        missing.map(|task| format!("To do: {task}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_tasks_are_read_from_any_list_with_states() {
        let list = r#"{"todos":[{"content":"Write it","status":"completed"},{"content":"Test it","status":"in_progress"},
            {"subject":"Ship it","status":"pending"}]}"#;
        let tasks = OpenTasks::read(list).unwrap();
        assert_eq!(tasks.0, ["Test it", "Ship it"]);
        assert_eq!(tasks.unnamed("They are to Test it."), ["To do: Ship it"]);
        for none in ["{}", "[]", "x", r#"{"todos":[{"content":"a"}]}"#] {
            assert_eq!(OpenTasks::read(none), None, "{none}");
        }
    }
}
