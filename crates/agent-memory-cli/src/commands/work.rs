//! `work`: a background worker, which compacts sessions as they change.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent_memory::model::{ConversationId, Timestamp};
use agent_memory::store::{ChangedConversation, ConversationFilter, ConversationRef, Owner};
use agent_memory::{CompactRequest, Memory, Mode, compaction::CancellationToken};
use serde::Serialize;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::app::App;
use crate::args::Work;
use crate::config::Config;
use crate::cost::Cost;
use crate::output::{count, note, quoted};
use crate::progress::Progress;
use crate::writer::Writers;

/// Target of the spans of sessions.
pub(crate) const TARGET: &str = "agent_memory::work";

/// Time for which a worker takes a session. A compaction may take longer: the leases on its jobs then keep other workers
/// away.
const TAKEN_FOR: Duration = Duration::from_secs(120);

/// Maximum time between two looks at the stop signal.
const LOOKING: Duration = Duration::from_millis(50);

/// Counts of a worker.
#[derive(Debug, Default, Serialize)]
struct Counts {
    /// Number of looks at changed sessions.
    looked_at: AtomicU64,
    /// Number of looks at which summaries were published.
    compacted: AtomicU64,
    summaries: AtomicU64,
    /// Number of calls of models.
    calls: AtomicU64,
    /// Number of looks that ended with an error.
    failed: AtomicU64,
}

