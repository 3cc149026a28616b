//! Writes a session as one HTML page: its log, its views, and what contexts of several sizes show of it.
//!
//! The page loads nothing from elsewhere. Its data is JSON in elements of the type `application/json`, which browsers do
//! not run, and its script shows each text as text only. The policy in its head allows only the page's own script and
//! style, by their hashes.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use agent_memory::context::{
    AssembleRequest, AssemblyPolicy, DegradationStep, MessageOrigin, Receipt,
};
use agent_memory::model::{
    AgentConventions as _, EntryKind, LogEntry, MediaSource, ResultContent, Summary,
};
use agent_memory::transcripts::KnownAgents;
use agent_memory::view::{NodeKind, TreeNode};
use agent_memory::{Budget, Context, Memory, Message, Part, Role, Session, Strategy};
use base64::Engine as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::error::{Failure, Kind};
use crate::files;
use crate::output::{bytes, clip, escaped_json};
use crate::redact::{self, Redactor};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Sizes of the contexts that the page describes, in tokens. Those as large as the log are left out.
const BUDGETS: [u64; 6] = [4_000, 8_000, 16_000, 32_000, 64_000, 128_000];

/// Maximum number of characters of a topic.
const TOPIC: usize = 200;

/// Number of requests at the beginning of a range of which one is its topic.
const REQUESTS: usize = 6;

/// Data of the page except the messages.
#[derive(Debug, Serialize)]
struct Data<'a> {
    session: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    tokens: u64,
    log: Log,
    views: Vec<View>,
    summaries: BTreeMap<String, Written>,
    contexts: Vec<Shares>,
    /// Numbers of different values that marks replace, by kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<BTreeMap<&'static str, usize>>,
}

/// Columns with one value for each entry of the log, so that the page knows them before it reads the messages.
#[derive(Debug, Default, Serialize)]
struct Log {
    /// One letter for each entry: see [`letter`].
    letters: String,
    tokens: Vec<u64>,
    /// Times in milliseconds since the Unix epoch; 0 if unknown.
    times: Vec<i64>,
}

#[derive(Debug, Serialize)]
struct View {
    name: &'static str,
    tokens: u64,
    /// Whether the session is compacted by this strategy now.
    current: bool,
    spans: Vec<Node>,
}

/// A span of a view, or a child of a summary.
#[derive(Debug, Serialize)]
struct Node {
    kind: NodeKind,
    first: u32,
    last: u32,
    tokens: u64,
    topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Node>,
}

/// The text of a summary, and facts about it.
#[derive(Debug, Serialize)]
struct Written {
    text: String,
    depth: u32,
    provisional: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

/// The parts of the log that a context shows, shortens and leaves out.
#[derive(Debug, Serialize)]
struct Shares {
    view: &'static str,
    budget: u64,
    tokens: u64,
    /// Ranges of messages with the same state, in order.
    runs: Vec<(u32, u32, State)>,
    /// Summaries of the context.
    summaries: Vec<ShownSummary>,
}

/// State of a message in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Whole,
    Shortened,
    Summary,
    LeftOut,
    /// A note, which no context shows.
    Note,
}

#[derive(Debug, Serialize)]
struct ShownSummary {
    id: String,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<(usize, usize)>,
}

/// An entry of the log with its content.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    seq: u32,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    parts: Vec<Piece<'a>>,
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Reasoning {
        text: Cow<'a, str>,
    },
    Call {
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    Result {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
    /// A picture or a file: its type and size, or its address. The page has no bytes of it.
    Media {
        text: Cow<'a, str>,
    },
    /// A part of an unknown type, as its JSON text.
    Other {
        text: Cow<'a, str>,
    },
}

/// Returns a text as the page shows it. Every text of a transcript and of a summary passes through such a function
/// before it is written.
type Shown<'f> = &'f dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// A finished page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) html: Vec<u8>,
    pub(crate) messages: usize,
    pub(crate) views: usize,
    pub(crate) summaries: usize,
}

