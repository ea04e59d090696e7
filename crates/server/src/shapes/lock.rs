//! Locks of tenants: who has them.

use super::Time;
use super::time::millis;
use serde::{Deserialize, Serialize};
use steadfast_kernel::TenantId;
use steadfast_store::LockRow;
use utoipa::ToSchema;

/// A lock that a task has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// The number of this holding: higher than that of every one before it.
    pub fence: u64,
    /// For how long it holds without being renewed.
    pub lease_ms: u64,
    /// Since when.
    pub since: Time,
    /// Until then, if it is not renewed.
    pub expires_at: Time,
    /// How many tasks wait for it.
    pub waiting: u32,
}

impl From<&LockRow> for Lock {
    fn from(row: &LockRow) -> Self {
        Lock {
            tenant_id: row.tenant.to_string(),
            holder: row.lease.holder(),
            plan_id: row.lease.plan.to_string(),
            task_id: row.lease.task.to_string(),
            fence: row.lease.fence,
            lease_ms: millis(row.lease.lease),
            since: Time(row.since),
            expires_at: Time(row.lease.expires_at),
            waiting: row.waiting,
        }
    }
}

/// A tenant whose lock somebody else has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Locked {
    /// The tenant.
    pub tenant_id: String,
    /// Who has the lock: `PLAN:TASK`.
    pub holder: String,
}

impl From<&(TenantId, String)> for Locked {
    fn from((tenant, holder): &(TenantId, String)) -> Self {
        Locked { tenant_id: tenant.to_string(), holder: holder.clone() }
    }
}
