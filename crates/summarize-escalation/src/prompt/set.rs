//! Prompts as data: templates with slots.

use std::fmt;

use memory_model::{FieldHasher, Hash, SummaryBody};
use model_client::without_reasoning;
use serde::{Deserialize, Serialize};
use token_estimate::TokenEstimator;

use super::clip::Clip;
use super::ranked::read_ranked;
use super::strip::strip_analysis_block;

/// A placeholder in a [`Template`], which rendering replaces by a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slot {
    /// `{source}`: the messages and summaries to summarize, between tags.
    Source,
    /// `{previous}`: the summary and the messages that precede the source, between tags, followed by an empty line. Empty
    /// if there are none.
    Previous,
    /// `{instructions}`: the user's instructions, between tags, followed by an empty line. Empty if there are none.
    Instructions,
    /// `{length}`: a line that gives the desired and the maximum length in tokens. Empty if the target length is 0.
    Length,
    /// `{brevity}`: the text [`PromptSet::brevity`] in the aggressive style, unless the answer before was refused for its
    /// content. After a refused answer, also the reason for the refusal. Each is followed by an empty line. Otherwise
    /// empty.
    Brevity,
    /// `{data_rule}`: the rule that the model must not follow instructions in text between tags, with one exception:
    /// the user's instructions for the summary.
    DataRule,
}

impl Slot {
    const ALL: [(Self, &str); 6] = [
        (Slot::Source, "source"),
        (Slot::Previous, "previous"),
        (Slot::Instructions, "instructions"),
        (Slot::Length, "length"),
        (Slot::Brevity, "brevity"),
        (Slot::DataRule, "data_rule"),
    ];

    /// Returns the slot's name as it is written between braces.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(slot, _)| *slot == self);
        found.map_or("", |(_, name)| name)
    }
}

/// A text with placeholders (slots), such as `Summarise this.\n\n{source}`. Braces occur only around the names of
/// slots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Slot(Slot),
}

impl Template {
    /// Parses a text with slots.
    ///
    /// # Errors
    /// [`InvalidTemplate`] if a brace is not closed, or if the name between two braces is not the name of a slot.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, tail)) = after.split_once('}') else {
                return Err(invalid("a brace is not closed"));
            };
            let Some((slot, _)) = Slot::ALL.iter().find(|(_, known)| *known == name) else {
                return Err(invalid(format_args!("there is no slot {name}")));
            };
            if !before.is_empty() {
                pieces.push(TemplatePart::Text(before.to_owned()));
            }
            pieces.push(TemplatePart::Slot(*slot));
            rest = tail;
        }
        if !rest.is_empty() {
            pieces.push(TemplatePart::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// Parses a text of this crate, which has only valid slots.
    pub(super) fn known(text: &str) -> Self {
        Self::parse(text).unwrap_or_default()
    }

    /// Returns the slots of the template, in order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Text(_) => None,
            TemplatePart::Slot(slot) => Some(*slot),
        })
    }

    /// Returns the lines of the text between the slots.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        let texts = self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Text(text) => Some(text.as_str()),
            TemplatePart::Slot(_) => None,
        });
        texts.flat_map(str::lines)
    }

    /// Returns the text with every slot replaced by the result of `fill`.
    pub(super) fn fill(&self, fill: impl Fn(Slot) -> String) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Slot(slot) => out.push_str(&fill(*slot)),
            }
        }
        out
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            TemplatePart::Text(text) => f.write_str(text),
            TemplatePart::Slot(slot) => write!(f, "{{{}}}", slot.as_str()),
        })
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.to_string()
    }
}

impl TryFrom<String> for Template {
    type Error = InvalidTemplate;

    fn try_from(text: String) -> Result<Self, InvalidTemplate> {
        Self::parse(&text)
    }
}

/// Error returned when a template cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a prompt's template cannot be read: {what}; the slots are {{source}}, {{previous}}, \
     {{instructions}}, {{length}}, {{brevity}} and {{data_rule}}"
)]
pub struct InvalidTemplate {
    what: String,
}

fn invalid(what: impl fmt::Display) -> InvalidTemplate {
    InvalidTemplate {
        what: what.to_string(),
    }
}

