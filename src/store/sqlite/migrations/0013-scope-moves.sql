-- Sessions of the scope `default`, which meant that nobody had named one. Each is moved once to the scope of its
-- git top level or folder, by the daemon, because SQL cannot look at folders; `end_idx` is null until its row is moved,
-- then entries before it that `next_idx` has passed are found in their new scope.
CREATE TABLE scope_moves (
  root_id TEXT NOT NULL,
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id),
  next_idx INTEGER NOT NULL,
  end_idx INTEGER
) STRICT;
CREATE INDEX scope_moves_root ON scope_moves (root_id);
INSERT INTO scope_moves (root_id, session_id, next_idx) SELECT root_id, id, 0 FROM sessions WHERE scope = 'default';
