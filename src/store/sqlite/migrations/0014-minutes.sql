-- The limit on a session's minutes, which the clock of open rounds asks for every second. It was looked for inside
-- the JSON text before.
ALTER TABLE sessions ADD COLUMN minutes REAL;
UPDATE sessions SET minutes = json_extract(effective, '$.limits.minutes')
  WHERE effective LIKE '%"minutes":%' AND json_valid(effective);
CREATE INDEX sessions_timed ON sessions (node, root_id)
  WHERE round_open = 1 AND ended_at IS NULL AND minutes IS NOT NULL;
