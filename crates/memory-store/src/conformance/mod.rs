//! The suite that every store passes, and tools for testing what is built on stores.
//!
//! Run it from a store's own tests: say how to get an empty store, and let the macro make one test
//! of each case, so that a failure names the broken promise.
//!
//! ```
//! use memory_store::InMemoryStore;
//! use memory_store::conformance::Fixture;
//!
//! struct Memory;
//!
//! impl Fixture for Memory {
//!     type Store = InMemoryStore;
//!
//!     async fn fresh(&self) -> InMemoryStore {
//!         InMemoryStore::new()
//!     }
//! }
//!
//! // One `#[tokio::test]` for each case.
//! memory_store::conformance_tests!(Memory);
//!
//! # fn main() { // Or all cases in one go:
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! memory_store::conformance::run(&Memory).await;
//! // And random interleavings, step by step against the reference store.
//! memory_store::conformance::random_ops(&Memory, 8).await;
//! # });
//! # }
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test suite: a broken promise panics"
)]

mod build;
mod family;
mod faulty;
mod inherit;
mod jobs;
mod lineage;
mod log;
mod publish;
mod random;
mod search;
mod views;

use std::fmt;
use std::pin::Pin;

use crate::store::FullStore;

pub use build::{
    PlainCounts, Source, append, entry, expand, fill, message, publish_summary, range, raw,
    replace, root, shown, sound, spans_of_view, summary_of, texts, verify_store,
};

pub use faulty::{Fault, FaultyStore};
pub use random::random_ops;

/// Makes stores for the suite.
#[allow(async_fn_in_trait, reason = "tests await these in place")]
pub trait Fixture {
    /// The store under test.
    type Store: FullStore;

    /// An empty store that shares nothing with any other.
    async fn fresh(&self) -> Self::Store;

    /// Closes a store and opens what it kept. A store that keeps nothing returns itself.
    async fn reopen(&self, store: Self::Store) -> Self::Store {
        store
    }
}

/// One case of the suite, as it runs.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One promise of a store, and the check of it.
pub struct Case<F> {
    /// The promise's name.
    pub name: &'static str,
    /// The check: panics when the promise is broken.
    pub run: for<'a> fn(&'a F) -> Running<'a>,
}

impl<F> fmt::Debug for Case<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All cases; what [`run`] and [`conformance_tests!`](crate::conformance_tests) go through.
pub fn list<F: Fixture>() -> Vec<Case<F>> {
    crate::conformance_tests!(@with list [F])
}

/// Runs all cases, one after the other.
///
/// # Panics
/// When a promise is broken; the case is named on the standard error output.
pub async fn run<F: Fixture>(fixture: &F) {
    for case in list::<F>() {
        let named = Named(case.name);
        (case.run)(fixture).await;
        drop(named);
    }
}

/// Says which case failed, should it panic.
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

/// The cases as functions.
pub mod cases {
    pub use super::family::*;
    pub use super::inherit::*;
    pub use super::jobs::*;
    pub use super::lineage::*;
    pub use super::log::*;
    pub use super::publish::*;
    pub use super::search::*;
    pub use super::views::*;
}

/// Makes one `#[tokio::test]` of each case of the suite; takes an expression that gives a
/// [`Fixture`]. The calling crate needs `tokio` with `macros` and `rt`.
#[macro_export]
macro_rules! conformance_tests {
    ($fixture:expr) => {
        $crate::conformance_tests!(@with tests [$fixture]);
    };
    (@tests [$fixture:expr] $($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                $crate::conformance::cases::$case(&$fixture).await;
            }
        )*
    };
    (@list [$fixture:ty] $($case:ident)*) => {
        vec![$($crate::conformance::Case {
            name: stringify!($case),
            run: |fixture: &$fixture| Box::pin($crate::conformance::cases::$case(fixture)),
        }),*]
    };
    (@with $what:ident $args:tt) => {
        $crate::conformance_tests! { @$what $args
            open_gets_or_creates
            conversations_are_listed_in_order
            update_changes_what_it_names
            forks_share_the_log_up_to_their_point
            forks_of_forks_see_through
            forks_beyond_the_head_are_refused
            forks_keep_their_own_external_ids
            spawned_conversations_share_nothing
            missing_conversations_are_not_found
            appends_are_dense_and_in_order
            batches_of_every_size
            an_external_id_is_stored_once
            an_append_can_demand_the_head
            figures_of_another_estimator_are_refused
            notes_are_kept_and_cost_nothing
            every_byte_comes_back
            large_bodies_come_back
            a_log_is_read_in_pages
            a_page_holds_at_least_one_entry
            reads_beyond_the_head_end_there
            running_sums_and_positions
            a_store_opens_again
            writers_side_by_side
            a_view_starts_as_one_raw_span
            spans_are_paged_in_both_orders
            old_versions_stay_readable
            snapshots_do_not_move
            views_are_independent
            saved_is_what_the_view_saves
            publishing_replaces_the_run
            publishing_twice_is_already_done
            publishing_nothing_new_is_already_done
            a_lost_publish_changes_nothing
            publishing_over_part_of_a_raw_span
            neighbours_merge
            indivisible_spans_are_replaced_whole
            bad_spans_are_refused
            bad_summaries_are_refused
            a_stored_summary_is_kept_as_it_is
            publications_tell_the_history
            two_writers_and_one_winner
            summaries_come_back_whole
            summaries_are_looked_up_and_listed
            containers_and_sources
            a_fork_inherits_the_view_cut_at_its_point
            a_fork_inherits_every_view
            summaries_are_seen_with_what_they_cover
            the_same_summary_is_seen_once
            forks_of_forks_inherit
            parent_and_child_go_their_own_ways
            a_job_is_granted_once
            a_lease_ends_and_is_renewed
            prepared_work_is_kept
            a_failed_job_is_free_again
            a_fence_guards_a_publish
            an_old_fence_never_comes_back
            state_is_changed_by_revision
            search_is_literal
            search_ignores_case
            search_reads_every_part
            search_skips_notes
            search_keeps_its_limit
            search_pages_give_every_hit_once
            search_stays_in_its_conversation
            bad_queries_are_refused
        }
    };
}
