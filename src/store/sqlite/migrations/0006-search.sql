-- Full-text search: one row per entry, under a number that grows with the entry's time, so that the newest come
-- first. The words are divided before they get here (src/domain/words.ts); the index keeps no copy of the text.
ALTER TABLE entries ADD COLUMN doc INTEGER;
CREATE UNIQUE INDEX entries_doc ON entries (doc) WHERE doc IS NOT NULL;
CREATE VIRTUAL TABLE entry_index USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');
CREATE TRIGGER entries_forgotten AFTER DELETE ON entries WHEN old.doc IS NOT NULL BEGIN
  DELETE FROM entry_index WHERE rowid = old.doc;
END;
-- Its parts are merged in small steps of our own (src/store/sqlite/indexer.ts), never in the middle of a write.
INSERT INTO entry_index (entry_index, rank) VALUES ('automerge', 0);
INSERT INTO entry_index (entry_index, rank) VALUES ('crisismerge', 256);

-- What was there before is indexed after the start, in slices.
INSERT INTO meta (key, value)
  SELECT 'unindexed_below', CAST(rowid + 1 AS TEXT) FROM entries ORDER BY rowid DESC LIMIT 1;
