-- The database of a hub. postgres_store.py translates the types, and row_security.sql protects the rows.

CREATE TABLE hub (
    id             TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    audit_number   INTEGER NOT NULL,
    audit_hash     TEXT NOT NULL
) STRICT;

CREATE TABLE people (
    name       TEXT PRIMARY KEY,
    is_admin   INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE devices (
    id           TEXT PRIMARY KEY,
    person       TEXT NOT NULL REFERENCES people (name),
    agent        TEXT NOT NULL,
    name         TEXT NOT NULL,
    token_hash   TEXT NOT NULL UNIQUE,
    limit_right  TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    last_seen_at TEXT,
    expires_at   TEXT,
    revoked_at   TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX devices_of_person ON devices (person);

-- last_seq numbers the changes of a space, audit_number its audit entries. A writer locks the row.
CREATE TABLE spaces (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    kind          TEXT NOT NULL,
    sealed        INTEGER NOT NULL,
    created_by    TEXT NOT NULL,
    created_at    TEXT NOT NULL,
    last_seq      INTEGER NOT NULL,
    last_proposal INTEGER NOT NULL,
    audit_number  INTEGER NOT NULL,
    audit_hash    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
    space   TEXT NOT NULL REFERENCES spaces (id),
    person  TEXT NOT NULL REFERENCES people (name),
    agent   TEXT NOT NULL,
    granted TEXT NOT NULL,
    PRIMARY KEY (space, person, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX spaces_of_person ON members (person, space);

CREATE TABLE invitations (
    code_hash   TEXT PRIMARY KEY,
    space       TEXT NOT NULL,
    granted     TEXT NOT NULL,
    person      TEXT NOT NULL,
    agent       TEXT NOT NULL,
    expires_at  TEXT NOT NULL,
    created_by  TEXT NOT NULL,
    device      TEXT NOT NULL,
    by_admin    INTEGER NOT NULL,
    redeemed_at TEXT
) STRICT, WITHOUT ROWID;

-- One row for each change of a space. A purge is a revision without content.
CREATE TABLE revisions (
    space    TEXT NOT NULL REFERENCES spaces (id),
    uuid     TEXT NOT NULL,
    revision INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    base     INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    slug     TEXT NOT NULL,
    deleted  INTEGER NOT NULL,
    purged   INTEGER NOT NULL,
    person   TEXT NOT NULL,
    agent    TEXT NOT NULL,
    device   TEXT NOT NULL,
    at       TEXT NOT NULL,
    bundle   BLOB NOT NULL,
    PRIMARY KEY (space, uuid, revision)
) STRICT;
CREATE UNIQUE INDEX revisions_by_seq ON revisions (space, seq);

-- The newest revision of each page. `slug` is '' for deleted and purged pages and in sealed spaces.
CREATE TABLE heads (
    space    TEXT NOT NULL REFERENCES spaces (id),
    uuid     TEXT NOT NULL,
    revision INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    slug     TEXT NOT NULL,
    purged   INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    PRIMARY KEY (space, uuid)
) STRICT, WITHOUT ROWID;
CREATE INDEX heads_by_seq ON heads (space, seq);
CREATE UNIQUE INDEX heads_by_slug ON heads (space, slug) WHERE slug <> '';

CREATE TABLE proposals (
    space          TEXT NOT NULL REFERENCES spaces (id),
    id             INTEGER NOT NULL,
    uuid           TEXT NOT NULL,
    base           INTEGER NOT NULL,
    hash           TEXT NOT NULL,
    slug           TEXT NOT NULL,
    deleted        INTEGER NOT NULL,
    additions_only INTEGER NOT NULL,
    person         TEXT NOT NULL,
    agent          TEXT NOT NULL,
    device         TEXT NOT NULL,
    at             TEXT NOT NULL,
    decision       TEXT NOT NULL,
    decided_by     TEXT NOT NULL,
    bundle         BLOB NOT NULL,
    PRIMARY KEY (space, id)
) STRICT;
CREATE INDEX proposals_of_page ON proposals (space, uuid);

CREATE TABLE acknowledgements (
    space  TEXT NOT NULL REFERENCES spaces (id),
    device TEXT NOT NULL REFERENCES devices (id),
    seq    INTEGER NOT NULL,
    PRIMARY KEY (space, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE vectors (
    space  TEXT NOT NULL REFERENCES spaces (id),
    model  TEXT NOT NULL,
    hash   BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (space, model, hash)
) STRICT, WITHOUT ROWID;

-- `space` is '' for actions on people and devices. Each space has a chain of hashes.
CREATE TABLE audit (
    space   TEXT NOT NULL,
    number  INTEGER NOT NULL,
    at      TEXT NOT NULL,
    person  TEXT NOT NULL,
    agent   TEXT NOT NULL,
    device  TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    hash    TEXT NOT NULL,
    PRIMARY KEY (space, number)
) STRICT, WITHOUT ROWID;
