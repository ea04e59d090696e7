//! The facts, a file each. `hold` is checked after every kill on what the process left behind, with what was there one kill before;
//! `holds_at_the_end` when every run has ended.

mod a_child_ends_as_its_parent_hears;
mod a_letter_is_kept_until_it_is_settled;
mod a_message_is_heard_once;
mod a_paused_run_stands_still;
mod a_recorded_step_never_changes;
mod a_refusal_leaves_no_trace;
mod a_timer_fires_or_is_cancelled_once;
mod a_timer_never_fires_early;
mod an_attempt_reads_what_was_said_before;
mod attempts_are_consecutive_and_bounded;
mod every_run_ends_or_waits_for_something_named;
mod final_is_final;
mod manual_recovery_waits_for_a_person;
mod no_more_holders_than_slots;
mod nothing_acknowledged_is_lost;
mod nothing_begins_before_it_is_recorded;
mod nothing_recorded_is_executed_again;
mod one_live_fence_per_run;
mod one_run_per_id;
mod sequences_have_no_gap;
mod state_is_the_fold_of_its_events;

use crate::world::World;

type Fact = fn(now: &World, before: &World);

const FACTS: &[Fact] = &[
    sequences_have_no_gap::holds,
    state_is_the_fold_of_its_events::holds,
    one_run_per_id::holds,
    one_live_fence_per_run::holds,
    attempts_are_consecutive_and_bounded::holds,
    a_timer_never_fires_early::holds,
    a_timer_fires_or_is_cancelled_once::holds,
    a_recorded_step_never_changes::holds,
    final_is_final::holds,
    a_refusal_leaves_no_trace::holds,
    nothing_acknowledged_is_lost::holds,
    nothing_begins_before_it_is_recorded::holds,
    nothing_recorded_is_executed_again::holds,
    a_message_is_heard_once::holds,
    no_more_holders_than_slots::holds,
    a_letter_is_kept_until_it_is_settled::holds,
    a_paused_run_stands_still::holds,
    manual_recovery_waits_for_a_person::holds,
    an_attempt_reads_what_was_said_before::holds,
    every_run_ends_or_waits_for_something_named::holds,
];

const FACTS_AT_THE_END: &[fn(&World)] = &[
    every_run_ends_or_waits_for_something_named::holds_at_the_end,
    a_child_ends_as_its_parent_hears::holds_at_the_end,
    a_timer_fires_or_is_cancelled_once::holds_at_the_end,
    a_message_is_heard_once::holds_at_the_end,
    no_more_holders_than_slots::holds_at_the_end,
    a_letter_is_kept_until_it_is_settled::holds_at_the_end,
];

pub(crate) fn hold(now: &World, before: &World) {
    FACTS.iter().for_each(|fact| fact(now, before));
}

pub(crate) fn hold_at_the_end(world: &World) {
    FACTS_AT_THE_END.iter().for_each(|fact| fact(world));
}
