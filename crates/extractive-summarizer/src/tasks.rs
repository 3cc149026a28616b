//! Lists of tasks. A list that an agent changes task by task is printed in the same form as a list that the agent
//! replaces as a whole.

use memory_model::conventions::{TaskChange, TaskState};

/// Words at the start of the parts of a list, in the order of printing.
const PARTS: [(&str, TaskState); 4] = [
    ("doing: ", TaskState::Doing),
    ("open: ", TaskState::Open),
    ("done: ", TaskState::Done),
    ("dropped: ", TaskState::Dropped),
];
/// Separator between the parts of a list. The next constant separates tasks.
const BETWEEN_PARTS: &str = " | ";
const BETWEEN: &str = "; ";
/// First character of the id of a task.
const ID: char = '#';

/// Returns whether a text is a list of tasks.
pub(crate) fn is_list(text: &str) -> bool {
    PARTS.iter().any(|(start, _)| text.starts_with(start))
}

/// Returns whether a list has a task that is not done.
pub(crate) fn is_open(text: &str) -> bool {
    let open = PARTS.iter().take(2);
    open.map(|(start, _)| start)
        .any(|start| text.starts_with(start))
}

/// Returns the tasks of a list that are open or in progress, without their ids.
pub(crate) fn open(list: &str) -> impl Iterator<Item = &str> {
    let starts = || PARTS.iter().take(2).map(|(start, _)| *start);
    let parts = list.split(BETWEEN_PARTS);
    let open = parts.filter_map(move |part| starts().find_map(|start| part.strip_prefix(start)));
    open.flat_map(|part| part.split(BETWEEN)).map(|task| {
        let numbered = task.strip_prefix(ID).and_then(|task| task.split_once(' '));
        numbered.map_or(task, |(_, subject)| subject)
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    id: String,
    subject: String,
    state: TaskState,
}

/// Task list that an agent changes task by task.
#[derive(Debug, Default)]
pub(crate) struct Board {
    tasks: Vec<Task>,
}

impl Board {
    /// Applies a change to the list. `id` is the id of a new task.
    pub(crate) fn apply(&mut self, change: &TaskChange, id: &str) {
        let at = self.tasks.iter().position(|task| task.id == id);
        let at = at.unwrap_or_else(|| {
            self.tasks.push(Task {
                id: id.to_owned(),
                subject: String::new(),
                state: TaskState::Open,
            });
            self.tasks.len() - 1
        });
        if let Some(task) = self.tasks.get_mut(at) {
            if let Some(subject) = &change.subject {
                task.subject.clone_from(subject);
            }
            task.state = change.state.unwrap_or(task.state);
        }
    }

    /// Reads a list in the form of [`Board::line`] and updates its tasks. Tasks that the line does not name stay. A
    /// list without ids removes all tasks. Returns whether the line has ids.
    pub(crate) fn read(&mut self, line: &str) -> bool {
        let has_ids = line
            .split_once(": ")
            .is_some_and(|(_, list)| list.starts_with(ID));
        if !has_ids {
            self.tasks.clear();
            return false;
        }
        for part in line.split(BETWEEN_PARTS) {
            let known = PARTS
                .iter()
                .find_map(|(start, state)| Some((part.strip_prefix(start)?, *state)));
            let Some((list, state)) = known else { continue };
            for task in list.split(&format!("{BETWEEN}{ID}")) {
                let task = task.strip_prefix(ID).unwrap_or(task);
                let (id, subject) = task.split_once(' ').unwrap_or((task, ""));
                let mut change = TaskChange::default();
                change.subject = Some(subject.to_owned()).filter(|subject| !subject.is_empty());
                change.state = Some(state);
                self.apply(&change, id);
            }
        }
        true
    }

    /// Returns the list as one line, with tasks in progress first. Done and dropped tasks are given only by their ids.
    pub(crate) fn line(&self) -> String {
        let parts = PARTS.iter().filter_map(|(start, state)| {
            let tasks = self.tasks.iter().filter(|task| task.state == *state);
            let tasks: Vec<String> = tasks
                .map(
                    |task| match *state >= TaskState::Done || task.subject.is_empty() {
                        true => format!("{ID}{}", task.id),
                        // A line is read again.
                        false => {
                            let subject = task.subject.replace(BETWEEN_PARTS, " / ");
                            format!("{ID}{} {subject}", task.id)
                        }
                    },
                )
                .collect();
            (!tasks.is_empty()).then(|| format!("{start}{}", tasks.join(BETWEEN)))
        });
        parts.collect::<Vec<_>>().join(BETWEEN_PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(subject: Option<&str>, state: Option<TaskState>) -> TaskChange {
        let mut change = TaskChange::default();
        (change.subject, change.state) = (subject.map(str::to_owned), state);
        change
    }

    #[test]
    fn a_board_is_read_as_it_is_told() {
        let mut board = Board::default();
        board.apply(&change(Some("Fix it; then test it"), None), "1");
        board.apply(&change(Some("Ship it"), None), "2");
        board.apply(&change(Some("Tell them"), None), "3");
        board.apply(&change(None, Some(TaskState::Doing)), "2");
        board.apply(&change(None, Some(TaskState::Done)), "3");
        let line = board.line();
        assert_eq!(
            line,
            "doing: #2 Ship it | open: #1 Fix it; then test it | done: #3"
        );
        let mut again = Board::default();
        again.read(&line);
        assert_eq!(again.line(), line);
        again.apply(&change(None, Some(TaskState::Dropped)), "1");
        again.apply(&change(None, Some(TaskState::Done)), "2");
        let last = again.line();
        assert_eq!(last, "done: #2; #3 | dropped: #1");
        assert!(is_open(&line) && !is_open(&last) && is_list(&last));
        // What a later list does not name stays, and what it closes does not come back.
        assert!(board.read("doing: #1 | dropped: #2"));
        assert_eq!(
            board.line(),
            "doing: #1 Fix it; then test it | done: #3 | dropped: #2"
        );
        assert!(!board.read("open: write it; test it"));
        assert_eq!(board.line(), "");
    }
}
