-- Events of a tree are removed some time after its last activity. A feed that resumes from a transaction number at or
-- below this one cannot have all of them and is told to start anew.
ALTER TABLE trees ADD COLUMN pruned_xid bigint NOT NULL DEFAULT 0;
