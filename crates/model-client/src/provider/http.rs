//! Turns failed HTTP requests of any provider into failures.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde_json::Value;

use super::key::Secrets;
use crate::{Failure, FailureKind};

/// Maximum length of a server's message in an error, in characters.
const SHOWN: usize = 300;

/// Returns the wait that the provider's headers request: `retry-after-ms`, or `retry-after` in seconds or as a date. A
/// date is compared with the answer's `date` header, so that no clock is needed.
pub(super) fn retry_after<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<Duration> {
    let millis = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(millis) = millis {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(header("date")?.trim()).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// Returns the failure for an answer with a status other than success.
pub(super) fn refused(
    whom: &str,
    status: u16,
    wait: Option<Duration>,
    body: &str,
    secrets: &Secrets,
) -> Failure {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let kind = kind(status, &parsed, body);
    let said = said(&parsed).unwrap_or(body);
    let said = shown(&secrets.redact(said));
    let what = match said.as_str() {
        "" => format!("{whom} answered with status {status}"),
        said => format!("{whom} answered with status {status} ({said})"),
    };
    Failure::new(kind, what).with_retry_after(wait.or_else(|| retry_delay(&parsed)))
}

fn kind(status: u16, parsed: &Value, body: &str) -> FailureKind {
    let error = error_object(parsed);
    let code = ["code", "type", "status"].map(|name| error.get(name).and_then(Value::as_str));
    let is = |name: &str| code.contains(&Some(name));
    let lower = body.to_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|text| lower.contains(text));
    let kind = FailureKind::of_status(status);
    match kind {
        FailureKind::BadRequest | FailureKind::RateLimited
            if is("insufficient_quota")
                || is("billing_error")
                || says(&["credit balance is too low"]) =>
        {
            FailureKind::Quota
        }
        FailureKind::BadRequest
            if is("authentication_error") || says(&["api_key_invalid", "api key not valid"]) =>
        {
            FailureKind::Auth
        }
        FailureKind::BadRequest
            if is("context_length_exceeded")
                || says(&[
                    "maximum context length",
                    "prompt is too long",
                    "exceeds the maximum number of tokens",
                    "exceed context limit",
                ]) =>
        {
            FailureKind::TooLong
        }
        kind => kind,
    }
}

/// Returns whether a content filter, such as Azure's, rejected a request. `body` is the body of the error.
pub(super) fn filtered(body: &str) -> bool {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let code = error_object(&parsed).get("code").and_then(Value::as_str);
    code == Some("content_filter")
}

/// Returns a number of tokens; `None` for an invalid value. Providers may send null or fractions.
#[cfg(feature = "openai-compatible")]
pub(super) fn tokens(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        // A larger number cannot be correct for any model.
        (0.0..=1e15).contains(&number).then_some(number as u64)
    })
}

/// Builds a client for servers at `url`. The client follows no redirect, and uses no proxy for addresses of this
/// machine, so that a key is only sent to the intended server. The error is a text for people.
pub(super) fn client(
    url: Option<&reqwest::Url>,
    timeout: Option<Duration>,
) -> Result<reqwest::Client, String> {
    let tls = tls().map_err(|error| error.to_string())?;
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(Duration::from_secs(10))
        .redirect(reqwest::redirect::Policy::none());
    if let Some(timeout) = timeout {
        builder = builder.timeout(timeout);
    }
    if url.is_some_and(is_loopback) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| error.to_string())
}

/// Returns a TLS configuration with the system's certificates. It sets the cryptography provider explicitly, so that it
/// neither needs nor changes the program's default provider.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions()?;
    Ok(config.with_platform_verifier()?.with_no_client_auth())
}

/// Returns an address without user info, query and fragment.
pub(super) fn without_secrets(url: &reqwest::Url) -> String {
    let mut shown = url.clone();
    // These calls fail only if the URL has no host, and then it has no user info either.
    let _ = (shown.set_username(""), shown.set_password(None));
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

/// Returns a provider's URL without user info, query and fragment, so that the URL can be shown or logged. Returns
/// `None` if `url` is not a URL with a host.
pub fn public_url(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url.trim()).ok()?;
    url.has_host().then(|| without_secrets(&url))
}

