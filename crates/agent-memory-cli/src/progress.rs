//! Progress, on a terminal.

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use agent_memory::{Event, Hooks};
use indicatif::ProgressBar;

use crate::output::{count, note, safe};

/// What is being done, on one line of stderr that goes away. Nothing at all when stderr is no
/// terminal or the answer is JSON.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(json: bool) -> Self {
        let bar = if json || !stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        };
        Self { bar }
    }

    /// Says what is being done.
    pub(crate) fn say(&self, text: &str) {
        self.bar.set_message(safe(text).into_owned());
    }

    /// Writes a line to stderr that stays.
    pub(crate) fn aside(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }

    /// Takes the line away.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done();
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
