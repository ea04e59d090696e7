//! Where several write under one name: plans and tasks come and go with their shards, and whether all is lost is seen by one of them.

use super::{Mirror, Name, Place};
use std::collections::BTreeMap;
use steadfast_kernel::{EntityId, InstanceId, Timestamp};
use steadfast_store::{AsOf, PlanField, TaskField, Write};

impl Mirror {
    /// One of several mirrors that write under one name.
    pub(crate) fn among_many() -> Self {
        Mirror { among_many: true, ..Mirror::default() }
    }

    /// These are not this instance's any more. What others do not know yet is told them all the same, and refused if they know something later.
    pub(crate) fn leave(&mut self, is_gone: impl Fn(&EntityId) -> bool) {
        for plan in named(&self.plans, |plan| is_gone(&EntityId::Plan(plan.clone()))) {
            if self.dirty.contains(&Name::Plan(plan.clone())) {
                self.plans.entry(plan).and_modify(|place| place.leaves = true);
            } else {
                self.plans.remove(&plan);
            }
        }
        for task in named(&self.tasks, |task| is_gone(&EntityId::Run(task.clone()))) {
            if self.dirty.contains(&Name::Task(task.clone())) {
                self.tasks.entry(task).and_modify(|place| place.leaves = true);
            } else {
                self.forget(&task);
            }
        }
    }

    /// These are this instance's again: others may have written of them meanwhile, so that nothing that is remembered of what was told counts.
    pub(crate) fn enter(&mut self, is_here: impl Fn(&EntityId) -> bool, now: Timestamp) {
        for plan in named(&self.plans, |plan| is_here(&EntityId::Plan(plan.clone()))) {
            self.plans.entry(plan.clone()).and_modify(|place| place.come_back(now));
            self.dirty.insert(Name::Plan(plan));
        }
        for task in named(&self.tasks, |task| is_here(&EntityId::Run(task.clone()))) {
            self.tasks.entry(task.clone()).and_modify(|place| place.come_back(now));
            self.dirty.insert(Name::Task(task));
        }
    }

    /// Tells one thing again that others know: if it is not there any more, neither may be the rest.
    pub(crate) fn probe(&self, me: &InstanceId) -> Option<Write> {
        let (owner, whole) = (me.clone(), false);
        if let Some(Place { seq, is, .. }) = self.tasks.values().find(|place| place.told.as_ref() == Some(&place.is)) {
            let (fields, as_of) = (vec![(TaskField::Status, is.status.as_str().into())], Some(AsOf { made: is.created_at, seq: *seq }));
            return Some(Write::Task { task: is.task.clone(), owner, fence: is.fence, fields, whole, as_of });
        }
        let Place { seq, is, .. } = self.plans.values().find(|place| place.told.as_ref() == Some(&place.is))?;
        let (fields, as_of) = (vec![(PlanField::Status, is.status.as_str().into())], Some(AsOf { made: is.created_at, seq: *seq }));
        Some(Write::Plan { plan: is.plan.clone(), owner, fields, whole, as_of })
    }
}

impl<T> Place<T> {
    fn come_back(&mut self, now: Timestamp) {
        self.leaves = false;
        self.ask_again(now, |_| true);
    }
}

fn named<K: Ord + Clone, T>(places: &BTreeMap<K, Place<T>>, is_so: impl Fn(&K) -> bool) -> Vec<K> {
    places.keys().filter(|name| is_so(name)).cloned().collect()
}
