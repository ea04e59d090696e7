pragma application_id = 1398031940
pragma user_version = 5
pragma auto_vacuum = 2
pragma encoding = UTF-8
pragma journal_mode = wal
pragma page_size = 4096

index callbacks_time
  CREATE INDEX callbacks_time ON callbacks (ended_at, key, revision, shard)

index letters_time
  CREATE INDEX letters_time ON letters (added_at, workflow, seq)

index plans_definition
  CREATE INDEX plans_definition ON plans (definition, created_at, plan)

index plans_status
  CREATE INDEX plans_status ON plans (status, created_at, plan)

index runs_ended
  CREATE INDEX runs_ended ON runs (status, ended_at, run) WHERE ended_at IS NOT NULL AND plan IS NULL

index runs_ended_tasks
  CREATE INDEX runs_ended_tasks ON runs (status, ended_at, run) WHERE ended_at IS NOT NULL AND plan IS NOT NULL

index runs_plan
  CREATE INDEX runs_plan ON runs (plan, run) WHERE plan IS NOT NULL

index runs_recover
  CREATE INDEX runs_recover ON runs (started_at, run) WHERE recover IS NOT NULL

index runs_status
  CREATE INDEX runs_status ON runs (status, started_at, run) WHERE status <> 'COMPLETED' AND status <> 'RUNNING'

index runs_task_status
  CREATE INDEX runs_task_status ON runs (plan, task_status) WHERE plan IS NOT NULL

index runs_task_tenant
  CREATE INDEX runs_task_tenant ON runs (tenant, started_at, run) WHERE plan IS NOT NULL

index runs_tenant
  CREATE INDEX runs_tenant ON runs (tenant, started_at, run) WHERE tenant IS NOT NULL

index runs_wait
  CREATE INDEX runs_wait ON runs (wait, started_at, run) WHERE wait IS NOT NULL

index runs_workflow
  CREATE INDEX runs_workflow ON runs (workflow, started_at, run)

index sqlite_autoindex_events_1
  made by SQLite

index sqlite_autoindex_keys_1
  made by SQLite

index sqlite_autoindex_plans_1
  made by SQLite

index sqlite_autoindex_runs_1
  made by SQLite

index sqlite_autoindex_snapshots_1
  made by SQLite

index timers_due
  CREATE INDEX timers_due ON timers (shard, due, run, rank, name)

table callbacks
  CREATE TABLE callbacks (
    key      TEXT NOT NULL,
    revision INTEGER NOT NULL, -- that ended
    shard    INTEGER NOT NULL,
    ended_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    target   TEXT NOT NULL,
    attempt  INTEGER NOT NULL, -- to come, or in flight
    next_at  INTEGER,          -- when it is due; NULL if it is the first
    attempts INTEGER,          -- how many there are in all
    reason   TEXT,             -- why the attempt before it failed
    failure  BLOB,             -- all of it, as protobuf
    PRIMARY KEY (key, revision)
  ) STRICT, WITHOUT ROWID

table definitions
  CREATE TABLE definitions (
    hash     TEXT PRIMARY KEY,  -- SHA-256 of the text, in hexadecimal
    workflow TEXT NOT NULL,
    text     TEXT NOT NULL,
    kept_at  INTEGER NOT NULL   -- microseconds since 1970, UTC
  ) STRICT, WITHOUT ROWID

table events
  CREATE TABLE events (
    position   INTEGER PRIMARY KEY, -- order of writing, over all entities
    entity     TEXT NOT NULL,       -- a run's id, or limit:KEY or letters:WORKFLOW
    seq        INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    type       TEXT NOT NULL,
    at         INTEGER NOT NULL,    -- microseconds since 1970, UTC
    subject    TEXT,
    attempt    INTEGER,
    backoff_ms INTEGER,
    reason     TEXT,
    encoding   TEXT,
    payload    ANY,                 -- the user's bytes: TEXT if people can read it, otherwise BLOB
    body       BLOB NOT NULL,       -- protobuf
    UNIQUE (entity, seq)
  ) STRICT

