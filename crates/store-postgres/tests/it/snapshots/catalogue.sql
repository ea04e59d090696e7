-- One line per part of the schema, indented below the object that has it.
SET timezone = 'UTC';
WITH relations AS (
  SELECT oid, reloptions, CASE relkind WHEN 'r' THEN 'table ' ELSE 'relation of kind ' || relkind::text || ' ' END || relname AS object
  FROM pg_class WHERE relnamespace = 'steadfast'::regnamespace AND relkind NOT IN ('i', 'I', 't', 'c')
),
functions AS (
  SELECT oid, prosrc, provolatile, prolang, 'function ' || proname || '(' || pg_get_function_arguments(oid) || ')' AS object
  FROM pg_proc WHERE pronamespace = 'steadfast'::regnamespace
),
migrations AS (
  SELECT version, checksum, compatible_from, 'migration ' || lpad(version::text, 4, '0') || ' ' || name AS object FROM steadfast.migrations
),
parts (object, rank, place, line) AS (
  SELECT object, 0, 0, '' FROM relations UNION ALL SELECT object, 0, 0, '' FROM functions UNION ALL SELECT object, 0, 0, '' FROM migrations
  UNION ALL
  SELECT object, 1, 0, object FROM relations UNION ALL SELECT object, 1, 0, object FROM functions UNION ALL SELECT object, 1, 0, object FROM migrations
  UNION ALL
  SELECT object, 2, 0, '  option ' || option FROM relations, unnest(reloptions) AS option
  UNION ALL
  SELECT object, 3, attnum, '  column ' || attname || ' ' || format_type(atttypid, atttypmod)
    || CASE WHEN attcollation IN (0, 100) THEN '' ELSE ' collate ' || (SELECT collname FROM pg_collation WHERE oid = attcollation) END
    || CASE WHEN attnotnull THEN ' not null' ELSE '' END
    || CASE WHEN attidentity = '' THEN '' ELSE ' identity ' || attidentity::text END
    || CASE WHEN attgenerated = '' THEN '' ELSE ' generated ' || attgenerated::text END
    || coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
  FROM relations JOIN pg_attribute ON attrelid = relations.oid AND attnum > 0 AND NOT attisdropped
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  UNION ALL
  SELECT object, 4, 0, '  constraint ' || conname || ' ' || pg_get_constraintdef(pg_constraint.oid)
  FROM relations JOIN pg_constraint ON conrelid = relations.oid WHERE contype <> 'n' -- a column says `not null`
  UNION ALL
  SELECT object, 5, 0, '  ' || regexp_replace(pg_get_indexdef(indexrelid), '\s+', ' ', 'g') FROM relations JOIN pg_index ON indrelid = relations.oid
  UNION ALL
  SELECT object, 6, 0, '  ' || pg_get_triggerdef(pg_trigger.oid) FROM relations JOIN pg_trigger ON tgrelid = relations.oid WHERE NOT tgisinternal
  UNION ALL
  SELECT object, 2, 0, '  returns ' || pg_get_function_result(functions.oid) || ', language ' || lanname || ', volatility ' || provolatile::text
  FROM functions JOIN pg_language ON pg_language.oid = prolang
  UNION ALL
  SELECT object, 3, place, rtrim('  | ' || line) FROM functions, regexp_split_to_table(prosrc, '\n') WITH ORDINALITY AS source (line, place)
  UNION ALL
  SELECT object, 2, 0, '  sha-256 ' || checksum FROM migrations
  UNION ALL
  SELECT object, 3, 0, '  compatible from ' || compatible_from FROM migrations
)
SELECT line FROM parts ORDER BY object COLLATE "C", rank, place, line COLLATE "C";
