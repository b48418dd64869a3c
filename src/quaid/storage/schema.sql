-- The tables of a memory, schema version 12.
--
-- Each table is marked "kept" or "derived". Rows of kept tables exist nowhere else; rows of derived tables can
-- be deleted and rebuilt from kept rows or files. Times are UTC, as in 2026-04-25T12:00:00Z; dates are as in
-- 2026-04-25. The schema never reads the clock: the program passes the time of each row. Short columns come
-- before long texts, so that listings do not read the overflow pages that hold the texts.

-- kept: the user's collections (sets of documents) and their folders
CREATE TABLE collections (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,                   -- the part before '::' in an address
    kind TEXT NOT NULL DEFAULT 'pages',          -- pages or shared (both only in this file), markdown, notebook or kb
    root_path TEXT,                              -- the folder; NULL if the pages are only in this file
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'detached', 'restoring')),
    writable INTEGER NOT NULL DEFAULT 1 CHECK (writable IN (0, 1)),
    is_write_target INTEGER NOT NULL DEFAULT 0 CHECK (is_write_target IN (0, 1)),   -- gets new pages
    ignore_patterns TEXT NOT NULL DEFAULT '',    -- the last valid ignore patterns, in gitignore syntax
    ignore_problem TEXT,                         -- why the current ignore file is not used
    watcher_released_at TEXT,                    -- when the watcher released the folder for a restore
    reconcile_halted_at TEXT,                    -- when syncing stopped until a person decides
    reconcile_halt_reason TEXT,
    last_sync_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX collections_write_target ON collections (is_write_target) WHERE is_write_target = 1;

-- kept: the pages; pages of a folder can also be read again from their files
CREATE TABLE pages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection_id INTEGER NOT NULL DEFAULT 1 REFERENCES collections (id),
    slug TEXT NOT NULL,
    uuid TEXT NOT NULL UNIQUE,                   -- UUIDv7; stays when the slug changes
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    summary TEXT NOT NULL DEFAULT '',            -- first blockquote, else first paragraph
    wing TEXT NOT NULL DEFAULT '',               -- top-level category
    room TEXT NOT NULL DEFAULT '',               -- topic within the wing
    version INTEGER NOT NULL DEFAULT 1,          -- incremented by every write
    quarantined_at TEXT,                         -- if set, hidden until it is restored or discarded
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,                    -- last change of the page or of its related rows
    truth_updated_at TEXT NOT NULL,              -- last change of compiled_truth
    timeline_updated_at TEXT NOT NULL,           -- last change of timeline
    frontmatter TEXT NOT NULL DEFAULT '{}',      -- all keys as JSON, in source order
    compiled_truth TEXT NOT NULL DEFAULT '',     -- markdown above the divider
    timeline TEXT NOT NULL DEFAULT '',           -- markdown below the divider
    UNIQUE (collection_id, slug)
) STRICT;

CREATE INDEX pages_by_update ON pages (updated_at) WHERE quarantined_at IS NULL;
CREATE INDEX pages_by_age ON pages (collection_id, updated_at) WHERE quarantined_at IS NULL;
CREATE INDEX pages_by_type ON pages (type, updated_at) WHERE quarantined_at IS NULL;
CREATE INDEX pages_by_wing ON pages (wing) WHERE quarantined_at IS NULL;
CREATE INDEX pages_by_filter ON pages (id, collection_id, type, wing) WHERE quarantined_at IS NULL;
CREATE INDEX pages_dated ON pages (id) WHERE quarantined_at IS NULL
    AND (instr(frontmatter, '"date"') OR slug GLOB '*[0-9][0-9][0-9][0-9]-[01][0-9]*');
CREATE INDEX pages_due ON pages (id) WHERE quarantined_at IS NULL AND instr(frontmatter, '"due"');

-- The content of the full-text index. FTS5 rebuilds and checks the index against this view.
CREATE VIEW searchable_pages AS
SELECT id, title, slug, compiled_truth, timeline FROM pages WHERE quarantined_at IS NULL;