/// Returns whether an address belongs to this machine, such as `localhost` or `127.0.0.1`.
fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let address = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = address.parse::<std::net::IpAddr>() {
        let mapped = match address {
            std::net::IpAddr::V6(v6) => v6.to_ipv4_mapped().map(std::net::IpAddr::V4),
            std::net::IpAddr::V4(_) => None,
        };
        return mapped.unwrap_or(address).is_loopback();
    }
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns the error object of an answer. Gemini sometimes sends the object in a list.
fn error_object(parsed: &Value) -> &Value {
    let parsed = parsed.get(0).unwrap_or(parsed);
    parsed.get("error").unwrap_or(parsed)
}

/// Returns the server's error message, in the forms of OpenAI, Anthropic, Gemini and Ollama.
pub(super) fn said(parsed: &Value) -> Option<&str> {
    let error = error_object(parsed);
    error
        .as_str()
        .or_else(|| error.get("message").and_then(Value::as_str))
}

/// Returns the wait that Gemini requests in `retryDelay` of `google.rpc.RetryInfo`, such as `"34.5s"`.
fn retry_delay(parsed: &Value) -> Option<Duration> {
    let details = error_object(parsed).get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?;
    let seconds = delay.as_str()?.strip_suffix('s')?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns a text as one line. A line of more than [`SHOWN`] characters is cut, and ends with `…`.
pub(super) fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(headers: &[(&str, &'static str)]) -> Option<Duration> {
        retry_after(|name| {
            let found = headers.iter().find(|(header, _)| *header == name);
            found.map(|(_, value)| *value)
        })
    }

    #[test]
    fn waits_are_read_in_every_form() {
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(wait(&[("retry-after", "7")]), seconds(7));
        let half = Some(Duration::from_millis(1500));
        assert_eq!(wait(&[("retry-after", "1.5")]), half);
        let both = [("retry-after", "9"), ("retry-after-ms", "1500")];
        assert_eq!(wait(&both), half);
        let dates = [
            ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ];
        assert_eq!(wait(&dates), seconds(60));
        assert_eq!(wait(&dates[..1]), None);
        for odd in ["soon", "-1", "NaN", "inf", ""] {
            assert_eq!(wait(&[("retry-after", odd)]), None, "{odd}");
        }
    }

    #[test]
    fn a_status_is_read_with_its_body() {
        use FailureKind::{
            Auth, BadAnswer, BadRequest, NotFound, Overloaded, Quota, RateLimited, TimedOut,
            TooLong,
        };
        let cases = [
            (
                401,
                r#"{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Auth,
            ),
            (403, "", Auth),
            (404, r#"{"error":"model 'x' not found"}"#, NotFound),
            (408, "", TimedOut),
            (
                400,
                r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
                TooLong,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
                TooLong,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
                TooLong,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
                Auth,
            ),
            (
                400,
                r#"{"error":{"message":"Your credit balance is too low"}}"#,
                Quota,
            ),
            (400, "no JSON", BadRequest),
            (
                429,
                r#"{"error":{"message":"q","code":"insufficient_quota"}}"#,
                Quota,
            ),
            (429, r#"{"error":{"message":"slow down"}}"#, RateLimited),
            (500, "<html>", Overloaded),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
            ),
            (302, "", BadAnswer),
        ];
        for (status, body, expected) in cases {
            let failure = refused("the server", status, None, body, &Secrets::default());
            assert_eq!(failure.kind(), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_servers_text_is_shown_on_one_line_without_the_key() {
        let mut secrets = Secrets::default();
        secrets.add_key(&crate::ApiKey::new("sk-secret"));
        let body = format!(
            r#"{{"error":{{"message":"key sk-secret\n is\t wrong {}"}}}}"#,
            "x".repeat(400)
        );
        let text = refused("the server", 401, None, &body, &secrets).to_string();
        assert!(
            text.starts_with("the server answered with status 401 (key [redacted] is wrong xxx")
        );
        assert!(text.ends_with("…): check the key"), "{text}");
        assert!(text.len() < 400);
        let gemini = r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;
        let failure = refused("g", 429, None, gemini, &secrets);
        assert_eq!(failure.retry_after(), Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn addresses_of_this_machine_are_known() {
        let is = |url: &str| is_loopback(&reqwest::Url::parse(url).unwrap());
        for own in [
            "http://localhost:1/v1",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://127.0.0.1/",
            "http://127.9.9.9/",
            "http://2130706433/",
            "http://[::1]:8000/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(is(own), "{own}");
        }
        for other in [
            "http://example.org/",
            "http://localhost.example.org/",
            "http://10.0.0.1/",
            "http://[::2]/",
            "http://128.0.0.1/",
        ] {
            assert!(!is(other), "{other}");
        }
    }
}
