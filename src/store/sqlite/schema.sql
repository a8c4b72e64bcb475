CREATE TABLE checkpoints (
  id TEXT NOT NULL PRIMARY KEY,
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT,
  kind TEXT NOT NULL,
  summary TEXT NOT NULL,
  entities TEXT NOT NULL,
  constraints TEXT NOT NULL,
  entry_index INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;

CREATE INDEX checkpoints_root ON checkpoints (root_id);

CREATE INDEX checkpoints_session ON checkpoints (session_id, entry_index);

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

CREATE TRIGGER entries_forgotten AFTER DELETE ON entries WHEN old.doc IS NOT NULL BEGIN
  DELETE FROM entry_index WHERE rowid = old.doc;
END;

CREATE TABLE entries (
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  idx INTEGER NOT NULL,
  turn_id TEXT,
  author TEXT NOT NULL,
  kind TEXT NOT NULL,
  is_subagent INTEGER NOT NULL,
  at INTEGER NOT NULL,
  body TEXT NOT NULL, doc INTEGER,
  PRIMARY KEY (session_id, idx)
) STRICT;

CREATE UNIQUE INDEX entries_doc ON entries (doc) WHERE doc IS NOT NULL;

CREATE INDEX entries_root ON entries (root_id);

CREATE INDEX entries_unindexed ON entries (at / 86400000 DESC) WHERE doc IS NULL;

CREATE VIRTUAL TABLE entry_index USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');

CREATE TABLE 'entry_index_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'entry_index_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'entry_index_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);

CREATE TABLE 'entry_index_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE events (
  root_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  xid INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  type TEXT NOT NULL,
  text TEXT,
  data TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (root_id, seq)
) STRICT;

CREATE INDEX events_xid ON events (root_id, xid);

