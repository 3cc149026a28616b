//! Summaries of a handoff for programs that keep their own log.

use compaction_plan::CompactionResult;
use context_assembler::ContextAccounting;
use futures::future::try_join;
use handoff_compactor::{FileLedger, HANDOFF, Preparation, TURN_PREFIX};
use memory_model::{
    Accounting as _, Child, EntryRef, Purpose, RawJson, SeqRange, Summary, summary_overhead,
};
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::{Ladder, Source, Summarizer, SummaryRequest, escalate_with};

use crate::defaults::{default_conventions, default_extractive};
use crate::error::{Error, ErrorKind, Result};
use crate::hand_over_options::EMPTY;
use crate::handing_over::{joined, label};

/// Writes the summaries of a prepared handoff, without a store: see [`prepare`](crate::compaction::prepare). They are
/// written as in [`Session::hand_over`](crate::Session::hand_over), with the same prompts, lengths and ladder. If a turn
/// is split, two summaries are written at the same time and joined. The summary ends with lists of the files that were
/// read and modified. `details` has the same lists, as `read_files` and `modified_files`, and their record, as
/// [`FileLedger::FACT`]. As the [`Summary::meta`] of the next handoff's previous summary, it continues the record.
///
/// # Errors
/// `Model` or `Invalid` if one of the summaries could not be written.
pub async fn compact(
    preparation: &Preparation,
    instructions: Option<&str>,
    summarizer: &dyn Summarizer,
    ladder: &Ladder,
    accounting: &ContextAccounting,
) -> Result<CompactionResult> {
    let files = &preparation.files;
    let previous = preparation.previous.as_ref().map(without_footer);
    let write = async |purpose: Purpose, range: Option<SeqRange>| -> Result<Option<String>> {
        let Some(range) = range else {
            return Ok(None);
        };
        let (previous, entries) = match purpose {
            Purpose::TurnPrefix => (None, &preparation.turn_prefix_entries),
            _ => (previous.as_ref(), &preparation.history_entries),
        };
        let source: Vec<Source<'_>> = previous
            .into_iter()
            .map(Source::from)
            .chain(entries.iter().map(Source::from))
            .collect();
        let asked = preparation.request(purpose);
        let prompts = asked.prompts.as_ref();
        let prompts = prompts.map(|p| PromptSet::single(&p.id, &p.system, &p.user));
        let prompts = prompts
            .transpose()
            .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        let earlier = previous.map(|summary| Child::Summary {
            range: summary.range,
            id: summary.id.clone(),
        });
        let all = previous.and_then(|summary| SeqRange::new(summary.range.first, range.last));
        let children: Vec<Child> = earlier
            .into_iter()
            .chain([Child::Messages { range }])
            .collect();
        let conventions = default_conventions();
        let request = SummaryRequest {
            overhead_tokens: summary_overhead(accounting, all.unwrap_or(range), 0, &children),
            purpose,
            target_tokens: asked.target_tokens,
            max_tokens: asked.max_tokens,
            instructions,
            prompts: prompts.as_ref(),
            conventions: &*conventions,
            ..SummaryRequest::new(&source, accounting.estimator())
        };
        let extractive = default_extractive();
        let written = escalate_with(summarizer, &extractive, ladder, &request).await;
        let written = written.map_err(|error| failed(purpose, error))?;
        Ok(Some(written.text))
    };
    let (history, prefix) = try_join(
        write(Purpose::Replace, preparation.history),
        write(Purpose::TurnPrefix, preparation.turn_prefix),
    )
    .await?;
    let earlier = previous.as_ref().map(Summary::text);
    let texts = [history.as_deref().or(earlier), prefix.as_deref()];
    let texts: Vec<&str> = texts.into_iter().flatten().collect();
    let kept_from = match &preparation.kept_from_id {
        Some(id) => EntryRef::External(id.clone()),
        None => EntryRef::Position(preparation.kept_from),
    };
    let summary = joined(&texts).unwrap_or_default() + &files.footer();
    let details = serde_json::json!({
        "read_files": files.read(),
        "modified_files": files.modified(),
        FileLedger::FACT: files,
    });
    let result = CompactionResult::new(summary, kept_from);
    Ok(result
        .with_tokens_before(preparation.tokens_before)
        .with_details(RawJson::from_value(&details)?))
}

/// Returns a summary without the lists of files at its end, which the next summary ends with again.
fn without_footer(summary: &Summary) -> Summary {
    let mut summary = summary.clone();
    let footer = FileLedger::of(&summary).unwrap_or_default().footer();
    if let Some(text) = summary
        .text()
        .strip_suffix(&footer)
        .filter(|_| !footer.is_empty())
    {
        summary.body = text.into();
    }
    summary
}

/// Returns the error for a summary that could not be written, with the label that a handoff of a session has.
fn failed(purpose: Purpose, error: summarize_escalation::Error) -> Error {
    let is_empty = error.kind() == summarize_escalation::ErrorKind::Empty;
    let error = Error::from(error);
    let why = match std::error::Error::source(&error) {
        _ if is_empty => EMPTY.to_owned(),
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    let kind = match purpose {
        Purpose::TurnPrefix => TURN_PREFIX,
        _ => HANDOFF,
    };
    Error::new(error.kind(), label(Some(&kind), Some(&why)))
}
