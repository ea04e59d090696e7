//! Compares the words that stores, journals and messages contain with their snapshot.

use serde::Serialize;
use std::fmt::Display;
use steadfast_kernel::plan::{Cause, StopWhen};
use steadfast_kernel::run::{Recover, Verb};
use steadfast_kernel::{
    Class, Code, Conflict, Direction, Encoding, EntityId, KeyName, LetterHome, LetterId, LimitKey, MessageKind, OnFailure, PlanId,
    PlanStatus, Recovery, RouteName, RunId, Status, StepId, TaskStatus, TenantId, TimerName, Timestamp, Wants, WorkflowName, task_id,
};
use steadfast_test_snapshots::bytes::Page;
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Classes of Class { Class::Transient => "may pass", Class::Permanent => "stays", Class::Poison => "unreadable" });
labels!(Encodings of Encoding { Encoding::Json => "JSON text", Encoding::Bytes => "opaque bytes" });
labels!(Directions of Direction { Direction::Received => "from a peer", Direction::Sent => "to a peer" });
labels!(Kinds of MessageKind {
    MessageKind::Call => "with an answer",
    MessageKind::Tell => "one way",
    MessageKind::Frame => "unreadable frame",
});
labels!(Recovers of Recover { Recover::Host => "host after a restart", Recover::Interrupt => "interrupt after a restart" });
labels!(Recoveries of Recovery { Recovery::Automatic => "continue by itself", Recovery::Manual => "wait for a person" });
labels!(OnFailures of OnFailure { OnFailure::Keep => "keep the lock", OnFailure::Release => "release the lock" });
labels!(Conflicts of Conflict { Conflict::Refuse => "refuse the plan", Conflict::Skip => "skip the tenant" });
labels!(Rules of StopWhen { StopWhen::Failed(_) => "stop at a number", StopWhen::FailedPercent(_) => "stop at a part" });
labels!(WantsOfTasks of Wants {
    Wants::Nothing => "no turn",
    Wants::Turn => "turn in order",
    Wants::TurnAsked => "turn out of order",
});
labels!(Verbs of Verb {
    Verb::Pause => "begin nothing new",
    Verb::Resume => "continue",
    Verb::Cancel => "end and undo",
    Verb::Terminate => "end at once",
    Verb::Retry => "begin another life",
    Verb::RollBack => "undo",
    Verb::Start => "begin",
});
labels!(Causes of Cause {
    Cause::Person => "paused by a person",
    Cause::Restart => "paused by a restart",
    Cause::StopWhen => "paused by failed tasks",
    Cause::Canary => "paused by a canary",
    Cause::Deadline => "paused by the deadline",
    Cause::Interrupted => "paused by interrupted tasks",
});
labels!(Timers of TimerName {
    TimerName::Retry(_) => "next attempt",
    TimerName::Sleep(_) => "end of a sleep",
    TimerName::Deadline => "end of the run",
    TimerName::Expiry => "end of a key",
    TimerName::Callback(_) => "next callback",
    TimerName::Forget => "end of a tombstone",
    TimerName::Lease => "end of a lease",
});
labels!(Entities of EntityId {
    EntityId::Run(_) => "run",
    EntityId::Limit(_) => "limit",
    EntityId::Letters(_) => "dead letters of a workflow",
    EntityId::Key(_) => "key",
    EntityId::Plan(_) => "plan",
    EntityId::Lock(_) => "lock",
    EntityId::Route(_) => "dead letters of a route",
});
labels!(Homes of LetterHome {
    LetterHome::Workflow(_) => "letter of a workflow",
    LetterHome::Key(_) => "letter of a key",
    LetterHome::Route(_) => "letter of a route",
});

fn step() -> StepId {
    StepId::new("left", "charge", 2).unwrap()
}

fn workflow() -> WorkflowName {
    WorkflowName::new("team/checkout").unwrap()
}

fn json(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap()
}

fn timers() -> [TimerName; 7] {
    let (retry, sleep) = (TimerName::Retry(step()), TimerName::Sleep(StepId::sleep("left", 1)));
    let of_keys = [TimerName::Expiry, TimerName::Callback(17), TimerName::Forget];
    let [expiry, callback, forget] = of_keys;
    [retry, sleep, TimerName::Deadline, expiry, callback, forget, TimerName::Lease]
}

fn entities() -> [EntityId; 7] {
    [
        EntityId::Run(RunId::new("order-17").unwrap()),
        EntityId::Limit(LimitKey::of_key("card/7").unwrap()),
        EntityId::Letters(workflow()),
        EntityId::Key(KeyName::new("session:7/a").unwrap()),
        EntityId::Plan(PlanId::new("switch-17").unwrap()),
        EntityId::Lock(TenantId::new("acme/eu").unwrap()),
        EntityId::Route(RouteName::new("mail/send.v2").unwrap()),
    ]
}

fn homes() -> [LetterHome; 3] {
    let key = KeyName::new("session:7/a").unwrap();
    let route = RouteName::new("mail/send.v2").unwrap();
    [LetterHome::Workflow(workflow()), LetterHome::Key(key), LetterHome::Route(route)]
}

