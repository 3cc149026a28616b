//! A client of several providers, based on the crate `genai`.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatOptions, ChatRequest, ChatResponse};
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};

use super::answer::{stop, written};
use super::http::{client, failed, filtered, retry_after};
use super::key::Secrets;
use super::{ApiKey, MIN_OUTPUT_TOKENS, OLLAMA_BASE_URL, ReasoningEffort};
use crate::{ChatModel, ChatPrompt, Completion, Failure, FailureKind, ModelUsage, Stop};

/// A client for several providers, based on the `genai` crate: Anthropic, Gemini, OpenAI, Ollama and others.
#[derive(Clone)]
#[must_use]
pub struct GenAi {
    provider: String,
    model: ModelIden,
    key: Option<ApiKey>,
    /// Secrets that requests contain. They are redacted in texts of the server.
    secrets: Secrets,
    base_url: Option<String>,
    timeout: Option<Duration>,
    min_output: u64,
    temperature: Option<f64>,
    reasoning: Option<ReasoningEffort>,
    /// Client that is created from the settings above when it is first needed.
    client: OnceLock<Client>,
}

impl fmt::Debug for GenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenAi")
            .field("provider", &self.provider)
            .field("model", &self.name())
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl GenAi {
    /// Creates a client of the model named `model`. `provider` is `anthropic`, `gemini`, `openai`, `ollama`, or another
    /// name that `genai` knows.
    ///
    /// # Errors
    /// [`FailureKind::InvalidClient`] if `genai` does not know the provider.
    pub fn new(provider: &str, model: &str) -> Result<Self, Failure> {
        let Some(kind) = AdapterKind::from_lower_str(provider) else {
            let text =
                format!("there is no provider {provider}: name one such as anthropic or gemini");
            return Err(Failure::with_text(FailureKind::InvalidClient, text));
        };
        let model = ModelIden::new(kind, model);
        Ok(Self {
            provider: provider.to_owned(),
            model,
            key: None,
            secrets: Secrets::default(),
            base_url: None,
            timeout: None,
            min_output: MIN_OUTPUT_TOKENS,
            temperature: None,
            reasoning: None,
            client: OnceLock::new(),
        })
    }

    /// Sets the API key of the provider.
    pub fn with_key(mut self, key: ApiKey) -> Self {
        self.secrets.add_key(&key);
        self.key = Some(key);
        self.changed()
    }

    /// Sets the base URL for requests. It replaces the provider's default URL.
    pub fn with_base_url(mut self, url: &str) -> Self {
        let url = format!("{}/", url.trim().trim_end_matches('/'));
        if let Ok(url) = reqwest::Url::parse(&url) {
            self.secrets.add_url(&url);
        }
        self.base_url = Some(url);
        self.changed()
    }

    /// Sets the maximum duration of a request; `None` for no limit, which is the default.
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self.changed()
    }

    /// Sets a `genai` client of your own, with its keys, addresses and time-outs. It replaces earlier settings of the
    /// key, the URL and the time-out. A later setting of one of these replaces the client.
    ///
    /// This crate does not know the keys of your client. If an answer contains such a key, the key is not removed.
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = OnceLock::from(client);
        self
    }

    /// Sets the minimum output limit that is sent to the server, in tokens. Default [`MIN_OUTPUT_TOKENS`].
    pub fn with_min_output_tokens(mut self, tokens: u64) -> Self {
        self.min_output = tokens;
        self
    }

    /// Sets the sampling temperature. By default no temperature is sent.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the amount of reasoning, in the provider's form. By default no amount is sent, because models that do not
    /// reason reject it.
    pub fn with_reasoning(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning = Some(effort);
        self
    }

    fn name(&self) -> String {
        self.model.model_name.to_string()
    }

    /// Drops the client, because it was built with other settings.
    fn changed(mut self) -> Self {
        self.client = OnceLock::new();
        self
    }

    /// Returns the client, and builds it if needed. The client never takes a key from the environment.
    fn client(&self) -> Result<Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let key = self.key.clone();
        let base_url = self.base_url.clone();
        let resolver = ServiceTargetResolver::from_resolver_fn(
            move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
                let secret = key.as_ref().map_or("", |key| key.secret());
                let endpoint = match &base_url {
                    Some(url) => Endpoint::from_owned(url.as_str()),
                    None => target.endpoint,
                };
                Ok(ServiceTarget {
                    endpoint,
                    auth: AuthData::from_single(secret),
                    model: target.model,
                })
            },
        );
        let failed = || {
            let what = format!("no connection to {} can be made", self.provider);
            Failure::new(FailureKind::Unreachable, what)
        };
        let url = match (&self.base_url, self.model.adapter_kind) {
            (Some(url), _) => reqwest::Url::parse(url).ok(),
            (None, AdapterKind::Ollama) => reqwest::Url::parse(OLLAMA_BASE_URL).ok(),
            (None, _) => None,
        };
        let http = client(url.as_ref(), self.timeout).map_err(|_| failed())?;
        let client = Client::builder()
            .with_service_target_resolver(resolver)
            .with_reqwest(http)
            .build()
            .map_err(|_| failed())?;
        Ok(self.client.get_or_init(|| client).clone())
    }

    async fn ask(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let most = prompt.output_limit(self.min_output);
        let mut options = ChatOptions::default()
            .with_max_tokens(u32::try_from(most).unwrap_or(u32::MAX))
            // Some reasons for a refusal are only in the raw body.
            .with_capture_raw_body(true);
        if let Some(temperature) = self.temperature {
            options = options.with_temperature(temperature);
        }
        if let Some(effort) = self.reasoning {
            options = options.with_reasoning_effort(effort.into());
        }
        let request = ChatRequest::from_system(prompt.system.as_str())
            .append_message(ChatMessage::user(prompt.user.as_str()));
        let client = self.client()?;
        let answer = client.exec_chat(self.model.clone(), request, Some(&options));
        match answer.await {
            Ok(answer) => self.read(&answer),
            Err(error) if withheld(&error) => Ok(Completion {
                stop: Stop::Filtered,
                ..Completion::new("")
            }),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn read(&self, answer: &ChatResponse) -> Result<Completion, Failure> {
        let whom = self.whom();
        let body = answer.captured_raw_body.as_ref();
        let said = |place: &str| {
            let text = body?.pointer(place)?.as_str()?;
            (!text.is_empty()).then_some(text)
        };
        let reason = answer.stop_reason.as_ref().map(|reason| reason.raw());
        let stop = match reason.map(|reason| self.secrets.redact(reason)) {
            _ if said("/promptFeedback/blockReason").is_some() => Stop::Filtered,
            _ if said("/choices/0/message/refusal").is_some() => Stop::Refused,
            reason => stop(&whom, reason.as_deref())?,
        };
        let text = self.secrets.redact_summary(&answer.texts().concat());
        let written = written(&whom, &text, stop)?;
        let count = |tokens: Option<i32>| u64::try_from(tokens?).ok();
        let usage = match (
            count(answer.usage.prompt_tokens),
            count(answer.usage.completion_tokens),
        ) {
            (None, None) => None,
            (input, output) => {
                let details = answer.usage.prompt_tokens_details.as_ref();
                let cached = details.and_then(|details| count(details.cached_tokens));
                Some(ModelUsage {
                    cached_input: cached.unwrap_or_default(),
                    ..ModelUsage::new(input.unwrap_or_default(), output.unwrap_or_default())
                })
            }
        };
        Ok(Completion { usage, ..written })
    }

    fn whom(&self) -> String {
        format!("model {} of {}", self.name(), self.provider)
    }

    /// Converts an error of `genai` into a failure. Omits the error's own text, which may contain the prompt and the
    /// key.
    fn failed(&self, error: &genai::Error) -> Failure {
        use genai::webc::Error as Web;
        let (whom, secrets) = (&self.provider, &self.secrets);
        if let genai::Error::HttpError { status, body, .. } = error {
            let wait = error
                .headers()
                .and_then(|headers| retry_after(|name| headers.get(name)?.to_str().ok()));
            return failed(whom, Some(status.as_u16()), wait, body, secrets);
        }
        let web = match error {
            genai::Error::WebModelCall { webc_error, .. }
            | genai::Error::WebAdapterCall { webc_error, .. } => webc_error,
            genai::Error::RequiresApiKey { .. } | genai::Error::NoAuthData { .. } => {
                return Failure::new(FailureKind::Auth, format!("{whom} needs a key"));
            }
            genai::Error::NoChatResponse { .. } => {
                return Failure::new(FailureKind::Empty, format!("{} wrote nothing", self.whom()));
            }
            _ => {
                let what = format!("{whom} answered in an unexpected form");
                return Failure::new(FailureKind::BadAnswer, what);
            }
        };
        match web {
            Web::ResponseFailedStatus {
                status,
                body,
                headers,
            } => {
                let wait = retry_after(|name| headers.get(name)?.to_str().ok());
                failed(whom, Some(status.as_u16()), wait, body, secrets)
            }
            Web::Reqwest(error) if error.is_timeout() => Failure::new(
                FailureKind::TimedOut,
                format!("{whom} did not answer in time"),
            ),
            Web::Reqwest(error) if error.is_connect() => Failure::new(
                FailureKind::Unreachable,
                format!("{whom} cannot be reached"),
            ),
            Web::Reqwest(_) => {
                let what = format!("{whom} closed the connection early");
                Failure::new(FailureKind::Unreachable, what)
            }
            _ => {
                let what = format!("{whom} did not answer with JSON");
                Failure::new(FailureKind::BadAnswer, what)
            }
        }
    }
}

impl From<ReasoningEffort> for genai::chat::ReasoningEffort {
    fn from(effort: ReasoningEffort) -> Self {
        match effort {
            ReasoningEffort::None => Self::Zero,
            ReasoningEffort::Minimal => Self::Minimal,
            ReasoningEffort::Low => Self::Low,
            ReasoningEffort::Medium => Self::Medium,
            ReasoningEffort::High => Self::High,
        }
    }
}

/// Returns whether a content filter withheld the answer or rejected the prompt.
fn withheld(error: &genai::Error) -> bool {
    use genai::webc::Error as Web;
    match error {
        genai::Error::HttpError { body, .. } => filtered(body),
        genai::Error::WebModelCall { webc_error, .. }
        | genai::Error::WebAdapterCall { webc_error, .. } => {
            matches!(webc_error, Web::ResponseFailedStatus { body, .. } if filtered(body))
        }
        genai::Error::ChatResponseGeneration { response_body, .. } => response_body
            .pointer("/promptFeedback/blockReason")
            .is_some(),
        _ => false,
    }
}

#[async_trait]
impl ChatModel for GenAi {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        self.ask(prompt).await
    }
}
