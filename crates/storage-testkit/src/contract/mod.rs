//! Checks the promises of a store, one module per topic.
//!
//! A case is an async function over a [`Harness`], which opens the same store repeatedly.
//! [`contract_tests!`] wraps each case into a test. A change of the storage interface begins here.
//!
//! | topic | promise of a store |
//! | --- | --- |
//! | [`commit`] | a batch is atomic, takes its place at the call, and later reads see it |
//! | [`fence`] | only the last claim writes a shard, and its batches follow on from each other |
//! | [`concurrent`] | both hold for concurrent calls, and for calls whose future is dropped |
//! | [`journal`] | records return byte for byte, in order; none is written twice |
//! | [`runs`], [`recover`], [`lists`] | rows are replaced, found for recovery, and listed newest first by filter |
//! | [`timers`], [`outbox`], [`letters`] | a row that was put is found, in order and in pages that meet; a removed row is gone |
//! | [`backlogs`] | a shard reports its first due time and the count of its messages |
//! | [`keys`], [`callbacks`] | the same for keys, found by prefix, and for pending expiry callbacks |
//! | [`plans`], [`tasks`], [`locks`] | the same for plans, for tasks, counted and found by plan and tenant, and for locks |
//! | [`forgotten`] | a truncated journal, or its prefix, is gone, and nothing else with it |
//! | [`snapshots`] | the last snapshot of an entity returns byte for byte and replaces earlier ones |
//! | [`feed`] | a reader follows the writes of each shard from any position; no position is reused |
//! | [`definitions`] | the first text under a hash stays |
//! | [`retention`] | ended runs and plans are removed in steps, hidden from the first step on; all else stays |
//! | [`size`] | large batches, long journals, large payloads, long and unusual names |
//! | [`reopen`] | all of this survives closing the store |
//!
//! Instances that share a store rely on a second suite, [`lease_contract_tests!`], over a
//! [`LeaseHarness`](leases::LeaseHarness):
//!
//! | topic | promise of leases |
//! | --- | --- |
//! | [`leases`](mod@leases) | a shard has one owner; a former owner cannot write it; the other instances receive a notification |
//!
//! # Test a new store
//! Implement [`Harness`] over data that only this test uses, such as a folder or a schema with a unique name.
//! The data is empty at first, and each call opens the same data again.
//! Each case is then a test with a name: `cargo test contract::fence`.
//!
//! ```
//! use async_trait::async_trait;
//! use steadfast_storage_testkit::contract::Harness;
//! use steadfast_store::memory::Memory; // the store under test
//!
//! struct Fresh(parking_lot::Mutex<Memory>);
//!
//! #[async_trait]
//! impl Harness for Fresh {
//!     type Store = Memory;
//!
//!     async fn open(&self) -> Memory {
//!         let mut data = self.0.lock();
//!         *data = data.reopen(); // ends the handle before, keeps its commits
//!         data.clone()
//!     }
//! }
//!
//! mod contract {
//!     use super::*;
//!     steadfast_storage_testkit::contract_tests!(Fresh(Default::default()));
//! }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! #     steadfast_storage_testkit::contract::commit::a_batch_is_applied_as_a_whole(&Fresh(Default::default())).await;
//! # });
//! ```
//!
//! The suite covers neither durability under power loss, nor damaged files, nor speed: each store tests those itself.
//! Random operations cover combinations that no case has: see [`differential`](crate::differential).
//!
//! [`contract_tests!`]: crate::contract_tests
//! [`lease_contract_tests!`]: crate::lease_contract_tests
//!
//! Subject: `crates/store/src/lib.rs`.
#![allow(clippy::unwrap_used, reason = "a case is a test: a failed call is a failed case")]

pub mod backlogs;
pub mod callbacks;
pub mod commit;
pub mod concurrent;
pub mod definitions;
pub mod feed;
pub mod fence;
mod fixture;
pub mod forgotten;
pub mod journal;
pub mod keys;
pub mod leases;
pub mod letters;
pub mod lists;
pub mod locks;
pub mod outbox;
pub mod plans;
pub mod recover;
pub mod reopen;
pub mod retention;
pub mod runs;
pub mod size;
pub mod snapshots;
pub mod tasks;
pub mod timers;

use async_trait::async_trait;
use steadfast_store::Store;

/// The data of one store, which a test opens repeatedly.
#[async_trait]
pub trait Harness: Send + Sync {
    /// The store under test.
    type Store: Store;

