-- Whether a question was escalated is looked up whenever one is answered.
CREATE INDEX triggers_original ON triggers (original_id) WHERE original_id IS NOT NULL;
