//! What others are to know of plans and tasks, and what they were told: the latest of each, and only what has changed is sent.
//!
//! The tasks of a plan that is being made wait for the plan, so that a plan with all of its tasks is one round trip.
//!
//! Tested by `crates/sdk/tests/it/instances/doubt.rs`.
//! Tested by `crates/sdk/tests/it/instances/kept.rs`.
//! Tested by `crates/sdk/tests/it/instances/mirror.rs`.
//! Tested by `crates/sdk/tests/it/instances/outages/truth.rs`.

mod moves;
mod writes;

use super::image::{PlanImage, TaskImage};
use super::is_over;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_kernel::{InstanceId, PlanId, PlanStatus, RunId, Seq, TaskStatus, Timestamp};
use steadfast_store::{Write, Wrote};
use writes::{index, of_plan, of_task};

/// How many plans and tasks are remembered, unless more are open. Beyond that those that have ended are forgotten, and read again when all is looked at anew.
pub(crate) const REMEMBERED_MAX: usize = 200_000;

/// How many plans, and how many tasks, are told again at once because they were not told for long.
const REFRESHED: usize = 2000;

/// How many bytes are sent at once, about: a round trip has to end in time on a slow line, or nothing of it counts.
const ROUND_BYTES: usize = 4 << 20;

/// What others are to know, and what they were told.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    plans: BTreeMap<PlanId, Place<PlanImage>>,
    tasks: BTreeMap<RunId, Place<TaskImage>>,
    /// How many tasks of each plan are remembered: whoever takes one up needs what the plan was given, also if it has ended.
    members: BTreeMap<PlanId, usize>,
    /// Those with something to send, in order.
    dirty: BTreeSet<Name>,
    /// Something was forgotten: all has to be looked at again.
    pub(crate) overflowed: bool,
    /// How many may be remembered, because so many were open.
    room: usize,
    /// What was sent and not answered may still arrive, after what is sent later: what has ended is remembered until it was looked at once more.
    pub(crate) lingers: bool,
    /// Several write under one name, each what is its own at the time: a write says of which state it is, and who is refused as older has it no more.
    among_many: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Plan(PlanId),
    Task(RunId),
}

#[derive(Debug)]
struct Place<T> {
    /// The sequence of the last entry that it is made of.
    seq: Seq,
    is: T,
    /// As others know it.
    told: Option<T>,
    /// It was made just now: nobody has to look whether it is there.
    fresh: bool,
    /// It was not there though it should be: all of it is sent.
    missing: bool,
    /// Something else is in its place: it is tried again later.
    blocked: bool,
    /// When it was last told. What nobody tells of is forgotten there.
    told_at: Timestamp,
    /// Something else is where its tenant's last task should be named.
    unindexed: bool,
    /// Since when it differs from what others know.
    since: Timestamp,
    /// It is not this instance's any more: once others know the last of it that is known here, it is forgotten.
    leaves: bool,
}

impl<T> Place<T> {
    /// It is not there. True if it was told of before.
    fn is_missing(&mut self) -> bool {
        self.missing = true;
        self.told.take().is_some()
    }

    /// It counts as not told, if that is due. True if it was.
    fn ask_again(&mut self, now: Timestamp, is_due: impl Fn(Timestamp) -> bool) -> bool {
        let is_due = is_due(self.told_at);
        if is_due {
            self.since = if self.told.is_some() { now } else { self.since };
            (self.told, self.fresh, self.told_at) = (None, false, now);
        }
        is_due
    }
}

/// What a write was about.
#[derive(Clone, Debug)]
pub(crate) enum About {
    Plan(PlanId, Box<PlanImage>),
    Task(RunId, Box<TaskImage>),
    Index(RunId),
    Checkpoint(RunId, Box<TaskImage>),
}

/// What has to be done after a write.
#[derive(Debug, PartialEq)]
pub(crate) enum Then {
    Nothing,
    /// The checkpoint of that version is there.
    Reached(RunId, u64),
    /// Another instance has that task.
    NotYours(RunId, Option<InstanceId>, u64),
    /// Another instance has come further with that task, and it is not known which.
    Suspect(RunId),
    /// It was not there though it should be.
    Lost,
    /// Another instance has that plan.
    PlanNotYours(PlanId, Option<InstanceId>),
    /// Something else is there.
    Foreign(String),
}

