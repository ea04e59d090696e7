-- Who looks for runs whose time is over finds them by how and when they have ended, and reads none that stay. Tasks go with their plan, so they are apart.
CREATE INDEX CONCURRENTLY IF NOT EXISTS workflow_state_ended
ON steadfast.workflow_state (shard, status, ended_at, workflow_id) WHERE ended_at IS NOT NULL AND plan_id IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS workflow_state_ended_tasks
ON steadfast.workflow_state (shard, status, ended_at, workflow_id) WHERE ended_at IS NOT NULL AND plan_id IS NOT NULL;
