//! The SQL of leases. Each is one statement, and goes by the clock of the database. Rows are locked in the order of the shards.
//!
//! An instance lives if it was heard of within the length of a lease. A lease that is over keeps its holder: it was lost. One that was given away in good order has none.

/// A former life of the same instance has lost what it had, and does not live until it is heard of; but one that drains has let go of its address and may live. Those of whom nothing was heard for long are forgotten.
pub(super) const JOIN: &str = "WITH me AS (
  INSERT INTO steadfast.instances (id, name, address, version) VALUES ($1, $2, $3, $4)
  ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, address = EXCLUDED.address, version = EXCLUDED.version,
    started_at = clock_timestamp(), beat_at = clock_timestamp(), draining = false
),
former AS (
  UPDATE steadfast.instances SET beat_at = statement_timestamp() - $5::bigint * interval '1 ms'
  WHERE id <> $1 AND name = $2 AND address = $3 AND NOT draining AND beat_at > statement_timestamp() - $5::bigint * interval '1 ms'
),
theirs AS (
  SELECT l.shard FROM steadfast.leases l JOIN steadfast.instances i ON i.id = l.holder
  WHERE i.id <> $1 AND i.name = $2 AND i.address = $3 AND NOT i.draining AND l.until > clock_timestamp() ORDER BY l.shard FOR NO KEY UPDATE OF l
),
lost AS (UPDATE steadfast.leases l SET until = clock_timestamp() FROM theirs WHERE l.shard = theirs.shard),
forgotten AS (
  DELETE FROM steadfast.instances i
  WHERE i.id <> $1 AND i.beat_at < statement_timestamp() - greatest(interval '1 hour', $5::bigint * interval '1 ms')
    AND NOT EXISTS (SELECT FROM steadfast.leases l WHERE l.holder = i.id AND l.until > clock_timestamp())
)
SELECT (
  SELECT count(*) FROM steadfast.instances
  WHERE id <> $1 AND NOT (name = $2 AND address = $3 AND NOT draining) AND beat_at > statement_timestamp() - $5::bigint * interval '1 ms'
) AS others, pg_notify('steadfast_leases', '')";

/// A lease that is over is not renewed, though nobody else has it yet: its holder may have slept.
pub(super) const BEAT: &str = "WITH me AS (UPDATE steadfast.instances SET beat_at = clock_timestamp() WHERE id = $1 RETURNING draining),
mine AS (SELECT shard FROM steadfast.leases WHERE holder = $1 AND until > clock_timestamp() ORDER BY shard FOR NO KEY UPDATE),
renewed AS (
  UPDATE steadfast.leases l SET until = clock_timestamp() + $2::bigint * interval '1 ms' FROM mine, me WHERE l.shard = mine.shard
  RETURNING l.shard, l.epoch, l.was_lost
),
others AS (
  SELECT count(*) AS living, count(*) FILTER (WHERE NOT draining) AS working FROM steadfast.instances
  WHERE id <> $1 AND beat_at > clock_timestamp() - $2::bigint * interval '1 ms'
)
SELECT me.draining, others.living AS others, others.working + (NOT me.draining)::int AS instances, r.shard, r.epoch, r.was_lost
FROM me CROSS JOIN others LEFT JOIN renewed r ON true ORDER BY r.shard";

/// Whoever takes a shard raises its term with the lease: what its former holder still sends is refused from here on, whatever it believes.
pub(super) const CLAIM: &str = "WITH free AS (
  SELECT shard, holder FROM steadfast.leases
  WHERE (holder IS NULL OR until <= clock_timestamp()) AND shard < $4 AND shard <> ALL($5)
    AND EXISTS (SELECT FROM steadfast.instances WHERE id = $1 AND NOT draining)
  ORDER BY shard LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
),
stopped AS (
  SELECT s.id FROM steadfast.shards s WHERE s.id IN (SELECT shard FROM free) ORDER BY s.id FOR NO KEY UPDATE
),
fenced AS (
  UPDATE steadfast.shards s SET term = s.term + 1, writer = NULL FROM stopped WHERE s.id = stopped.id RETURNING s.id
),
taken AS (
  UPDATE steadfast.leases l SET holder = $1, epoch = l.epoch + 1, until = clock_timestamp() + $2::bigint * interval '1 ms',
    was_lost = free.holder IS NOT NULL
  FROM fenced JOIN free ON free.shard = fenced.id WHERE l.shard = fenced.id RETURNING l.shard, l.epoch, l.was_lost
)
SELECT shard, epoch, was_lost, pg_notify('steadfast_leases', shard::text) FROM taken ORDER BY shard";

/// Only as it was taken: a word that was on its way for long may find that somebody else had it meanwhile.
pub(super) const RELEASE: &str = "WITH released AS (
  UPDATE steadfast.leases SET holder = CASE WHEN NOT $4 THEN holder END, until = least(until, clock_timestamp())
  WHERE holder = $1 AND shard = $2 AND epoch = $3 RETURNING shard
)
SELECT shard, pg_notify('steadfast_leases', shard::text) FROM released";

pub(super) const DRAIN: &str = "WITH found AS (UPDATE steadfast.instances SET draining = $2 WHERE id = $1 RETURNING id)
SELECT id, pg_notify('steadfast_leases', '') FROM found";

pub(super) const LEAVE: &str = "WITH mine AS (
  SELECT shard FROM steadfast.leases WHERE holder = $1 AND until > clock_timestamp() ORDER BY shard FOR NO KEY UPDATE
),
lost AS (UPDATE steadfast.leases l SET until = clock_timestamp() FROM mine WHERE l.shard = mine.shard),
gone AS (DELETE FROM steadfast.instances WHERE id = $1)
SELECT pg_notify('steadfast_leases', '')";

pub(super) const INSTANCES: &str = "SELECT id, name, address, version, started_at, beat_at, draining, now,
  beat_at > now - $1::bigint * interval '1 ms' AS lives
FROM steadfast.instances CROSS JOIN (SELECT clock_timestamp() AS now OFFSET 0) AS clock ORDER BY started_at, id";

pub(super) const LEASES: &str = "SELECT shard, holder, epoch, holder IS NULL OR until <= clock_timestamp() AS is_over
FROM steadfast.leases WHERE shard < $1 ORDER BY shard";

pub(super) const LISTEN: &str = "LISTEN steadfast_leases; LISTEN steadfast_commits";

/// Nothing of it has to be on a disk, and the commit of a notification keeps all others waiting: so this one waits for no disk.
pub(super) const TELL: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('steadfast_commits', $1)";
