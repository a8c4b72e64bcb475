-- Triggers that wait for an answer: who is asked, until when, and what was answered.
ALTER TABLE triggers ADD COLUMN to_person INTEGER NOT NULL DEFAULT 0;
ALTER TABLE triggers ADD COLUMN person_at INTEGER;
ALTER TABLE triggers ADD COLUMN default_at INTEGER;
ALTER TABLE triggers ADD COLUMN default_answer TEXT;
ALTER TABLE triggers ADD COLUMN original_id TEXT;
ALTER TABLE triggers ADD COLUMN context TEXT;
ALTER TABLE triggers ADD COLUMN answer TEXT;
ALTER TABLE triggers ADD COLUMN seen_at INTEGER;
ALTER TABLE triggers ADD COLUMN fence INTEGER;
CREATE INDEX triggers_person ON triggers (status, to_person) WHERE status = 'open';
CREATE INDEX triggers_due ON triggers (default_at, person_at) WHERE status = 'open';

-- API keys: what each may do, and where.
ALTER TABLE tokens ADD COLUMN can TEXT;
ALTER TABLE tokens ADD COLUMN scope TEXT;
