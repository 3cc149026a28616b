//! The arguments of each tool as a type: its declaration, and how it is read from a model's JSON.

use memory_model::{Role, Seq, SeqRange, SummaryId};
use memory_search::{SearchMode, SearchScope};

use crate::arguments::{Arguments, choices};
use crate::error::{Error, Result};
use crate::expand::{DEFAULT_TOKEN_CAP, ExpandArgs};
use crate::files::{ACTIONS, FilesArgs};
use crate::grep::{DEFAULT_LIMIT, GrepArgs, ORDERS};
use crate::recall::{DEFAULT_BUDGET, RecallArgs};
use crate::retrieval::{DESCRIBE, EXPAND, FILES, GREP, RECALL};
use crate::schema::{Parameter, Tool};

/// A type of arguments: the tool that takes them, and how they are read from JSON.
pub trait ToolArguments: Sized {
    /// Returns the tool.
    fn tool() -> Tool;

    /// Reads the arguments of a call from the JSON text that a model wrote.
    ///
    /// # Errors
    /// `Invalid`, with a text that a model can act on: what is no JSON object, an argument that the tool does
    /// not have, with the nearest name, and a value of a wrong type.
    fn from_json(arguments: &str) -> Result<Self>;
}

/// Arguments of `describe`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribeArgs {
    /// The summary's id.
    pub summary_id: SummaryId,
}

impl DescribeArgs {
    /// Arguments for a summary.
    pub fn new(summary_id: impl Into<SummaryId>) -> Self {
        Self {
            summary_id: summary_id.into(),
        }
    }
}

const SCOPES: [(&str, SearchScope); 3] = [
    ("messages", SearchScope::Messages),
    ("summaries", SearchScope::Summaries),
    ("both", SearchScope::Both),
];

const MODES: [(&str, SearchMode); 5] = [
    ("auto", SearchMode::Auto),
    ("literal", SearchMode::Literal),
    ("regex", SearchMode::Regex),
    ("words", SearchMode::Words),
    ("prose", SearchMode::Prose),
];

const ROLES: [(&str, Role); 4] = [
    ("system", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
];

/// Reads a range from its two ends; one that is not given is open.
fn range(given: &mut Arguments) -> Result<Option<SeqRange>> {
    let first = given.whole("first", "12")?;
    let last = given.whole("last", "40")?;
    if first.is_none() && last.is_none() {
        return Ok(None);
    }
    let seq = |number: Option<u64>, open: u32| {
        Seq(number.map_or(open, |number| u32::try_from(number).unwrap_or(u32::MAX)))
    };
    let (first, last) = (seq(first, 1), seq(last, u32::MAX));
    let range = SeqRange::new(Seq(first.0.max(1)), last);
    range.map(Some).ok_or_else(|| {
        Error::invalid(format!(
            "first is {first} and last is {last}: give the smaller number first; the first message is 1"
        ))
    })
}

fn limit(given: &mut Arguments) -> Result<usize> {
    let limit = given.whole("limit", "20")?;
    Ok(limit.map_or(DEFAULT_LIMIT, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    }))
}

const CURSOR: &str =
    "The cursor of an earlier answer, to go on after it; the other arguments stay the same.";

impl ToolArguments for GrepArgs {
    fn tool() -> Tool {
        Tool::new(
            GREP,
            "Search the conversation",
            "Search the whole conversation, also where it was summarized. By default for the exact phrase, \
             then for all of its words, then for any of them; the answer says which. Answers with numbered \
             hits: message:SEQ or a summary id (read more of both with memory_expand), and a snippet.",
            [
                Parameter::text(
                    "pattern",
                    "The text to find: a phrase, words, a question, or a regular expression (mode regex).",
                )
                .required(),
                Parameter::one_of(
                    "mode",
                    choices(&MODES),
                    "How the pattern is read; auto if not given: literal, then words (all of them), then \
                     prose (any of them, best first).",
                ),
                Parameter::flag(
                    "smart_case",
                    "Whether upper case in the pattern counts; false if not given. For literal and regex.",
                ),
                Parameter::one_of(
                    "scope",
                    choices(&SCOPES),
                    "Where to look; both if not given.",
                ),
                Parameter::some_of(
                    "roles",
                    choices(&ROLES),
                    "Only messages of these roles; all if not given.",
                ),
                Parameter::text(
                    "tool",
                    "Only messages that call this tool or hold its result; all if not given.",
                ),
                Parameter::flag(
                    "echoes",
                    "Whether calls of these memory tools and their results are searched too; false if not given.",
                ),
                Parameter::whole(
                    "around",
                    "Number of messages to show before and after each hit; 0 if not given, at most 5.",
                ),
                Parameter::whole("first", "Only messages from this position on."),
                Parameter::whole("last", "Only messages up to this position, inclusive."),
                Parameter::text("since", "Only from this time on, such as 2026-02-08T09:16:00Z."),
                Parameter::text("until", "Only before this time."),
                Parameter::one_of(
                    "order",
                    choices(&ORDERS),
                    "Order of the hits; relevance if not given.",
                ),
                Parameter::whole("limit", "Maximum number of hits; 20 if not given."),
                Parameter::text("cursor", CURSOR),
            ],
        )
    }

