//! Messages that new summaries do not mention, and commands that show these messages.

use agent_memory::compaction::LeftOut;
use serde::Serialize;

use crate::app::App;
use crate::output::{count, number, one_line, table};

/// A message that a summary covers but does not mention.
#[derive(Debug, Serialize)]
pub(super) struct Dropped {
    #[serde(flatten)]
    message: LeftOut,
    /// Argument for the command `expand`, which prints the message.
    expand: String,
}

impl From<LeftOut> for Dropped {
    fn from(message: LeftOut) -> Self {
        let expand = format!("message:{}", message.seq);
        Self { message, expand }
    }
}

/// Prints the messages that summaries do not mention, with commands that show these messages.
pub(super) fn print(app: &mut App, key: &str, dropped: &[Dropped]) -> anyhow::Result<()> {
    const LISTED: usize = 20;
    let tokens = dropped.iter().map(|dropped| dropped.message.tokens).sum();
    app.out.line(&format!(
        "The new summaries do not mention {}, {}:",
        count(dropped.len() as u64, "message", "messages"),
        count(tokens, "token", "tokens"),
    ))?;
    let rows: Vec<Vec<String>> = dropped
        .iter()
        .take(LISTED)
        .map(|Dropped { message, expand }| {
            vec![
                expand.clone(),
                message.role.to_string(),
                number(message.tokens),
                one_line(&message.start).into_owned(),
            ]
        })
        .collect();
    app.out.text(&table(&rows))?;
    if dropped.len() > LISTED {
        let more = count((dropped.len() - LISTED) as u64, "more", "more");
        app.out.line(&format!("  and {more}; --json lists all"))?;
    }
    if let Some(first) = dropped.first() {
        let command = app.command(&["expand"], &[key, &first.expand]);
        app.out.line(&format!("To read one: {command}"))?;
    }
    Ok(())
}
