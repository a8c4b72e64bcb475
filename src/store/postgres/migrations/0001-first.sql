CREATE TABLE meta (
  key text COLLATE "C" NOT NULL PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE trees (
  root_id text COLLATE "C" NOT NULL PRIMARY KEY,
  seq bigint NOT NULL DEFAULT 0,
  xid bigint NOT NULL DEFAULT 0,
  spawn_count bigint NOT NULL DEFAULT 0
);
CREATE INDEX trees_xid ON trees (xid);

CREATE TABLE sessions (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  root_id text COLLATE "C" NOT NULL,
  parent_id text COLLATE "C",
  short_id text COLLATE "C" NOT NULL,
  name text,
  depth bigint NOT NULL,
  detached_at bigint,
  spawn_turn_id text COLLATE "C",
  spawn_entry_index bigint,
  spawn_config text NOT NULL,
  effective text NOT NULL,
  title text,
  agent text NOT NULL,
  profile text NOT NULL,
  model text,
  cwd text NOT NULL,
  node text COLLATE "C" NOT NULL,
  origin text NOT NULL,
  source text NOT NULL,
  scope text NOT NULL,
  callback text NOT NULL,
  callback_on smallint NOT NULL,
  on_parent_end text NOT NULL,
  round bigint NOT NULL,
  round_open smallint NOT NULL,
  round_opened_at bigint,
  round_closed_at bigint,
  outcome text,
  outcome_reason text,
  held text,
  background_until bigint,
  evidence text NOT NULL,
  agent_session_id text COLLATE "C",
  fence bigint NOT NULL,
  message_count bigint NOT NULL,
  tool_use_count bigint NOT NULL,
  usage text NOT NULL,
  entry_count bigint NOT NULL,
  position_count bigint NOT NULL,
  turn_count bigint NOT NULL,
  seen smallint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  last_activity_at bigint NOT NULL,
  ended_at bigint,
  end_reason text,
  end_by text,
  end_note text,
  key text COLLATE "C",
  key_caller text COLLATE "C",
  key_hash text,
  reply_lost_at bigint
);
CREATE INDEX sessions_root ON sessions (root_id, created_at);
CREATE INDEX sessions_parent ON sessions (parent_id, created_at) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_short_id ON sessions (short_id);
CREATE INDEX sessions_name ON sessions (name) WHERE name IS NOT NULL;
CREATE INDEX sessions_created ON sessions (created_at, id);
CREATE UNIQUE INDEX sessions_key ON sessions (key_caller, key) WHERE key IS NOT NULL;
CREATE INDEX sessions_reply_lost ON sessions (parent_id, key_hash) WHERE reply_lost_at IS NOT NULL;
CREATE INDEX sessions_open ON sessions (root_id, node) WHERE round_open = 1 AND ended_at IS NULL;
CREATE INDEX sessions_unseen ON sessions (id) WHERE seen = 0;

CREATE TABLE turns (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL REFERENCES sessions (id),
  idx bigint NOT NULL,
  round bigint NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  node text COLLATE "C" NOT NULL,
  boot text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  attempt bigint NOT NULL,
  description text NOT NULL,
  started_at bigint NOT NULL,
  settled_at bigint,
  error text,
  stop_reason text,
  last_assistant_message text,
  entry_from bigint NOT NULL,
  entry_to bigint,
  tool_use_count bigint NOT NULL,
  usage text NOT NULL,
  tokens bigint NOT NULL,
  usd double precision,
  blocked bigint NOT NULL,
  stop_by text,
  stop_note text
);
CREATE UNIQUE INDEX turns_session ON turns (session_id, idx);
CREATE UNIQUE INDEX turns_running ON turns (session_id) WHERE status = 'running';
CREATE INDEX turns_running_node ON turns (node) WHERE status = 'running';
CREATE INDEX turns_settled ON turns (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX turns_root ON turns (root_id);

CREATE TABLE receipts (
  turn_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES turns (id),
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  body text NOT NULL
);
CREATE INDEX receipts_root ON receipts (root_id);

CREATE TABLE messages (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL REFERENCES sessions (id),
  position bigint NOT NULL,
  kind text NOT NULL,
  sender_kind text NOT NULL,
  sender_id text COLLATE "C",
  delivery text NOT NULL,
  status text NOT NULL,
  carrier text,
  delivery_id text COLLATE "C" NOT NULL,
  key text COLLATE "C",
  key_caller text COLLATE "C",
  key_hash text,
  callback_key text,
  turn_id text COLLATE "C",
  data text,
  metadata text NOT NULL,
  repeated smallint NOT NULL,
  void_reason text,
  admitted_at bigint NOT NULL,
  taken_at bigint,
  landed_at bigint,
  body text
);
CREATE UNIQUE INDEX messages_session ON messages (session_id, position);
CREATE INDEX messages_open ON messages (session_id, status, admitted_at) WHERE status IN ('queued', 'taken');
CREATE UNIQUE INDEX messages_key ON messages (key_caller, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX messages_callback ON messages (session_id, callback_key) WHERE callback_key IS NOT NULL;
CREATE INDEX messages_delivery ON messages (session_id, delivery_id);
CREATE INDEX messages_turn ON messages (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX messages_root ON messages (root_id);

CREATE TABLE entries (
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL REFERENCES sessions (id),
  idx bigint NOT NULL,
  turn_id text COLLATE "C",
  author text NOT NULL,
  kind text NOT NULL,
  is_subagent smallint NOT NULL,
  at bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (session_id, idx)
);
CREATE INDEX entries_root ON entries (root_id);

CREATE TABLE triggers (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL REFERENCES sessions (id),
  to_id text COLLATE "C",
  type text NOT NULL,
  payload text NOT NULL,
  status text NOT NULL,
  round bigint NOT NULL,
  created_at bigint NOT NULL,
  closed_at bigint
);
CREATE INDEX triggers_session ON triggers (session_id, created_at);
CREATE INDEX triggers_open ON triggers (session_id) WHERE status = 'open';
CREATE INDEX triggers_root ON triggers (root_id);

CREATE TABLE checkpoints (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL REFERENCES sessions (id),
  turn_id text COLLATE "C",
  kind text NOT NULL,
  summary text NOT NULL,
  entities text NOT NULL,
  constraints text NOT NULL,
  entry_index bigint NOT NULL,
  at bigint NOT NULL
);
CREATE INDEX checkpoints_session ON checkpoints (session_id, entry_index);
CREATE INDEX checkpoints_root ON checkpoints (root_id);

CREATE TABLE events (
  root_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  xid bigint NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  text text,
  data text NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (root_id, seq)
);
CREATE INDEX events_xid ON events (root_id, xid);

CREATE TABLE leases (
  session_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES sessions (id),
  root_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  node text COLLATE "C" NOT NULL,
  boot text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  pid bigint,
  start_time bigint,
  descendants text NOT NULL,
  opened_at bigint NOT NULL
);
CREATE INDEX leases_node ON leases (node);
CREATE INDEX leases_root ON leases (root_id);

CREATE TABLE nodes (
  node text COLLATE "C" NOT NULL PRIMARY KEY,
  boot text COLLATE "C" NOT NULL,
  alive_until bigint,
  agents text NOT NULL,
  holder text
);

CREATE TABLE tokens (
  hash text COLLATE "C" NOT NULL PRIMARY KEY,
  kind text NOT NULL,
  session_id text COLLATE "C",
  root_id text COLLATE "C",
  fence bigint,
  name text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);
CREATE INDEX tokens_session ON tokens (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX tokens_root ON tokens (root_id) WHERE root_id IS NOT NULL;
