//! Locks of tenants: who has them.

use super::Time;
use super::time::millis;
use serde::{Deserialize, Serialize};
use steadfast_kernel::{InstanceId, TenantId, Timestamp};
use steadfast_store::{LockRow, SharedLock};
use utoipa::ToSchema;

/// A lock that a task has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Lock)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    /// Whose it is.
    pub tenant_id: String,
    /// Who has it: `PLAN:TASK`.
    #[schema(examples("switch-17:switch-17/acme"))]
    pub holder: String,
    /// The plan of the task.
    pub plan_id: String,
    /// The task.
    pub task_id: String,
    /// The instance of the task, if instances share tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The number of this holding: higher than that of every one before it.
    pub fence: u64,
    /// For how long it holds without being renewed; not known of another instance's.
    pub lease_ms: Option<u64>,
    /// Since when; not known of another instance's.
    pub since: Option<Time>,
    /// Until then, if it is not renewed.
    pub expires_at: Time,
    /// How many tasks of this instance wait for it.
    pub waiting: u32,
}

impl Lock {
    /// A lock of this instance.
    pub(crate) fn of(row: &LockRow, instance: Option<&InstanceId>) -> Self {
        Lock {
            tenant_id: row.tenant.to_string(),
            holder: row.lease.holder(),
            plan_id: row.lease.plan.to_string(),
            task_id: row.lease.task.to_string(),
            instance: instance.map(ToString::to_string),
            fence: row.lease.fence,
            lease_ms: Some(millis(row.lease.lease)),
            since: Some(Time(row.since)),
            expires_at: Time(row.lease.expires_at),
            waiting: row.waiting,
        }
    }

    /// A lock of another instance.
    pub(crate) fn elsewhere(lock: &SharedLock, now: Timestamp) -> Self {
        let holder = &lock.holder;
        Lock {
            tenant_id: lock.tenant.to_string(),
            holder: format!("{}:{}", holder.plan, holder.task),
            plan_id: holder.plan.to_string(),
            task_id: holder.task.to_string(),
            instance: Some(holder.instance.to_string()),
            fence: holder.fence,
            lease_ms: None,
            since: None,
            expires_at: Time(now.saturating_add(lock.left)),
            waiting: 0,
        }
    }
}

/// A tenant whose lock somebody else has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Locked)]
#[serde(rename_all = "camelCase")]
pub struct Locked {
    /// The tenant.
    pub tenant_id: String,
    /// Who has the lock: `PLAN:TASK`, or `PLAN:TASK:INSTANCE:FENCE` if another instance has it.
    pub holder: String,
}

impl From<&(TenantId, String)> for Locked {
    fn from((tenant, holder): &(TenantId, String)) -> Self {
        Locked { tenant_id: tenant.to_string(), holder: holder.clone() }
    }
}
