//! `view`: shows the versions of a session's view, and reverts to earlier ones.

use std::path::Path;

use agent_memory::{
    Seq, SeqRange, Session,
    model::{Span, SpanBody, Timestamp, ViewVersion},
    store::{Publication, Published},
    view::{Change, NodeKind, TreeNode, ViewAtVersion},
};
use serde::Serialize;
use serde_json::json;

use super::show::label;
use crate::app::App;
use crate::args::View;
use crate::error::{Failure, Kind};
use crate::output::{clip, count, note, number, one_line};
use crate::page::{self, Page};
use crate::redact::{self, Redactor};

/// Number of publications (changes to a view) in one read.
const PAGE: usize = 256;

/// Maximum length of a span's topic, in characters.
const TOPIC: usize = 72;

#[derive(Debug, Serialize)]
struct ViewReport {
    session: String,
    view: String,
    version: u64,
    newest: u64,
    head: u32,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reverted: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spans: Option<Vec<Node>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Diff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<Vec<Version>>,
}

#[derive(Debug, Serialize)]
struct Diff {
    from: u64,
    to: u64,
    tokens: [u64; 2],
    changes: Vec<Changed>,
}

#[derive(Debug, Serialize)]
struct Changed {
    first: u32,
    last: u32,
    before: Vec<Node>,
    after: Vec<Node>,
}

#[derive(Debug, Serialize)]
struct Node {
    kind: NodeKind,
    first: u32,
    last: u32,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Node>,
}

#[derive(Debug, Serialize)]
struct Version {
    version: u64,
    first: u32,
    last: u32,
    removed: usize,
    added: usize,
    created_at: String,
}

pub(crate) async fn run(app: &mut App, args: &View) -> anyhow::Result<()> {
    if let Some(path) = &args.html {
        return html(app, args, path).await;
    }
    let memory = match args.revert_to {
        None => app.open().await?,
        Some(_) => app.open_to_change().await?,
    };
    let session = app.session(&memory, &args.session).await?;
    let reverted = match args.revert_to {
        None => None,
        Some(version) => Some(revert_to(&session, version).await?),
    };
    let current = session.current_view().await?;
    let newest = current.version().0;
    let shown = match args.at {
        None => current,
        Some(version) => session.view_at(ViewVersion(version)).await?,
    };
    let versions = match args.history {
        true => Some(history(&session).await?),
        false => None,
    };
    let snapshot = shown.snapshot();
    let mut answer = ViewReport {
        session: session.key().to_string(),
        view: snapshot.view.to_string(),
        version: snapshot.version.0,
        newest,
        head: snapshot.head.0,
        tokens: shown.tokens(),
        reverted,
        spans: None,
        diff: None,
        versions,
    };
    let mut text = heading(&answer);
    match args.diff {
        Some(version) => {
            let other = session.view_at(ViewVersion(version)).await?;
            let changes = other.diff(&shown).await?;
            text.push_str(&diff_text(&other, &shown, &changes));
            answer.diff = Some(diff(&other, &shown, changes));
        }
        None => {
            let tree = shown.tree(args.depth).await?;
            if !app.json {
                let about = About::of(&session, snapshot.head).await?;
                branches(&tree.nodes, "", &about, &mut text);
            }
            answer.spans = Some(tree.nodes.into_iter().map(node).collect());
        }
    }
    for version in answer.versions.iter().flatten() {
        text.push_str(&format!(
            "version {} of {}: {} for {} over messages {}-{}\n",
            version.version,
            version.created_at,
            count(version.added as u64, "row", "rows"),
            number(version.removed as u64),
            version.first,
            version.last,
        ));
    }
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    Ok(app.out.text(&text)?)
}

