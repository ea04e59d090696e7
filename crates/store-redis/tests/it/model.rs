//! Random writes of two instances, against a small model of what the words say.

use crate::help::*;
use proptest::prelude::*;
use steadfast_kernel::RunId;
use steadfast_store::{Commons, LockHolder, SharedCheckpoint, TaskField, Write, Wrote};
use steadfast_store_redis::Redis;
use steadfast_test_servers::RedisServer;

/// What is shared of one tenant and its task.
#[derive(Debug, Default)]
struct Model {
    /// Owner, fence and status.
    task: Option<(Option<&'static str>, u64, String)>,
    index: Option<RunId>,
    checkpoint: Option<SharedCheckpoint>,
    fence: u64,
    lock: Option<LockHolder>,
}

/// One write of one of the instances.
#[derive(Clone, Debug)]
enum Op {
    Task { fence: u64, whole: bool, status: &'static str },
    Adopt { from: Option<&'static str>, fence: u64, to: Option<&'static str>, new: u64 },
    Index { other: bool, unless_there: bool },
    Checkpoint { fence: u64, version: u64 },
    DropCheckpoint { fence: u64 },
    NextFence { above: u64 },
    RaiseFence { to: u64 },
    Take { holder: LockHolder, instead_of: Option<LockHolder> },
    Renew { holder: LockHolder },
    Release { holder: LockHolder },
}

const STATUSES: [&str; 3] = ["PENDING", "RUNNING", "FAILED"];
const NAMES: [&str; 2] = ["a", "b"];

fn fences() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..4_u64, 1 => 9..12_u64, 1 => Just(9_007_199_254_740_993)]
}

fn nobody_or_one() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))]
}

fn holders() -> impl Strategy<Value = LockHolder> {
    let name = prop::sample::select(&NAMES[..]);
    (name, prop::bool::ANY, fences()).prop_map(|(name, other, fence)| match other {
        true => LockHolder { task: task_of("other"), ..holder(name, fence) },
        false => holder(name, fence),
    })
}

fn ops() -> impl Strategy<Value = (&'static str, Op)> {
    let op = prop_oneof![
        4 => (fences(), prop::bool::ANY, prop::sample::select(&STATUSES[..])).prop_map(|(fence, whole, status)| Op::Task { fence, whole, status }),
        3 => (nobody_or_one(), fences(), nobody_or_one(), fences()).prop_map(|(from, fence, to, new)| Op::Adopt { from, fence, to, new }),
        1 => (prop::bool::ANY, prop::bool::ANY).prop_map(|(other, unless_there)| Op::Index { other, unless_there }),
        2 => (fences(), 0..4_u64).prop_map(|(fence, version)| Op::Checkpoint { fence, version }),
        1 => fences().prop_map(|fence| Op::DropCheckpoint { fence }),
        1 => fences().prop_map(|above| Op::NextFence { above }),
        1 => fences().prop_map(|to| Op::RaiseFence { to }),
        3 => (holders(), prop::option::of(holders())).prop_map(|(holder, instead_of)| Op::Take { holder, instead_of }),
        1 => holders().prop_map(|holder| Op::Renew { holder }),
        2 => holders().prop_map(|holder| Op::Release { holder }),
    ];
    (prop::sample::select(&NAMES[..]), op)
}

fn index_of(other: bool) -> RunId {
    if other { task_of("other") } else { task() }
}

fn write(by: &str, op: Op) -> Write {
    let (task, tenant, lease) = (task(), tenant(), LEASE);
    match op {
        Op::Task { fence, whole, status } => {
            let mut fields = if whole { task_fields(&task) } else { Vec::new() };
            fields.retain(|(field, _)| *field != TaskField::Status);
            fields.push((TaskField::Status, status.into()));
            Write::Task { task, owner: instance(by), fence, fields, whole, as_of: None }
        }
        Op::Adopt { from, fence, to, new } => Write::Adopt { task, from: (from.map(instance), fence), to: to.map(instance), fence: new },
        Op::Index { other, unless_there } => Write::Index { tenant, task: index_of(other), unless_there },
        Op::Checkpoint { fence, version } => save(fence, version),
        Op::DropCheckpoint { fence } => Write::DropCheckpoint { task, fence },
        Op::NextFence { above } => Write::NextFence { tenant, above },
        Op::RaiseFence { to } => Write::RaiseFence { tenant, to },
        Op::Take { holder, instead_of } => Write::TakeLock { tenant, holder, lease, instead_of },
        Op::Renew { holder } => Write::RenewLock { tenant, holder, lease },
        Op::Release { holder } => Write::ReleaseLock { tenant, holder },
    }
}

