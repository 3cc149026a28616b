//! Summarizers from the command line and the environment.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_memory::models::Guards;
use agent_memory::models::{
    ANTHROPIC_BASE_URL, AnthropicMessages, ApiKey, GEMINI_BASE_URL, GeminiGenerate,
    OLLAMA_BASE_URL, OPENAI_BASE_URL, OpenAiCompatible, OpenAiResponses, ReasoningEffort,
    is_this_machine,
};
use agent_memory::summaries::{ChatModel, Gate, LlmSummarizer, ModelWindow, PromptSet, Share};
use agent_memory::{
    Builder, DagPolicy, Memory, Summarizer,
    compaction::ModelReport,
    models::{GuardPolicy, SpendPolicy},
    summaries::Ladder,
};

use crate::app::App;
use crate::args::{Given, Policy, Prompts, Reasoning, Writing};
use crate::config::Config;
use crate::error::{Failure, Kind};
use crate::progress::Progress;

/// A known provider of models.
struct Provider {
    name: &'static str,
    /// Environment variables with its key; the first that is set counts. The list is empty if it needs no key.
    keys: &'static [&'static str],
    /// Base URL, unless the command line gives one.
    base_url: Option<&'static str>,
    api: Api,
}

/// API that a provider's server speaks.
#[derive(Clone, Copy)]
enum Api {
    Chat,
    Responses,
    Messages,
    Generate,
}

const PROVIDERS: [Provider; 6] = [
    Provider {
        name: "openai",
        keys: &["OPENAI_API_KEY"],
        base_url: Some(OPENAI_BASE_URL),
        api: Api::Chat,
    },
    Provider {
        name: "responses",
        keys: &["OPENAI_API_KEY"],
        base_url: Some(OPENAI_BASE_URL),
        api: Api::Responses,
    },
    Provider {
        name: "anthropic",
        keys: &["ANTHROPIC_API_KEY"],
        base_url: Some(ANTHROPIC_BASE_URL),
        api: Api::Messages,
    },
    Provider {
        name: "gemini",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url: Some(GEMINI_BASE_URL),
        api: Api::Generate,
    },
    Provider {
        name: "ollama",
        keys: &[],
        base_url: Some(OLLAMA_BASE_URL),
        api: Api::Chat,
    },
    Provider {
        name: "compatible",
        keys: &["COMPATIBLE_API_KEY"],
        base_url: None,
        api: Api::Chat,
    },
];

/// The summarizers that the command line requests. The list is empty for `extractive`.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    all: Vec<Arc<dyn Summarizer>>,
    /// Minimum share of the names of each class (identifiers, paths, addresses, codes) that a summary must keep;
    /// `None` for the default.
    min_retained: Option<f64>,
    /// Compaction policy from the command line.
    policy: Policy,
    /// Configuration file.
    config: Config,
    guards: GuardPolicy,
    /// Whether calls are only counted.
    dry_run: bool,
}

impl Writers {
    /// Sets the compaction policy and the configuration file.
    pub(crate) fn with_policy(mut self, policy: &Policy, config: &Config) -> Self {
        self.policy = policy.clone();
        self.config = config.clone();
        self
    }

    /// Creates the summarizers from the command line. Reads missing keys from the environment. With `dry_run`, calls
    /// are only counted, and no key is needed.
    pub(crate) fn find(args: &Writing, dry_run: bool) -> Result<Self, Failure> {
        refuse_key("--summarizer", &args.summarizer)?;
        refuse_key(
            "--fallback-model",
            args.fallback_model.as_deref().unwrap_or_default(),
        )?;
        if !args.has_model() {
            if let Some(Given { flag, .. }) = args.given().first() {
                let text = format!("{flag} needs a model");
                return Err(usage(text).hint("give --summarizer PROVIDER:MODEL as well"));
            }
            return Ok(Self::default());
        }
        let Some((provider, model)) = split(&args.summarizer) else {
            let text = match shown(&args.summarizer) {
                Some(name) => format!("there is no summarizer {name}"),
                None => "there is no summarizer of the name that --summarizer gives".to_owned(),
            };
            return Err(usage(text).hint(format!(
                "give extractive, or PROVIDER:MODEL with one of the providers {}",
                names()
            )));
        };
        let given = match &args.api_key_file {
            Some(path) if !dry_run => Some(key_in(path)?),
            _ => args.api_key.clone(),
        };
        let with = |provider, model, is_first| {
            let given = given.as_ref().filter(|_| is_first);
            client(provider, model, args, (is_first, given), dry_run)
        };
        let mut all = vec![with(provider, model, true)?];
        let mut own_machine = on_this_machine(provider, args.base_url.as_deref());
        if let Some(fallback) = &args.fallback_model {
            let (next, model) = split(fallback).unwrap_or((provider, fallback));
            let same = next.name == provider.name;
            all.push(with(next, model, same)?);
            own_machine |= on_this_machine(next, args.base_url.as_deref().filter(|_| same));
        }
        Ok(Self {
            all,
            min_retained: args.min_retained,
            policy: Policy::default(),
            config: Config::default(),
            guards: guards(args, own_machine),
            dry_run,
        })
    }

