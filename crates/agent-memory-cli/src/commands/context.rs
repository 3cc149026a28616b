//! `context`: assembles the context for a model call.

use std::path::Path;

use agent_memory::context::AssembleRequest;
use agent_memory::context::render_text;
use agent_memory::{
    Budget, Context, Session,
    context::{AssemblyPolicy, ContextMessage, DegradationStep, Receipt},
    model::ViewVersion,
};
use serde::Serialize;

use crate::app::App;
use crate::args;
use crate::error::{Failure, Kind};
use crate::output::{count, number, one_line};

/// A context as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "serve", derive(schemars::JsonSchema))]
pub(crate) struct ContextReport<'a> {
    session: &'a str,
    budget: u64,
    tokens: u64,
    #[cfg_attr(feature = "serve", schemars(with = "Vec<serde_json::Value>"))]
    messages: &'a [ContextMessage],
    #[cfg_attr(feature = "serve", schemars(with = "serde_json::Value"))]
    receipt: &'a Receipt,
}

pub(crate) async fn run(app: &mut App, args: &args::Context) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let key = app
        .session_in_use(&memory, &args.session)
        .await?
        .key()
        .clone();
    let mut open = memory.get_session(key);
    if let Some(strategy) = args.strategy {
        open = open.strategy(strategy);
    }
    if let Some(file) = &args.system {
        open = open.system(read_system(file)?);
    }
    let session = open.await?;
    let view = match args.at {
        None => session.current_view().await?,
        Some(version) => session.view_at(ViewVersion(version)).await?,
    };
    // A request for a provider is never larger than the provider takes.
    let largest = args
        .form
        .provider()
        .map(|provider| provider.limits(None).message_bytes());
    let bytes = [args.bytes, largest].into_iter().flatten().min();
    let budget = Budget::tokens(args.budget)
        .with_pictures(args.pictures)
        .with_bytes(bytes);
    let policy = AssemblyPolicy {
        acknowledge_summaries: args.acknowledge_summaries,
        ..AssemblyPolicy::once()
    };
    let request = AssembleRequest::new(budget, policy);
    let context = view.assemble(request).await?;
    if let Some(provider) = args.form.provider() {
        return Ok(app.out.json(&context.to_request(provider))?);
    }
    if app.json || args.form == args::Form::Json {
        return Ok(app.out.json(&answer(&session, &context))?);
    }
    app.out.text(&render_text(&context.messages))?;
    if args.receipt {
        app.out.text(&receipt(&context))?;
    }
    Ok(())
}

fn read_system(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let file = path.display();
        Failure::new(
            Kind::Unreadable,
            format!("cannot read the system prompt {file}: {error}"),
        )
        .hint("give a text file that you may read")
        .into()
    })
}

/// Returns a context as JSON.
pub(crate) fn answer<'a>(session: &'a Session, context: &'a Context) -> ContextReport<'a> {
    ContextReport {
        session: session.key().as_str(),
        budget: context.budget,
        tokens: context.tokens,
        messages: &context.messages,
        receipt: &context.receipt,
    }
}

/// Renders the receipt (report of a context's assembly) as text.
pub(crate) fn receipt(context: &Context) -> String {
    let receipt = &context.receipt;
    let limit = match receipt.limit {
        limit if limit == context.budget => String::new(),
        limit => format!(" (estimates up to {})", number(limit)),
    };
    let mut lines = vec![format!(
        "receipt: {} of a budget of {}{limit}; the whole view costs {}",
        count(context.tokens, "token", "tokens"),
        number(context.budget),
        number(receipt.view_tokens)
    )];
    for dropped in &receipt.dropped {
        lines.push(format!(
            "  left out: messages {}-{}, {} tokens",
            dropped.first,
            dropped.last,
            number(dropped.tokens)
        ));
    }
    if !receipt.shortened.is_empty() {
        let shortened = receipt.shortened.iter();
        let (from, to) = shortened.fold((0, 0), |(from, to), form| {
            (from + form.from_tokens, to + form.to_tokens)
        });
        lines.push(format!(
            "  {} shortened from {} to {} tokens",
            count(receipt.shortened.len() as u64, "summary", "summaries"),
            number(from),
            number(to)
        ));
    }
    for degraded in &receipt.degraded {
        lines.push(format!(
            "  shortened: messages {}-{} from {} to {} tokens, {}",
            degraded.first,
            degraded.last,
            number(degraded.from_tokens),
            number(degraded.to_tokens),
            how(degraded.step)
        ));
    }
    if !receipt.stubbed_calls.is_empty() {
        lines.push(format!(
            "  calls without a result: {}",
            receipt.stubbed_calls.join(", ")
        ));
    }
    for moved in &receipt.moved_results {
        lines.push(format!(
            "  moved: the result of the call {} from message {} to its call in message {}",
            moved.call_id.escape_debug(),
            moved.from,
            moved.after
        ));
    }
    for call in &receipt.renamed_calls {
        lines.push(format!(
            "  renamed: the call {} in message {} to {}, because its id is empty or taken",
            call.id.escape_debug(),
            call.message,
            call.new_id.escape_debug()
        ));
    }
    for trim in &receipt.unknown_trims {
        lines.push(format!(
            "  shown whole, because its trim policy is unknown: {trim}"
        ));
    }
    // The ids of calls come from the transcript, so they may contain control characters.
    let ends = |line: &String| format!("{}\n", one_line(line));
    lines.iter().map(ends).collect()
}

/// Returns the way in which messages were shortened.
fn how(step: DegradationStep) -> &'static str {
    match step {
        DegradationStep::StubbedResults => "tool results replaced by stubs",
        DegradationStep::Clipped => "largest texts clipped",
        DegradationStep::Text => "made one text",
        DegradationStep::Digest => "a digest",
        _ => "shortened",
    }
}