-- derived: from the pages that are not quarantined, by the triggers below
CREATE VIRTUAL TABLE page_fts USING fts5 (
    title, slug, compiled_truth, timeline,
    content = 'searchable_pages', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- derived: from pages in scripts without spaces between words; the text is segmented before it is stored
CREATE VIRTUAL TABLE page_fts_unspaced USING fts5 (
    title, body,
    content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

CREATE TRIGGER pages_ai AFTER INSERT ON pages WHEN new.quarantined_at IS NULL BEGIN
    INSERT INTO page_fts (rowid, title, slug, compiled_truth, timeline)
    VALUES (new.id, new.title, new.slug, new.compiled_truth, new.timeline);
END;

CREATE TRIGGER pages_ad AFTER DELETE ON pages BEGIN
    INSERT INTO page_fts (page_fts, rowid, title, slug, compiled_truth, timeline)
    SELECT 'delete', old.id, old.title, old.slug, old.compiled_truth, old.timeline
    WHERE old.quarantined_at IS NULL;
    DELETE FROM page_fts_unspaced WHERE rowid = old.id;
END;

CREATE TRIGGER pages_au AFTER UPDATE OF title, slug, compiled_truth, timeline, quarantined_at ON pages
WHEN new.title IS NOT old.title OR new.slug IS NOT old.slug OR new.compiled_truth IS NOT old.compiled_truth
    OR new.timeline IS NOT old.timeline OR (new.quarantined_at IS NULL) IS NOT (old.quarantined_at IS NULL)
BEGIN
    INSERT INTO page_fts (page_fts, rowid, title, slug, compiled_truth, timeline)
    SELECT 'delete', old.id, old.title, old.slug, old.compiled_truth, old.timeline
    WHERE old.quarantined_at IS NULL;
    INSERT INTO page_fts (rowid, title, slug, compiled_truth, timeline)
    SELECT new.id, new.title, new.slug, new.compiled_truth, new.timeline
    WHERE new.quarantined_at IS NULL;
    DELETE FROM page_fts_unspaced WHERE rowid = old.id AND new.quarantined_at IS NOT NULL;
END;

-- derived: from pages.frontmatter and the page's text
CREATE TABLE tags (
    id INTEGER PRIMARY KEY,                      -- the order of the tags in the page
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    UNIQUE (page_id, tag)
) STRICT;

CREATE INDEX tags_by_tag ON tags (tag, page_id);

-- derived: from titles, slugs, front matter and redirects: the names of a page, folded (case, accents)
CREATE TABLE page_names (
    name TEXT NOT NULL,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('title', 'slug', 'alias', 'name')),   -- name: the last part of the slug
    PRIMARY KEY (name, page_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX page_names_by_page ON page_names (page_id);

-- derived: from pages.timeline
CREATE TABLE timeline_entries (
    id INTEGER PRIMARY KEY,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    date TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    summary TEXT NOT NULL,
    summary_hash TEXT NOT NULL,                  -- SHA-256 of the summary; a repeated entry is one row
    detail TEXT NOT NULL DEFAULT '',
    line INTEGER NOT NULL,                       -- first line within the timeline, from 1
    UNIQUE (page_id, date, summary_hash)
) STRICT;

CREATE INDEX timeline_entries_by_date ON timeline_entries (date);

-- derived: from the front matter and the lines of visible pages: when they expire
CREATE TABLE expirations (
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('page', 'line')),
    expires_at TEXT NOT NULL,                    -- a day, a time, or 'never' for a page without retention
    PRIMARY KEY (page_id, kind, expires_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX expirations_by_time ON expirations (expires_at);

-- kept: expired pages, lines and facts, which are hidden until they are erased or kept
CREATE TABLE expired (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('page', 'line', 'fact')),
    reason TEXT NOT NULL,                        -- the day or time at which it expired, or a retention setting
    hidden_at TEXT NOT NULL,                     -- the grace period begins
    part TEXT CHECK (part IN ('truth', 'timeline')),   -- of a line
    line INTEGER,                                -- its number within that part, from 1
    text TEXT NOT NULL DEFAULT '',               -- the line, or the fact in words; '' for a page
    data TEXT NOT NULL DEFAULT ''                -- the row of a fact, as JSON
) STRICT;

CREATE INDEX expired_by_page ON expired (page_id, kind);

CREATE TRIGGER pages_shown AFTER UPDATE OF quarantined_at ON pages WHEN new.quarantined_at IS NULL BEGIN
    DELETE FROM expired WHERE page_id = new.id AND kind = 'page';
END;

-- derived: from the texts of visible pages, split as config.chunk_strategy says
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,        -- a chunk with other content gets another id
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    chunk_index INTEGER NOT NULL,                -- position within the page, from 0
    chunk_type TEXT NOT NULL CHECK (chunk_type IN ('truth_section', 'timeline_entry')),
    content_hash BLOB NOT NULL,                  -- first 16 bytes of the SHA-256 of title, headings and text
    token_count INTEGER NOT NULL,                -- estimated
    start_line INTEGER NOT NULL,                 -- within compiled_truth or timeline, from 1
    end_line INTEGER NOT NULL,
    date TEXT,                                   -- of a timeline entry
    heading_path TEXT NOT NULL,                  -- headings above the chunk, as in '# A > ## B'
    chunk_text TEXT NOT NULL
) STRICT;

CREATE INDEX chunks_by_page ON chunks (page_id, chunk_index, content_hash);
CREATE INDEX chunks_by_content ON chunks (content_hash);
CREATE INDEX chunks_by_date ON chunks (date) WHERE date IS NOT NULL;

-- derived: from chunks that mainly consist of list entries, table rows and single sentences, embedded one by one
CREATE TABLE chunk_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,        -- ids only increase, so that checked ranges stay complete
    chunk_id INTEGER NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    start_at INTEGER NOT NULL,                   -- offset in characters within chunk_text
    end_at INTEGER NOT NULL,
    content_hash BLOB NOT NULL                   -- first 16 bytes of the SHA-256 of title, headings and text
) STRICT;

CREATE INDEX chunk_entries_by_chunk ON chunk_entries (chunk_id, content_hash);
CREATE INDEX chunk_entries_by_content ON chunk_entries (content_hash, chunk_id);

-- derived: from chunks; text in scripts without spaces is segmented before it is stored
CREATE VIRTUAL TABLE chunk_fts USING fts5 (
    title, heading_path, chunk_text,
    content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
    DELETE FROM chunk_fts WHERE rowid = old.id;
END;

CREATE TRIGGER pages_hidden AFTER UPDATE OF quarantined_at ON pages WHEN new.quarantined_at IS NOT NULL BEGIN
    DELETE FROM chunks WHERE page_id = old.id;
    DELETE FROM expirations WHERE page_id = old.id;
END;

-- kept: the embedding models that the user has selected
CREATE TABLE embedding_models (
    name TEXT PRIMARY KEY NOT NULL,
    dimensions INTEGER NOT NULL CHECK (dimensions > 0),
    vec_table TEXT NOT NULL,                     -- table with the vectors; one for each number of dimensions
    active INTEGER NOT NULL DEFAULT 0 CHECK (active IN (0, 1)),
    created_at TEXT NOT NULL,
    encoding INTEGER NOT NULL DEFAULT 0,         -- incremented when all codes are recomputed
    mean_of INTEGER NOT NULL DEFAULT 0,          -- number of vectors in the mean
    mean BLOB                                    -- 32-bit floats; NULL if there are too few vectors
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX embedding_models_one_active ON embedding_models (active) WHERE active = 1;

-- The settings embedding_model and embedding_dimensions repeat the active row.
CREATE TRIGGER embedding_models_ai AFTER INSERT ON embedding_models WHEN new.active = 1 BEGIN
    INSERT OR REPLACE INTO config (key, value)
    VALUES ('embedding_model', new.name), ('embedding_dimensions', CAST(new.dimensions AS TEXT));
END;

CREATE TRIGGER embedding_models_au AFTER UPDATE OF active ON embedding_models WHEN new.active = 1 BEGIN
    INSERT OR REPLACE INTO config (key, value)
    VALUES ('embedding_model', new.name), ('embedding_dimensions', CAST(new.dimensions AS TEXT));
END;

-- derived: vectors of chunks and their entries with 384 dimensions; other tables are created when needed
CREATE TABLE page_embeddings_vec_384 (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model TEXT NOT NULL REFERENCES embedding_models (name),
    content_hash BLOB NOT NULL,                  -- of a chunk; the vector is kept if the chunk is deleted
    embedded_at TEXT NOT NULL,
    vector BLOB NOT NULL,                        -- 16-bit floats, normalised
    UNIQUE (content_hash, model)
) STRICT;

-- derived: from the vectors: one bit for each component, set if it is above the model's mean
CREATE TABLE vector_codes (
    model TEXT NOT NULL REFERENCES embedding_models (name),
    block INTEGER NOT NULL,
    vec_rowids BLOB NOT NULL,                    -- up to 1,024 ids in vec_table, 64 bits each
    codes BLOB NOT NULL,                         -- their codes, concatenated
    PRIMARY KEY (model, block)
) STRICT;

-- The chunks with vectors, by model. Recreated when a table of vectors is added.
CREATE VIEW page_embeddings AS
SELECT c.id, c.page_id, v.model, v.id AS vec_rowid, c.chunk_type, c.chunk_index, c.chunk_text, c.content_hash,
    c.token_count, c.heading_path, v.embedded_at AS last_embedded_at
FROM chunks c JOIN page_embeddings_vec_384 v ON v.content_hash = c.content_hash;

-- kept: links added by a person or an agent; rows with source_kind wiki_link are derived from page text
CREATE TABLE links (
    id INTEGER PRIMARY KEY AUTOINCREMENT,        -- identifies the link when it is closed
    from_page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    to_page_id INTEGER REFERENCES pages (id) ON DELETE CASCADE,   -- NULL if the text names a missing page
    relationship TEXT NOT NULL DEFAULT 'related',
    context TEXT NOT NULL DEFAULT '',
    source_kind TEXT NOT NULL DEFAULT 'programmatic' CHECK (source_kind IN ('wiki_link', 'programmatic')),
    valid_from TEXT,                             -- NULL if unknown
    valid_until TEXT,                            -- first day on which it no longer holds; NULL if it holds
    created_at TEXT NOT NULL,
    target TEXT,                                 -- the target as written; a leading '/' means a path only
    target_key TEXT,                             -- the target, folded as in page_names
    part TEXT CHECK (part IN ('truth', 'timeline', 'frontmatter')),   -- the part with the link
    line INTEGER,                                -- line within that part, from 1
    trust INTEGER NOT NULL DEFAULT 0,            -- trust class of an added link, as in page_trust
    CHECK (valid_from IS NULL OR valid_until IS NULL OR valid_until >= valid_from),
    CHECK ((source_kind = 'wiki_link') = (target_key IS NOT NULL)),
    CHECK (to_page_id IS NOT NULL OR source_kind = 'wiki_link')
) STRICT;

CREATE INDEX links_from ON links (from_page_id, to_page_id);
CREATE INDEX links_to ON links (to_page_id);
CREATE INDEX links_by_target ON links (target_key) WHERE target_key IS NOT NULL;
CREATE INDEX links_begun ON links (valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX links_ended ON links (valid_until) WHERE valid_until IS NOT NULL;

-- kept: former slugs of pages that were renamed or merged
CREATE TABLE redirects (
    collection_id INTEGER NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    slug TEXT NOT NULL,                          -- the former slug
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    created_at TEXT NOT NULL,
    PRIMARY KEY (collection_id, slug)
) STRICT, WITHOUT ROWID;

CREATE INDEX redirects_by_page ON redirects (page_id);

-- kept: facts with validity interval and source
CREATE TABLE assertions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    subject_key TEXT NOT NULL,                   -- the subject, folded as in page_names
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    valid_from TEXT,
    valid_until TEXT,                            -- first day on which it no longer holds; NULL if it holds
    supersedes_id INTEGER REFERENCES assertions (id) ON DELETE SET NULL,
    confidence REAL NOT NULL DEFAULT 1.0,
    asserted_by TEXT NOT NULL DEFAULT 'agent'
        CHECK (asserted_by IN ('agent', 'manual', 'import', 'enrichment')),
    source_ref TEXT NOT NULL DEFAULT '',
    evidence_text TEXT NOT NULL DEFAULT '',      -- the words of the source
    created_at TEXT NOT NULL,
    author TEXT NOT NULL DEFAULT '',             -- client name, 'owner' or 'import'; '' before schema 9
    trust INTEGER NOT NULL DEFAULT 0,            -- trust class, as in page_trust
    CHECK (valid_from IS NULL OR valid_until IS NULL OR valid_until >= valid_from)
) STRICT;

CREATE INDEX assertions_by_page ON assertions (page_id);
CREATE INDEX assertions_by_subject ON assertions (subject_key, predicate);
CREATE INDEX assertions_superseded ON assertions (supersedes_id) WHERE supersedes_id IS NOT NULL;
CREATE INDEX assertions_begun ON assertions (valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX assertions_ended ON assertions (valid_until) WHERE valid_until IS NOT NULL;

-- kept: when facts expire, that is, are forgotten; valid_until says when they stop being true
CREATE TABLE fact_expirations (
    fact_id INTEGER PRIMARY KEY REFERENCES assertions (id) ON DELETE CASCADE,
    expires_at TEXT NOT NULL                     -- a day or a time
) STRICT;

CREATE INDEX fact_expirations_by_time ON fact_expirations (expires_at);

-- kept: data of other services about a page; one row for each source
CREATE TABLE raw_data (
    id INTEGER PRIMARY KEY,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    fetched_at TEXT NOT NULL,
    data TEXT NOT NULL,                          -- JSON
    UNIQUE (page_id, source)
) STRICT;

-- kept: one row for each import
CREATE TABLE import_manifest (
    import_id TEXT PRIMARY KEY NOT NULL,
    source_dir TEXT NOT NULL,
    page_count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- kept: the bytes of imported files and of page versions; changed only to erase lines
CREATE TABLE raw_imports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection_id INTEGER NOT NULL DEFAULT 1 REFERENCES collections (id),
    page_id INTEGER REFERENCES pages (id) ON DELETE CASCADE,   -- NULL for a file without a page
    page_version INTEGER,                        -- version of the page with this content
    import_id TEXT NOT NULL,                     -- the import, or 'sync-' or 'edit-' with an id
    is_active INTEGER NOT NULL DEFAULT 1 CHECK (is_active IN (0, 1)),   -- 1 for the newest row of a path and page
    content_hash TEXT NOT NULL,                  -- SHA-256 of raw_bytes
    file_path TEXT NOT NULL,                     -- relative to the imported folder
    created_at TEXT NOT NULL,
    raw_bytes BLOB NOT NULL,
    UNIQUE (import_id, file_path)
) STRICT;

CREATE INDEX raw_imports_by_page ON raw_imports (page_id) WHERE page_id IS NOT NULL;
CREATE UNIQUE INDEX raw_imports_active_page ON raw_imports (page_id) WHERE is_active = 1 AND page_id IS NOT NULL;
CREATE UNIQUE INDEX raw_imports_active_path ON raw_imports (collection_id, file_path) WHERE is_active = 1;

-- kept: authors of page versions, except versions read from files or imports and versions before schema 9
CREATE TABLE page_authors (
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,                    -- first version with this text
    author TEXT NOT NULL,                        -- client name, 'owner', or the name of a member of a space
    source TEXT NOT NULL DEFAULT '',             -- source of an ingested text, as in meeting/123
    agent TEXT NOT NULL DEFAULT '',              -- the program that wrote it; '' for a person
    device TEXT NOT NULL DEFAULT '',             -- where it was written; '' before schema 11
    base_version INTEGER,                        -- the version that the author changed; 0 for a new page
    trust INTEGER NOT NULL DEFAULT 0,            -- trust class of its new lines, as in page_trust
    PRIMARY KEY (page_id, version)
) STRICT, WITHOUT ROWID;

-- Trust classes: 0 person, 1 observed, 2 imported, 3 derived (by an agent), 4 web.
-- kept: the trust classes of pages; a page without a row was written by the person alone
CREATE TABLE page_trust (
    page_id INTEGER PRIMARY KEY REFERENCES pages (id) ON DELETE CASCADE,
    trust INTEGER NOT NULL CHECK (trust BETWEEN 0 AND 4),   -- class of all lines that are not in lines
    highest INTEGER NOT NULL,                    -- the most trusted class of a line (the lowest number)
    lowest INTEGER NOT NULL,                     -- the least trusted class of a line
    lines BLOB NOT NULL DEFAULT x''              -- other lines: 8 bytes of the hash of each, and 1 byte with its class
) STRICT;

-- kept: writes proposed by agents and by `quaid dream`, for review by a person; a decision clears their texts
CREATE TABLE proposals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    author TEXT NOT NULL,                        -- client name, or 'dream'
    tool TEXT NOT NULL,                          -- the tool that the agent called
    slug TEXT NOT NULL DEFAULT '',               -- the page or file that would change
    collection TEXT NOT NULL DEFAULT '',
    base_version INTEGER NOT NULL DEFAULT 0,     -- version of the page when it was proposed; 0 for a new page
    created_at TEXT NOT NULL,
    decided_at TEXT,                             -- NULL if open
    decision TEXT CHECK (decision IN ('accepted', 'rejected')),
    decided_by TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',               -- the person's reason
    summary TEXT NOT NULL,
    arguments TEXT NOT NULL,                     -- of the tool call, as JSON
    diff TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT '',               -- of a proposal of `quaid dream`, as in links; '' for agents
    fingerprint TEXT UNIQUE,                     -- of such a proposal; what was decided is not proposed again
    evidence TEXT NOT NULL DEFAULT '[]',         -- why it was proposed: page or source, and quote, as JSON
    scope TEXT NOT NULL DEFAULT '',              -- the part of the memory to which the agent was bound; '' for all
    CHECK ((decided_at IS NULL) = (decision IS NULL))
) STRICT;

CREATE INDEX proposals_open ON proposals (id) WHERE decided_at IS NULL;

-- kept: tool calls of agents, without their arguments; the newest 10,000 of the last 90 days
CREATE TABLE activity (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,                       -- random id of a connection
    client TEXT NOT NULL,                        -- client name
    tool TEXT NOT NULL,
    is_write INTEGER NOT NULL CHECK (is_write IN (0, 1)),
    outcome TEXT NOT NULL CHECK (outcome IN ('done', 'proposed', 'failed')),
    called_at TEXT NOT NULL,
    ms INTEGER NOT NULL,                         -- duration in milliseconds
    proposal_id INTEGER,                         -- of a call that became a proposal
    decision TEXT CHECK (decision IN ('accepted', 'undone'))   -- of a person, about a write; NULL if open
) STRICT;

CREATE INDEX activity_by_session ON activity (session, id);
CREATE INDEX activity_by_proposal ON activity (proposal_id) WHERE proposal_id IS NOT NULL;

-- kept: the pages that a tool call returned or changed
CREATE TABLE activity_pages (
    activity_id INTEGER NOT NULL REFERENCES activity (id) ON DELETE CASCADE,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    first_version INTEGER,                       -- first version with a text of this call; NULL if none changed
    last_version INTEGER,                        -- last version that this call made; NULL for a page that it read
    PRIMARY KEY (activity_id, page_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX activity_pages_by_page ON activity_pages (page_id);

-- kept: the collections that are shared through a hub; tokens and keys are in a file beside this one
CREATE TABLE spaces (
    collection_id INTEGER PRIMARY KEY REFERENCES collections (id) ON DELETE CASCADE,
    hub_url TEXT NOT NULL,
    hub_id TEXT NOT NULL,                        -- tells apart two hubs with one address
    space_id TEXT NOT NULL,                      -- the id of the space on the hub
    name TEXT NOT NULL,                          -- its name on the hub
    kind TEXT NOT NULL CHECK (kind IN ('private', 'team', 'public')),
    sealed INTEGER NOT NULL CHECK (sealed IN (0, 1)),   -- 1 if its devices encrypt the pages
    member_right TEXT NOT NULL CHECK (member_right IN ('read', 'propose', 'append', 'write', 'owner')),
    person TEXT NOT NULL,                        -- the name of this member
    device TEXT NOT NULL,                        -- the id of this device on the hub
    cursor INTEGER NOT NULL DEFAULT 0,           -- all changes up to this sequence number are applied
    cursor_hash TEXT NOT NULL DEFAULT '',        -- of the change with that number; '' if unknown
    acknowledged INTEGER NOT NULL DEFAULT -1,    -- the sequence number that the hub knows to be applied
    vectors_sent INTEGER NOT NULL DEFAULT 0,     -- vectors up to this row id were offered to the hub
    joined_at TEXT NOT NULL,
    synced_at TEXT,                              -- last successful sync
    problem TEXT,                                -- why the last sync failed
    UNIQUE (hub_id, space_id)
) STRICT;

-- kept: the last revision of each shared page that this device and the hub have in common
CREATE TABLE space_pages (
    id INTEGER PRIMARY KEY,
    collection_id INTEGER NOT NULL REFERENCES spaces (collection_id) ON DELETE CASCADE,
    uuid TEXT NOT NULL,
    page_id INTEGER,                             -- NULL if the page is not in this memory
    revision INTEGER NOT NULL,                   -- the number of the revision on the hub
    hash TEXT NOT NULL,                          -- SHA-256 of its bundle as stored on the hub
    local_hash TEXT NOT NULL,                    -- the page with this hash has nothing to push
    deleted INTEGER NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
    has_open_links INTEGER NOT NULL DEFAULT 0 CHECK (has_open_links IN (0, 1)),   -- a target is not here yet
    base BLOB NOT NULL,                          -- its bundle, compressed: the common ancestor for merges
    UNIQUE (collection_id, uuid)
) STRICT;

CREATE INDEX space_pages_by_page ON space_pages (page_id) WHERE page_id IS NOT NULL;
CREATE INDEX space_pages_open ON space_pages (collection_id) WHERE has_open_links = 1;

-- kept: shared pages that changed here and are not pushed yet, and erasures that the hub does not know yet
CREATE TABLE space_outbox (
    collection_id INTEGER NOT NULL REFERENCES spaces (collection_id) ON DELETE CASCADE,
    uuid TEXT NOT NULL,
    changes INTEGER NOT NULL DEFAULT 1,          -- incremented by each change, so that a push clears only its own
    state TEXT NOT NULL DEFAULT 'changed'
        CHECK (state IN ('changed', 'purge', 'proposed', 'denied', 'invalid', 'blocked')),
    problem TEXT NOT NULL DEFAULT '',            -- why it is not pushed, or why a change of the hub is not applied
    PRIMARY KEY (collection_id, uuid)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pages_shared_ai AFTER INSERT ON pages
WHEN new.collection_id IN (SELECT collection_id FROM spaces) BEGIN
    INSERT INTO space_outbox (collection_id, uuid) VALUES (new.collection_id, new.uuid)
    ON CONFLICT DO UPDATE SET changes = changes + 1, state = 'changed', problem = '' WHERE state <> 'purge';
END;

CREATE TRIGGER pages_shared_au AFTER UPDATE OF slug, version, quarantined_at ON pages
WHEN new.collection_id IN (SELECT collection_id FROM spaces) BEGIN
    INSERT INTO space_outbox (collection_id, uuid) VALUES (new.collection_id, new.uuid)
    ON CONFLICT DO UPDATE SET changes = changes + 1, state = 'changed', problem = '' WHERE state <> 'purge';
END;

CREATE TRIGGER pages_shared_ad AFTER DELETE ON pages
WHEN old.collection_id IN (SELECT collection_id FROM spaces) BEGIN
    INSERT INTO space_outbox (collection_id, uuid) VALUES (old.collection_id, old.uuid)
    ON CONFLICT DO UPDATE SET changes = changes + 1, state = 'changed', problem = '' WHERE state <> 'purge';
END;

-- kept: the files of each import; for an unchanged file, the row of an earlier import
CREATE TABLE import_files (
    import_id TEXT NOT NULL REFERENCES import_manifest (import_id) ON DELETE CASCADE,
    file_path TEXT NOT NULL,
    raw_id INTEGER NOT NULL REFERENCES raw_imports (id) ON DELETE CASCADE,
    PRIMARY KEY (import_id, file_path)
) STRICT, WITHOUT ROWID;

CREATE INDEX import_files_by_raw ON import_files (raw_id);

-- kept: which content was imported or ingested, from where and when
CREATE TABLE ingest_log (
    id INTEGER PRIMARY KEY,
    import_id TEXT,                              -- NULL for a single file
    source_ref TEXT NOT NULL,
    content_hash TEXT NOT NULL,                  -- SHA-256 of the bytes
    pages_updated TEXT NOT NULL DEFAULT '[]',    -- ids of pages, as JSON
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX ingest_log_by_content ON ingest_log (content_hash);

-- derived: from the files of a folder, so that unchanged files need not be read
CREATE TABLE file_state (
    collection_id INTEGER NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    relative_path TEXT NOT NULL,
    path_key TEXT NOT NULL,                      -- NFC, case-folded: equal on all systems
    page_id INTEGER REFERENCES pages (id) ON DELETE SET NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    content_hash TEXT NOT NULL,
    problem TEXT,                                -- why the file has no page
    seen_at TEXT NOT NULL,
    PRIMARY KEY (collection_id, relative_path)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_state_by_page ON file_state (page_id) WHERE page_id IS NOT NULL;

-- kept: pages made from headings in the file of another page, by the id of the heading
CREATE TABLE file_nodes (
    page_id INTEGER PRIMARY KEY REFERENCES pages (id) ON DELETE CASCADE,
    file_page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,   -- the page of the file
    collection_id INTEGER NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,                       -- the id of the heading
    UNIQUE (collection_id, node_id)
) STRICT;

CREATE INDEX file_nodes_by_file ON file_nodes (file_page_id);

-- kept: contradictions, because a person may have resolved them
CREATE TABLE contradictions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    other_page_id INTEGER REFERENCES pages (id) ON DELETE SET NULL,
    type TEXT NOT NULL,                          -- temporal, cross_page or stale
    fingerprint TEXT UNIQUE,                     -- identifies the same finding in later checks
    description TEXT NOT NULL,
    evidence TEXT NOT NULL DEFAULT '[]',         -- both quotes with page and line, as JSON
    detected_at TEXT NOT NULL,
    resolved_at TEXT,                            -- NULL if open
    resolution TEXT NOT NULL DEFAULT ''          -- note of the person who resolved it
) STRICT;

CREATE INDEX contradictions_by_page ON contradictions (page_id);

-- kept: questions without an answer; their words are stored only encrypted or after approval
CREATE TABLE knowledge_gaps (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    query_hash TEXT NOT NULL,                    -- SHA-256 of the question
    query_text TEXT,
    context TEXT NOT NULL DEFAULT '',
    confidence_score REAL,                       -- of the best answer
    sensitivity TEXT NOT NULL DEFAULT 'internal' CHECK (sensitivity IN ('internal', 'external', 'redacted')),
    approved_by TEXT,
    approved_at TEXT,
    redacted_query TEXT,
    resolved_at TEXT,                            -- NULL if open
    resolved_by_slug TEXT,
    times_seen INTEGER NOT NULL DEFAULT 1,
    detected_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    sealed_query BLOB,                           -- the question, encrypted; the key is in a file beside this one
    scope TEXT NOT NULL DEFAULT '',              -- the part of the memory to which the caller was bound; '' for all
    CHECK (sealed_query IS NULL OR resolved_at IS NULL),
    CHECK (query_text IS NULL OR (approved_by IS NOT NULL AND approved_at IS NOT NULL)),
    CHECK (sensitivity = 'internal' OR (approved_by IS NOT NULL AND approved_at IS NOT NULL))
) STRICT;

-- A repeated question increments the existing gap.
CREATE UNIQUE INDEX knowledge_gaps_open ON knowledge_gaps (query_hash, scope) WHERE resolved_at IS NULL;
CREATE INDEX knowledge_gaps_told ON knowledge_gaps (times_seen) WHERE query_text IS NOT NULL AND resolved_at IS NULL;

-- kept: questions that certain pages have to answer, as a person said
CREATE TABLE golden_questions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    question TEXT NOT NULL UNIQUE,
    within INTEGER NOT NULL,                     -- the pages must be among this many first results
    expected INTEGER NOT NULL,                   -- number of pages that were named; some may be gone
    created_at TEXT NOT NULL
) STRICT;

-- kept: the pages that a golden question expects
CREATE TABLE golden_pages (
    question_id INTEGER NOT NULL REFERENCES golden_questions (id) ON DELETE CASCADE,
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    PRIMARY KEY (question_id, page_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX golden_pages_by_page ON golden_pages (page_id);

-- kept: pages that the owner opened from the results of a question; empty unless the setting log_opened is words
CREATE TABLE opened_results (
    query_hash TEXT NOT NULL,                    -- SHA-256 of the question
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    sealed_query BLOB NOT NULL,                  -- the question, encrypted; the key is in a file beside this one
    times INTEGER NOT NULL DEFAULT 1,
    last_at TEXT NOT NULL,
    PRIMARY KEY (query_hash, page_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX opened_results_by_page ON opened_results (page_id);

-- kept: pairs of similar pages, as the last comparison of all pages found them
CREATE TABLE duplicate_pairs (
    page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    other_page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
    page_version INTEGER NOT NULL,               -- a pair with a page that has changed since is not listed
    other_version INTEGER NOT NULL,
    likeness REAL,                               -- share of common text; NULL if only the names are equal
    why TEXT NOT NULL,                           -- reasons as JSON
    PRIMARY KEY (page_id, other_page_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX duplicate_pairs_by_other ON duplicate_pairs (other_page_id);

-- kept: exports of quarantined pages
CREATE TABLE quarantine_exports (
    id INTEGER PRIMARY KEY,
    page_id INTEGER NOT NULL,                    -- the page may have been deleted since
    collection_id INTEGER NOT NULL,
    slug TEXT NOT NULL,
    quarantined_at TEXT NOT NULL,
    exported_at TEXT NOT NULL,
    path TEXT NOT NULL,
    UNIQUE (page_id, quarantined_at)
) STRICT;

-- kept: conversations with agents, because clients delete transcripts after some weeks
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    client TEXT NOT NULL,                        -- claude-code, codex, plain, chatgpt, claude.ai or a framework
    session TEXT NOT NULL,                       -- the client's name for it
    started_at TEXT,                             -- of the first turn with a time
    ended_at TEXT,
    added_at TEXT NOT NULL,
    removed_at TEXT,                             -- if set, removed by a person and not imported again
    masked INTEGER NOT NULL DEFAULT 0,           -- number of secrets masked in its texts
    project TEXT NOT NULL DEFAULT '',            -- working folder
    title TEXT NOT NULL DEFAULT '',
    UNIQUE (client, session)
) STRICT;

CREATE INDEX conversations_by_end ON conversations (ended_at) WHERE removed_at IS NULL;

-- kept: turns of conversations, secrets masked
CREATE TABLE conversation_turns (
    id INTEGER PRIMARY KEY,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    turn INTEGER NOT NULL,                       -- position within the conversation, from 1
    role TEXT NOT NULL,                          -- user, assistant or a name
    said_at TEXT,
    identity BLOB NOT NULL,                      -- identifies the turn when it is read again
    text TEXT NOT NULL,
    UNIQUE (conversation_id, turn),
    UNIQUE (conversation_id, identity)
) STRICT;

-- kept: the items of agent frameworks that turns were made from, such as calls of tools, secrets masked
CREATE TABLE session_items (
    turn_id INTEGER PRIMARY KEY REFERENCES conversation_turns (id) ON DELETE CASCADE,
    item TEXT NOT NULL                           -- JSON
) STRICT;

-- derived: from conversation_turns; text in scripts without spaces is segmented before it is stored
CREATE VIRTUAL TABLE turn_fts USING fts5 (
    text,
    content = '', contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

CREATE TRIGGER conversation_turns_ad AFTER DELETE ON conversation_turns BEGIN
    DELETE FROM turn_fts WHERE rowid = old.id;
END;

-- derived: from conversation_turns: the parts that are embedded; very short turns have none
CREATE TABLE turn_parts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,        -- ids only increase, so that checked ranges stay complete
    turn_id INTEGER NOT NULL REFERENCES conversation_turns (id) ON DELETE CASCADE,
    part INTEGER NOT NULL,                       -- position within the turn, from 0
    start_at INTEGER NOT NULL,                   -- offset in characters
    end_at INTEGER NOT NULL,
    content_hash BLOB NOT NULL,                  -- first 16 bytes of the SHA-256 of the text
    UNIQUE (turn_id, part)
) STRICT;

CREATE INDEX turn_parts_by_content ON turn_parts (content_hash);

-- derived: from turn_parts; separate from the vectors of pages, which are scanned completely
CREATE TABLE turn_vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model TEXT NOT NULL REFERENCES embedding_models (name),
    content_hash BLOB NOT NULL,                  -- of a part; repeated text is embedded once
    embedded_at TEXT NOT NULL,
    vector BLOB NOT NULL,                        -- 16-bit floats, normalised
    UNIQUE (content_hash, model)
) STRICT;

-- derived: from turn_vectors: one bit for each component, set if it is above the mean
CREATE TABLE turn_codes (
    model TEXT NOT NULL REFERENCES embedding_models (name),
    block INTEGER NOT NULL,
    vec_rowids BLOB NOT NULL,                    -- up to 1,024 ids in turn_vectors, 64 bits each
    codes BLOB NOT NULL,                         -- their codes, concatenated
    PRIMARY KEY (model, block)
) STRICT;

-- derived: from turn_vectors: the mean used for their codes
CREATE TABLE turn_encodings (
    model TEXT PRIMARY KEY NOT NULL REFERENCES embedding_models (name),
    encoding INTEGER NOT NULL DEFAULT 0,         -- incremented when all codes are recomputed
    mean_of INTEGER NOT NULL DEFAULT 0,          -- number of vectors in the mean
    mean BLOB                                    -- 32-bit floats; NULL if there are too few vectors
) STRICT, WITHOUT ROWID;

-- derived: from transcripts on disk: how far each was read; without it they are read again, without duplicates
CREATE TABLE transcript_files (
    path TEXT PRIMARY KEY NOT NULL,
    client TEXT NOT NULL,                        -- the client that writes it; '' if unknown
    session TEXT NOT NULL DEFAULT '',            -- of the last line read
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    read_to INTEGER NOT NULL,                    -- number of bytes processed
    mark BLOB NOT NULL,                          -- hash of the first and last of these bytes
    broken_lines INTEGER NOT NULL DEFAULT 0,
    problem TEXT,                                -- why it could not be read completely
    read_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX transcript_files_by_inode ON transcript_files (inode);

-- kept: properties of this file; not settings
CREATE TABLE quaid_config (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- kept: user settings
CREATE TABLE config (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO config (key, value) VALUES
    ('version', '12'),
    ('chunk_strategy', 'section'),
    ('search_merge_strategy', 'sum'),
    ('default_token_budget', '1500');

INSERT INTO quaid_config (key, value) VALUES ('schema_version', '12');

-- Numbers in the file header. user_version is authoritative; the two rows above repeat it for readers.
PRAGMA application_id = 0x51414944;
PRAGMA user_version = 12;
