//! The ten journals of `docs/decisions/0001-the-turn.md`, told command by command as host, keeper and shard would.

use crate::support::*;
use std::time::Duration;
use steadfast_kernel::run::decide;
use steadfast_kernel::{Answer, Command, Effect, Entry, Event, Policy, Refusal, Run, StartRun, Status, TimerName};

/// A run, its journal, and where its commits end.
#[derive(Default)]
struct Story {
    state: Option<Run>,
    journal: Vec<Entry>,
    commits: Vec<usize>,
}

impl Story {
    /// Gives a command and compares everything that is decided. What is decided is committed and folded.
    #[track_caller]
    fn tell<const N: usize, const M: usize>(&mut self, now_ms: i64, command: Command, entries: [Entry; N], effects: [Effect; M]) {
        let decided = decide(&run_id(), self.state.as_ref(), command, at(now_ms));
        assert_eq!(decided, Ok(decision(entries.clone(), effects)));
        if N > 0 {
            self.journal.extend(entries);
            self.commits.push(self.journal.len());
            self.state = folded(&self.journal);
        }
    }

    #[track_caller]
    fn refuses(&mut self, now_ms: i64, command: Command, refusal: Refusal) {
        assert_eq!(decide(&run_id(), self.state.as_ref(), command, at(now_ms)), Err(refusal));
    }

    /// The process dies: all that is left is what the store has.
    #[track_caller]
    fn crash(&mut self) {
        self.journal = stored(&self.journal);
        self.state = folded(&self.journal);
    }

    /// Compares the journal with the page's way of writing it, folds it again from scratch, and takes it through the store's form.
    #[track_caller]
    fn reads(&self, status: Status, commits: &[&str]) {
        let starts = [0].into_iter().chain(self.commits.iter().copied());
        let written: Vec<String> = starts.zip(&self.commits).map(|(from, to)| line(&self.journal[from..*to])).collect();
        assert_eq!(written, commits);
        assert_eq!(self.state.as_ref().map(Run::status), Some(status));
        assert_eq!(folded(&self.journal), self.state);
        assert_eq!(stored(&self.journal), self.journal);
    }
}

