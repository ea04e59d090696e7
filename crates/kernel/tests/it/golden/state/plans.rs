//! What a task, a plan and a lock come to.

use super::{Facts, text};
use steadfast_kernel::Checkpoint;
use steadfast_kernel::lock::{Holder, Lock};
use steadfast_kernel::plan::{Plan, PlanCreated, Task};
use steadfast_kernel::run::{Run, Task as RunTask};

impl Facts {
    /// What is known of a run as a task; nothing of any other.
    pub(super) fn task(&mut self, run: &Run) {
        let (Some(options), Some(task)) = (run.task_options(), run.task()) else { return };
        let RunTask {
            admitted,
            asked,
            started,
            started_at,
            lock,
            staged,
            completed,
            checkpoint,
            rolls_back,
            fence,
            adopted,
            adopting,
            alone,
            half_undone,
            undoing,
            handed_over,
        } = task;
        self.say("task", format_args!("{options:?}"));
        self.each("task is", run.task_status());
        self.each("is at stage", run.stage_at());
        self.say("was let begin", format_args!("{admitted} by {asked}, has begun {started}, a stage has {staged}, is undone {rolls_back}"));
        self.each("first began", started_at);
        self.each("has the lock", lock);
        self.each("stage done by", completed);
        let saved = |saved: &Checkpoint| (saved.index, text(&saved.data), saved.saved_at, saved.version);
        self.each("checkpoint", checkpoint.as_ref().map(saved));
        self.each("last fence", (*fence > 0).then_some(fence));
        self.each("done elsewhere", adopted.as_ref().map(saved));
        self.each("is being adopted", adopting.then_some("what was done elsewhere follows"));
        self.each("alone", alone.then_some("its plan is not here"));
        self.each("half undone", half_undone.then_some("by another instance"));
        self.each("is undone from", undoing.as_ref().map(saved));
        self.each("handed over", handed_over);
    }

    pub(super) fn plan(&mut self, plan: &Plan) {
        let Plan {
            id: _,
            seq,
            sent,
            created,
            input,
            created_at,
            started_at,
            phase,
            tasks,
            places: _, // of the tasks
            counts,
            waiting,
            asked,
            admitted,
            silent,
            forgiven,
            deadline,
            commands,
            degraded,
        } = plan;
        let PlanCreated { workflow, definition, version, stages, tenants, skipped, settings, seed, origin, input: _ } = &**created;
        self.say("status", format_args!("{:?}", plan.status()));
        self.each("timer", plan.timers());
        self.say("workflow", format_args!("{workflow} of {definition:?}, version {version:?}, stages {stages:?}"));
        self.say("tenants", format_args!("{tenants:?}"));
        self.each("leaves out", skipped);
        self.say("settings", format_args!("{settings:?}"));
        self.say("seed", seed.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        self.say("wanted by", format_args!("{origin:?}"));
        self.say("input", text(input));
        self.say("created at", created_at);
        self.each("started at", started_at);
        self.say("place", seq);
        self.say("messages sent", sent);
        self.say("phase", format_args!("{phase:?}"));
        for Task { tenant, run, status, epoch, begun, heard, wants, told } in tasks.iter().map(AsRef::as_ref) {
            self.say(
                "task",
                format_args!("{run} of {tenant} is {status:?} in life {epoch}, begun {begun}, wants {wants:?}, heard {heard}, told {told}"),
            );
        }
        self.each("tasks", counts);
        self.say("places", format_args!("waiting {waiting:?}, asked {asked:?}, admitted {admitted:?}, silent {silent:?}"));
        self.say("forgiven", forgiven);
        self.each("deadline", deadline);
        self.each("carried out", commands);
        self.each("commons", degraded.then_some("cannot be reached"));
    }

    pub(super) fn lock(&mut self, lock: &Lock) {
        let Lock { tenant: _, seq, sent, fence, holder, line, broken_by, requests } = lock;
        self.say("place", seq);
        self.say("messages sent", sent);
        self.say("last fence", fence);
        if let Some(Holder { lease, since, asked_at, revision, seen }) = holder {
            self.say("held by", format_args!("{lease:?} since {since}, asked at {asked_at} by {revision}, seen {seen}"));
        }
        self.each("timer", lock.timer());
        self.each("in line", line);
        self.each("broken by", broken_by);
        self.each("may come again", requests);
    }
}
