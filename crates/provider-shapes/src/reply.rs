//! Reads whole responses of providers.

use memory_model::{Message, Reply};
use serde_json::Value;
use token_estimate::Usage;

use crate::error::Error;
use crate::fields::{invalid, text};

/// Returns the field of a response with its messages.
///
/// # Errors
/// `Invalid` if the response lacks the field. The text has the response's error message, if there is one.
pub(crate) fn content<'a>(response: &'a Value, pointer: &str) -> Result<&'a Value, Error> {
    response.pointer(pointer).ok_or_else(|| {
        let place = pointer.trim_start_matches('/').replace('/', ".");
        match response.pointer("/error/message").and_then(Value::as_str) {
            Some(message) => invalid(
                "error",
                format!("the server answered with an error: {message}"),
            ),
            None => invalid(&place, "it is missing: pass the whole response"),
        }
    })
}

/// Returns a reply with the response's id and model.
pub(crate) fn reply(
    response: &Value,
    (id, model): (&str, &str),
    mut messages: Vec<Message>,
    usage: Option<Usage>,
) -> Reply {
    let field = |name| response.as_object().and_then(|object| text(object, name));
    for message in &mut messages {
        message.response = field(id).map(str::to_owned);
    }
    let mut reply = Reply::from(messages);
    reply.model = field(model).map(str::to_owned);
    reply.usage = usage;
    reply
}
