//! The options of the summarizer: the model that writes summaries, and the limits of its calls.

use std::path::PathBuf;

use agent_memory::models::{ApiKey, public_url};
use clap::{Args, ValueEnum};

/// Name of the summarizer that needs no model.
const EXTRACTIVE: &str = "extractive";

/// The summarizer's options.
#[derive(Debug, Args)]
pub(crate) struct Writing {
    /// Summarizer: extractive, without a model or key, or PROVIDER:MODEL, such as openai:gpt-5-mini,
    /// anthropic:claude-haiku-4-5, gemini:gemini-flash-latest, ollama:qwen3:8b, or compatible:NAME with --base-url;
    /// responses:NAME is OpenAI's other API
    #[arg(long, value_name = "SUMMARIZER", default_value = EXTRACTIVE)]
    pub(crate) summarizer: String,
    /// Model to use if the first fails: MODEL of the same provider, or PROVIDER:MODEL
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback_model: Option<String>,
    /// The provider's address, such as http://localhost:8000/v1: the part before /chat/completions, /responses,
    /// /messages or /models [default: the provider's own]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The provider's key. Other users can see it while the program runs: use a file or the
    /// environment instead [default: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or
    /// GOOGLE_API_KEY, COMPATIBLE_API_KEY, by provider]
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) api_key: Option<ApiKey>,
    /// File with the provider's key; - is standard input
    #[arg(long, value_name = "PATH", conflicts_with = "api_key")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// Additional instructions for the summarizer
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Set of prompts for the model [default: standard]
    #[arg(long, value_enum, value_name = "SET")]
    pub(crate) prompts: Option<Prompts>,
    /// Size of the summarizing model's window, in tokens; a longer source is summarised in parts
    /// [default: no limit]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) model_window: Option<u64>,
    /// Minimum share of its source's identifiers, paths, addresses and codes that a model's summary
    /// retains, from 0 to 1; 0 checks none [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share_or_none)]
    pub(crate) min_retained: Option<f64>,
    /// Time-out of one attempt at a call, in seconds [default: 120]. A silent endpoint delays a call
    /// by all attempts and the pauses of 1, 2, 4 … seconds between them: 363 seconds by default.
    /// After 3 failed calls no call is made for a minute
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) model_timeout: Option<u64>,
    /// Maximum number of attempts at a call that times out or fails temporarily [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) model_attempts: Option<u32>,
    /// Maximum time to wait for a model that fails temporarily, in seconds since its first failure. It is asked again
    /// about once a minute, and the fallback model only afterwards [default: no wait, extracts take the place of the
    /// missing summaries]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub(crate) wait: Option<u64>,
    /// Maximum time without a byte from the endpoint, in seconds, before and during an answer. An
    /// endpoint may read a long prompt for minutes before its first byte [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) idle_timeout: Option<u64>,
    /// Maximum number of concurrent calls [default: 1 for an endpoint on this machine, otherwise 4]
    #[arg(long, value_name = "N", value_parser = calls)]
    pub(crate) model_calls: Option<usize>,
    /// Amount of reasoning before an answer. A model that does not reason rejects it [default: the model's own]
    #[arg(long, value_enum, value_name = "EFFORT")]
    pub(crate) reasoning: Option<Reasoning>,
}

/// Parses a number of concurrent calls.
fn calls(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(calls @ 1..=1_000) => Ok(calls),
        _ => Err("give a number from 1 to 1000".to_owned()),
    }
}

/// Amounts of reasoning.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Reasoning {
    /// The model does not reason
    None,
    /// As little as it can
    Minimal,
    /// Less than usual
    Low,
    /// As much as usual
    Medium,
    /// More than usual
    High,
}

/// Sets of prompts.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Prompts {
    /// A short list of facts to keep and to drop
    Standard,
    /// The same, with a mark of importance for each line: a context with little room shows the most important ones
    RankedLines,
    /// A handoff of seven sections
    HandoffSections,
    /// A checkpoint of six sections
    Checkpoint,
    /// Nine numbered sections, after notes that are dropped
    NumberedSections,
}

/// Wraps a key in a type that never shows it.
fn key(text: &str) -> Result<ApiKey, std::convert::Infallible> {
    Ok(ApiKey::new(text))
}
/// Parses a share from 0 to 1.
fn share_or_none(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "give a number from 0 to 1, such as 0.3".to_owned())
}

/// An option of the command line that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// Name of the option, with its dashes.
    pub(crate) flag: &'static str,
    /// Value of the option, as the command line has it. `None` if it must not be repeated, because it is a key.
    pub(crate) value: Option<String>,
}

impl Given {
    /// Returns the option as words of a command line. The result is empty if the value must not be repeated.
    fn words(self) -> Vec<String> {
        let flag = self.flag;
        match self.value {
            None => Vec::new(),
            // Such a value would be read as another option.
            Some(value) if value.starts_with('-') => vec![format!("{flag}={value}")],
            Some(value) => vec![flag.to_owned(), value],
        }
    }
}

impl Writing {
    /// Returns whether a model writes the summaries.
    pub(crate) fn has_model(&self) -> bool {
        self.summarizer != EXTRACTIVE
    }