    /// Sets the maximum number of model calls; `None` for no limit. Each retry counts as one.
    pub(crate) fn limit_calls(&mut self, calls: Option<u64>) {
        if let Some(calls) = calls {
            let spend = SpendPolicy::calls(calls);
            self.guards = GuardPolicy {
                session_spend: spend,
                ..self.guards.clone()
            };
        }
    }

    /// Returns whether a model writes the summaries.
    pub(crate) fn has_model(&self) -> bool {
        !self.all.is_empty()
    }

    /// Returns the configuration file.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns a builder for a copy of a session, with the summarizers and the compaction policy.
    pub(crate) fn builder(&self) -> Builder {
        self.apply(Memory::builder(), &Arc::new(Progress::new(true)))
    }

    /// Adds the summarizers, their guards and the compaction policy to a builder.
    pub(crate) fn apply(&self, mut builder: Builder, progress: &Arc<Progress>) -> Builder {
        builder = self
            .policy
            .apply(builder, DagPolicy::default(), &self.config);
        if !self.all.is_empty() {
            let guards = Guards::from(self.guards.clone());
            builder = builder.guards(match self.dry_run {
                true => guards.without_calls(),
                false => guards.with_observer(Arc::<Progress>::clone(progress)),
            });
        }
        if self.dry_run {
            builder = builder.ladder(Ladder {
                gate: None,
                ..Ladder::default()
            });
        } else if let Some(share) = self.min_retained {
            let gate = Gate {
                min_retained: Share::new(share),
                ..Gate::default()
            };
            builder = builder.ladder(Ladder {
                gate: Some(gate),
                ..Ladder::default()
            });
        }
        let all = self.all.iter().cloned();
        all.fold(builder, Builder::summarizer)
    }
}

/// Returns whether a provider's server is on this machine. `base_url` is the address from the command line.
fn on_this_machine(provider: &Provider, base_url: Option<&str>) -> bool {
    base_url.or(provider.base_url).is_some_and(is_this_machine)
}

/// Returns the default guards with the requested time-out, wait, and numbers of attempts and of concurrent calls. A server on
/// this machine mostly answers one call at a time: others would wait in line, and their time would pass.
fn guards(args: &Writing, own_machine: bool) -> GuardPolicy {
    let mut guards = GuardPolicy::default();
    if let Some(seconds) = args.model_timeout {
        guards.timeout_millis = Some(seconds.saturating_mul(1_000));
    }
    if let (Some(attempts), Some(retry)) = (args.model_attempts, &mut guards.retry) {
        retry.attempts = attempts;
    }
    guards.wait_millis = args.wait.map(|seconds| seconds.saturating_mul(1_000));
    if let Some(calls) = args.model_calls.or(own_machine.then_some(1)) {
        guards.concurrency = Some(calls);
    }
    guards
}

/// Returns a line about the summaries that the model did not write; `None` if there are none. `next` is the command that
/// asks the model again.
pub(crate) fn model_failures(report: &ModelReport, next: &str) -> Option<String> {
    let advice = report.advice().filter(|_| !report.is_ok())?;
    Some(format!("{report}: {advice}, then run {next}"))
}

/// Returns a summarizer that calls a model, with the requested prompts and window.
fn summarizer(
    (provider, model): (&str, &str),
    client: impl ChatModel + 'static,
    args: &Writing,
) -> Arc<dyn Summarizer> {
    let mut model = LlmSummarizer::new(model, client).with_provider(provider);
    if let Some(prompts) = args.prompts {
        model = model.with_prompts(match prompts {
            Prompts::Standard => PromptSet::standard(),
            Prompts::RankedLines => PromptSet::ranked_lines(),
            Prompts::HandoffSections => PromptSet::handoff_sections(),
            Prompts::Checkpoint => PromptSet::checkpoint(),
            Prompts::NumberedSections => PromptSet::numbered_sections(),
        });
    }
    if let Some(tokens) = args.model_window {
        model = model.with_window(ModelWindow::tokens(tokens));
    }
    Arc::new(model)
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::new(Kind::Usage, text)
}

fn names() -> String {
    PROVIDERS.map(|provider| provider.name).join(", ")
}

/// Splits `PROVIDER:MODEL` into a known provider and the model's name, which may contain colons. Returns `None` for an
/// unknown provider or an empty name.
fn split(text: &str) -> Option<(&'static Provider, &str)> {
    let (name, model) = text.split_once(':')?;
    let provider = PROVIDERS.iter().find(|provider| provider.name == name)?;
    (!model.is_empty()).then_some((provider, model))
}

/// Prefixes of the keys of providers. No model's name begins with one of them.
const KEY_BEGINNINGS: [&str; 12] = [
    "sk-",
    "sk_",
    "AIza",
    "gsk_",
    "xai-",
    "hf_",
    "pplx-",
    "nvapi-",
    "r8_",
    "ghp_",
    "github_pat_",
    "eyJ",
];
/// Minimum number of adjacent letters and digits that are recognized as a key. Names of models have shorter runs.
const KEY_RUN: usize = 32;

