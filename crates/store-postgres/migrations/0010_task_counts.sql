-- A plan has up to 10,000 tasks, and a page of plans shows how all of them stand. So they are counted when one changes, whichever program writes it. A shard has one
-- writer, and counts of its own, so nobody waits for another one. Runs that are no tasks, and tasks whose status stays, cost nothing.
CREATE TABLE steadfast.task_counts (
  plan_id     text COLLATE "C" NOT NULL,
  task_status text COLLATE "C" NOT NULL,
  shard       integer NOT NULL,
  tasks       bigint NOT NULL,
  PRIMARY KEY (plan_id, task_status, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE steadfast.task_counts IS 'How many tasks of a plan have a status, by the shard that they live in.';

CREATE FUNCTION steadfast.count_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.plan_id IS NOT NULL THEN
    DELETE FROM steadfast.task_counts WHERE plan_id = OLD.plan_id AND task_status = OLD.task_status AND shard = OLD.shard AND tasks <= 1;
    IF NOT FOUND THEN
      UPDATE steadfast.task_counts SET tasks = tasks - 1 WHERE plan_id = OLD.plan_id AND task_status = OLD.task_status AND shard = OLD.shard;
    END IF;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.plan_id IS NOT NULL THEN
    INSERT INTO steadfast.task_counts AS counted VALUES (NEW.plan_id, NEW.task_status, NEW.shard, 1)
    ON CONFLICT (plan_id, task_status, shard) DO UPDATE SET tasks = counted.tasks + 1;
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION steadfast.count_task IS 'Keeps task_counts.';
CREATE TRIGGER task_added AFTER INSERT ON steadfast.workflow_state FOR EACH ROW WHEN (NEW.plan_id IS NOT NULL) EXECUTE FUNCTION steadfast.count_task();
CREATE TRIGGER task_changed AFTER UPDATE ON steadfast.workflow_state FOR EACH ROW
WHEN ((OLD.plan_id, OLD.task_status, OLD.shard) IS DISTINCT FROM (NEW.plan_id, NEW.task_status, NEW.shard) AND (OLD.plan_id IS NOT NULL OR NEW.plan_id IS NOT NULL))
EXECUTE FUNCTION steadfast.count_task();
CREATE TRIGGER task_removed AFTER DELETE ON steadfast.workflow_state FOR EACH ROW WHEN (OLD.plan_id IS NOT NULL) EXECUTE FUNCTION steadfast.count_task();

-- Nobody writes from here on until this is committed.
INSERT INTO steadfast.task_counts SELECT plan_id, task_status, shard, count(*) FROM steadfast.workflow_state WHERE plan_id IS NOT NULL GROUP BY plan_id, task_status, shard;
