# Completion of quaid and ai-kb in bash. Made by `quaid completion bash` from the register of commands.
# To use it: quaid completion bash > ~/.local/share/bash-completion/completions/quaid

# Lines of word, kind, help: what may follow the command $1.
_quaid_table() {
    case $1 in
    '') printf '%s\n' 'help	@command	Help on a command.
init	@command	Create a memory
edit	@command	Edit a page in $VISUAL or $EDITOR
serve	@command	Serve the memory to an agent over MCP: on stdio, or (--http) to many, with the browser'\''s pages
web	@command	Open the memory in a browser
open	@command	Open a page in the browser, or the first page of the dashboard; starts `quaid web` if it is not running
hub	@command	Run a hub, which stores spaces that several devices and people share
watch	@command	Sync attached folders as their files change, until Ctrl-C; quaid serve does the same
hook	@command	Answer a hook event of Claude Code: JSON in, JSON out; `quaid connect claude-code` sets it up
call	@command	Call one tool with JSON, as an agent would
pipe	@command	Answer tool calls line by line: {"tool": NAME, "arguments": {...}} in, results out
completion	@command	Print a completion script for a shell: commands, options and slugs
demo	@command	Create a sample memory in a separate folder, and walk through ten questions
version	@command	Show versions and where the memory is
--tools-json	-	Print the tools as MCP lists them
get	@command	Read pages: current truth, timeline, front matter, and the version to send with a change
list	@command	List pages, newest first or by title
tags	@command	List the tags of a page
timeline	@command	Show the dated entries of a page, newest first
put	@command	Write a page of your own, about a person, project or idea: whole (FILE) or in parts
tag	@command	Add a tag to a page, or remove one
untag	@command	The same as tag --remove
timeline-add	@command	Add a dated entry to a page'\''s timeline
raw	@command	Read the raw data stored with a page, or (with --source and --data) replace the data of one source
history	@command	List the stored versions of a page: the last 10 within 90 days
blame	@command	Show who wrote each line of a page: version, author, source, date and trust class
accept	@command	Accept a page as your own words: its lines and facts get the trust class person
revert	@command	Restore an earlier version of a page as a new version
diff	@command	Show the changes of a page as a unified diff, since its previous version, another version or a day
search	@command	Find pages by words
gaps	@command	List questions that the memory could not answer, the most frequent first
query	@command	Answer a question from pages, notebook, logs, conversations and knowledge base, within a token budget
ask	@command	Answer a question from pages, notebook, logs, conversations and knowledge base, within a token budget
glance	@command	Search pages and notebook as you type
link	@command	Link a page to another, with a relationship and an optional validity period
link-close	@command	Set the end date of a link
links	@command	List the links from a page, with ids and dates
backlinks	@command	List the links to a page, with ids and dates
unlink	@command	Remove links that were never right; use `quaid link-close` for links that have ended
graph	@command	Show the pages around a page and their links, the nearest first
path	@command	Find the shortest path of links between two pages
facts	@command	List facts, links and dated entries about a subject, with dates and sources
assert	@command	Add a fact to a page, with dates and source
check	@command	List contradictions with both quotes, or resolve one
contradictions	@command	List the open contradictions with both quotes, as `quaid check` last found them
ingest-source	@command	Store a source (meeting, mail, article, chat) as a page, and what it says about other pages, at once
ingest	@command	Ingest one file or URL as a page; each e-mail of an mbox file becomes a page
adopt-sources	@command	Create pages for sources that an earlier version stored without one, so that searches find them
attach	@command	Store an image (PNG, JPEG, GIF or WebP, up to 5 MB) and print the Markdown that shows it in a page
attachment	@command	Return an image of a page in base64
dupes	@command	Find duplicate pages: pairs with similar text or the same name
distinct	@command	Mark two pages as distinct, so that `quaid dupes` no longer lists them
merge	@command	Merge two pages: timelines, links, facts and tags are combined; the old slug redirects to the kept page
rename	@command	Rename a page
forget	@command	Erase a page: text, index, vectors, links, facts, imported bytes; then verify that nothing remains
expire	@command	Set when a page expires, or that it never does
expired	@command	List expired pages, lines and facts, which are hidden; show one, keep it, or erase it now
review	@command	List changes proposed by agents and conflicts of merged pages, and decide them
propose	@command	forget, merge
activity	@command	List what agents read and wrote, by session
dream	@command	Look for duplicates, missing links, unrecorded facts, outdated summaries and more, and propose changes
regroup	@command	Move pages to a wing: set WING in their front matter
correct	@command	Correct what is stored: "X is now Y", "that was wrong", "done"
briefing	@command	Summarize changes, to-dos, what is due, contradictions, reviews, questions, stale pages, deals and people
today	@command	Show what is due, today'\''s log, what changed since you last looked, facts that became false, and what waits
seen	@command	Mark what changed as seen, so that `quaid today` lists only later changes
tick	@command	Tick a to-do of a page or notebook file, or close a commitment or action item
days	@command	List dated items from all pages, newest first
titles	@command	Resolve names to pages as links do, and return their slugs, titles and types
wings	@command	List the wings and page types, each with its number of pages, and the collections
wing	@command	Show the pages of a wing, those with the most links first, and the links between them
map	@command	Show all pages with the links between them, those with the most links first
link-suggestions	@command	List pages whose text names another page, without a link between the two
remember	@command	Remember one thing that the user said: fact, preference, to-do, contact, standing order, shopping, pattern
recall	@command	Search the notebook and daily logs, by words and by meaning
log	@command	Add an entry to today'\''s log, under the time of day
prompt	@command	Print the context for the start of a session: all of reference, and the logs of today and yesterday
notebook	@command	List the files of the notebook
conversations	@command	List conversations with agents, the latest first
model	@command	List the models with their state
embed	@command	Create missing vectors of pages, then of conversations
embeddings	@command	Show which model is chosen, whether it can be used, and how many vectors it has
rerank	@command	Show whether results are reranked, and by what
collection	@command	List the collections with their folders and state
import	@command	Import a folder, or the export of another program; report every file
export	@command	Export all pages to a folder as Markdown or for another program (--to), or the files of one import (--raw)
imports	@command	List the imports, newest first, with the ids that `export --raw` takes
sample	@command	add, remove
merge-driver	@command	Merge three versions of a page file by parts, as a merge driver of git
git-setup	@command	Let git merge the pages of a folder by parts, with `quaid merge-driver`
share	@command	Share a collection: make a space for it on a hub and push its pages
join	@command	Join a shared space: its pages become a collection of this memory, searchable at once and offline
sync	@command	Sync shared spaces with their hubs and folders with the memory
spaces	@command	List the shared collections: hub, your right, the last sync and what waits to be pushed
members	@command	List the members of a shared space and their rights, or change one
space	@command	invite, proposals
devices	@command	List the devices of a shared space: owner, last contact, how far each has read; or revoke one
leave	@command	Stop sharing a collection here
status	@command	Show the state of the memory: pages, chunks, vectors, the model, and recommended commands
stats	@command	Count the contents of the memory
validate	@command	Check the memory, or compare an exported folder with its original
compact	@command	Remove unused vectors and merge the write-ahead log into the database file, ready to copy
backup	@command	Copy the memory into a new file, even while other processes use it
backups	@command	List the backups beside the memory and in ~/.quaid/backups, newest first
config	@command	List all settings, and where each value comes from
rebuild	@command	Rebuild the text index, tags, chunks and links; then sync every folder and make missing vectors
upgrade	@command	Show how to upgrade, or (--check --from PLACE) check for a newer version
encrypt	@command	Encrypt the memory, its backups beside it and in ~/.quaid/backups, and the images beside them
rekey	@command	Give an encrypted memory and its backups a new key, or keep the key in another place
decrypt	@command	Store the memory without encryption again, with the images beside it
golden	@command	List the golden questions with the pages that they expect
bench	@command	Measure quality and speed of the search on this memory, offline
doctor	@command	Check the installation and recommend commands
kb	@command	list, edit, query, show, backlinks, status, remember, init, clone, lint, index, commit, doctor, curate, push, capture, install-timer, sync, map, emacs-file, merge, delete, supersede, contest
instructions	@command	Print the instructions for agents that the MCP server sends: when to ask, and which tool writes what
connect	@command	Add this memory to a client'\''s settings: the MCP server and, for Claude Code, the hooks
disconnect	@command	Remove this memory from a client'\''s settings: its server, hooks and instructions, and nothing else
skills	@command	List the skills in effect, with their descriptions
daemon	@command	Show whether the service runs
token	@command	List the tokens with their scope, the part of the memory that they see, creation date, expiry and last use
login	@command	List the browsers that are logged in to the dashboard, the last used first
--version	-	versions, and where the memory is
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'init') printf '%s\n' '1	@files:db	Path of the new memory [--db, QUAID_DB or ~/.quaid/memory.db]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'edit') printf '%s\n' '1	@slugs	The page, by slug, title or alias
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'serve') printf '%s\n' '--tools	lean|core|kb|all	lean, core, seed, kb, all, or names with commas
--only	@any	Show only these collections, wing:NAME or project:NAME; nothing else exists for the caller
--http	-	Serve over HTTP at /mcp; clients need a token (quaid token create)
--port	@any	The port to listen on; 0: any free one
--bind	@any	The address to listen on; beyond this machine only with TLS
--tls-cert	@files	The file of the certificate
--tls-key	@files	The file of its key
--behind-proxy	-	TLS is terminated by a proxy in front of it
--allow-host	@any	A name under which it is reached
--host-name	@any	The name for browsers, as in localhost, if yours cannot open the random one [quaid-….localhost]
--debug	-	Enable the debug endpoints
--read-only	-	Refuse all changes, whatever the token allows
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'web') printf '%s\n' '--port	@any	The port to listen on; 0: any free one
--no-open	-	Print the link instead of opening a browser
--host-name	@any	The name for browsers, as in localhost, if yours cannot open the random one [quaid-….localhost]
--lan	-	Let phones in the same network log in, over TLS; shows a QR code
--lan-address	@any	The address of this machine there [found]
--insecure	-	With --lan: without TLS
--debug	-	Enable the debug endpoints
--read-only	-	Refuse all changes, whatever the token allows
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'open') printf '%s\n' '1	@slugs	The page, by slug, title or alias [the first page]
--port	@any	The port to listen on; 0: any free one
--no-open	-	Print the link instead of opening a browser
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'hub') printf '%s\n' '1	@files	init, serve, invite, people, spaces, devices, revoke, audit or backup
2	@files	A person (init, invite), a device (revoke), or a new file (backup)
--store	@any	A file, or postgresql://USER@HOST/DATABASE [QUAID_HUB_STORE]
--url	@any	The address of the hub in invitations [QUAID_HUB_URL, this machine]
--space	@any	Only this space: its name or id
--right	@any	read, propose, append, write or owner [write]
--agent	@any	Invite an agent of the person
--admin	-	Invite a person who may also manage people and devices
--port	@any	The port to listen on; 0: any free one
--bind	@any	The address to listen on; beyond this machine only with TLS
--tls-cert	@any	The file of the certificate
--tls-key	@any	The file of its key
--behind-proxy	-	TLS is terminated by a proxy in front of it
--allow-host	@any	A name under which it is reached
--data	@any	Keep copies of spaces in this folder, and answer searches
--verify	-	Check that the audit log is complete and unchanged
--after	@any	Only audit entries after this number
--limit	@any	The most audit entries
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'watch') printf '%s\n' '1	@collections	The collection [all]
--once	-	Sync once, print the changes, and exit
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'hook') printf '%s\n' '1	session-start|user-prompt|pre-compact|stop	session-start, user-prompt, pre-compact or stop
--client	@any	The client that runs the hook; it determines the size limit
--only	@any	Show only these collections, wing:NAME or project:NAME; nothing else exists for the caller
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'call') printf '%s\n' '1	memory_get|memory_list|memory_tags|memory_timeline|memory_put|memory_tag|memory_timeline_add|memory_raw|memory_history|memory_blame|memory_revert|memory_diff|memory_search|memory_gaps|memory_gap|memory_gap_approve|memory_gap_resolve|memory_gap_clear|memory_query|memory_glance|memory_link|memory_link_close|memory_links|memory_backlinks|memory_unlink|memory_graph|memory_path|memory_facts|memory_assert|memory_check|memory_contradictions|memory_ingest|memory_attachment|memory_dupes|memory_distinct|memory_rename|memory_forget|memory_merge|memory_activity|memory_regroup|memory_correct|memory_briefing|memory_today|memory_tick|memory_days|memory_titles|memory_wings|memory_wing|memory_map|memory_link_suggestions|remember|recall|daily_log|memory_context|notebook_list|notebook_read|notebook_write|conversation_list|conversation_search|conversation_show|memory_collections|memory_status|memory_stats|kb_list|kb_query|kb_show|kb_backlinks|kb_status|kb_remember	The tool, as in memory_get
2	@any	Its arguments as JSON
--only	@any	Show only these collections, wing:NAME or project:NAME; nothing else exists for the caller
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'pipe') printf '%s\n' '--only	@any	Show only these collections, wing:NAME or project:NAME; nothing else exists for the caller
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'completion') printf '%s\n' '1	bash|zsh|fish	bash, zsh or fish; the scripts ask for names, as in slugs or tags
2	@any	Only names that start with this
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'demo') printf '%s\n' '1	@folders	A new or empty folder [a temporary one, deleted at the end]
--all	-	Do not wait for Enter between the questions
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'version') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'get') printf '%s\n' '*	@slugs	One page or several, each by slug, title, alias or file path
--lines	@any	Only lines 10-40, or timeline 2-5
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'list') printf '%s\n' '--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	Only pages of this type: person, company, deal, yc, civic, project, area, resource, archive, concept, original, source, media, decision, commitment, action_item, journal, meeting, paper, note, or one of your own
--tag	@tags	Only pages with this tag
--wing	@wings	Only pages of this wing, as in people
--collection	@collections	Only pages of this collection
--limit	@any	How many
--offset	@any	How many to skip first
--sort	updated|created|title	Order: newest first, or by title
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'tags') printf '%s\n' '1	@slugs	The page, as in people/alice
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'timeline') printf '%s\n' '1	@slugs	The page, as in people/alice
--limit	@any	How many entries
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'put') printf '%s\n' '1	@slugs	The page, as in people/alice
2	@files	The whole page as markdown: front matter, truth, '\''---'\'', timeline
--compiled-truth	@any	New text above the line
--append	@any	Text to add above the line
--section	@any	Heading to append under
--timeline-append	@any	Markdown to add to the timeline
--frontmatter	@any	Front-matter keys to set; null removes a key
--expected-version	@any	The version you read; only to replace text
--content-hash	@any	The hash you read, instead of the version
--assertions	@any	Facts: predicate, object; subject, valid_from, valid_until, source_ref, evidence_text, supersedes_id
--replace-timeline	-	Remove timeline entries that FILE omits
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'tag') printf '%s\n' '1	@slugs	The page, as in people/alice
2	@tags	The tag, as in founder
--remove	-	Remove the tag instead
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'untag') printf '%s\n' '1	@slugs	The page, as in people/alice
2	@tags	The tag, as in founder
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'timeline-add') printf '%s\n' '1	@slugs	The page, as in people/alice
--date	@any	Day of the event, YYYY-MM-DD
--summary	@any	What happened, in one line
--source	@any	The source, as in meeting/123
--detail	@any	Details, as markdown
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'raw') printf '%s\n' '1	@slugs	The page, as in people/alice
--source	@any	Where the data is from, as in crm
--data	@any	The data to store; replaces earlier data of this source
--expected-version	@any	The version you read; needed to replace data of a source
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'history') printf '%s\n' '1	@slugs	The page, as in people/alice
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'blame') printf '%s\n' '1	@slugs	The page, as in people/alice
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'accept') printf '%s\n' '1	@slugs	The page, as in people/alice
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'revert') printf '%s\n' '1	@slugs	The page, as in people/alice
--to	@any	The version to restore, as listed by `quaid history`
--expected-version	@any	The version you read
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'diff') printf '%s\n' '1	@slugs	The page, as in people/alice
--since	@any	From the version at the start of this day, YYYY-MM-DD
--from	@any	From this version [the previous one]
--to	@any	To this version [the current one]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'search') printf '%s\n' '*	@any	Words to search for; any text is valid
--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	Only pages of this type, as in person
--wing	@wings	Only pages of this wing, as in people
--tag	@tags	Only pages with this tag
--trust	person|observed|imported|derived	Only text of this class or a higher one
--limit	@any	How many pages
--raw	-	The query is in FTS5 syntax
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'gaps') printf '%s\n' '--limit	@any	How many
--resolved	-	Include resolved gaps
add	@command	Record a question that the memory cannot answer
approve	@command	Approve a gap'\''s question, or a redacted form of it, for storage and outside research
resolve	@command	Close a gap, because a page answers it or it no longer matters
clear	@command	Close every open gap whose text is not stored
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'gaps add') printf '%s\n' '*	@any	The question
--context	@any	Where it came up, without the question itself
--confidence-score	@any	Score of the best answer that was found, from 0 to 1
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'gaps approve') printf '%s\n' '1	@any	The gap'\''s number, as `quaid gaps` shows it
--sensitivity	redacted|external	What may be shared: the redacted query, or the question itself
--approver	@any	Who approves it
--query	@any	The question again, because only its hash is stored; required for external, which stores it
--redacted-query	@any	The question without names and figures; required for redacted
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'gaps resolve') printf '%s\n' '1	@any	The gap'\''s number, as `quaid gaps` shows it
--resolved-by-slug	@slugs	The page that answers it
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'gaps clear') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'query') printf '%s\n' '*	@any	What you want to know, in your own words
--depth	auto|summary|section|full	How much of each result: a line, its best section, all of it, or what the budget allows
--token-budget	@any	Maximum tokens
--wing	@wings	Only pages of this wing, as in people
--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	Only pages of this type, as in person
--tag	@tags	Only pages with this tag
--collection	@collections	Only pages of this collection
--since	@any	Only what is dated on this day or later, as in 2026-04-25
--until	@any	Only what is dated on this day or earlier
--trust	person|observed|imported|derived	Only text of this class or a higher one
--limit	@any	How many results
--explain	-	Show the scores of each result by words and by meaning
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'ask') printf '%s\n' '*	@any	What you want to know, in your own words
--depth	auto|summary|section|full	How much of each result: a line, its best section, all of it, or what the budget allows
--token-budget	@any	Maximum tokens
--wing	@wings	Only pages of this wing, as in people
--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	Only pages of this type, as in person
--tag	@tags	Only pages with this tag
--collection	@collections	Only pages of this collection
--since	@any	Only what is dated on this day or later, as in 2026-04-25
--until	@any	Only what is dated on this day or earlier
--trust	person|observed|imported|derived	Only text of this class or a higher one
--limit	@any	How many results
--explain	-	Show the scores of each result by words and by meaning
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'glance') printf '%s\n' '*	@any	The text typed so far
--wing	@wings	Only pages of this wing, as in people
--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	Only pages of this type, as in person
--collection	@collections	Only pages of this collection
--since	@any	Only what is dated on this day or later, as in 2026-04-25
--until	@any	Only what is dated on this day or earlier
--limit	@any	How many pages, and how many notebook results
--words-only	-	Search by names and words only
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'link') printf '%s\n' '1	@slugs	The page that the link starts from
2	@slugs	The page that the link leads to
--relationship	@any	The relationship, as in works_at
--context	@any	The sentence that states it
--valid-from	@any	The first day on which it holds, if known
--valid-until	@any	The first day on which it no longer holds, if it has ended
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'link-close') printf '%s\n' '1	@any	The link'\''s id, as `quaid links` shows it
--valid-until	@any	The first day on which it no longer holds
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'links') printf '%s\n' '1	@slugs	The page, as in people/alice
--temporal	current|historical|all	Which links: current ones, ended ones, or all
--as-of	@any	As of this day instead of today, as in 2024-03-01
--limit	@any	How many
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'backlinks') printf '%s\n' '1	@slugs	The page, as in people/alice
--temporal	current|historical|all	Which links: current ones, ended ones, or all
--as-of	@any	As of this day instead of today, as in 2024-03-01
--limit	@any	How many
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'unlink') printf '%s\n' '1	@slugs	The page that the link starts from
2	@slugs	The page that the link leads to
--relationship	@any	Only this relationship, as in works_at
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'graph') printf '%s\n' '1	@slugs	The page, as in people/alice
--depth	@any	How many links away
--temporal	current|historical|all	Which links: current ones, ended ones, or all
--limit	@any	How many pages at most
--as-of	@any	As of this day instead of today, as in 2024-03-01
--dot	-	Print it in Graphviz format
--mermaid	-	Print it in Mermaid format
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'path') printf '%s\n' '1	@slugs	The page to start from
2	@slugs	The page to reach
--temporal	current|historical|all	Which links: current ones, ended ones, or all
--as-of	@any	As of this day instead of today, as in 2024-03-01
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'facts') printf '%s\n' '*	@slugs	A page, or a name of its subject
--as-of	@any	As of this day instead of today, as in 2024-03-01
--history	-	Include facts that have ended, in order of time
--limit	@any	How many facts, and how many dated entries
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'assert') printf '%s\n' '1	@slugs	The page, as in people/alice
2	@any	The predicate, as in works_at
3	@any	The object: a page, a name or a value
--subject	@slugs	The subject, if not the page itself
--valid-from	@any	The first day on which it holds, if known
--valid-until	@any	The first day on which it no longer holds; alone, it ends the current fact
--supersedes-id	@any	The id of the fact that this one replaces
--source	@any	The source, as in meeting/123
--evidence-text	@any	The words of the source
--confidence	@any	Confidence, from 0 to 1
--asserted-by	agent|manual|import|enrichment	Who states it [manual, or agent if an agent calls]
--expires	@any	Forget it after this day or time, as in Friday
--for	@any	Forget it after this period, as in 12h, 30d, 2w or 1y
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'check') printf '%s\n' '1	@slugs	Only this page and the pages about it
--all	-	The whole memory; this is the default
--type	temporal|cross_page|stale	Only contradictions in time, between pages, or truths older than their evidence
--resolve	@any	Resolve the contradiction with this id
--keep	left|right|both	With --resolve, the quote that is true: left (the first), right, or both
--note	@any	With --resolve, how it was resolved
--limit	@any	How many to show
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'contradictions') printf '%s\n' '--limit	@any	How many
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'ingest-source') printf '%s\n' '1	@files	The text of the source, unchanged
--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	meeting, mail, chat, article, paper, doc or another word
--title	@any	The title of its page [its first line]
--date	@any	Its day; adds an entry to the timeline of its page
--source	@any	Its name, as in meeting/17 or a URL [from type, date and title]
--pages	@any	Other pages that it changes, each {slug, content | compiled_truth, with content_hash if it exists; frontmatter, timeline_append, links [{to, relationship, context, valid_from, valid_until}], timeline_entries [{date, summary, source, detail}], assertions [{subject, predicate, object, valid_from, valid_until, evidence_text, supersedes_id}], tags []}
--force	-	Ingest even if the source or a truth is already known
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'ingest') printf '%s\n' '1	@files	A file (text, PDF, Office, HTML, EPUB, e-mail, calendar, code), a URL, or - for standard input
--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	meeting, mail, chat, article, paper, doc or another word [doc]
--slug	@slugs	The page to create [the slug in the file, or sources/NAME]
--date	@any	The day of the source; adds an entry to the page'\''s timeline
--force	-	Ingest even if it is known, or the page was edited since
--allow-private	-	Fetch also from addresses of this machine or network
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'adopt-sources') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'attach') printf '%s\n' '1	@files	The image file
--slug	@slugs	The page
--data	@any	The image in base64, in place of a file
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'attachment') printf '%s\n' '1	@any	The name of the image, as in the page
--slug	@slugs	The page
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'dupes') printf '%s\n' '--threshold	@any	Minimum share of common text, from 0.5 to 1
--limit	@any	How many pairs
--stored	-	List what the last comparison found, without pages changed since
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'distinct') printf '%s\n' '1	@slugs	The page, as in people/alice
2	@slugs	The page that it differs from
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'merge') printf '%s\n' '1	@slugs	One page, as in people/robert
2	@slugs	The other page
--into	@slugs	Which of the two is kept
--yes	-	Do it without asking
--dry-run	-	Only show what would be done
--expected-version	@any	Only if the kept page has this version
--other-version	@any	Only if the other page has this version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'rename') printf '%s\n' '1	@slugs	The page, as in people/alice
2	@slugs	The new slug
--free-old-slug	-	Create no redirect, so that a new page can have the old slug
--expected-version	@any	The version you read
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'forget') printf '%s\n' '1	@slugs	The page, by its exact slug
--yes	-	Do it without asking
--dry-run	-	Only show what would be removed
--backups	-	Also delete backups beside the memory that contain the page
--finish	-	Remove bytes from the file that an earlier `forget` could not
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'expire') printf '%s\n' '1	@slugs	The page, as in people/alice
--expires	@any	Forget it after this day or time, as in Friday
--for	@any	Forget it after this period, as in 12h, 30d, 2w or 1y
--never	-	Keep it, whatever the retention settings say
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'expired') printf '%s\n' '*	@any	Ids from the list, or pages; by default everything
--keep	-	Bring it back, for good or with --expires or --for
--expires	@any	Forget it after this day or time, as in Friday
--for	@any	Forget it after this period, as in 12h, 30d, 2w or 1y
--now	-	Erase it now, without waiting for the grace period
--yes	-	Do it without asking
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'review') printf '%s\n' '1	@any	Only this proposal; with --slug, only this conflict
--accept	-	Carry it out
--reject	-	Discard it
--yes	-	Accept all open proposals
--reject-all	-	Reject all open proposals
--note	@any	The reason, for the record
--slug	@slugs	Only the conflicts of this page
--keep	@any	Resolve the conflicts of --slug: the name of the version to keep, or `all`
--expected-version	@any	The version of the page that you read
--force	-	Accept proposals of `quaid dream` although a golden question fails
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'propose') printf '%s\n' 'forget	@command	Propose to erase a page or sentence for good; a person confirms it
merge	@command	Propose to merge two pages about the same thing
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'propose forget') printf '%s\n' '1	@slugs	The page, by slug or title
--reason	@any	Why, for the person who decides
--query	@any	Instead of a page: words or id of one sentence to erase
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'propose merge') printf '%s\n' '1	@slugs	One page
2	@slugs	The other page
--into	@slugs	Which of the two is kept
--reason	@any	Why, for the person who decides
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'activity') printf '%s\n' '--client	@any	Only this client
--since	@any	From this day, YYYY-MM-DD, or for a period such as 24h, 7d or 2w
--until	@any	Up to this day
--session	@any	Only this session
--writes	-	Only writes
--diffs	-	With the change of each write
--limit	@any	How many sessions
accept	@command	Mark writes of agents as seen and accepted
undo	@command	Undo a write of an agent: restore the text that each page had before, as a new version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'activity accept') printf '%s\n' '1	@any	The write, as listed by `quaid activity`
--session	@any	All writes of this session
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'activity undo') printf '%s\n' '1	@any	The write, as listed by `quaid activity`
--yes	-	Erase pages that the call created without asking
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'dream') printf '%s\n' '--kind	@any	Only these kinds: duplicates, notes, links, facts, summaries, contradictions, groups
--limit	@any	How many new proposals of each kind
--nightly	-	Let a running server do this every night; `quaid config set dream_nightly off` ends that
model	@command	Show, set or remove the language model that `quaid dream` may ask, with a budget of tokens for each day
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'dream model') printf '%s\n' '1	@any	The address of an OpenAI-compatible server
2	@any	The name of the model there
--daily-tokens	@any	The budget for each day
--key-env	@any	The environment variable with the API key
--allow-remote	-	Allow a server on another machine, which receives your texts
--off	-	Use rules only
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'regroup') printf '%s\n' '1	@wings	The wing that the pages shall have
*	@slugs	The pages
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'correct') printf '%s\n' '*	@any	The page, person, thing or to-do
--now	@any	What is true; done or cancelled for a to-do; or: same as PAGE (merge)
--was	@any	The old words
--date	@any	Since when, YYYY-MM-DD [today]
--id	@any	The fact or line to change, as any tool shows it
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'briefing') printf '%s\n' '--since	@any	What counts as new: a period (24h, 7d, 2w) or a day (2026-04-25)
--due	@any	How many days ahead to list what is due
--limit	@any	How many lines of each part
--short	-	Omit changes, stale pages and threads, which take longest
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'today') printf '%s\n' '--since	@any	What counts as new: a period (24h, 7d, 2w) or a day [since the last visit]
--limit	@any	How many to-dos of each list
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'seen') printf '%s\n' '--until	@any	The time up to which changes were seen [now]
--visit	-	Record a look
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'tick') printf '%s\n' '1	@slugs	The page, as in people/alice
2	@any	The to-do, as it is written after the box
--line	@any	Its line, if several lines have the same text
--undo	-	Open it again
--status	@any	With --undo, the status to restore
--expected-version	@any	Fail unless this is its version
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'days') printf '%s\n' '--since	@any	Only items of this day or later, as in 2026-04-25
--until	@any	Only items of this day or earlier
--kind	entry|log|page|due|link|fact	Only timeline entries, daily log entries, dated pages, due dates, links, or facts
--type	person|company|deal|yc|civic|project|area|resource|archive|concept|original|source|media|decision|commitment|action_item|journal|meeting|paper|note	Only pages of this type, as in person
--wing	@wings	Only pages of this wing, as in people
--collection	@collections	Only pages of this collection
--text	@any	Only items whose text or page title contains this text
--limit	@any	How many
--offset	@any	How many to skip first
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'titles') printf '%s\n' '*	@any	Names as used in links: slugs, aliases or titles
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'wings') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'wing') printf '%s\n' '1	@wings	The wing, as in people
--limit	@any	How many pages at most
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'map') printf '%s\n' '--limit	@any	How many pages at most
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'link-suggestions') printf '%s\n' '--wing	@wings	Only links to pages of this wing, as in people
--limit	@any	How many
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'remember') printf '%s\n' '*	@any	What to remember, in plain words: one thing, or a list
--category	lists|reference|knowledge|contacts|preferences|standing-orders|todos|shopping|facts|patterns|list|contact|preference|order|todo|fact|pattern	The kind of note; by default chosen from the text
--file	@notes	The file, as in reading or lists/reading.md
--section	@any	The heading to add it under; created if missing
--expires	@any	Forget it after this day or time, as in Friday
--for	@any	Forget it after this period, as in 12h, 30d, 2w or 1y
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'recall') printf '%s\n' '*	@any	What to search for, in your own words
--limit	@any	How many results [15]
--min-score	@any	Minimum score, from 0 to 1 [0.25]; 0.5 is a good answer
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'log') printf '%s\n' '*	@any	What happened; its first line becomes the heading
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'prompt') printf '%s\n' '--token-budget	@any	Maximum size in tokens
--project	-	Add pages about the project of this folder
--characters	@any	Maximum size in characters
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'notebook') printf '%s\n' 'init	@command	Create a notebook, or attach a folder as one: lists, reference, knowledge, daily
list	@command	List the files of the notebook
read	@command	Read a file of the notebook, and the version to send with a change
write	@command	Append to a file of the notebook or to a section of it, or replace it
migrate	@command	Copy files of an older layout into reference/
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'notebook init') printf '%s\n' '1	@folders	The folder [beside the memory]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'notebook list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'notebook read') printf '%s\n' '1	@notes	The file within the notebook, as in reference/contacts.md
--start-line	@any	The first line
--lines	@any	How many lines [all]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'notebook write') printf '%s\n' '1	@notes	The file within the notebook, as in reference/contacts.md
2	@files	The text
--section	@any	The heading to write under; created if missing
--replace	-	Replace the section, or the whole file
--expected-version	@any	The version you read; required to replace
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'notebook migrate') printf '%s\n' '1	@folders	The agent'\''s folder, with runtime/ or brain/memory/core/ in it
--dry-run	-	Only show what would be done
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'conversations') printf '%s\n' 'add	@command	Import transcripts of Claude Code and Codex, plain JSON lines, and exports of ChatGPT and Claude.ai
sync	@command	Read new turns of all imported transcripts, and of the folders in the setting conversation_folders
list	@command	List conversations with agents, the latest first
--client	claude-code|codex|plain|chatgpt|claude.ai|openai-agents|llama-index	Only of this client: claude-code, codex, plain, chatgpt, claude.ai, openai-agents, llama-index
--limit	@any	How many conversations
--offset	@any	How many to skip first
search	@command	Search earlier conversations with agents, by words and by meaning
show	@command	Show a conversation from its start, or the turns around one of them
remove	@command	Remove a conversation, so that no trace of it stays in the database file
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'conversations add') printf '%s\n' '*	@files	Transcripts, export archives, or folders with them at any depth
--again	-	Read the files from the start, and import removed conversations again
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'conversations sync') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'conversations list') printf '%s\n' '--client	claude-code|codex|plain|chatgpt|claude.ai|openai-agents|llama-index	Only of this client: claude-code, codex, plain, chatgpt, claude.ai, openai-agents, llama-index
--limit	@any	How many conversations
--offset	@any	How many to skip first
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'conversations search') printf '%s\n' '*	@any	Words to search for; any text is valid
--limit	@any	How many turns
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'conversations show') printf '%s\n' '1	@sessions	The session, or the beginning of its name, as in 3f2a or codex:3f2a
--around	@any	The turn to show in the middle
--limit	@any	How many turns
--full	-	Show long turns in full
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'conversations remove') printf '%s\n' '1	@sessions	The session, or the beginning of its name, as in 3f2a or codex:3f2a
--yes	-	Do it without asking
--dry-run	-	Only show what would be removed
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'model') printf '%s\n' 'list	@command	List the models with their state
add	@command	Test a model and add it to this memory
remove	@command	Remove a model that was added
check	@command	Load a model and test it
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'model list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'model add') printf '%s\n' '1	@folders	A folder with an ONNX model, or the address of a server
--name	@any	Name of the model [the folder'\''s or the server'\''s name]
--kind	onnx|ollama|openai	A folder, or the API of the server
--model	@any	The server'\''s name for the model
--query-prefix	@any	Text to put before questions
--passage-prefix	@any	Text to put before passages
--pooling	auto|cls|mean|max|last	How token vectors are pooled; auto: as the folder specifies, or the mean
--key-env	@any	The environment variable that holds the server'\''s key
--allow-remote	-	Allow texts to be sent to a server on another machine
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'model remove') printf '%s\n' '1	@models	The model
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'model check') printf '%s\n' '1	@models	The model [the active one]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'embed') printf '%s\n' '1	@slugs	Only this page
--all	-	All pages, and conversations of any age; existing vectors are kept
--stale	-	Only text that changed since it was embedded
--model	@models	Create vectors for this model, and switch to it when none is missing
--force	-	With --model: switch even if golden questions fail then
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'embeddings') printf '%s\n' 'list	@command	List the models for semantic search
use	@command	Use this model for semantic search
off	@command	Turn semantic search off: searches use words only, and their results say so
status	@command	Show which model is chosen, whether it can be used, and how many vectors it has
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'embeddings list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'embeddings use') printf '%s\n' '1	@models	The model
--force	-	Switch even if golden questions fail then
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'embeddings off') printf '%s\n' '--force	-	Turn it off even if golden questions fail then
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'embeddings status') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'rerank') printf '%s\n' 'use	@command	Test a cross-encoder, and let it reorder the best 30 pages of each question
off	@command	Turn reranking off
status	@command	Show whether results are reranked, and by what
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'rerank use') printf '%s\n' '1	@any	A folder with a cross-encoder in ONNX, or the address of a rerank server
--model	@any	The server'\''s name for the model
--key-env	@any	The environment variable that holds the server'\''s key
--time-limit	@any	Seconds for one question
--allow-remote	-	Allow texts to be sent to a server on another machine
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'rerank off') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'rerank status') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection') printf '%s\n' 'add	@command	Attach a folder of markdown, org or other files
list	@command	List the collections with their folders and state
info	@command	Show the state of a collection: files with problems, ignore patterns, pending decisions
sync	@command	Sync collections with their folders now
remove	@command	Detach a folder
folders	@command	List the folders in a folder, to choose one for a collection
target	@command	Set the collection for new pages whose address names none
ignore	@command	list, add, remove, clear
quarantine	@command	List pages whose file is deleted or ignored, with dates and the data that no file contains
restore	@command	Write every file of a collection, byte for byte, into an empty folder, and attach that folder
audit	@command	Compare every file of a collection with its page, stored bytes and id
migrate-ids	@command	Write each page'\''s id into the front matter of its file, so that a moved file keeps its page
conflicts	@command	List the conflict copies that Syncthing, Obsidian, Dropbox or Quaid left in folders, or merge them
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection add') printf '%s\n' '1	@any	Name of the collection: the part before '\''::'\'' in addresses
2	@folders	The folder
--read-only	-	Never write into the folder
--writable	-	Write changes of pages to their files
--write-ids	-	Write each page'\''s id into the front matter of its file
--kind	markdown|kb|documents	kb: a knowledge base; skips its raw/, index files and contract
--force	-	Attach it even if golden questions fail then
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection info') printf '%s\n' '1	@collections	The collection, as in notes
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection sync') printf '%s\n' '1	@collections	The collection [all]
--confirm-deletes	-	Remove pages whose files are missing, however many
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection remove') printf '%s\n' '1	@collections	The collection, as in notes
--keep-pages	-	Keep its pages in the memory
--yes	-	Do it without asking
--dry-run	-	Only show what would be done
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection folders') printf '%s\n' '1	@files	The folder [the home folder]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection target') printf '%s\n' '1	@collections	The collection, as in notes
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection ignore') printf '%s\n' 'list	@command	List the ignore patterns of a collection
add	@command	Ignore files of a collection
remove	@command	Remove an ignore pattern
clear	@command	Remove all ignore patterns
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection ignore list') printf '%s\n' '1	@collections	The collection, as in notes
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection ignore add') printf '%s\n' '1	@collections	The collection, as in notes
2	@any	Pattern as in gitignore: '\''drafts/'\'', '\''*.tmp.md'\''
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection ignore remove') printf '%s\n' '1	@collections	The collection, as in notes
2	@any	Pattern as in gitignore: '\''drafts/'\'', '\''*.tmp.md'\''
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection ignore clear') printf '%s\n' '1	@collections	The collection, as in notes
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection quarantine') printf '%s\n' 'list	@command	List pages whose file is deleted or ignored, with dates and the data that no file contains
1	@collections	The collection [all]
export	@command	Export quarantined pages as their original files, with links, facts and raw data as JSON
discard	@command	Delete quarantined pages permanently
restore	@command	Restore a page'\''s file at its old path
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection quarantine list') printf '%s\n' '1	@collections	The collection [all]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection quarantine export') printf '%s\n' '1	@folders	A new or empty folder
2	@quarantined	The page, as in people/alice [all]
--force	-	Write into a folder that is not empty
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection quarantine discard') printf '%s\n' '1	@quarantined	The page, as in people/alice
--expired	-	All expired pages, in every collection
--yes	-	Do it without asking
--dry-run	-	Only show what would be deleted
--force	-	Also delete data that no file contains and that was not exported
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection quarantine restore') printf '%s\n' '1	@quarantined	The page, as in people/alice or notes::people/alice
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection restore') printf '%s\n' '1	@collections	The collection, as in notes
2	@folders	A new or empty folder
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection audit') printf '%s\n' '1	@collections	The collection, as in notes
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection migrate-ids') printf '%s\n' '1	@collections	The collection, as in notes
--dry-run	-	Only list the files that would change
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'import') printf '%s\n' '1	@folders	The folder of markdown files; with --from a folder, a file or a zip
--force	-	Import every file again, overwriting pages that were edited here
--from	chatgpt|claude|gemini|basic-memory|mem0|obsidian|logseq|roam|notion|org-roam|apple-notes-html|okf|jsonl	The program that wrote the notes or memories
--documents	-	Also import PDF, Office, HTML, EPUB, e-mail, calendars, text and code
--ignore-golden	-	Import even if golden questions fail then; implied by --force
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'export') printf '%s\n' '--dir	@folders	The folder to create
--raw	-	Write the original bytes of one import
--import-id	@any	The import that --raw writes; `quaid imports` lists them
--collection	@collections	Only the pages of this collection
--force	-	Write into a folder that is not empty, replacing files of the same name
--to	obsidian|logseq|org-roam|okf|jsonl	Write for another program [markdown]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'imports') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'sample') printf '%s\n' 'add	@command	Add a collection of sample pages to try things with
remove	@command	Remove the sample pages, their history and their files
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'sample add') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'sample remove') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'merge-driver') printf '%s\n' '1	@files	The version that both others are based on
2	@files	Our version
3	@files	Their version
4	@any	The name of the file in the repository
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'git-setup') printf '%s\n' '1	@files	A folder in a git repository
--remove	-	Remove the merge driver
--dry-run	-	Only show what would be changed
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'collection conflicts') printf '%s\n' '1	@collections	The collection [all]
--merge	-	Merge each copy into its page, and remove the copy
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'share') printf '%s\n' '1	@collections	The collection to share, as in notes or default
--hub	@any	Address of the hub, or an invitation link to it
--name	@any	Name of the space on the hub [the name of the collection]
--kind	private|team|public	private: your own devices; team: members that you invite; public: readable by all
--sealed	-	Encrypt the pages on this device; the hub cannot read them
--person	@any	Your name on the hub, if the invitation does not contain it
--device	@any	Name of this device [device_name, or the name of this machine]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'join') printf '%s\n' '1	@any	The invitation link, or the name of a space of which you are a member
--as	@any	Name of the collection for its pages; `default` merges them with your own pages
--person	@any	Your name on the hub, if the invitation does not contain it
--device	@any	Name of this device [device_name, or the name of this machine]
--yes	-	With --as: share the pages that the collection already has, without asking
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'sync') printf '%s\n' '1	@any	Only this collection or space [all]
--watch	-	Go on: sync whenever something changes, until Ctrl-C
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'spaces') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'members') printf '%s\n' '1	@any	The shared collection, as in team
2	@any	The member to change
--right	read|propose|append|write|owner	The new right of the member
--remove	-	Remove the member
--agent	@any	An agent of the person, which gets its own right
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'space') printf '%s\n' 'invite	@command	Invite a person, an agent or your next device to a shared space
proposals	@command	List changes that members with the right `propose` or `append` propose, with their diffs, or decide one
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'space invite') printf '%s\n' '1	@any	The shared collection, as in team
--right	read|propose|append|write|owner	What the new member may do
--person	@any	Their name on the hub; yours for another device of your own
--agent	@any	An agent of the person, as in claude-code
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'devices') printf '%s\n' '1	@any	The shared collection, as in team
--revoke	@any	Revoke the token of this device, by its id or name
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'space proposals') printf '%s\n' '1	@any	The shared collection, as in team
--accept	@any	Accept the proposal with this number
--reject	@any	Reject the proposal with this number
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'leave') printf '%s\n' '1	@any	The shared collection, as in team
--keep-pages	-	Keep the pages in this memory
--yes	-	Do it without asking
--dry-run	-	Only show what would be done
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'status') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'stats') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'validate') printf '%s\n' '--links	-	Check intervals and ends of links
--assertions	-	Check duplicates and chains of assertions
--embeddings	-	Check models and their vectors
--fts	-	Check the word indexes against the pages
--integrity	-	Check the database file and its derived rows
--all	-	All of these; this is the default
--original	@folders	An imported folder, to compare with --exported
--exported	@folders	An exported folder, to compare with --original
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'compact') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'backup') printf '%s\n' '1	@files:db	The file to create; it must not exist [in ~/.quaid/backups]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'backups') printf '%s\n' 'list	@command	List the backups beside the memory and in ~/.quaid/backups, newest first
verify	@command	Check that a backup is intact, and show how many pages it has
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'backups list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'backups verify') printf '%s\n' '1	@files	The backup
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config') printf '%s\n' 'get	@command	Show one setting
set	@command	Change one setting
list	@command	List all settings, and where each value comes from
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config get') printf '%s\n' '1	agent_writes|agents_may|background_embedding|chunk_strategy|chunking.max_tokens|chunking.overlap_tokens|chunking.respect_headings|client_only|conversation_folders|default_token_budget|device_name|dream_accept|dream_nightly|embed_conversations|embedding.models_dir|embedding.plugin|expiry_grace|gap_threshold|hooks.context_tokens|hooks.flush_at|hooks.stop_reminder|kb.store|key_file|log_activity|log_gaps|log_opened|memory.database|memory.notebook_dir|prompt.daily_window|prompt.max_per_file_chars|prompt.max_total_reference_chars|prompt.reference_dir|search.fusion_k|search.max_results|search.min_score|search_merge_strategy|single_valued_predicates|sync.sync_on_search|sync.sync_on_start|sync.watch_debounce_ms|web.burst|web.oauth|web.requests_per_second|welcome	The setting
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set') printf '%s\n' '1	single_valued_predicates|agents_may|client_only|dream_accept|device_name|conversation_folders|default_token_budget|expiry_grace	The setting
2	@any	Its new value
chunk_strategy	@command	section, window, paragraph, page
agent_writes	@command	guarded, direct, review
welcome	@command	ask, hint, done
dream_nightly	@command	on, off
background_embedding	@command	on, off
embed_conversations	@command	recent, on, off
log_activity	@command	on, off
log_gaps	@command	on, words, text, off
log_opened	@command	off, words
gap_threshold	@command	strong, weak
search_merge_strategy	@command	sum, set-union, rrf
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'rebuild') printf '%s\n' '--force	-	Rebuild even if golden questions fail then
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'upgrade') printf '%s\n' '--check	-	Compare with the newest version in --from
--from	@files	A package index, the URL of a version list, a folder of wheels, or a file
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'encrypt') printf '%s\n' '--key-file	@files	Keep the key in this file, which is created if it is missing
--passphrase	-	Compute the key from a passphrase, which is asked for
--environment	-	Take the key from QUAID_KEY (rekey: QUAID_NEW_KEY)
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'rekey') printf '%s\n' '--key-file	@files	Keep the key in this file, which is created if it is missing
--passphrase	-	Compute the key from a passphrase, which is asked for
--environment	-	Take the key from QUAID_KEY (rekey: QUAID_NEW_KEY)
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'decrypt') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden') printf '%s\n' 'add	@command	Add a golden question, or change the expected pages of one, and ask it
list	@command	List the golden questions with the pages that they expect
remove	@command	Remove a golden question
run	@command	Ask all golden questions and show the rank of each expected page
try	@command	Ask the golden questions with another version of Quaid, on a copy of the memory, before you upgrade
suggest	@command	Propose golden questions from what you asked
opened	@command	Record that you opened a page from the results of a question, for `golden suggest`
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden add') printf '%s\n' '1	@any	The question
--expect	@any	The pages that must be among the results, one or more
--within	@any	They must be among this many first results
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden remove') printf '%s\n' '1	@any	Its number, as `quaid golden list` shows it
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden run') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden try') printf '%s\n' '1	@files	The command of another version of Quaid
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden suggest') printf '%s\n' '--limit	@any	How many
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'golden opened') printf '%s\n' '1	@any	The question
2	@slugs	The page that was opened
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'bench') printf '%s\n' '--seconds	@any	Stop after this many seconds
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'doctor') printf '%s\n' '--quick	-	Skip the slow checks: reading every row, and loading the model
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb') printf '%s\n' 'list	@command	List the nodes of the knowledge base, the latest change first
edit	@command	Replace the text of a node and commit it, after linting it
query	@command	Search the knowledge base: principles, preferences, procedures, observations, references
show	@command	Show a node of the knowledge base, what it links to and what links to it
backlinks	@command	List the nodes that link to a node
status	@command	Show the state of the knowledge base: nodes, commits to push, problems, whether curation is due
remember	@command	Write a node and commit it: lasting, general knowledge, not details of one project
init	@command	Create a knowledge base: a git repository with a contract, a first node and an index
clone	@command	Clone a knowledge base from its remote
lint	@command	Check every node, raw text and the index
index	@command	Rebuild the index from the nodes and commit it
commit	@command	Commit files changed with an editor, after rebuilding the index and linting everything
doctor	@command	Check the store and its setup on this machine, with a remedy for each problem
curate	@command	Report duplicates, orphans, contested, superseded, broad and untouched nodes, and unused raw files
push	@command	Push commits that the remote does not have
capture	@command	Capture an external source: a stub with address, day, title and an excerpt of at most 2,000 words
install-timer	@command	Push the knowledge base every 15 minutes, with a systemd user timer, launchd, or a line for cron
sync	@command	Update org-roam'\''s database for browsing in Emacs, if nodes have changed
map	@command	Print the nodes and the links between them as a graph in graphviz'\''s DOT language
emacs-file	@command	Print the path of ai-kb.el, the package for Emacs
merge	@command	Merge a second node into the first
delete	@command	Delete a node or a capture; git keeps it
supersede	@command	Mark a node as superseded by another
contest	@command	Mark a node as contested, or as current again
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb list') printf '%s\n' '--tag	@any	Only nodes with this tag or of this type
--project	@any	Only nodes of this project
--status	current|contested|superseded	Only nodes of this status
--limit	@any	How many nodes
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb edit') printf '%s\n' '1	@nodes	The node: its ID, the beginning of it, a pointer, or its title
2	@files	The new text of the whole file, in org
--expected	@any	SHA-256 of the text that you read
--dry-run	-	Only lint the new text
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb query') printf '%s\n' '*	@any	Words to search for
--limit	@any	How many nodes
--type	principle|preference|procedure|observation|reference	Only nodes of this type
--project	@any	Only nodes of this project, as in emacs or general
--status	current|contested|superseded	Only nodes of this status
--semantic	-	Also search by meaning, as `quaid query` does
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb show') printf '%s\n' '1	@nodes	The node: its ID, the beginning of it, a pointer, or its title
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb backlinks') printf '%s\n' '1	@nodes	The node: its ID, the beginning of it, a pointer, or its title
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb status') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb remember') printf '%s\n' '*	@any	The text of the node, in org
--file	@files	File with the text (- is standard input)
--title	@any	A short title
--summary	@any	One sentence with the words that a search would use
--type	principle|preference|procedure|observation|reference	What kind of knowledge it is
--tags	@any	Further tags, as in build,ci
--projects	@any	Slugs of projects, as in emacs,python [general]
--confidence	user-stated|observed|inferred|external	How certain it is
--source	@any	Where it comes from, as in chat 2026-05-24, or a path below raw/
--visibility	personal|work-private	Who may see it
--links	@any	Related nodes: IDs or titles, optionally after RELATES_TO, IMPLEMENTS, DERIVED_FROM or CONTRADICTS, which makes both contested
--created-by	@any	The author, as in claude-code [human, or the agent]
--add-to	@nodes	Add the text to this node instead of writing a new one
--force	-	Write it even if a similar node exists or it contradicts the node of --add-to
--dry-run	-	Only lint it
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb init') printf '%s\n' '1	@folders	The folder [$AI_KB_DIR, or the default location]
--remote	@any	Address of a private repository to push to
--force	-	Accept a folder or remote that holds other files, and commit beside them
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb clone') printf '%s\n' '1	@any	The address of the repository
2	@folders	The folder [$AI_KB_DIR, or the default location]
--force	-	Accept a folder or remote that holds other files, and commit beside them
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb lint') printf '%s\n' '--index	-	Only check whether the index is up to date
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb index') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb commit') printf '%s\n' '--message	@any	The commit message
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb doctor') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb curate') printf '%s\n' '--dry-run	-	Only report
--days	@any	Report nodes unchanged for this many days
--yes	-	Mark the listed nodes as reviewed, without asking
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb push') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb capture') printf '%s\n' '1	@any	The address, or the file
--excerpt	@files	File with the relevant part (- is standard input)
--title	@any	The title
--full	-	Store the whole source too, in raw/files/; an address is fetched, unless --file is given
--file	@files	Local file with the whole source of an address
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb install-timer') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb sync') printf '%s\n' '--force	-	Rebuild it even if it is up to date
--database	@files:db	Path of the database [in .git/ai-kb]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb map') printf '%s\n' '--project	@any	Only nodes of this project
--tag	@any	Only nodes with this tag or of this type
--status	current|contested|superseded	Only nodes of this status
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb emacs-file') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb merge') printf '%s\n' '1	@nodes	The node: its ID, the beginning of it, a pointer, or its title
2	@nodes	The node to merge into it
--yes	-	Do not ask for confirmation
--dry-run	-	Only show what would change
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb delete') printf '%s\n' '1	@nodes	The node, or the path of a capture below raw/ with its whole file
--force	-	Delete it even if nodes link to it; their links become plain text
--yes	-	Do not ask for confirmation
--dry-run	-	Only show what would change
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb supersede') printf '%s\n' '1	@nodes	The node: its ID, the beginning of it, a pointer, or its title
--by	@nodes	The node that supersedes it
--yes	-	Do not ask for confirmation
--dry-run	-	Only show what would change
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'kb contest') printf '%s\n' '1	@nodes	The node: its ID, the beginning of it, a pointer, or its title
--against	@nodes	The node that it contradicts
--settle	-	Mark it as current again
--yes	-	Do not ask for confirmation
--dry-run	-	Only show what would change
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'instructions') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'connect') printf '%s\n' '1	claude-code|claude-desktop|cursor|codex|vscode|windsurf|zed|gemini-cli	The client [list all]
--dry-run	-	Only show what would be changed
--project	-	The settings of the project in this folder, not the global ones
--instructions	-	Also add instructions for agents to its CLAUDE.md or AGENTS.md; Codex always needs them
--kb	-	Add instructions and tools for the knowledge base
--only	@any	The collections, wing:NAME or project:NAME that it may see [the whole memory]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'disconnect') printf '%s\n' '1	claude-code|claude-desktop|cursor|codex|vscode|windsurf|zed|gemini-cli	The client
--dry-run	-	Only show what would be changed
--project	-	The settings of the project in this folder, not the global ones
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'skills') printf '%s\n' 'list	@command	List the skills in effect, with their descriptions
doctor	@command	Show all layers of skills in order, with hashes, overrides and problems
extract	@command	Write the built-in skills into a folder, where they can be changed
show	@command	Print the text of a skill, for an agent to read
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'skills list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'skills doctor') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'skills extract') printf '%s\n' '--dir	@folders	The folder to write into [~/.quaid/skills]
--force	-	Also replace files that differ
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'skills show') printf '%s\n' '1	@skills	The skill, as in setup
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'daemon') printf '%s\n' 'install	@command	Install a service (a systemd user unit or launchd agent) that serves the dashboard and agents over HTTP
start	@command	Start the installed service
stop	@command	Stop the service until it is started again, or the next login
uninstall	@command	Stop the service and remove it
status	@command	Show whether the service runs
logs	@command	Show the log of the service: starts, stops and failures, never page texts or questions
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'daemon install') printf '%s\n' '--port	@any	The port to listen on, on this machine only
--host-name	@any	As for `quaid web`: localhost, if your browser needs it
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'daemon start') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'daemon stop') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'daemon uninstall') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'daemon status') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'daemon logs') printf '%s\n' '--lines	@any	How many
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'token') printf '%s\n' 'create	@command	Create a token for an HTTP client
list	@command	List the tokens with their scope, the part of the memory that they see, creation date, expiry and last use
revoke	@command	Revoke a token, or the access of a program
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'token create') printf '%s\n' '1	@any	Name of the token, as in phone
--scope	read|write	What the token allows
--expires	@any	When it ends: a period (12h, 30d, 6w) or its last day (2027-01-31) [never]
--only	@any	The collections, wing:NAME or project:NAME that it may see [the whole memory]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'token list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'token revoke') printf '%s\n' '1	@tokens	Name of the token, as in phone
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'login') printf '%s\n' 'list	@command	List the browsers that are logged in to the dashboard, the last used first
end	@command	Log a browser out, or all of them
code	@command	Show a code to type at the dashboard'\''s login page
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'login list') printf '%s\n' '--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'login end') printf '%s\n' '1	@any	Id of the login, from `quaid login list`
--all	-	End all logins, on every device
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'login code') printf '%s\n' '--port	@any	The port of the running server
--url	@any	The address of the server for the link [this machine]
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'help') printf '%s\n' 'init	@command	Create a memory
edit	@command	Edit a page in $VISUAL or $EDITOR
serve	@command	Serve the memory to an agent over MCP: on stdio, or (--http) to many, with the browser'\''s pages
web	@command	Open the memory in a browser
open	@command	Open a page in the browser, or the first page of the dashboard; starts `quaid web` if it is not running
hub	@command	Run a hub, which stores spaces that several devices and people share
watch	@command	Sync attached folders as their files change, until Ctrl-C; quaid serve does the same
hook	@command	Answer a hook event of Claude Code: JSON in, JSON out; `quaid connect claude-code` sets it up
call	@command	Call one tool with JSON, as an agent would
pipe	@command	Answer tool calls line by line: {"tool": NAME, "arguments": {...}} in, results out
completion	@command	Print a completion script for a shell: commands, options and slugs
demo	@command	Create a sample memory in a separate folder, and walk through ten questions
version	@command	Show versions and where the memory is
get	@command	Read pages: current truth, timeline, front matter, and the version to send with a change
list	@command	List pages, newest first or by title
tags	@command	List the tags of a page
timeline	@command	Show the dated entries of a page, newest first
put	@command	Write a page of your own, about a person, project or idea: whole (FILE) or in parts
tag	@command	Add a tag to a page, or remove one
untag	@command	The same as tag --remove
timeline-add	@command	Add a dated entry to a page'\''s timeline
raw	@command	Read the raw data stored with a page, or (with --source and --data) replace the data of one source
history	@command	List the stored versions of a page: the last 10 within 90 days
blame	@command	Show who wrote each line of a page: version, author, source, date and trust class
accept	@command	Accept a page as your own words: its lines and facts get the trust class person
revert	@command	Restore an earlier version of a page as a new version
diff	@command	Show the changes of a page as a unified diff, since its previous version, another version or a day
search	@command	Find pages by words
gaps	@command	List questions that the memory could not answer, the most frequent first
query	@command	Answer a question from pages, notebook, logs, conversations and knowledge base, within a token budget
ask	@command	Answer a question from pages, notebook, logs, conversations and knowledge base, within a token budget
glance	@command	Search pages and notebook as you type
link	@command	Link a page to another, with a relationship and an optional validity period
link-close	@command	Set the end date of a link
links	@command	List the links from a page, with ids and dates
backlinks	@command	List the links to a page, with ids and dates
unlink	@command	Remove links that were never right; use `quaid link-close` for links that have ended
graph	@command	Show the pages around a page and their links, the nearest first
path	@command	Find the shortest path of links between two pages
facts	@command	List facts, links and dated entries about a subject, with dates and sources
assert	@command	Add a fact to a page, with dates and source
check	@command	List contradictions with both quotes, or resolve one
contradictions	@command	List the open contradictions with both quotes, as `quaid check` last found them
ingest-source	@command	Store a source (meeting, mail, article, chat) as a page, and what it says about other pages, at once
ingest	@command	Ingest one file or URL as a page; each e-mail of an mbox file becomes a page
adopt-sources	@command	Create pages for sources that an earlier version stored without one, so that searches find them
attach	@command	Store an image (PNG, JPEG, GIF or WebP, up to 5 MB) and print the Markdown that shows it in a page
attachment	@command	Return an image of a page in base64
dupes	@command	Find duplicate pages: pairs with similar text or the same name
distinct	@command	Mark two pages as distinct, so that `quaid dupes` no longer lists them
merge	@command	Merge two pages: timelines, links, facts and tags are combined; the old slug redirects to the kept page
rename	@command	Rename a page
forget	@command	Erase a page: text, index, vectors, links, facts, imported bytes; then verify that nothing remains
expire	@command	Set when a page expires, or that it never does
expired	@command	List expired pages, lines and facts, which are hidden; show one, keep it, or erase it now
review	@command	List changes proposed by agents and conflicts of merged pages, and decide them
propose	@command	forget, merge
activity	@command	List what agents read and wrote, by session
dream	@command	Look for duplicates, missing links, unrecorded facts, outdated summaries and more, and propose changes
regroup	@command	Move pages to a wing: set WING in their front matter
correct	@command	Correct what is stored: "X is now Y", "that was wrong", "done"
briefing	@command	Summarize changes, to-dos, what is due, contradictions, reviews, questions, stale pages, deals and people
today	@command	Show what is due, today'\''s log, what changed since you last looked, facts that became false, and what waits
seen	@command	Mark what changed as seen, so that `quaid today` lists only later changes
tick	@command	Tick a to-do of a page or notebook file, or close a commitment or action item
days	@command	List dated items from all pages, newest first
titles	@command	Resolve names to pages as links do, and return their slugs, titles and types
wings	@command	List the wings and page types, each with its number of pages, and the collections
wing	@command	Show the pages of a wing, those with the most links first, and the links between them
map	@command	Show all pages with the links between them, those with the most links first
link-suggestions	@command	List pages whose text names another page, without a link between the two
remember	@command	Remember one thing that the user said: fact, preference, to-do, contact, standing order, shopping, pattern
recall	@command	Search the notebook and daily logs, by words and by meaning
log	@command	Add an entry to today'\''s log, under the time of day
prompt	@command	Print the context for the start of a session: all of reference, and the logs of today and yesterday
notebook	@command	List the files of the notebook
conversations	@command	List conversations with agents, the latest first
model	@command	List the models with their state
embed	@command	Create missing vectors of pages, then of conversations
embeddings	@command	Show which model is chosen, whether it can be used, and how many vectors it has
rerank	@command	Show whether results are reranked, and by what
collection	@command	List the collections with their folders and state
import	@command	Import a folder, or the export of another program; report every file
export	@command	Export all pages to a folder as Markdown or for another program (--to), or the files of one import (--raw)
imports	@command	List the imports, newest first, with the ids that `export --raw` takes
sample	@command	add, remove
merge-driver	@command	Merge three versions of a page file by parts, as a merge driver of git
git-setup	@command	Let git merge the pages of a folder by parts, with `quaid merge-driver`
share	@command	Share a collection: make a space for it on a hub and push its pages
join	@command	Join a shared space: its pages become a collection of this memory, searchable at once and offline
sync	@command	Sync shared spaces with their hubs and folders with the memory
spaces	@command	List the shared collections: hub, your right, the last sync and what waits to be pushed
members	@command	List the members of a shared space and their rights, or change one
space	@command	invite, proposals
devices	@command	List the devices of a shared space: owner, last contact, how far each has read; or revoke one
leave	@command	Stop sharing a collection here
status	@command	Show the state of the memory: pages, chunks, vectors, the model, and recommended commands
stats	@command	Count the contents of the memory
validate	@command	Check the memory, or compare an exported folder with its original
compact	@command	Remove unused vectors and merge the write-ahead log into the database file, ready to copy
backup	@command	Copy the memory into a new file, even while other processes use it
backups	@command	List the backups beside the memory and in ~/.quaid/backups, newest first
config	@command	List all settings, and where each value comes from
rebuild	@command	Rebuild the text index, tags, chunks and links; then sync every folder and make missing vectors
upgrade	@command	Show how to upgrade, or (--check --from PLACE) check for a newer version
encrypt	@command	Encrypt the memory, its backups beside it and in ~/.quaid/backups, and the images beside them
rekey	@command	Give an encrypted memory and its backups a new key, or keep the key in another place
decrypt	@command	Store the memory without encryption again, with the images beside it
golden	@command	List the golden questions with the pages that they expect
bench	@command	Measure quality and speed of the search on this memory, offline
doctor	@command	Check the installation and recommend commands
kb	@command	list, edit, query, show, backlinks, status, remember, init, clone, lint, index, commit, doctor, curate, push, capture, install-timer, sync, map, emacs-file, merge, delete, supersede, contest
instructions	@command	Print the instructions for agents that the MCP server sends: when to ask, and which tool writes what
connect	@command	Add this memory to a client'\''s settings: the MCP server and, for Claude Code, the hooks
disconnect	@command	Remove this memory from a client'\''s settings: its server, hooks and instructions, and nothing else
skills	@command	List the skills in effect, with their descriptions
daemon	@command	Show whether the service runs
token	@command	List the tokens with their scope, the part of the memory that they see, creation date, expiry and last use
login	@command	List the browsers that are logged in to the dashboard, the last used first' ;;
    'help gaps') printf '%s\n' 'add	@command	Record a question that the memory cannot answer
