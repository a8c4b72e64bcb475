-- Budgets: what a running turn holds, and which turns were booked without knowing what they used.
ALTER TABLE turns ADD COLUMN reserved_tokens bigint;
ALTER TABLE turns ADD COLUMN reserved_usd double precision;
ALTER TABLE turns ADD COLUMN estimated smallint NOT NULL DEFAULT 0;

-- Sessions that wait for a vendor's limit or for their budget, and time that does not count.
ALTER TABLE sessions ADD COLUMN parked text;
ALTER TABLE sessions ADD COLUMN parked_on text;
ALTER TABLE sessions ADD COLUMN parked_until bigint;
ALTER TABLE sessions ADD COLUMN paused_ms bigint NOT NULL DEFAULT 0;
CREATE INDEX sessions_parked ON sessions (parked_on, parked_until) WHERE parked_on IS NOT NULL;
