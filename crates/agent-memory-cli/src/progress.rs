//! Progress on stderr: one line that is replaced if stderr is a terminal, otherwise single lines.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stderr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_memory::{
    compaction::{Event, Hooks},
    models::{AttemptEvent, AttemptKind, CallObserver},
};
use indicatif::ProgressBar;
use tokio::time::Instant;

use crate::output::{count, note, safe};

/// Durations of waiting for a model after which a line is printed if stderr is not a terminal. After the second,
/// [`TOLD_EVERY`] is the time between further lines.
const TOLD_AFTER: [Duration; 2] = [Duration::from_secs(15), Duration::from_secs(60)];
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Progress of a command: the current task, and the waits for models. On a terminal, one line shows them and is
/// removed at the end. Without a terminal or with `--json`, only failed attempts and long waits for a model are
/// printed, each on a line.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    terminal: bool,
    state: Mutex<ProgressState>,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// The current task.
    task: String,
    /// Running attempts at model calls, by their ids.
    attempts: BTreeMap<u64, Attempt>,
}

/// A running attempt at a model call.
#[derive(Debug)]
struct Attempt {
    model: String,
    attempt: u32,
    attempts: u32,
    timeout: Option<Duration>,
    since: Instant,
    /// Number of tokens that have arrived.
    tokens: u64,
    /// Duration of the wait that was printed last.
    told: Duration,
}

impl Attempt {
    fn text(&self, now: Instant) -> String {
        let waited = now.saturating_duration_since(self.since).as_secs();
        let limit = self.timeout.map(|limit| format!(" of {}", limit.as_secs()));
        let so_far = match self.tokens {
            0 => String::new(),
            tokens => format!(", {} so far", count(tokens, "token", "tokens")),
        };
        format!(
            "waiting for the model {}, attempt {} of {}, {waited}{} s{so_far}",
            self.model,
            self.attempt,
            self.attempts,
            limit.unwrap_or_default(),
        )
    }
}

impl ProgressState {
    /// Returns the current task, and the attempt that has waited longest.
    fn text(&self, now: Instant) -> String {
        let Some(longest) = self.attempts.values().min_by_key(|attempt| attempt.since) else {
            return self.task.clone();
        };
        let others = match self.attempts.len() - 1 {
            0 => String::new(),
            others => format!(
                " (and {})",
                count(others as u64, "other call", "other calls")
            ),
        };
        format!("{}; {}{others}", self.task, longest.text(now))
    }

    /// Returns a line about the attempt that has waited longest; `None` if no line is due yet.
    fn due(&mut self, now: Instant) -> Option<String> {
        let longest = self
            .attempts
            .values_mut()
            .min_by_key(|attempt| attempt.since)?;
        let waited = now.saturating_duration_since(longest.since);
        let next = TOLD_AFTER.into_iter().find(|due| *due > longest.told);
        if waited < next.unwrap_or(longest.told + TOLD_EVERY) {
            return None;
        }
        longest.told = waited;
        Some(longest.text(now))
    }
}

impl Progress {
    pub(crate) fn new(json: bool) -> Self {
        let terminal = !json && stderr().is_terminal();
        let bar = if terminal {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            terminal,
            state: Mutex::default(),
        }
    }

    /// Updates the duration of the wait for the model once a second, until the progress is dropped.
    pub(crate) fn keep_current(self: &Arc<Self>) {
        let progress = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let Some(progress) = progress.upgrade() else {
                    return;
                };
                if let Some(line) = progress.tick(Instant::now()) {
                    note(&line);
                }
            }
        });
    }

    /// Sets the current task.
    pub(crate) fn say(&self, text: &str) {
        text.clone_into(&mut self.state().task);
        self.show(Instant::now());
    }

    /// Writes a line to stderr that is not replaced.
    pub(crate) fn aside(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }

    /// Removes the progress line from the terminal.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }

    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, now: Instant) {
        let text = self.state().text(now);
        self.bar.set_message(safe(&text).into_owned());
    }

    /// Updates the progress line on a terminal. Without a terminal, returns the line to print, if one is due.
    fn tick(&self, now: Instant) -> Option<String> {
        if self.terminal {
            if !self.state().attempts.is_empty() {
                self.show(now);
            }
            return None;
        }
        self.state().due(now)
    }

    /// Handles an event about an attempt. Without a terminal, returns the line to print about it, if any.
    fn observe(&self, event: &AttemptEvent<'_>, now: Instant) -> Option<String> {
        if let AttemptKind::Waiting { again_in } = event.kind {
            // No attempt is shown meanwhile, so the line is printed on a terminal too.
            return Some(format!(
                "model {}: it fails, and is asked again in {} s",
                event.model,
                again_in.as_secs()
            ));
        }
        let mut state = self.state();
        if let AttemptKind::Started { timeout } = event.kind {
            let attempt = Attempt {
                model: event.model.to_owned(),
                attempt: event.attempt,
                attempts: event.attempts,
                timeout,
                since: now,
                tokens: 0,
                told: Duration::ZERO,
            };
            state.attempts.insert(event.id, attempt);
            drop(state);
            self.show(now);
            return None;
        }
        if let AttemptKind::Receiving { progress } = event.kind {
            // The next tick shows it.
            if let Some(attempt) = state.attempts.get_mut(&event.id) {
                attempt.tokens = progress.output;
            }
            return None;
        }
        let ended = state.attempts.remove(&event.id);
        drop(state);
        self.show(now);
        let AttemptKind::Failed { error, retry_in } = event.kind else {
            return None;
        };
        let waited = ended.map_or(0, |attempt| {
            now.saturating_duration_since(attempt.since).as_secs()
        });
        let again = retry_in.map(|wait| format!("; next attempt in {} s", wait.as_secs()));
        let line = format!(
            "model {}: attempt {} of {} failed after {waited} s ({error}){}",
            event.model,
            event.attempt,
            event.attempts,
            again.unwrap_or_default(),
        );
        (!self.terminal).then_some(line)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done();
    }
}

