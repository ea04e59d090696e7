CREATE TABLE steadfast.settings (
  name  text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL
);
COMMENT ON TABLE steadfast.settings IS 'What was decided when the first program opened this database, and cannot be changed.';

CREATE TABLE steadfast.shards (
  id     integer PRIMARY KEY,
  term   bigint NOT NULL DEFAULT 0,
  seq    bigint NOT NULL DEFAULT 0,
  place  bigint NOT NULL DEFAULT 0,
  writer text COLLATE "C"
) WITH (fillfactor = 50);
COMMENT ON TABLE steadfast.shards IS 'Who may write a part of the work, and how far it has come.';
COMMENT ON COLUMN steadfast.shards.term IS 'Rises with every claim; only the last claim may write.';
COMMENT ON COLUMN steadfast.shards.seq IS 'The number of the last batch.';
COMMENT ON COLUMN steadfast.shards.place IS 'The number of the last event in the order of writing.';
COMMENT ON COLUMN steadfast.shards.writer IS 'The connection that writes; what others send is refused, however late it arrives.';

CREATE TABLE steadfast.workflow_events (
  workflow_id      text COLLATE "C" NOT NULL,
  sequence         bigint NOT NULL,
  event_type       text COLLATE "C" NOT NULL,
  payload          jsonb,
  occurred_at      timestamptz NOT NULL,
  attempt_number   integer DEFAULT 1,
  backoff_delay_ms bigint,
  failure_reason   text COLLATE "C",
  epoch            integer NOT NULL,
  subject          text COLLATE "C",
  shard            integer NOT NULL,
  place            bigint NOT NULL,
  encoding         text COLLATE "C",
  payload_bytes    bytea,
  body             bytea NOT NULL,
  PRIMARY KEY (workflow_id, sequence)
);
CREATE INDEX workflow_events_attempt ON steadfast.workflow_events (workflow_id, attempt_number);
CREATE UNIQUE INDEX workflow_events_place ON steadfast.workflow_events (shard, place);
COMMENT ON TABLE steadfast.workflow_events IS 'The journals. Everything else can be made from them again.';
COMMENT ON COLUMN steadfast.workflow_events.workflow_id IS 'The id of a run; key:KEY, plan:ID, lock:TENANT, limit:KEY, letters:WORKFLOW or route:NAME for what is not a run.';
COMMENT ON COLUMN steadfast.workflow_events.sequence IS 'From 1, without gaps.';
COMMENT ON COLUMN steadfast.workflow_events.payload IS 'For people. Empty if it is no JSON, or none that PostgreSQL takes; payload_bytes has it as it came.';
COMMENT ON COLUMN steadfast.workflow_events.attempt_number IS 'The attempt that it is about; for a scheduled retry the one to come.';
COMMENT ON COLUMN steadfast.workflow_events.epoch IS 'Which life of the run: a retry begins another one.';
COMMENT ON COLUMN steadfast.workflow_events.subject IS 'The step or sleep that it is about.';
COMMENT ON COLUMN steadfast.workflow_events.place IS 'The place in the order of writing, which is one of its own for every shard.';
COMMENT ON COLUMN steadfast.workflow_events.payload_bytes IS 'The bytes exactly as they came.';
COMMENT ON COLUMN steadfast.workflow_events.body IS 'Everything else, as protobuf.';

