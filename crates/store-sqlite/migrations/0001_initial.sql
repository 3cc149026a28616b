-- A conversation: one append-only log with everything that hangs on it. Numbers go up from 1 and are never reused.
create table conversation (
  no           integer primary key,
  tree         integer not null references conversation (no) deferrable initially deferred, -- root of its family; a root names itself
  key          text    not null unique, -- the session key that callers use
  kind         text    not null check (kind in ('root', 'fork', 'spawn')),
  parent       integer references conversation (no), -- null for a root
  shared       integer, -- fork: last seq that is read from the parent
  spawned_at   integer, -- spawn: seq of the call in the parent's log, 0 when it is not known
  spawned_call text, -- spawn: id of that call
  head         integer not null default 0, -- last visible seq, 0 when the log is empty; raised by message_advance
  tokens       integer not null default 0, -- running total of the visible log at head
  chain        blob    not null default (zeroblob(32)) check (length(chain) = 32), -- hash chain of its own log, zeros when empty
  estimator    text    not null, -- id and version of what counted the tokens; one per conversation
  fences       integer not null default 0, -- the last fence given to a job; never given again
  archived     integer not null default 0 check (archived in (0, 1)),
  title        text,
  created_at   integer not null, -- microseconds since 1970, UTC
  updated_at   integer not null, -- microseconds; kept by the store
  meta         text, -- JSON as it came
  views        blob    not null default (zeroblob(32)) check (length(views) = 32), -- hash over the names of its views, zeros when there are none
  record       blob    not null default (zeroblob(32)) check (length(record) = 32), -- hash over this row, without fences and views
  check ((kind = 'root') = (parent is null)),
  check ((kind = 'fork') = (shared is not null)),
  check ((kind = 'spawn') = (spawned_at is not null)),
  check (kind = 'spawn' or spawned_call is null)
) strict;

-- A family: a conversation with its forks and what was spawned from it.
create index conversation_tree on conversation (tree);

-- Stops INSERT OR REPLACE, which would drop a row without asking the delete trigger.
create trigger conversation_insert before insert on conversation
when exists (select 1 from conversation where no = new.no or key = new.key)
begin
  select raise(abort, 'conversation: exists already, it can not be replaced');
end;

create trigger conversation_delete before delete on conversation
begin
  select raise(abort, 'conversation: can not be deleted');
end;

-- Where a conversation comes from is fixed; its head only grows.
create trigger conversation_update before update on conversation
when new.head < old.head or new.fences < old.fences
  or new.no <> old.no or new.tree <> old.tree or new.key <> old.key or new.kind <> old.kind
  or new.parent is not old.parent or new.shared is not old.shared
  or new.spawned_at is not old.spawned_at or new.spawned_call is not old.spawned_call
begin
  select raise(abort, 'conversation: its head only grows, its key and origin are fixed');
end;

-- A family's session keys: one row for each root, with a hash over the numbers and keys of all that was opened in it. It
-- refers to no conversation, so that it stays when one is removed behind the store's back.
create table family (
  tree    integer primary key, -- number of the root
  members integer not null check (members >= 1), -- how many conversations were opened in it
  hash    blob    not null check (length(hash) = 32) -- chained over numbers and keys in the order of the numbers
) strict;

create trigger family_insert before insert on family
when exists (select 1 from family where tree = new.tree)
begin
  select raise(abort, 'family: exists already, it can not be replaced');
end;

create trigger family_update before update on family
when new.tree <> old.tree or new.members <= old.members
begin
  select raise(abort, 'family: it only grows');
end;

create trigger family_delete before delete on family
begin
  select raise(abort, 'family: can not be deleted');
end;

-- A long string of messages' bodies, stored once per content. It goes when no message refers to it any more.
create table payload (
  id    integer primary key,
  hash  blob    not null unique check (length(hash) = 32), -- SHA-256 of the string, as it stands in the JSON text
  codec integer not null, -- how data is packed: 0 = as it is, 1 = compressed
  data  blob    not null
) strict;

create trigger payload_insert before insert on payload
when exists (select 1 from payload where id = new.id or hash = new.hash)
begin
  select raise(abort, 'payload: append-only, it can not be replaced');
end;

create trigger payload_update before update on payload
begin
  select raise(abort, 'payload: append-only, it can not be updated');
end;

create trigger payload_delete before delete on payload
when exists (select 1 from message where payload = old.id)
begin
  select raise(abort, 'payload: it can not be deleted while a message refers to it');
