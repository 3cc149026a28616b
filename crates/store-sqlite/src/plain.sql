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
  created_at      integer not null,
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
  earliest_at                integer not null,
  latest_at                  integer not null,
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

create table schema_migrations (
  version    integer primary key,
  applied_at integer not null
);