impl Page {
    /// Reads a session and its views, and renders the page. Without a redactor its texts are unchanged.
    pub(crate) async fn of(
        memory: &Memory,
        session: &Session,
        redactor: Option<&Redactor>,
    ) -> anyhow::Result<Self> {
        let shown: Shown<'_> = &|text| redact::shown(redactor, text);
        let info = session.info().await?;
        // Messages that other processes append meanwhile are not on the page.
        let head = info.conversation.head;
        let stored = |strategy: &Strategy| {
            let mut views = info.views.iter();
            views.any(|view| view.name.as_str() == strategy.as_str())
        };
        let mut strategies: Vec<Strategy> = Strategy::ALL.into_iter().filter(stored).collect();
        if strategies.is_empty() {
            strategies.extend(session.strategy());
        }
        let mut views = Vec::new();
        for strategy in strategies {
            let open = memory.get_session(session.key().clone()).strategy(strategy);
            let view = open.await?.current_view().await?.up_to(head).await?;
            let tree = view.tree(usize::MAX).await?;
            views.push((strategy, view, tree.nodes));
        }
        if let Some(redactor) = redactor {
            redactor.learn_session(session).await?;
            for (.., nodes) in &views {
                learn(redactor, nodes);
            }
        }
        let mut log = Log::default();
        let mut requests = Vec::new();
        let mut messages = Vec::new();
        let mut rest = info.conversation.range();
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            for entry in &page.items {
                log.push(entry);
                requests.extend(request(entry, shown));
            }
            let entries: Vec<Entry<'_>> =
                page.items.iter().map(|one| Entry::of(one, shown)).collect();
            let (first, last) = (range.first, entries.last().map_or(0, |entry| entry.seq));
            let attributes =
                format!("class=\"messages\" data-first=\"{first}\" data-last=\"{last}\"");
            element(&mut messages, &attributes, &entries)?;
            rest = page.next;
        }
        let tokens = log
            .tokens
            .iter()
            .fold(0, |sum: u64, one| sum.saturating_add(*one));
        let mut data = Data {
            session: shown(session.key().as_str()),
            title: info.conversation.title.as_deref().map(shown),
            tokens,
            log,
            views: Vec::new(),
            summaries: BTreeMap::new(),
            contexts: Vec::new(),
            redacted: None,
        };
        for (strategy, view, nodes) in views {
            let mut tree_of = Outline {
                requests: &requests,
                shown,
                summaries: &mut data.summaries,
            };
            let spans = nodes.into_iter().map(|node| tree_of.node(node)).collect();
            data.views.push(View {
                name: strategy.as_str(),
                tokens: view.tokens(),
                current: session.strategy() == Some(strategy),
                spans,
            });
            for budget in BUDGETS.into_iter().filter(|budget| *budget < tokens) {
                let request = AssembleRequest::new(Budget::tokens(budget), AssemblyPolicy::once());
                match view.assemble(request).await {
                    Ok(context) => {
                        let shares = Shares::of(strategy, budget, &context, &data.log, shown);
                        data.contexts.push(shares);
                    }
                    // The last messages alone are larger.
                    Err(error) if error.budget_needed().is_some() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        data.redacted = redactor.map(Redactor::counts);
        let mut json = Vec::new();
        element(&mut json, "id=\"data\"", &data)?;
        json.append(&mut messages);
        Ok(Self {
            html: fill(PAGE, &data.session, STYLE, SCRIPT, &json),
            messages: data.log.tokens.len(),
            views: data.views.len(),
            summaries: data.summaries.len(),
        })
    }
}

/// Collects the values of summaries.
fn learn(redactor: &Redactor, nodes: &[TreeNode]) {
    for node in nodes {
        if let Some(summary) = &node.summary {
            redactor.learn(summary.body.text());
            redactor.learn(
                summary
                    .messages
                    .as_ref()
                    .map_or("", |messages| messages.as_str()),
            );
        }
        learn(redactor, &node.children);
    }
}

/// Writes a page into a new file that only its owner may read and write. The file is complete as soon as it exists.
pub(crate) fn save(html: &[u8], path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let text = format!("{} cannot be written: {error}", path.display());
        Failure::new(Kind::Invalid, text).hint("name a file that does not exist yet")
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file =
        tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    files::keep_private(file.as_file()).map_err(failed)?;
    file.write_all(html).map_err(failed)?;
    file.persist_noclobber(path)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

/// Renders a page without a script, with the style of all pages and more of its own. `body` is markup, and every text in
/// it is [`escaped`].
pub(crate) fn still(session: &str, style: &str, body: &str) -> Vec<u8> {
    let head = PAGE.split_once("<body>").map_or(PAGE, |(head, _)| head);
    let page = format!("{head}<body class=\"still\">\n{{{{data}}}}</body>\n</html>\n");
    fill(
        &page,
        session,
        &format!("{STYLE}{style}"),
        "",
        body.as_bytes(),
    )
}

/// Fills a page with its name, its style, its data and its script.
fn fill(page: &str, session: &str, style: &str, script: &str, data: &[u8]) -> Vec<u8> {
    let policy = policy(script, style);
    let title = escaped(&format!("{session} · agent-memory"));
    let mut html = Vec::with_capacity(page.len() + data.len() + script.len() + style.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        html.extend_from_slice(before.as_bytes());
        html.extend_from_slice(match name {
            "policy" => policy.as_bytes(),
            "title" => title.as_bytes(),
            "style" => style.as_bytes(),
            "script" => script.as_bytes(),
            _ => data,
        });
        rest = after;
    }
    html.extend_from_slice(rest.as_bytes());
    html
}

/// Returns the page's policy: nothing is loaded, and only its own script and style apply.
fn policy(script: &str, style: &str) -> String {
    let source = |text: &str| {
        let hash =
            base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()));
        format!("'sha256-{hash}'")
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        source(script),
        source(style)
    )
}

/// Escapes a text for an element of HTML.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let is_raw = |c: char| c == '\0' || ('\u{7f}'..='\u{9f}').contains(&c);
    text.replace(is_raw, "\u{fffd}")
}