CREATE TABLE steadfast.workflow_state (
  workflow_id      text COLLATE "C" PRIMARY KEY,
  status           text COLLATE "C" NOT NULL,
  workflow         text COLLATE "C" NOT NULL,
  tenant           text COLLATE "C",
  wait_reason      text COLLATE "C",
  note             text COLLATE "C",
  started_at       timestamptz NOT NULL,
  ended_at         timestamptz,
  shard            integer NOT NULL,
  recover          text COLLATE "C",
  plan_id          text COLLATE "C",
  task_status      text COLLATE "C",
  stage            integer,
  completed_stages integer,
  checkpoint_stage integer,
  pause_requested  boolean,
  begun_at         timestamptz
) WITH (fillfactor = 80);
CREATE INDEX workflow_state_time ON steadfast.workflow_state (started_at, workflow_id);
CREATE INDEX workflow_state_status ON steadfast.workflow_state (status, started_at, workflow_id);
CREATE INDEX workflow_state_workflow ON steadfast.workflow_state (workflow, started_at, workflow_id);
CREATE INDEX workflow_state_tenant ON steadfast.workflow_state ("left"(tenant, 200), started_at, workflow_id) WHERE tenant IS NOT NULL;
CREATE INDEX workflow_state_wait ON steadfast.workflow_state (wait_reason, started_at, workflow_id) WHERE wait_reason IS NOT NULL;
CREATE INDEX workflow_state_shard ON steadfast.workflow_state (shard, started_at, workflow_id);
CREATE INDEX workflow_state_recover ON steadfast.workflow_state (shard, started_at, workflow_id) WHERE recover IS NOT NULL;
CREATE INDEX workflow_state_plan ON steadfast.workflow_state (plan_id, workflow_id) INCLUDE (task_status) WHERE plan_id IS NOT NULL;
CREATE INDEX workflow_state_task ON steadfast.workflow_state ("left"(tenant, 200), started_at, workflow_id) WHERE plan_id IS NOT NULL;
COMMENT ON TABLE steadfast.workflow_state IS 'What lists show of runs, and of the tasks of plans, which are runs.';
COMMENT ON COLUMN steadfast.workflow_state.wait_reason IS 'Why nothing of it moves now.';
COMMENT ON COLUMN steadfast.workflow_state.note IS 'Why it failed, or what it said last.';
COMMENT ON COLUMN steadfast.workflow_state.ended_at IS 'Empty while it is open.';
COMMENT ON COLUMN steadfast.workflow_state.recover IS 'What a restart has to do with it.';
COMMENT ON COLUMN steadfast.workflow_state.plan_id IS 'Of which plan it is a task; empty if it is none.';
COMMENT ON COLUMN steadfast.workflow_state.begun_at IS 'When the first stage of the task could begin.';

CREATE TABLE steadfast.timers (
  workflow_id text COLLATE "C" NOT NULL,
  name_key    text COLLATE "C" NOT NULL,
  name        text COLLATE "C" NOT NULL,
  shard       integer NOT NULL,
  due_at      timestamptz NOT NULL,
  rank        integer NOT NULL,
  revision    bigint NOT NULL,
  PRIMARY KEY (workflow_id, name_key)
);
CREATE INDEX timers_due ON steadfast.timers (shard, due_at, workflow_id, rank);
COMMENT ON TABLE steadfast.timers IS 'What is to fire.';
COMMENT ON COLUMN steadfast.timers.workflow_id IS 'Whose it is, as in workflow_events.';
COMMENT ON COLUMN steadfast.timers.name_key IS 'The name, or a short form of it if it is too long for an index.';
COMMENT ON COLUMN steadfast.timers.rank IS 'Of several that are due at once: retries before sleeps before deadlines.';
COMMENT ON COLUMN steadfast.timers.revision IS 'The sequence of the event that armed it.';

CREATE TABLE steadfast.outbox (
  from_id text COLLATE "C" NOT NULL,
  seq     bigint NOT NULL,
  shard   integer NOT NULL,
  to_id   text COLLATE "C" NOT NULL,
  kind    text COLLATE "C" NOT NULL,
  body    bytea NOT NULL,
  PRIMARY KEY (from_id, seq)
);
CREATE INDEX outbox_shard ON steadfast.outbox (shard, from_id, seq);
COMMENT ON TABLE steadfast.outbox IS 'What one thing has to tell another, until it was heard.';

