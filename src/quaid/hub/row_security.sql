-- Row-level security in PostgreSQL. After the rights of a request were checked, it runs as the role quaid_hub_request.
-- This role can access only rows of the spaces in the setting quaid.spaces, as in ',a,b,'. So a statement that lacks
-- its condition on the space does not read another space.

GRANT SELECT, UPDATE ON spaces TO quaid_hub_request;
GRANT SELECT, INSERT, UPDATE, DELETE ON members, invitations, revisions, heads, proposals, acknowledgements, vectors
    TO quaid_hub_request;
GRANT SELECT, INSERT ON audit TO quaid_hub_request;
GRANT SELECT ON people TO quaid_hub_request;
-- All columns except the hash of the token.
GRANT SELECT (id, person, agent, name, limit_right, created_at, last_seen_at, expires_at, revoked_at) ON devices
    TO quaid_hub_request;

ALTER TABLE spaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE members ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE revisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE proposals ENABLE ROW LEVEL SECURITY;
ALTER TABLE acknowledgements ENABLE ROW LEVEL SECURITY;
ALTER TABLE vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;

-- No index can use this form of the condition. If it were written as `space = ...`, which the query has too, the planner
-- would expect a hundred times fewer rows, and choose an index that reads all pages of a space.
DROP POLICY IF EXISTS of_request ON spaces;
CREATE POLICY of_request ON spaces TO quaid_hub_request
    USING (position(',' || id || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON members;
CREATE POLICY of_request ON members TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON invitations;
CREATE POLICY of_request ON invitations TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON revisions;
CREATE POLICY of_request ON revisions TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON heads;
CREATE POLICY of_request ON heads TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON proposals;
CREATE POLICY of_request ON proposals TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON acknowledgements;
CREATE POLICY of_request ON acknowledgements TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON vectors;
CREATE POLICY of_request ON vectors TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
DROP POLICY IF EXISTS of_request ON audit;
CREATE POLICY of_request ON audit TO quaid_hub_request
    USING (position(',' || space || ',' IN current_setting('quaid.spaces', true)) > 0);
