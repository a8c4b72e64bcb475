-- Full-text search: the words are divided before they get here (src/domain/words.ts), as for the embedded store.
ALTER TABLE entries ADD COLUMN words tsvector;
CREATE INDEX entries_words ON entries USING gin (words);
CREATE INDEX entries_at ON entries (at);
-- What was there before is indexed after the start, in slices; then this index is empty.
CREATE INDEX entries_unindexed ON entries (at) WHERE words IS NULL;
