//! What the code of a task says of its stages. It is on record in the turn that it is said in, and so in one commit with the outcome that it follows.

use super::step::bounded;
use super::{CannotAsk, Context};
use steadfast_kernel::{Event, Failure, Payload, StepId, TaskEvent, TaskOptions};

impl Context {
    /// What makes the run a task of a plan; nothing if it is none.
    pub fn task(&self) -> Option<&TaskOptions> {
        self.inner.task.as_deref()
    }

    /// How many stages another instance has done, and what they have left; nothing if there are none. What is on record of such a stage is a step of its name
    /// that has returned nothing.
    pub fn adopted(&self) -> Option<(usize, &Payload)> {
        self.inner.adopted.as_ref().map(|done| (done.index as usize + 1, &done.data))
    }

    /// A stage begins.
    ///
    /// # Errors
    /// If it is said outside of the workflow's own future.
    pub fn stage_started(&self, index: usize) -> Result<(), CannotAsk> {
        self.say(index, |stage, index| TaskEvent::StageStarted { stage, index })
    }

    /// A stage has failed for good.
    ///
    /// # Errors
    /// If it is said outside of the workflow's own future.
    pub fn stage_failed(&self, index: usize, failure: &Failure) -> Result<(), CannotAsk> {
        self.say(index, |stage, index| TaskEvent::StageFailed { stage, index, failure: failure.clone() })
    }

    /// A stage is done. Unless it is the last one, that is where a retry goes on from; `data` is what all stages so far have left for those after them.
    ///
    /// # Errors
    /// A permanent failure if the data is too large, or if it is said outside of the workflow's own future. Then the stage is not done.
    pub fn stage_completed(&self, index: usize, data: Payload) -> Result<(), Failure> {
        let stages = self.task().map_or(0, |task| task.stages.len());
        let data = bounded("the checkpoint", data, self.inner.payload_bytes_max)?;
        self.say(index, |stage, index| TaskEvent::StageCompleted { stage, index })
            .map_err(|error| error.failure())?;
        if index + 1 < stages {
            self.say(index, |stage, index| TaskEvent::CheckpointSaved { stage, index, data })
                .map_err(|error| error.failure())?;
        }
        Ok(())
    }

    fn say(&self, index: usize, event: impl FnOnce(StepId, u32) -> TaskEvent) -> Result<(), CannotAsk> {
        self.branch()?;
        if let Some(name) = self.task().and_then(|task| task.stages.get(index)) {
            let event = event(StepId::stage(name), u32::try_from(index).unwrap_or(u32::MAX));
            self.inner.board.note(Event::Task(Box::new(event)));
        }
        Ok(())
    }
}
