-- A run is put at every change, and each leaves a dead version in the indexes by status and by what it waits for, which lists and counts step over. By default a table
-- is vacuumed when a fifth of it is dead: with a million runs that is 200,000 versions, all in the few places that people look at. Timers and messages come and go at
-- the beginning of their order, which is where they are looked for. Keys are put again and again.
ALTER TABLE steadfast.workflow_state SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE steadfast.timers SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE steadfast.outbox SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE steadfast.callbacks SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
ALTER TABLE steadfast.keys SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
