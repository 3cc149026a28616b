//! Prepares messages so that their calls and results pair as providers require.

use std::borrow::Cow;

use memory_model::Message;
use turn_map::{apply, check_anthropic, check_openai, sanitize};

use crate::unknown::{is_readable, readable};

/// Messages without notes. Each call is followed by its result, and images and files have parts of their kind.
pub(crate) struct Prepared<'a>(Vec<Cow<'a, Message>>);

impl<'a> Prepared<'a> {
    pub(crate) fn new(messages: &'a [Message]) -> Self {
        let messages: Vec<Cow<'a, Message>> = messages
            .iter()
            .filter(|one| !is_note(one))
            .map(|message| match is_readable(message) {
                true => Cow::Borrowed(message),
                false => Cow::Owned(readable(message)),
            })
            .collect();
        let views: Vec<&Message> = messages.iter().map(|message| &**message).collect();
        if check_openai(&views).is_empty() && check_anthropic(&views).is_empty() {
            return Self(messages);
        }
        let edits = sanitize(&views, "[no result]").edits;
        let messages = messages.into_iter().map(Cow::into_owned).collect();
        Self(
            apply(messages, &edits)
                .into_iter()
                .map(Cow::Owned)
                .collect(),
        )
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Message> {
        self.0.iter().map(|message| &**message)
    }
}

fn is_note(message: &Message) -> bool {
    memory_model::MessageView::is_note(message)
}

/// Returns a tool's name in the form that providers accept: `^[a-zA-Z0-9_-]{1,64}$`.
pub(crate) fn wire_name(name: &str) -> String {
    let accepted = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    let name: String = name.chars().take(64).map(accepted).collect();
    match name.is_empty() {
        true => "_".to_owned(),
        false => name,
    }
}
