//! Create a plan, or find the one of that id.
//! – --CreatePlan--> created: PLAN_CREATED · any --CreatePlan, the same again--> unchanged

use super::{Plan, PlanCreated, PlanEvent};
use crate::machine::Decision;
use crate::{Answer, Conflict, CreatePlan, Effect, Entry, Event, PlanId, Refusal, TenantId, Timestamp};
use std::collections::BTreeSet;

/// How many tenants a plan may be for.
pub const TENANTS_MAX: usize = 10_000;

pub(super) fn decide(id: &PlanId, plan: Option<&Plan>, command: CreatePlan, now: Timestamp) -> Result<Decision, Refusal> {
    let CreatePlan { mut created, locked } = command;
    let mut seen = BTreeSet::new();
    created.tenants.retain(|tenant| seen.insert(tenant.clone())); // somebody who is named twice is one
    if let Some(plan) = plan {
        return repeat(plan, &created);
    }
    let is_locked = |tenant: &TenantId| locked.iter().any(|(other, _)| other == tenant);
    if created.settings.conflict == Conflict::Refuse && !locked.is_empty() {
        return Err(Refusal::TenantsLocked { plan: id.clone(), locked });
    }
    created.tenants.retain(|tenant| !is_locked(tenant));
    if created.tenants.is_empty() && !locked.is_empty() {
        return Err(Refusal::TenantsLocked { plan: id.clone(), locked }); // there is nobody left
    }
    created.skipped = locked;
    let entry = Entry::new(1, 1, now, Event::Plan(Box::new(PlanEvent::Created(created))));
    Ok(Decision { entries: vec![entry], effects: vec![Effect::Answer(Answer::Created)] })
}

/// The id makes a creation idempotent: the same again is answered with the plan that is there.
fn repeat(plan: &Plan, again: &PlanCreated) -> Result<Decision, Refusal> {
    let mine: BTreeSet<&TenantId> = plan.created.tenants.iter().chain(plan.created.skipped.iter().map(|(tenant, _)| tenant)).collect();
    let theirs: BTreeSet<&TenantId> = again.tenants.iter().collect();
    let same_input = crate::run::is_same(&plan.input, &again.input);
    let same_settings = plan.created.settings == again.settings && plan.created.definition == again.definition;
    if mine == theirs && same_input && same_settings {
        return Ok(Decision::answer(Answer::Exists));
    }
    Err(Refusal::PlanExists { plan: plan.id.clone() })
}