CREATE TABLE history_refs (
  no INTEGER NOT NULL,
  ref INTEGER NOT NULL,
  PRIMARY KEY (no, ref)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX history_sessions_bad ON history_sessions (node) WHERE problem IS NOT NULL OR bad_count > 0;

CREATE INDEX history_sessions_family ON history_sessions (family_key);

CREATE INDEX history_sessions_root ON history_sessions (root_id);

CREATE INDEX history_sessions_session ON history_sessions (session_id);

CREATE TABLE leases (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
  root_id TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  node TEXT NOT NULL,
  boot TEXT NOT NULL,
  fence INTEGER NOT NULL,
  pid INTEGER,
  start_time INTEGER,
  descendants TEXT NOT NULL,
  opened_at INTEGER NOT NULL
) STRICT;

CREATE INDEX leases_node ON leases (node);

CREATE INDEX leases_root ON leases (root_id);

CREATE TABLE messages (
  id TEXT NOT NULL PRIMARY KEY,
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  position INTEGER NOT NULL,
  kind TEXT NOT NULL,
  sender_kind TEXT NOT NULL,
  sender_id TEXT,
  delivery TEXT NOT NULL,
  status TEXT NOT NULL,
  carrier TEXT,
  delivery_id TEXT NOT NULL,
  key TEXT,
  key_caller TEXT,
  key_hash TEXT,
  callback_key TEXT,
  turn_id TEXT,
  data TEXT,
  metadata TEXT NOT NULL,
  repeated INTEGER NOT NULL,
  void_reason TEXT,
  admitted_at INTEGER NOT NULL,
  taken_at INTEGER,
  landed_at INTEGER,
  body TEXT
, entry_index INTEGER) STRICT;

CREATE UNIQUE INDEX messages_callback ON messages (session_id, callback_key) WHERE callback_key IS NOT NULL;

CREATE INDEX messages_delivery ON messages (session_id, delivery_id);

CREATE UNIQUE INDEX messages_key ON messages (key_caller, key) WHERE key IS NOT NULL;

CREATE INDEX messages_open ON messages (session_id, status, admitted_at) WHERE status IN ('queued', 'taken');

CREATE INDEX messages_root ON messages (root_id);

CREATE UNIQUE INDEX messages_session ON messages (session_id, position);

CREATE INDEX messages_turn ON messages (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE meta (
  key TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
  node TEXT NOT NULL PRIMARY KEY,
  boot TEXT NOT NULL,
  alive_until INTEGER,
  agents TEXT NOT NULL,
  holder TEXT
) STRICT;

CREATE TABLE receipts (
  turn_id TEXT NOT NULL PRIMARY KEY REFERENCES turns (id),
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE INDEX receipts_root ON receipts (root_id);

CREATE TABLE retention (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
  root_id TEXT NOT NULL,
  entries_from INTEGER NOT NULL,
  measured_to INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX retention_root ON retention (root_id);

CREATE TABLE scope_moves (
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
  next_idx INTEGER NOT NULL,
  end_idx INTEGER
) STRICT;

CREATE INDEX scope_moves_root ON scope_moves (root_id);

CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,
  root_id TEXT NOT NULL,
  parent_id TEXT,
  short_id TEXT NOT NULL,
  name TEXT,
  depth INTEGER NOT NULL,
  detached_at INTEGER,
  spawn_turn_id TEXT,
  spawn_entry_index INTEGER,
  spawn_config TEXT NOT NULL,
  effective TEXT NOT NULL,
  title TEXT,
  agent TEXT NOT NULL,
  profile TEXT NOT NULL,
  model TEXT,
  cwd TEXT NOT NULL,
  node TEXT NOT NULL,
  origin TEXT NOT NULL,
  source TEXT NOT NULL,
  scope TEXT NOT NULL,
  callback TEXT NOT NULL,
  callback_on INTEGER NOT NULL,
  on_parent_end TEXT NOT NULL,
  round INTEGER NOT NULL,
  round_open INTEGER NOT NULL,
  round_opened_at INTEGER,
  round_closed_at INTEGER,
  outcome TEXT,
  outcome_reason TEXT,
  held TEXT,
  background_until INTEGER,
  evidence TEXT NOT NULL,
  agent_session_id TEXT,
  fence INTEGER NOT NULL,
  message_count INTEGER NOT NULL,
  tool_use_count INTEGER NOT NULL,
  usage TEXT NOT NULL,
  entry_count INTEGER NOT NULL,
  position_count INTEGER NOT NULL,
  turn_count INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_activity_at INTEGER NOT NULL,
  ended_at INTEGER,
  end_reason TEXT,
  end_by TEXT,
  end_note TEXT,
  key TEXT,
  key_caller TEXT,
  key_hash TEXT,
  reply_lost_at INTEGER
, parked TEXT, parked_on TEXT, parked_until INTEGER, paused_ms INTEGER NOT NULL DEFAULT 0, evidence_state TEXT NOT NULL DEFAULT '', minutes REAL) STRICT;

CREATE INDEX sessions_agent_session ON sessions (agent_session_id) WHERE agent_session_id IS NOT NULL;

CREATE INDEX sessions_at_work ON sessions (created_at, id)
  WHERE origin = 'imported' AND evidence_state IN ('running', 'waiting', 'pending');

CREATE INDEX sessions_created ON sessions (created_at, id);

CREATE INDEX sessions_cwd ON sessions (cwd);

CREATE UNIQUE INDEX sessions_key ON sessions (key_caller, key) WHERE key IS NOT NULL;

CREATE INDEX sessions_name ON sessions (name) WHERE name IS NOT NULL;

CREATE INDEX sessions_open ON sessions (root_id, node) WHERE round_open = 1 AND ended_at IS NULL;

CREATE INDEX sessions_parent ON sessions (parent_id, created_at) WHERE parent_id IS NOT NULL;

CREATE INDEX sessions_parked ON sessions (parked_on, parked_until) WHERE parked_on IS NOT NULL;

CREATE INDEX sessions_reply_lost ON sessions (parent_id, key_hash) WHERE reply_lost_at IS NOT NULL;

CREATE INDEX sessions_root ON sessions (root_id, created_at);

CREATE INDEX sessions_short_id ON sessions (short_id);

CREATE INDEX sessions_timed ON sessions (node, root_id)
  WHERE round_open = 1 AND ended_at IS NULL AND minutes IS NOT NULL;

CREATE INDEX sessions_unseen ON sessions (id) WHERE seen = 0;

CREATE TABLE tokens (
  hash TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  session_id TEXT,
  root_id TEXT,
  fence INTEGER,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
, can TEXT, scope TEXT, ceiling TEXT, roots TEXT) STRICT;

CREATE INDEX tokens_root ON tokens (root_id) WHERE root_id IS NOT NULL;

CREATE INDEX tokens_session ON tokens (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE trees (
  root_id TEXT NOT NULL PRIMARY KEY,
  seq INTEGER NOT NULL DEFAULT 0,
  xid INTEGER NOT NULL DEFAULT 0,
  spawn_count INTEGER NOT NULL DEFAULT 0
, pruned_xid INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;

CREATE INDEX trees_xid ON trees (xid);

CREATE TABLE triggers (
  id TEXT NOT NULL PRIMARY KEY,
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  to_id TEXT,
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  status TEXT NOT NULL,
  round INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  closed_at INTEGER
, to_person INTEGER NOT NULL DEFAULT 0, person_at INTEGER, default_at INTEGER, default_answer TEXT, original_id TEXT, context TEXT, answer TEXT, seen_at INTEGER, fence INTEGER) STRICT;

CREATE INDEX triggers_default_at ON triggers (default_at) WHERE status = 'open' AND default_at IS NOT NULL;

CREATE INDEX triggers_open ON triggers (session_id) WHERE status = 'open';

CREATE INDEX triggers_original ON triggers (original_id) WHERE original_id IS NOT NULL;

CREATE INDEX triggers_person ON triggers (status, to_person) WHERE status = 'open';

CREATE INDEX triggers_person_at ON triggers (person_at) WHERE status = 'open' AND person_at IS NOT NULL;

CREATE INDEX triggers_root ON triggers (root_id);

CREATE INDEX triggers_session ON triggers (session_id, created_at);

CREATE TABLE turns (
  id TEXT NOT NULL PRIMARY KEY,
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  idx INTEGER NOT NULL,
  round INTEGER NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  node TEXT NOT NULL,
  boot TEXT NOT NULL,
  fence INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  description TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  settled_at INTEGER,
  error TEXT,
  stop_reason TEXT,
  last_assistant_message TEXT,
  entry_from INTEGER NOT NULL,
  entry_to INTEGER,
  tool_use_count INTEGER NOT NULL,
  usage TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  usd REAL,
  blocked INTEGER NOT NULL,
  stop_by TEXT,
  stop_note TEXT
, reserved_tokens INTEGER, reserved_usd REAL, estimated INTEGER NOT NULL DEFAULT 0, attempt_from INTEGER NOT NULL DEFAULT 0, attempts_begun INTEGER NOT NULL DEFAULT 0, reported_attempt INTEGER NOT NULL DEFAULT 0, served_attempt INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE INDEX turns_root ON turns (root_id);

CREATE UNIQUE INDEX turns_running ON turns (session_id) WHERE status = 'running';

CREATE INDEX turns_running_node ON turns (node) WHERE status = 'running';

CREATE UNIQUE INDEX turns_session ON turns (session_id, idx);

CREATE INDEX turns_settled ON turns (settled_at) WHERE settled_at IS NOT NULL;