fn steps() -> Vec<(&'static str, StepId)> {
    vec![
        ("step", step()),
        ("sleep", StepId::sleep("left", 1)),
        ("wait", StepId::signal("left", "ok", 1).unwrap()),
        ("note", StepId::note("left", 1)),
        ("version", StepId::version("left", "fees", 1).unwrap()),
        ("branch", StepId::branch("left", "inner", 1).unwrap()),
        ("undo", step().undo()),
        ("failed undo", step().undo_failed(2)),
        ("attempt in doubt", step().in_doubt(2)),
    ]
}

/// Writes one word per variant, and fails if a variant is missing.
fn write(heading: &str, labels: &[&'static str], words: impl IntoIterator<Item = (&'static str, String)>, page: &mut Page) {
    page.form(heading);
    for (label, word) in words {
        page.cover(label);
        page.value(label, word);
    }
    page.assert_covers(labels);
}

fn list(heading: &str, words: impl IntoIterator<Item = impl Display>, page: &mut Page) {
    page.form(heading);
    words.into_iter().enumerate().for_each(|(index, word)| page.value(&format!("{index}"), word));
}

fn write_columns(page: &mut Page) {
    list("status of a run", Status::ALL.map(Status::as_str), page);
    list("status of a task", TaskStatus::ALL.map(TaskStatus::as_str), page);
    list("status of a plan", PlanStatus::ALL.map(PlanStatus::as_str), page);
    list("code of a failure", Code::ALL.iter().map(|code| code.as_str()), page);
    let classes = [Class::Transient, Class::Permanent, Class::Poison];
    write("class of a failure", Classes::ALL, classes.map(|class| (Classes::of(&class), class.as_str().into())), page);
    let encodings = [Encoding::Json, Encoding::Bytes];
    write("encoding of a payload", Encodings::ALL, encodings.map(|encoding| (Encodings::of(&encoding), encoding.as_str().into())), page);
    let directions = [Direction::Received, Direction::Sent];
    write("direction of a message", Directions::ALL, directions.map(|way| (Directions::of(&way), way.as_str().into())), page);
    let kinds = [MessageKind::Call, MessageKind::Tell, MessageKind::Frame];
    write("kind of a message", Kinds::ALL, kinds.map(|kind| (Kinds::of(&kind), kind.as_str().into())), page);
    let recovers = [Recover::Host, Recover::Interrupt];
    write("recovery of a run", Recovers::ALL, recovers.map(|recover| (Recovers::of(&recover), recover.as_str().into())), page);
}

fn write_json(page: &mut Page) {
    let recoveries = [Recovery::Automatic, Recovery::Manual];
    write("recovery of a workflow", Recoveries::ALL, recoveries.map(|value| (Recoveries::of(&value), json(value))), page);
    let on_failures = [OnFailure::Keep, OnFailure::Release];
    write("lock of a failed task", OnFailures::ALL, on_failures.map(|value| (OnFailures::of(&value), json(value))), page);
    let conflicts = [Conflict::Refuse, Conflict::Skip];
    write("locked tenants", Conflicts::ALL, conflicts.map(|value| (Conflicts::of(&value), json(value))), page);
    let rules = [StopWhen::Failed(3), StopWhen::FailedPercent(20)];
    write("stop rule of a plan", Rules::ALL, rules.map(|value| (Rules::of(&value), json(value))), page);
    let wants = [Wants::Nothing, Wants::Turn, Wants::TurnAsked];
    write("turn of a task", WantsOfTasks::ALL, wants.map(|value| (WantsOfTasks::of(&value), json(value))), page);
    let verbs = [Verb::Pause, Verb::Resume, Verb::Cancel, Verb::Terminate, Verb::Retry, Verb::RollBack, Verb::Start];
    write("verb of an operator", Verbs::ALL, verbs.map(|value| (Verbs::of(&value), json(value))), page);
    let causes = [Cause::Person, Cause::Restart, Cause::StopWhen, Cause::Canary, Cause::Deadline, Cause::Interrupted];
    write("cause of a pause", Causes::ALL, causes.map(|value| (Causes::of(&value), json(value))), page);
}

fn write_ids(page: &mut Page) {
    let timers = timers().map(|name| (Timers::of(&name), format!("{name}, rank {}", name.rank())));
    write("name of a timer", Timers::ALL, timers, page);
    let entities = entities().map(|id| (Entities::of(&id), id.to_string()));
    write("id of an entity", Entities::ALL, entities, page);
    let letters = homes().map(|home| (Homes::of(&home), LetterId { home, seq: 17 }.to_string()));
    write("id of a dead letter", Homes::ALL, letters, page);
    page.form("id in a journal");
    steps().iter().for_each(|(label, id)| page.value(label, id));
    page.form("derived ids");
    page.value("limit of a workflow", LimitKey::of_workflow(&workflow()));
    page.value("task", task_id(&PlanId::new("switch-17").unwrap(), &TenantId::new("acme/eu").unwrap()));
    page.value("time", json(Timestamp::from_micros(1_700_000_000_000_001)));
}

#[test]
fn stored_words_match_snapshot() {
    let mut page = Page::default();
    write_columns(&mut page);
    write_json(&mut page);
    write_ids(&mut page);
    assert_snapshot("bytes/words.txt", page.text());
}
