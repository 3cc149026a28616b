//! Stop conditions of searches.

use std::fmt;
use std::sync::Arc;

/// A condition that ends a search early, such as a deadline. As soon as the condition is true, the search returns the
/// hits found so far, as an incomplete answer with a cursor for the rest.
///
/// A search checks the condition about once for each message that it reads. Each answer examines at least one message,
/// so a caller that repeats the query with the returned cursor always makes progress.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use memory_search::{Query, SearchStop};
///
/// let cancelled = Arc::new(AtomicBool::new(false));
/// let seen = Arc::clone(&cancelled);
/// let query = Query::new("pump").with_stop(SearchStop::new(move || seen.load(Ordering::Relaxed)));
/// assert!(!query.is_over());
/// cancelled.store(true, Ordering::Relaxed);
/// assert!(query.is_over());
/// ```
#[derive(Clone)]
pub struct SearchStop(Arc<dyn Fn() -> bool + Send + Sync>);

impl SearchStop {
    /// Creates a condition from a function that returns `true` once the search must end. The function is called often
    /// and must be fast.
    pub fn new(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_over))
    }

    /// Returns whether the search must end now.
    pub fn is_over(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for SearchStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SearchStop").field(&self.is_over()).finish()
    }
}

impl PartialEq for SearchStop {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SearchStop {}
