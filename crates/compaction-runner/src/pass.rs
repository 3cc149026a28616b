//! One pass (planning round) of a planner: plans while reading, and carries out the planned jobs (changes of the view).

use std::sync::{Arc, MutexGuard, PoisonError};

use async_trait::async_trait;
use compaction_plan::{BoxError, Job, Label, Tail, ViewSource};
use futures::future::join;
use futures::lock::Mutex;
use memory_model::{LogEntry, SeqRange, Span, Summary};

use crate::conclude::{give_up_put_off, publish_put_off};
use crate::environment::Compaction;
use crate::error::Result;
use crate::execute::execute;
use crate::sources::Entries;
use crate::tally::Tally;
use crate::view_reader::ViewReader;

/// Number of changes of the view waiting to be published together at which they are published before the iteration
/// ends.
const PUT_OFF: usize = 64;
/// Maximum number of log entries that are kept for the summaries of later jobs. If a job needs more, its entries are
/// read again.
const KEPT_ENTRIES: usize = 8_192;

/// Runs one pass (planning round): plans while reading, prepares a few jobs (changes of the view) at a time, and
/// publishes them in order. Jobs that are published later are already applied to the reader's view.
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
    tally.watch.set_excess(env.excess(reader.tokens));
    tally.seen.get_or_insert_with(|| reader.snapshot.clone());
    let laid = tally.put_off.len();
    let done = plan(env, label, reader, tally).await;
    if env.publishes_passes() && (done.is_err() || tally.must_stop().is_some()) {
        let given_up = give_up_put_off(env, tally).await;
        return done.and(given_up);
    }
    // The reader's view already has the deferred jobs of earlier passes. This adds the jobs that this pass deferred. If
    // deferred jobs were published in the meantime, the reader is outdated.
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

/// Plans a pass (planning round) and carries out its jobs. While the planner waits for a read, the jobs planned before
/// are carried out.
async fn plan(
    env: &Compaction<'_>,
    label: &Label,
    reader: &ViewReader<'_>,
    tally: &mut Tally,
) -> Result<()> {
    let running = RunningView {
        env,
        reader,
        planned: std::sync::Mutex::default(),
        pass: Mutex::new(RunningPass {
            tally,
            entries: Entries::new(),
            ended: None,
        }),
    };
    let (planner, input) = (env.planner, reader.input(label));
    let mut push = |job| running.planned().push(job);
    let done = planner.plan(input, &running, &mut push).await;
    let jobs = running.take_planned();
    let pass = running.pass.into_inner();
    if let Some(ended) = pass.ended {
        return ended;
    }
    done?;
    execute(env, &jobs, &pass.entries, pass.tally).await
}

/// The view as the planner reads it. Carries out the jobs (changes of the view) planned so far during each read.
#[derive(Debug)]
struct RunningView<'r> {
    env: &'r Compaction<'r>,
    reader: &'r ViewReader<'r>,
    /// Planned jobs that are not carried out yet.
    planned: std::sync::Mutex<Vec<Job>>,
    pass: Mutex<RunningPass<'r>>,
}

/// State of a pass (planning round) whose jobs are carried out while it plans further ones.
#[derive(Debug)]
struct RunningPass<'r> {
    tally: &'r mut Tally,
    /// Log entries that were read and may be needed for the summary of a later job.
    entries: Entries,
    /// Set if the pass must not plan further jobs: its final outcome, possibly an error.
    ended: Option<Result<()>>,
}

impl RunningView<'_> {
    fn planned(&self) -> MutexGuard<'_, Vec<Job>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_planned(&self) -> Vec<Job> {
        std::mem::take(&mut self.planned())
    }

    /// Carries out the jobs planned so far during a read. An error ends the planning.
    async fn alongside<T>(
        &self,
        read: impl Future<Output = Result<T, BoxError>> + Send,
    ) -> Result<T, BoxError> {
        let env = self.env;
        let pass = &mut *self.pass.lock().await;
        if pass.ended.is_some() {
            return Err("the pass has ended".into());
        }
        let jobs = self.take_planned();
        let done = execute(env, &jobs, &pass.entries, pass.tally);
        let (mut done, page) = join(done, read).await;
        if done.is_ok() && pass.tally.must_stop().is_none() {
            if pass.tally.put_off.len() >= PUT_OFF && !env.publishes_passes() {
                done = publish_put_off(env, pass.tally).await;
            }
            pass.tally.cancelled |= page.is_ok() && env.cancel.is_cancelled();
        }
        if done.is_err() || pass.tally.must_stop().is_some() {
            pass.ended = Some(done);
            return Err("the pass has ended".into());
        }
        // Later jobs come after these in the log.
        if let Some(job) = jobs.last() {
            pass.entries = pass.entries.split_off(&job.range.last.next());
        }
        page
    }
}

#[async_trait]
impl ViewSource for RunningView<'_> {
    async fn spans(&self, range: SeqRange) -> Result<Vec<Span>, BoxError> {
        self.alongside(self.reader.spans(range)).await
    }

    async fn entries(&self, range: SeqRange) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        let page = self.alongside(self.reader.entries(range)).await?;
        let kept = &mut self.pass.lock().await.entries;
        if kept.len() > KEPT_ENTRIES {
            kept.clear();
        }
        kept.extend(page.iter().map(|entry| (entry.seq, Arc::clone(entry))));
        Ok(page)
    }

    async fn newest(&self, tail: Tail) -> Result<Vec<Arc<LogEntry>>, BoxError> {
        self.alongside(self.reader.newest(tail)).await
    }

    async fn summaries(&self, range: SeqRange) -> Result<Vec<Summary>, BoxError> {
        self.alongside(self.reader.summaries(range)).await
    }
}
