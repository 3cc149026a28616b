//! Reads the log for `files`, from the end to the beginning, so that the result of a call is known before the call.

use std::collections::BTreeMap;

use memory_model::{LogEntry, Part, ResultContent, Seq, SeqRange};
use memory_search::SearchStop;
use memory_store::LogRead;

use crate::arguments::Arguments as _;
use crate::error::Result;
use crate::files::{FileUse, FilesAnswer, FilesArgs, UseFilter, UseOutcome};
use crate::retrieval::Retrieval;

/// Number of messages after the position of a cursor that are searched for results of the calls before it.
const RESULTS_BEHIND: u32 = 1_024;

/// A result of a tool call.
#[derive(Debug, Clone)]
struct ToolResult {
    seq: Seq,
    content: ResultContent,
    is_error: bool,
}

/// Results by the ids of their calls. Of several results with one id, the earliest.
type Results = BTreeMap<String, ToolResult>;

/// Position at which an answer continues: a message, and the number of its calls that earlier answers contained.
#[derive(Debug, Clone, Copy)]
struct Position {
    seq: Seq,
    calls: usize,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let (seq, calls) = text.strip_prefix('f')?.split_once('+')?;
        Some(Self {
            seq: Seq(seq.parse().ok()?),
            calls: calls.parse().ok()?,
        })
    }
}

impl Retrieval {
    /// Returns the tool calls that read or changed files or ran commands, the latest first. Each has the outcome that
    /// its result reports. The calls are read from the log, so calls that a summary replaced in the context are
    /// included.
    ///
    /// The result of a call is searched up to the end of the conversation. For a request with a cursor, the result is
    /// searched only in the 1,024 messages after the position of the cursor.
    ///
    /// # Errors
    /// `Invalid` for a cursor of another request. Also the errors of the store.
    pub async fn files(&self, args: FilesArgs) -> Result<FilesAnswer> {
        let limits = self.limits();
        let spending = self
            .grant
            .begin(FilesArgs::NAME, limits.answer_tokens.max(1))?;
        let limit = limits.hits(args.limit);
        let question = format!("files {:?}", (&args.path, &args.command, args.action));
        let cursor = args.cursor.as_deref();
        let position = self.position(&question, cursor, Position::read).await?;
        let mut answer = FilesAnswer {
            path: args.path.clone(),
            command: args.command.clone(),
            complete: true,
            cursor: None,
            stopped: false,
            uses: Vec::new(),
        };
        let Some(seen) = self.visible().await? else {
            return Ok(answer);
        };
        let mut results = Results::new();
        if let Some(position) = position {
            self.results_behind(position.seq, seen, &mut results)
                .await?;
        }
        let wanted = UseFilter::new(&args);
        let mut room = self.room(spending.taken);
        // The text around the listed calls, with a long cursor.
        let more =
            "There are earlier ones: repeat the call with cursor \"f1000000+100@01234567\".\n";
        room.spend(more);
        let mut rest = match position {
            Some(position) => SeqRange::new(seen.first, position.seq.min(seen.last)),
            None => Some(seen),
        };
        let mut next = None;
        'log: while let Some(range) = rest {
            let read = LogRead::new(range).newest_first();
            let page = self.store.read(self.conversation, &read).await?;
            for entry in &page.items {
                keep_results(entry, &mut results);
                let given = position.filter(|position| position.seq == entry.seq);
                let mut given = given.map_or(0, |position| position.calls);
                let uses = self.uses(entry, &wanted, &mut results);
                // Of several calls in a message, the last comes first.
                for (index, mut one) in uses.into_iter().rev().enumerate() {
                    if index < given {
                        continue;
                    }
                    if answer.uses.is_empty() {
                        one.shorten(|one| room.holds(&one.line()));
                        room.spend(&one.line());
                    } else if answer.uses.len() >= limit || !room.take(&one.line()) {
                        next = Some(format!("f{}+{given}", entry.seq));
                        break 'log;
                    }
                    given += 1;
                    answer.uses.push(one);
                }
            }
            rest = page.next;
            if let Some(rest) = rest
                && self.stop.as_ref().is_some_and(SearchStop::is_over)
            {
                next = Some(format!("f{}+0", rest.last));
                answer.stopped = true;
                break;
            }
        }
        if let Some(next) = next {
            answer.complete = false;
            answer.cursor = Some(self.binding(&question).await?.cursor(&next));
        }
        spending.end(self.accounting.text(&answer.to_text()));
        Ok(answer)
    }

    /// Returns the calls of a message that satisfy the conditions, in order. Each call removes its result from
    /// `results`, so that an earlier call with the same id does not get it.
    fn uses(&self, entry: &LogEntry, wanted: &UseFilter, results: &mut Results) -> Vec<FileUse> {
        let mut uses = Vec::new();
        for part in &entry.parts {
            let Part::ToolCall {
                id,
                name,
                arguments,
            } = part
            else {
                continue;
            };
            let result = results.remove(id);
            let used = self.conventions.tool_use(name, arguments.as_str());
            let Some((action, paths, command)) = wanted.of(&used) else {
                continue;
            };
            let outcome = match &result {
                None => UseOutcome::Unanswered,
                Some(result) => {
                    let text = result.content.text();
                    let told = self
                        .conventions
                        .tool_result(Some(&used), &text, result.is_error);
                    match (told.rejection, told.is_error) {
                        (Some(_), _) => UseOutcome::Refused,
                        (None, true) => UseOutcome::Failed,
                        (None, false) => UseOutcome::Done,
                    }
                }
            };
            uses.push(FileUse {
                seq: entry.seq,
                result_seq: result.as_ref().map(|result| result.seq),
                tool: name.clone(),
                action,
                paths,
                command,
                outcome,
                created_at: entry.created_at,
            });
        }
        uses
    }

    /// Adds tool results in the messages after position `seq` to `results`, for an answer that lists only calls up to
    /// `seq`. Reads at most 1,024 messages. Results of calls that come after `seq` themselves are left out. `seen` is
    /// the range of positions that the caller may read.
    async fn results_behind(&self, seq: Seq, seen: SeqRange, results: &mut Results) -> Result<()> {
        let last = Seq(seq.0.saturating_add(RESULTS_BEHIND)).min(seen.last);
        let mut rest = SeqRange::new(seq.next().max(seen.first), last);
        while let Some(range) = rest {
            let read = LogRead::new(range).newest_first();
            let page = self.store.read(self.conversation, &read).await?;
            for entry in &page.items {
                keep_results(entry, results);
                for call in entry.tool_calls() {
                    results.remove(call.id);
                }
            }
            rest = page.next;
        }
        Ok(())
    }
}

/// Adds the results of a message to `results`. Messages come in reverse order, so the earliest of several results with
/// one id remains.
fn keep_results(entry: &LogEntry, results: &mut Results) {
    for part in entry.parts.iter().rev() {
        if let Part::ToolResult {
            call_id,
            content,
            is_error,
        } = part
        {
            let result = ToolResult {
                seq: entry.seq,
                content: content.clone(),
                is_error: *is_error == Some(true),
            };
            results.insert(call_id.clone(), result);
        }
    }
}