approve	@command	Approve a gap'\''s question, or a redacted form of it, for storage and outside research
resolve	@command	Close a gap, because a page answers it or it no longer matters
clear	@command	Close every open gap whose text is not stored' ;;
    'help propose') printf '%s\n' 'forget	@command	Propose to erase a page or sentence for good; a person confirms it
merge	@command	Propose to merge two pages about the same thing' ;;
    'help activity') printf '%s\n' 'accept	@command	Mark writes of agents as seen and accepted
undo	@command	Undo a write of an agent: restore the text that each page had before, as a new version' ;;
    'help dream') printf '%s\n' 'model	@command	Show, set or remove the language model that `quaid dream` may ask, with a budget of tokens for each day' ;;
    'help notebook') printf '%s\n' 'init	@command	Create a notebook, or attach a folder as one: lists, reference, knowledge, daily
list	@command	List the files of the notebook
read	@command	Read a file of the notebook, and the version to send with a change
write	@command	Append to a file of the notebook or to a section of it, or replace it
migrate	@command	Copy files of an older layout into reference/' ;;
    'help conversations') printf '%s\n' 'add	@command	Import transcripts of Claude Code and Codex, plain JSON lines, and exports of ChatGPT and Claude.ai
sync	@command	Read new turns of all imported transcripts, and of the folders in the setting conversation_folders
list	@command	List conversations with agents, the latest first
search	@command	Search earlier conversations with agents, by words and by meaning
show	@command	Show a conversation from its start, or the turns around one of them
remove	@command	Remove a conversation, so that no trace of it stays in the database file' ;;
    'help model') printf '%s\n' 'list	@command	List the models with their state
