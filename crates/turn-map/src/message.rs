use token_estimate::Role;

/// What this crate has to know of a message. Implement it for your own type; nothing is copied.
///
/// A message may be a whole message or one line of one: where a format writes a model's response
/// over several lines, give those lines the same [`response`](Self::response).
pub trait TurnMessage {
    /// Who speaks.
    fn role(&self) -> Role;

    /// Hands over the id of every tool call in the message, in order.
    fn calls(&self, visit: &mut dyn FnMut(&str));

    /// Hands over the call id of every tool result in the message, in order.
    fn results(&self, visit: &mut dyn FnMut(&str));

    /// The index of the turn, where the format numbers turns.
    fn turn(&self) -> Option<u64> {
        None
    }

    /// The id of the model response that the message is a line of. Without one, each assistant
    /// message is a response by itself.
    fn response(&self) -> Option<&str> {
        None
    }

    /// Whether this is only a remark in the log (a model change, a label) that no model is sent.
    /// Its calls and results are not looked at, and it is not counted as a message.
    fn is_note(&self) -> bool {
        false
    }
}

impl<M: TurnMessage + ?Sized> TurnMessage for &M {
    fn role(&self) -> Role {
        (**self).role()
    }

    fn calls(&self, visit: &mut dyn FnMut(&str)) {
        (**self).calls(visit);
    }

    fn results(&self, visit: &mut dyn FnMut(&str)) {
        (**self).results(visit);
    }

    fn turn(&self) -> Option<u64> {
        (**self).turn()
    }

    fn response(&self) -> Option<&str> {
        (**self).response()
    }

    fn is_note(&self) -> bool {
        (**self).is_note()
    }
}

pub(crate) fn has_calls(message: &impl TurnMessage) -> bool {
    let mut any = false;
    message.calls(&mut |_| any = true);
    any
}

pub(crate) fn has_results(message: &impl TurnMessage) -> bool {
    let mut any = false;
    message.results(&mut |_| any = true);
    any
}

/// Whether a person begins to speak here: a user's message that carries no tool result.
pub(crate) fn user_speaks(message: &impl TurnMessage) -> bool {
    message.role() == Role::User && !message.is_note() && !has_results(message)
}
