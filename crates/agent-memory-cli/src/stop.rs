//! Handling of SIGINT and SIGTERM.
//!
//! While a command holds leases (reservations of compaction jobs), the first signal cancels the command: it releases
//! the leases and closes the database. The first signal ends every other command at once, and a second signal ends any
//! command. Committed data is kept in all cases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use agent_memory::compaction::CancellationToken;

use crate::error::{Failure, Kind};

/// The handler of signals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// Token that the first signal cancels while leases are held.
    cancel: CancellationToken,
    state: Arc<SignalState>,
}

#[derive(Debug, Default)]
struct SignalState {
    /// Whether the command holds leases.
    held: AtomicBool,
    /// Number of the first signal, such as 15 for SIGTERM; 0 before a signal.
    signal: AtomicI32,
}

impl Stop {
    /// Starts listening for signals.
    #[cfg(unix)]
    pub(crate) fn listen(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};

        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let stop = self.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    stop.signalled(signal);
                }
            })?;
        Ok(())
    }

    /// Does nothing on this platform: without a handler, the system ends the program on these signals.
    #[cfg(not(unix))]
    pub(crate) fn listen(&self) -> std::io::Result<()> {
        Ok(())
    }

    #[cfg(unix)]
    fn signalled(&self, signal: i32) {
        let first = self.state.signal.swap(signal, Ordering::SeqCst) == 0;
        if first && self.state.held.load(Ordering::SeqCst) {
            crate::output::note("stopping: releasing leases; send the signal again to end at once");
            self.cancel.cancel();
            return;
        }
        std::process::exit(128 + signal);
    }

    /// Returns a guard and a cancellation token. Until the guard is dropped, the first signal cancels the token
    /// instead of ending the program.
    pub(crate) fn holding(&self) -> (Holding, CancellationToken) {
        self.state.held.store(true, Ordering::SeqCst);
        (Holding(Arc::clone(&self.state)), self.cancel.clone())
    }

    /// Returns the failure of a command that a signal cancelled.
    pub(crate) fn failure(&self) -> Failure {
        let kind = match self.state.signal.load(Ordering::SeqCst) {
            15 => Kind::Terminated,
            _ => Kind::Interrupted,
        };
        Failure::new(kind, "stopped by a signal")
            .hint("published summaries stay; run it again to continue")
    }
}

/// Guard that exists while a command holds leases.
#[derive(Debug)]
pub(crate) struct Holding(Arc<SignalState>);

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::SeqCst);
    }
}
