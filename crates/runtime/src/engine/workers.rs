//! Other processes that host runs: who is there, and what may be started though its code is not here.

use super::{Engine, Start};
use crate::cluster::Brought;
use crate::error::Error;
use crate::host::{Duplex, Gone, Hello, Offer, Terms, WorkerView};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{RunOptions, WorkflowName};
use steadfast_store::RunFilter;

/// How many runs of a workflow are looked at for one that is no task.
const LOOKED_AT: usize = 1;

impl Engine {
    /// Has a worker host runs over that line, until it is gone. It is given runs whose code is not here, and may be given none. One of the same name that was there
    /// before is gone with this.
    ///
    /// # Cancellation
    /// Dropping the future is the loss of the worker. It does not keep the engine running, and ends when the engine stops.
    pub fn attach(&self, hello: Hello, duplex: Duplex) -> impl Future<Output = Gone> + Send + 'static {
        Arc::clone(&self.parts.pool).attach(hello, duplex)
    }

    /// The workers that are connected, by name.
    pub fn workers(&self) -> Vec<WorkerView> {
        self.parts.pool.view()
    }

    /// The workflows that workers bring, have brought since the start, or are [said](crate::Workers::workflows) to bring, by name. Runs of them can be started.
    pub fn brought(&self) -> Vec<Offer> {
        self.parts.pool.brought()
    }

    /// What goes for a run whose code is not here. It is taken if somebody is known to bring the code, and waits for that.
    pub(super) async fn terms_of_workers(&self, workflow: &WorkflowName, start: &Start) -> Result<(Option<Duration>, RunOptions), Error> {
        let Brought { recovery, slots } = match self.brought_anywhere(workflow).await {
            Some(brought) => brought,
            None if self.was_run(workflow).await? => {
                self.parts.pool.remember(workflow);
                Brought::default() // what went for it is not known any more
            }
            None => return Err(self.unknown(workflow)),
        };
        let terms = Terms { recovery: Some(recovery), ..Terms::default() };
        let options = Self::options(workflow, slots, terms, start.tenant.clone(), start.limits.clone())?;
        Ok((start.deadline, options))
    }

    /// What a worker has said of a workflow, here or at another instance: one that comes to a server reaches all of its instances, but not all at once.
    async fn brought_anywhere(&self, workflow: &WorkflowName) -> Option<Brought> {
        let brought = |Offer { recovery, slots, .. }| Brought { recovery, slots };
        if let Some(offer) = self.parts.pool.learnt(workflow) {
            return Some(brought(offer));
        }
        let elsewhere = match self.ways.others() {
            Some(others) => others.offer(workflow).await,
            None => None,
        };
        elsewhere.or_else(|| self.parts.pool.known(workflow).map(brought))
    }

    /// Whether the store has a run of that workflow that is no task of a plan.
    async fn was_run(&self, workflow: &WorkflowName) -> Result<bool, Error> {
        let filter = RunFilter { workflow: Some(workflow.clone()), ..RunFilter::default() };
        let rows = self.store()?.runs(&filter, None, LOOKED_AT).await.map_err(Error::from_store)?;
        Ok(rows.iter().any(|row| row.task.is_none()))
    }
}
