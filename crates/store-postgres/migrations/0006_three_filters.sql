-- Three filters at once: any two of them may let many through, and all together none.
CREATE INDEX CONCURRENTLY IF NOT EXISTS workflow_state_status_workflow_tenant
ON steadfast.workflow_state (status, workflow, "left"(tenant, 200), started_at, workflow_id) WHERE tenant IS NOT NULL;