table keys
  CREATE TABLE keys (
    key         TEXT NOT NULL UNIQUE,
    shard       INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    owner       TEXT,
    expires_at  INTEGER NOT NULL, -- microseconds since 1970, UTC
    ended_at    INTEGER,          -- it is gone, but keys below it may still be there
    ended_below INTEGER,          -- when the last one of that name ended below which there may still be keys
    was_deleted INTEGER,          -- it was deleted then; it expired if not
    encoding    TEXT NOT NULL,
    payload     ANY NOT NULL,     -- its value: TEXT if people can read it, otherwise BLOB
    body        BLOB NOT NULL     -- all of it but the value, as protobuf
  ) STRICT

table letters
  CREATE TABLE letters (
    workflow TEXT NOT NULL,    -- whose box it is in
    seq      INTEGER NOT NULL, -- the sequence of its arrival there
    shard    INTEGER NOT NULL,
    run      TEXT NOT NULL,
    step     TEXT NOT NULL,
    tenant   TEXT,
    class    TEXT NOT NULL,
    code     TEXT NOT NULL,
    message  TEXT NOT NULL,
    failure  BLOB NOT NULL,    -- all of it, as protobuf
    added_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    PRIMARY KEY (workflow, seq)
  ) STRICT, WITHOUT ROWID

table locks
  CREATE TABLE locks (
    tenant     TEXT PRIMARY KEY,
    shard      INTEGER NOT NULL,
    plan       TEXT NOT NULL,    -- whose task has it
    task       TEXT NOT NULL,
    epoch      INTEGER NOT NULL,
    fence      INTEGER NOT NULL, -- the number of this holding
    lease_us   INTEGER NOT NULL, -- for how long it holds without being renewed, in microseconds
    expires_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    since      INTEGER NOT NULL,
    waiting    INTEGER NOT NULL  -- how many wait for it
  ) STRICT, WITHOUT ROWID

table outbox
  CREATE TABLE outbox (
    from_entity TEXT NOT NULL,
    seq         INTEGER NOT NULL, -- counted per sender
    shard       INTEGER NOT NULL, -- of the sender
    to_entity   TEXT NOT NULL,
    kind        TEXT NOT NULL,
    body        BLOB NOT NULL,    -- protobuf
    PRIMARY KEY (from_entity, seq)
  ) STRICT, WITHOUT ROWID

table places
  CREATE TABLE places (
    last INTEGER NOT NULL -- the last position when rows of `events` were removed; those after it are not given again either
  ) STRICT

table plans
  CREATE TABLE plans (
    plan       TEXT NOT NULL UNIQUE,
    shard      INTEGER NOT NULL,
    definition TEXT NOT NULL,
    status     TEXT NOT NULL,
    why        TEXT,             -- why it is paused or has failed
    created_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    started_at INTEGER,
    ended_at   INTEGER,          -- null while it is open
    PRIMARY KEY (created_at, plan)
  ) STRICT, WITHOUT ROWID

table runs
  CREATE TABLE runs (
    run        TEXT NOT NULL UNIQUE,
    shard      INTEGER NOT NULL,
    workflow   TEXT NOT NULL,
    tenant     TEXT,
    status     TEXT NOT NULL,
    wait       TEXT,             -- why nothing of it moves now
    text       TEXT,             -- why it failed, or what it said last
    recover    TEXT,             -- what a restart has to do with it
    started_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    ended_at   INTEGER, plan TEXT, task_status TEXT, stage INTEGER, completed INTEGER, checkpoint INTEGER, pause_requested INTEGER, begun_at INTEGER,          -- null while it is open
    PRIMARY KEY (started_at, run)
  ) STRICT, WITHOUT ROWID

table shards
  CREATE TABLE shards (
    id   INTEGER PRIMARY KEY,
    term INTEGER NOT NULL, -- rises with every claim
    seq  INTEGER NOT NULL  -- the number of the last batch
  ) STRICT

table snapshots
  CREATE TABLE snapshots (
    entity TEXT PRIMARY KEY,
    seq    INTEGER NOT NULL, -- the last event that is part of it
    fold   INTEGER NOT NULL, -- the version of the program's fold that made it
    state  ANY NOT NULL      -- JSON
  ) STRICT

