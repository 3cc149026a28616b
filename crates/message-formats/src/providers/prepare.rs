//! Messages whose calls and results pair as providers demand.

use memory_model::Message;
use turn_map::{SanitizePolicy, apply, check_anthropic, check_openai, sanitize};

/// Messages without notes, in which each call is followed by its result.
pub(super) enum Prepared<'a> {
    /// They paired already.
    AsTheyAre(Vec<&'a Message>),
    Repaired(Vec<Message>),
}

impl<'a> Prepared<'a> {
    pub(super) fn new(messages: &'a [Message]) -> Self {
        let messages: Vec<&Message> = messages.iter().filter(|one| !is_note(one)).collect();
        if check_openai(&messages).is_empty() && check_anthropic(&messages).is_empty() {
            return Self::AsTheyAre(messages);
        }
        let edits = sanitize(&messages, &SanitizePolicy::default()).edits;
        Self::Repaired(apply(messages.into_iter().cloned().collect(), &edits))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Message> {
        let (borrowed, owned) = match self {
            Self::AsTheyAre(messages) => (messages.as_slice(), [].as_slice()),
            Self::Repaired(messages) => ([].as_slice(), messages.as_slice()),
        };
        borrowed.iter().copied().chain(owned)
    }
}

fn is_note(message: &Message) -> bool {
    memory_model::MessageView::is_note(message)
}

/// Returns a tool's name as providers accept it: `^[a-zA-Z0-9_-]{1,64}$`.
pub(super) fn wire_name(name: &str) -> String {
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