end;

-- What the meta of a conversation's entries have in common (folder, version, …): what codec 2 compresses against.
-- Nothing is in it that stood in one entry alone.
create table facts (
  conversation integer primary key references conversation (no),
  text         text    not null
) strict;

create trigger facts_insert before insert on facts
when exists (select 1 from facts where conversation = new.conversation)
begin
  select raise(abort, 'facts: append-only, they can not be replaced');
end;

create trigger facts_update before update on facts
begin
  select raise(abort, 'facts: append-only, they can not be updated');
end;

create trigger facts_delete before delete on facts
begin
  select raise(abort, 'facts: append-only, they can not be deleted');
end;

-- One entry of a log. Never updated, never deleted; see the triggers.
create table message (
  id           integer primary key, -- conversation << 32 | seq, so that a log is one stretch of the table
  conversation integer not null references conversation (no), -- whose own log it is in
  seq          integer not null, -- 1, 2, 3, … without a gap; a fork's own log begins after what it shares
  kind         text    not null check (kind in ('message', 'note')), -- notes are kept and never sent to a model
  role         text    not null check (role in ('system', 'user', 'assistant', 'tool')),
  external_id  any, -- the source's own id, unique in a conversation: a text, or the 16 bytes of a UUID that was written in lower case
  response     text, -- entries of one model response carry the same id
  name         text, -- participant
  loop         text, -- id of the agent loop, where the source has one
  turn         integer, -- index of the turn in its loop
  at           integer not null, -- microseconds since 1970 as the source says; not monotonic
  clocked      integer not null default 0 check (clocked in (0, 1)), -- the source gave no time: at is the clock's, and not compared with that of an entry told again
  tokens       integer not null check (tokens >= 0), -- by the conversation's estimator
  running      integer not null check (running >= tokens), -- sum of tokens over the visible log up to here
  hash         blob    not null check (length(hash) = 32), -- SHA-256 over body and the fields beside it
  codec        integer not null default 0, -- how body is packed: 0 = JSON text; 1 = compressed, with meta; 2 = compressed with the facts, with meta
  payload      integer references payload (id), -- the longest string of the body, where that is stored once
  meta         text, -- JSON as it came: model, usage, stop reason; null when it is packed with the body
  body         blob, -- the parts as a JSON list; null once erased
  check (id = ((conversation << 32) | seq)),
  check ((loop is null) = (turn is null))
) strict;

-- Importing twice inserts nothing: duplicates are found here.
create unique index message_external on message (conversation, external_id) where external_id is not null;

-- Who refers to a payload.
create index message_payload on message (payload) where payload is not null;

-- Dense and append-only. Asking for the next seq also stops INSERT OR REPLACE and UPSERT on the id; the second
-- condition stops them on the external id.
create trigger message_insert before insert on message
begin
  select case
           when new.seq is not c.head + 1 then raise(abort, 'message: seq must be head + 1')
           when new.running is not c.tokens + new.tokens then raise(abort, 'message: running must be the sum before + tokens')
           when new.external_id is not null
                and exists (select 1 from message where conversation = new.conversation and external_id = new.external_id)
             then raise(abort, 'message: external id exists already, it can not be replaced')
         end
    from (select 1) left join conversation c on c.no = new.conversation;
end;

-- After, not before: a row that ON CONFLICT drops must not move the head.
create trigger message_advance after insert on message
begin
  update conversation set head = new.seq, tokens = new.running where no = new.conversation;
end;

create trigger message_delete before delete on message
begin
  select raise(abort, 'message: append-only, it can not be deleted');
end;

-- The one change allowed: a recorded erasure blanks what was said. Place, size and hash stay.
create trigger message_update before update on message
when not (
  new.body is null and new.payload is null
  and (new.meta is null or new.meta is old.meta)
  and (new.name is null or new.name is old.name)
  and new.id = old.id and new.conversation = old.conversation and new.seq = old.seq
  and new.kind = old.kind and new.role = old.role and new.external_id is old.external_id
  and new.response is old.response and new.turn is old.turn and new.loop is old.loop
  and new.at = old.at and new.clocked = old.clocked and new.tokens = old.tokens and new.running = old.running
  and new.hash = old.hash and new.codec = old.codec
  and exists (select 1 from erasure where conversation = old.conversation and old.seq between first and last)
)
begin
  select raise(abort, 'message: append-only, it can not be updated');
end;

