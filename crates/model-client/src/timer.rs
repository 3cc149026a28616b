//! Time as an argument.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

/// A monotonic clock that can wait. Guards get it as an argument, so that they need no runtime and
/// tests need not wait.
#[async_trait]
pub trait Timer: Send + Sync + Debug {
    /// Returns the time since some fixed moment. It never decreases.
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

/// Tokio's clock. Outside of a Tokio runtime, time-outs never happen.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone, Copy)]
pub struct TokioTimer {
    start: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl TokioTimer {
    /// Returns a timer that starts at zero.
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
