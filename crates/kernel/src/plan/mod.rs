//! The plan machine: tasks of many tenants, so many at once, the canaries first, and a person who decides.
//!
//! ```text
//!   –                 --CreatePlan-----> created   PLAN_CREATED; its tasks are begun, and wait for their turn
//!   created, ready    --start----------> running   PLAN_STARTED
//!   running, paused   --pause----------> paused    PLAN_PAUSED; tasks that are under way pause at the end of their stage
//!   paused            --resume---------> running   PLAN_RESUMED
//!   any but ended     --cancel---------> running   PLAN_CANCEL_REQUESTED, until all tasks have ended; FAILED too
//!   any but new       --roll back------> running   PLAN_ROLLBACK_REQUESTED, until all tasks are undone
//!   running           --InterruptPlan--> paused    PLAN_PAUSED: its process has died; not if it is being cancelled
//!   paused            --InterruptPlan--> paused    PLAN_PAUSED: what a person had wanted to begin waits again
//!   running           --FireTimer------> paused    PLAN_PAUSED: its time is over
//!   any               --TaskChanged----> any       TASK_CHANGED, and what follows from it
//!   any but ended     --AlertPlan------> the same  DEGRADED, RESTORED: what instances share is away, or back
//! ```
//!
//! What follows, in `next`: TASK_ADMITTED for who is next, PLAN_PAUSED by its own rules, and its end: PLAN_COMPLETED, PLAN_FAILED, PLAN_CANCELLED.

mod create;
mod event;
mod evolve;
mod next;
mod operate;
mod state;

pub use create::TENANTS_MAX;
pub use event::{Cause, PlanCreated, PlanEvent};
pub use evolve::{advance, evolve};
pub use state::{Phase, Plan, PlanStatus, Settings, StopWhen, Task};

use crate::machine::Decision;
use crate::{
    Answer, Command, Effect, EntityId, Entry, Envelope, Event, FireTimer, Heard, Message, Origin, PlanId, Refusal, TaskChanged, TimerName,
    Timestamp, Wants,
};

/// Decides on a command.
///
/// # Errors
/// A [`Refusal`] leaves no trace.
pub fn decide(id: &PlanId, plan: Option<&Plan>, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    match (plan, command) {
        (plan, Command::CreatePlan(command)) => create::decide(id, plan, *command, now),
        (Some(plan), Command::Hear(envelope)) => Ok(hear(plan, *envelope, now)),
        (None, Command::Hear(_)) => Ok(Decision::answer(Answer::Heard)),
        (None, Command::OperatePlan(_) | Command::InterruptPlan) => Err(Refusal::PlanNotFound { plan: id.clone() }),
        (Some(plan), Command::OperatePlan(command)) => operate::decide(plan, command, now),
        (Some(plan), Command::InterruptPlan) => Ok(operate::interrupt(plan, now)),
        (Some(plan), Command::AlertPlan { degraded, why }) => Ok(alert(plan, degraded, why, now)),
        (Some(plan), Command::FireTimer(fire)) => Ok(fire_timer(plan, &fire, now)),
        (_, _) => Ok(Decision::answer(Answer::Heard)), // of other machines
    }
}

/// Those who watch it hear once that the commons are away, and once that they are back; the latter also if it has ended meanwhile.
fn alert(plan: &Plan, degraded: bool, why: String, now: Timestamp) -> Decision {
    let has_ended = matches!(plan.phase, Phase::Ended { .. });
    let event = match degraded {
        _ if plan.degraded == degraded || (degraded && has_ended) => return Decision::answer(Answer::Heard),
        true => PlanEvent::Degraded { why },
        false => PlanEvent::Restored { why },
    };
    follow(plan, vec![event], now, Answer::Heard)
}

/// A task says where it stands.
fn hear(plan: &Plan, envelope: Envelope, now: Timestamp) -> Decision {
    let Envelope { from, seq, message, .. } = envelope;
    let (Message::TaskChanged(changed), Some(run)) = (message, from.run()) else {
        return Decision::answer(Answer::Heard);
    };
    let Some((_, task)) = plan.task(run).filter(|(_, task)| seq == 0 || task.heard < seq) else {
        return Decision::answer(Answer::Heard);
    };
    let is_answer = seq == 0 && task.epoch > 0; // it may be older than what was heard since, and only says that something was heard
    let changed =
        if is_answer { TaskChanged { epoch: task.epoch, status: task.status, wants: Wants::Nothing, ..changed } } else { changed };
    let TaskChanged { epoch, status, wants, heard } = changed;
    let event = PlanEvent::TaskChanged { task: task.run.clone(), epoch, status, wants, heard };
    let mut decision = follow(plan, vec![event], now, Answer::Heard);
    if let Some(first) = decision.entries.first_mut()
        && seq != 0
    {
        first.heard = Some(Heard { from, seq });
    }
    decision
}

fn fire_timer(plan: &Plan, fire: &FireTimer, now: Timestamp) -> Decision {
    let Some(timer) = plan.timers().filter(|timer| timer.name == fire.name && timer.revision == fire.revision) else {
        return Decision::answer(Answer::Superseded);
    };
    if timer.due > now {
        return Decision { entries: Vec::new(), effects: vec![Effect::Arm(timer)] }; // the clock was set back
    }
    let why = "its deadline has passed: resume it to go on without one, or cancel it";
    let origin = Origin { by: Some("the plan".into()), why: Some(why.into()), command: None };
    follow(plan, vec![PlanEvent::Paused { cause: Cause::Deadline, origin }], now, Answer::Superseded)
}

/// These events, and what follows from them.
fn follow(plan: &Plan, events: Vec<PlanEvent>, now: Timestamp, answer: Answer) -> Decision {
    let (mut state, mut entries) = (plan.clone(), Vec::new());
    let mut events = std::collections::VecDeque::from(events);
    while let Some(event) = events.pop_front().or_else(|| next::next(&state)) {
        let entry = Entry::new(state.seq + 1, 1, now, Event::Plan(Box::new(event)));
        match evolve(&plan.id, Some(state), &entry) {
            Ok(after) => state = after,
            Err(bug) => unreachable!("{bug}"),
        }
        entries.push(entry);
    }
    let timer = match (plan.timers(), state.timers()) {
        (before, Some(timer)) if before.as_ref() != Some(&timer) => Some(Effect::Arm(timer)),
        (Some(_), None) => Some(Effect::Disarm(TimerName::Deadline)),
        _ => None,
    };
    Decision { entries, effects: timer.into_iter().chain([Effect::Answer(answer)]).collect() }
}

impl Plan {
    /// Its id as an entity's.
    pub fn entity(&self) -> EntityId {
        EntityId::Plan(self.id.clone())
    }
}
