#![doc = include_str!("../README.md")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test suite: a broken promise panics"
)]

mod builders;
pub mod cases;
mod chat;
mod faulty;
mod fixture;
mod generated;
mod indexed;
mod layer;
#[cfg(feature = "random")]
mod random;
mod vectors;

pub use builders::{
    PlainCounts, batch, entry, message, new_conversation, range, raw, replace, showing, shown,
    sound, verify_store,
};
pub use chat::{Chat, Source};
pub use faulty::{Fault, Faults, FaultyStore};
pub use fixture::{Fixture, SearchFixture};
pub use generated::{Generated, needle};
pub use indexed::{
    an_index_is_checked_while_it_changes, index_answers_as_a_scan, index_segments_are_few,
};
pub use layer::{Answer, Layer, Layered};
#[cfg(feature = "random")]
pub use random::random_ops;
pub use vectors::{
    Subjects, an_erasure_leaves_no_vector, pages_are_of_one_ranking, searches_count_vectors,
    vectors_are_kept,
};

/// Defines a test (`#[tokio::test]`) for each case of the store suite, and for each case of the search suite with a
/// search that scans the store. The argument is an expression that evaluates to a [`Fixture`]. The calling crate needs
/// `tokio` with the features `macros` and `rt`.
#[macro_export]
macro_rules! conformance_tests {
    (@tests [$fixture:expr] $($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let fixture = $fixture;
                let store = $crate::Fixture::fresh(&fixture).await;
                $crate::cases::$case(&store).await;
                $crate::sound(&store).await;
            }
        )*
    };
    (@reopened [$fixture:expr] $($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                $crate::cases::$case(&$fixture).await;
            }
        )*
    };
    (@searches [$fixture:expr] $($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let world = $crate::cases::World::new($fixture).await;
                $crate::cases::$case(&world).await;
                world.sound().await;
            }
        )*
    };
    ($fixture:expr) => {
        $crate::search_conformance_tests!($fixture);
        $crate::conformance_tests! { @reopened [$fixture]
            a_store_opens_again
            prepared_work_is_kept
            several_publishes_have_separate_outcomes
        }
        $crate::conformance_tests! { @tests [$fixture]
            open_gets_or_creates
            conversations_are_listed_in_order
            update_changes_only_named_fields
            forks_share_the_log_up_to_their_point
            forks_of_forks_see_through
            forks_beyond_the_head_are_refused
            forks_keep_their_own_external_ids
            spawned_conversations_share_no_log
            missing_conversations_are_not_found
            appends_are_dense_and_in_order
            batches_of_every_size
            an_external_id_is_stored_once
            an_append_can_demand_the_head
            figures_of_another_estimator_are_refused
            notes_are_kept_and_free
            every_byte_comes_back
            large_bodies_come_back
            a_log_is_read_in_pages
            a_page_holds_at_least_one_entry
            entries_are_read_by_their_positions
            reads_beyond_the_head_end_there
            running_sums_and_positions
            writers_side_by_side
            a_view_starts_as_one_raw_span
            spans_are_paged_in_both_orders
            old_versions_stay_readable
            snapshots_do_not_move
            views_are_independent
            saved_is_the_difference_of_costs
            publishing_replaces_the_run
            publishing_twice_is_already_done
            publishing_the_same_spans_is_already_done
            a_lost_publish_has_no_effect
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
            parents_and_sources
            sources_are_separate_from_children
            a_fork_inherits_the_view_cut_at_its_point
            a_fork_inherits_every_view
            summaries_of_shared_messages_are_visible
            the_same_summary_is_seen_once
            forks_of_forks_inherit
            parent_and_child_go_their_own_ways
            a_job_is_granted_once
            a_lease_ends_and_is_renewed
            a_failed_job_is_free_again
            a_fence_guards_a_publish
            an_old_fence_is_never_valid_again
            several_jobs_are_claimed_and_settled_in_one_call
            updates_of_one_job_are_applied_in_order
            publishes_to_several_views_are_refused
            state_is_changed_by_revision
            an_erasure_removes_words_and_derived_summaries
            an_erasure_outdates_earlier_reads
            an_erasure_reaches_every_fork_that_shows_it
            a_deleted_conversation_keeps_its_place
            bad_erasures_are_refused
        }
    };
}

/// Defines a test (`#[tokio::test]`) for each case of the search suite. The argument is an expression that evaluates to
/// a [`SearchFixture`]. The calling crate needs `tokio` with the features `macros` and `rt`.
#[macro_export]
macro_rules! search_conformance_tests {
    ($fixture:expr) => {
        $crate::conformance_tests! { @searches [$fixture]
            search_is_literal
            search_ignores_case
            search_ignores_normal_forms
            search_reads_every_part
            search_skips_notes
            search_keeps_its_limit
            search_stays_in_its_conversation
            filters_narrow_each_other
            echoes_are_found_on_demand
            tools_narrow_a_search
            hits_come_in_the_order_asked
            matches_lie_in_their_snippet
            every_mode_takes_any_input
            every_mode_pages_and_filters
            regular_expressions_match_lines
            words_are_found_in_any_order
            questions_are_answered_best_first
            a_search_without_a_mode_falls_back
            ranked_pages_stay_as_they_were
            bad_queries_are_refused
        }
    };
}
