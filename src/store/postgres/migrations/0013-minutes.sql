-- The limit on a session's minutes, which the clock of open rounds asks for every second. It was looked for inside
-- the JSON text before. Limits are numbers by name; the text is not read as JSON here, because PostgreSQL refuses
-- to read JSON that holds \u0000.
ALTER TABLE sessions ADD COLUMN minutes double precision;
UPDATE sessions SET minutes = substring(effective from '"limits":\{[^}]*"minutes":([0-9.eE+-]+)')::double precision
  WHERE effective LIKE '%"minutes":%';
CREATE INDEX sessions_timed ON sessions (node, root_id)
  WHERE round_open = 1 AND ended_at IS NULL AND minutes IS NOT NULL;
