//! The suite as a list of cases.

use std::fmt;
use std::pin::Pin;

use crate::fixture::{Fixture, SearchFixture};

/// The future of a running case.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One case of the suite: a promise, and the check of it.
pub struct Case<F> {
    /// The promise's name.
    pub name: &'static str,
    /// Runs the check. It panics when the promise is broken.
    pub run: for<'a> fn(&'a F) -> Running<'a>,
}

impl<F> fmt::Debug for Case<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All cases of the store suite, with those of the search suite over a scan.
pub fn list<F: Fixture>() -> Vec<Case<F>> {
    let mut cases = crate::conformance_tests!(@with list [F]);
    cases.extend(list_search());
    cases
}

/// All cases of the search suite.
pub fn list_search<F: SearchFixture>() -> Vec<Case<F>> {
    crate::search_conformance_tests!(@with list [F])
}

/// Runs the store suite, one case after the other.
///
/// # Panics
/// When a promise is broken; the case is named on the standard error output.
pub async fn run<F: Fixture>(fixture: &F) {
    run_cases(fixture, list()).await;
}

/// Runs the search suite, one case after the other.
///
/// # Panics
/// As [`run`].
pub async fn run_search<F: SearchFixture>(fixture: &F) {
    run_cases(fixture, list_search()).await;
}

async fn run_cases<F>(fixture: &F, cases: Vec<Case<F>>) {
    for case in cases {
        let named = Named(case.name);
        (case.run)(fixture).await;
        drop(named);
    }
}

/// Names the case when it panics.
struct Named(&'static str);

impl Drop for Named {
    #[allow(
        clippy::print_stderr,
        reason = "names the failed case beside the panic"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("conformance case {} failed", self.0);
        }
    }
}