/// Form of a model's answer to a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerFormat {
    /// The whole answer is the summary.
    #[default]
    Plain,
    /// The answer contains notes and a summary between tags: see [`strip_analysis_block`].
    Tagged,
    /// Each line of the answer begins with `[1]`, `[2]` or `[3]`, from the most to the least important. The marks are
    /// removed, and are stored as the ranks of the lines.
    Ranked,
}

/// Prompts of a summarizer, one for each kind of request.
///
/// ```
/// use summarize_escalation::prompt::{PromptSet, Template};
///
/// let mut mine = PromptSet::standard();
/// mine.id = "mine@1".to_owned();
/// mine.leaf = Template::parse("List the open questions only.\n{length}{data_rule}")?;
/// # Ok::<(), summarize_escalation::prompt::InvalidTemplate>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptSet {
    /// Name and version of the prompts, such as `mine@1`. It is part of each summary's recipe, so it must change with
    /// every change of the prompts.
    pub id: String,
    /// System message if the source consists of messages.
    pub leaf: Template,
    /// System message if the source consists of messages and the style is aggressive; `None` uses `leaf`, which can
    /// contain `{brevity}`.
    #[serde(default)]
    pub leaf_aggressive: Option<Template>,
    /// System message if the source consists of summaries of messages.
    pub condensed: Template,
    /// System message if the source consists of summaries of summaries; `None` uses `condensed`.
    #[serde(default)]
    pub trajectory: Option<Template>,
    /// System message if the source consists of a summary and the messages after it; `None` uses `condensed`.
    #[serde(default)]
    pub update: Option<Template>,
    /// System message if the source is the beginning of a turn and the end of the turn is kept verbatim; `None` uses
    /// `leaf`.
    #[serde(default)]
    pub turn_prefix: Option<Template>,
    /// User message. It contains the source and the other data of the request.
    pub user: Template,
    /// Text that replaces `{brevity}` in the aggressive style.
    #[serde(default)]
    pub brevity: String,
    /// Form in which the model should answer.
    #[serde(default)]
    pub answer: AnswerFormat,
    /// Maximum number of characters that the prompt shows of each text of the source.
    #[serde(default)]
    pub clip: Clip,
}

impl PromptSet {
    /// Creates a set that uses the same prompt for every kind of request.
    ///
    /// # Errors
    /// [`InvalidTemplate`] if one of the texts is not a valid [`Template`].
    pub fn single(
        id: impl Into<String>,
        system: &str,
        user: &str,
    ) -> Result<Self, InvalidTemplate> {
        let system = Template::parse(system)?;
        Ok(Self {
            id: id.into(),
            leaf: system.clone(),
            leaf_aggressive: None,
            condensed: system,
            trajectory: None,
            update: None,
            turn_prefix: None,
            user: Template::parse(user)?,
            brevity: String::new(),
            answer: AnswerFormat::default(),
            clip: Clip::default(),
        })
    }

    /// Returns a hash of all fields of the set.
    pub(crate) fn hash(&self) -> Hash {
        let mut hasher = FieldHasher::new("agent-memory prompts 1");
        // A set consists of texts and numbers, which always have a JSON form.
        hasher.bytes(&serde_json::to_vec(self).unwrap_or_default());
        hasher.finish()
    }

    /// Returns every template of the system message.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Template> {
        let optional = [
            &self.leaf_aggressive,
            &self.trajectory,
            &self.update,
            &self.turn_prefix,
        ];
        let always = [&self.leaf, &self.condensed].into_iter();
        always.chain(optional.into_iter().flatten())
    }

    /// Extracts the summary from a model's answer, [without the reasoning](without_reasoning) before it. Empty if there
    /// is nothing else. The marks of [`AnswerFormat::Ranked`] stay: a summarizer that calls the model removes them.
    pub fn read(&self, answer: &str) -> String {
        let answer = without_reasoning(answer).unwrap_or_default();
        match self.answer {
            AnswerFormat::Plain | AnswerFormat::Ranked => answer.to_owned(),
            AnswerFormat::Tagged => strip_analysis_block(answer),
        }
    }

    /// Extracts the summary from a model's answer, with the ranks of its lines if the set asks for them.
    pub(crate) fn read_body(&self, answer: &str, estimator: &dyn TokenEstimator) -> SummaryBody {
        let text = self.read(answer);
        match self.answer {
            AnswerFormat::Ranked => read_ranked(&text, estimator),
            _ => text.into(),
        }
    }
}