impl Mirror {
    pub(crate) fn plan(&mut self, is: PlanImage, fresh: bool, now: Timestamp) {
        let (name, seq) = (is.plan.clone(), is.seq);
        if put(&mut self.plans, name.clone(), PlanImage { seq: 0, ..is }, (seq, fresh, now)) {
            self.dirty.insert(Name::Plan(name));
        } else {
            self.dirty.remove(&Name::Plan(name));
        }
        self.bound();
    }

    pub(crate) fn task(&mut self, is: TaskImage, fresh: bool, now: Timestamp) {
        let (name, seq) = (is.task.clone(), is.seq);
        if is.status == TaskStatus::HandedOver {
            self.forget(&name);
            return;
        }
        if !self.tasks.contains_key(&name) {
            *self.members.entry(is.plan.clone()).or_default() += 1;
        }
        if put(&mut self.tasks, name.clone(), TaskImage { seq: 0, ..is }, (seq, fresh, now)) {
            self.dirty.insert(Name::Task(name));
        } else {
            self.dirty.remove(&Name::Task(name));
        }
        self.bound();
    }

    /// It is another's: nothing of it is sent any more.
    pub(crate) fn forget(&mut self, task: &RunId) {
        self.dirty.remove(&Name::Task(task.clone()));
        let Some(place) = self.tasks.remove(task) else { return };
        if let Entry::Occupied(mut members) = self.members.entry(place.is.plan.clone()) {
            *members.get_mut() -= 1;
            if *members.get() == 0 {
                members.remove();
            }
        }
        self.let_go(&place.is.plan);
    }

    /// A plan that has ended is forgotten once others know, and nobody can take up a task of it that is known here.
    fn let_go(&mut self, plan: &PlanId) {
        let Some(place) = self.plans.get(plan).filter(|place| place.told.as_ref() == Some(&place.is)) else { return };
        let has_ended = place.is.status.is_final() && !self.lingers && !self.members.contains_key(plan);
        if has_ended || place.leaves {
            self.plans.remove(plan);
        }
    }

    /// What was not told for so long is told again, so that it is not forgotten there while it is open; a part of it at a time.
    pub(crate) fn refresh(&mut self, every: Duration, now: Timestamp) {
        self.tell_again(REFRESHED, now, |told_at| told_at.saturating_add(every) <= now);
    }

    /// What is there may be gone, or older: all that is remembered is sent again, and sent whole where it is missing.
    pub(crate) fn doubt(&mut self, now: Timestamp) {
        self.tell_again(usize::MAX, now, |_| true);
    }

    fn tell_again(&mut self, most: usize, now: Timestamp, is_due: impl Fn(Timestamp) -> bool) {
        let plans = self
            .plans
            .iter_mut()
            .filter_map(|(plan, place)| place.ask_again(now, &is_due).then(|| Name::Plan(plan.clone())));
        self.dirty.extend(plans.take(most));
        let tasks = self
            .tasks
            .iter_mut()
            .filter_map(|(task, place)| place.ask_again(now, &is_due).then(|| Name::Task(task.clone())));
        self.dirty.extend(tasks.take(most));
    }

    /// What is open is as much as there is. What has ended and could not be told is in the store, too, and is found there when all is looked at again.
    fn bound(&mut self) {
        if self.plans.len() + self.tasks.len() <= self.room.max(REMEMBERED_MAX) {
            return;
        }
        let ended = self.tasks.values().filter(|place| is_over(place.is.status)).map(|place| place.is.task.clone());
        let ended: Vec<RunId> = ended.collect();
        self.overflowed |= !ended.is_empty();
        ended.iter().for_each(|task| self.forget(task));
        self.room = 2 * (self.plans.len() + self.tasks.len()); // it is not looked for those that have ended each time
    }

    /// Plans that have not ended.
    pub(crate) fn open_plans(&self) -> Vec<PlanId> {
        self.plans
            .iter()
            .filter(|(_, place)| !place.is.status.is_final())
            .map(|(plan, _)| plan.clone())
            .collect()
    }

