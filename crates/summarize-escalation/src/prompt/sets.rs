//! Texts of the prompts. Whenever the text of a set changes, its version is raised.

use super::clip::Clip;
use super::set::{AnswerFormat, PromptSet, Template};

/// Name and version of the standard prompts, for recipes. The version is raised with every change of a prompt's text.
pub const PROMPT_VERSION: &str = "prompt@2";

/// Template of the user message.
const USER: &str = "{previous}{instructions}{source}";

const ROLE: &str =
    "You keep the memory of an assistant whose conversation has outgrown its window. ";
const SEGMENT: &str = "You are given one segment of that conversation, not the whole of it; it may begin and end in the middle of a task. Your summary takes the segment's place: the assistant goes on working with nothing else of it in view.\n\n";
const MERGE: &str = "Merge them into one that takes their place.\n\n";

/// How to read messages.
const MESSAGES: &str = "\
How to read it:
- role says who speaks: user is the person, assistant is the assistant, tool is what its tools returned, program is text that the assistant's program added and nobody said.
- seq is the number of a message. Readers can look a message up by it: write it in brackets, such as [12], behind what they may want word for word.
- \"[… more characters …]\" stands where text is left out, and not_shown counts messages that say nothing. Do not guess at either.

";
/// How to read summaries.
const SUMMARIES: &str = "\
How to read them:
- Each summary speaks of the time at its end. What the last one calls next or open is so now; what an earlier one calls next or open counts only if no later one settles it.
- Numbers in brackets, such as [12], are numbers of messages: keep them with what you keep.
- written=\"without a model\" marks sentences that a program picked: each is true where it was said, but what they leave out is unknown.
- Messages may follow the summaries. They are newer, and overrule them.

";

/// The language of the answer. Tools and code often speak another language than the user.
const LANGUAGE: &str =
    "in the language in which the user writes, whatever the language of tools, code and documents";
const DOUBT: &str = "- Write \"(unsure)\" behind what the material leaves in doubt: a claim that nothing confirms, a result that is cut off, a contradiction that nobody settled.\n";
const FILES: &str = "- A line that begins with \"Files:\" names each file with what happened to it: created, changed, deleted, moved, read, read in part, failed to read or failed to change; \"Files: none\" when there is none.\n";
const FILES_MERGED: &str = "- A line that begins with \"Files:\" names every file that one of the summaries names, once, with all that happened to it: created, changed, deleted, moved, read, read in part, failed to read or failed to change; \"Files: none\" when there is none.\n";
const STATE: &str = "- A line that begins with \"Constraints:\" lists what the user demanded or ruled out for good, one that begins with \"Open:\" what is not finished at the end, and one that begins with \"Next:\" the very next step. Leave out a line that would be empty.\n";
const EXPAND: &str = "- The last line begins with \"Expand for details about:\" and lists the subjects whose detail you left out.\n";

const BRIEF: &str = "Be brief: where something must go, give up dates, explanations and finished steps before anything else.\n\n";

const MARKS: &str = "- Begin each line with a mark, also the lines that are described below: [1] for what must be known whatever else is forgotten, such as requests, constraints, the present state and the next step; [2] for decisions, causes and exact names; [3] for the rest. A reader with little room sees the lines with [1] only, so each line must be understood without the lines around it.\n";

fn plain() -> String {
    format!("- Plain text, {LANGUAGE}. No heading, no preamble, no remark about the task.\n")
}

fn sections() -> String {
    format!(
        "- Markdown, {LANGUAGE}: the headings above, in their order; leave out a section that would be empty. No preamble, no question, no remark about the task. Call no tool.\n\
         - It must be understood by a reader who has nothing else.\n{DOUBT}"
    )
}

impl PromptSet {
    /// Returns the standard prompts. They ask for plain text, and differ by the depth of the summary.
    pub fn standard() -> Self {
        Self::text(PROMPT_VERSION, "", AnswerFormat::Plain)
    }

    /// Returns the standard prompts with a mark of importance at the beginning of each line. The marks are stored as the
    /// ranks of the lines, so that a shorter form of a summary has its most important lines.
    pub fn ranked_lines() -> Self {
        Self::text("ranked-lines@1", MARKS, AnswerFormat::Ranked)
    }

