-- Three filters at once, one of them what runs wait for: any two of them may let many through, and all together none.
CREATE INDEX CONCURRENTLY IF NOT EXISTS workflow_state_wait_workflow_tenant
ON steadfast.workflow_state (wait_reason, workflow, "left"(tenant, 200), started_at, workflow_id) WHERE wait_reason IS NOT NULL AND tenant IS NOT NULL;