add	@command	Test a model and add it to this memory
remove	@command	Remove a model that was added
check	@command	Load a model and test it' ;;
    'help embeddings') printf '%s\n' 'list	@command	List the models for semantic search
use	@command	Use this model for semantic search
off	@command	Turn semantic search off: searches use words only, and their results say so
status	@command	Show which model is chosen, whether it can be used, and how many vectors it has' ;;
    'help rerank') printf '%s\n' 'use	@command	Test a cross-encoder, and let it reorder the best 30 pages of each question
off	@command	Turn reranking off
status	@command	Show whether results are reranked, and by what' ;;
    'help collection') printf '%s\n' 'add	@command	Attach a folder of markdown, org or other files
list	@command	List the collections with their folders and state
info	@command	Show the state of a collection: files with problems, ignore patterns, pending decisions
sync	@command	Sync collections with their folders now
remove	@command	Detach a folder
folders	@command	List the folders in a folder, to choose one for a collection
target	@command	Set the collection for new pages whose address names none
ignore	@command	list, add, remove, clear
quarantine	@command	List pages whose file is deleted or ignored, with dates and the data that no file contains
restore	@command	Write every file of a collection, byte for byte, into an empty folder, and attach that folder
audit	@command	Compare every file of a collection with its page, stored bytes and id
migrate-ids	@command	Write each page'\''s id into the front matter of its file, so that a moved file keeps its page
conflicts	@command	List the conflict copies that Syncthing, Obsidian, Dropbox or Quaid left in folders, or merge them' ;;
    'help collection ignore') printf '%s\n' 'list	@command	List the ignore patterns of a collection
