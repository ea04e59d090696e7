//! A plan whose tenants are called after what becomes of them, some of them with texts that would like to be more than text.

use super::{HOSTILE, Outcome, World};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use steadfast_kernel::plan::Settings;
use steadfast_kernel::{Failure, Payload, Policy};
use steadfast_runtime::host::Context;
use steadfast_runtime::{Code, PlanSpec, Registered, Terms};

/// The stages of every plan.
pub(crate) const STAGES: [&str; 5] = ["snapshot", "drain", "copy", "verify", "switch"];

/// The version of its definition.
const VERSION: &str = "0123456789abcdef0123";

/// The plan, to be registered.
pub(crate) fn plan(world: &World) -> Registered {
    Registered::plan(Arc::new(Switch(world.clone())))
}

struct Switch(World);

impl Code for Switch {
    fn begin(&self, context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
        carry_out(self.0.clone(), context).boxed()
    }

    fn terms(&self, _: &Payload) -> Result<Terms, Failure> {
        Ok(Terms { plan: self.plan().map(Box::new), definition: Some(VERSION.into()), ..Terms::default() })
    }

    fn plan(&self) -> Option<PlanSpec> {
        Some(PlanSpec { stages: STAGES.map(Into::into).to_vec(), undoable: vec![true; STAGES.len()], settings: Settings::default() })
    }

    fn plan_of(&self, hash: &str) -> Option<PlanSpec> {
        self.plan().filter(|_| hash == VERSION)
    }
}

async fn carry_out(world: World, context: Context) -> Outcome {
    let tenant = context.task().map(|task| task.tenant.to_string()).unwrap_or_default();
    let fate = tenant.split(['-', '/']).next().unwrap_or_default().to_string();
    for (index, stage) in STAGES.into_iter().enumerate() {
        context.stage_started(index).map_err(|error| error.failure())?;
        if let Err(failure) = work(&world, &context, &fate, stage).await {
            context.stage_failed(index, &failure).map_err(|error| error.failure())?;
            return Err(failure);
        }
        let left = format!("{{\"last\":{stage:?},\"note\":\"<script>document.title='owned'</script>\"}}");
        context.stage_completed(index, Payload::json(left))?;
    }
    Ok(Payload::json("\"switched\""))
}

async fn work(world: &World, context: &Context, fate: &str, stage: &'static str) -> Result<(), Failure> {
    if (fate, stage) == ("asks", "verify") {
        let call = context.approval("go-live", vec!["operator".into()]).map_err(|error| error.failure())?;
        return call.await.map(drop);
    }
    let (world, fate) = (world.clone(), fate.to_string());
    let undo_fails = fate == "stuck" && stage == "snapshot";
    let mut call = context
        .step(stage, Box::new(move || attempt(world.clone(), fate.clone(), stage).boxed()))
        .map_err(|error| error.failure())?;
    call.set_policy(Policy::constant(Duration::from_secs(3600)).max_attempts(5));
    let undo = move |_| async move { if undo_fails { Err(Failure::permanent("the snapshot is gone")) } else { Ok(()) } }.boxed();
    call.set_undo(Arc::new(undo), Policy::once());
    call.await.map(drop)
}

async fn attempt(world: World, fate: String, stage: &'static str) -> Outcome {
    match (&*fate, stage) {
        ("bad", "copy") if !world.mended.load(Ordering::Relaxed) => Err(Failure::permanent(HOSTILE)),
        ("ails", "drain") => Err(Failure::transient("the gateway does not answer (503)")),
        ("early", "snapshot") | ("slow", "copy") => std::future::pending().await,
        _ => Ok(Payload::json(format!("{stage:?}"))),
    }
}
