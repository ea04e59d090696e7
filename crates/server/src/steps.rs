//! The steps of a run as people see them: what its journal says, along the plan of its definition if it has one.

use crate::app::App;
use crate::problem::Problem;
use crate::shapes::{Step, StepStatus, Time};
use std::collections::BTreeMap;
use steadfast_runtime::RunView;

/// A step as a definition plans it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// What it does: `http`, `run`, `wait`, …
    pub kind: String,
    /// The steps that it comes after.
    pub after: Vec<String>,
}

/// Every step of a run that has begun, and those that its definition has yet to come to.
pub(crate) async fn of_run(app: &App, view: &RunView) -> Result<Vec<Step>, Problem> {
    let steps: Vec<Step> = app.engine.steps(&view.id).await?.iter().map(Step::from).collect();
    let plan = view.definition.as_deref().zip(app.catalogue.as_ref()).map(|(hash, catalogue)| catalogue.plan(hash));
    Ok(match plan {
        Some(plan) if !plan.is_empty() => along(&plan, steps, Time(view.started_at), view.retried_at.map(Time)),
        _ => steps,
    })
}

/// Puts what the journal says in the order of the plan. A journal does not say when a first attempt began: after what comes before it had ended, and not before
/// the present life if it is part of it.
fn along(plan: &[Planned], steps: Vec<Step>, run_began: Time, retried_at: Option<Time>) -> Vec<Step> {
    let mut begun: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    for step in steps {
        begun.entry(root(&step.path).to_string()).or_default().push(step);
    }
    let mut ended: BTreeMap<&str, Option<Time>> = BTreeMap::new();
    let mut seen = Vec::new();
    for planned in plan {
        let mine = begun.remove(&planned.name).unwrap_or_default();
        let before: Option<Vec<Time>> = planned.after.iter().map(|name| ended.get(name.as_str()).copied().flatten()).collect();
        let began = before.map(|before| before.into_iter().max().unwrap_or(run_began));
        ended.insert(
            &planned.name,
            mine.iter()
                .map(|step| step.ended_at)
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().max()),
        );
        if mine.is_empty() {
            seen.push(pending(planned));
        }
        seen.extend(mine.into_iter().map(|step| {
            let of_this_life = retried_at.filter(|at| step.started_at >= Some(*at));
            let began = began.map(|began| of_this_life.map_or(began, |at| at.max(began)));
            named(step, planned, began)
        }));
    }
    seen.extend(begun.into_values().flatten());
    seen
}

/// The step of the definition that something in a run belongs to: `charge` of `charge#1`, of `charge#1/sleep:#1` and of `charge#1/all#1.3/charge#1`.
fn root(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or_default();
    first.rsplit_once('#').map_or(first, |(name, _)| name)
}

fn named(mut step: Step, planned: &Planned, began: Option<Time>) -> Step {
    let is_alone = step.path == format!("{}#1", planned.name);
    step.name.clone_from(&planned.name);
    step.kind.clone_from(&planned.kind);
    if let Some(began) = began.filter(|began| (is_alone || step.started_at < Some(*began)) && step.status != StepStatus::Skipped) {
        step.started_at = Some(began);
        if let Some(first) = step.tries.first_mut() {
            first.started_at = Some(began);
        }
    }
    step
}

fn pending(planned: &Planned) -> Step {
    Step {
        name: planned.name.clone(),
        path: format!("{}#1", planned.name),
        kind: planned.kind.clone(),
        status: StepStatus::Pending,
        attempts: 0,
        started_at: None,
        ended_at: None,
        next_attempt_at: None,
        output: None,
        failure: None,
        tries: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::Try;
    use steadfast_kernel::Timestamp;

    fn at(second: i64) -> Option<Time> {
        Some(Time(Timestamp::from_micros(second * 1_000_000)))
    }

    fn planned(name: &str, kind: &str, after: &[&str]) -> Planned {
        Planned { name: name.into(), kind: kind.into(), after: after.iter().map(ToString::to_string).collect() }
    }

    fn step(path: &str, from: i64, to: Option<i64>) -> Step {
        let tries = vec![Try { attempt: 1, started_at: at(from), ended_at: to.and_then(at), failure: None, backoff_ms: None }];
        let status = if to.is_some() { StepStatus::Completed } else { StepStatus::Running };
        let planned = Planned { name: path.into(), kind: "step".into(), after: Vec::new() };
        Step { path: path.into(), status, started_at: at(from), ended_at: to.and_then(at), tries, ..pending(&planned) }
    }

    #[test]
    fn what_belongs_to_a_step_has_its_name() {
        for path in ["charge#1", "charge#1/sleep:#1", "charge#1/all#1.3/charge#1", "charge#1/child:ship#1"] {
            assert_eq!(root(path), "charge", "{path}");
        }
    }

    #[test]
    fn steps_come_in_the_order_of_the_plan_and_those_to_come_are_pending() {
        let plan = [planned("a", "http", &[]), planned("b", "http", &[]), planned("c", "wait", &["a", "b"]), planned("d", "run", &["c"])];
        // the journal cannot know that b began before a had ended
        let found = along(
            &plan,
            vec![step("a#1", 0, Some(2)), step("b#1", 2, Some(5)), step("c#1/sleep:#1", 5, None)],
            Time(Timestamp::EPOCH),
            None,
        );
        let shown: Vec<String> = found.iter().map(|step| format!("{} {} {:?}", step.name, step.kind, step.status)).collect();
        assert_eq!(shown, ["a http Completed", "b http Completed", "c wait Running", "d run Pending"]);
        assert_eq!(found[2].path, "c#1/sleep:#1");
    }

    #[test]
    fn a_step_begins_when_those_before_it_have_ended() {
        let plan = [planned("a", "http", &[]), planned("b", "http", &[]), planned("c", "http", &["a"])];
        let found =
            along(&plan, vec![step("a#1", 0, Some(2)), step("b#1", 2, Some(5)), step("c#1", 5, Some(6))], Time(Timestamp::EPOCH), None);
        assert_eq!(found[1].started_at, at(0), "with the run");
        assert_eq!(found[2].started_at, at(2), "not when its sibling had ended");
        assert_eq!(found[2].tries[0].started_at, at(2));
    }

    #[test]
    fn nothing_of_another_life_began_before_it() {
        let plan = [planned("a", "http", &[]), planned("b", "http", &["a"])];
        let found = along(&plan, vec![step("a#1", 0, Some(2)), step("b#1", 60, Some(61))], Time(Timestamp::EPOCH), at(60));
        assert_eq!((found[0].started_at, found[1].started_at), (at(0), at(60)));
    }

    #[test]
    fn items_begin_after_what_their_step_comes_after() {
        let plan = [planned("a", "wait", &[]), planned("b", "http", &["a"])];
        let found =
            along(&plan, vec![step("a#1/sleep:#1", 0, Some(9)), step("b#1/all#1.0/b#1", 0, Some(10))], Time(Timestamp::EPOCH), None);
        assert_eq!(found[1].started_at, at(9));
    }
}
