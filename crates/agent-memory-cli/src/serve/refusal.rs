//! Errors as HTTP answers. Their JSON also has the fields of OpenAI's errors.

use std::time::Duration;

use agent_memory::retrieval::ToolAnswer;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::{Failure, Kind};

/// An error with its HTTP status.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    kind: String,
    message: String,
    hint: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, kind: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: kind.to_owned(),
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub(super) fn no_session(key: &str) -> Self {
        let message = format!("there is no session {}", short(key));
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
            .hint("GET /v1/sessions lists those there are")
    }

    pub(super) fn late(limit: Duration) -> Self {
        let message = format!("no answer in {} seconds", limit.as_secs());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message).hint("ask for less")
    }

    /// Returns the error of a tool's answer.
    pub(super) fn of_tool(answer: &ToolAnswer) -> Self {
        let field = |name: &str| {
            let value = answer.json.pointer(&format!("/error/{name}"));
            value.and_then(Value::as_str).unwrap_or("other").to_owned()
        };
        let kind = field("kind");
        let status = match kind.as_str() {
            "not_found" => StatusCode::NOT_FOUND,
            "invalid" => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, &kind, field("message"))
    }

    fn json(&self) -> Value {
        let by = match self.status.is_server_error() {
            true => "server_error",
            false => "invalid_request_error",
        };
        json!({"error": {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
            "type": by,
            "code": self.kind,
            "param": null,
        }})
    }
}

/// Returns the beginning of a text that a client sent.
fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let status = match failure.kind {
            Kind::NotFound | Kind::Ambiguous | Kind::NoDatabase => StatusCode::NOT_FOUND,
            Kind::Usage
            | Kind::Invalid
            | Kind::Empty
            | Kind::NotText
            | Kind::UnknownFormat
            | Kind::BudgetTooSmall => StatusCode::BAD_REQUEST,
            Kind::Held => StatusCode::CONFLICT,
            Kind::DatabaseBusy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let kind = serde_json::to_value(failure.kind).unwrap_or_default();
        Self {
            status,
            kind: kind.as_str().unwrap_or("other").to_owned(),
            message: failure.message,
            hint: failure.hint,
        }
    }
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        Failure::from_any(error).into()
    }
}

impl From<agent_memory::Error> for Refusal {
    fn from(error: agent_memory::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<agent_memory::store::Error> for Refusal {
    fn from(error: agent_memory::store::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Self::invalid(format!(
            "the body is not the JSON that is expected ({error})"
        ))
        .hint("/openapi.json has the schema of each route")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (self.status, kind, self.json().to_string()).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = header::HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
