//! `message-formats` reads a transcript of an agent, and `provider-shapes` converts it into a request to a provider.

use message_formats::{ReadOptions, read};
use provider_shapes::Provider;

pub(crate) fn run() -> crate::Result<String> {
    let source = "{\"role\":\"user\",\"content\":\"Deploy only after the tests are green.\"}\n";
    let transcript = read(source.as_bytes(), &ReadOptions::default())?;
    let messages = transcript
        .sessions
        .into_iter()
        .flat_map(|session| session.messages);
    let request = Provider::Gemini.request(&messages.collect::<Vec<_>>());
    assert_eq!(request["contents"][0]["role"], "user");
    Ok(format!(
        "read as {}, sent as {}",
        transcript.format,
        serde_json::to_string(&request)?
    ))
}