CREATE TABLE steadfast.letters (
  home       text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  shard      integer NOT NULL,
  about      text COLLATE "C" NOT NULL,
  detail     text COLLATE "C" NOT NULL,
  tenant     text COLLATE "C",
  class      text COLLATE "C" NOT NULL,
  code       text COLLATE "C" NOT NULL,
  message    text COLLATE "C" NOT NULL,
  failure    bytea NOT NULL,
  added_at   timestamptz NOT NULL,
  PRIMARY KEY (home, seq)
);
CREATE INDEX letters_time ON steadfast.letters (added_at, home, seq);
COMMENT ON TABLE steadfast.letters IS 'Dead letters: what nobody tries again by itself. Their bytes are in the journals.';
COMMENT ON COLUMN steadfast.letters.home IS 'A workflow, key:KEY or route:ROUTE; with the number it is the id of the letter.';
COMMENT ON COLUMN steadfast.letters.about IS 'A run, key:KEY or route:ROUTE.';
COMMENT ON COLUMN steadfast.letters.detail IS 'A step, the revision of a key, or DIRECTION KIND PEER REQUEST of a message.';
COMMENT ON COLUMN steadfast.letters.failure IS 'All of the failure, as protobuf.';

CREATE TABLE steadfast.keys (
  key         text COLLATE "C" PRIMARY KEY,
  shard       integer NOT NULL,
  revision    bigint NOT NULL,
  owner       text COLLATE "C",
  expires_at  timestamptz NOT NULL,
  ended_at    timestamptz,
  ended_below timestamptz,
  was_deleted boolean,
  value       jsonb,
  encoding    text COLLATE "C" NOT NULL,
  value_bytes bytea NOT NULL,
  body        bytea NOT NULL
);
COMMENT ON TABLE steadfast.keys IS 'What keys hold.';
COMMENT ON COLUMN steadfast.keys.ended_at IS 'It is gone, but keys below it may still be there.';
COMMENT ON COLUMN steadfast.keys.ended_below IS 'When the last one of that name ended below which there may still be keys.';
COMMENT ON COLUMN steadfast.keys.value IS 'For people, as payload in workflow_events.';
COMMENT ON COLUMN steadfast.keys.value_bytes IS 'The bytes exactly as they came.';
COMMENT ON COLUMN steadfast.keys.body IS 'All of it but the value, as protobuf.';

CREATE TABLE steadfast.callbacks (
  key      text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  shard    integer NOT NULL,
  ended_at timestamptz NOT NULL,
  target   text COLLATE "C" NOT NULL,
  attempt  integer NOT NULL,
  next_at  timestamptz,
  attempts integer,
  reason   text COLLATE "C",
  failure  bytea,
  PRIMARY KEY (key, revision)
);
CREATE INDEX callbacks_time ON steadfast.callbacks (ended_at, key, revision);
CREATE INDEX callbacks_shard ON steadfast.callbacks (shard, ended_at, key, revision);
COMMENT ON TABLE steadfast.callbacks IS 'Ends of keys that somebody is to be told of.';
COMMENT ON COLUMN steadfast.callbacks.attempt IS 'To come, or in flight.';
COMMENT ON COLUMN steadfast.callbacks.next_at IS 'When it is due; empty if it is the first.';
COMMENT ON COLUMN steadfast.callbacks.attempts IS 'How many there are in all.';

CREATE TABLE steadfast.plans (
  plan_id    text COLLATE "C" PRIMARY KEY,
  shard      integer NOT NULL,
  definition text COLLATE "C" NOT NULL,
  status     text COLLATE "C" NOT NULL,
  why        text COLLATE "C",
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  ended_at   timestamptz
);
CREATE INDEX plans_time ON steadfast.plans (created_at, plan_id);
CREATE INDEX plans_shard ON steadfast.plans (shard, created_at, plan_id);
CREATE INDEX plans_status ON steadfast.plans (status, created_at, plan_id);
CREATE INDEX plans_definition ON steadfast.plans ("left"(definition, 200), created_at, plan_id);
COMMENT ON TABLE steadfast.plans IS 'Roll-outs over many tenants.';
COMMENT ON COLUMN steadfast.plans.why IS 'Why it is paused or has failed.';