add	@command	Ignore files of a collection
remove	@command	Remove an ignore pattern
clear	@command	Remove all ignore patterns' ;;
    'help collection quarantine') printf '%s\n' 'list	@command	List pages whose file is deleted or ignored, with dates and the data that no file contains
export	@command	Export quarantined pages as their original files, with links, facts and raw data as JSON
discard	@command	Delete quarantined pages permanently
restore	@command	Restore a page'\''s file at its old path' ;;
    'help sample') printf '%s\n' 'add	@command	Add a collection of sample pages to try things with
remove	@command	Remove the sample pages, their history and their files' ;;
    'help space') printf '%s\n' 'invite	@command	Invite a person, an agent or your next device to a shared space
proposals	@command	List changes that members with the right `propose` or `append` propose, with their diffs, or decide one' ;;
    'help backups') printf '%s\n' 'list	@command	List the backups beside the memory and in ~/.quaid/backups, newest first
verify	@command	Check that a backup is intact, and show how many pages it has' ;;
    'help config') printf '%s\n' 'get	@command	Show one setting
set	@command	Change one setting
list	@command	List all settings, and where each value comes from' ;;
    'help golden') printf '%s\n' 'add	@command	Add a golden question, or change the expected pages of one, and ask it
list	@command	List the golden questions with the pages that they expect
remove	@command	Remove a golden question
run	@command	Ask all golden questions and show the rank of each expected page
try	@command	Ask the golden questions with another version of Quaid, on a copy of the memory, before you upgrade
suggest	@command	Propose golden questions from what you asked
opened	@command	Record that you opened a page from the results of a question, for `golden suggest`' ;;
    'help kb') printf '%s\n' 'list	@command	List the nodes of the knowledge base, the latest change first