    /// Opens the data, which is empty the first time. The case never uses an earlier handle again.
    async fn open(&self) -> Self::Store;
}

/// Wraps each case of the suite into a test with a new harness: `contract_tests!(MyHarness::new());`.
///
/// The calling crate needs tokio with `macros` and `rt`.
#[macro_export]
macro_rules! contract_tests {
    ($harness:expr) => {
        $crate::contract_tests! { @topics $harness;
            commit {
                a_batch_is_applied_as_a_whole,
                a_refused_batch_leaves_no_trace,
                a_batch_takes_its_place_when_commit_is_called,
                many_commits_can_be_under_way,
                the_last_of_several_rows_of_a_batch_stays,
                dropping_the_outcome_does_not_take_the_batch_back,
                reads_see_what_was_announced,
                lists_see_what_was_announced,
                only_batches_that_were_applied_are_counted,
            }
            fence {
                a_claim_raises_the_term_and_keeps_the_number,
                shards_are_claimed_apart,
                a_stale_term_is_refused,
                a_term_to_come_is_refused,
                a_gap_is_refused,
                a_repeated_batch_is_refused,
                what_follows_a_failed_batch_fails_with_it,
                a_refused_batch_can_be_replaced,
                head_tells_whether_a_batch_is_there,
                a_batch_with_nothing_but_a_fence_advances,
                one_stale_shard_refuses_the_whole_batch,
                batches_merged_in_order_are_one_commit,
                a_batch_of_several_shards_advances_each,
                a_gap_of_one_shard_refuses_the_whole_batch,
                batches_merged_out_of_order_are_refused,
            }
            concurrent {
                writers_of_shards_do_not_disturb_each_other,
                of_two_batches_with_one_number_one_is_applied,
                claims_at_once_have_terms_of_their_own,
                a_claim_takes_its_place_among_commits,
                an_outcome_tells_of_those_before_it,
                a_read_never_sees_half_of_a_batch,
                a_call_that_is_dropped_harms_nobody,
            }
            journal {
                every_field_comes_back,
                fields_at_their_limits_come_back,
                payload_bytes_come_back_exactly,
                entries_come_in_order_and_in_pages,
                journals_of_ids_that_begin_alike_do_not_mix,
                journals_of_kinds_of_entities_do_not_mix,
                an_event_is_written_once,
                an_event_twice_in_one_batch_is_refused,
            }
            runs {
                a_row_comes_back,
                every_status_comes_back,
                a_row_is_replaced,
            }
            recover {
                the_oldest_come_first,
                runs_come_in_pages,
                rows_say_what_is_to_be_done,
                runs_leave_and_return,
                runs_of_shards_are_apart,
            }
            lists {
                runs_come_newest_first,
                filters_apply_alone_and_together,
                pages_meet_without_gaps_or_repeats,
                a_page_begins_after_any_place,
                pages_hold_while_runs_begin,
                times_have_a_beginning_and_an_end,
                names_are_compared_as_a_whole,
                text_is_found_where_people_look,
                text_is_found_in_either_case,
                text_is_taken_as_it_is,
                a_search_goes_on_where_it_stopped_looking,
                a_search_says_how_far_it_has_come,
                lists_follow_the_rows,
                there_may_be_nothing,
            }
            timers {
                timers_come_in_the_order_of_their_keys,
                pages_follow_the_same_order,
                a_page_begins_after_a_key_that_is_gone,
                arming_again_replaces,
                arming_again_moves_between_shards,
                pages_hold_while_timers_come_and_go,
                timers_of_keys_are_apart_from_those_of_runs,
                disarming_what_is_not_there_is_fine,
                changes_of_one_batch_apply_in_order,
                timers_of_shards_are_apart,
            }
            backlogs {
                what_waits_is_told_by_shard,
                messages_are_counted_up_to_a_number,
            }
            outbox {
                every_message_comes_back,
                messages_come_in_the_order_of_their_senders,
                pages_meet,
                a_page_begins_after_a_message_that_is_gone,
                what_is_settled_is_gone,
                settling_what_is_not_there_is_fine,
                adding_again_replaces,
                messages_of_one_batch_change_in_order,
                messages_stand_and_fall_with_their_events,
                messages_of_shards_are_apart,
            }
            letters {
                a_letter_comes_back,
                letters_of_boxes_are_apart,
                letters_of_keys_come_back,
                letters_of_messages_come_back,
                a_newer_failure_takes_the_place_of_the_older_one,
                a_letter_is_replaced,
                letters_come_newest_first,
                pages_of_letters_meet,
                what_is_removed_is_gone,
                removing_what_is_not_there_is_fine,
                letters_of_one_batch_change_in_order,
                letters_are_found_by_what_is_asked_for,
                letters_stand_and_fall_with_their_events,
            }
            keys {
                a_key_comes_back,
                every_target_of_a_key_comes_back,
                values_of_keys_come_back_exactly,
                a_key_is_replaced,
                a_directory_that_has_ended_is_there,
                several_keys_are_found_at_once,
                keys_are_listed_by_what_they_begin_with,
                pages_of_keys_meet,
                a_page_of_keys_begins_after_any_name,
                a_key_that_is_removed_is_gone,
                keys_of_one_batch_change_in_order,
                keys_stand_and_fall_with_their_events,
            }
            callbacks {
                a_callback_comes_back,
                a_callback_is_replaced,
                those_that_have_waited_for_longest_come_first,
                pages_of_callbacks_meet,
                filters_of_callbacks_apply_alone_and_together,
                callbacks_are_counted_by_shard,
                a_callback_that_is_removed_is_gone,
                callbacks_and_keys_are_apart,
                callbacks_of_one_batch_change_in_order,
                callbacks_stand_and_fall_with_their_events,
            }
            plans {
                a_plan_comes_back,
                every_status_of_a_plan_comes_back,
                a_plan_is_replaced,
                the_last_of_several_rows_of_a_plan_stays,
                plans_come_newest_first,
                filters_of_plans_apply_alone_and_together,
                pages_of_plans_meet,
                a_page_of_plans_begins_after_any_place,
                plans_stand_and_fall_with_their_events,
            }
            tasks {
                a_task_comes_back,
                every_status_of_a_task_comes_back,
                a_task_is_replaced,
                tasks_of_a_plan_come_in_the_order_of_their_ids,
                pages_of_tasks_meet,
                tasks_are_counted_by_status,
                counts_follow_the_tasks,
                the_latest_task_of_a_tenant_is_found,
                a_task_that_is_swept_is_gone,
                plans_and_tasks_are_apart,
                tasks_stand_and_fall_with_their_events,
            }
            locks {
                a_lock_comes_back,
                a_lock_is_replaced,
                several_locks_are_found_at_once,
                pages_of_locks_meet,
                a_lock_that_is_removed_is_gone,
                locks_of_one_batch_change_in_order,
                locks_stand_and_fall_with_their_events,
            }
            forgotten {
                the_beginning_of_a_journal_is_forgotten,
                a_whole_journal_is_forgotten_with_its_snapshot,
                a_batch_forgets_after_all_else,
                a_forgotten_journal_begins_anew,
                places_of_what_is_forgotten_are_not_given_again,
                the_feed_skips_what_is_forgotten,
                other_journals_are_kept,
                what_begins_anew_is_not_merged_with_its_end,
                what_a_failed_batch_forgets_is_there,
                what_is_forgotten_stays_so,
            }
            size {
                a_batch_may_be_large,
                a_page_is_full_if_there_is_more,
                a_journal_may_be_long,
                the_largest_payloads_come_back,
                long_texts_come_back,
                the_longest_ids_come_back,
                names_are_compared_by_their_bytes,
            }
            snapshots {
                a_snapshot_comes_back,
                a_snapshot_is_replaced,
                the_last_of_several_snapshots_of_a_batch_stays,
                snapshots_of_entities_are_apart,
                snapshots_stand_and_fall_with_their_events,
            }
            feed {
                what_is_written_comes_in_its_order,
                pages_of_the_feed_meet,
                shards_are_fed_each_in_its_order,
                one_entity_can_be_followed,
                a_run_comes_with_its_tenant,
                what_failed_is_not_fed,
                a_place_is_not_given_again,
                what_is_half_swept_is_not_fed,
            }
            definitions {
                a_definition_comes_back,
                what_was_kept_first_stays,
                definitions_come_by_their_time,
                a_failed_batch_keeps_no_definition,
            }
            retention {
                ended_runs_are_found_by_how_and_when_they_ended,
                runs_come_oldest_first,
                everything_of_a_swept_run_is_gone,
                what_must_not_be_removed_is_kept,
                a_stale_holder_does_not_sweep,
                a_sweep_does_not_move_the_shard_on,
                a_long_journal_goes_in_steps_and_is_never_seen_half,
                many_small_runs_share_a_step,
                everything_of_a_swept_plan_is_gone,
                a_plan_that_has_tasks_is_kept,
                what_is_no_ended_plan_is_kept,
                a_long_plan_goes_in_steps_and_is_never_seen_half,
            }
            reopen {
                everything_committed_is_there,
                terms_go_on,
                fences_hold,
                what_is_gone_stays_gone,
                what_was_not_awaited_is_whole_or_absent,
                the_counter_starts_again,
            }
        }
    };
    (@topics $harness:expr; $($topic:ident $cases:tt)+) => {
        $($crate::contract_tests! { @topic $harness; $topic $cases })+
    };
    (@topic $harness:expr; $topic:ident { $($case:ident,)+ }) => {
        mod $topic {
            use super::*;
            $(#[tokio::test]
            async fn $case() {
                $crate::contract::$topic::$case(&$harness).await;
            })+
        }
    };
}