impl Counts {
    fn all(&self) -> [(&'static str, u64); 5] {
        [
            ("sessions", &self.looked_at),
            ("compactions", &self.compacted),
            ("summaries", &self.summaries),
            ("model_calls", &self.calls),
            ("failures", &self.failed),
        ]
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    /// Returns the counts in the text format of Prometheus.
    #[cfg(feature = "serve")]
    fn text(&self) -> String {
        let line = |(name, count)| {
            let name = format!("agent_memory_work_{name}_total");
            format!("# TYPE {name} counter\n{name} {count}\n")
        };
        self.all().into_iter().map(line).collect()
    }
}

/// Result of the command.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    counts: &'a Counts,
    spent: Cost,
}

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

pub(crate) async fn run(app: &mut App, args: &Work) -> anyhow::Result<()> {
    let config = match &args.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let writers = Writers::find(&args.writing, false)?.with_policy(&args.policy, &config);
    let progress = Arc::new(Progress::new(true));
    let memory = app
        .open_for_writing(&progress, |builder| writers.apply(builder, &progress))
        .await?;
    let (_holding, cancel) = app.stop.holding();
    #[cfg(feature = "serve")]
    if args.log {
        crate::serve::log(TARGET);
    }
    let mut worker = Worker {
        memory,
        owner: Owner(format!(
            "work/{}/{:016x}",
            std::process::id(),
            RandomState::new().hash_one("work")
        )),
        seen: BTreeMap::new(),
        instructions: args.writing.instructions.clone(),
        cancel,
        counts: Arc::default(),
    };
    #[cfg(feature = "serve")]
    if let Some(port) = args.metrics {
        let (listener, address) = crate::serve::http::bind(port).await?;
        note(&format!("counts at {address}/metrics"));
        let (counts, cancel) = (Arc::clone(&worker.counts), worker.cancel.clone());
        let answer = axum::routing::get(move || async move { counts.text() });
        let router = axum::Router::new().route("/metrics", answer);
        tokio::spawn(
            async move { crate::serve::http::serve_openly(listener, router, &cancel).await },
        );
    }
    worker.work(args).await?;
    let (counts, spent) = (Arc::clone(&worker.counts), Cost::of(&worker.memory));
    if app.json {
        app.out.json(&Report {
            counts: &counts,
            spent,
        })?;
    } else {
        let [
            (_, sessions),
            (_, compacted),
            (_, summaries),
            _,
            (_, failed),
        ] = worker.counts.all();
        app.out.line(&format!(
            "{}, {compacted} compacted with {}, {failed} failed",
            count(sessions, "changed session", "changed sessions"),
            count(summaries, "summary", "summaries"),
        ))?;
        spent.print_spent(app)?;
    }
    Ok(())
}

struct Worker {
    memory: Memory,
    owner: Owner,
    /// Last change of each conversation that the worker has looked at, for a store without a queue.
    seen: BTreeMap<ConversationId, Timestamp>,
    instructions: Option<String>,
    cancel: CancellationToken,
    counts: Arc<Counts>,
}

impl Worker {
    /// Works until a signal comes, or with `--once` until no session waits.
    async fn work(&mut self, args: &Work) -> anyhow::Result<()> {
        while !self.cancel.is_cancelled() {
            let next = match self.next().await {
                Ok(next) => next,
                Err(error) if may_ask_again(&error) && !args.once => {
                    note(&format!("{error}: trying again"));
                    self.pause(Duration::from_secs(args.every)).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match next {
                Some(changed) => self.look_at(changed).await,
                None if args.once => return Ok(()),
                None => self.pause(Duration::from_secs(args.every)).await,
            }
        }
        Ok(())
    }

    /// Returns a changed conversation that no other worker looks at.
    async fn next(&mut self) -> agent_memory::Result<Option<ChangedConversation>> {
        let store = self.memory.store();
        if let Some(queue) = store.work_queue() {
            return Ok(queue.take_changed(&self.owner, TAKEN_FOR).await?);
        }
        let changed = self.memory.sessions(&ConversationFilter::default()).await?;
        let changed = changed.into_iter().map(|info| info.conversation);
        let is_new = |id, at: Timestamp| self.seen.get(&id).is_none_or(|seen| *seen < at);
        let oldest = changed
            .filter(|found| is_new(found.id, found.updated_at))
            .min_by_key(|found| found.updated_at);
        Ok(oldest.map(|found| ChangedConversation {
            conversation: found.id,
            changed_at: found.updated_at,
        }))
    }

    /// Compacts a conversation. A failure is counted, and leaves the conversation to another look.
    async fn look_at(&mut self, changed: ChangedConversation) {
        add(&self.counts.looked_at, 1);
        let began = Instant::now();
        let span = tracing::info_span!(target: TARGET, "session", id = changed.conversation.0);
        match self.compact(changed).instrument(span).await {
            Ok(Some((key, summaries))) => {
                add(&self.counts.compacted, 1);
                note(&format!(
                    "{}: {} in {} ms",
                    quoted(&key),
                    count(summaries, "summary", "summaries"),
                    began.elapsed().as_millis()
                ));
            }
            Ok(None) => {}
            Err(error) => {
                add(&self.counts.failed, 1);
                note(&format!("session {}: {error}", changed.conversation));
            }
        }
    }

    /// Compacts a conversation. Returns its key and the number of summaries if some were published.
    async fn compact(
        &mut self,
        changed: ChangedConversation,
    ) -> agent_memory::Result<Option<(String, u64)>> {
        let store = Arc::clone(self.memory.store());
        let which = ConversationRef::Id(changed.conversation);
        self.seen.insert(changed.conversation, changed.changed_at);
        let Some(found) = store.conversation(&which).await? else {
            return Ok(None);
        };
        let session = self.memory.get_session(found.key.clone()).await?;
        let request = CompactRequest {
            instructions: self.instructions.clone(),
            cancel: self.cancel.clone(),
            ..CompactRequest::from(Mode::Incremental)
        };
        let outcome = session.compact(request).await?;
        add(&self.counts.calls, outcome.calls);
        let summaries = outcome.summaries.len() as u64;
        add(&self.counts.summaries, summaries);
        if let Some(failure) = outcome.failure {
            add(&self.counts.failed, 1);
            note(&format!("{}: {failure}", quoted(found.key.as_str())));
        } else if !self.cancel.is_cancelled()
            && let Some(queue) = store.work_queue()
        {
            queue.finish_changed(&changed, &self.owner).await?;
        }
        Ok((summaries > 0).then(|| (found.key.to_string(), summaries)))
    }

    /// Waits, at most until a signal comes.
    async fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.cancel.is_cancelled() && Instant::now() < end {
            tokio::time::sleep(LOOKING.min(time)).await;
        }
    }
}

/// Returns whether the worker can ask the queue again. A session that it took without an answer is free again when its
/// time is over.
fn may_ask_again(error: &agent_memory::Error) -> bool {
    let uncertain = agent_memory::ErrorKind::Store(agent_memory::store::ErrorKind::Uncertain);
    error.is_retryable() || error.kind() == uncertain
}
