-- The message that a running turn is writing at the moment, and where its attempt began in the transcript.
CREATE TABLE drafts (
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id),
  turn_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  text text NOT NULL,
  ending text NOT NULL,
  at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX drafts_root ON drafts (root_id);
ALTER TABLE turns ADD COLUMN attempt_from bigint NOT NULL DEFAULT 0;
