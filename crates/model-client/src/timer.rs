//! Time as an argument.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

/// A monotonic clock that can wait. Guards take it as an argument, so that they need no async runtime, and tests need
/// not wait.
#[async_trait]
pub trait Timer: Send + Sync + Debug {
    /// Returns the time since a fixed moment. It never decreases.
    fn now(&self) -> Duration;

    /// Completes when `duration` has passed. Dropping the future ends the wait.
    async fn sleep(&self, duration: Duration);
}

#[async_trait]
impl<T: Timer + ?Sized> Timer for std::sync::Arc<T> {
    fn now(&self) -> Duration {
        (**self).now()
    }

    async fn sleep(&self, duration: Duration) {
        (**self).sleep(duration).await;
    }
}

/// A [`Timer`] with the clock of Tokio. Outside of a Tokio runtime it never ends a wait, so time limits have no effect.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy)]
pub struct TokioTimer {
    start: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl TokioTimer {
    /// Creates a timer with the time 0.
    pub fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
        }
    }
}

#[cfg(feature = "tokio")]
impl Default for TokioTimer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "tokio")]
#[async_trait]
impl Timer for TokioTimer {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        match tokio::runtime::Handle::try_current() {
            Ok(_) => tokio::time::sleep(duration).await,
            Err(_) => std::future::pending().await,
        }
    }
}
