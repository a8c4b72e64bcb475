-- Budgets: what a running turn holds, and which turns were booked without knowing what they used.
ALTER TABLE turns ADD COLUMN reserved_tokens INTEGER;
ALTER TABLE turns ADD COLUMN reserved_usd REAL;
ALTER TABLE turns ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;

-- Sessions that wait for a vendor's limit or for their budget, and time that does not count.
ALTER TABLE sessions ADD COLUMN parked TEXT;
ALTER TABLE sessions ADD COLUMN parked_on TEXT;
ALTER TABLE sessions ADD COLUMN parked_until INTEGER;
ALTER TABLE sessions ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_parked ON sessions (parked_on, parked_until) WHERE parked_on IS NOT NULL;