CREATE TABLE steadfast.locks (
  tenant     text COLLATE "C" PRIMARY KEY,
  shard      integer NOT NULL,
  plan_id    text COLLATE "C" NOT NULL,
  task       text COLLATE "C" NOT NULL,
  epoch      integer NOT NULL,
  fence      bigint NOT NULL,
  lease_us   bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  since      timestamptz NOT NULL,
  waiting    integer NOT NULL
);
COMMENT ON TABLE steadfast.locks IS 'Tenants whose lock a task has.';
COMMENT ON COLUMN steadfast.locks.fence IS 'The number of this holding.';
COMMENT ON COLUMN steadfast.locks.lease_us IS 'For how long it holds without being renewed, in microseconds.';
COMMENT ON COLUMN steadfast.locks.waiting IS 'How many wait for it.';

CREATE TABLE steadfast.snapshots (
  workflow_id text COLLATE "C" PRIMARY KEY,
  sequence    bigint NOT NULL,
  fold        integer NOT NULL,
  state       bytea NOT NULL
);
COMMENT ON TABLE steadfast.snapshots IS 'The last saved fold of each long journal. Whoever deletes them loses time at the next start, and nothing else.';
COMMENT ON COLUMN steadfast.snapshots.sequence IS 'The last event that is part of it.';

CREATE TABLE steadfast.definitions (
  hash     text COLLATE "C" PRIMARY KEY,
  workflow text COLLATE "C" NOT NULL,
  text     text COLLATE "C" NOT NULL,
  kept_at  timestamptz NOT NULL
);
COMMENT ON TABLE steadfast.definitions IS 'Texts of definitions, by their SHA-256.';

CREATE TABLE steadfast.swept (
  workflow_id text COLLATE "C" PRIMARY KEY,
  shard       integer NOT NULL
);
COMMENT ON TABLE steadfast.swept IS 'What was removed and of which a part of the journal is still there.';

CREATE FUNCTION steadfast.fence(me text, ids integer[], terms bigint[], afters bigint[], uptos bigint[], counts bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  wrong record;
  moved bigint;
BEGIN
  PERFORM FROM steadfast.shards WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
  SELECT f.id, f.term, f.after, s.term IS DISTINCT FROM f.term AS is_fenced, s.seq IS DISTINCT FROM f.after AS is_gap INTO wrong
  FROM unnest(ids, terms, afters) WITH ORDINALITY AS f(id, term, after, nth) LEFT JOIN steadfast.shards s ON s.id = f.id
  WHERE s.id IS NULL OR f.term IS NOT NULL AND (s.term, s.seq, s.writer) IS DISTINCT FROM (f.term, f.after, me)
  ORDER BY f.nth LIMIT 1;
  IF NOT FOUND THEN
    UPDATE steadfast.shards s SET seq = coalesce(f.upto, s.seq), place = s.place + f.count
    FROM unnest(ids, uptos, counts) AS f(id, upto, count) WHERE s.id = f.id;
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved = cardinality(ids) THEN
      RETURN;
    END IF;
    -- A shard is there twice: the second one does not follow on.
    SELECT f.id, f.after, false AS is_fenced, true AS is_gap INTO wrong
    FROM unnest(ids, afters) WITH ORDINALITY AS f(id, after, nth) WHERE f.id = ANY (ids[:f.nth - 1]) ORDER BY f.nth LIMIT 1;
  END IF;
  IF wrong.is_fenced THEN
    RAISE EXCEPTION 'shard % has another holder', wrong.id USING ERRCODE = 'SF001', DETAIL = wrong.id || ' ' || coalesce(wrong.term, 0);
  ELSIF wrong.is_gap THEN
    RAISE EXCEPTION 'shard % is at another batch', wrong.id USING ERRCODE = 'SF002', DETAIL = wrong.id || ' ' || wrong.after;
  END IF;
  RAISE EXCEPTION 'shard % is written by another connection', wrong.id USING ERRCODE = 'SF003', DETAIL = wrong.id || ' 0';
END
$$;
COMMENT ON FUNCTION steadfast.fence IS 'Moves shards on, or refuses a commit of somebody who may not write them. Rows are locked in the order of their ids.';