edit	@command	Replace the text of a node and commit it, after linting it
query	@command	Search the knowledge base: principles, preferences, procedures, observations, references
show	@command	Show a node of the knowledge base, what it links to and what links to it
backlinks	@command	List the nodes that link to a node
status	@command	Show the state of the knowledge base: nodes, commits to push, problems, whether curation is due
remember	@command	Write a node and commit it: lasting, general knowledge, not details of one project
init	@command	Create a knowledge base: a git repository with a contract, a first node and an index
clone	@command	Clone a knowledge base from its remote
lint	@command	Check every node, raw text and the index
index	@command	Rebuild the index from the nodes and commit it
commit	@command	Commit files changed with an editor, after rebuilding the index and linting everything
doctor	@command	Check the store and its setup on this machine, with a remedy for each problem
curate	@command	Report duplicates, orphans, contested, superseded, broad and untouched nodes, and unused raw files
push	@command	Push commits that the remote does not have
capture	@command	Capture an external source: a stub with address, day, title and an excerpt of at most 2,000 words
install-timer	@command	Push the knowledge base every 15 minutes, with a systemd user timer, launchd, or a line for cron
sync	@command	Update org-roam'\''s database for browsing in Emacs, if nodes have changed
map	@command	Print the nodes and the links between them as a graph in graphviz'\''s DOT language
emacs-file	@command	Print the path of ai-kb.el, the package for Emacs
merge	@command	Merge a second node into the first
delete	@command	Delete a node or a capture; git keeps it
supersede	@command	Mark a node as superseded by another
contest	@command	Mark a node as contested, or as current again' ;;
    'help skills') printf '%s\n' 'list	@command	List the skills in effect, with their descriptions
