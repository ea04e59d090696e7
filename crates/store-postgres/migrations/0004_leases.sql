CREATE TABLE steadfast.instances (
  id         text COLLATE "C" PRIMARY KEY,
  name       text COLLATE "C" NOT NULL,
  address    text COLLATE "C" NOT NULL,
  version    text COLLATE "C" NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  beat_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  draining   boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
COMMENT ON TABLE steadfast.instances IS 'The programs that share this database. Times are those of its clock.';
COMMENT ON COLUMN steadfast.instances.address IS 'Where others reach it.';
COMMENT ON COLUMN steadfast.instances.beat_at IS 'When it was last heard of.';
COMMENT ON COLUMN steadfast.instances.draining IS 'It takes no more shards, and gives away those that it has.';

CREATE TABLE steadfast.leases (
  shard  integer PRIMARY KEY,
  holder text COLLATE "C",
  epoch  bigint NOT NULL DEFAULT 0,
  until  timestamptz NOT NULL DEFAULT 'epoch'
) WITH (fillfactor = 50);
COMMENT ON TABLE steadfast.leases IS 'Which instance works on which shard. What keeps others from writing it is shards.term, which its holder has raised.';
COMMENT ON COLUMN steadfast.leases.holder IS 'The id of an instance; empty if nobody has it.';
COMMENT ON COLUMN steadfast.leases.epoch IS 'How often it has changed hands.';
COMMENT ON COLUMN steadfast.leases.until IS 'When others may take it.';
INSERT INTO steadfast.leases (shard) SELECT id FROM steadfast.shards;
