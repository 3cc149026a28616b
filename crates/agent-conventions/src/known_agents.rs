//! The conventions of the agents with transcripts that `message-formats` reads: the names of tools and arguments, and the
//! texts that their programs write around results and around a user's words.

mod answers;
mod calls;
mod commands;
mod edits;
mod results;
mod tasks;
mod users;

use std::borrow::Cow;

use memory_model::RawJson;
use memory_model::conventions::{
    AgentConventions, Rejection, ToolAction, ToolOutcome, ToolUse, UserText,
};

use answers::{ASKED, answers, some_answers};
use calls::tool_use;
use results::{REASONS, is_interrupted, is_no_output, is_refused, output, report};
pub use results::{is_aborted, output_of_command};
use tasks::created_task;
use users::{Marks, is_by_program, is_instructions, typed_and_injected, without_reminders};

/// The conventions of Claude Code, Codex, Gemini CLI, pi, Qwen Code and similar agents, all in one. Their names do not
/// contradict each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownAgents;

impl AgentConventions for KnownAgents {
    fn id(&self) -> &str {
        "known-agents@2"
    }

    fn tool_use(&self, original: &str, arguments: &str) -> ToolUse {
        tool_use(original, arguments)
    }

    fn tool_result<'a>(
        &self,
        call: Option<&ToolUse>,
        text: &'a str,
        is_error: bool,
    ) -> ToolOutcome<'a> {
        let action = call.map_or(ToolAction::Other, |call| call.action);
        let some = match action {
            ToolAction::AskUser if is_error => some_answers(text),
            _ => None,
        };
        if let Some(text) = some {
            return ToolOutcome {
                text: Cow::Owned(text),
                is_error: false,
                rejection: None,
                is_interrupted: false,
            };
        }
        let is_interrupted = is_error && is_interrupted(text);
        let rejection = (is_error && is_refused(text)).then(|| {
            let mut reasons = REASONS.iter().filter_map(|before| text.split_once(before));
            let reason = reasons.next().map_or("", |(_, reason)| reason);
            // In a refusal with answers to some questions, the program's instructions come before the answers.
            let reason = reason
                .split_once(ASKED)
                .map_or(reason, |(_, answers)| answers);
            let notice = text.strip_suffix(reason).unwrap_or(text);
            Rejection { notice, reason }
        });
        let text = match action {
            ToolAction::AskUser if !is_error => Cow::Owned(answers(text)),
            ToolAction::Delegate if !is_error => Cow::Borrowed(report(text)),
            _ => match output(text) {
                Cow::Borrowed(text) if !is_error && is_no_output(text) => Cow::Borrowed(""),
                text => text,
            },
        };
        ToolOutcome {
            text,
            is_error: is_error && !is_interrupted,
            rejection,
            is_interrupted,
        }
    }

    fn created_task<'a>(&self, call: &ToolUse, result: &'a str) -> Option<&'a str> {
        created_task(call, result)
    }

    fn working_folder<'a>(&self, meta: Option<&'a RawJson>) -> Option<Cow<'a, str>> {
        let folder = Marks::of(meta).folder?;
        folder.starts_with('/').then_some(Cow::Owned(folder))
    }

    fn without_reminders<'a>(&self, text: &'a str) -> &'a str {
        without_reminders(text)
    }

    fn is_instructions(&self, injected: &str) -> bool {
        is_instructions(injected)
    }

    fn user_text<'a>(&self, text: &'a str, meta: Option<&RawJson>) -> UserText<'a> {
        // Claude Code, Codex, opencode and Qwen Code mark messages that their user did not write.
        let marks = Marks::of(meta);
        if marks.is_by_program() || is_by_program(text) {
            return UserText {
                typed: Cow::Borrowed(""),
                injected: vec![text.to_owned()],
                is_document: false,
            };
        }
        let (typed, injected) = typed_and_injected(text);
        UserText {
            typed,
            injected,
            is_document: marks.is_document,
        }
    }
}

#[cfg(test)]
mod tests {
    use memory_model::conventions::{Shell, TaskState};

    use super::*;

    #[test]
    fn notes_that_say_something_else_are_told() {
        assert_eq!(
            answers("\"A?\"=\"x\" user notes: y, \"B?\"=\"z\" user notes: z"),
            "A → x (y)\nB → z"
        );
    }

    #[test]
    fn each_question_is_told_with_its_answer() {
        assert_eq!(
            answers(
                "User has answered your questions: \"Which store? One file, please.\"=\"a, \"b\", c\", \"How?\"=\"so\" \
                 selected markdown:\n## Plan\n1, \"x\". You can now continue with the user's answers in mind."
            ),
            "Which store? One file, please. → a, \"b\", c\nHow → so\n## Plan\n1, \"x\""
        );
        assert_eq!(answers("They did not say."), "They did not say.");
        let call = of(
            "AskUserQuestion",
            r#"{"questions":[{"question":"Which port?"}]}"#,
        );
        let text = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n\
                    Start by asking.\n\nQuestions asked:\n- \"Which port?\"\n  Answer: 8031\n- \"Which host?\"\n  \
                    (No answer provided)";
        let outcome = KnownAgents.tool_result(Some(&call), text, true);
        assert_eq!(
            outcome.text,
            "Which port → 8031\nWhich host → (No answer provided)"
        );
        assert!(!outcome.is_error && outcome.rejection.is_none());
    }

