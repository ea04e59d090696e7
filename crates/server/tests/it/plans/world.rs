//! Plans whose stages do as they are told.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast_kernel::plan::{Settings, StopWhen};
use steadfast_kernel::{Conflict, Failure, OnFailure, Payload, Policy, WorkflowName};
use steadfast_runtime::host::Context;
use steadfast_runtime::{Code, PlanSpec, Registered, Registry, Terms};

/// The stages of every plan.
pub(crate) const STAGES: [&str; 3] = ["drain", "move", "verify"];

/// The version of every plan's definition.
const VERSION: &str = "0123abcd";

/// What stages do, and what they did. It outlives engines, as the world does.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    script: BTreeMap<String, Vec<How>>,
    did: Vec<String>,
}

/// What a stage does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum How {
    Works,
    Fails,
    /// It fails, and is tried again in an hour.
    Ails,
    Hangs,
}

impl World {
    /// What that stage of a tenant (`acme/move`, `acme/move/undo`) does, one execution after another; it works after that.
    pub(crate) fn script(&self, what: &str, how: &[How]) {
        self.0.lock().unwrap().script.insert(what.into(), how.to_vec());
    }

    /// How often that was done.
    pub(crate) fn times(&self, what: &str) -> usize {
        self.0.lock().unwrap().did.iter().filter(|did| *did == what).count()
    }

    async fn act(self, what: String) -> Result<Payload, Failure> {
        let how = {
            let mut inner = self.0.lock().unwrap();
            inner.did.push(what.clone());
            match inner.script.get_mut(&what) {
                Some(script) if !script.is_empty() => script.remove(0),
                _ => How::Works,
            }
        };
        match how {
            How::Works => Ok(Payload::json(format!("{what:?}"))),
            How::Fails => Err(Failure::permanent(format!("{what} is broken"))),
            How::Ails => Err(Failure::transient(format!("{what} is busy"))),
            How::Hangs => std::future::pending().await,
        }
    }

    pub(crate) fn register(&self, registry: &Registry) {
        let plan = |settings, picky| Registered::plan(Arc::new(Switch { world: self.clone(), settings, picky }));
        let careful = Settings {
            max_concurrency: 2,
            canary: 1,
            stop_when: Some(StopWhen::FailedPercent(50)),
            conflict: Conflict::Skip,
            on_failure: OnFailure::Release,
            lease: Duration::from_secs(60),
            deadline: Some(Duration::from_secs(7200)),
        };
        for (name, registered) in [
            ("switch", plan(Settings::default(), false)),
            ("careful", plan(careful, false)),
            ("team/picky", plan(Settings::default(), true)),
        ] {
            registry.insert(WorkflowName::new(name).unwrap(), registered);
        }
    }
}

struct Switch {
    world: World,
    settings: Settings,
    /// It takes no empty vars.
    picky: bool,
}

impl Code for Switch {
    fn begin(&self, context: Context, _: Payload) -> BoxFuture<'static, Result<Payload, Failure>> {
        carry_out(self.world.clone(), context).boxed()
    }

    fn terms(&self, vars: &Payload) -> Result<Terms, Failure> {
        if self.picky && &*vars.bytes == b"{}" {
            return Err(Failure::permanent("vars need a `to`"));
        }
        Ok(Terms { plan: self.plan().map(Box::new), definition: Some(VERSION.into()), ..Terms::default() })
    }

    fn plan(&self) -> Option<PlanSpec> {
        Some(PlanSpec { stages: STAGES.map(Into::into).to_vec(), undoable: vec![true; STAGES.len()], settings: self.settings.clone() })
    }

    fn plan_of(&self, hash: &str) -> Option<PlanSpec> {
        self.plan().filter(|_| hash == VERSION)
    }
}

async fn carry_out(world: World, context: Context) -> Result<Payload, Failure> {
    let tenant = context.task().unwrap().tenant.to_string();
    let done_elsewhere = context.adopted().map_or(0, |(done, _)| done);
    for (index, stage) in STAGES.into_iter().enumerate() {
        if index < done_elsewhere {
            work(&world, &context, &tenant, stage).await?; // it is on record
            continue;
        }
        context.stage_started(index).map_err(|error| error.failure())?;
        context.note(format!("at {stage}")).map_err(|error| error.failure())?;
        if let Err(failure) = work(&world, &context, &tenant, stage).await {
            context.stage_failed(index, &failure).map_err(|error| error.failure())?;
            return Err(failure);
        }
        context.stage_completed(index, Payload::json(format!("{{\"last\":{stage:?}}}")))?;
    }
    Ok(Payload::json("\"switched\""))
}

async fn work(world: &World, context: &Context, tenant: &str, stage: &str) -> Result<Payload, Failure> {
    let (what, does) = (format!("{tenant}/{stage}"), world.clone());
    let (undo, undoes) = (format!("{what}/undo"), world.clone());
    let mut call = context
        .step(stage, Box::new(move || does.clone().act(what.clone()).boxed()))
        .map_err(|error| error.failure())?;
    call.set_policy(Policy::constant(Duration::from_secs(3600)));
    let undo = move |_| undoes.clone().act(undo.clone()).map(|outcome| outcome.map(drop)).boxed();
    call.set_undo(Arc::new(undo), Policy::once());
    call.await
}
