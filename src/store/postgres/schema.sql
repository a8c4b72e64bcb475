CREATE TABLE checkpoints (
  id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  turn_id text COLLATE "C",
  kind text NOT NULL,
  summary text NOT NULL,
  entities text NOT NULL,
  constraints text NOT NULL,
  entry_index bigint NOT NULL,
  at bigint NOT NULL,
  CONSTRAINT checkpoints_pkey PRIMARY KEY (id),
  CONSTRAINT checkpoints_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE drafts (
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  turn_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  text text NOT NULL,
  ending text NOT NULL,
  at bigint NOT NULL,
  updated_at bigint NOT NULL,
  CONSTRAINT drafts_pkey PRIMARY KEY (session_id),
  CONSTRAINT drafts_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE entries (
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  idx bigint NOT NULL,
  turn_id text COLLATE "C",
  author text NOT NULL,
  kind text NOT NULL,
  is_subagent smallint NOT NULL,
  at bigint NOT NULL,
  body text NOT NULL,
  words tsvector,
  CONSTRAINT entries_pkey PRIMARY KEY (session_id, idx),
  CONSTRAINT entries_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE events (
  root_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  xid bigint NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  text text,
  data text NOT NULL,
  at bigint NOT NULL,
  CONSTRAINT events_pkey PRIMARY KEY (root_id, seq)
);

CREATE TABLE history_refs (
  no bigint NOT NULL,
  ref bigint NOT NULL,
  CONSTRAINT history_refs_pkey PRIMARY KEY (no, ref)
);

CREATE TABLE history_sessions (
  no bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  node text COLLATE "C" NOT NULL,
  agent text NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  format text NOT NULL,
  path text NOT NULL,
  found text NOT NULL,
  family_key text COLLATE "C" NOT NULL,
  host_key text COLLATE "C",
  session_id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  stamp text NOT NULL,
  read_stamp text,
  size_bytes bigint NOT NULL,
  read_bytes bigint NOT NULL,
  status text,
  missing text,
  bad_count bigint NOT NULL,
  bad text,
  problem text,
  changed_at bigint NOT NULL,
  gone_at bigint,
  facts text,
  place text,
  CONSTRAINT history_sessions_key_key UNIQUE (key),
  CONSTRAINT history_sessions_pkey PRIMARY KEY (no)
);

CREATE TABLE leases (
  session_id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  node text COLLATE "C" NOT NULL,
  boot text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  pid bigint,
  start_time bigint,
  descendants text NOT NULL,
  opened_at bigint NOT NULL,
  CONSTRAINT leases_id_key UNIQUE (id),
  CONSTRAINT leases_pkey PRIMARY KEY (session_id),
  CONSTRAINT leases_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE messages (
  id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
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
  body text,
  entry_index bigint,
  CONSTRAINT messages_pkey PRIMARY KEY (id),
  CONSTRAINT messages_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE meta (
  key text COLLATE "C" NOT NULL,
  value text NOT NULL,
  CONSTRAINT meta_pkey PRIMARY KEY (key)
);

CREATE TABLE migrations (
  number bigint NOT NULL,
  name text NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (number)
);

CREATE TABLE nodes (
  node text COLLATE "C" NOT NULL,
  boot text COLLATE "C" NOT NULL,
  alive_until bigint,
  agents text NOT NULL,
  holder text,
  CONSTRAINT nodes_pkey PRIMARY KEY (node)
);

CREATE TABLE receipts (
  turn_id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  body text NOT NULL,
  CONSTRAINT receipts_pkey PRIMARY KEY (turn_id),
  CONSTRAINT receipts_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES turns(id)
);

CREATE TABLE retention (
  session_id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  entries_from bigint NOT NULL,
  measured_to bigint NOT NULL,
  bytes bigint NOT NULL,
  CONSTRAINT retention_pkey PRIMARY KEY (session_id),
  CONSTRAINT retention_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE scope_moves (
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  next_idx bigint NOT NULL,
  end_idx bigint,
  CONSTRAINT scope_moves_pkey PRIMARY KEY (session_id),
  CONSTRAINT scope_moves_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE sessions (
  id text COLLATE "C" NOT NULL,
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
  reply_lost_at bigint,
  parked text,
  parked_on text,
  parked_until bigint,
  paused_ms bigint NOT NULL DEFAULT 0,
  evidence_state text NOT NULL DEFAULT ''::text,
  minutes double precision,
  CONSTRAINT sessions_pkey PRIMARY KEY (id)
);

CREATE TABLE tokens (
  hash text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  session_id text COLLATE "C",
  root_id text COLLATE "C",
  fence bigint,
  name text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  can text,
  scope text,
  ceiling text,
  roots text,
  CONSTRAINT tokens_pkey PRIMARY KEY (hash)
);

CREATE TABLE trees (
  root_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL DEFAULT 0,
  xid bigint NOT NULL DEFAULT 0,
  spawn_count bigint NOT NULL DEFAULT 0,
  pruned_xid bigint NOT NULL DEFAULT 0,
  CONSTRAINT trees_pkey PRIMARY KEY (root_id)
);

CREATE TABLE triggers (
  id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  to_id text COLLATE "C",
  type text NOT NULL,
  payload text NOT NULL,
  status text NOT NULL,
  round bigint NOT NULL,
  created_at bigint NOT NULL,
  closed_at bigint,
  to_person bigint NOT NULL DEFAULT 0,
  person_at bigint,
  default_at bigint,
  default_answer text,
  original_id text COLLATE "C",
  context text,
  answer text,
  seen_at bigint,
  fence bigint,
  CONSTRAINT triggers_pkey PRIMARY KEY (id),
  CONSTRAINT triggers_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE TABLE turns (
  id text COLLATE "C" NOT NULL,
  root_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
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
  stop_note text,
  reserved_tokens bigint,
  reserved_usd double precision,
  estimated smallint NOT NULL DEFAULT 0,
  attempt_from bigint NOT NULL DEFAULT 0,
  attempts_begun bigint NOT NULL DEFAULT 0,
  reported_attempt bigint NOT NULL DEFAULT 0,
  served_attempt bigint NOT NULL DEFAULT 0,
  CONSTRAINT turns_pkey PRIMARY KEY (id),
  CONSTRAINT turns_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE INDEX checkpoints_root ON checkpoints USING btree (root_id);
CREATE INDEX checkpoints_session ON checkpoints USING btree (session_id, entry_index);
CREATE INDEX drafts_root ON drafts USING btree (root_id);
CREATE INDEX entries_at ON entries USING btree (at);
CREATE INDEX entries_root ON entries USING btree (root_id);
CREATE INDEX entries_unindexed ON entries USING btree (at) WHERE (words IS NULL);
CREATE INDEX entries_words ON entries USING gin (words);
CREATE INDEX events_xid ON events USING btree (root_id, xid);
CREATE INDEX history_sessions_bad ON history_sessions USING btree (node) WHERE ((problem IS NOT NULL) OR (bad_count > 0));
CREATE INDEX history_sessions_family ON history_sessions USING btree (family_key);
CREATE INDEX history_sessions_root ON history_sessions USING btree (root_id);
CREATE INDEX history_sessions_session ON history_sessions USING btree (session_id);
CREATE INDEX leases_node ON leases USING btree (node);
CREATE INDEX leases_root ON leases USING btree (root_id);
CREATE UNIQUE INDEX messages_callback ON messages USING btree (session_id, callback_key) WHERE (callback_key IS NOT NULL);
CREATE INDEX messages_delivery ON messages USING btree (session_id, delivery_id);
CREATE UNIQUE INDEX messages_key ON messages USING btree (key_caller, key) WHERE (key IS NOT NULL);
CREATE INDEX messages_open ON messages USING btree (session_id, status, admitted_at) WHERE (status = ANY (ARRAY['queued'::text, 'taken'::text]));
CREATE INDEX messages_root ON messages USING btree (root_id);
CREATE UNIQUE INDEX messages_session ON messages USING btree (session_id, "position");
CREATE INDEX messages_turn ON messages USING btree (turn_id) WHERE (turn_id IS NOT NULL);
CREATE INDEX receipts_root ON receipts USING btree (root_id);
CREATE INDEX retention_root ON retention USING btree (root_id);
CREATE INDEX scope_moves_root ON scope_moves USING btree (root_id);
CREATE INDEX sessions_agent_session ON sessions USING btree (agent_session_id) WHERE (agent_session_id IS NOT NULL);
CREATE INDEX sessions_at_work ON sessions USING btree (created_at, id) WHERE ((origin = 'imported'::text) AND (evidence_state = ANY (ARRAY['running'::text, 'waiting'::text, 'pending'::text])));
CREATE INDEX sessions_created ON sessions USING btree (created_at, id);
CREATE INDEX sessions_cwd ON sessions USING btree (cwd);
CREATE UNIQUE INDEX sessions_key ON sessions USING btree (key_caller, key) WHERE (key IS NOT NULL);
CREATE INDEX sessions_name ON sessions USING btree (name) WHERE (name IS NOT NULL);
CREATE INDEX sessions_open ON sessions USING btree (root_id, node) WHERE ((round_open = 1) AND (ended_at IS NULL));
CREATE INDEX sessions_parent ON sessions USING btree (parent_id, created_at) WHERE (parent_id IS NOT NULL);
CREATE INDEX sessions_parked ON sessions USING btree (parked_on, parked_until) WHERE (parked_on IS NOT NULL);
CREATE INDEX sessions_reply_lost ON sessions USING btree (parent_id, key_hash) WHERE (reply_lost_at IS NOT NULL);
CREATE INDEX sessions_root ON sessions USING btree (root_id, created_at);
CREATE INDEX sessions_short_id ON sessions USING btree (short_id);
CREATE INDEX sessions_timed ON sessions USING btree (node, root_id) WHERE ((round_open = 1) AND (ended_at IS NULL) AND (minutes IS NOT NULL));
CREATE INDEX sessions_unseen ON sessions USING btree (id) WHERE (seen = 0);
CREATE INDEX tokens_root ON tokens USING btree (root_id) WHERE (root_id IS NOT NULL);
CREATE INDEX tokens_session ON tokens USING btree (session_id) WHERE (session_id IS NOT NULL);
CREATE INDEX trees_xid ON trees USING btree (xid);
CREATE INDEX triggers_default_at ON triggers USING btree (default_at) WHERE ((status = 'open'::text) AND (default_at IS NOT NULL));
CREATE INDEX triggers_open ON triggers USING btree (session_id) WHERE (status = 'open'::text);
CREATE INDEX triggers_original ON triggers USING btree (original_id) WHERE (original_id IS NOT NULL);
CREATE INDEX triggers_person ON triggers USING btree (status, to_person) WHERE (status = 'open'::text);
CREATE INDEX triggers_person_at ON triggers USING btree (person_at) WHERE ((status = 'open'::text) AND (person_at IS NOT NULL));
CREATE INDEX triggers_root ON triggers USING btree (root_id);
CREATE INDEX triggers_session ON triggers USING btree (session_id, created_at);
CREATE INDEX turns_root ON turns USING btree (root_id);
CREATE UNIQUE INDEX turns_running ON turns USING btree (session_id) WHERE (status = 'running'::text);
CREATE INDEX turns_running_node ON turns USING btree (node) WHERE (status = 'running'::text);
CREATE UNIQUE INDEX turns_session ON turns USING btree (session_id, idx);
CREATE INDEX turns_settled ON turns USING btree (settled_at) WHERE (settled_at IS NOT NULL);