/// Appends an element with a value as JSON. `<` occurs only in strings, and is escaped there, so that no text can end the
/// element.
fn element(out: &mut Vec<u8>, attributes: &str, value: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string(value)?.replace('<', "\\u003c");
    let json = json
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    let json = escaped_json(&json);
    writeln!(
        out,
        "<script type=\"application/json\" {attributes}>{json}</script>"
    )?;
    Ok(())
}

impl Log {
    fn push(&mut self, entry: &LogEntry) {
        self.letters.push(letter(entry));
        self.tokens.push(entry.tokens);
        self.times
            .push(entry.message.created_at.0.div_euclid(1_000));
    }
}

/// Returns the letter of an entry: `n` for a note, `c` for calls, `t` for results, `r` for reasoning alone, `p` for a
/// user's message that a program wrote, and the first letter of the role otherwise.
fn letter(entry: &LogEntry) -> char {
    let message = &entry.message;
    let has = |kind: fn(&Part) -> bool| message.parts.iter().any(kind);
    if message.kind == EntryKind::Note {
        'n'
    } else if has(|part| matches!(part, Part::ToolCall { .. })) {
        'c'
    } else if has(|part| matches!(part, Part::ToolResult { .. })) {
        't'
    } else {
        match message.role {
            Role::User if is_injected(message) => 'p',
            Role::User => 'u',
            Role::System => 's',
            Role::Tool => 't',
            _ if has(|part| !matches!(part, Part::Reasoning { .. })) => 'a',
            _ => 'r',
        }
    }
}

/// Returns the texts of a user's message: the part of each that a person typed, and whether a program added to it.
fn user_texts(message: &Message) -> impl Iterator<Item = (Cow<'_, str>, bool)> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text),
        _ => None,
    });
    texts.map(|text| {
        let text = KnownAgents.user_text(text, message.meta.as_ref());
        (text.typed, !text.injected.is_empty())
    })
}

/// Returns whether a program wrote all texts of a user's message.
fn is_injected(message: &Message) -> bool {
    let mut texts = user_texts(message).peekable();
    texts.peek().is_some() && texts.all(|(typed, is_added)| typed.trim().is_empty() && is_added)
}

/// Returns the position and the beginning of a request that a person typed; `None` for all other entries.
pub(crate) fn request(entry: &LogEntry, shown: Shown<'_>) -> Option<(u32, String)> {
    let message = &entry.message;
    if message.kind != EntryKind::Message || message.role != Role::User {
        return None;
    }
    let topic = user_texts(message).find_map(|(typed, _)| topic(&shown(&typed)))?;
    Some((entry.seq.0, topic))
}

/// Returns the first line of a text that says something, without marks of Markdown; `None` if there is none.
fn topic(text: &str) -> Option<String> {
    let lines = || {
        text.lines()
            .map(str::trim)
            .filter(|line| line.contains(char::is_alphanumeric))
    };
    let line = lines()
        .find(|line| !line.starts_with('#'))
        .or_else(|| lines().next())?;
    let line = line.trim_start_matches(|c: char| "#*->•` ".contains(c));
    Some(clip(line, TOPIC).into_owned())
}

/// Collects the trees of views and the summaries in them.
struct Outline<'a> {
    requests: &'a [(u32, String)],
    shown: Shown<'a>,
    summaries: &'a mut BTreeMap<String, Written>,
}