    /// Returns prompts that ask for text with these additional rules of form.
    fn text(id: &str, rules: &str, answer: AnswerFormat) -> Self {
        let plain = plain();
        let form = |files: &str| {
            format!(
                "{{brevity}}Form:\n{plain}{rules}{DOUBT}{files}{STATE}{EXPAND}{{length}}\n{{data_rule}}"
            )
        };
        Self {
            id: id.to_owned(),
            leaf: Template::known(&format!(
                "{ROLE}{SEGMENT}{MESSAGES}Keep:\n\
                 - what the user asked for, in the user's words, with every constraint and preference;\n\
                 - decisions and the reasons for them, what was found out, and exact names, paths, numbers, commands and error messages;\n\
                 - what is done, what is under way, what is blocked and what comes next.\n\
                 Leave out greetings, repetition, and steps that led nowhere, unless knowing so saves trying them again.\n\n{}",
                form(FILES)
            )),
            leaf_aggressive: Some(Template::known(&format!(
                "{ROLE}{SEGMENT}{MESSAGES}Keep only what will still matter much later:\n\
                 - the user's standing requests and constraints;\n\
                 - durable facts and decisions, with exact names, paths and numbers;\n\
                 - the present state of the work and its next step.\n\
                 Leave out reasons, alternatives, intermediate steps and anything that was superseded.\n\n{}",
                form(FILES)
            ))),
            condensed: Template::known(&format!(
                "{ROLE}You are given consecutive summaries of parts of that conversation, oldest first. {MERGE}{SUMMARIES}Keep:\n\
                 - the user's requests and constraints that still hold, in the user's words;\n\
                 - decisions, and which earlier decision each one supersedes;\n\
                 - what is done, what is in progress, what is blocked;\n\
                 - exact names, paths, numbers and error messages that are still needed;\n\
                 - the dates of what still matters.\n\
                 Drop what was superseded, the detail of finished steps, and whatever two summaries both say.\n\n{}",
                form(FILES_MERGED)
            )),
            trajectory: Some(Template::known(&format!(
                "{ROLE}You are given consecutive summaries that were themselves made of summaries, oldest first. Merge them into one that tells the course of the work.\n\n{SUMMARIES}Keep:\n\
                 - the goals, and how they changed;\n\
                 - the decisions that shape what exists now, and the constraints that still hold, in the user's words;\n\
                 - what was finished and where it can be found; what is open;\n\
                 - the dates of what still matters.\n\
                 Drop single steps, passing states, and detail that only mattered at the time.\n\n{}",
                form(FILES_MERGED)
            ))),
            update: None,
            turn_prefix: None,
            user: Template::known(USER),
            brevity: BRIEF.to_owned(),
            answer,
            clip: Clip::default(),
        }
    }

    /// Returns prompts for a handoff to a colleague who continues the work. They ask for seven sections: goal,
    /// progress, key decisions, files changed, current state, blockers, next steps.
    pub fn handoff_sections() -> Self {
        let headings = "\
# Goal\nWhat the user wants in the end, with every constraint.\n\
# Progress\nWhat is finished and how it was checked.\n\
# Key Decisions\nEach decision with its reason, and what it replaced.\n\
# Files Changed\nOne line a file: its path, what was done to it or failed, why it matters.\n\
# Current State\nWhat works, what does not, what is half done at this moment.\n\
# Blockers and Gotchas\nWhat stands in the way, what surprised, what must not be tried again.\n\
# Next Steps\nIn order, each small enough to begin with.\n\n";
        let form = format!("{{brevity}}Form:\n{}{{length}}\n{{data_rule}}", sections());
        Self {
            id: "anna@2".to_owned(),
            leaf: Template::known(&format!(
                "{ROLE}Write the handoff to the colleague who continues from here. Give exact names, paths, numbers, commands and error messages.\n\n{MESSAGES}{headings}{form}"
            )),
            condensed: Template::known(&format!(
                "{ROLE}You are given consecutive handoffs, oldest first. Merge them into one: a later one overrules an earlier one, and what is settled needs no story.\n\n{SUMMARIES}{headings}{form}"
            )),
            leaf_aggressive: None,
            trajectory: None,
            ..Self::standard()
        }
    }

