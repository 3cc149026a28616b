//! `audit`: measures the compactions that an agent made of its own conversation.

mod html;
mod kept;
mod measure;
mod report;
mod text;

use std::path::Path;

use agent_memory::Message;
use agent_memory::model::{EntryKind, LogEntry};
use agent_memory::transcripts::{NamePatterns, ReadOptions, own_compactions};
use anyhow::Context as _;
use serde_json::json;

use super::import;
use crate::app::App;
use crate::args;
use crate::error::{Failure, Kind as ErrorKind};
use crate::output::{count, note};
use crate::page;
use crate::redact::{self, Redactor};
use measure::{Measure, temporary};
use report::{Report, Total};

pub(crate) async fn run(app: &mut App, args: &args::Audit) -> anyhow::Result<()> {
    let file = args.file.display().to_string();
    let transcript = import::read(Path::new(&args.file), &ReadOptions::default())?;
    let memory = temporary().open().await?;
    let main = import::ImportedFiles::default()
        .take(&memory, &file, &transcript)
        .await?;
    let main =
        main.ok_or_else(|| Failure::new(ErrorKind::Empty, format!("{file} holds no message")))?;
    let entries: Vec<LogEntry> = memory.get_session(main.clone()).await?.entries().await?;
    let messages: Vec<_> = entries.iter().map(|entry| entry.message.clone()).collect();
    let summaries = transcript
        .sessions
        .iter()
        .flat_map(|log| log.summaries.iter().cloned());
    let found = own_compactions(&messages, &summaries.collect::<Vec<_>>());
    let patterns = NamePatterns::new().context("the patterns of names cannot be compiled")?;
    let second = temporary().open().await?;
    let ours = second.session(main.clone()).await?;
    let measure = Measure {
        app,
        entries: &entries,
        ours: &ours,
        patterns: &patterns,
    };
    let mut compactions = measure.all(&found).await?;
    let redactor = (!args.no_redact).then(Redactor::new).transpose()?;
    if let Some(redactor) = &redactor {
        redactor.learn_entries(&entries)?;
        for one in &compactions {
            let items = one.items.iter();
            let texts = items.flat_map(|item| [Some(&item.text), item.says.as_ref()]);
            let texts = texts.flatten().chain([&one.after.summary]);
            texts.for_each(|text| redactor.learn(text));
        }
    }
    let shown = |text: &str| redact::shown(redactor.as_ref(), text).into_owned();
    for one in &mut compactions {
        one.entry = one.entry.as_deref().map(shown);
        one.trigger = one.trigger.as_deref().map(shown);
        one.after.summary = shown(&one.after.summary);
        for item in &mut one.items {
            item.text = shown(&item.text);
            item.says = item.says.as_deref().map(shown);
            item.command = item.command.as_deref().map(shown);
        }
    }
    let is_message = |one: &&Message| one.kind == EntryKind::Message;
    let others = transcript.sessions.iter().filter(|log| log.key != main);
    let elsewhere = others.map(|log| own_compactions(&log.messages, &log.summaries).len());
    let report = Report {
        elsewhere: elsewhere.sum(),
        file: shown(&file),
        session: shown(main.as_str()),
        format: transcript.format.clone(),
        messages: messages.iter().filter(is_message).count() as u64,
        total: Total::of(&compactions),
        compactions,
        redacted: redactor.as_ref().map(Redactor::counts),
    };
    if let Some(redactor) = &redactor {
        note(&redactor.report());
    }
    if let Some(path) = &args.html {
        return save(app, path, &report);
    }
    match app.json {
        true => Ok(app.out.json(&report)?),
        false => Ok(app.out.text(&text::text(&report))?),
    }
}

fn save(app: &mut App, path: &Path, report: &Report) -> anyhow::Result<()> {
    let page = page::still(&report.session, html::STYLE, &html::body(report));
    if path == Path::new("-") {
        return Ok(app.out.raw(&page)?);
    }
    page::save(&page, path)?;
    let (compactions, missing) = (report.total.compactions, report.total.missing);
    if app.json {
        let file = path.display().to_string();
        return Ok(app
            .out
            .json(&json!({"file": file, "compactions": compactions, "missing": missing}))?);
    }
    Ok(app.out.line(&format!(
        "{}: {}, {}",
        path.display(),
        count(compactions, "compaction", "compactions"),
        count(missing, "lost item", "lost items"),
    ))?)
}