    /// The version of a task's checkpoint that others know; 0 if they know none, or not the latest.
    pub(crate) fn has_told(&self, task: &RunId) -> u64 {
        let Some(Place { is, told: Some(told), .. }) = self.tasks.get(task) else { return 0 };
        let (is, told) = (is.checkpoint.as_ref(), told.checkpoint.as_ref());
        told.filter(|_| is == told).map_or(0, |checkpoint| checkpoint.version)
    }

    /// How many wait to be sent, and since when the one that has waited for longest.
    pub(crate) fn lag(&self) -> (usize, Option<Timestamp>) {
        let since = self.dirty.iter().filter_map(|name| match name {
            Name::Plan(plan) => self.plans.get(plan).map(|place| place.since),
            Name::Task(task) => self.tasks.get(task).map(|place| place.since),
        });
        (self.dirty.len(), since.min())
    }

    /// Whether something can be sent now.
    pub(crate) fn has_news(&self) -> bool {
        self.dirty.iter().any(|name| self.may_go(name))
    }

    /// Whether others do not know something yet that could be told them: what has something else in its place cannot.
    pub(crate) fn owes(&self) -> bool {
        self.dirty.iter().any(|name| match name {
            Name::Plan(plan) => self.plans.get(plan).is_some_and(|place| !place.blocked),
            Name::Task(task) => self.tasks.get(task).is_some_and(|place| !place.blocked),
        })
    }

    /// What had something else in its place may have it no more.
    pub(crate) fn try_again(&mut self) {
        self.plans.values_mut().for_each(|place| place.blocked = false);
        for (task, place) in &mut self.tasks {
            place.blocked = false;
            if place.unindexed {
                self.dirty.insert(Name::Task(task.clone()));
            }
        }
    }

    /// Tasks wait for their plan while it is being made.
    fn may_go(&self, name: &Name) -> bool {
        let is_made = |plan: &PlanId| self.plans.get(plan).is_none_or(|place| place.is.status != PlanStatus::Created);
        match name {
            Name::Plan(plan) => is_made(plan) && self.plans.get(plan).is_some_and(|place| !place.blocked),
            Name::Task(task) => self
                .tasks
                .get(task)
                .is_some_and(|place| !place.blocked && (!place.fresh || place.told.is_some() || is_made(&place.is.plan))),
        }
    }

    /// What is to be sent now.
    pub(crate) fn writes(&self, me: &InstanceId) -> Vec<(About, Write)> {
        let (mut writes, mut last) = (Vec::new(), BTreeMap::new());
        let mut bytes = 0;
        for name in self.dirty.iter().filter(|name| self.may_go(name)) {
            if bytes > ROUND_BYTES {
                break; // the rest is sent when these are answered
            }
            bytes += self.size_of(name);
            match name {
                Name::Plan(plan) => writes.extend(self.plans.get(plan).map(|place| of_plan(me, place, self.among_many))),
                Name::Task(task) => {
                    let Some(place) = self.tasks.get(task) else { continue };
                    writes.extend(of_task(me, place, self.among_many));
                    if place.told.is_none() || place.unindexed {
                        let before = last.entry(&place.is.tenant).or_insert(place);
                        *before = if before.is.created_at <= place.is.created_at { place } else { *before };
                    }
                }
            }
        }
        writes.extend(last.into_values().map(index));
        writes
    }

    fn size_of(&self, name: &Name) -> usize {
        match name {
            Name::Plan(plan) => self.plans.get(plan).map_or(0, |place| place.is.vars.len()),
            Name::Task(task) => self
                .tasks
                .get(task)
                .and_then(|place| place.is.checkpoint.as_ref())
                .map_or(0, |saved| saved.data.len()),
        }
    }

