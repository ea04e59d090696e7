//! The SQL of leases. Each is one statement, and goes by the clock of the database. Rows are locked in the order of the shards.

pub(super) const JOIN: &str = "INSERT INTO steadfast.instances (id, name, address, version) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, address = EXCLUDED.address, version = EXCLUDED.version, started_at = clock_timestamp(),
  beat_at = clock_timestamp(), draining = false";

/// A lease that is over is not renewed, though nobody else has it yet: its holder may have slept.
pub(super) const BEAT: &str = "WITH me AS (UPDATE steadfast.instances SET beat_at = clock_timestamp() WHERE id = $1 RETURNING draining),
mine AS (SELECT shard FROM steadfast.leases WHERE holder = $1 AND until > clock_timestamp() ORDER BY shard FOR NO KEY UPDATE),
renewed AS (
  UPDATE steadfast.leases l SET until = clock_timestamp() + $2::bigint * interval '1 ms' FROM mine, me WHERE l.shard = mine.shard
  RETURNING l.shard, l.epoch, l.until
)
SELECT me.draining, r.shard, r.epoch, r.until FROM me LEFT JOIN renewed r ON true ORDER BY r.shard";

/// Whoever takes a shard raises its term with the lease: what its former holder still sends is refused from here on, whatever it believes.
pub(super) const CLAIM: &str = "WITH free AS (
  SELECT shard FROM steadfast.leases
  WHERE (holder IS NULL OR until <= clock_timestamp()) AND EXISTS (SELECT FROM steadfast.instances WHERE id = $1 AND NOT draining)
  ORDER BY shard LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
),
stopped AS (
  SELECT s.id FROM steadfast.shards s WHERE s.id IN (SELECT shard FROM free) ORDER BY s.id FOR NO KEY UPDATE
),
fenced AS (
  UPDATE steadfast.shards s SET term = s.term + 1, writer = NULL FROM stopped WHERE s.id = stopped.id RETURNING s.id
),
taken AS (
  UPDATE steadfast.leases l SET holder = $1, epoch = l.epoch + 1, until = clock_timestamp() + $2::bigint * interval '1 ms'
  FROM fenced WHERE l.shard = fenced.id RETURNING l.shard, l.epoch, l.until
)
SELECT shard, epoch, until, pg_notify('steadfast_leases', shard::text) FROM taken ORDER BY shard";

pub(super) const RELEASE: &str = "WITH mine AS (
  SELECT shard FROM steadfast.leases WHERE holder = $1 AND shard = ANY ($2) ORDER BY shard FOR NO KEY UPDATE
),
released AS (
  UPDATE steadfast.leases l SET holder = NULL, until = 'epoch' FROM mine WHERE l.shard = mine.shard RETURNING l.shard
)
SELECT shard, pg_notify('steadfast_leases', shard::text) FROM released ORDER BY shard";

pub(super) const DRAIN: &str = "UPDATE steadfast.instances SET draining = $2 WHERE id = $1 RETURNING id";

pub(super) const LEAVE: &str = "WITH mine AS (SELECT shard FROM steadfast.leases WHERE holder = $1 ORDER BY shard FOR NO KEY UPDATE),
released AS (
  UPDATE steadfast.leases l SET holder = NULL, until = 'epoch' FROM mine WHERE l.shard = mine.shard RETURNING l.shard
),
gone AS (DELETE FROM steadfast.instances WHERE id = $1 RETURNING id)
SELECT shard, pg_notify('steadfast_leases', shard::text) FROM released ORDER BY shard";

pub(super) const INSTANCES: &str = "SELECT id, name, address, version, started_at, beat_at, draining, clock_timestamp() AS now
FROM steadfast.instances ORDER BY started_at, id";

pub(super) const LEASES: &str =
    "SELECT shard, holder, epoch, until, until <= clock_timestamp() AS is_over FROM steadfast.leases ORDER BY shard";
