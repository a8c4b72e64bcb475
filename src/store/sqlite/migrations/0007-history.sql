-- What agents left on disk: one row per session or sub-agent that a reader found, also those that are not imported.
CREATE TABLE history_sessions (
  no INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  node TEXT NOT NULL,
  agent TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  format TEXT NOT NULL,
  path TEXT NOT NULL,
  found TEXT NOT NULL,
  family_key TEXT NOT NULL,
  host_key TEXT,
  session_id TEXT NOT NULL,
  root_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  stamp TEXT NOT NULL,
  read_stamp TEXT,
  size_bytes INTEGER NOT NULL,
  read_bytes INTEGER NOT NULL,
  status TEXT,
  missing TEXT,
  bad_count INTEGER NOT NULL,
  bad TEXT,
  problem TEXT,
  changed_at INTEGER NOT NULL,
  gone_at INTEGER,
  facts TEXT,
  place TEXT
) STRICT;
CREATE INDEX history_sessions_family ON history_sessions (family_key);
CREATE INDEX history_sessions_session ON history_sessions (session_id);
CREATE INDEX history_sessions_root ON history_sessions (root_id);
CREATE INDEX history_sessions_bad ON history_sessions (node) WHERE problem IS NOT NULL OR bad_count > 0;

-- Which entries of its file a session has, so that none is ever there twice. A ref stands as a number, and the
-- session as its `no`: this table has a row for each entry, and its tree is that of the session.
CREATE TABLE history_refs (
  no INTEGER NOT NULL,
  ref INTEGER NOT NULL,
  PRIMARY KEY (no, ref)
) STRICT, WITHOUT ROWID;

-- Imported sessions have no round that is open: what they do stands in their evidence.
ALTER TABLE sessions ADD COLUMN evidence_state TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_at_work ON sessions (created_at, id)
  WHERE origin = 'imported' AND evidence_state IN ('running', 'waiting', 'pending');
CREATE INDEX sessions_agent_session ON sessions (agent_session_id) WHERE agent_session_id IS NOT NULL;
CREATE INDEX sessions_cwd ON sessions (cwd);

-- What is read from disk is indexed after it is there, newest first; so is what an older version left.
CREATE INDEX entries_unindexed ON entries (at) WHERE doc IS NULL;
DELETE FROM meta WHERE key = 'unindexed_below';
