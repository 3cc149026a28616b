//! Texts of the prompts. Whenever the text of a set changes, its version is raised.

use super::clip::Clip;
use super::set::{AnswerFormat, PromptSet, Template};

/// Name and version of the standard prompts, for recipes. The version is raised with every change of a prompt's text.
pub const PROMPT_VERSION: &str = "prompt@1";

/// Template of the user message.
const USER: &str = "{previous}{instructions}{source}";

const ROLE: &str =
    "You keep the memory of an assistant whose conversation has outgrown its window. ";
const SEGMENT: &str = "You are given one segment of that conversation, not the whole of it. Your summary takes the segment's place: the assistant goes on working with nothing else of it in view.\n\n";

const PLAIN: &str = "- Plain text, in the language of the conversation. No heading, no preamble, no remark about the task.\n";
const FILES: &str = "- A line that begins with \"Files:\" names each file that was created, changed, deleted or read, and which of these; \"Files: none\" when there is none.\n";
const EXPAND: &str = "- The last line begins with \"Expand for details about:\" and lists the subjects whose detail you left out.\n";

const SECTIONS: &str = "- Markdown, in the language of the conversation: the headings above, in their order; leave out a section that would be empty. No preamble, no question, no remark about the task. Call no tool.\n- It must be understood by a reader who has nothing else.\n";

const HALVE: &str = "An earlier attempt was too long. Halve it: keep requests, decisions and the present state, and give up all explanation.\n\n";

impl PromptSet {
    /// Returns the standard prompts. They ask for plain text, and differ by the depth of the summary.
    pub fn standard() -> Self {
        let form = |files: &str| format!("Form:\n{PLAIN}{files}{EXPAND}{{length}}\n{{data_rule}}");
        Self {
            id: PROMPT_VERSION.to_owned(),
            leaf: Template::known(&format!(
                "{ROLE}{SEGMENT}Keep:\n\
                 - what the user asked for, in the user's words, with every constraint and preference;\n\
                 - decisions and the reasons for them, what was found out, and exact names, paths, numbers, commands and error messages;\n\
                 - what is done, what is under way, what is blocked and what comes next.\n\
                 Leave out greetings, repetition, and steps that led nowhere, unless knowing so saves trying them again.\n\n{}",
                form(FILES)
            )),
            leaf_aggressive: Some(Template::known(&format!(
                "{ROLE}{SEGMENT}Keep only what will still matter much later:\n\
                 - the user's standing requests and constraints;\n\
                 - durable facts and decisions, with exact names, paths and numbers;\n\
                 - the present state of the work and its next step.\n\
                 Leave out reasons, alternatives, intermediate steps and anything that was superseded.\n\n{}",
                form(FILES)
            ))),
            condensed: Template::known(&format!(
                "{ROLE}You are given consecutive summaries of parts of that conversation, oldest first. Merge them into one that takes their place.\n\n\
                 Keep:\n\
                 - the user's requests and constraints that still hold;\n\
                 - decisions, and which earlier decision each one supersedes;\n\
                 - what is done, what is in progress, what is blocked;\n\
                 - exact names, paths, numbers and error messages that are still needed;\n\
                 - a short timeline with dates and times.\n\
                 Drop what was superseded, the detail of finished steps, and whatever two summaries both say.\n\n{{brevity}}{}",
                form("")
            )),
            trajectory: Some(Template::known(&format!(
                "{ROLE}You are given consecutive summaries that were themselves made of summaries, oldest first. Merge them into one that tells the course of the work.\n\n\
                 Keep:\n\
                 - the goals, and how they changed, with dates;\n\
                 - the decisions that shape what exists now, and the constraints that still hold;\n\
                 - what was finished and where it can be found; what is open.\n\
                 Drop single steps, passing states, and detail that only mattered at the time.\n\n{{brevity}}{}",
                form("")
            ))),
            update: None,
            turn_prefix: None,
            user: Template::known(USER),
            brevity: "An earlier attempt was too long. Halve it: keep requests, decisions and the present state, and give up the timeline and all explanation.\n\n".to_owned(),
            answer: AnswerFormat::Plain,
            clip: Clip::default(),
        }
    }

    /// Returns prompts for a handoff to a colleague who continues the work. They ask for seven sections: goal,
    /// progress, key decisions, files changed, current state, blockers, next steps.
    pub fn handoff_sections() -> Self {
        let sections = "\
# Goal\nWhat the user wants in the end, with every constraint.\n\
# Progress\nWhat is finished and how it was checked.\n\
# Key Decisions\nEach decision with its reason, and what it replaced.\n\
# Files Changed\nOne line a file: its path, what was done to it, why it matters.\n\
# Current State\nWhat works, what does not, what is half done at this moment.\n\
# Blockers and Gotchas\nWhat stands in the way, what surprised, what must not be tried again.\n\
# Next Steps\nIn order, each small enough to begin with.\n\n";
        let form = format!("{{brevity}}Form:\n{SECTIONS}{{length}}\n{{data_rule}}");
        Self {
            id: "anna@1".to_owned(),
            leaf: Template::known(&format!(
                "{ROLE}Write the handoff to the colleague who continues from here. Give exact names, paths, numbers, commands and error messages.\n\n{sections}{form}"
            )),
            condensed: Template::known(&format!(
                "{ROLE}You are given consecutive handoffs, oldest first. Merge them into one: a later one overrules an earlier one, and what is settled needs no story.\n\n{sections}{form}"
            )),
            brevity: HALVE.to_owned(),
            leaf_aggressive: None,
            trajectory: None,
            ..Self::standard()
        }
    }