doctor	@command	Show all layers of skills in order, with hashes, overrides and problems
extract	@command	Write the built-in skills into a folder, where they can be changed
show	@command	Print the text of a skill, for an agent to read' ;;
    'help daemon') printf '%s\n' 'install	@command	Install a service (a systemd user unit or launchd agent) that serves the dashboard and agents over HTTP
start	@command	Start the installed service
stop	@command	Stop the service until it is started again, or the next login
uninstall	@command	Stop the service and remove it
status	@command	Show whether the service runs
logs	@command	Show the log of the service: starts, stops and failures, never page texts or questions' ;;
    'help token') printf '%s\n' 'create	@command	Create a token for an HTTP client
list	@command	List the tokens with their scope, the part of the memory that they see, creation date, expiry and last use
revoke	@command	Revoke a token, or the access of a program' ;;
    'help login') printf '%s\n' 'list	@command	List the browsers that are logged in to the dashboard, the last used first
end	@command	Log a browser out, or all of them
code	@command	Show a code to type at the dashboard'\''s login page' ;;
    'config set chunk_strategy') printf '%s\n' '1	section|window|paragraph|page	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set agent_writes') printf '%s\n' '1	guarded|direct|review	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set welcome') printf '%s\n' '1	ask|hint|done	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set dream_nightly') printf '%s\n' '1	on|off	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set background_embedding') printf '%s\n' '1	on|off	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set embed_conversations') printf '%s\n' '1	recent|on|off	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set log_activity') printf '%s\n' '1	on|off	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set log_gaps') printf '%s\n' '1	on|words|text|off	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set log_opened') printf '%s\n' '1	off|words	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set gap_threshold') printf '%s\n' '1	strong|weak	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    'config set search_merge_strategy') printf '%s\n' '1	sum|set-union|rrf	Its new value
