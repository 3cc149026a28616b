//! Contexts of real transcripts in the formats of providers, checked by rules that were written from the providers'
//! documents, independently of the code that writes the formats.
//!
//! If `AGENT_MEMORY_REQUESTS` names a folder, the requests are written there, for `cargo xtask provider-types`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use agent_memory::model::{Media, MediaSource, ResultContent};
use agent_memory::providers::Provider;
use agent_memory::{Budget, Memory, Message, Mode, Part, RawJson, Role, Session, ToolDefinition};
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

/// Encodes bytes as Base64.
fn base64(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + 4);
    for three in bytes.chunks(3) {
        let at = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let held = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let digit = digits[(held >> (18 - 6 * place) & 63) as usize];
            out.push(if place > three.len() {
                '='
            } else {
                digit.into()
            });
        }
    }
    out
}

fn media(media_type: &str, data: String) -> Media {
    Media {
        media_type: media_type.to_owned(),
        source: MediaSource::Data(data),
    }
}

/// A PNG of this size in pixels, with at least `bytes` characters of Base64.
fn png((width, height): (u32, u32), bytes: usize) -> Part {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend(width.to_be_bytes());
    png.extend(height.to_be_bytes());
    png.resize(60, 0);
    let mut data = base64(&png);
    data.push_str(&"Ab3/".repeat(bytes.saturating_sub(data.len()) / 4));
    Part::Image(media("image/png", data))
}

fn pdf(pages: usize) -> Part {
    let pages = "<</Type/Page/Parent 2 0 R>>\n".repeat(pages);
    let text = format!("%PDF-1.4\n1 0 obj\n<</Type/Pages>>\nendobj\n{pages}");
    Part::File(media("application/pdf", base64(text.as_bytes())))
}

/// A conversation with these media in results of tools, and `requested` in the request that is being worked on.
fn with_media(in_results: Vec<Part>, requested: Vec<Part>) -> Vec<Message> {
    let mut messages = vec![
        Message::user("Look at each page."),
        Message::assistant("Now."),
    ];
    let mut parts = requested;
    parts.push(Part::text("Compare these with the pages."));
    let request = Message::new(Role::User, parts);
    let half = in_results.len() / 2;
    for (n, part) in in_results.into_iter().enumerate() {
        if n == half {
            messages.push(request.clone());
        }
        let id = format!("call{n}");
        messages.push(Message::tool_call(
            &id,
            "read_file",
            RawJson::parse("{}").unwrap(),
        ));
        let content = ResultContent::Parts(vec![Part::text(format!("page {n}")), part]);
        let result = Part::ToolResult {
            call_id: id,
            content,
            is_error: None,
        };
        messages.push(Message::new(Role::Tool, vec![result]));
    }
    if half == 0 {
        messages.push(request);
    }
    messages
}

/// Returns the rules on sizes that a request breaks.
fn broken(provider: Provider, request: Value) -> BTreeSet<&'static str> {
    let findings = provider_rules::sizes(provider.name(), &request);
    findings.iter().map(|finding| finding.rule).collect()
}

/// Returns the numbers of pictures and documents in a request.
fn counted(request: &Value) -> (usize, usize) {
    let text = request.to_string();
    (
        text.matches("iVBORw0KGgo").count(),
        text.matches("JVBERi").count(),
    )
}

#[tokio::test]
async fn media_beyond_each_limit_are_left_out_and_the_request_stays() {
    let small = || png((900, 700), 0);
    let many = |count, part: &dyn Fn() -> Part| (0..count).map(|_| part()).collect::<Vec<_>>();
    let wide = || png((2_560, 1_440), 0);
    let heavy = |bytes: usize| move || png((900, 700), bytes);
    let three = || vec![small(), small(), small()];
    let mut mixed = many(60, &small);
    mixed.extend([pdf(30), pdf(20)]);
    let mut sides = many(30, &small);
    sides.extend(many(9, &wide));
    // The provider, the media in results and in the request, the rule that they break, and what is sent: the numbers of
    // pictures and of documents.
    let cases = [
        (
            Provider::Anthropic,
            many(120, &small),
            three(),
            "picture-count",
            (100, 0),
        ),
        (
            Provider::Anthropic,
            sides,
            three(),
            "many-pictures",
            (33, 0),
        ),
        (
            Provider::Anthropic,
            many(21, &wide),
            vec![wide(), wide()],
            "many-pictures",
            (20, 0),
        ),
        (
            Provider::Anthropic,
            vec![png((8_001, 9), 0), small()],
            vec![],
            "picture-side",
            (1, 0),
        ),
        (
            Provider::Anthropic,
            vec![heavy(6_000_000)(), small()],
            vec![],
            "picture-bytes",
            (1, 0),
        ),
        (
            Provider::Anthropic,
            vec![pdf(60), pdf(30)],
            vec![pdf(50)],
            "document-pages",
            (0, 2),
        ),
        (
            Provider::Anthropic,
            mixed,
            three(),
            "picture-count",
            (50, 2),
        ),
        (
            Provider::Anthropic,
            many(12, &heavy(2_900_000)),
            vec![],
            "request-bytes",
            (10, 0),
        ),
        (
            Provider::OpenAi,
            many(505, &small),
            three(),
            "picture-count",
            (500, 0),
        ),
        (
            Provider::OpenAi,
            vec![heavy(20_400_000)(), small()],
            vec![],
            "picture-bytes",
            (1, 0),
        ),
        (
            Provider::Responses,
            many(3, &heavy(17_000_000)),
            vec![],
            "request-bytes",
            (2, 0),
        ),
        (
            Provider::Gemini,
            many(7, &heavy(3_000_000)),
            vec![],
            "request-bytes",
            (6, 0),
        ),
        (
            Provider::Gemini,
            vec![pdf(900), small()],
            vec![pdf(200)],
            "document-pages",
            (1, 1),
        ),
    ];
    let memory = Memory::in_memory().await.unwrap();
    for (n, (provider, in_results, requested, rule, sent)) in cases.into_iter().enumerate() {
        let messages = with_media(in_results, requested.clone());
        let free = Value::Object(provider.request_of(&messages));
        assert!(
            broken(provider, free).contains(rule),
            "{n}: {rule} does not bind"
        );
        let written = Value::Object(provider.request(&messages));
        let session = memory.session(format!("s{n}")).await.unwrap();
        let is_light = !["request-bytes", "picture-bytes"].contains(&rule);
        let mut requests = vec![written];
        // The store need not hold all these bytes.
        if is_light {
            let _ = session.ingest_batch(messages).await.unwrap();
            let context = session.assemble(Budget::tokens(100_000_000)).await.unwrap();
            requests.push(Value::Object(context.to_request(provider)));
        }
        for request in requests {
            assert_eq!(
                broken(provider, request.clone()),
                BTreeSet::new(),
                "{n}: {rule}"
            );
            assert_eq!(findings(provider, &request), [], "{n}: {rule}");
            assert_eq!(counted(&request), sent, "{n}: {rule}");
            let text = request.to_string();
            assert!(text.contains("left out"), "{n}: {rule}");
            for part in &requested {
                let (Part::Image(one) | Part::File(one)) = part else {
                    panic!("{part:?}");
                };
                let MediaSource::Data(data) = &one.source else {
                    panic!("{one:?}");
                };
                assert!(
                    text.contains(data.as_str()),
                    "{n}: {rule}: a part of the request"
                );
            }
        }
    }
}
