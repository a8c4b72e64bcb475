-- By day and then in the order they were written: by their exact times those of a thousand files, which are written
-- side by side, would lie all over the index, and each write would touch as many of its pages as it has entries.
DROP INDEX entries_unindexed;
CREATE INDEX entries_unindexed ON entries (at / 86400000 DESC) WHERE doc IS NULL;