    #[test]
    fn an_interruption_is_no_failure() {
        for text in [
            "Exit code 137\n[Request interrupted by user for tool use]\n=== RUN",
            "some output\n\nCommand aborted",
            "<tool_use_error>Sibling tool call errored</tool_use_error>",
        ] {
            let outcome = KnownAgents.tool_result(None, text, true);
            assert!(outcome.is_interrupted && !outcome.is_error, "{text}");
            let outcome = KnownAgents.tool_result(None, text, false);
            assert!(!outcome.is_interrupted, "{text}");
        }
    }

    #[test]
    fn tasks_are_created_and_changed_one_by_one() {
        let create = of("TaskCreate", r#"{"subject":"Fix it","description":"x"}"#);
        assert_eq!(create.action, ToolAction::ChangeTask);
        let result = "Task #7 created successfully: Fix it";
        assert_eq!(KnownAgents.created_task(&create, result), Some("7"));
        let update = of("TaskUpdate", r#"{"taskId":"7","status":"deleted"}"#);
        let change = update.task.as_ref().unwrap();
        assert_eq!(
            (change.id.as_deref(), change.state),
            (Some("7"), Some(TaskState::Dropped))
        );
        assert_eq!(KnownAgents.created_task(&update, result), None);
        // Cancelled steps of a plan are left out.
        let plan =
            r#"{"plan":[{"step":"a","status":"cancelled"},{"step":"b","status":"in_progress"}]}"#;
        assert_eq!(of("update_plan", plan).subject, "doing: b");
    }

    #[test]
    fn a_message_tells_the_folder_of_its_calls() {
        let meta = RawJson::parse(r#"{"cwd":"/srv/app","version":"2"}"#).unwrap();
        let folder = KnownAgents.working_folder(Some(&meta));
        assert_eq!(folder.as_deref(), Some("/srv/app"));
        assert_eq!(KnownAgents.working_folder(None), None);
        let shell = |name: &str, arguments: &str| of(name, arguments).shell;
        assert_eq!(shell("Bash", r#"{"command":"ls"}"#), Shell::Unknown);
        assert_eq!(shell("bash", r#"{"command":"ls"}"#), Shell::New);
        assert_eq!(
            shell("exec_command", r#"{"cmd":"ls","workdir":"/a"}"#),
            Shell::In("/a".to_owned())
        );
    }

    fn of(name: &str, arguments: &str) -> ToolUse {
        KnownAgents.tool_use(name, arguments)
    }

    #[test]
    fn what_opencode_adds_is_not_the_users() {
        let meta = RawJson::parse(r#"{"synthetic":true}"#).unwrap();
        let text = KnownAgents.user_text("Called the Read tool.", Some(&meta));
        assert_eq!((&*text.typed, text.injected.len()), ("", 1));
    }

    #[test]
    fn a_refusal_is_told_in_many_words() {
        let read = |text, is_error| KnownAgents.tool_result(None, text, is_error);
        for text in [
            "exec command rejected by user",
            "patch rejected by user",
            "exec_command failed for `cat <<E\nE`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }",
            "User rejected tool use",
            "user rejected MCP tool call",
            "The user has declined to run this tool. DO NOT call it again.",
            "Tool call declined by the user",
            "The user denied this operation.",
            "exec_command failed for `grep 'user rejected'\nE`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }",
            "aborted by user after 3.6s",
            "Wall time: 3.6 seconds\naborted by user",
        ] {
            let rejection = read(text, true).rejection;
            assert_eq!(rejection.map(|found| found.notice), Some(text));
            assert_eq!(read(text, false).rejection, None, "{text}");
        }
        for text in [
            "Error: the card was declined",
            "exec_command failed for `grep 'user rejected'\nE`: CreateProcess { message: \"no such file\" }",
            "Access denied for user 'root'",
            "Exit code 1\nthe request was rejected by user rules",
            "Exit code: 1\nWall time: 1 seconds\nOutput:\ndeclined by user",
        ] {
            assert_eq!(read(text, true).rejection, None, "{text}");
        }
        let text =
            "The user rejected permission to use this tool with the following feedback: ask\nme";
        assert_eq!(read(text, true).rejection.unwrap().reason, " ask\nme");
    }

    #[test]
    fn a_refusal_has_a_notice_and_a_reason() {
        let text = "The user doesn't want to proceed with this tool use. To tell you how to \
                    proceed, the user said:\nno new exports please";
        let result = KnownAgents.tool_result(None, text, true);
        let rejection = result.rejection.unwrap();
        assert_eq!(rejection.reason, "\nno new exports please");
        assert!(rejection.notice.ends_with("the user said:"));
        let text = "The user doesn't want to proceed with this tool use. To tell you how to \
                    proceed, the user said:\nThe user wants to clarify these questions. Start by \
                    asking.\n\nQuestions asked:\n- \"Which port?\"\n  Answer: 8031";
        let rejection = KnownAgents.tool_result(None, text, true).rejection;
        let reason = rejection.unwrap().reason;
        assert_eq!(reason, "\n- \"Which port?\"\n  Answer: 8031");
        assert!(
            KnownAgents
                .tool_result(None, text, false)
                .rejection
                .is_none()
        );
    }
}