/// Returns whether a text that should be a name contains a key.
fn has_key(text: &str) -> bool {
    let word = |c: char| c.is_whitespace() || matches!(c, ':' | '/' | '=' | '"' | '\'' | ',');
    let begins = |word: &str| KEY_BEGINNINGS.iter().any(|begin| word.starts_with(begin));
    let run = |run: &str| {
        run.len() >= KEY_RUN
            && run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    };
    text.split(word).any(begins) || text.split(|c: char| !c.is_ascii_alphanumeric()).any(run)
}

/// Returns an unknown summarizer's name for an error; `None` if it may be a key, because other people can read errors
/// and logs.
fn shown(name: &str) -> Option<&str> {
    const LONGEST: usize = 16;
    (name.len() <= LONGEST && !has_key(name)).then_some(name)
}

/// Returns an error for a model's name that looks like a key. A key must not be printed, stored and sent as a name.
fn refuse_key(option: &str, model: &str) -> Result<(), Failure> {
    if has_key(model) {
        let text = format!("what {option} gives looks like a key, not like a model's name");
        return Err(usage(text).hint(
            "name the model, such as openai:gpt-5-mini, and give the key in the environment or by --api-key-file",
        ));
    }
    Ok(())
}

/// Maximum size of a file that is read as a key, in bytes.
const KEY_BYTES: u64 = 16 * 1024;

/// Reads a key from a file, or from standard input for `-`.
fn key_in(path: &Path) -> Result<ApiKey, Failure> {
    let (name, mut bytes) = (path.display(), Vec::new());
    let read = match path.to_str() {
        Some("-") => std::io::stdin().take(KEY_BYTES + 1).read_to_end(&mut bytes),
        _ => std::fs::File::open(path)
            .and_then(|file| file.take(KEY_BYTES + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| {
        let text = format!("cannot read the key from {name}: {error}");
        usage(text).hint("name a file that holds nothing but the key, or - for standard input")
    })?;
    let short = bytes.len() as u64 <= KEY_BYTES;
    let text = String::from_utf8(bytes).ok().filter(|_| short);
    let text = text.as_deref().map(str::trim).filter(|text| {
        let plain = |c: char| c.is_ascii_graphic();
        !text.is_empty() && text.chars().all(plain)
    });
    match text {
        Some(text) => Ok(ApiKey::new(text)),
        None => Err(usage(format!("{name} holds no key"))
            .hint("a key is one line of letters, digits and marks, and nothing else")),
    }
}

/// Returns the command that rewrites a session's summaries with the same model and options. `more` are further options.
/// No key is in it, and the provider's address has no user info and no query.
pub(crate) fn redo_command(app: &App, args: &Writing, more: &[&str], session: &str) -> String {
    let options = args.words();
    let mut words = vec!["redo"];
    words.extend(options.iter().map(String::as_str));
    words.extend(more);
    app.command(&words, &[session])
}

/// Creates a provider's client. The address and the key of the command line apply to the first provider only.
fn client(
    provider: &Provider,
    model: &str,
    args: &Writing,
    (first, given): (bool, Option<&ApiKey>),
    dry_run: bool,
) -> Result<Arc<dyn Summarizer>, Failure> {
    let name = provider.name;
    let base_url = args.base_url.as_deref().filter(|_| first);
    let key = given.cloned();
    let key = key.or_else(|| {
        let mut found = provider
            .keys
            .iter()
            .filter_map(|name| std::env::var(name).ok());
        found.find(|key| !key.trim().is_empty()).map(ApiKey::new)
    });
    let Some(url) = base_url.or(provider.base_url) else {
        let text = format!("{name} needs an address");
        return Err(usage(text).hint("give --base-url, such as http://localhost:8000/v1"));
    };
    let needs_key = base_url.is_none() && !provider.keys.is_empty() && !dry_run;
    if key.is_none() && needs_key {
        let variables = provider.keys.join(" or ");
        let text = format!("{name} needs a key");
        return Err(usage(text).hint(format!("set {variables}, or give --api-key-file")));
    }
    let idle = args.idle_timeout.map(Duration::from_secs);
    let effort = args.reasoning.map(|reasoning| match reasoning {
        Reasoning::None => ReasoningEffort::None,
        Reasoning::Minimal => ReasoningEffort::Minimal,
        Reasoning::Low => ReasoningEffort::Low,
        Reasoning::Medium => ReasoningEffort::Medium,
        Reasoning::High => ReasoningEffort::High,
    });
    // Creates a client with the requested settings, which all clients have.
    macro_rules! configured {
        ($client:ident) => {{
            let client = $client::new(url, model).map_err(|error| usage(error.to_string()))?;
            let mut client = client.with_idle_limit(idle);
            if let Some(key) = key {
                client = client.with_key(key);
            }
            if let Some(effort) = effort {
                client = client.with_reasoning(effort);
            }
            Ok(summarizer((name, model), client, args))
        }};
    }
    match provider.api {
        Api::Chat => configured!(OpenAiCompatible),
        Api::Responses => configured!(OpenAiResponses),
        Api::Messages => configured!(AnthropicMessages),
        Api::Generate => configured!(GeminiGenerate),
    }
}
