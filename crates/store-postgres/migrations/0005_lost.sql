ALTER TABLE steadfast.leases ADD COLUMN was_lost boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN steadfast.leases.was_lost IS 'When its holder took it, somebody had it who had not given it away.';
