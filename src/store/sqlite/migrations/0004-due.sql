-- Deadlines are looked for every second, among ends that nobody has to acknowledge.
DROP INDEX triggers_due;
CREATE INDEX triggers_default_at ON triggers (default_at) WHERE status = 'open' AND default_at IS NOT NULL;
CREATE INDEX triggers_person_at ON triggers (person_at) WHERE status = 'open' AND person_at IS NOT NULL;
