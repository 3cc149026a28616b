//! One pass of a planner: plans while it reads, and carries the jobs out.

use compaction_plan::Label;
use futures::future::join;
use memory_model::LogEntry;

use crate::conclude::{give_up_put_off, publish_put_off};
use crate::environment::Compaction;
use crate::error::Result;
use crate::execute::execute;
use crate::tally::Tally;
use crate::view_reader::{Fed, ViewReader, drop_entries};

/// Number of jobs from which on those that were put off are published before the iteration ends.
const PUT_OFF: usize = 64;

/// One pass: plans while it reads, prepares a few jobs at a time, publishes in order. What is put
/// off is laid over what the reader shows.
pub(crate) async fn run_pass(
    env: &Compaction<'_>,
    label: &Label,
    reader: &mut ViewReader<'_>,
    tally: &mut Tally,
) -> Result<()> {
    let published = tally.published;
    if reader.is_outdated {
        reader.refresh().await?;
    }
    tally.watch.reads(&reader.snapshot);
    tally.seen.get_or_insert_with(|| reader.snapshot.clone());
    let laid = tally.put_off.len();
    let done = feed(env, label, reader, tally).await;
    if env.publishes_passes() && (done.is_err() || tally.must_stop().is_some()) {
        let given_up = give_up_put_off(env, tally).await;
        return done.and(given_up);
    }
    // What earlier passes put off is laid over already, or replaced by this pass. Where some of it was
    // published meanwhile, the reader is outdated.
    for one in tally.put_off.iter().skip(laid) {
        reader.lay_over(&one.job, one.spans());
    }
    done?;
    let outdated = |tally: &Tally| tally.published > published || tally.lost;
    let is_due = tally.put_off.len() >= PUT_OFF || env.publishes_passes();
    if is_due || outdated(tally) {
        publish_put_off(env, tally).await?;
    }
    reader.is_outdated = outdated(tally);
    Ok(())
}

/// Feeds a pass and carries its jobs out, while the next page is read.
async fn feed(
    env: &Compaction<'_>,
    label: &Label,
    reader: &mut ViewReader<'_>,
    tally: &mut Tally,
) -> Result<()> {
    let mut pass = reader.begin(label).await?;
    // Entries that were read and may belong to a job that is still to come.
    let mut entries: Vec<LogEntry> = Vec::new();
    let want = pass.next_read();
    let mut page = reader.next(want).await?;
    while let Some(fed) = page {
        if env.cancel.is_cancelled() {
            tally.cancelled = true;
            return Ok(());
        }
        let jobs = match fed {
            Fed::Spans(spans) => pass.feed_spans(&spans, env.accounting),
            Fed::Entries(mut more) => {
                let jobs = pass.feed_entries(&more, env.accounting);
                entries.append(&mut more);
                jobs
            }
            Fed::Summaries(summaries) => pass.feed_summaries(&summaries, env.accounting),
        };
        // What the pass wants next does not depend on what becomes of these jobs.
        let want = pass.next_read();
        let (done, next) = join(execute(env, &jobs, &entries, tally), reader.next(want)).await;
        done?;
        if tally.must_stop().is_some() {
            return Ok(());
        }
        if tally.put_off.len() >= PUT_OFF && !env.publishes_passes() {
            publish_put_off(env, tally).await?;
        }
        page = next?;
        drop_entries(&mut entries, jobs.last().map(|job| job.range.last));
    }
    let jobs = pass.finish(env.accounting);
    execute(env, &jobs, &entries, tally).await
}