--db	@files:db	the memory
--config	@files:yaml,yml	settings in YAML
--json	-	print JSON instead of text
--help	-	help on a command' ;;
    esac
}

# The kind of the entry $2 of the command $1; nothing if it has none.
_quaid_kind() {
    local word kind help
    while IFS=$'\t' read -r word kind help; do
        if [[ $word == "$2" ]]; then
            printf '%s' "$kind"
            return
        fi
    done < <(_quaid_table "$1")
}

# The words of the line up to the cursor into `line`, whole: bash takes them apart at = and :.
_quaid_line() {
    local at word glue=
    line=()
    for ((at = 1; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ -n $glue || ($word =~ ^[=:]+$ && ${#line[@]} -gt 0) ]]; then
            line[${#line[@]} - 1]+=$word
        else
            line+=("$word")
        fi
        glue=
        [[ $word =~ ^[=:]+$ ]] && glue=yes
    done
    [[ ${#line[@]} -gt 0 ]] || line=("")
}

# Names out of the memory into `found`; what a shell would take apart is quoted, unless the person did it.
_quaid_names() {
    local start=$2 each
    case $start in
    [\"\']*) start=${start:1} ;;
    *) start=${start//\\/} ;;
    esac
    while IFS= read -r each; do
        [[ $2 == [\"\']* ]] || printf -v each %q "$each"
        found+=("$each")
    done < <("$program" completion "$1" "${place[@]}" -- "$start" 2>/dev/null </dev/null)
}

# Folders into `found`, and files: all of them, or those with the endings that the kind $1 names.
_quaid_files() {
    local each endings=
    [[ $1 == @files:* ]] && endings=${1#@files:}
    while IFS= read -r each; do
        if [[ $1 == @files || -d ${each/#\~\//$HOME/} || (-n $endings && $each == *.@(${endings//,/|})) ]]; then
            found+=("$each")
        fi
    done < <(compgen -f -- "$2")
}

_quaid() {
    local line command='' program=$1 slot=0 skip='' word kind help value current cut place=()
    [[ ${program##*/} == ai-kb ]] && command=kb && program=quaid
    _quaid_line
    current=${line[${#line[@]} - 1]}
    for word in "${line[@]:0:${#line[@]}-1}"; do
        if [[ -n $skip ]]; then
            case $skip in --db | --config) place+=("$skip" "$word") ;; esac
            skip=
        elif [[ $word == -* ]]; then
            kind=$(_quaid_kind "$command" "$word")
            [[ $word != *=* && -n $kind && $kind != - ]] && skip=$word
            case $word in --db=* | --config=*) place+=("$word") ;; esac
        elif ((slot == 0)) && [[ $(_quaid_kind "$command" "$word") == @command ]]; then
            command=${command:+$command }$word
        else
            ((slot++))
        fi
    done
    value=$current
    if [[ -n $skip ]]; then
        kind=$(_quaid_kind "$command" "$skip")
    elif [[ $current == --*=* ]]; then
        kind=$(_quaid_kind "$command" "${current%%=*}")
        value=${current#*=}
    elif [[ $current == -* ]]; then
        kind=@options
    else
        kind=$(_quaid_kind "$command" $((slot + 1)))
        [[ -n $kind ]] || kind=$(_quaid_kind "$command" '*')
    fi
    local found=()
    case $kind in
    @options)
        while IFS=$'\t' read -r word kind help; do
            [[ $word == "$current"* ]] && found+=("$word")
        done < <(_quaid_table "$command")
        ;;
    @files | @files:* | @folders)
        compopt -o filenames 2>/dev/null
        _quaid_files "$kind" "$value"
        ;;
    @any | - | @command | '') ;;
    @*)
        _quaid_names "${kind#@}" "$value"
        [[ ${#found[@]} -eq 1 && ${found[0]} == */ ]] && compopt -o nospace 2>/dev/null
        ;;
    *)
        while IFS= read -r word; do
            [[ $word == "$value"* ]] && found+=("$word")
        done < <(printf '%s\n' "${kind//|/$'\n'}")
        ;;
    esac
    if ((slot == 0)) && [[ -z $skip && $current != -* ]]; then
        while IFS=$'\t' read -r word kind help; do
            [[ $kind == @command && $word == "$current"* ]] && found+=("$word")
        done < <(_quaid_table "$command")
    fi
    # Bash puts in only what comes after the last = or : of the word.
    if [[ $COMP_WORDBREAKS == *:* && $value == *:* ]]; then
        cut=${value%"${value##*:}"}
        found=("${found[@]#"$cut"}")
    fi
    COMPREPLY=("${found[@]}")
}

complete -F _quaid quaid ai-kb
