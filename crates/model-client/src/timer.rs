//! Timers, which guards take as an argument.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

/// A monotonic clock that can wait. Guards take a timer as an argument, so that they do not depend on an async runtime,
/// and so that tests do not have to wait.
#[async_trait]
pub trait Timer: Send + Sync + Debug {
    /// Returns the time since a fixed moment. The time never decreases.
    fn now(&self) -> Duration;

    /// Waits until `duration` has passed. Dropping the future cancels the wait.
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

/// A [`Timer`] with the clock of Tokio. Outside of a Tokio runtime its waits never end, so time limits have no effect.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy)]
pub struct TokioTimer {
    start: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl TokioTimer {
    /// Creates a timer at time 0.
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