impl Outline<'_> {
    fn node(&mut self, node: TreeNode) -> Node {
        let (first, last) = (node.range.first.0, node.range.last.0);
        let children = node.children.into_iter();
        let children: Vec<Node> = children.map(|child| self.node(child)).collect();
        let topic = self.topic(first, last, node.summary.as_ref(), &children);
        if let Some(summary) = &node.summary {
            let written = Written::of(summary, self.shown);
            self.summaries.insert(self.id(summary), written);
        }
        Node {
            kind: node.kind,
            first,
            last,
            tokens: node.tokens,
            topic,
            summary: node.summary.as_ref().map(|summary| self.id(summary)),
            children,
        }
    }

    /// Returns the id of a summary, which is a hash of its content, as the page shows it.
    fn id(&self, summary: &Summary) -> String {
        (self.shown)(summary.id.as_str()).into_owned()
    }

    /// Returns the topic of a range: the beginning of a model's summary, the topics of several summaries, or the longest
    /// of the first requests in the range. Short requests, such as `Go on.`, have no topic.
    fn topic(&self, first: u32, last: u32, summary: Option<&Summary>, children: &[Node]) -> String {
        let text = |summary: &Summary| topic(&(self.shown)(summary.body.text()));
        let of_model = summary.filter(|summary| !summary.provisional);
        if let Some(topic) = of_model.and_then(text) {
            return topic;
        }
        let below = children.iter().filter(|child| child.summary.is_some());
        let below: Vec<&str> = below.map(|child| child.topic.as_str()).collect();
        if below.len() > 1 {
            let topics = below.iter().map(|topic| clip(topic, TOPIC / below.len()));
            return topics.collect::<Vec<_>>().join(" · ");
        }
        match asked(self.requests, first, last) {
            Some(topic) => topic.to_owned(),
            None => summary.and_then(text).unwrap_or_default(),
        }
    }
}

/// Returns the longest of the first requests from the position `first` to `last`; `None` if there is none. `requests`
/// has the requests of the log with their positions.
pub(crate) fn asked(requests: &[(u32, String)], first: u32, last: u32) -> Option<&str> {
    let from = requests.partition_point(|(seq, _)| *seq < first);
    let requests = requests.iter().skip(from);
    let requests = requests.take_while(|(seq, _)| *seq <= last).take(REQUESTS);
    let longest = requests.min_by_key(|(_, topic)| Reverse(topic.len()));
    longest.map(|(_, topic)| topic.as_str())
}

impl Written {
    fn of(summary: &Summary, shown: Shown<'_>) -> Self {
        let text = match (summary.body.text(), &summary.messages) {
            ("", Some(messages)) => messages.as_str(),
            (text, _) => text,
        };
        Self {
            text: shown(text).into_owned(),
            depth: summary.depth,
            provisional: summary.provisional,
            model: summary
                .model
                .as_deref()
                .map(|model| shown(model).into_owned()),
        }
    }
}

impl Shares {
    fn of(strategy: Strategy, budget: u64, context: &Context, log: &Log, shown: Shown<'_>) -> Self {
        let mut states = vec![State::LeftOut; log.tokens.len()];
        let mut summaries = Vec::new();
        let mut set = |first: u32, last: u32, state: State| {
            let from = (first as usize).saturating_sub(1);
            let range = states.get_mut(from..last as usize);
            range.into_iter().flatten().for_each(|one| *one = state);
        };
        for message in &context.messages {
            match &message.source {
                MessageOrigin::Message { first, last } | MessageOrigin::Quoted { first, last } => {
                    set(first.0, last.0, State::Whole);
                }
                MessageOrigin::Trimmed { first, last } => set(first.0, last.0, State::Shortened),
                MessageOrigin::Summary {
                    first,
                    last,
                    summary_id,
                } => {
                    set(first.0, last.0, State::Summary);
                    let mut shortened = context.receipt.shortened.iter();
                    let form = shortened.find(|form| form.summary_id == *summary_id);
                    summaries.push(ShownSummary {
                        id: shown(summary_id.as_str()).into_owned(),
                        tokens: message.tokens,
                        lines: form.map(|form| (form.lines, form.of_lines)),
                    });
                }
                _ => {}
            }
        }
        let Receipt {
            degraded, dropped, ..
        } = &context.receipt;
        for part in degraded {
            // A digest is one text for all of its messages.
            let state = match part.step {
                DegradationStep::Digest => State::Summary,
                _ => State::Shortened,
            };
            set(part.first.0, part.last.0, state);
        }
        for part in dropped {
            set(part.first.0, part.last.0, State::LeftOut);
        }
        let notes = log
            .letters
            .bytes()
            .zip(&mut states)
            .filter(|(letter, _)| *letter == b'n');
        notes.for_each(|(_, state)| *state = State::Note);
        let mut runs: Vec<(u32, u32, State)> = Vec::new();
        for (seq, state) in (1..).zip(states) {
            match runs.last_mut() {
                Some(run) if run.2 == state => run.1 = seq,
                _ => runs.push((seq, seq, state)),
            }
        }
        Self {
            view: strategy.as_str(),
            budget,
            tokens: context.tokens,
            runs,
            summaries,
        }
    }
}

