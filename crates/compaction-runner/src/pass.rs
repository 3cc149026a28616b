//! One pass of a planner: plans while it reads, and carries out the jobs.

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

/// Number of deferred jobs from which on they are published before the iteration ends.
const PUT_OFF: usize = 64;
/// Maximum number of entries that are kept for later jobs. The entries of a longer job are read again.
const KEPT_ENTRIES: usize = 8_192;

/// Runs one pass: plans while it reads, prepares a few jobs at a time, and publishes them in order. Deferred jobs are
/// applied to the reader's view.
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
    let done = plan(env, label, reader, tally).await;
    if env.publishes_passes() && (done.is_err() || tally.must_stop().is_some()) {
        let given_up = give_up_put_off(env, tally).await;
        return done.and(given_up);
    }
    // Jobs that earlier passes deferred are applied already, or replaced by this pass. If some of them were published
    // meanwhile, the reader is outdated.
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

/// Plans a pass and carries out its jobs. Jobs that were planned before a read are carried out during the read.
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

/// Reads for a planner, and carries out its earlier jobs meanwhile.
#[derive(Debug)]
struct RunningView<'r> {
    env: &'r Compaction<'r>,
    reader: &'r ViewReader<'r>,
    /// Planned jobs that are not carried out yet.
    planned: std::sync::Mutex<Vec<Job>>,
    pass: Mutex<RunningPass<'r>>,
}

/// A pass that is carried out while it is planned.
#[derive(Debug)]
struct RunningPass<'r> {
    tally: &'r mut Tally,
    /// Entries that were read and may belong to a later job.
    entries: Entries,
    /// Result of the pass if no further jobs may be planned.
    ended: Option<Result<()>>,
}

impl RunningView<'_> {
    fn planned(&self) -> MutexGuard<'_, Vec<Job>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_planned(&self) -> Vec<Job> {
        std::mem::take(&mut self.planned())
    }

    /// Reads, and carries out the earlier jobs meanwhile. An error ends the planner's work.
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
        // The jobs to come are behind these.
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