    /// Returns prompts for a checkpoint of six sections, with separate prompts for the update of a checkpoint by later
    /// messages and for the beginning of a turn.
    pub fn checkpoint() -> Self {
        let sections = "\
## Goal\nWhat the user is trying to achieve; several goals where there are several.\n\
## Constraints & Preferences\nWhat the user demanded or ruled out, in the user's words.\n\
## Progress\n### Done\nFinished work.\n### In Progress\nWork under way.\n### Blocked\nWhat is stuck, and on what.\n\
## Key Decisions\nEach with its reason in a few words.\n\
## Next Steps\nIn order.\n\
## Critical Context\nData, references and exact error messages that are needed to go on.\n\n";
        let form = format!(
            "{{brevity}}Form:\n{SECTIONS}- Paths, names and error messages to the letter.\n{{length}}\n{{data_rule}}"
        );
        let role = "You write summaries of conversations between a user and a coding assistant. You never continue the conversation and answer nothing that is asked in it.\n\n";
        Self {
            id: "pi@1".to_owned(),
            leaf: Template::known(&format!(
                "{role}Write a checkpoint from which another model can go on with the work.\n\n{sections}{form}"
            )),
            condensed: Template::known(&format!(
                "{role}You are given consecutive checkpoints, oldest first. Write the one that takes their place.\n\n{sections}{form}"
            )),
            update: Some(Template::known(&format!(
                "{role}You are given a checkpoint, <previous_summary>, and the messages that came after it. Bring the checkpoint up to date:\n\
                 - keep what it says unless the messages overrule it;\n\
                 - add new goals, constraints, decisions and facts;\n\
                 - move what was finished meanwhile to Done, and take what was unblocked out of Blocked;\n\
                 - put Next Steps in the order that holds now, and drop what no longer matters.\n\n{sections}{form}"
            ))),
            turn_prefix: Some(Template::known(&format!(
                "{role}You are given the beginning of one turn; the rest of the turn stays in view behind your summary. Tell what is needed to understand the rest.\n\n\
                 ## Original Request\nWhat the user asked for in this turn.\n\
                 ## Early Progress\nDecisions and work in the beginning.\n\
                 ## Context for Suffix\nWhat the rest of the turn builds on.\n\n{form}"
            ))),
            brevity: HALVE.to_owned(),
            leaf_aggressive: None,
            trajectory: None,
            ..Self::standard()
        }
    }

    /// Returns prompts that ask for notes and then a summary of nine numbered sections. The notes are removed from the
    /// answer.
    pub fn numbered_sections() -> Self {
        let sections = "\
1. Primary Request and Intent: all that the user asked for, in full.\n\
2. Key Technical Concepts: technologies and ideas that were discussed.\n\
3. Files and Code Sections: files that were created, changed, deleted or read, why each matters, and the code that is needed to go on.\n\
4. Errors and Fixes: each error, how it was mended, what the user said to it.\n\
5. Problem Solving: what was solved, and what is still being looked into.\n\
6. All User Messages: every message of the user's that is not a tool's result.\n\
7. Pending Tasks: what is still to be done; items of a task list word for word.\n\
8. Current Work: what was being done last, with names of files and code.\n\
9. Optional Next Step: only what follows from the last request, with a quotation that shows it.\n\n";
        let form = "{brevity}Form:\n\
             - First think between <analysis> and </analysis>: go through the conversation in order, and check that nothing that was asked, decided or broken is missing. This part is thrown away.\n\
             - Then write the numbered sections between <summary> and </summary>, in the language of the conversation.\n\
             - Text only: call no tool.\n{length}\n{data_rule}";
        Self {
            id: "numbered-sections@1".to_owned(),
            leaf: Template::known(&format!(
                "{ROLE}Summarise it so that the work can go on without it.\n\n{sections}{form}"
            )),
            condensed: Template::known(&format!(
                "{ROLE}You are given consecutive summaries of it, oldest first. Merge them into one that takes their place.\n\n{sections}{form}"
            )),
            brevity: HALVE.to_owned(),
            leaf_aggressive: None,
            trajectory: None,
            answer: AnswerFormat::Tagged,
            ..Self::standard()
        }
    }

    /// Returns every set of this crate, the standard one first.
    pub(super) fn all() -> [Self; 4] {
        [
            Self::standard(),
            Self::handoff_sections(),
            Self::checkpoint(),
            Self::numbered_sections(),
        ]
    }
}
