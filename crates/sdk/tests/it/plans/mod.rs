//! Plans: tasks for many tenants, stage by stage, with checkpoints, locks and a person who decides.

mod flow;
mod kept;
mod locks;
mod rules;
mod traps;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use steadfast::memory::Memory;
use steadfast::{Engine, EngineBuilder, Failure, HOUR, Plan, PlanHandle, PlanInfo, PlanStatus, Policy, SECOND, Task, TaskInfo, TaskStatus};
use tokio::sync::Notify;

/// What stages do, and what they did. It outlives engines, as the world does.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// What a stage does for a tenant from its n-th execution on: `tenant/stage` to how.
    script: BTreeMap<String, Vec<How>>,
    did: Vec<String>,
    /// What does not have to hold any more.
    free: BTreeSet<String>,
    freed: Arc<Notify>,
}

/// What a stage does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum How {
    Works,
    Fails,
    Hangs,
    /// Until it is let go.
    Holds,
}

impl World {
    /// What the stage of a tenant does, one execution after another; it works after that.
    pub(crate) fn script(&self, tenant: &str, stage: &str, how: &[How]) {
        self.0.lock().unwrap().script.insert(format!("{tenant}/{stage}"), how.to_vec());
    }

    /// What was done, in order: `tenant/stage`, `tenant/stage/undo`.
    pub(crate) fn did(&self) -> Vec<String> {
        self.0.lock().unwrap().did.clone()
    }

    /// How often that was done.
    pub(crate) fn times(&self, what: &str) -> usize {
        self.did().iter().filter(|did| *did == what).count()
    }

    /// What holds, or would, holds no more: `tenant/stage`.
    pub(crate) fn let_go(&self, what: &str) {
        let mut inner = self.0.lock().unwrap();
        inner.free.insert(what.into());
        inner.freed.notify_waiters();
    }

    async fn is_let_go(&self, what: &str) {
        let freed = self.0.lock().unwrap().freed.clone();
        loop {
            let mut again = std::pin::pin!(freed.notified());
            again.as_mut().enable();
            if self.0.lock().unwrap().free.contains(what) {
                return;
            }
            again.await;
        }
    }

    async fn act(self, what: String) -> Result<(), Failure> {
        let how = {
            let mut inner = self.0.lock().unwrap();
            inner.did.push(what.clone());
            match inner.script.get_mut(&what) {
                Some(script) if !script.is_empty() => script.remove(0),
                _ => How::Works,
            }
        };
        match how {
            How::Works => Ok(()),
            How::Fails => Err(Failure::permanent(format!("{what} is broken"))),
            How::Hangs => {
                tokio::time::sleep(1000 * HOUR).await;
                Ok(())
            }
            How::Holds => {
                self.is_let_go(&what).await;
                Ok(())
            }
        }
    }

    /// A plan with those stages, each of which can be undone and leaves its name in the checkpoint.
    pub(crate) fn plan(&self, stages: &[&str]) -> Plan {
        stages.iter().fold(Plan::new("switch").max_concurrency(2), |plan, stage| {
            let (world, undoing) = (self.clone(), self.clone());
            plan.stage(*stage, move |task: Task| {
                let did = world.clone().act(format!("{}/{}", task.tenant(), task.stage()));
                async move {
                    did.await?;
                    Ok::<_, Failure>(serde_json::json!({ task.stage(): task.tenant() }))
                }
            })
            .retry(Policy::constant(SECOND).max_attempts(2))
            .undo(move |task| undoing.clone().act(format!("{}/{}/undo", task.tenant(), task.stage())))
        })
    }
}

/// An engine on that store, in virtual time.
pub(crate) fn engine(store: &Memory) -> EngineBuilder {
    crate::support::engine(store)
}

/// Ten stages.
pub(crate) const TEN: [&str; 10] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10"];

/// Waits until a tenant's task is so.
pub(crate) async fn task_is(engine: &Engine, tenant: &str, status: TaskStatus) -> TaskInfo {
    crate::support::until(&format!("{tenant} is {}", status.as_str()), async || {
        engine.task_status_by_tenant(tenant).await.is_ok_and(|task| task.status == status)
    })
    .await;
    engine.task_status_by_tenant(tenant).await.unwrap()
}

/// Waits until a plan is so.
pub(crate) async fn plan_is(plan: &PlanHandle, status: PlanStatus) -> PlanInfo {
    crate::support::until(&format!("the plan is {}", status.as_str()), async || plan.info().await.unwrap().status == status).await;
    plan.info().await.unwrap()
}