impl<'a> Entry<'a> {
    fn of(entry: &'a LogEntry, shown: Shown<'_>) -> Self {
        let message = &entry.message;
        Self {
            seq: entry.seq.0,
            role: message.role,
            name: message.name.as_deref().map(shown),
            parts: message
                .parts
                .iter()
                .map(|part| Piece::of(part, shown))
                .collect(),
        }
    }
}

impl<'a> Piece<'a> {
    fn of(part: &'a Part, shown: Shown<'_>) -> Self {
        match part {
            Part::Text { text } => Piece::Text { text: shown(text) },
            Part::Reasoning { text, .. } => Piece::Reasoning { text: shown(text) },
            Part::ToolCall {
                name, arguments, ..
            } => Piece::Call {
                name: shown(name),
                arguments: shown(arguments.as_str()),
            },
            Part::ToolResult {
                content, is_error, ..
            } => Piece::Result {
                text: result(content, shown),
                failed: *is_error == Some(true),
            },
            Part::Image(media) | Part::File(media) => {
                let text = match &media.source {
                    MediaSource::Url(url) => format!("{} at {url}", media.media_type),
                    MediaSource::Data(data) => {
                        format!("{}, {}", media.media_type, bytes(data.len() as u64 / 4 * 3))
                    }
                };
                Piece::Media {
                    text: Cow::Owned(shown(&text).into_owned()),
                }
            }
            Part::Unknown { raw } => Piece::Other {
                text: shown(raw.as_str()),
            },
        }
    }
}

/// Returns the text of a tool's result, with a line for each picture and file.
fn result<'a>(content: &'a ResultContent, shown: Shown<'_>) -> Cow<'a, str> {
    let parts = match content {
        ResultContent::Text(text) => return shown(text),
        ResultContent::Parts(parts) => parts,
    };
    let texts = parts.iter().map(|part| match Piece::of(part, shown) {
        Piece::Text { text }
        | Piece::Reasoning { text }
        | Piece::Result { text, .. }
        | Piece::Media { text }
        | Piece::Other { text } => text,
        Piece::Call { name, arguments } => Cow::Owned(format!("{name} {arguments}")),
    });
    Cow::Owned(texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use agent_memory::{Mode, testing};

    use super::*;

    #[tokio::test]
    async fn every_text_is_redacted() -> anyhow::Result<()> {
        let memory = testing::memory().open().await?;
        let session = memory.session("hunter2@corp.net").await?;
        let part = |json: &str| serde_json::from_str::<Part>(json);
        for n in 1..=40 {
            let text = format!("Step {n}: the address is hunter2@corp.net. ").repeat(8);
            let mut parts = vec![Part::text(text.clone())];
            parts.push(part(
                r#"{"type":"image","media_type":"image/png","url":"x:hunter2@corp.net"}"#,
            )?);
            parts.push(part(r#"{"type":"hunter2@corp.net"}"#)?);
            let user = Message::new(Role::User, parts).with_name("hunter2@corp.net");
            session.ingest(user).await?;
            let call = r#"{"type":"tool_call","id":"a","name":"hunter2@corp.net","arguments":{"hunter2@corp.net":"hunter2@corp.net"}}"#;
            let reasoning = part(r#"{"type":"reasoning","text":"hunter2@corp.net"}"#)?;
            let calls = vec![
                reasoning,
                part(&call.replace("\"a\"", &format!("\"{n}\"")))?,
            ];
            session.ingest(Message::new(Role::Assistant, calls)).await?;
            session
                .ingest(Message::tool_result(n.to_string(), text))
                .await?;
        }
        session.compact(Mode::Full).await?;
        let page = Page::of(&memory, &session, Some(&Redactor::new()?)).await?;
        let html = String::from_utf8(page.html)?;
        assert!(page.summaries > 0 && html.contains("the address is [redacted:email 1]"));
        assert!(!html.contains("hunter2"));
        Ok(())
    }
}
