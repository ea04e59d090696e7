//! What an inbox promises, one case each.

use super::*;
use Kind::{Call, Tell};

const WINDOW: Duration = Duration::from_secs(120);

/// An inbox with a clock; those who wait are numbers.
struct Case {
    inbox: Inbox<u32>,
    now: Instant,
}

impl Case {
    fn new() -> Self {
        Case::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        #[expect(clippy::disallowed_methods, reason = "some instant to begin with; time is added to it by hand")]
        let now = std::time::Instant::now().into();
        Case { inbox: Inbox::new(settings), now }
    }

    fn check(&mut self, id: &str, kind: Kind, waiter: u32) -> Verdict<u32> {
        self.inbox.check("alice", id, kind, 1, waiter, self.now)
    }

    fn begin(&mut self, id: &str, kind: Kind, waiter: u32) -> Ticket {
        match self.check(id, kind, waiter) {
            Verdict::New(ticket, _) => ticket,
            other => panic!("{id} was to be new: {other:?}"),
        }
    }

    fn finish(&mut self, ticket: Ticket, outcome: Finish) -> Vec<u32> {
        self.inbox.finish(ticket, outcome, self.now).into_iter().collect()
    }

    /// Runs it at once.
    fn run(&mut self, id: &str, kind: Kind) {
        let ticket = self.begin(id, kind, 0);
        self.finish(ticket, ok("done"));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn ok(answer: &'static str) -> Finish {
    Finish::Keep(Ok(Bytes::from_static(answer.as_bytes())))
}

#[track_caller]
fn assert_known(verdict: Verdict<u32>, answer: &str, waiter: u32) {
    match verdict {
        Verdict::Known(Ok(bytes), who) => assert_eq!((&*bytes, who), (answer.as_bytes(), waiter)),
        other => panic!("{answer} was to be known: {other:?}"),
    }
}

#[test]
fn first_request_passes_through() {
    let mut case = Case::new();
    let ticket = case.begin("a", Call, 1);
    assert_eq!(case.finish(ticket, ok("done")), [1]);
    assert_eq!(case.inbox.counts(), Counts { running: 0, finished: 1, callers: 1, bytes: 5 + 1 + 4, forgotten_early: 0 });
}

#[test]
fn duplicate_rpc_returns_cached() {
    let mut case = Case::new();
    case.run("a", Call);
    assert_known(case.check("a", Call, 2), "done", 2);
}

#[test]
fn duplicate_message_ignored() {
    let mut case = Case::new();
    case.run("a", Tell);
    assert!(matches!(case.check("a", Tell, 2), Verdict::Dropped(2)));
}

#[test]
fn expired_entry_treated_as_new() {
    let mut case = Case::new();
    case.run("a", Call);
    case.pass(WINDOW - Duration::from_nanos(1));
    assert_known(case.check("a", Call, 2), "done", 2);
    case.pass(Duration::from_nanos(1));
    let ticket = case.begin("a", Call, 3);
    assert_eq!(case.finish(ticket, ok("again")), [3]);
    assert_eq!(case.inbox.counts().forgotten_early, 0);
}

#[test]
fn a_transient_failure_is_not_answered_with_an_empty_success_but_run_again() {
    let mut case = Case::new();
    for kind in [Call, Tell] {
        let ticket = case.begin("a", kind, 1);
        assert_eq!(case.finish(ticket, Finish::of(&Err(Failure::transient("busy")))), [1]);
        let ticket = case.begin("a", kind, 2);
        case.finish(ticket, Finish::Forget);
    }
    assert_eq!(case.inbox.counts(), Counts::default());
}

#[test]
fn a_duplicate_call_that_arrives_while_the_first_runs_gets_its_result() {
    let mut case = Case::new();
    let ticket = case.begin("a", Call, 1);
    assert!(matches!(case.check("a", Call, 2), Verdict::Waits(_)));
    assert!(matches!(case.check("a", Call, 3), Verdict::Waits(_)));
    assert_eq!(case.finish(ticket, ok("done")), [1, 2, 3]);
}

#[test]
fn a_duplicate_tell_that_arrives_while_the_first_runs_is_dropped() {
    let mut case = Case::new();
    let ticket = case.begin("a", Tell, 1);
    assert_eq!(case.inbox.taken(&ticket).into_iter().collect::<Vec<_>>(), [1]);
    assert!(matches!(case.check("a", Tell, 2), Verdict::Dropped(2)));
    assert!(case.finish(ticket, ok("")).is_empty());
}

/// It may be refused after all, because there is no room for it: then it must not have been acknowledged to anybody.
#[test]
fn a_duplicate_of_a_tell_that_nobody_has_taken_yet_waits_until_that_is_known() {
    let mut case = Case::new();
    let refused = case.begin("a", Tell, 1);
    assert!(matches!(case.check("a", Tell, 2), Verdict::Waits(_)));
    assert_eq!(case.finish(refused, Finish::Forget), [1, 2]);
    let taken = case.begin("a", Tell, 3);
    assert!(matches!(case.check("a", Tell, 4), Verdict::Waits(_)));
    assert_eq!(case.inbox.taken(&taken).into_iter().collect::<Vec<_>>(), [3, 4]);
    assert!(matches!(case.check("a", Tell, 5), Verdict::Dropped(5)));
    assert!(case.finish(taken, ok("")).is_empty());
}

#[test]
fn a_handler_that_takes_longer_than_the_window_is_protected_for_the_whole_window_after_it_finished() {
    let mut case = Case::new();
    let ticket = case.begin("a", Call, 1);
    case.pass(WINDOW * 3);
    assert!(matches!(case.check("a", Call, 2), Verdict::Waits(_)), "it still runs");
    case.finish(ticket, ok("done"));
    case.pass(WINDOW - Duration::from_nanos(1));
    assert_known(case.check("a", Call, 3), "done", 3);
}

#[test]
fn a_duplicate_does_not_prolong_the_window() {
    let mut case = Case::new();
    case.run("a", Call);
    for _ in 0..3 {
        case.pass(WINDOW / 4);
        assert_known(case.check("a", Call, 2), "done", 2);
    }
    case.pass(WINDOW / 4);
    drop(case.begin("a", Call, 3));
}

#[test]
fn what_panics_or_is_called_off_or_refused_leaves_no_entry_behind() {
    let panicked = Failure::new(Code::Internal, "panicked");
    for failure in [panicked, Failure::new(Code::Cancelled, "called off"), Failure::new(Code::PermissionDenied, "not for you")] {
        let mut case = Case::new();
        let ticket = case.begin("a", Call, 1);
        case.finish(ticket, Finish::of(&Err(failure)));
        assert_eq!(case.inbox.counts(), Counts::default());
    }
}

#[test]
fn that_a_handler_has_used_up_its_attempts_at_something_else_is_not_kept() {
    let mut case = Case::new();
    let ticket = case.begin("a", Call, 1);
    let used_up = Failure::max_retries_exceeded(3, Failure::transient("the ledger is busy"));
    assert_eq!(case.finish(ticket, Finish::of(&Err(used_up))), [1]);
    drop(case.begin("a", Call, 2));
}

#[test]
fn a_failure_that_will_not_pass_is_kept() {
    let mut case = Case::new();
    for (id, failure) in [("a", Failure::permanent("no")), ("b", Failure::poison("what?"))] {
        let ticket = case.begin(id, Call, 1);
        case.finish(ticket, Finish::of(&Err(failure.clone())));
        let Verdict::Known(Err(known), 2) = case.check(id, Call, 2) else { panic!("it is known") };
        assert_eq!(known, failure);
    }
}

#[test]
fn equal_ids_of_two_callers_do_not_mix() {
    let mut case = Case::new();
    case.run("a", Call);
    assert!(matches!(case.inbox.check("bob", "a", Call, 2, 2, case.now), Verdict::New(..)));
    assert!(matches!(case.inbox.check("alic", "ea", Call, 2, 3, case.now), Verdict::New(..)));
    assert_known(case.check("a", Call, 4), "done", 4);
}

#[test]
fn an_equal_id_with_different_bytes_is_refused_and_not_answered() {
    let mut case = Case::new();
    let ticket = case.begin("a", Call, 1);
    assert!(matches!(case.inbox.check("alice", "a", Call, 2, 2, case.now), Verdict::Different(2)));
    assert!(matches!(case.inbox.check("alice", "a", Tell, 1, 2, case.now), Verdict::Different(2)));
    case.finish(ticket, ok("done"));
    assert!(matches!(case.inbox.check("alice", "a", Call, 2, 2, case.now), Verdict::Different(2)));
    assert_known(case.check("a", Call, 3), "done", 3);
}

#[test]
fn the_oldest_that_is_finished_makes_room_and_is_counted() {
    let mut case = Case::with(Settings { entries_max: 3, ..Settings::default() });
    let ticket = case.begin("runs", Call, 1);
    case.run("a", Call);
    case.run("b", Call);
    case.run("c", Call);
    assert_eq!(case.inbox.counts().forgotten_early, 1);
    assert_known(case.check("b", Call, 2), "done", 2);
    assert_known(case.check("c", Call, 2), "done", 2);
    drop(case.begin("a", Call, 3));
    assert!(matches!(case.check("b", Call, 3), Verdict::New(..)), "it made room for a");
    case.finish(ticket, Finish::Forget);
}

#[test]
fn what_runs_is_never_forgotten_and_beyond_it_there_is_no_room() {
    let mut case = Case::with(Settings { entries_max: 2, ..Settings::default() });
    let (first, _second) = (case.begin("a", Call, 1), case.begin("b", Call, 2));
    assert!(matches!(case.check("c", Call, 3), Verdict::Full(3, wait) if wait == Duration::from_millis(100)));
    assert!(matches!(case.check("a", Call, 4), Verdict::Waits(_)));
    assert_eq!(case.finish(first, ok("done")), [1, 4]);
    drop(case.begin("c", Call, 3));
    assert_eq!(case.inbox.counts().forgotten_early, 1);
}

#[test]
fn results_have_a_bound_together_and_one_that_is_too_long_forgets_no_other() {
    let mut case = Case::with(Settings { bytes_max: 1000, ..Settings::default() });
    for id in ["a", "b", "c", "d"] {
        let ticket = case.begin(id, Call, 1);
        case.finish(ticket, Finish::of(&Ok(Bytes::from(vec![0; 300]))));
        assert!(case.inbox.counts().bytes <= 1000);
    }
    assert_eq!((case.inbox.counts().finished, case.inbox.counts().forgotten_early), (3, 1));
    let ticket = case.begin("long", Call, 1);
    assert_eq!(case.finish(ticket, Finish::of(&Ok(Bytes::from(vec![0; 1001])))), [1]);
    assert_eq!((case.inbox.counts().finished, case.inbox.counts().forgotten_early), (3, 2));
}

#[test]
fn ids_that_are_too_long_together_are_refused_while_all_of_them_run() {
    let mut case = Case::with(Settings { bytes_max: 300, ..Settings::default() });
    let _ticket = case.begin(&"a".repeat(200), Call, 1);
    assert!(matches!(case.check(&"b".repeat(200), Call, 2), Verdict::Full(2, _)));
}

#[test]
fn too_many_who_wait_for_one_request_are_refused() {
    let mut case = Case::with(Settings { waiters_max: 2, ..Settings::default() });
    let ticket = case.begin("a", Call, 1);
    assert!(matches!(case.check("a", Call, 2), Verdict::Waits(_)));
    assert!(matches!(case.check("a", Call, 3), Verdict::Full(3, _)));
    assert_eq!(case.finish(ticket, ok("done")), [1, 2]);
}

#[test]
fn who_has_left_gets_no_answer_and_the_last_one_is_told() {
    let mut case = Case::new();
    let Verdict::New(ticket, first) = case.check("a", Call, 1) else { panic!("it is new") };
    let Verdict::Waits(second) = case.check("a", Call, 2) else { panic!("it runs") };
    assert_eq!(case.inbox.leave(first), Some(Left { waiter: 1, nobody: false }));
    assert_eq!(case.inbox.leave(first), None, "once is enough");
    assert_eq!(case.inbox.leave(second), Some(Left { waiter: 2, nobody: true }));
    let Verdict::Waits(third) = case.check("a", Call, 3) else { panic!("it runs still") };
    assert_eq!(case.finish(ticket, ok("done")), [3]);
    assert_eq!(case.inbox.leave(third), None, "it has finished");
    let _in_the_same_place = case.begin("b", Call, 4);
    assert_eq!(case.inbox.leave(third), None, "that is somebody else's");
}

#[test]
fn a_clock_that_was_read_too_early_does_not_take_time_back() {
    let mut case = Case::new();
    let early = case.now;
    case.run("a", Call);
    case.pass(WINDOW);
    let ticket = case.begin("b", Call, 1);
    case.inbox.finish(ticket, ok("late"), early);
    case.pass(WINDOW - Duration::from_nanos(1));
    assert_known(case.check("b", Call, 2), "late", 2);
}

#[test]
fn a_check_drops_a_few_that_are_over_and_a_sweep_as_many_as_it_may() {
    let mut case = Case::new();
    (0..5000).for_each(|id| case.run(&id.to_string(), Tell));
    case.pass(WINDOW);
    assert!(matches!(case.check("4999", Tell, 0), Verdict::New(..)), "over, though not dropped yet");
    assert_eq!(case.inbox.counts().finished, 5000 - DROPPED_PER_CHECK - 1);
    assert_eq!(case.inbox.sweep(case.now, 1000), 1000);
    assert_eq!(case.inbox.sweep(case.now, 10_000), 5000 - DROPPED_PER_CHECK - 1001);
    assert_eq!(case.inbox.counts().finished, 0);
}

#[test]
fn an_entry_is_not_larger_than_it_was() {
    assert_eq!(size_of::<entries::Entry>(), 88);
}

#[test]
fn a_request_is_taken_up_again_whatever_is_known_of_it_unless_it_runs_or_is_done() {
    let mut case = Case::new();
    let again = |case: &mut Case, kind, digest| case.inbox.take_up_again("alice", "x", kind, digest, case.now);
    let failure = || Finish::Keep(Err(Failure::poison("?")));
    let Again::Run(ticket, None) = again(&mut case, Call, 1) else { panic!("nothing is known of it") };
    assert!(matches!(again(&mut case, Call, 1), Again::Running));
    assert!(matches!(case.check("x", Call, 7), Verdict::Waits(_)), "who repeats it waits for it");
    assert_eq!(case.finish(ticket, failure()), [7]);
    assert!(matches!(again(&mut case, Call, 2), Again::Different) && matches!(again(&mut case, Tell, 1), Again::Different));
    let Again::Run(ticket, Some(Finish::Keep(Err(before)))) = again(&mut case, Call, 1) else { panic!("its failure is known") };
    assert_eq!((before.message.as_str(), case.inbox.counts().finished), ("?", 0));
    assert_eq!(case.finish(ticket, ok("done")), [0_u32; 0]);
    assert!(matches!(again(&mut case, Call, 1), Again::Done), "a call that has succeeded");
    case.pass(WINDOW);
    let Again::Run(ticket, None) = again(&mut case, Call, 2) else { panic!("it is forgotten") };
    case.finish(ticket, Finish::Forget);
    assert_eq!(case.inbox.counts(), Counts::default());
    case.run("x", Tell);
    assert!(matches!(again(&mut case, Tell, 1), Again::Done), "a tell that has succeeded");
    case.pass(WINDOW);
    for finish in [Finish::GiveUp, failure()] {
        let Again::Run(ticket, None | Some(Finish::GiveUp)) = again(&mut case, Tell, 1) else { panic!("it is not done") };
        case.finish(ticket, finish);
        assert!(matches!(case.check("x", Tell, 9), Verdict::Dropped(9)), "it is known all the same");
    }
    assert!(matches!(again(&mut case, Tell, 1), Again::Run(_, Some(Finish::GiveUp))), "a tell that was given up");
    let mut full = Case::with(Settings { entries_max: 1, ..Settings::default() });
    let _it_runs = full.begin("y", Call, 0);
    assert!(matches!(again(&mut full, Call, 1), Again::Full(_)));
}

#[test]
fn what_cannot_run_is_answered_if_it_is_known_and_drives_nothing_out_if_not() {
    let mut case = Case::with(Settings { entries_max: 2, ..Settings::default() });
    let ticket = case.begin("a", Call, 1);
    case.run("b", Call);
    let before = case.inbox.counts();
    let mut check = |id, waiter| case.inbox.check_known("alice", id, Call, 1, waiter, case.now);
    assert!(matches!(check("c", 2), Err(2)), "it is new");
    assert!(matches!(check("a", 3), Ok(Verdict::Waits(_))));
    assert_known(check("b", 4).unwrap(), "done", 4);
    assert_eq!(case.inbox.counts(), before);
    assert_eq!(case.finish(ticket, ok("done")), [1, 3]);
}