-- Stretches of a log whose words were erased on purpose, and why.
create table erasure (
  conversation integer not null references conversation (no),
  first        integer not null, -- inclusive
  last         integer not null, -- inclusive
  at           integer not null, -- microseconds
  reason       text    not null,
  primary key (conversation, first, last, at),
  check (first >= 1 and last >= first)
) strict, without rowid;

create trigger erasure_update before update on erasure
begin
  select raise(abort, 'erasure: append-only, it can not be updated');
end;

create trigger erasure_delete before delete on erasure
begin
  select raise(abort, 'erasure: append-only, it can not be deleted');
end;

-- A view of a conversation: a partition of its log into spans. No row means version 0, one raw span from 1.
create table view (
  conversation integer not null references conversation (no),
  name         text    not null,
  version      integer not null default 0, -- raised by each publish
  saved        integer not null default 0, -- tokens of covered messages less those of the spans: it costs conversation.tokens - saved
  chain        blob    not null default (zeroblob(32)) check (length(chain) = 32), -- hash of the last publication, zeros before the first
  primary key (conversation, name)
) strict, without rowid;

create trigger view_update before update on view
when new.version < old.version
begin
  select raise(abort, 'view: its version only grows');
end;

-- The live spans. Only the first seq is kept: a span ends where the next begins, and the last one is raw and open.
create table span (
  conversation integer not null references conversation (no),
  view         text    not null,
  first        integer not null check (first >= 1), -- first seq, inclusive
  added_in     integer not null, -- version that added it
  kind         text    not null check (kind in ('raw', 'summary', 'trimmed', 'omitted')),
  summary      text, -- public id, for a summary
  policy       text, -- name and version of the trim policy, for a trimmed span
  tokens       integer not null, -- what it costs when rendered; 0 for a raw span, whose cost the running sums give
  depth        integer not null default 0, -- of the summary
  primary key (conversation, view, first),
  check ((kind = 'summary') = (summary is not null)),
  check ((kind = 'trimmed') = (policy is not null))
) strict, without rowid;

-- What a publish added and still lives.
create index span_added on span (conversation, view, added_in);

-- Spans that a publish replaced. With the live ones they give every version of a view.
create table span_history (
  conversation integer not null references conversation (no),
  view         text    not null,
  removed_in   integer not null, -- version that replaced it; older versions still show it
  first        integer not null,
  added_in     integer not null,
  kind         text    not null,
  summary      text,
  policy       text,
  tokens       integer not null,
  depth        integer not null,
  primary key (conversation, view, removed_in, first),
  check (added_in < removed_in)
) strict, without rowid;

-- What a publish added and a later one replaced.
create index span_history_added on span_history (conversation, view, added_in);

create trigger span_history_insert before insert on span_history
when exists (select 1 from span_history where conversation = new.conversation and view = new.view
                and removed_in = new.removed_in and first = new.first)
begin
  select raise(abort, 'span_history: append-only, it can not be replaced');
end;

create trigger span_history_update before update on span_history
begin
  select raise(abort, 'span_history: append-only, it can not be updated');
end;

create trigger span_history_delete before delete on span_history
begin
  select raise(abort, 'span_history: append-only, it can not be deleted');
end;

-- One row per publish: which stretch changed, chained over the rows that went and came.
create table publication (
  conversation integer not null references conversation (no),
  view         text    not null,
  version      integer not null check (version >= 1), -- 1, 2, 3, … per view
  first        integer not null, -- inclusive
  last         integer not null, -- inclusive
  at           integer not null, -- microseconds
  hash         blob    not null check (length(hash) = 32), -- over the hash before it, the range, the removed and the added spans
  primary key (conversation, view, version)
) strict, without rowid;

create trigger publication_insert before insert on publication
begin
  select raise(abort, 'publication: version must be the last one + 1')
   where new.version <> 1 + coalesce((select max(version) from publication
                                       where conversation = new.conversation and view = new.view), 0);
end;

create trigger publication_update before update on publication
begin
  select raise(abort, 'publication: append-only, it can not be updated');
end;

create trigger publication_delete before delete on publication
begin
  select raise(abort, 'publication: append-only, it can not be deleted');
end;