    /// Returns prompts for a checkpoint of six sections, with separate prompts for the update of a checkpoint by later
    /// messages and for the beginning of a turn.
    pub fn checkpoint() -> Self {
        let headings = "\
## Goal\nWhat the user is trying to achieve; several goals where there are several.\n\
## Constraints & Preferences\nWhat the user demanded or ruled out, in the user's words.\n\
## Progress\n### Done\nFinished work.\n### In Progress\nWork under way.\n### Blocked\nWhat is stuck, and on what.\n\
## Key Decisions\nEach with its reason in a few words.\n\
## Next Steps\nIn order.\n\
## Critical Context\nData, references and exact error messages that are needed to go on; files with what happened to them.\n\n";
        let form = format!(
            "{{brevity}}Form:\n{}- Paths, names and error messages to the letter.\n{{length}}\n{{data_rule}}",
            sections()
        );
        let role = "You write summaries of conversations between a user and a coding assistant. You never continue the conversation and answer nothing that is asked in it.\n\n";
        Self {
            id: "pi@2".to_owned(),
            leaf: Template::known(&format!(
                "{role}Write a checkpoint from which another model can go on with the work.\n\n{MESSAGES}{headings}{form}"
            )),
            condensed: Template::known(&format!(
                "{role}You are given consecutive checkpoints, oldest first. Write the one that takes their place.\n\n{SUMMARIES}{headings}{form}"
            )),
            update: Some(Template::known(&format!(
                "{role}You are given a checkpoint, <previous_summary>, and the messages that came after it. Bring the checkpoint up to date:\n\
                 - keep what it says unless the messages overrule it;\n\
                 - add new goals, constraints, decisions and facts;\n\
                 - move what was finished meanwhile to Done, and take what was unblocked out of Blocked;\n\
                 - put Next Steps in the order that holds now, and drop what no longer matters.\n\n{MESSAGES}{headings}{form}"
            ))),
            turn_prefix: Some(Template::known(&format!(
                "{role}You are given the beginning of one turn; the rest of the turn stays in view behind your summary. Tell what is needed to understand the rest.\n\n{MESSAGES}\
                 ## Original Request\nWhat the user asked for in this turn.\n\
                 ## Early Progress\nDecisions and work in the beginning.\n\
                 ## Context for Suffix\nWhat the rest of the turn builds on.\n\n{form}"
            ))),
            leaf_aggressive: None,
            trajectory: None,
            ..Self::standard()
        }
    }

    /// Returns prompts that ask for notes and then a summary of nine numbered sections. The notes are removed from the
    /// answer.
    pub fn numbered_sections() -> Self {
        let headings = "\
1. Primary Request and Intent: all that the user asked for, in full.\n\
2. Key Technical Concepts: technologies and ideas that were discussed.\n\
3. Files and Code Sections: files that were created, changed, deleted or read, also in part or without success, why each matters, and the code that is needed to go on.\n\
4. Errors and Fixes: each error, how it was mended, what the user said to it.\n\
5. Problem Solving: what was solved, and what is still being looked into.\n\
6. All User Messages: every message of the user's that is not a tool's result.\n\
7. Pending Tasks: what is still to be done; items of a task list word for word.\n\
8. Current Work: what was being done last, with names of files and code.\n\
9. Optional Next Step: only what follows from the last request, with a quotation that shows it.\n\n";
        let form = format!(
            "{{brevity}}Form:\n\
             - First think between <analysis> and </analysis>: go through the conversation in order, and check that nothing that was asked, decided or broken is missing. This part is thrown away.\n\
             - Then write the numbered sections between <summary> and </summary>, {LANGUAGE}.\n\
             {DOUBT}\
             - Text only: call no tool.\n{{length}}\n{{data_rule}}"
        );
        Self {
            id: "numbered-sections@2".to_owned(),
            leaf: Template::known(&format!(
                "{ROLE}Summarise it so that the work can go on without it.\n\n{MESSAGES}{headings}{form}"
            )),
            condensed: Template::known(&format!(
                "{ROLE}You are given consecutive summaries of it, oldest first. {MERGE}{SUMMARIES}{headings}{form}"
            )),
            leaf_aggressive: None,
            trajectory: None,
            answer: AnswerFormat::Tagged,
            ..Self::standard()
        }
    }

    /// Returns every set of this crate, the standard one first.
    pub(super) fn all() -> [Self; 5] {
        [
            Self::standard(),
            Self::ranked_lines(),
            Self::handoff_sections(),
            Self::checkpoint(),
            Self::numbered_sections(),
        ]
    }
}
