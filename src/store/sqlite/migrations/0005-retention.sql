-- What is kept of each transcript where its scope has a limit: what was counted, and what is gone.
CREATE TABLE retention (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
  root_id TEXT NOT NULL,
  entries_from INTEGER NOT NULL,
  measured_to INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX retention_root ON retention (root_id);
