-- Where a message is in its session's transcript: once, however often it is sent.
ALTER TABLE messages ADD COLUMN entry_index bigint;

-- In how many attempts at a turn its agent had begun to work.
ALTER TABLE turns ADD COLUMN attempts_begun bigint NOT NULL DEFAULT 0;
