//! Reads the lists of tasks that calls write, and the tasks that they create and change one by one.

use memory_model::conventions::{TaskChange, TaskState, ToolArguments, ToolUse};
use serde_json::Value;

/// Text before and behind the id of a new task, in the result of the call that creates the task.
const CREATED: (&str, &str) = ("Task #", " created");

/// Returns a list of tasks with states as one line: tasks in progress, then open ones, then finished ones.
pub(super) fn tasks(value: &Value) -> Option<String> {
    let list = ["todos", "plan", "tasks", "task_list"]
        .iter()
        .find_map(|key| value.get(key)?.as_array())?;
    let text = |task: &Value, keys: &[&str]| {
        let text = keys.iter().find_map(|key| task.get(key)?.as_str());
        text.map(squeeze)
    };
    let mut groups = ["doing", "open", "done"].map(|state| (state, Vec::new()));
    for task in list {
        let what = text(
            task,
            &["content", "step", "text", "title", "subject", "description"],
        )?;
        let state = text(task, &["status", "state"]).unwrap_or_default();
        let group = match task_state(&state) {
            TaskState::Doing => 0,
            TaskState::Done => 2,
            TaskState::Dropped => continue,
            _ => 1,
        };
        if let Some((_, tasks)) = groups.get_mut(group) {
            tasks.push(what);
        }
    }
    let told = groups.iter().filter(|(_, tasks)| !tasks.is_empty());
    let told: Vec<String> = told
        .map(|(state, tasks)| format!("{state}: {}", tasks.join("; ")))
        .collect();
    (!told.is_empty()).then(|| told.join(" | "))
}

/// Returns a text with single spaces between its words.
pub(super) fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the task that a call creates or changes.
pub(super) fn task_change(name: &str, arguments: &ToolArguments) -> Option<TaskChange> {
    let mut change = TaskChange::default();
    match name {
        "TaskCreate" => change.subject = Some(squeeze(&arguments.text("subject")?)),
        "TaskUpdate" => {
            change.id = Some(arguments.text("taskId")?);
            change.subject = arguments.text("subject").map(|text| squeeze(&text));
            change.state = arguments.text("status").map(|state| task_state(&state));
        }
        _ => return None,
    }
    Some(change)
}

fn task_state(state: &str) -> TaskState {
    match state {
        "completed" | "done" => TaskState::Done,
        "in_progress" | "in-progress" | "doing" => TaskState::Doing,
        "cancelled" | "canceled" | "deleted" => TaskState::Dropped,
        _ => TaskState::Open,
    }
}

/// Returns the id of the task that a call created, by its result.
pub(super) fn created_task<'a>(call: &ToolUse, result: &'a str) -> Option<&'a str> {
    let task = call.task.as_ref().filter(|task| task.id.is_none())?;
    task.subject.as_ref()?;
    let (id, _) = result.strip_prefix(CREATED.0)?.split_once(CREATED.1)?;
    (!id.contains(char::is_whitespace)).then_some(id)
}