/// Wraps each case of [`leases`](mod@crate::contract::leases) into a test with a new
/// [`LeaseHarness`](crate::contract::leases::LeaseHarness).
#[macro_export]
macro_rules! lease_contract_tests {
    ($harness:expr) => {
        $crate::contract_tests! { @topics $harness;
            leases {
                whoever_has_not_joined_has_nothing,
                shards_are_shared,
                what_is_given_back_is_free,
                what_is_given_away_under_way_is_lost,
                what_was_given_away_late_is_not_given_away_twice,
                a_lease_that_is_over_is_lost,
                a_beat_renews,
                exceptions_are_not_taken,
                one_that_drains_gets_none,
                living_instances_are_counted,
                one_that_leaves_loses_what_it_has,
                a_next_life_has_what_the_former_one_had,
                one_that_drains_is_not_taken_for_dead,
                one_may_join_again,
                the_long_silent_are_taken_out,
                a_former_holder_is_fenced,
                a_claim_of_the_store_needs_the_lease,
                a_shard_is_never_two_instances,
                changes_of_leases_are_heard,
                commits_are_heard_by_the_others,
                what_is_heard_waits_for_whoever_asks,
            }
        }
    };
}

#[cfg(test)]
mod tests {
    /// A topic or case that is not listed would never run.
    #[test]
    fn every_case_is_listed_under_its_topic() {
        let list = include_str!("mod.rs");
        let topics = [
            ("backlogs", include_str!("backlogs.rs")),
            ("callbacks", include_str!("callbacks.rs")),
            ("commit", include_str!("commit.rs")),
            ("concurrent", include_str!("concurrent.rs")),
            ("definitions", include_str!("definitions.rs")),
            ("feed", include_str!("feed.rs")),
            ("fence", include_str!("fence.rs")),
            ("forgotten", include_str!("forgotten.rs")),
            ("journal", include_str!("journal.rs")),
            ("keys", include_str!("keys.rs")),
            ("leases", include_str!("leases.rs")),
            ("letters", include_str!("letters.rs")),
            ("lists", include_str!("lists.rs")),
            ("locks", include_str!("locks.rs")),
            ("outbox", include_str!("outbox.rs")),
            ("plans", include_str!("plans.rs")),
            ("recover", include_str!("recover.rs")),
            ("reopen", include_str!("reopen.rs")),
            ("retention", include_str!("retention.rs")),
            ("runs", include_str!("runs.rs")),
            ("size", include_str!("size.rs")),
            ("snapshots", include_str!("snapshots.rs")),
            ("tasks", include_str!("tasks.rs")),
            ("timers", include_str!("timers.rs")),
        ];
        let declared: Vec<_> = list.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
        assert!(topics.iter().map(|(topic, _)| *topic).eq(declared), "every topic is looked at here");
        for (topic, source) in topics {
            let listed = list
                .split_once(&format!(" {topic} {{\n"))
                .and_then(|(_, rest)| rest.split('}').next())
                .unwrap_or_default();
            let listed: Vec<_> = listed.lines().map(|line| line.trim().trim_end_matches(',')).collect();
            let cases = source.split("pub async fn ").skip(1).filter_map(|text| text.split(['(', '<']).next());
            let missing: Vec<_> = cases.filter(|case| !listed.contains(case)).collect();
            assert!(missing.is_empty(), "not in contract_tests!, under {topic}: {missing:?}");
        }
    }
}
