-- What is kept of each transcript where its scope has a limit: what was counted, and what is gone.
CREATE TABLE retention (
  session_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id),
  root_id text COLLATE "C" NOT NULL,
  entries_from bigint NOT NULL,
  measured_to bigint NOT NULL,
  bytes bigint NOT NULL
);
CREATE INDEX retention_root ON retention (root_id);
