-- Triggers that wait for an answer: who is asked, until when, and what was answered.
ALTER TABLE triggers ADD COLUMN to_person bigint NOT NULL DEFAULT 0;
ALTER TABLE triggers ADD COLUMN person_at bigint;
ALTER TABLE triggers ADD COLUMN default_at bigint;
ALTER TABLE triggers ADD COLUMN default_answer text;
ALTER TABLE triggers ADD COLUMN original_id text COLLATE "C";
ALTER TABLE triggers ADD COLUMN context text;
ALTER TABLE triggers ADD COLUMN answer text;
ALTER TABLE triggers ADD COLUMN seen_at bigint;
ALTER TABLE triggers ADD COLUMN fence bigint;
CREATE INDEX triggers_person ON triggers (status, to_person) WHERE status = 'open';
CREATE INDEX triggers_due ON triggers (default_at, person_at) WHERE status = 'open';

-- API keys: what each may do, and where.
ALTER TABLE tokens ADD COLUMN can text;
ALTER TABLE tokens ADD COLUMN scope text;