impl CallObserver for Progress {
    fn attempt(&self, event: &AttemptEvent<'_>) {
        if let Some(line) = self.observe(event, Instant::now()) {
            self.aside(&line);
        }
    }
}

#[async_trait::async_trait]
impl Hooks for Progress {
    async fn event(&self, event: &Event) {
        if let Event::Published { range, .. } = event {
            self.bar.inc(1);
            self.say(&format!(
                "compacting: {}, now at message {}",
                count(self.bar.position(), "summary", "summaries"),
                range.last
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_memory::models::AnswerProgress;
    use indicatif::{InMemoryTerm, ProgressDrawTarget, TermLike as _};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn progress(terminal: bool) -> (Progress, InMemoryTerm) {
        let screen = InMemoryTerm::new(4, 120);
        assert_eq!(screen.width(), 120);
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(target);
        let state = Mutex::default();
        (
            Progress {
                bar,
                terminal,
                state,
            },
            screen,
        )
    }

    fn event(id: u64, attempt: u32, kind: AttemptKind<'_>) -> AttemptEvent<'_> {
        AttemptEvent::new(id, "small", attempt, 3, kind)
    }

    fn started() -> AttemptKind<'static> {
        let timeout = Some(SECOND * 120);
        AttemptKind::Started { timeout }
    }

    #[test]
    fn a_terminal_shows_which_attempt_is_waited_for_and_how_long() {
        let (progress, screen) = progress(true);
        let start = Instant::now();
        progress.say("compacting");
        assert_eq!(progress.observe(&event(1, 2, started()), start), None);
        progress.observe(&event(2, 1, started()), start + SECOND * 5);
        for (id, tokens) in [(1, 900), (2, 7), (1, 1_240)] {
            let progress_of = AnswerProgress::new(tokens * 100, tokens);
            let kind = AttemptKind::Receiving {
                progress: progress_of,
            };
            assert_eq!(progress.observe(&event(id, 1, kind), start), None);
        }
        assert_eq!(progress.tick(start + SECOND * 40), None);
        progress.bar.tick();
        let shown = screen.contents();
        assert!(
            shown.contains(
                "compacting; waiting for the model small, attempt 2 of 3, 40 of 120 s, 1,240 tokens so far (and 1 other call)"
            ),
            "{shown}"
        );
        progress.observe(&event(1, 2, AttemptKind::Answered), start);
        progress.observe(&event(2, 1, AttemptKind::Cancelled), start);
        progress.bar.tick();
        let shown = screen.contents();
        assert!(shown.ends_with("compacting"), "{shown}");
    }

    #[test]
    fn without_a_terminal_failures_and_long_waits_are_printed_on_lines() {
        let (progress, _screen) = progress(false);
        let start = Instant::now();
        assert_eq!(progress.observe(&event(1, 1, started()), start), None);
        let told: Vec<(u64, String)> = (1..=180)
            .filter_map(|n| Some((n, progress.tick(start + SECOND * n as u32)?)))
            .collect();
        let times: Vec<u64> = told.iter().map(|(n, _)| *n).collect();
        assert_eq!(times, [15, 60, 120, 180]);
        assert_eq!(
            told[0].1,
            "waiting for the model small, attempt 1 of 3, 15 of 120 s"
        );
        let error = "no answer within 120000 ms";
        let retry_in = Some(SECOND);
        let failed = event(1, 1, AttemptKind::Failed { error, retry_in });
        assert_eq!(
            progress.observe(&failed, start + SECOND * 120).unwrap(),
            "model small: attempt 1 of 3 failed after 120 s (no answer within 120000 ms); next \
             attempt in 1 s"
        );
        assert_eq!(progress.tick(start + SECOND * 300), None);
        let waiting = event(
            2,
            0,
            AttemptKind::Waiting {
                again_in: SECOND * 60,
            },
        );
        assert_eq!(
            progress.observe(&waiting, start).unwrap(),
            "model small: it fails, and is asked again in 60 s"
        );
    }
}
