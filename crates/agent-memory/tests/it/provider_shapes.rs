//! Contexts of real transcripts in the formats of providers, checked by rules that were written from the providers'
//! documents, independently of the code that writes the formats.
//!
//! If `AGENT_MEMORY_REQUESTS` names a folder, the requests are written there, for `cargo xtask provider-types`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use agent_memory::providers::Provider;
use agent_memory::{
    Budget, Memory, Message, Mode, Part, RawJson, Session, ToolDefinition, model::ResultContent,
};
use outside_checks::provider_rules::{self, Finding};
use serde_json::Value;

use crate::corpus::{corpus, parse, transcripts};

const BUDGETS: [u64; 5] = [1_000, 4_000, 16_000, 64_000, 200_000];

fn findings(provider: Provider, request: &Value) -> Vec<Finding> {
    match provider {
        Provider::OpenAi => provider_rules::openai_chat(request),
        Provider::Responses => provider_rules::openai_responses(request),
        Provider::Anthropic => provider_rules::anthropic(request),
        Provider::Gemini => provider_rules::gemini(request),
        _ => panic!("{provider:?} has no rules"),
    }
}

fn tools() -> Vec<ToolDefinition> {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
    let tool = ToolDefinition::new("read_file", RawJson::parse(schema).unwrap());
    vec![tool.with_description("Returns the text of a file.")]
}

fn request(provider: Provider, messages: &[Message]) -> Value {
    let mut request = provider.request(messages);
    request.insert("tools".to_owned(), provider.tools(&tools()).into());
    Value::Object(request)
}

/// Requests for the external check, one in each line, by provider.
#[derive(Default)]
struct Written {
    lines: BTreeMap<&'static str, String>,
}

impl Written {
    fn add(&mut self, provider: Provider, request: &Value) {
        if std::env::var_os("AGENT_MEMORY_REQUESTS").is_some() {
            let lines = self.lines.entry(provider.name()).or_default();
            writeln!(lines, "{request}").unwrap();
        }
    }

    fn finish(self) {
        let Some(folder) = std::env::var_os("AGENT_MEMORY_REQUESTS").map(PathBuf::from) else {
            return;
        };
        for (provider, lines) in self.lines {
            let path = folder.join(format!("corpus.{provider}.jsonl"));
            let mut file = std::fs::File::create(path).unwrap();
            file.write_all(lines.as_bytes()).unwrap();
        }
    }
}

/// Returns the texts of messages that every provider's format can represent.
fn texts(messages: &[Message]) -> Vec<String> {
    let mut texts = Vec::new();
    for part in messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::Text { text } => texts.push(text.trim().to_owned()),
            Part::ToolResult { content, .. } => match content {
                ResultContent::Text(text) => texts.push(text.trim().to_owned()),
                ResultContent::Parts(parts) => {
                    let text = |part: &Part| match part {
                        Part::Text { text } => Some(text.trim().to_owned()),
                        _ => None,
                    };
                    texts.extend(parts.iter().filter_map(text));
                }
            },
            _ => {}
        }
    }
    texts.retain(|text| !text.is_empty());
    texts.sort();
    texts
}

/// Returns the texts in `sent` that are missing in `read`. A text that occurs several times is counted each time.
fn missing(sent: &[String], read: &[String]) -> Vec<String> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for text in read {
        *left.entry(text).or_default() += 1;
    }
    let gone = sent
        .iter()
        .filter(|text| match left.get_mut(text.as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
    gone.cloned().collect()
}

#[derive(Default)]
struct Table {
    failures: Vec<String>,
    written: Written,
}

impl Table {
    fn check(&mut self, name: &str, messages: &[Message], same_texts: bool) {
        for provider in Provider::ALL {
            let request = request(provider, messages);
            for finding in findings(provider, &request).into_iter().take(3) {
                let provider = provider.name();
                self.failures.push(format!("{name}, {provider}: {finding}"));
            }
            if same_texts {
                let read = provider.read_request(&request).unwrap();
                for text in missing(&texts(messages), &texts(&read)) {
                    let text: String = text.chars().take(80).collect();
                    let provider = provider.name();
                    self.failures
                        .push(format!("{name}, {provider}: lost {text:?}"));
                }
            }
            self.written.add(provider, &request);
        }
    }
}

async fn check_session(session: &Session, name: &str, table: &mut Table) {
    let log = session.entries().await.unwrap();
    let log: Vec<Message> = log.into_iter().map(|entry| entry.message).collect();
    // The whole log, as it came: unpaired calls are repaired, so texts may be added.
    table.check(&format!("{name}, log"), &log, false);
    for budget in BUDGETS {
        let context = session.assemble(Budget::tokens(budget)).await.unwrap();
        table.check(&format!("{name}, {budget}"), &context.to_messages(), true);
    }
}

#[tokio::test]
async fn every_context_of_every_transcript_is_accepted_in_every_shape() {
    let Some(corpus) = corpus() else { return };
    let mut table = Table::default();
    for path in transcripts(&corpus) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let memory = Memory::in_memory().await.unwrap();
        let transcript = parse(&std::fs::read(&path).unwrap());
        for imported in memory.import(&transcript).await.unwrap().sessions {
            let session = memory
                .get_session(imported.session)
                .system("You are a careful engineer.")
                .tools(tools())
                .await
                .unwrap();
            check_session(&session, &name, &mut table).await;
            session.compact(Mode::Full).await.unwrap();
            check_session(&session, &format!("{name}, compacted"), &mut table).await;
        }
    }
    table.written.finish();
    let failures = table.failures;
    assert!(
        failures.is_empty(),
        "{} findings\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
}
