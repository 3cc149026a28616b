//! Endpoint of a server with OpenAI's API: its address, and requests to it.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Serialize;
use serde_json::Value;

use super::http::{client, refused, retry_after, said, shown, without_secrets};
use super::key::Secrets;
use super::{ApiKey, OPENAI_BASE_URL};
use crate::{Failure, FailureKind};

/// An address of a server, with the settings of requests to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    http: reqwest::Client,
    url: reqwest::Url,
    /// The server's name in errors: its address without secrets.
    pub(super) whom: String,
    key: Option<ApiKey>,
    /// Secrets that requests contain. They are redacted in texts of the server.
    pub(super) secrets: Secrets,
    /// Maximum duration of a request.
    pub(super) timeout: Option<Duration>,
    /// Maximum length of an answer, in bytes.
    max_answer_bytes: usize,
}

/// A server's answer: status, requested wait and body.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    wait: Option<Duration>,
    pub(super) body: String,
}

impl Endpoint {
    /// Creates the endpoint at the address `path` below a base URL.
    pub(super) fn new(
        base_url: &str,
        path: &str,
        max_answer_bytes: usize,
    ) -> Result<Self, Failure> {
        let invalid = |what: &str| {
            let text = format!("{what}: give a base URL such as {OPENAI_BASE_URL}");
            Failure::with_text(FailureKind::InvalidClient, text)
        };
        let url = reqwest::Url::parse(base_url.trim());
        let mut url = url.map_err(|_| invalid("the provider's address is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(
                "the provider's address does not begin with http or https",
            ));
        }
        let path = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let http = client(Some(&url), None).map_err(|error| {
            let text =
                format!("connections cannot be made ({error}): check the system's certificates");
            Failure::with_text(FailureKind::InvalidClient, text)
        })?;
        Ok(Self {
            http,
            secrets: Secrets::of_url(&url),
            whom: without_secrets(&url),
            url,
            key: None,
            timeout: Some(Duration::from_secs(120)),
            max_answer_bytes,
        })
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.url.host_str()
    }

    pub(super) fn set_key(&mut self, key: ApiKey) {
        self.secrets.add_key(&key);
        self.key = Some(key);
    }

    /// Adds the server and the key to a debug output, without showing secrets.
    pub(super) fn describe(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("server", &self.whom).field("key", &self.key);
    }

    /// Sends a request and reads the answer. Any status is accepted.
    pub(super) async fn post(&self, request: &impl Serialize) -> Result<Answer, Failure> {
        let body = serde_json::to_vec(request)
            .map_err(|error| Failure::new(FailureKind::BadRequest, error))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.secret()));
            let mut value = value.map_err(|_| {
                let what = "the key has characters that a header cannot contain";
                Failure::new(FailureKind::Auth, what)
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut call = self.http.post(self.url.clone()).headers(headers).body(body);
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout);
        }
        let mut response = call.send().await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        let wait = retry_after(|name| response.headers().get(name)?.to_str().ok());
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.broken(&error))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > self.max_answer_bytes {
                let most = self.max_answer_bytes;
                return Err(self.bad(&format!("answered with more than {most} bytes")));
            }
        }
        Ok(Answer {
            status,
            wait,
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    }

    /// Returns the failure of an answer with a status other than success.
    pub(super) fn refused(&self, answer: &Answer) -> Failure {
        let status = answer.status.as_u16();
        refused(&self.whom, status, answer.wait, &answer.body, &self.secrets)
    }

    /// Parses the JSON of an answer. An answer with an error is a failure, because some routers report a provider's
    /// error with a status of success.
    pub(super) fn json(&self, body: &str) -> Result<Value, Failure> {
        let value: Value =
            serde_json::from_str(body).map_err(|_| self.bad("did not answer with JSON"))?;
        if value.get("error").is_some_and(|error| !error.is_null()) {
            let said = self.secrets.redact(said(&value).unwrap_or_default());
            return Err(self.bad(&format!("answered with an error ({})", shown(&said))));
        }
        Ok(value)
    }

    /// Returns the failure for an answer that does not have the documented form.
    pub(super) fn bad(&self, what: &str) -> Failure {
        Failure::new(FailureKind::BadAnswer, format!("{} {what}", self.whom))
    }

    /// Returns the failure for a broken connection.
    fn broken(&self, error: &reqwest::Error) -> Failure {
        let (kind, what) = match () {
            () if error.is_timeout() => (FailureKind::TimedOut, "did not answer in time"),
            () if error.is_connect() => (FailureKind::Unreachable, "cannot be reached"),
            () => (FailureKind::Unreachable, "closed the connection early"),
        };
        Failure::new(kind, format!("{} {what}", self.whom))
    }
}