/// Writes the session as an HTML page.
async fn html(app: &mut App, args: &View, path: &Path) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let redactor = (!args.no_redact).then(Redactor::new).transpose()?;
    let page = Page::of(&memory, &session, redactor.as_ref()).await?;
    memory.close().await?;
    if let Some(redactor) = &redactor {
        note(&redactor.report());
    }
    if path == Path::new("-") {
        return Ok(app.out.raw(&page.html)?);
    }
    page::save(&page.html, path)?;
    if app.json {
        return Ok(app.out.json(&json!({
            "file": path.display().to_string(),
            "messages": page.messages,
            "views": page.views,
            "summaries": page.summaries,
            "redacted": redactor.as_ref().map(Redactor::counts),
        }))?);
    }
    Ok(app.out.line(&format!(
        "{}: {}, {}, {}",
        path.display(),
        count(page.messages as u64, "message", "messages"),
        count(page.views as u64, "view", "views"),
        count(page.summaries as u64, "summary", "summaries"),
    ))?)
}

async fn revert_to(session: &Session, version: u64) -> anyhow::Result<&'static str> {
    match session.revert_to(ViewVersion(version)).await? {
        Published::Done(_) => Ok("done"),
        Published::Already(_) => Ok("already"),
        Published::Lost { .. } | Published::Outdated => {
            let text = format!("another process changed the view of {}", session.key());
            let failure = Failure::new(Kind::DatabaseBusy, text);
            Err(failure.hint("nothing was changed: try again").into())
        }
    }
}

async fn history(session: &Session) -> anyhow::Result<Vec<Version>> {
    let mut out = Vec::new();
    let mut after = ViewVersion(0);
    loop {
        let page = session.publications(after, PAGE).await?;
        out.extend(page.items.iter().map(|publication: &Publication| Version {
            version: publication.version.0,
            first: publication.at.first.0,
            last: publication.at.last.0,
            removed: publication.removed.len(),
            added: publication.added.len(),
            created_at: publication.created_at.to_string(),
        }));
        match page.next {
            Some(next) => after = next,
            None => return Ok(out),
        }
    }
}

fn heading(answer: &ViewReport) -> String {
    let newest = match answer.newest {
        newest if newest == answer.version => String::new(),
        newest => format!(" (the latest is {newest})"),
    };
    let reverted = match answer.reverted {
        Some("already") => "Nothing to revert: the view shows the same spans now.\n",
        Some(_) => "Reverted: the latest version shows the spans of the earlier one.\n",
        None => "",
    };
    format!(
        "{reverted}View {} of {} version {}{newest}, {} for {}:\n",
        answer.view,
        one_line(&answer.session),
        answer.version,
        count(answer.tokens, "token", "tokens"),
        count(u64::from(answer.head), "entry", "entries"),
    )
}

/// Times and requests of a log, by which the spans of a view are recognized.
#[derive(Default)]
struct About {
    /// Time of each entry.
    times: Vec<Timestamp>,
    /// Requests with their positions.
    requests: Vec<(u32, String)>,
}

impl About {
    async fn of(session: &Session, head: Seq) -> anyhow::Result<Self> {
        let mut about = Self::default();
        let mut rest = SeqRange::new(Seq::FIRST, head);
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            for entry in &page.items {
                about.times.push(entry.message.created_at);
                let request = page::request(entry, &|text| redact::shown(None, text));
                about.requests.extend(request);
            }
            rest = page.next;
        }
        Ok(about)
    }

    /// Returns the time and the topic of a range; `None` if neither is known.
    fn line(&self, range: SeqRange) -> Option<String> {
        let (first, last) = (range.first.0, range.last.0);
        let times = self.times.iter().skip(first as usize - 1);
        let mut known = times
            .take(range.len() as usize)
            .filter(|time| time.is_known());
        let begin = known.next().map(|time| minute(*time));
        let end = known.next_back().map(|time| minute(*time));
        let end = end.filter(|end| begin.as_ref() != Some(end));
        let time = begin.map(|begin| match end {
            Some(end) => format!("{begin} to {end}"),
            None => begin,
        });
        let topic = page::asked(&self.requests, first, last).map(one_line);
        let topic = topic.map(|topic| clip(&topic, TOPIC).into_owned());
        match (time, topic) {
            (Some(time), Some(topic)) => Some(format!("{time}: {topic}")),
            (time, topic) => time.or(topic),
        }
    }
}

