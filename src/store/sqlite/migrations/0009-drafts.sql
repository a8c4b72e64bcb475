-- The message that a running turn is writing at the moment, and where its attempt began in the transcript.
CREATE TABLE drafts (
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
  turn_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  ending TEXT NOT NULL,
  at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX drafts_root ON drafts (root_id);
ALTER TABLE turns ADD COLUMN attempt_from INTEGER NOT NULL DEFAULT 0;
