-- Two filters at once: each alone may let many through, and both together few.
CREATE INDEX workflow_state_status_workflow ON steadfast.workflow_state (status, workflow, started_at, workflow_id);
CREATE INDEX workflow_state_status_tenant ON steadfast.workflow_state (status, "left"(tenant, 200), started_at, workflow_id) WHERE tenant IS NOT NULL;
CREATE INDEX workflow_state_workflow_tenant ON steadfast.workflow_state (workflow, "left"(tenant, 200), started_at, workflow_id) WHERE tenant IS NOT NULL;
CREATE INDEX workflow_state_wait_workflow ON steadfast.workflow_state (wait_reason, workflow, started_at, workflow_id) WHERE wait_reason IS NOT NULL;
CREATE INDEX workflow_state_wait_status ON steadfast.workflow_state (wait_reason, status, started_at, workflow_id) WHERE wait_reason IS NOT NULL;
CREATE INDEX workflow_state_wait_tenant ON steadfast.workflow_state (wait_reason, "left"(tenant, 200), started_at, workflow_id)
WHERE wait_reason IS NOT NULL AND tenant IS NOT NULL;

CREATE INDEX letters_home ON steadfast.letters (home, added_at, seq);
CREATE INDEX letters_kind ON steadfast.letters ((CASE WHEN strpos(home, ':') = 0 THEN 'step' ELSE split_part(home, ':', 1) END), added_at, home, seq);
CREATE INDEX letters_tenant ON steadfast.letters ("left"(tenant, 200), added_at, home, seq) WHERE tenant IS NOT NULL;
CREATE INDEX letters_class ON steadfast.letters (class, added_at, home, seq);
CREATE INDEX letters_class_code ON steadfast.letters (class, code, added_at, home, seq);
CREATE INDEX letters_code ON steadfast.letters (code, added_at, home, seq);

CREATE INDEX callbacks_first ON steadfast.callbacks (shard, ended_at, key, revision) WHERE next_at IS NULL;
CREATE INDEX plans_status_definition ON steadfast.plans (status, "left"(definition, 200), created_at, plan_id);
CREATE INDEX swept_shard ON steadfast.swept (shard, workflow_id);
