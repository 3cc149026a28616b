//! What `compact` shows of a session: its tree, a context, and what to do next.

use std::fmt::Write as _;

use agent_memory::{
    Context, ContextMessage, EntryKind, Role, Seq, SeqRange, Session, Source, TreeNode,
};
use context_assembler::render_text;

use super::context::receipt;
use crate::output::{clip, count, number};

/// How many spans are shown, the newest.
const SPANS: usize = 16;
/// How many children of a summary are shown, the newest.
const CHILDREN: usize = 4;
/// How many messages of a context are shown, from its beginning and its end.
const MESSAGES: (usize, usize) = (4, 12);
/// How much of a message is shown: lines, and characters of a line.
const LINES: usize = 6;
const SUMMARY_LINES: usize = 16;
const CHARS: usize = 100;

/// The view as a tree, the newest spans of it.
pub(crate) async fn tree(session: &Session) -> anyhow::Result<String> {
    let snapshot = session.snapshot().await?;
    let tree = session.tree(1).await?;
    let older = tree.nodes.len().saturating_sub(SPANS);
    let shown = tree.nodes.get(older..).unwrap_or_default();
    let mut out = format!(
        "View {} version {}, {}:\n",
        snapshot.view,
        snapshot.version,
        count(tree.nodes.len() as u64, "span", "spans")
    );
    if older > 0 {
        let _ = writeln!(out, "├─ … {} older", number(older as u64));
    }
    for (index, node) in shown.iter().enumerate() {
        let last = index + 1 == shown.len();
        let (branch, below) = if last {
            ("└─", "   ")
        } else {
            ("├─", "│  ")
        };
        let _ = writeln!(out, "{branch} {}", label(node));
        // A leaf is made from messages: they are what its label says.
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
            "raw" => "as they are",
            other => other,
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

/// A context, clipped; `command` shows all of it.
pub(crate) fn context(command: String, context: &Context) -> String {
    let messages = &context.messages;
    let mut out = format!(
        "Context of {} for a budget of {} ({}):\n",
        count(context.tokens, "token", "tokens"),
        number(context.budget),
        count(messages.len() as u64, "message", "messages")
    );
    let (head, tail) = MESSAGES;
    let left_out = messages.len().saturating_sub(head + tail);
    let mut clipped = left_out > 0;
    for (index, message) in messages.iter().enumerate() {
        if left_out > 0 && index == head {
            let _ = writeln!(
                out,
                "… {} not shown",
                count(left_out as u64, "message", "messages")
            );
        }
        if left_out > 0 && (head..head + left_out).contains(&index) {
            continue;
        }
        clipped |= shortened(message, &mut out);
    }
    out.push_str(&receipt(context));
    if clipped {
        let _ = writeln!(out, "Texts are clipped here. All of it: {command}");
    }
    out
}

/// Adds the beginning of a message; whether something was left out.
fn shortened(message: &ContextMessage, out: &mut String) -> bool {
    let text = render_text(std::slice::from_ref(message));
    let lines = match message.source {
        Source::Summary { .. } => SUMMARY_LINES,
        _ => LINES,
    };
    let mut clipped = false;
    for (index, line) in text.lines().enumerate() {
        if index > lines {
            clipped = true;
            out.push_str("    …\n");
            break;
        }
        let short = clip(line, CHARS);
        clipped |= short.len() != line.len();
        out.push_str(&short);
        out.push('\n');
    }
    clipped
}

/// How to go on from here, with this session's own ids and words: commands, and what they are
/// about beside the session.
pub(crate) async fn next(session: &Session) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut out = Vec::new();
    if let Some(word) = word(session).await? {
        out.push(("grep", word));
    }
    let spans = session.spans().await?;
    if let Some(id) = spans.iter().rev().find_map(|span| span.body.summary()) {
        out.push(("describe", id.to_string()));
        out.push(("expand", id.to_string()));
    }
    let head = session.snapshot().await?.head;
    if head >= Seq::FIRST {
        out.push(("expand", format!("messages:1-{}", head.min(Seq(3)))));
    }
    Ok(out)
}

/// A word worth looking for: the longest of the first thing that the user said.
async fn word(session: &Session) -> anyhow::Result<Option<String>> {
    let Some(range) = SeqRange::new(Seq::FIRST, Seq(50)) else {
        return Ok(None);
    };
    let page = session.log(range).await?;
    let mut said = page.items.iter().filter(|entry| {
        entry.kind == EntryKind::Message && entry.role == Role::User && !entry.text().is_empty()
    });
    let Some(said) = said.next() else {
        return Ok(None);
    };
    let text = said.text();
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| (2..=20).contains(&word.chars().count()));
    // The first of the longest, so that the answer does not depend on how equals are ordered.
    let longest = words.fold("", |longest, word| {
        if word.chars().count() > longest.chars().count() {
            word
        } else {
            longest
        }
    });
    Ok((!longest.is_empty()).then(|| longest.to_owned()))
}
