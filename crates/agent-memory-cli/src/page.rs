//! Writes a session as one HTML page: its log, its views, and what contexts of several sizes show of it.
//!
//! The page loads nothing from elsewhere. Its data is JSON in elements of the type `application/json`, which browsers do
//! not run, and its script shows each text as text only. The policy in its head allows only the page's own script and
//! style, by their hashes.

mod html;
mod log;
mod messages;
mod outline;
mod requests;
mod shares;

use std::borrow::Cow;
use std::collections::BTreeMap;

use agent_memory::context::{AssembleRequest, AssemblyPolicy};
use agent_memory::store::SessionInfo;
use agent_memory::view::{TreeNode, ViewAtVersion};
use agent_memory::{Budget, Memory, Session, Strategy};
use serde::Serialize;

use self::html::{PAGE, SCRIPT, STYLE, element, fill};
pub(crate) use self::html::{escaped, save, still};
use self::log::Log;
use self::messages::{Entry, Shown};
use self::outline::{Node, Outline, Written, learn};
pub(crate) use self::requests::{asked, request};
use self::shares::Shares;
use crate::redact::{self, Redactor};

/// Sizes of the contexts that the page describes, in tokens. Those as large as the log are left out.
const BUDGETS: [u64; 6] = [4_000, 8_000, 16_000, 32_000, 64_000, 128_000];

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

#[derive(Debug, Serialize)]
struct View {
    name: &'static str,
    tokens: u64,
    /// Whether the session is compacted by this strategy now.
    current: bool,
    spans: Vec<Node>,
}

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
        let views = views(memory, session, &info).await?;
        if let Some(redactor) = redactor {
            redactor.learn_session(session).await?;
            for (.., nodes) in &views {
                learn(redactor, nodes);
            }
        }
        let Messages {
            log,
            requests,
            mut html,
        } = Messages::read(session, &info, shown).await?;
        let mut data = Data {
            session: shown(session.key().as_str()),
            title: info.conversation.title.as_deref().map(shown),
            tokens: log.total(),
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
            let contexts = contexts(strategy, &view, &data.log, shown).await?;
            data.contexts.extend(contexts);
        }
        data.redacted = redactor.map(Redactor::counts);
        let mut json = Vec::new();
        element(&mut json, "id=\"data\"", &data)?;
        json.append(&mut html);
        Ok(Self {
            html: fill(PAGE, &data.session, STYLE, SCRIPT, &json),
            messages: data.log.tokens.len(),
            views: data.views.len(),
            summaries: data.summaries.len(),
        })
    }
}

/// Returns the stored views of a session. If none is stored, returns the view of its strategy.
async fn views(
    memory: &Memory,
    session: &Session,
    info: &SessionInfo,
) -> anyhow::Result<Vec<(Strategy, ViewAtVersion, Vec<TreeNode>)>> {
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
    Ok(views)
}

/// The messages of a session as elements of the page, and their columns and requests.
#[derive(Default)]
struct Messages {
    log: Log,
    requests: Vec<(u32, String)>,
    html: Vec<u8>,
}

impl Messages {
    async fn read(session: &Session, info: &SessionInfo, shown: Shown<'_>) -> anyhow::Result<Self> {
        let mut messages = Self::default();
        let mut rest = info.conversation.range();
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            for entry in &page.items {
                messages.log.push(entry);
                messages.requests.extend(request(entry, shown));
            }
            let entries: Vec<Entry<'_>> =
                page.items.iter().map(|one| Entry::of(one, shown)).collect();
            let (first, last) = (range.first, entries.last().map_or(0, |entry| entry.seq));
            let attributes =
                format!("class=\"messages\" data-first=\"{first}\" data-last=\"{last}\"");
            element(&mut messages.html, &attributes, &entries)?;
            rest = page.next;
        }
        Ok(messages)
    }
}

/// Returns the shares of a log in contexts of several sizes that are made from a view.
async fn contexts(
    strategy: Strategy,
    view: &ViewAtVersion,
    log: &Log,
    shown: Shown<'_>,
) -> anyhow::Result<Vec<Shares>> {
    let tokens = log.total();
    let mut contexts = Vec::new();
    for budget in BUDGETS.into_iter().filter(|budget| *budget < tokens) {
        let request = AssembleRequest::new(Budget::tokens(budget), AssemblyPolicy::once());
        match view.assemble(request).await {
            Ok(context) => contexts.push(Shares::of(strategy, budget, &context, log, shown)),
            // The last messages alone are larger.
            Err(error) if error.budget_needed().is_some() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(contexts)
}

#[cfg(test)]
mod tests {
    use agent_memory::{Message, Mode, Part, Role, testing};

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