table swept
  CREATE TABLE swept (
    run   TEXT PRIMARY KEY,
    shard INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID

table timers
  CREATE TABLE timers (
    run      TEXT NOT NULL,
    name     TEXT NOT NULL,    -- retry:STEP, sleep:SLEEP or deadline
    shard    INTEGER NOT NULL,
    due      INTEGER NOT NULL, -- microseconds since 1970, UTC
    rank     INTEGER NOT NULL, -- retries before sleeps before the deadline
    revision INTEGER NOT NULL, -- the sequence of the event that armed it
    PRIMARY KEY (run, name)
  ) STRICT, WITHOUT ROWID

view dead_letters
  CREATE VIEW dead_letters AS
  SELECT workflow || '.' || seq AS letter, strftime('%Y-%m-%dT%H:%M:%SZ', added_at / 1000000, 'unixepoch') AS added,
    run, step, tenant, class, code, message
  FROM letters ORDER BY added_at DESC, workflow DESC, seq DESC

view due_timers
  CREATE VIEW due_timers AS
  SELECT strftime('%Y-%m-%dT%H:%M:%S', due / 1000000, 'unixepoch') || printf('.%06dZ', due % 1000000) AS time, run, name
  FROM timers ORDER BY due, run, rank, name

view held_locks
  CREATE VIEW held_locks AS
  SELECT tenant, plan, task, fence, strftime('%Y-%m-%dT%H:%M:%SZ', since / 1000000, 'unixepoch') AS held_since,
    strftime('%Y-%m-%dT%H:%M:%SZ', expires_at / 1000000, 'unixepoch') AS expires, waiting
  FROM locks ORDER BY tenant

view journal
  CREATE VIEW journal AS
  SELECT entity AS run, seq, strftime('%Y-%m-%dT%H:%M:%S', at / 1000000, 'unixepoch') || printf('.%06dZ', at % 1000000) AS time,
    type, subject, attempt, backoff_ms, reason, payload
  FROM events WHERE instr(entity, ':') = 0 ORDER BY run, seq

view live_keys
  CREATE VIEW live_keys AS
  SELECT key, revision, owner, strftime('%Y-%m-%dT%H:%M:%S', expires_at / 1000000, 'unixepoch') || printf('.%06dZ', expires_at % 1000000) AS expires,
    payload AS value
  FROM keys WHERE ended_at IS NULL ORDER BY key

view open_plans
  CREATE VIEW open_plans AS
  SELECT plan, definition, status, why, strftime('%Y-%m-%dT%H:%M:%SZ', created_at / 1000000, 'unixepoch') AS created,
    strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') AS started
  FROM plans WHERE ended_at IS NULL ORDER BY plan

view open_runs
  CREATE VIEW open_runs AS
  SELECT run, workflow, tenant, status, wait, text, strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') AS started
  FROM runs WHERE ended_at IS NULL ORDER BY run

view open_tasks
  CREATE VIEW open_tasks AS
  SELECT run AS task, plan, tenant, task_status AS status, stage, completed, checkpoint, wait, text,
    strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') AS started
  FROM runs WHERE plan IS NOT NULL AND ended_at IS NULL ORDER BY plan, run

view other_journals
  CREATE VIEW other_journals AS
  SELECT entity, seq, strftime('%Y-%m-%dT%H:%M:%S', at / 1000000, 'unixepoch') || printf('.%06dZ', at % 1000000) AS time,
    type, attempt, reason, payload
  FROM events WHERE instr(entity, ':') > 0 ORDER BY entity, seq

view pending_callbacks
  CREATE VIEW pending_callbacks AS
  SELECT key || '/' || revision AS callback, strftime('%Y-%m-%dT%H:%M:%SZ', ended_at / 1000000, 'unixepoch') AS ended, target, attempt,
    strftime('%Y-%m-%dT%H:%M:%SZ', next_at / 1000000, 'unixepoch') AS next, reason
  FROM callbacks ORDER BY ended_at, key, revision