    fn from_json(arguments: &str) -> Result<Self> {
        let mut given = Arguments::read(arguments, &Self::tool())?;
        let pattern = given.text("pattern")?.unwrap_or_default();
        let mut args = Self::new(pattern).with_limit(limit(&mut given)?);
        args.mode = given.one_of("mode", &MODES)?.unwrap_or(args.mode);
        args.smart_case = given.flag("smart_case")?.unwrap_or(args.smart_case);
        args.scope = given.one_of("scope", &SCOPES)?.unwrap_or(args.scope);
        args.roles = given.some_of("roles", &ROLES)?;
        args.tools = given.filled("tool")?.into_iter().collect();
        args.echoes = given.flag("echoes")?.unwrap_or(args.echoes);
        let around = given.whole("around", "2")?.unwrap_or_default();
        args.around = usize::try_from(around).unwrap_or(usize::MAX);
        args.corrections = true;
        args.range = range(&mut given)?;
        args.since = given.time("since")?;
        args.until = given.time("until")?;
        args.order = given.one_of("order", &ORDERS)?.unwrap_or(args.order);
        args.cursor = given.filled("cursor")?;
        Ok(args)
    }
}

impl ToolArguments for DescribeArgs {
    fn tool() -> Tool {
        Tool::new(
            DESCRIBE,
            "Describe a summary",
            "Inspect a summary: its full text, the messages it covers, the summaries that contain it and those \
             it was made from.",
            [Parameter::text(
                "summary_id",
                "The summary's id, such as sum_0123456789abcdef.",
            )
            .required()],
        )
    }

    fn from_json(arguments: &str) -> Result<Self> {
        let mut given = Arguments::read(arguments, &Self::tool())?;
        Ok(Self::new(given.text("summary_id")?.unwrap_or_default()))
    }
}

impl ToolArguments for ExpandArgs {
    fn tool() -> Tool {
        Tool::new(
            EXPAND,
            "Read what a summary stands for",
            "Read what a summary was made from, word for word: the messages of a leaf summary, the summaries \
             inside a condensed one. Also reads messages by their position.",
            [
                Parameter::text(
                    "summary_id",
                    "A summary's id such as sum_0123456789abcdef, or message:12, or messages:12-40.",
                )
                .required(),
                Parameter::whole("token_cap", "Maximum tokens of content; 4000 if not given."),
                Parameter::text("cursor", CURSOR),
            ],
        )
    }

    fn from_json(arguments: &str) -> Result<Self> {
        let mut given = Arguments::read(arguments, &Self::tool())?;
        let mut args = Self::new(given.text("summary_id")?.unwrap_or_default());
        args.token_cap = given
            .whole("token_cap", "4000")?
            .unwrap_or(DEFAULT_TOKEN_CAP);
        args.cursor = given.filled("cursor")?;
        Ok(args)
    }
}

impl ToolArguments for RecallArgs {
    fn tool() -> Tool {
        Tool::new(
            RECALL,
            "Recall what was said",
            "Recall what was said about something: the passages of the whole conversation that answer a question \
             best, word for word and with their positions, within a number of tokens. Or one message by its turn.",
            [
                Parameter::text(
                    "query",
                    "What to recall: a question or a few words. Give this or turn.",
                ),
                Parameter::whole(
                    "turn",
                    "The position of one message to recall. Give this or query.",
                ),
                Parameter::whole(
                    "budget",
                    "Maximum tokens of all passages; 2000 if not given.",
                ),
                Parameter::text("cursor", CURSOR),
            ],
        )
    }

    fn from_json(arguments: &str) -> Result<Self> {
        let mut given = Arguments::read(arguments, &Self::tool())?;
        let turn = given.whole("turn", "12")?;
        Ok(Self {
            query: given.filled("query")?,
            turn: turn.map(|turn| Seq(u32::try_from(turn).unwrap_or(u32::MAX))),
            budget: given.whole("budget", "2000")?.unwrap_or(DEFAULT_BUDGET),
            cursor: given.filled("cursor")?,
        })
    }
}

impl ToolArguments for FilesArgs {
    fn tool() -> Tool {
        Tool::new(
            FILES,
            "Find uses of files and commands",
            "Find out who read or changed a file and how something was run, from the tool calls of the whole \
             conversation: positions, tools, paths, commands and outcomes, the last first. Without path and \
             command it lists all uses.",
            [
                Parameter::text(
                    "path",
                    "A file's path or the end of it, such as main.rs; a folder ends with /.",
                ),
                Parameter::text(
                    "command",
                    "Text that occurs in the command, such as cargo test.",
                ),
                Parameter::one_of(
                    "action",
                    choices(&ACTIONS),
                    "Only uses of this kind; all if not given.",
                ),
                Parameter::whole("limit", "Maximum number of uses; 20 if not given."),
                Parameter::text("cursor", CURSOR),
            ],
        )
    }

    fn from_json(arguments: &str) -> Result<Self> {
        let mut given = Arguments::read(arguments, &Self::tool())?;
        let mut args = Self::default().with_limit(limit(&mut given)?);
        args.path = given.filled("path")?;
        args.command = given.filled("command")?;
        args.action = given.one_of("action", &ACTIONS)?;
        args.cursor = given.filled("cursor")?;
        Ok(args)
    }
}
