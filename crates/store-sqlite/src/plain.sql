-- A plain database with the tables of the older memory engine, for queries written against them. Nothing is packed.
-- Times are microseconds since 1970, UTC; sizes are tokens by the estimator of the conversation.
create table conversations (
  id          integer primary key,
  session_id  text    not null unique,
  title       text,
  channel     text, -- from the conversation's facts, where they name one
  archived    integer not null,
  last_active integer not null,
  created_at  integer not null
);

-- One row for a message's text or blocks, for each reasoning, each tool call and each tool result. Notes are left out. A
-- fork's rows are those of its own log; what it shares stands in its ancestors' rows.
create table messages (
  id              integer primary key,
  conversation_id integer not null references conversations (id) on delete cascade,
  seq             integer not null, -- 1, 2, 3, … over all rows that the conversation shows
  role            text    not null check (role in ('system', 'user', 'assistant', 'tool')),
  event_type      text    not null default 'text' check (event_type in ('text', 'multimodal', 'thinking', 'tool_call', 'tool_result')),
  content         text    not null,
  token_count     integer not null,
  created_at      integer, -- null if the time is unknown
  unique (conversation_id, seq)
);

create table message_parts (
  id           integer primary key,
  message_id   integer not null references messages (id) on delete cascade,
  part_type    text    not null check (part_type in ('text', 'reasoning', 'tool')),
  ordinal      integer not null,
  text_content text,
  tool_call_id text,
  tool_name    text,
  tool_input   text, -- JSON
  tool_output  text,
  metadata     text, -- the whole part as JSON
  unique (message_id, ordinal)
);

create table summaries (
  id                         text    primary key,
  conversation_id            integer not null references conversations (id) on delete cascade,
  kind                       text    not null check (kind in ('leaf', 'condensed')),
  depth                      integer not null,
  content                    text    not null,
  token_count                integer not null,
  earliest_at                integer, -- null if no time is known
  latest_at                  integer,
  descendant_count           integer not null, -- a leaf's rows; a condensed node's children and all that those count
  descendant_token_count     integer not null, -- what those cost
  source_message_token_count integer not null, -- what all the messages cost that the node stands for
  created_at                 integer not null
);

-- The messages that a summary was made of directly.
create table summary_messages (
  summary_id text    not null references summaries (id) on delete cascade,
  message_id integer not null references messages (id) on delete restrict,
  ordinal    integer not null,
  primary key (summary_id, message_id)
);

-- summary_id is the node that contains; parent_summary_id is what went into it, although its name says the opposite.
create table summary_parents (
  summary_id        text    not null references summaries (id) on delete cascade,
  parent_summary_id text    not null references summaries (id) on delete restrict,
  ordinal           integer not null,
  primary key (summary_id, parent_summary_id)
);

-- What each conversation's view shows, in order. Ordinals are the seq of an item's first row, and so not dense.
create table context_items (
  conversation_id integer not null references conversations (id) on delete cascade,
  ordinal         integer not null,
  item_type       text    not null check (item_type in ('message', 'summary')),
  message_id      integer references messages (id) on delete restrict,
  summary_id      text    references summaries (id) on delete restrict,
  primary key (conversation_id, ordinal),
  check ((message_id is null) <> (summary_id is null))
);

-- What the hashes of the log, of summaries and of views are computed from: docs/proof.md. A fork's rows are
-- those of its own log, its erasures those of all entries that it shows.
create table logs (
  conversation_id integer primary key references conversations (id) on delete cascade,
  parent          integer, -- of a fork
  shared          integer, -- of a fork: the last position that it reads from its parent
  head            integer not null,
  chain           blob    not null, -- over its own log
  estimator       text    not null,
  erasures        integer not null
);

create table log_entries (
  conversation_id integer not null references conversations (id) on delete cascade,
  seq             integer not null, -- the position: 1, 2, 3, …; in a fork from shared + 1
  kind            text    not null, -- message or note
  role            text    not null,
  external_id     text,
  response        text,
  name            text,
  loop            text,
  turn            integer,
  at              integer not null,
  meta            text, -- JSON as it came
  body            text, -- the parts as a JSON list; null once erased
  tokens          integer not null,
  hash            blob    not null,
  primary key (conversation_id, seq)
);

create table erasures (
  conversation_id integer not null references conversations (id) on delete cascade,
  first           integer not null, -- inclusive
  last            integer not null, -- inclusive
  at              integer not null,
  reason          text    not null
);

create table summary_hashes (
  summary_id  text    primary key references summaries (id) on delete cascade,
  first       integer not null, -- inclusive
  last        integer not null, -- inclusive
  recipe      text    not null,
  rendering   text    not null,
  model       text,
  ranks       blob, -- a byte a line; null when all are equal
  messages    text, -- JSON
  erased      integer not null,
  source_hash blob    not null,
  hash        blob    not null
);

create table summary_links (
  summary_id text    not null references summaries (id) on delete cascade,
  role       text    not null check (role in ('child', 'source')),
  ordinal    integer not null, -- 0, 1, 2, … in each role
  first      integer not null, -- inclusive
  last       integer not null, -- inclusive
  linked     text, -- the summary; null for messages
  primary key (summary_id, role, ordinal)
);

create table views (
  conversation_id integer not null references conversations (id) on delete cascade,
  view            text    not null,
  version         integer not null,
  chain           blob    not null,
  primary key (conversation_id, view)
);

create table publications (
  conversation_id integer not null references conversations (id) on delete cascade,
  view            text    not null,
  version         integer not null, -- 1, 2, 3, …
  first           integer not null, -- inclusive
  last            integer not null, -- inclusive
  hash            blob    not null,
  primary key (conversation_id, view, version)
);

-- The starts of spans that each publication removed and added. Before the first one a view is a raw span from 1.
create table published_spans (
  conversation_id integer not null references conversations (id) on delete cascade,
  view            text    not null,
  version         integer not null,
  added           integer not null, -- 0 = removed, 1 = added
  first           integer not null,
  kind            text    not null check (kind in ('raw', 'summary', 'trimmed', 'omitted')),
  summary_id      text,
  policy          text,
  depth           integer, -- of the summary
  tokens          integer not null,
  primary key (conversation_id, view, version, added, first)
);

create table schema_migrations (
  version    integer primary key,
  applied_at integer not null
);
