//! Text output of `compact`: the tree of summaries, the size of a context, and commands to continue with.

use std::fmt::Write as _;

use agent_memory::view::ViewAtVersion;
use agent_memory::{
    Context, Role, Seq, SeqRange, Session,
    model::EntryKind,
    store::Order,
    view::{NodeKind, TreeNode, TreeRequest},
};

use crate::output::{count, number};
use crate::redact::Redactor;

/// Maximum number of spans in the tree. The latest are shown.
const SPANS: usize = 16;
/// Maximum number of children below a summary in the tree. The latest are shown.
const CHILDREN: usize = 4;

/// Renders the latest spans of the view as a tree.
pub(crate) async fn tree(session: &Session) -> anyhow::Result<String> {
    let view = session.current_view().await?;
    let spans = view.spans().await?.len();
    let newest = TreeRequest {
        order: Order::NewestFirst,
        limit: SPANS,
        ..TreeRequest::new(1)
    };
    let mut nodes = view.tree_page(&newest).await?.nodes;
    nodes.reverse();
    let mut out = format!(
        "View {} version {}, {}:\n",
        view.snapshot().view,
        view.version(),
        count(spans as u64, "span", "spans")
    );
    let older = spans.saturating_sub(nodes.len());
    if older > 0 {
        let _ = writeln!(out, "├─ … {} older", number(older as u64));
    }
    for (index, node) in nodes.iter().enumerate() {
        let last = index + 1 == nodes.len();
        let (branch, below) = if last {
            ("└─", "   ")
        } else {
            ("├─", "│  ")
        };
        let _ = writeln!(out, "{branch} {}", label(node));
        // A summary of messages alone has their range in its own line, so its children are not printed.
        if node.children.iter().all(|child| child.summary.is_none()) {
            continue;
        }
        let older = node.children.len().saturating_sub(CHILDREN);
        let children = node.children.get(older..).unwrap_or_default();
        if older > 0 {
            let _ = writeln!(out, "{below}├─ … {} older", number(older as u64));
        }
        for (index, child) in children.iter().enumerate() {
            let last = index + 1 == children.len();
            let branch = if last { "└─" } else { "├─" };
            let _ = writeln!(out, "{below}{branch} {}", label(child));
        }
    }
    Ok(out)
}

pub(crate) fn label(node: &TreeNode) -> String {
    let (first, last) = (node.range.first, node.range.last);
    let tokens = count(node.tokens, "token", "tokens");
    let Some(summary) = &node.summary else {
        let how = match node.kind {
            NodeKind::Raw => "as they are",
            kind => kind.as_str(),
        };
        return format!("messages {first}-{last}, {how}: {tokens}");
    };
    let provisional = if summary.provisional {
        ", provisional"
    } else {
        ""
    };
    format!(
        "{} {} of messages {first}-{last}: {tokens} for {}{provisional}",
        summary.id,
        summary.kind(),
        number(summary.source_tokens),
    )
}

/// Returns the line about a context.
pub(crate) fn context(context: &Context) -> String {
    format!(
        "A context for a budget of {} has {} in {}.",
        count(context.budget, "token", "tokens"),
        count(context.tokens, "token", "tokens"),
        count(context.messages.len() as u64, "message", "messages")
    )
}

/// Returns commands to continue with, each with arguments from this session: ids, or a word to search for.
/// No word is of a secret that the redactor found so far, or finds in the message.
pub(crate) async fn next_commands(
    view: &ViewAtVersion,
    redactor: &Redactor,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut out = Vec::new();
    if let Some(word) = search_word(view.session(), redactor).await? {
        out.push(("grep", word));
    }
    let spans = view.spans().await?;
    let head = view.snapshot().head;
    if let Some(id) = spans.iter().rev().find_map(|span| span.body.summary()) {
        out.push(("expand", id.to_string()));
    } else if head >= Seq::FIRST {
        out.push(("expand", format!("messages:1-{}", head.min(Seq(3)))));
    }
    Ok(out)
}

/// Returns a word to search for: the longest word of the user's first message; `None` if there is no word.
async fn search_word(session: &Session, redactor: &Redactor) -> anyhow::Result<Option<String>> {
    let Some(range) = SeqRange::new(Seq::FIRST, Seq(50)) else {
        return Ok(None);
    };
    let page = session.entries_in(range).await?;
    let mut user_messages = page.items.iter().filter(|entry| {
        entry.kind == EntryKind::Message && entry.role == Role::User && !entry.text().is_empty()
    });
    let Some(message) = user_messages.next() else {
        return Ok(None);
    };
    let words = redactor.words(&message.text());
    let words = words
        .into_iter()
        .filter(|word| (2..=20).contains(&word.chars().count()));
    // If several words are longest, the first of them is used.
    Ok(words.reduce(
        |longest, word| match word.chars().count() > longest.chars().count() {
            true => word,
            false => longest,
        },
    ))
}