fn line(commit: &[Entry]) -> String {
    let word = |entry: &Entry| {
        let subject = entry.event.subject().map(|subject| format!(" {subject}")).unwrap_or_default();
        let attempt = match &entry.event {
            Event::StepCompleted { attempt, .. } | Event::StepFailed { attempt, .. } | Event::RetryScheduled { attempt, .. } => {
                format!(" a{attempt}")
            }
            _ => String::new(),
        };
        format!("{}{subject}{attempt}", entry.event.kind())
    };
    commit.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// A run that was started at the beginning of time.
#[track_caller]
fn started() -> Story {
    let mut story = Story::default();
    story.tell(0, start(), [entry(1, 0, run_started())], [Effect::Open, answer(Answer::Created)]);
    story
}

fn three_attempts() -> Policy {
    Policy::constant(SECOND).max_attempts(3)
}

/// A run whose step has failed once and is tried again after a second.
#[track_caller]
fn retried_once() -> Story {
    let mut story = started();
    story.tell(
        500,
        timed_out("charge#1", 1, &three_attempts()),
        [entry(2, 500, retry_scheduled("charge#1", 2, 3, 1500)).leaving(0)],
        [arm(retry("charge#1"), 1500, 2), answer(Answer::RetryScheduled)],
    );
    story
}

#[test]
fn journal_1_one_step() {
    let mut story = started();
    story.tell(
        40,
        turn(40, [step_completed("charge#1", 1, "18"), run_completed("18")], 0),
        [entry(2, 40, step_completed("charge#1", 1, "18")), entry(3, 40, run_completed("18")).leaving(0)],
        [Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(Status::Completed, &["RUN_STARTED", "STEP_COMPLETED charge#1 a1, RUN_COMPLETED"]);
}

#[test]
fn journal_2_ten_steps() {
    let mut story = started();
    for step in 1..=9_u32 {
        let (name, now) = (format!("add#{step}"), i64::from(step) * 10);
        let recorded = entry(u64::from(step) + 1, now, step_completed(&name, 1, "1")).leaving(1);
        story.tell(now, turn(now, [step_completed(&name, 1, "1")], 1), [recorded], [answer(Answer::TurnTaken)]);
    }
    story.tell(
        100,
        turn(100, [step_completed("add#10", 1, "1"), run_completed("10")], 0),
        [entry(11, 100, step_completed("add#10", 1, "1")), entry(12, 100, run_completed("10")).leaving(0)],
        [Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(
        Status::Completed,
        &[
            "RUN_STARTED",
            "STEP_COMPLETED add#1 a1",
            "STEP_COMPLETED add#2 a1",
            "STEP_COMPLETED add#3 a1",
            "STEP_COMPLETED add#4 a1",
            "STEP_COMPLETED add#5 a1",
            "STEP_COMPLETED add#6 a1",
            "STEP_COMPLETED add#7 a1",
            "STEP_COMPLETED add#8 a1",
            "STEP_COMPLETED add#9 a1",
            "STEP_COMPLETED add#10 a1, RUN_COMPLETED",
        ],
    );
}

#[test]
fn journal_3_retry() {
    /// One second and what the run's seed adds for the first attempt of `charge#1`: the same for ever.
    const DRAWN: Duration = Duration::from_micros(1_061_644);
    let policy = Policy::exponential(SECOND).max_attempts(3);
    let due_at = at(500).saturating_add(DRAWN);
    let scheduled =
        Event::RetryScheduled { step: id("charge#1"), attempt: 2, of: 3, delay: DRAWN, due_at, failure: timeout(), details: None };

    let mut story = started();
    story.tell(
        500,
        timed_out("charge#1", 1, &policy),
        [entry(2, 500, scheduled).leaving(0)],
        [Effect::Arm(timer(retry("charge#1"), due_at, 2)), answer(Answer::RetryScheduled)],
    );
    assert_eq!(story.state.as_ref().map(Run::status), Some(Status::Waiting));
    story.tell(2000, fire(retry("charge#1"), 2), [], [start_attempt("charge#1", 2)]);
    story.tell(
        2040,
        turn(2040, [step_completed("charge#1", 2, "18"), run_completed("18")], 0),
        [entry(3, 2040, step_completed("charge#1", 2, "18")), entry(4, 2040, run_completed("18")).leaving(0)],
        [disarm(retry("charge#1")), Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(Status::Completed, &["RUN_STARTED", "RETRY_SCHEDULED charge#1 a2", "STEP_COMPLETED charge#1 a2, RUN_COMPLETED"]);
}

#[test]
fn journal_4_exhausted() {
    let mut story = retried_once();
    exhaust_after_the_first_retry(&mut story);
    story.reads(
        Status::Failed,
        &["RUN_STARTED", "RETRY_SCHEDULED charge#1 a2", "RETRY_SCHEDULED charge#1 a3", "STEP_FAILED charge#1 a3, RUN_FAILED"],
    );
}

/// Attempts 2 and 3 of 3 fail too.
#[track_caller]
fn exhaust_after_the_first_retry(story: &mut Story) {
    story.tell(1500, fire(retry("charge#1"), 2), [], [start_attempt("charge#1", 2)]);
    story.tell(
        2000,
        timed_out("charge#1", 2, &three_attempts()),
        [entry(3, 2000, retry_scheduled("charge#1", 3, 3, 3000)).leaving(0)],
        [arm(retry("charge#1"), 3000, 3), answer(Answer::RetryScheduled)],
    );
    story.tell(3000, fire(retry("charge#1"), 3), [], [start_attempt("charge#1", 3)]);
    story.tell(3500, timed_out("charge#1", 3, &three_attempts()), [], [deliver_failure("charge#1", 3, gave_up(3))]);
    story.tell(
        3510,
        turn(3510, [step_failed("charge#1", 3, gave_up(3)), run_failed(gave_up(3))], 0),
        [entry(4, 3510, step_failed("charge#1", 3, gave_up(3))), entry(5, 3510, run_failed(gave_up(3))).leaving(0)],
        [disarm(retry("charge#1")), Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
}

#[test]
fn journal_5_permanent() {
    let refused = || after(1, card_refused());
    let mut story = started();
    story.tell(500, failed_with(card_refused(), "charge#1", 1, &three_attempts()), [], [deliver_failure("charge#1", 1, refused())]);
    story.tell(
        510,
        turn(510, [step_failed("charge#1", 1, refused()), run_failed(refused())], 0),
        [entry(2, 510, step_failed("charge#1", 1, refused())), entry(3, 510, run_failed(refused())).leaving(0)],
        [Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(Status::Failed, &["RUN_STARTED", "STEP_FAILED charge#1 a1, RUN_FAILED"]);
}

#[test]
fn journal_6_failure_handled() {
    let refused = || after(1, card_refused());
    let mut story = started();
    story.tell(500, failed_with(card_refused(), "charge#1", 1, &three_attempts()), [], [deliver_failure("charge#1", 1, refused())]);
    story.tell(
        510,
        turn(510, [step_failed("charge#1", 1, refused())], 1),
        [entry(2, 510, step_failed("charge#1", 1, refused())).leaving(1)],
        [answer(Answer::TurnTaken)],
    );
    story.tell(
        600,
        turn(600, [step_completed("apologise#1", 1, "\"sorry\""), run_completed("\"sorry\"")], 0),
        [entry(3, 600, step_completed("apologise#1", 1, "\"sorry\"")), entry(4, 600, run_completed("\"sorry\"")).leaving(0)],
        [Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(Status::Completed, &["RUN_STARTED", "STEP_FAILED charge#1 a1", "STEP_COMPLETED apologise#1 a1, RUN_COMPLETED"]);
}

#[test]
fn journal_7_sleep() {
    let mut story = started();
    story.tell(
        10,
        turn(10, [timer_set("sleep#1", 60_010)], 0),
        [entry(2, 10, timer_set("sleep#1", 60_010)).leaving(0)],
        [arm(sleep("sleep#1"), 60_010, 2), answer(Answer::TurnTaken)],
    );
    assert_eq!(story.state.as_ref().map(Run::status), Some(Status::Waiting));
    story.tell(60_010, fire(sleep("sleep#1"), 2), [], [deliver_timer("sleep#1")]);
    story.tell(
        60_011,
        turn(60_011, [timer_fired("sleep#1"), run_completed("null")], 0),
        [entry(3, 60_011, timer_fired("sleep#1")), entry(4, 60_011, run_completed("null")).leaving(0)],
        [disarm(sleep("sleep#1")), Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(Status::Completed, &["RUN_STARTED", "TIMER_SET sleep#1", "TIMER_FIRED sleep#1, RUN_COMPLETED"]);
}

#[test]
fn journal_8_sleep_between_steps() {
    let mut story = started();
    story.tell(
        10,
        turn(10, [step_completed("charge#1", 1, "18"), timer_set("sleep#1", 60_010)], 0),
        [entry(2, 10, step_completed("charge#1", 1, "18")), entry(3, 10, timer_set("sleep#1", 60_010)).leaving(0)],
        [arm(sleep("sleep#1"), 60_010, 3), answer(Answer::TurnTaken)],
    );
    story.tell(60_010, fire(sleep("sleep#1"), 3), [], [deliver_timer("sleep#1")]);
    story.tell(
        60_011,
        turn(60_011, [timer_fired("sleep#1")], 1),
        [entry(4, 60_011, timer_fired("sleep#1")).leaving(1)],
        [disarm(sleep("sleep#1")), answer(Answer::TurnTaken)],
    );
    story.tell(
        60_050,
        turn(60_050, [step_completed("receipt#1", 1, "true"), run_completed("true")], 0),
        [entry(5, 60_050, step_completed("receipt#1", 1, "true")), entry(6, 60_050, run_completed("true")).leaving(0)],
        [Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(
        Status::Completed,
        &[
            "RUN_STARTED",
            "STEP_COMPLETED charge#1 a1, TIMER_SET sleep#1",
            "TIMER_FIRED sleep#1",
            "STEP_COMPLETED receipt#1 a1, RUN_COMPLETED",
        ],
    );
}

/// The process died during attempt 2: nothing of it is on record, its timer is still there and fires again.
#[track_caller]
fn killed_during_attempt_2() -> Story {
    let mut story = retried_once();
    story.tell(1500, fire(retry("charge#1"), 2), [], [start_attempt("charge#1", 2)]);
    story.crash();
    assert_eq!(story.state.as_ref().map(Run::timers), Some(vec![timer(retry("charge#1"), at(1500), 2)]));
    story
}

#[test]
fn journal_9_crash_in_between_then_attempt_2_succeeds() {
    let mut story = killed_during_attempt_2();
    story.tell(9000, fire(retry("charge#1"), 2), [], [start_attempt("charge#1", 2)]);
    story.tell(
        9040,
        turn(9040, [step_completed("charge#1", 2, "18"), run_completed("18")], 0),
        [entry(3, 9040, step_completed("charge#1", 2, "18")), entry(4, 9040, run_completed("18")).leaving(0)],
        [disarm(retry("charge#1")), Effect::AnnounceEnd, answer(Answer::TurnTaken)],
    );
    story.reads(Status::Completed, &["RUN_STARTED", "RETRY_SCHEDULED charge#1 a2", "STEP_COMPLETED charge#1 a2, RUN_COMPLETED"]);
}

#[test]
fn journal_9_crash_in_between_then_exactly_two_attempts_remain() {
    let mut story = killed_during_attempt_2();
    exhaust_after_the_first_retry(&mut story);
    story.reads(
        Status::Failed,
        &["RUN_STARTED", "RETRY_SCHEDULED charge#1 a2", "RETRY_SCHEDULED charge#1 a3", "STEP_FAILED charge#1 a3, RUN_FAILED"],
    );
}

#[test]
fn journal_10_deadline() {
    let mut story = Story::default();
    story.tell(
        0,
        Command::StartRun(StartRun { deadline: Some(5 * SECOND), ..start_run() }),
        [entry(1, 0, run_started_until(5000))],
        [arm(TimerName::Deadline, 5000, 1), Effect::Open, answer(Answer::Created)],
    );
    story.tell(
        500,
        timed_out("charge#1", 1, &three_attempts()),
        [entry(2, 500, retry_scheduled("charge#1", 2, 3, 1500)).leaving(0)],
        [arm(retry("charge#1"), 1500, 2), answer(Answer::RetryScheduled)],
    );
    story.tell(1500, fire(retry("charge#1"), 2), [], [start_attempt("charge#1", 2)]);
    story.tell(
        5000,
        fire(TimerName::Deadline, 1),
        [entry(3, 5000, run_failed(deadline_exceeded())).leaving(0)],
        [disarm(retry("charge#1")), disarm(TimerName::Deadline), Effect::Close, Effect::AnnounceEnd],
    );
    let late = turn(5001, [step_completed("charge#1", 2, "18"), run_completed("18")], 0);
    story.refuses(5001, late, Refusal::Ended { run: run_id() });
    story.reads(Status::Failed, &["RUN_STARTED", "RETRY_SCHEDULED charge#1 a2", "RUN_FAILED"]);
}
