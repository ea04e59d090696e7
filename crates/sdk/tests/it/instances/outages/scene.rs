//! Stages that do what the test says, and what they did: it outlives engines and instances, as the world does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::{Failure, OnFailure, Plan, Policy, Task};
use tokio::sync::watch;

pub(super) const STAGES: [&str; 4] = ["s1", "s2", "s3", "s4"];

/// What a stage does, once; it works after that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Does {
    /// It waits until it is let go.
    Holds,
    /// It fails, and may be tried again.
    Stumbles,
    /// It fails for good.
    Breaks,
}

#[derive(Clone)]
pub(super) struct Scene(Arc<Inner>);

struct Inner {
    script: Mutex<BTreeMap<String, Does>>,
    did: Mutex<Vec<String>>,
    /// Who is inside a stage of a tenant, and which tenants had two at once.
    inside: Mutex<(BTreeMap<String, String>, BTreeSet<String>)>,
    free: watch::Sender<BTreeSet<String>>,
    takes: Duration,
    policy: Policy,
}

impl Scene {
    pub(super) fn new() -> Self {
        Scene::with(Duration::ZERO, Policy::constant(Duration::from_secs(3)).max_attempts(2))
    }

    /// Every stage takes that long, and is tried again by that policy.
    pub(super) fn with(takes: Duration, policy: Policy) -> Self {
        let free = watch::channel(BTreeSet::new()).0;
        Scene(Arc::new(Inner { script: Mutex::default(), did: Mutex::default(), inside: Mutex::default(), free, takes, policy }))
    }

    /// What `tenant/stage`, or `tenant/stage/undo`, does the next time.
    pub(super) fn script(&self, what: &str, does: Does) {
        self.0.script.lock().unwrap().insert(what.into(), does);
    }

    /// Lets go whoever holds there.
    pub(super) fn let_go(&self, what: &str) {
        self.0.free.send_modify(|free| free.extend([what.to_string()]));
    }

    pub(super) fn times(&self, what: &str) -> usize {
        self.0.did.lock().unwrap().iter().filter(|did| *did == what).count()
    }

    /// How many stages were carried out in all.
    pub(super) fn total(&self) -> usize {
        self.0.did.lock().unwrap().len()
    }

    /// How often each stage of a tenant was carried out.
    pub(super) fn counts(&self, tenant: &str) -> [usize; 4] {
        STAGES.map(|stage| self.times(&format!("{tenant}/{stage}")))
    }

    /// The tenants for whom two were at work at once.
    pub(super) fn clashes(&self) -> BTreeSet<String> {
        self.0.inside.lock().unwrap().1.clone()
    }

    async fn act(self, who: String, tenant: String, what: String) -> Result<(), Failure> {
        let inner = &self.0;
        inner.did.lock().unwrap().push(what.clone());
        let _inside = Inside::enter(self.clone(), who, tenant);
        tokio::time::sleep(inner.takes).await;
        let does = inner.script.lock().unwrap().remove(&what);
        match does {
            None => Ok(()),
            Some(Does::Stumbles) => Err(Failure::transient(format!("{what} stumbles"))),
            Some(Does::Breaks) => Err(Failure::permanent(format!("{what} is broken"))),
            Some(Does::Holds) => {
                let mut free = inner.free.subscribe();
                let is_free = free.wait_for(|free| free.contains(&what)).await;
                is_free.map(drop).map_err(|_| Failure::permanent("the scene is over"))
            }
        }
    }

    /// The plan `switch`, as that instance carries it out.
    pub(super) fn plan(&self, instance: &str) -> Plan {
        let plan = Plan::new("switch").max_concurrency(50).on_failure(OnFailure::Keep);
        STAGES.iter().fold(plan, |plan, stage| {
            let (scene, undoing) = (self.clone(), self.clone());
            let (who, undoer) = (instance.to_string(), instance.to_string());
            plan.stage(*stage, move |task: Task| {
                let what = format!("{}/{}", task.tenant(), task.stage());
                let did = scene.clone().act(who.clone(), task.tenant().into(), what);
                async move {
                    did.await?;
                    Ok::<_, Failure>(serde_json::json!({ task.stage(): task.tenant() }))
                }
            })
            .retry(self.0.policy.clone())
            .undo(move |task: Task| {
                let what = format!("{}/{}/undo", task.tenant(), task.stage());
                undoing.clone().act(undoer.clone(), task.tenant().into(), what)
            })
        })
    }
}

/// Somebody is at work for a tenant.
struct Inside(Scene, String, String);

impl Inside {
    fn enter(scene: Scene, who: String, tenant: String) -> Self {
        let mut inside = scene.0.inside.lock().unwrap();
        if inside.0.insert(tenant.clone(), who.clone()).is_some_and(|other| other != who) {
            inside.1.insert(tenant.clone());
        }
        drop(inside);
        Inside(scene, who, tenant)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut inside = self.0.0.inside.lock().unwrap();
        if inside.0.get(&self.2) == Some(&self.1) {
            inside.0.remove(&self.2);
        }
    }
}
