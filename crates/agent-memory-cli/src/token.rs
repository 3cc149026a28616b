//! The access token that clients of the HTTP server send.

use agent_memory::retrieval::mcp::AccessToken;

use crate::error::{Failure, Kind};
use crate::output::note;

/// Name of the environment variable with a token. There is no option for it, because other users of the machine can
/// read the command line.
const VARIABLE: &str = "AGENT_MEMORY_TOKEN";

/// Returns the token from the environment. If there is none, makes a new token and prints on stderr how to send it.
pub(crate) fn access_token() -> Result<AccessToken, Failure> {
    if let Some(given) = std::env::var_os(VARIABLE).filter(|given| !given.is_empty()) {
        let token = given.into_string().ok().and_then(AccessToken::new);
        let token = token.ok_or_else(|| {
            let text = format!("the token in {VARIABLE} is too short, or no header can carry it");
            Failure::new(Kind::Usage, text).hint(
                "give at least 16 letters, digits and signs, or leave it out for a random one",
            )
        })?;
        note(&format!(
            "clients send the token in {VARIABLE} as: Authorization: Bearer TOKEN"
        ));
        return Ok(token);
    }
    let bytes = random_bytes()
        .map_err(|failure| failure.hint(format!("set {VARIABLE} to a token of your own")))?;
    let token = AccessToken::from_random(bytes);
    note(&format!(
        "clients send this header, new with each start unless {VARIABLE} is set: Authorization: Bearer {}",
        token.as_str()
    ));
    Ok(token)
}

/// Returns random bytes for a secret.
pub(crate) fn random_bytes() -> Result<[u8; 32], Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        let text = format!("the system gives no random bytes for a secret ({error})");
        Failure::new(Kind::Other, text).hint("try again")
    })?;
    Ok(bytes)
}
