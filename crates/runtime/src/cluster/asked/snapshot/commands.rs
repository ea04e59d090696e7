//! Lists every command that an instance sends to another one.

use super::*;
use steadfast_kernel::plan::{Settings, StopWhen};
use steadfast_kernel::run::Verb;
use steadfast_kernel::{
    CancelRun, Conflict, CreatePlan, DeleteKey, Direction, DropLetter, EndKey, FailLetter, Letter, LetterAbout, LetterHome, LetterId,
    MessageKind, OperatePlan, PlanCreated, PutKey, RedriveLetter, RenewKey, RetryFrom, RetryRun, RouteName, SendSignal, Target,
};

labels!(Commands of Command {
    Command::StartRun(_) => "command: start a run",
    Command::SendSignal(_) => "command: send a signal",
    Command::CancelRun(_) => "command: cancel a run",
    Command::TerminateRun(_) => "command: terminate a run",
    Command::PauseRun(_) => "command: pause a run",
    Command::ResumeRun(_) => "command: resume a run",
    Command::RetryRun(_) => "command: retry a run",
    Command::RollBackRun(_) => "command: roll a run back",
    Command::CreatePlan(_) => "command: create a plan",
    Command::OperatePlan(_) => "command: operate a plan",
    Command::BreakLock(_) => "command: break a lock",
    Command::DropLetter(_) => "command: drop a letter",
    Command::RedriveLetter(_) => "command: redrive a letter",
    Command::AddLetter(_) => "command: add a letter",
    Command::FailLetter(_) => "command: fail a letter",
    Command::PutKey(_) => "command: put a key",
    Command::RenewKey(_) => "command: renew a key",
    Command::DeleteKey(_) => "command: delete a key",
    Command::EndKey(_) => "command: end a key",
    Command::TakeTurn(_)
    | Command::ReportFailure(_)
    | Command::FireTimer(_)
    | Command::InterruptRun
    | Command::RecordHeartbeat(_)
    | Command::InterruptPlan
    | Command::BreakElsewhere { .. }
    | Command::Shared(_)
    | Command::SettleClaim(_)
    | Command::LoseLock { .. }
    | Command::AdoptRun(_)
    | Command::HandOverRun(_)
    | Command::AlertPlan { .. }
    | Command::Hear(_)
    | Command::ExpireKey(_)
    | Command::ReportCallback(_) => "command that stays in its shard",
});

labels!(Origins of RetryFrom {
    RetryFrom::Failed => "retry from the failure",
    RetryFrom::Step(_) => "retry from a step",
    RetryFrom::Steps(_) => "retry from several steps",
    RetryFrom::Letter { .. } => "retry from a letter",
    RetryFrom::Start => "retry from the start",
});

labels!(Targets of Target {
    Target::Url(_) => "callback to an address",
    Target::StartRun { .. } => "callback that starts a run",
    Target::Handler => "callback to a handler",
});

/// The label of a command, noted as covered.
pub(super) fn cover(command: &Command, page: &mut Page) -> &'static str {
    page.cover(Commands::of(command));
    match command {
        Command::RetryRun(retry) => page.cover(Origins::of(&retry.from)),
        Command::PutKey(put) => put.on_expire.iter().for_each(|target| page.cover(Targets::of(target))),
        _ => {}
    }
    Commands::of(command)
}

pub(super) fn assert_covered(page: &mut Page) {
    let local = Command::InterruptRun;
    page.cover(Commands::of(&local));
    let asked = Asked::Tell { entity: run().into(), command: Box::new(local) };
    assert_eq!(asked.encode("instance-1"), None, "a command that stays in its shard must not be encoded");
    for labels in [Commands::ALL, Origins::ALL, Targets::ALL] {
        page.assert_covers(labels);
    }
}

pub(super) fn commands() -> Vec<Command> {
    let mut commands = of_runs();
    commands.extend(of_plans());
    commands.extend(of_letters());
    commands.extend(of_keys());
    commands
}

