//! Turns failed HTTP requests of any provider into failures.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde_json::Value;

use super::key::Secrets;
use crate::overflow::overflow_numbers;
use crate::{Failure, FailureKind, is_context_overflow};

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

/// Returns the failure for an error of a server. `status` is `None` if the error came inside of an answer.
pub(super) fn failed(
    whom: &str,
    status: Option<u16>,
    wait: Option<Duration>,
    body: &str,
    secrets: &Secrets,
) -> Failure {
    let parsed: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let kind = match status.or_else(|| status_in(&parsed)) {
        Some(status) => kind(status, &parsed, body),
        None => FailureKind::BadAnswer,
    };
    let said = said(&parsed).unwrap_or(body);
    let said = shown(&secrets.redact(said));
    let how = status.map_or("an error".to_owned(), |status| format!("status {status}"));
    let what = match said.as_str() {
        "" => format!("{whom} answered with {how}"),
        said => format!("{whom} answered with {how} ({said})"),
    };
    let failure = Failure::new(kind, what).with_retry_after(wait.or_else(|| retry_delay(&parsed)));
    match kind {
        FailureKind::TooLong => {
            let (window, prompt) = overflow_numbers(body);
            failure.with_window(window, prompt)
        }
        _ => failure,
    }
}

/// Names of errors, with the status that the server answers with if it reports them before an answer.
const ERROR_NAMES: [(&str, u16); 19] = [
    ("invalid_request_error", 400),
    ("invalid_prompt", 400),
    ("exceed_context_size_error", 400),
    ("INVALID_ARGUMENT", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("insufficient_quota", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("timeout_error", 408),
    ("DEADLINE_EXCEEDED", 408),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("rate_limit_exceeded", 429),
    ("RESOURCE_EXHAUSTED", 429),
    ("server_error", 500),
    ("api_error", 500),
    ("overloaded_error", 529),
    ("UNAVAILABLE", 503),
];

/// Returns the status of an error inside of an answer: its number, or the one that its name has elsewhere.
fn status_in(parsed: &Value) -> Option<u16> {
    let error = error_object(parsed);
    let fields = ["code", "status", "type"].map(|name| error.get(name));
    let numbers = fields.iter().flatten().filter_map(|field| {
        let number = field.as_u64().or_else(|| field.as_str()?.parse().ok());
        u16::try_from(number?)
            .ok()
            .filter(|status| (400..600).contains(status))
    });
    let names = fields.iter().flatten().filter_map(|field| {
        let found = ERROR_NAMES
            .iter()
            .find(|(name, _)| field.as_str() == Some(name));
        found.map(|(_, status)| *status)
    });
    numbers.chain(names).next()
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
        FailureKind::BadRequest if is_context_overflow(status, body) => FailureKind::TooLong,
        FailureKind::Overloaded
            if says(&["exceed_context_size", "exceeds the available context size"]) =>
        {
            FailureKind::TooLong
        }
        // llama.cpp, for every path while it reads the weights.
        FailureKind::Overloaded if status == 503 && says(&["loading model"]) => {
            FailureKind::Loading
        }
        // llama.cpp, for what its model cannot do, such as reading a picture.
        FailureKind::Overloaded
            if is("not_supported_error") || says(&["input is not supported", "mmproj"]) =>
        {
            FailureKind::BadRequest
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

/// Returns whether a provider's URL is an address of this machine, such as `http://localhost:8080/v1`. Such a server often
/// answers one call at a time. An invalid URL is none.
pub fn is_this_machine(url: &str) -> bool {
    reqwest::Url::parse(url.trim()).is_ok_and(|url| is_loopback(&url))
}

/// Returns whether an address belongs to this machine, such as `localhost` or `127.0.0.1`.
pub(super) fn is_loopback(url: &reqwest::Url) -> bool {
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

/// Returns the error object of an answer or an event: its field `error`, the one of the response in it, or the whole.
/// Gemini sometimes sends the object in a list.
fn error_object(parsed: &Value) -> &Value {
    let parsed = parsed.get(0).unwrap_or(parsed);
    let is_error = |error: &&Value| !error.is_null();
    let own = parsed.get("error").filter(is_error);
    let inner = || parsed.pointer("/response/error").filter(is_error);
    own.or_else(inner).unwrap_or(parsed)
}

/// Returns whether an answer or an event reports an error.
pub(super) fn reported(parsed: &Value) -> bool {
    !std::ptr::eq(error_object(parsed), parsed.get(0).unwrap_or(parsed))
        || parsed.get("type").and_then(Value::as_str) == Some("error")
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

    fn assert_kinds(cases: &[(u16, &str, FailureKind)]) {
        for (status, body, expected) in cases.iter().copied() {
            let failure = failed("the server", Some(status), None, body, &Secrets::default());
            assert_eq!(failure.kind(), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_status_is_read_with_its_body() {
        use FailureKind::{
            Auth, BadAnswer, BadRequest, NotFound, Overloaded, Quota, RateLimited, TimedOut,
            TooLong,
        };
        assert_kinds(&[
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
            (504, "the upstream server took too long", Overloaded),
        ]);
    }

    #[test]
    fn a_status_of_llama_cpp_is_read_with_its_body() {
        use FailureKind::{BadRequest, Loading, Overloaded, TooLong};
        assert_kinds(&[
            (
                400,
                r#"{"error":{"code":400,"message":"request (9 tokens) exceeds the available context size (8 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}"#,
                TooLong,
            ),
            (
                503,
                r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#,
                Loading,
            ),
            (
                503,
                r#"{"error":{"message":"busy","code":503}}"#,
                Overloaded,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"image input is not supported - hint: you may need to provide the mmproj","type":"server_error"}}"#,
                BadRequest,
            ),
            (
                501,
                r#"{"error":{"code":501,"message":"This server does not support embeddings.","type":"not_supported_error"}}"#,
                BadRequest,
            ),
        ]);
    }

    #[test]
    fn an_error_in_an_answer_is_read_by_its_number_or_name() {
        use FailureKind::{BadAnswer, Overloaded, RateLimited, TooLong};
        for (body, expected) in [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
            ),
            (
                r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}"#,
                RateLimited,
            ),
            (
                r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}"#,
                Overloaded,
            ),
            (r#"{"error":{"code":502,"message":"upstream"}}"#, Overloaded),
            (r#"{"error":{"code":"429","message":"m"}}"#, RateLimited),
            (
                r#"[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]"#,
                Overloaded,
            ),
            (
                r#"{"error":{"type":"exceed_context_size_error","message":"m","n_ctx":8}}"#,
                TooLong,
            ),
            (r#"{"error":{"message":"odd"}}"#, BadAnswer),
            (r#"{"error":"odd"}"#, BadAnswer),
        ] {
            let parsed: Value = serde_json::from_str(body).unwrap();
            assert!(reported(&parsed), "{body}");
            let failure = failed("the server", None, None, body, &Secrets::default());
            assert_eq!(failure.kind(), expected, "{body}");
            assert!(failure.retryable() != (expected == TooLong), "{body}");
        }
        for body in [
            r#"{"error":null,"choices":[]}"#,
            r#"{"type":"response.created","response":{"error":null}}"#,
            r#"[{"candidates":[]}]"#,
            "[]",
        ] {
            assert!(!reported(&serde_json::from_str(body).unwrap()), "{body}");
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
        let text = failed("the server", Some(401), None, &body, &secrets).to_string();
        assert!(
            text.starts_with("the server answered with status 401 (key [redacted] is wrong xxx")
        );
        assert!(text.ends_with("…): check the key"), "{text}");
        assert!(text.len() < 400);
        let gemini = r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}"#;
        let failure = failed("g", Some(429), None, gemini, &secrets);
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