impl Model {
    fn apply(&mut self, by: &'static str, op: Op) -> Wrote {
        match op {
            Op::Task { fence, whole, status } => self.write_task(by, fence, whole, status),
            Op::Adopt { from, fence, to, new } => self.adopt((from, fence), (to, new.max(fence))),
            Op::Index { other, unless_there } => {
                if !unless_there || self.index.is_none() {
                    self.index = Some(index_of(other));
                }
                Wrote::Done
            }
            Op::Checkpoint { fence, version } => match &self.checkpoint {
                Some(found) if (found.fence, found.version) > (fence, version) => not_yours(None, found.fence),
                _ => {
                    self.checkpoint = Some(checkpoint(fence, version));
                    Wrote::Done
                }
            },
            Op::DropCheckpoint { fence } => match &self.checkpoint {
                None => Wrote::Missing,
                Some(found) if found.fence > fence => not_yours(None, found.fence),
                Some(_) => {
                    self.checkpoint = None;
                    Wrote::Done
                }
            },
            Op::NextFence { above } => {
                self.fence = self.fence.max(above) + 1;
                Wrote::Fence(self.fence)
            }
            Op::RaiseFence { to } => {
                self.fence = self.fence.max(to);
                Wrote::Done
            }
            Op::Take { holder, instead_of } => self.take(holder, instead_of),
            Op::Renew { holder } => match &self.lock {
                None => Wrote::Missing,
                Some(found) if *found == holder => Wrote::Done,
                Some(found) => Wrote::Held(found.clone()),
            },
            Op::Release { holder } => match &self.lock {
                None => Wrote::Missing,
                Some(found)
                    if *found == (LockHolder { fence: found.fence, ..holder.clone() }) && [0, found.fence].contains(&holder.fence) =>
                {
                    self.lock = None;
                    Wrote::Done
                }
                Some(found) => Wrote::Held(found.clone()),
            },
        }
    }

    fn write_task(&mut self, by: &'static str, fence: u64, whole: bool, status: &str) -> Wrote {
        match &self.task {
            None if !whole => return Wrote::Missing,
            Some((owner, found, _)) if *found > fence || (*found == fence && *owner != Some(by)) => return not_yours(*owner, *found),
            _ => {}
        }
        self.task = Some((Some(by), fence, status.into()));
        Wrote::Done
    }

    fn adopt(&mut self, from: (Option<&'static str>, u64), to: (Option<&'static str>, u64)) -> Wrote {
        let Some((owner, fence, _)) = &mut self.task else { return Wrote::Missing };
        if (*owner, *fence) != from && (*owner, *fence) != to {
            return not_yours(*owner, *fence);
        }
        (*owner, *fence) = to;
        Wrote::Done
    }

    fn take(&mut self, holder: LockHolder, instead_of: Option<LockHolder>) -> Wrote {
        if let Some(found) = &self.lock {
            let own = (&found.plan, &found.task, &found.instance) == (&holder.plan, &holder.task, &holder.instance);
            if !(own && found.fence <= holder.fence || Some(found) == instead_of.as_ref()) {
                return Wrote::Held(found.clone());
            }
        }
        self.lock = Some(holder);
        Wrote::Done
    }
}

fn not_yours(owner: Option<&str>, fence: u64) -> Wrote {
    Wrote::NotYours { owner: owner.map(instance), fence }
}

async fn compare(model: &Model, redis: &Redis) {
    let found = redis.tasks(&[task()]).await.unwrap().pop();
    let found = found.map(|task| (task.owner, task.fence, task.status.as_str().to_owned()));
    assert_eq!(found, model.task.clone().map(|(owner, fence, status)| (owner.map(instance), fence, status)));
    assert_eq!(redis.task_of(&tenant()).await.unwrap(), model.index);
    assert_eq!(redis.checkpoint(&task()).await.unwrap(), model.checkpoint);
    assert_eq!(redis.fence(&tenant()).await.unwrap(), model.fence);
    assert_eq!(redis.locks(&[tenant()]).await.unwrap().pop().map(|lock| lock.holder), model.lock);
    assert_eq!(redis.holders(&[tenant()]).await.unwrap(), std::slice::from_ref(&model.lock));
}

#[test]
fn two_instances_in_any_order_get_what_the_model_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = RedisServer::start();
    let instances = NAMES.map(|name| (name, open(&server)));
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) }, |(ops in prop::collection::vec(ops(), 1..60))| {
        server.flush();
        runtime.block_on(async {
            let mut model = Model::default();
            for (by, op) in &ops {
                let (_, redis) = instances.iter().find(|(name, _)| name == by).unwrap();
                let wrote = send(redis, write(by, op.clone())).await;
                assert_eq!(wrote, model.apply(by, op.clone()), "{op:?} by {by}");
            }
            compare(&model, &instances[0].1).await;
        });
    });
}