fn of_runs() -> Vec<Command> {
    let signal = SendSignal {
        name: "ok".into(),
        payload: Payload::json("true"),
        id: Some("s-1".into()),
        by: Some("ada".into()),
        why: Some("looks good".into()),
    };
    let mut commands = vec![
        Command::StartRun(start_run()),
        Command::SendSignal(signal),
        Command::CancelRun(CancelRun { origin: origin(), blocked: true }),
        Command::TerminateRun(origin()),
        Command::PauseRun(origin()),
        Command::ResumeRun(origin()),
        Command::RollBackRun(origin()),
    ];
    commands.extend(retries());
    commands
}

fn retries() -> Vec<Command> {
    let home = LetterHome::Workflow(workflow());
    let from = [
        RetryFrom::Failed,
        RetryFrom::Step(step()),
        RetryFrom::Steps(vec![step(), StepId::sleep("", 1)]),
        RetryFrom::Letter { letter: LetterId { home, seq: 17 }, step: step(), number: Some(LARGE) },
        RetryFrom::Start,
    ];
    let retry = |from| RetryRun {
        origin: origin(),
        from,
        input: Some(Payload::json("19")),
        outputs: vec![(step(), Payload::json("7"))],
        blocked: true,
        in_flight: true,
    };
    from.into_iter().map(|from| Command::RetryRun(retry(from))).collect()
}

fn of_plans() -> Vec<Command> {
    let settings = Settings {
        max_concurrency: 7,
        canary: 1,
        stop_when: Some(StopWhen::FailedPercent(20)),
        conflict: Conflict::Skip,
        on_failure: OnFailure::Release,
        lease: Duration::from_secs(9),
        deadline: Some(Duration::from_secs(99)),
    };
    let created = PlanCreated {
        workflow: workflow(),
        definition: "switch".into(),
        version: Some("1f".repeat(32)),
        stages: vec!["drain".into(), "switch".into()],
        tenants: vec![tenant()],
        skipped: vec![(TenantId::new("c").unwrap(), "other:other/c".into())],
        settings,
        seed: Seed([9; 32]),
        origin: origin(),
        input: Payload::json("{\"a\":1}"),
    };
    let locked = vec![(tenant(), "switch-16:switch-16/acme".to_string())];
    vec![
        Command::CreatePlan(Box::new(CreatePlan { created: Box::new(created), locked: locked.clone() })),
        Command::OperatePlan(OperatePlan { verb: Verb::Start, origin: origin(), locked }),
        Command::BreakLock(origin()),
    ]
}

fn of_letters() -> Vec<Command> {
    let about = LetterAbout::Message {
        route: RouteName::new("mail/send.v2").unwrap(),
        direction: Direction::Sent,
        kind: MessageKind::Tell,
        peer: "10.0.0.7:7373".into(),
        request: "r-1".into(),
    };
    let letter = Letter { about, attempt: 3, tenant: Some("acme".into()), failure: failure(), payload: Payload::bytes(&b"\xff\0"[..]) };
    vec![
        Command::DropLetter(DropLetter { letter: 17, origin: origin() }),
        Command::RedriveLetter(RedriveLetter { letter: 17, origin: origin() }),
        Command::AddLetter(Box::new(letter)),
        Command::FailLetter(FailLetter { letter: 17, failure: failure() }),
    ]
}

fn of_keys() -> Vec<Command> {
    let (ttl, owner, if_revision) = (Duration::from_micros(1_500_001), || Some("ada".to_string()), Some(LARGE));
    let put = |target| PutKey {
        revision: LARGE,
        value: Payload::json("{\"a\":1}"),
        ttl,
        owner: owner(),
        directory: true,
        on_expire: Some(target),
        if_revision,
        handled: true,
    };
    let start = Target::StartRun { workflow: workflow(), input: Payload::json("2") };
    let targets = [Target::Url("http://127.0.0.1:9/gone?a=b".into()), start, Target::Handler];
    let mut commands: Vec<_> = targets.into_iter().map(|target| Command::PutKey(put(target))).collect();
    commands.extend([
        Command::RenewKey(RenewKey { revision: LARGE, ttl, owner: owner(), if_revision }),
        Command::DeleteKey(DeleteKey { owner: owner(), if_revision }),
        Command::EndKey(EndKey { directory: key(), ended_at: at(), deleted: true, handled: true }),
    ]);
    commands
}