/// Returns a time without its seconds.
fn minute(time: Timestamp) -> String {
    let text = time.to_string();
    text.chars().take(16).collect::<String>().replace('T', " ")
}

/// Writes two lines for each of the nodes and for all nodes below them: the node itself, and its time and topic.
fn branches(nodes: &[TreeNode], indent: &str, about: &About, out: &mut String) {
    for (index, node) in nodes.iter().enumerate() {
        let (branch, below) = match index + 1 == nodes.len() {
            true => ("└─", "   "),
            false => ("├─", "│  "),
        };
        out.push_str(&format!("{indent}{branch} {}\n", label(node)));
        // A summary of messages alone has their range in its own line, so its children are not printed.
        let has_branches = node.children.iter().any(|child| child.summary.is_some());
        if let Some(line) = about.line(node.range) {
            let to_children = if has_branches { "│ " } else { "  " };
            out.push_str(&format!("{indent}{below}{to_children}{line}\n"));
        }
        if has_branches {
            branches(&node.children, &format!("{indent}{below}"), about, out);
        }
    }
}

fn diff_text(from: &ViewAtVersion, to: &ViewAtVersion, changes: &[Change]) -> String {
    let mut out = format!(
        "From version {} ({} tokens) to version {} ({} tokens):\n",
        from.version(),
        number(from.tokens()),
        to.version(),
        number(to.tokens()),
    );
    if changes.is_empty() {
        out.push_str("no difference\n");
    }
    for change in changes {
        out.push_str(&format!(
            "messages {}-{}\n",
            change.range.first, change.range.last
        ));
        for (sign, spans) in [("-", &change.before), ("+", &change.after)] {
            for span in spans {
                let shown = span_node(span, change.range.last);
                let id = shown.summary_id.as_deref().unwrap_or(shown.kind.as_str());
                out.push_str(&format!(
                    "  {sign} {id} {}-{}: {}\n",
                    shown.first,
                    shown.last,
                    count(shown.tokens, "token", "tokens"),
                ));
            }
        }
    }
    out
}

fn diff(from: &ViewAtVersion, to: &ViewAtVersion, changes: Vec<Change>) -> Diff {
    let changed = |change: Change| Changed {
        first: change.range.first.0,
        last: change.range.last.0,
        before: nodes(&change.before, change.range.last),
        after: nodes(&change.after, change.range.last),
    };
    Diff {
        from: from.version().0,
        to: to.version().0,
        tokens: [from.tokens(), to.tokens()],
        changes: changes.into_iter().map(changed).collect(),
    }
}

fn nodes(spans: &[Span], last: Seq) -> Vec<Node> {
    spans.iter().map(|span| span_node(span, last)).collect()
}

fn span_node(span: &Span, last: Seq) -> Node {
    let depth = match &span.body {
        SpanBody::Summary { depth, .. } => Some(*depth),
        _ => None,
    };
    Node {
        kind: NodeKind::from(&span.body),
        first: span.range.first.0,
        last: span.range.last.unwrap_or(last).0,
        tokens: span.tokens,
        summary_id: span.body.summary().map(ToString::to_string),
        depth,
        children: Vec::new(),
    }
}

fn node(node: TreeNode) -> Node {
    Node {
        kind: node.kind,
        first: node.range.first.0,
        last: node.range.last.0,
        tokens: node.tokens,
        summary_id: node.summary.as_ref().map(|summary| summary.id.to_string()),
        depth: node.summary.as_ref().map(|summary| summary.depth),
        children: node.children.into_iter().map(self::node).collect(),
    }
}
