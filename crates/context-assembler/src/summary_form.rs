//! The messages that other engines write a summary as.

use memory_model::{Accounting, Part, Role};
use serde::{Deserialize, Serialize};

use crate::context::{Context, ContextMessage, MessageOrigin};

/// Words that begin the summary in anna.
const ANNA_MARK: &str = "[Previous conversation summary]";
/// Words that begin the summary in koda.
const KODA_MARK: &str = "[Compacted conversation summary]";
/// The answer to a summary in anna's document: any words will do.
const REPLY: &str = "Understood. I go on from there.";
/// What koda's agent says to itself, or its user to it, after a summary: any words will do.
const HINT: &str = "The conversation goes on from the summary above.";

/// The messages that stand for a summary in a context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SummaryForm {
    /// A message of the user with the summary in XML, with its id and what it covers. The default, and the only form that
    /// says how to expand it.
    #[default]
    Xml,
    /// As `Xml`, with the summaries that it was made from in a tag `children` in place of `parents`. anna's later
    /// generation.
    XmlChildren,
    /// A message of the user with the text, and an answer of the assistant. anna's document.
    UserAndReply,
    /// A mark of the user, and the text as the assistant's. anna's code; the model takes the summary for its own words.
    MarkAndAssistant,
    /// A system message with the text, and a hint of the assistant. koda.
    SystemAndHint,
    /// A system message with the text, and the hint as a message of the user.
    SystemAndUserHint,
    /// A message of the user with the text alone. pi, Operator-Use.
    User,
}

impl SummaryForm {
    fn messages(self, text: &str) -> Vec<(Role, String)> {
        let marked = |mark: &str| format!("{mark}\n\n{text}");
        match self {
            Self::Xml | Self::XmlChildren => Vec::new(),
            Self::UserAndReply => vec![
                (Role::User, marked(ANNA_MARK)),
                (Role::Assistant, REPLY.to_owned()),
            ],
            Self::MarkAndAssistant => vec![
                (Role::User, ANNA_MARK.to_owned()),
                (Role::Assistant, text.to_owned()),
            ],
            Self::SystemAndHint => vec![
                (Role::System, marked(KODA_MARK)),
                (Role::Assistant, HINT.to_owned()),
            ],
            Self::SystemAndUserHint => vec![
                (Role::System, marked(KODA_MARK)),
                (Role::User, HINT.to_owned()),
            ],
            Self::User => vec![(Role::User, text.to_owned())],
        }
    }
}

impl Context {
    /// Returns the context with its summaries in another form, counted anew; `None` where they cost more in that form than the
    /// budget allows.
    ///
    /// The text of a summary stays escaped: nothing in it can speak as somebody else. Only the forms in XML tell a model what to
    /// expand.
    pub fn with_summary_form(
        mut self,
        form: SummaryForm,
        accounting: &dyn Accounting,
    ) -> Option<Self> {
        if form == SummaryForm::Xml {
            return Some(self);
        }
        let mut messages = Vec::with_capacity(self.messages.len());
        for mut message in std::mem::take(&mut self.messages) {
            if form == SummaryForm::XmlChildren {
                name_children(&mut message);
                message.tokens = accounting.parts(message.role, &message.parts);
                messages.push(message);
                continue;
            }
            match summary_text(&message) {
                Some(text) => {
                    messages.extend(form.messages(text).into_iter().map(|(role, text)| {
                        let parts = vec![Part::text(text)];
                        let tokens = accounting.parts(role, &parts);
                        let mut written = ContextMessage::new(role, message.source.clone(), parts);
                        written.tokens = tokens;
                        written
                    }))
                }
                None => messages.push(message),
            }
        }
        let before = self.tokens;
        self.tokens = messages
            .iter()
            .map(|message| accounting.parts(message.role, &message.parts))
            .fold(0, u64::saturating_add);
        self.messages = messages;
        let grew = self.tokens.saturating_sub(before);
        let left = self
            .receipt
            .limit
            .saturating_sub(before + self.receipt.tools_tokens);
        (grew <= left).then_some(self)
    }
}

/// Gives the list of a summary's sources its other name. Text cannot look like the tag: it stands behind the list.
fn name_children(message: &mut ContextMessage) {
    let (MessageOrigin::Summary { .. }, [Part::Text { text }]) =
        (&message.source, &mut *message.parts)
    else {
        return;
    };
    let list = text.split_once("<parents>\n").and_then(|(head, rest)| {
        let (list, rest) = rest.split_once("</parents>\n")?;
        // Nothing but the opening tag stands before the list.
        (head.lines().count() == 1).then(|| format!("{head}<children>\n{list}</children>\n{rest}"))
    });
    if let Some(renamed) = list {
        *text = renamed;
    }
}

/// The text of a summary in XML, between its tags.
fn summary_text(message: &ContextMessage) -> Option<&str> {
    let (MessageOrigin::Summary { .. }, [Part::Text { text }]) = (&message.source, &*message.parts)
    else {
        return None;
    };
    let inside = match text.split_once("<content>\n") {
        Some((_, inside)) => inside.rsplit_once("</content>")?.0,
        None => text.split_once(">\n")?.1.rsplit_once("\n</summary>")?.0,
    };
    Some(inside.trim_end_matches('\n'))
}
