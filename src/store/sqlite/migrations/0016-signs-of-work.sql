-- In which attempt at a turn its agent last gave a sign of work, by what it reported and by a tool call that was
-- served. Entries and drafts show it later, and calls that an agent does not report never do.
ALTER TABLE turns ADD COLUMN reported_attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN served_attempt INTEGER NOT NULL DEFAULT 0;
