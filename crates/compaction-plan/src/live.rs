//! Policies that may change while a program runs.

use std::fmt;
use std::sync::Arc;

/// A policy that may change while a program runs. It wraps a function that is called at each use of the policy.
#[derive(Clone)]
pub struct Live<P>(Arc<dyn Fn() -> P + Send + Sync>);

impl<P> Live<P> {
    /// Creates a live policy. `policy` returns the current values.
    pub fn new(policy: impl Fn() -> P + Send + Sync + 'static) -> Self {
        Self(Arc::new(policy))
    }

    /// Returns the current policy.
    pub fn get(&self) -> P {
        (self.0)()
    }
}

impl<P: Clone + Send + Sync + 'static> From<P> for Live<P> {
    fn from(policy: P) -> Self {
        Self::new(move || policy.clone())
    }
}

impl<P: fmt::Debug> fmt::Debug for Live<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Live").field(&self.get()).finish()
    }
}
