-- The most that sessions of an API key may be allowed, and their folders. Keys made before are lowered to
-- `workspace`, which is what a session that names no mode gets; their folders stay any.
ALTER TABLE tokens ADD COLUMN ceiling TEXT;
ALTER TABLE tokens ADD COLUMN roots TEXT;
UPDATE tokens SET ceiling = 'workspace' WHERE kind = 'outside';