-- A node of the summary graph: it stands for a contiguous range. Redoing one makes a new node.
create table summary (
  id            integer primary key, -- conversation << 32 | ordinal, so that the nodes of a conversation are one stretch
  conversation  integer not null references conversation (no),
  public_id     text    not null, -- sum_ and 16 hex digits of its hash
  first         integer not null, -- first seq covered, inclusive
  last          integer not null, -- last seq covered, inclusive
  depth         integer not null check (depth >= 0), -- 1 + deepest child, a leaf has 0
  tokens        integer not null, -- when rendered, by the conversation's estimator
  rendering     text    not null, -- name and version of the rendering that tokens was counted for
  source_tokens integer not null, -- of its sources
  provisional   integer not null default 0 check (provisional in (0, 1)), -- written without a model
  recipe        text    not null, -- what made it: strategy, prompt and model class; with source_hash the key that is paid once
  tier          text    not null, -- step of the ladder that gave the text
  model         text,
  created_at    integer not null, -- microseconds
  earliest_at   integer not null, -- smallest time of the sources' messages, microseconds
  latest_at     integer not null, -- greatest time of the sources' messages, microseconds
  source_hash   blob    not null check (length(source_hash) = 32), -- over the hashes of its sources
  hash          blob    not null check (length(hash) = 32), -- over source_hash, children, range, depth, recipe, text and ranks
  record        blob    not null default (zeroblob(32)) check (length(record) = 32), -- hash over hash, provisional, tier, model, tokens, rendering, times and meta
  meta          text, -- JSON as it came
  text          text    not null, -- the lines of the summary
  ranks         blob, -- a byte a line: how important it is among the lines; null when all are equal
  messages      text, -- JSON: rendered messages, where a strategy keeps those instead of text
  unique (conversation, public_id),
  check ((id >> 32) = conversation),
  check (first >= 1 and last >= first)
) strict;

-- The same source by the same recipe is never paid for twice.
create index summary_source on summary (conversation, source_hash, recipe);

create trigger summary_insert before insert on summary
when exists (select 1 from summary where id = new.id or (conversation = new.conversation and public_id = new.public_id))
begin
  select raise(abort, 'summary: append-only, it can not be replaced');
end;

create trigger summary_update before update on summary
begin
  select raise(abort, 'summary: append-only, it can not be updated');
end;

create trigger summary_delete before delete on summary
begin
  select raise(abort, 'summary: append-only, it can not be deleted');
end;

-- What a summary unfolds to, and what it was made from where that differs: messages and summaries mixed.
create table summary_link (
  parent  integer not null references summary (id), -- the summary made
  role    integer not null check (role in (0, 1)), -- 0 = child: the children tile its range; 1 = source: what its writer saw, none when that is the children
  ordinal integer not null, -- 0, 1, 2, … in each role
  first   integer not null, -- inclusive
  last    integer not null, -- inclusive
  child   integer references summary (id), -- the child or source; null for a run of messages
  primary key (parent, role, ordinal),
  check (first >= 1 and last >= first),
  check (child is null or child <> parent)
) strict, without rowid;

-- Up the graph: which summaries contain this one or were made from it.
create index summary_link_child on summary_link (child) where child is not null;

create trigger summary_link_insert before insert on summary_link
when exists (select 1 from summary_link where parent = new.parent and role = new.role and ordinal = new.ordinal)
begin
  select raise(abort, 'summary_link: append-only, it can not be replaced');
end;

create trigger summary_link_update before update on summary_link
begin
  select raise(abort, 'summary_link: append-only, it can not be updated');
end;

create trigger summary_link_delete before delete on summary_link
begin
  select raise(abort, 'summary_link: append-only, it can not be deleted');
end;

-- Work on a conversation that must not be done twice: an advisory lease, and what was prepared under it. The row
-- goes when the work is done.
create table job (
  conversation integer not null references conversation (no),
  key          text    not null, -- what the work is about
  state        text    not null check (state in ('held', 'ready', 'free')), -- free: it failed and may be tried again
  owner        text    not null, -- who holds it
  fence        integer not null, -- from conversation.fences; a holder with an older one has lost it
  expires      integer not null, -- microseconds since 1970, by the store's clock
  tries        integer not null default 0, -- how often it failed
  draft        text, -- JSON: the prepared work, kept until it is published
  primary key (conversation, key)
) strict;

-- Small values that belong to a conversation: pins, notes, settings.
create table state (
  conversation integer not null references conversation (no),
  key          text    not null,
  value        text    not null,
  revision     integer not null, -- raised by each write, compared before it
  primary key (conversation, key)
) strict;

-- Which migrations made this database.
create table schema_migrations (
  version  integer primary key,
  name     text not null,
  checksum text not null -- SHA-256 of the file, 64 hex digits
) strict;