    /// Returns all options that were given except `--summarizer`.
    pub(crate) fn given(&self) -> Vec<Given> {
        // Without `..`, so that no option can be forgotten here.
        let Self {
            summarizer: _,
            fallback_model,
            base_url,
            api_key,
            api_key_file,
            instructions,
            prompts,
            model_window,
            min_retained,
            model_timeout,
            model_attempts,
            wait,
            idle_timeout,
            model_calls,
            reasoning,
        } = self;
        let options = [
            ("--fallback-model", text(fallback_model.as_ref())),
            ("--base-url", base_url.as_deref().map(public_url)),
            ("--api-key", api_key.as_ref().map(|_| None)),
            (
                "--api-key-file",
                text(api_key_file.as_ref().map(|path| path.display())),
            ),
            ("--instructions", text(instructions.as_ref())),
            ("--prompts", name(*prompts)),
            ("--model-window", text(model_window.as_ref())),
            ("--min-retained", text(min_retained.as_ref())),
            ("--model-timeout", text(model_timeout.as_ref())),
            ("--model-attempts", text(model_attempts.as_ref())),
            ("--wait", text(wait.as_ref())),
            ("--idle-timeout", text(idle_timeout.as_ref())),
            ("--model-calls", text(model_calls.as_ref())),
            ("--reasoning", name(*reasoning)),
        ];
        let given = options.into_iter().filter_map(|(flag, value)| {
            let value = value?;
            Some(Given { flag, value })
        });
        given.collect()
    }

    /// Returns the words of a command line that have a model write summaries as in this run. A key is not among them,
    /// and the provider's address has no user info and no query.
    pub(crate) fn words(&self) -> Vec<String> {
        let summarizer = Given {
            flag: "--summarizer",
            value: Some(self.summarizer.clone()),
        };
        let all = std::iter::once(summarizer).chain(self.given());
        all.flat_map(Given::words).collect()
    }
}

/// Returns the text of an option's value; `None` if the option was not given.
fn text(value: Option<impl ToString>) -> Option<Option<String>> {
    value.map(|value| Some(value.to_string()))
}

/// Returns the name of an option's value; `None` if the option was not given.
fn name(value: Option<impl ValueEnum>) -> Option<Option<String>> {
    let name = value?.to_possible_value()?;
    Some(Some(name.get_name().to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, Command, FromArgMatches as _};

    use super::*;

    fn command() -> Command {
        Writing::augment_args(Command::new("x").no_binary_name(true))
    }

    fn parse(words: &[String]) -> Option<Writing> {
        let matches = command().try_get_matches_from(words).ok()?;
        Writing::from_arg_matches(&matches).ok()
    }

    /// Returns each option of the command line with a value that it accepts, which is not its default.
    fn all() -> Vec<(String, String)> {
        let options = command();
        let options = options.get_arguments().filter_map(|arg| {
            let flag = format!("--{}", arg.get_long()?);
            if flag == "--help" {
                return None;
            }
            assert!(matches!(arg.get_action(), ArgAction::Set), "{flag}");
            let names = arg.get_possible_values();
            let mut values: Vec<String> = names
                .iter()
                .map(|value| value.get_name().to_owned())
                .collect();
            values.extend(["0.5", "7", "it's a \"value\"", "http://host:1/v1"].map(str::to_owned));
            let value = match flag.as_str() {
                "--base-url" => "http://host:1/v1".to_owned(),
                _ => values
                    .into_iter()
                    .find(|value| parse(&[flag.clone(), value.clone()]).is_some())?,
            };
            Some((flag, value))
        });
        options.collect()
    }

    #[test]
    fn every_option_is_repeated_with_its_value_and_no_key_is() {
        let all = all();
        assert!(all.len() > 10, "{all:?}");
        for (flag, value) in &all {
            let writing = parse(&[flag.clone(), value.clone()]).unwrap();
            let words = writing.words();
            let repeated = words
                .windows(2)
                .any(|pair| pair == [flag.clone(), value.clone()]);
            assert_eq!(repeated, flag != "--api-key", "{flag}: {words:?}");
            // The repeated words are read as the same options.
            let again = parse(&words).unwrap();
            assert_eq!(again.words(), words);
            let given = writing.given();
            assert_eq!(
                given.len(),
                usize::from(flag != "--summarizer"),
                "{given:?}"
            );
            assert!(given.iter().all(|given| given.flag == flag), "{given:?}");
        }
        let without_key: Vec<String> = all
            .iter()
            .filter(|(flag, _)| flag != "--api-key")
            .flat_map(|(flag, value)| [flag.clone(), value.clone()])
            .collect();
        let writing = parse(&without_key).unwrap();
        assert_eq!(writing.words(), without_key);
    }

    #[test]
    fn values_that_look_like_options_and_addresses_with_secrets_are_repeated_safely() {
        let given = [
            "--instructions=-short",
            "--base-url=http://me:secret@host/v1?key=secret",
            "--api-key-file=-",
        ];
        let writing = parse(&given.map(str::to_owned)).unwrap();
        let words = writing.words();
        let expected = [
            "--summarizer",
            "extractive",
            "--base-url",
            "http://host/v1",
            "--api-key-file=-",
            "--instructions=-short",
        ];
        assert_eq!(words, expected);
        assert_eq!(parse(&words).unwrap().words(), words);
    }
}