    /// What became of one of them.
    pub(crate) fn wrote(&mut self, about: About, wrote: &Wrote, now: Timestamp) -> Then {
        let wrote = match (&about, wrote) {
            (About::Checkpoint(..), Wrote::NotYours { .. }) if self.among_many => &Wrote::Done, // who has the task now has told of a later one
            _ => wrote,
        };
        match (about, wrote) {
            (about, Wrote::Foreign { key }) => {
                match about {
                    About::Plan(plan, _) => self.plans.get_mut(&plan).into_iter().for_each(|place| place.blocked = true),
                    // Nobody can take it up meanwhile, and its tenant's lock tells whose it is.
                    About::Task(task, _) | About::Checkpoint(task, _) => {
                        self.tasks.get_mut(&task).into_iter().for_each(|place| place.blocked = true)
                    }
                    About::Index(task) => {
                        self.tasks.get_mut(&task).into_iter().for_each(|place| place.unindexed = true);
                        self.settle(&task); // it can be found by its plan meanwhile
                    }
                }
                Then::Foreign(key.clone())
            }
            (About::Plan(plan, _), Wrote::NotYours { owner, .. }) => {
                self.plans.remove(&plan);
                self.dirty.remove(&Name::Plan(plan.clone()));
                Then::PlanNotYours(plan, owner.clone())
            }
            (About::Checkpoint(task, _), Wrote::NotYours { owner: None, .. }) => {
                self.tasks.get_mut(&task).into_iter().for_each(|place| place.blocked = true);
                Then::Suspect(task)
            }
            (About::Task(task, _) | About::Checkpoint(task, _), Wrote::NotYours { owner, fence }) => {
                self.forget(&task);
                Then::NotYours(task, owner.clone(), *fence)
            }
            (About::Plan(plan, _), Wrote::Missing) => {
                let was_there = self.plans.get_mut(&plan).is_some_and(Place::is_missing);
                if was_there || !self.among_many { Then::Lost } else { Then::Nothing }
            }
            (About::Task(task, _), Wrote::Missing) => {
                let was_there = self.tasks.get_mut(&task).is_some_and(Place::is_missing);
                if was_there || !self.among_many { Then::Lost } else { Then::Nothing }
            }
            (About::Plan(plan, sent), _) => {
                let Some(place) = self.plans.get_mut(&plan) else { return Then::Nothing };
                (place.told, place.missing, place.told_at) = (Some(*sent), false, now);
                if place.told.as_ref() == Some(&place.is) {
                    self.dirty.remove(&Name::Plan(plan.clone()));
                    self.let_go(&plan);
                }
                Then::Nothing
            }
            (About::Task(task, sent), _) => {
                let Some(place) = self.tasks.get_mut(&task) else { return Then::Nothing };
                let checkpoint = place.told.take().and_then(|told| told.checkpoint); // that is another write
                (place.told, place.missing, place.told_at) = (Some(TaskImage { checkpoint, ..*sent }), false, now);
                self.settle(&task);
                Then::Nothing
            }
            (About::Checkpoint(task, sent), _) => {
                let version = sent.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.version);
                if let Some(told) = self.tasks.get_mut(&task).and_then(|place| place.told.as_mut()) {
                    told.checkpoint = sent.checkpoint;
                }
                self.settle(&task);
                Then::Reached(task, version)
            }
            (About::Index(task), _) => {
                self.tasks.get_mut(&task).into_iter().for_each(|place| place.unindexed = false);
                self.settle(&task);
                Then::Nothing
            }
        }
    }

    /// If others know all of a task, there is nothing to send; if it has ended, nothing to remember either.
    fn settle(&mut self, task: &RunId) {
        if let Some(place) = self.tasks.get(task)
            && place.told.as_ref() == Some(&place.is)
        {
            let is_over = (is_over(place.is.status) && !self.lingers && !place.unindexed) || place.leaves;
            self.dirty.remove(&Name::Task(task.clone()));
            if is_over {
                self.forget(task);
            }
        }
    }
}

/// Keeps the latest of something. True if others do not know that.
fn put<K: Ord, T: PartialEq>(places: &mut BTreeMap<K, Place<T>>, name: K, is: T, (seq, fresh, now): (Seq, bool, Timestamp)) -> bool {
    match places.get_mut(&name) {
        Some(place) => {
            if place.seq < seq && place.is != is {
                place.since = if place.told.as_ref() == Some(&place.is) { now } else { place.since };
                place.is = is;
            }
            place.seq = place.seq.max(seq);
            place.told.as_ref() != Some(&place.is)
        }
        None => {
            places.insert(
                name,
                Place {
                    seq,
                    is,
                    told: None,
                    fresh,
                    missing: false,
                    blocked: false,
                    unindexed: false,
                    told_at: now,
                    since: now,
                    leaves: false,
                },
            );
            true
        }
    }
}

#[cfg(test)]
mod tests;
