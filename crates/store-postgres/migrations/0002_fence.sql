CREATE FUNCTION steadfast.begun() RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(current_setting('steadfast.transaction', true) = 'begun', false)
$$;
COMMENT ON FUNCTION steadfast.begun IS 'Whether this is part of a transaction that a program has begun; what is sent after a failed BEGIN changes nothing.';

DROP FUNCTION steadfast.fence;
CREATE FUNCTION steadfast.fence(
  known integer, me text, ids integer[], terms bigint[], afters bigint[], uptos bigint[], counts bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  newest record;
  wrong record;
  moved bigint;
BEGIN
  IF NOT steadfast.begun() THEN
    RAISE EXCEPTION 'no transaction has begun' USING ERRCODE = 'SF004';
  END IF;
  SELECT max(version) AS version, max(compatible_from) AS compatible_from INTO newest FROM steadfast.migrations;
  IF newest.compatible_from > known THEN
    RAISE EXCEPTION 'this program knows the schema up to version %', known USING ERRCODE = 'SF005', DETAIL = newest.version || ' ' || known;
  END IF;
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
